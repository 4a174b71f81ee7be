//! The states of a shard, and why one may be parked. Stored as bytes; the numbers are for ever.

use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher};

/// Where a shard stands. `Done`, `Split` and `Parked` are terminal: no worker's operation leaves
/// them. An administrator can return a parked shard to `Active`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ShardStatus {
    /// Work remains; it may be leased or waiting.
    Active = 0,
    /// All of its keys are handled.
    Done = 1,
    /// Its keys were handed to its children.
    Split = 2,
    /// Halted for a [`ParkReason`].
    Parked = 3,
}

impl ShardStatus {
    /// Every status, by discriminant.
    pub const ALL: [Self; 4] = [Self::Active, Self::Done, Self::Split, Self::Parked];

    /// Whether workers are finished with the shard.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Active)
    }

    /// The status stored as `raw`.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::Active),
            1 => Some(Self::Done),
            2 => Some(Self::Split),
            3 => Some(Self::Parked),
            _ => None,
        }
    }
}

/// Why a shard was halted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ParkReason {
    /// The source refused access; somebody must mend credentials.
    PermissionDenied = 0,
    /// What it covers is gone.
    NotFound = 1,
    /// It is inconsistent, or it kept killing its workers; somebody must look.
    Poisoned = 2,
    /// Passing errors added up; trying again later may help.
    TooManyErrors = 3,
    /// Anything else.
    Other = 4,
}

impl ParkReason {
    /// The reason stored as `raw`.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::PermissionDenied),
            1 => Some(Self::NotFound),
            2 => Some(Self::Poisoned),
            3 => Some(Self::TooManyErrors),
            4 => Some(Self::Other),
            _ => None,
        }
    }
}

impl CanonicalBytes for ParkReason {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(&(*self as u8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discriminants_are_stable_and_unknown_bytes_are_none() {
        for raw in 0..=u8::MAX {
            assert_eq!(ShardStatus::from_raw(raw).map(|s| s as u8), (raw < 4).then_some(raw));
            assert_eq!(ParkReason::from_raw(raw).map(|r| r as u8), (raw < 5).then_some(raw));
        }
        assert_eq!(ShardStatus::ALL.map(|s| s as u8), [0, 1, 2, 3]);
    }

    #[test]
    fn only_active_is_not_terminal() {
        assert_eq!(ShardStatus::ALL.map(ShardStatus::is_terminal), [false, true, true, true]);
    }
}
