//! Claims that cannot win end, whatever the index says.

use gossip_contracts::identity::ShardId;
use gossip_coordination::{InMemoryCoordinator, RunStatus, ShardStatus, claim_from_candidates};

use super::delegate::names::*;
use super::delegate::{delegate_traits, impl_method, impl_trait, methods};

/// Always offers a shard and never grants it.
struct Unlucky {
    refusal: AcquireError,
    collections: usize,
    coordinator: InMemoryCoordinator,
}

macro_rules! unlucky {
    ($self:expr, $trait:ident, $async_trait:ident, acquire_and_restore_into, $($arg:expr),*) => {{
        let _ = ($($arg),*);
        Err($self.refusal.clone())
    }};
    (
        $self:expr, $trait:ident, $async_trait:ident, collect_claim_candidates_into,
        $now:expr, $tenant:expr, $run:expr, $worker:expr, $out:expr
    ) => {{
        let _ = ($now, $tenant, $run, $worker);
        $self.collections += 1;
        $out.clear();
        $out.status = RunStatus::Active;
        $out.shards.push(ShardId::from_raw(0));
        Ok(())
    }};
    ($self:expr, ShardClaiming, $async_trait:ident, claim_next_available, $($arg:expr),*) => {
        claim_from_candidates($self, $($arg),*)
    };
    ($self:expr, $trait:ident, $async_trait:ident, $name:ident, $($arg:expr),*) => {
        $self.coordinator.$name($($arg),*)
    };
}

methods! { delegate_traits { [] Unlucky, unlucky } }

/// How often the claim looked before it gave up.
fn collections_until_it_gives_up(refusal: AcquireError) -> usize {
    let coordinator = InMemoryCoordinator::default();
    let mut backend = Unlucky { refusal, collections: 0, coordinator };
    let (tenant, run) = (TenantId::from_bytes([1; 32]), RunId::from_raw(1));
    let (now, worker) = (LogicalTime::from_raw(1), WorkerId::from_raw(1));
    let mut scratch = Box::new(AcquireScratch::new());
    let answer = backend.claim_next_available(now, tenant, run, worker, &mut scratch);
    assert_eq!(answer.unwrap_err(), ClaimError::NoneAvailable { earliest_deadline: None });
    backend.collections
}

#[test]
fn a_worker_that_always_comes_too_late_gives_up() {
    let refusal = AcquireError::AlreadyLeased {
        current_owner: WorkerId::from_raw(2),
        lease_deadline: LogicalTime::from_raw(9),
    };
    assert_eq!(collections_until_it_gives_up(refusal), 16);
}

#[test]
fn an_index_that_offers_a_settled_shard_for_ever_is_not_believed_for_ever() {
    let shard = ShardKey::new(RunId::from_raw(1), ShardId::from_raw(0));
    let refusal = AcquireError::ShardTerminal { shard, status: ShardStatus::Done };
    // The first time it may be poison; from then on each is a loss.
    assert_eq!(collections_until_it_gives_up(refusal), 17);
}
