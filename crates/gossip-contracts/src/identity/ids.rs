//! Numbered identities. Each is a `u64` that cannot be mistaken for another.

use core::fmt;

use super::canonical::{CanonicalBytes, CanonicalHasher};

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(u64);

        impl $name {
            /// The identity with this number.
            #[must_use]
            pub const fn from_raw(raw: u64) -> Self {
                Self(raw)
            }

            /// The number, for what stores or prints it.
            #[must_use]
            pub const fn as_raw(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl CanonicalBytes for $name {
            fn feed(&self, hasher: &mut CanonicalHasher) {
                self.0.feed(hasher);
            }
        }
    };
}

macro_rules! debug_with_number {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    )*};
}
debug_with_number!(RunId, ShardId, OpId, FenceEpoch, LogicalTime);

/// Who works where is not for logs; `Display`, which is asked for on purpose, has the number.
impl fmt::Debug for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkerId(<redacted>)")
    }
}

numbered! {
    /// One scan of one target.
    RunId
}
numbered! {
    /// One shard of a run. Bit 63 tells derived shards, which a split made, from root shards.
    ShardId
}
numbered! {
    /// One worker session. Never shared by two threads.
    WorkerId
}
numbered! {
    /// The idempotency key of one operation, drawn at random by the caller: a retry has the same.
    OpId
}

impl OpId {
    /// An id for a new operation, drawn by the operating system.
    ///
    /// # Panics
    /// If that has no random numbers to give.
    #[must_use]
    pub fn random() -> Self {
        Self(getrandom::u64().expect("the operating system gives random numbers"))
    }
}
numbered! {
    /// The fencing token of a shard: it grows with every change of ownership.
    FenceEpoch
}
numbered! {
    /// Unix milliseconds, always passed in. [`LogicalTime::ZERO`] means "unset".
    LogicalTime
}

impl ShardId {
    const DERIVED_BIT: u64 = 1 << 63;

    /// The derived shard whose lower 63 bits are those of `raw`.
    #[must_use]
    pub const fn derived_from_raw(raw: u64) -> Self {
        Self(raw | Self::DERIVED_BIT)
    }

    /// Whether a split made this shard.
    #[must_use]
    pub const fn is_derived(self) -> bool {
        self.0 & Self::DERIVED_BIT != 0
    }
}

impl FenceEpoch {
    /// No epoch: what a shard that never existed has.
    pub const ZERO: Self = Self(0);
    /// The epoch with which every shard starts.
    pub const INITIAL: Self = Self(1);

    /// The next epoch.
    ///
    /// # Panics
    /// At `u64::MAX`: reusing an epoch would let a zombie back in.
    #[must_use]
    pub const fn next(self) -> Self {
        match self.0.checked_add(1) {
            Some(next) => Self(next),
            None => panic!("a fence epoch overflowed"),
        }
    }
}

impl LogicalTime {
    /// Unset.
    pub const ZERO: Self = Self(0);

    /// This time plus `millis`, unless that overflows.
    #[must_use]
    pub const fn checked_add(self, millis: u64) -> Option<Self> {
        match self.0.checked_add(millis) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }
}

/// A shard of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardKey {
    /// The run that the shard's number counts in.
    pub run: RunId,
    /// The shard in that run.
    pub shard: ShardId,
}

impl ShardKey {
    /// The key of `shard` in `run`.
    #[must_use]
    pub const fn new(run: RunId, shard: ShardId) -> Self {
        Self { run, shard }
    }
}

impl fmt::Debug for ShardKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardKey({}/{})", self.run, self.shard)
    }
}

impl fmt::Display for ShardKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.run, self.shard)
    }
}

impl CanonicalBytes for ShardKey {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(&self.run).value(&self.shard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_ids_are_all_different() {
        let drawn: std::collections::HashSet<OpId> = (0..1000).map(|_| OpId::random()).collect();
        assert_eq!(drawn.len(), 1000);
    }

    #[test]
    fn bit_63_marks_derived_shards() {
        assert!(!ShardId::from_raw(u64::MAX >> 1).is_derived());
        assert!(ShardId::from_raw(1 << 63).is_derived());
        assert_eq!(ShardId::derived_from_raw(5).as_raw(), (1 << 63) | 5);
        assert!(ShardId::derived_from_raw(u64::MAX).is_derived());
    }

    #[test]
    #[should_panic(expected = "overflowed")]
    fn a_fence_epoch_never_wraps() {
        let _ = FenceEpoch::from_raw(u64::MAX).next();
    }

    #[test]
    fn epochs_count_up_from_one() {
        assert_eq!(FenceEpoch::ZERO.next(), FenceEpoch::INITIAL);
        assert!(FenceEpoch::INITIAL < FenceEpoch::INITIAL.next());
    }

    #[test]
    fn time_addition_is_checked() {
        let t = LogicalTime::from_raw(u64::MAX - 1);
        assert_eq!(t.checked_add(1), Some(LogicalTime::from_raw(u64::MAX)));
        assert_eq!(t.checked_add(2), None);
    }

    #[test]
    fn identities_show_as_their_number() {
        let key = ShardKey::new(RunId::from_raw(3), ShardId::from_raw(9));
        assert_eq!(format!("{key} {key:?} {:?}", key.run), "3/9 ShardKey(3/9) RunId(3)");
        let worker = WorkerId::from_raw(7);
        assert_eq!(format!("{worker} {worker:?}"), "7 WorkerId(<redacted>)");
    }
}
