//! The suite of backends that commit the caller's writes together with a cursor: W1 and W2.
//!
//! ```text
//! gossip_coordination::transactional_conformance_suite!(MyHarness);
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::OpId;

use super::attempt::widen;
use super::dump::Dump;
use super::harness::Harness;
use super::matrix::Operation;
use super::world::{World, id, start, within};
use crate::error::{CommitError, CoordError, IdempotentOutcome};
use crate::events::EventCollector;
use crate::lease::Lease;
use crate::status::ShardStatus;
use crate::traits::TransactionalBackend;

/// What the caller of a harness's backend writes through.
type Tx<'t, H> = <<H as Harness>::Backend as TransactionalBackend>::Transaction<'t>;

/// A backend under test that commits the caller's writes.
pub trait TransactionalHarness: Harness<Backend: TransactionalBackend> {
    /// Writes a row of the caller's own. No row is written twice.
    fn write(tx: &Tx<'_, Self>, row: u64);

    /// The rows that are committed, in order, as another connection would see them.
    fn rows(&mut self) -> Vec<u64>;
}

/// The operations that take the caller's writes.
const OPERATIONS: [Operation; 3] =
    [Operation::Checkpoint, Operation::CheckpointAndRenew, Operation::Complete];

/// Why the caller's writes failed.
type Mistake = &'static str;

/// A held shard, and everything that is stored.
struct Held<H> {
    world: World<H>,
    lease: Lease,
}

impl<H: TransactionalHarness> Held<H> {
    fn new() -> Self {
        let mut world = World::new(2);
        let lease = world.lease(1, 1);
        Self { world, lease }
    }

