//! S14: a session knows what its worker was told: when its lease ends, and which keys it kept.

use gossip_contracts::coordination::ShardSpecRef;
use gossip_contracts::identity::LogicalTime;

use super::{Verdict, demand};
use crate::lease::Lease;

const S14: &str = "S14 session";

/// After a renewal that was heard.
pub(in crate::sim) fn check_renewed(lease: &Lease, told: LogicalTime) -> Verdict {
    demand(lease.deadline() == told, S14, || {
        format!("{}: the lease ends at {told}, the session says {}", lease.key(), lease.deadline())
    })
}

/// After a residual split that was heard: the session covers what it did before, less what it gave
/// away, also when a later split had taken more.
pub(in crate::sim) fn check_narrowed(
    before: ShardSpecRef<'_>,
    kept: ShardSpecRef<'_>,
    session: ShardSpecRef<'_>,
) -> Verdict {
    let end = before.end().min(kept.end());
    demand(session.start() == before.start() && session.end() == end, S14, || {
        format!("a split kept {kept:?} of {before:?}, the session says {session:?}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gossip_contracts::identity::{FenceEpoch, RunId, ShardId, ShardKey, TenantId, WorkerId};

    #[test]
    fn a_session_that_missed_its_renewal_is_noticed() {
        let at = LogicalTime::from_raw;
        let key = ShardKey::new(RunId::from_raw(1), ShardId::from_raw(1));
        let (tenant, owner) = (TenantId::from_bytes([1; 32]), WorkerId::from_raw(1));
        let lease = Lease::new(tenant, key, owner, FenceEpoch::INITIAL, at(10));
        assert!(check_renewed(&lease, at(10)).is_ok());
        assert!(check_renewed(&lease, at(11)).is_err());
    }

    #[test]
    fn a_session_that_is_wider_or_narrower_than_what_was_kept_is_noticed() {
        let range = |end| ShardSpecRef::new(b"a", end, b"");
        assert!(check_narrowed(range(b"z"), range(b"m"), range(b"m")).is_ok());
        assert!(check_narrowed(range(b"m"), range(b"t"), range(b"m")).is_ok());
        assert!(check_narrowed(range(b"z"), range(b"m"), range(b"z")).is_err());
        assert!(check_narrowed(range(b"m"), range(b"t"), range(b"t")).is_err());
    }
}
