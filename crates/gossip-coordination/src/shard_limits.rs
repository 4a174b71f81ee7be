//! Ceilings on the number of shards, so that splits cannot flood a coordinator, and the largest
//! split that a backend commits in one step.

use gossip_contracts::coordination::{
    MAX_SPLIT_CHILDREN, ShardLimitScope, ShardSpecRef, SplitValidationError,
};

use crate::error::RegisterShardsError;

/// How many shards a tenant and a run may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardLimits {
    /// Shards that one tenant may have.
    pub per_tenant: usize,
    /// Shards that all tenants together may have.
    pub global: usize,
}

/// The shards that exist, and those for which a registration has
/// [reserved](crate::RunRecord::reserved) a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ShardCounts {
    /// Of the tenant.
    pub tenant: usize,
    /// Of all tenants.
    pub global: usize,
}

/// The largest split that a backend commits in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitCaps {
    /// Most children of one split; at most [`MAX_SPLIT_CHILDREN`].
    pub max_children: usize,
    /// Most bytes of keys and metadata in the ranges of one plan. The same transaction writes the
    /// parent's record, so a backend computes this with the largest parent taken off.
    pub max_bytes: usize,
}

impl SplitCaps {
    /// What the protocol allows: for a backend without caps of its own.
    pub const PROTOCOL: Self = Self { max_children: MAX_SPLIT_CHILDREN, max_bytes: usize::MAX };

    /// Whether so many children are few enough.
    pub(crate) fn check_count(&self, count: usize) -> Result<(), SplitValidationError> {
        let max = self.max_children.min(MAX_SPLIT_CHILDREN);
        if count > max {
            return Err(SplitValidationError::TooManyChildren { count, max });
        }
        Ok(())
    }

    /// Whether the ranges of a plan are small enough.
    pub(crate) fn check_bytes(
        &self,
        parts: &[ShardSpecRef<'_>],
    ) -> Result<(), SplitValidationError> {
        let of =
            |part: &ShardSpecRef<'_>| part.start().len() + part.end().len() + part.metadata().len();
        let size = parts.iter().map(of).sum();
        if size > self.max_bytes {
            return Err(SplitValidationError::PartsTooLarge { size, max: self.max_bytes });
        }
        Ok(())
    }
}

/// Ceilings and counts as of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardRoom {
    /// How many there may be.
    pub limits: ShardLimits,
    /// What exists.
    pub counts: ShardCounts,
    /// The largest split that the backend takes.
    pub split: SplitCaps,
}

impl ShardRoom {
    /// Whether `additional` shards fit; the tenant's ceiling is asked first.
    pub fn check(&self, additional: usize) -> Result<(), ShardLimitViolation> {
        let ceilings = [
            (ShardLimitScope::Tenant, self.counts.tenant, self.limits.per_tenant),
            (ShardLimitScope::Global, self.counts.global, self.limits.global),
        ];
        for (scope, current, max) in ceilings {
            if additional > max.saturating_sub(current) {
                return Err(ShardLimitViolation { current, additional, max, scope });
            }
        }
        Ok(())
    }
}

/// A ceiling that would be passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardLimitViolation {
    /// Existing shards under that ceiling.
    pub current: usize,
    /// Asked for.
    pub additional: usize,
    /// How many there may be.
    pub max: usize,
    /// Whether the tenant or the run is full.
    pub scope: ShardLimitScope,
}

impl From<ShardLimitViolation> for SplitValidationError {
    fn from(ShardLimitViolation { current, additional, max, scope }: ShardLimitViolation) -> Self {
        Self::ShardLimitExceeded { current, additional, max, scope }
    }
}

impl From<ShardLimitViolation> for RegisterShardsError {
    fn from(ShardLimitViolation { current, additional, max, scope }: ShardLimitViolation) -> Self {
        Self::ShardLimitExceeded { current, additional, max, scope }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_can_be_reached_and_not_passed() {
        let room = |tenant, global| ShardRoom {
            limits: ShardLimits { per_tenant: 10, global: 15 },
            counts: ShardCounts { tenant, global },
            split: SplitCaps::PROTOCOL,
        };
        assert_eq!(room(7, 12).check(3), Ok(()));
        assert_eq!(
            room(8, 12).check(3),
            Err(ShardLimitViolation {
                current: 8,
                additional: 3,
                max: 10,
                scope: ShardLimitScope::Tenant
            })
        );
        assert_eq!(
            room(7, 13).check(3),
            Err(ShardLimitViolation {
                current: 13,
                additional: 3,
                max: 15,
                scope: ShardLimitScope::Global
            })
        );
        assert!(room(99, 99).check(1).is_err());
        assert!(room(0, 0).check(usize::MAX).is_err());
    }
}