    /// Moves the cursor to `key` with the caller's writes; also how many events that makes.
    fn advance(
        &mut self,
        operation: Operation,
        key: &[u8],
        op: u64,
        writes: impl FnOnce(&Tx<'_, H>) -> Result<(), Mistake>,
    ) -> (Result<IdempotentOutcome<()>, CommitError<CoordError, Mistake>>, usize) {
        let Self { world, lease } = self;
        let (now, tenant, op) = (world.now, world.tenant, OpId::from_raw(op));
        let cursor = CursorUpdate::at(key);
        let mut events = EventCollector::new();
        let outcome = world.harness.with_events(&mut events, |backend| match operation {
            Operation::Checkpoint => {
                let moved = backend.checkpoint_with(now, tenant, lease, cursor, op, writes);
                moved.map_err(|error| refusal(error, widen))
            }
            Operation::CheckpointAndRenew => {
                let moved =
                    backend.checkpoint_and_renew_with(now, tenant, lease, cursor, op, writes);
                moved.map(|moved| moved.map(drop)).map_err(|error| refusal(error, widen))
            }
            Operation::Complete => {
                let moved = backend.complete_with(now, tenant, lease, cursor, op, writes);
                moved.map_err(|error| refusal(error, widen))
            }
            other => unreachable!("{other:?} takes no writes"),
        });
        (outcome, events.len())
    }

    /// All that is stored, the caller's rows with it.
    fn stored(&mut self) -> (Dump, Vec<u64>) {
        (self.world.harness.dump(), self.world.harness.rows())
    }

    /// Executes, and finds cursor and row stored, also after a crash.
    #[track_caller]
    fn executes(&mut self, operation: Operation, key: &[u8], op: u64, row: u64) {
        let (outcome, events) = self.advance(operation, key, op, |tx| {
            H::write(tx, row);
            Ok(())
        });
        assert_eq!((outcome, events), (Ok(IdempotentOutcome::Executed(())), 1), "{operation:?}");
        for _ in 0..2 {
            let shard = self.world.shard(id(1));
            assert_eq!(shard.cursor.as_update(), CursorUpdate::at(key));
            assert_eq!(shard.state.status == ShardStatus::Done, operation == Operation::Complete);
            assert!(self.world.harness.rows().contains(&row), "W1: the row is missing");
            self.world.reopen();
        }
        self.world.harness.assert_consistent();
    }
}

fn refusal<R, E>(
    error: CommitError<R, E>,
    widen: impl FnOnce(R) -> CoordError,
) -> CommitError<CoordError, E> {
    match error {
        CommitError::Refused(refusal) => CommitError::Refused(widen(refusal)),
        CommitError::Caller(mistake) => CommitError::Caller(mistake),
    }
}

/// W1: the row and the cursor are there, or neither is.
pub fn writes_are_committed_with_the_cursor<H: TransactionalHarness>() {
    let mut held = Held::<H>::new();
    for (operation, number) in OPERATIONS.into_iter().zip(1..) {
        held.executes(operation, &within(1, &number.to_string()), number, number);
        assert_eq!(held.world.harness.rows(), (1..=number).collect::<Vec<_>>());
    }
}

/// W2: they are committed already.
pub fn a_replay_does_not_run_the_writes<H: TransactionalHarness>() {
    for operation in OPERATIONS {
        let mut held = Held::<H>::new();
        held.executes(operation, &within(1, "m"), 7, 1);
        let before = held.stored();
        let (outcome, events) = held
            .advance(operation, &within(1, "m"), 7, |_| panic!("W2: {operation:?} was replayed"));
        assert_eq!((outcome, events), (Ok(IdempotentOutcome::Replayed(())), 0));
        assert!(held.stored() == before, "{operation:?}: a replay changed something");
    }
}

/// W2.
pub fn a_refusal_does_not_run_the_writes<H: TransactionalHarness>() {
    for operation in OPERATIONS {
        let mut held = Held::<H>::new();
        let before = held.stored();
        let refused = |held: &mut Held<H>, key: &[u8]| {
            let (outcome, events) =
                held.advance(operation, key, 7, |_| panic!("W2: {operation:?} was refused"));
            assert_eq!(events, 0);
            assert!(held.stored() == before, "{operation:?}: a refusal changed something");
            match outcome {
                Err(CommitError::Refused(refusal)) => refusal,
                outcome => panic!("{operation:?}: {outcome:?}"),
            }
        };
        let outside = refused(&mut held, &start(2));
        assert!(matches!(outside, CoordError::CursorOutOfBounds(_)), "{outside:?}");
        held.world.now = held.lease.deadline();
        let late = refused(&mut held, &within(1, "m"));
        assert!(matches!(late, CoordError::LeaseExpired { .. }), "{late:?}");
    }
}

/// W1, and the operation's id is not used up.
pub fn writes_that_fail_undo_the_operation<H: TransactionalHarness>() {
    for operation in OPERATIONS {
        let mut held = Held::<H>::new();
        let before = held.stored();
        let (outcome, events) = held.advance(operation, &within(1, "m"), 7, |tx| {
            H::write(tx, 1);
            Err("the caller changed its mind")
        });
        let mistake = CommitError::Caller("the caller changed its mind");
        assert_eq!((outcome, events), (Err(mistake), 0), "{operation:?}");
        assert!(held.stored() == before, "W1: {operation:?} left something");
        held.executes(operation, &within(1, "m"), 7, 1);
    }
}

/// W1, and the backend goes on.
pub fn writes_that_panic_undo_the_operation<H: TransactionalHarness>() {
    for operation in OPERATIONS {
        let mut held = Held::<H>::new();
        let before = held.stored();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            held.advance(operation, &within(1, "m"), 7, |tx| {
                H::write(tx, 1);
                panic!("a bug of the caller")
            })
        }));
        assert!(panicked.is_err());
        assert!(held.stored() == before, "W1: {operation:?} left something");
        held.executes(operation, &within(1, "m"), 7, 1);
    }
}

/// Emits one `#[test]` for each case of the suite, for the
/// [`TransactionalHarness`](crate::conformance::transactional::TransactionalHarness) named. Put it into
/// a module of its own.
#[macro_export]
macro_rules! transactional_conformance_suite {
    ($harness:ty) => {
        $crate::transactional_conformance_suite! { @each $harness:
            writes_are_committed_with_the_cursor
            a_replay_does_not_run_the_writes
            a_refusal_does_not_run_the_writes
            writes_that_fail_undo_the_operation
            writes_that_panic_undo_the_operation
        }
    };
    (@each $harness:ty: $($case:ident)*) => {$(
        #[test]
        fn $case() {
            $crate::conformance::transactional::$case::<$harness>();
        }
    )*};
}
