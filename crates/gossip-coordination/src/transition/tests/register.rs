//! V1 and V4 to V6: registration step by step, alone and with a rival.

use std::collections::BTreeSet;

use gossip_contracts::coordination::{InitialShardInput, ShardLimitScope};
use proptest::prelude::*;

use super::*;
use crate::error::{
    AcquireError, InfraError, RegisterShardsError, RevokeLeaseError, RunTransitionError,
    UnparkError,
};
use crate::op_log::{OpLogEntry, OpResult};
use crate::run::{Registration, RunRecord, ShardFilter};
use crate::testing::cases;

const CONFIG: RunConfig = RunConfig {
    cursor_semantics: CursorSemantics::Completed,
    lease_duration: 100,
    max_shard_retries: 3,
};

/// The keys of a manifest's ranges; row `n` is `[keys[n], keys[n + 1])`.
fn keys(count: u8) -> Vec<[u8; 1]> {
    (1..=count + 1).map(|key| [key]).collect()
}

/// So many rows, whose ids start at `first`.
fn manifest(keys: &[[u8; 1]], first: u64) -> Vec<InitialShardInput<'_>> {
    let ranges = keys.windows(2).map(|pair| ShardSpecRef::new(&pair[0], &pair[1], b""));
    let rows = ranges.zip(first..).map(|(range, id)| {
        InitialShardInput::new(ShardId::from_raw(id), range, CursorUpdate::initial())
    });
    rows.collect()
}

/// A store whose transactions write the run's record and a few shards.
struct Store {
    run: RunRecord,
    /// How often it was written: what a transaction compares.
    revision: u64,
    shards: BTreeSet<ShardId>,
    per_tenant: usize,
    /// What the tenant's other runs have taken.
    others: usize,
}

impl Store {
    fn new() -> Self {
        let run = create_run(None, START, TENANT, RUN, CONFIG).unwrap();
        Self { run, revision: 0, shards: BTreeSet::new(), per_tenant: usize::MAX, others: 0 }
    }

    fn room(&self) -> ShardRoom {
        let limits = ShardLimits { per_tenant: self.per_tenant, global: usize::MAX };
        let count = self.others + self.taken();
        let counts = ShardCounts { tenant: count, global: count };
        ShardRoom { limits, counts, ..World::new().room }
    }

    /// What a backend counts for the run.
    fn taken(&self) -> usize {
        self.shards.len() + self.run.reserved()
    }

    fn discard(&mut self, count: u32) {
        for _ in 0..count {
            self.shards.pop_first().expect("it is stored");
        }
    }

    /// Stores a step that was decided when the record had this revision; or not.
    fn commit(&mut self, revision: u64, step: RegisterStep, request: &RegisterRequest<'_>) -> bool {
        if revision != self.revision {
            return false;
        }
        self.revision += 1;
        match &step {
            RegisterStep::Begin(_) | RegisterStep::Activate(_) => {}
            RegisterStep::Discard { count, .. } => self.discard(*count),
            RegisterStep::Stage { rows, .. } => {
                for row in &request.shards()[rows.clone()] {
                    assert!(self.shards.insert(row.shard), "{} is staged twice", row.shard);
                }
            }
        }
        self.run.apply(step.update().clone());
        self.check();
        true
    }

    /// What is stored is what the record says, and bytes bring it back.
    fn check(&self) {
        let mut bytes = Vec::new();
        codec::encode_run(&self.run, &mut bytes);
        assert_eq!(codec::decode_run(&bytes).as_ref(), Ok(&self.run));
        let hidden = self.run.registration.map_or(0, |registration| registration.hidden());
        if self.run.root_shards.is_empty() {
            assert_eq!(self.shards.len(), hidden as usize);
        } else {
            let roots: BTreeSet<ShardId> = self.run.root_shards.iter().copied().collect();
            assert_eq!((&self.shards, hidden), (&roots, 0), "V6");
        }
    }
}

fn decide(
    store: &Store,
    chunk: usize,
    request: &RegisterRequest<'_>,
) -> Result<Decision<RegisterStep, ()>, RegisterShardsError> {
    register_step(Some(&store.run), at(1_500), &store.room(), chunk, request)
}

/// Takes steps until there is none left; returns how many, or why not.
fn drive(
    store: &mut Store,
    chunk: usize,
    request: &RegisterRequest<'_>,
) -> Result<usize, RegisterShardsError> {
    for steps in 0.. {
        match decide(store, chunk, request)? {
            Decision::Execute(step) => assert!(store.commit(store.revision, step, request)),
            Decision::Replay(()) => return Ok(steps),
        }
    }
    unreachable!("a registration has an end")
}

#[test]
fn a_manifest_is_staged_in_chunks_and_then_activated_at_once() {
    let (mut store, keys) = (Store::new(), keys(7));
    let rows = manifest(&keys, 0);
    let request = RegisterRequest::new(TENANT, &rows, operation(1));
    let mut seen = Vec::new();
    while let Ok(Decision::Execute(step)) = decide(&store, 3, &request) {
        assert_eq!(store.run.status, RunStatus::Initializing, "V4");
        seen.push(match &step {
            RegisterStep::Begin(_) => 0..0,
            RegisterStep::Stage { rows, .. } => rows.clone(),
            RegisterStep::Activate(_) => 7..7,
            RegisterStep::Discard { .. } => unreachable!("nothing is left over"),
        });
        assert!(step.update().event().is_none() || seen.last() == Some(&(7..7)));
        assert!(store.commit(store.revision, step, &request));
    }
    assert_eq!(seen, [0..0, 0..3, 3..6, 6..7, 7..7]);
    assert_eq!((store.run.status, store.run.root_shards.len()), (RunStatus::Active, 7));
    assert_eq!((store.run.registration, store.run.op_log.len()), (None, 1));
}

/// V4: to an administrator, too, and in every listing, a staged shard is one that is not there.
#[test]
fn nobody_sees_a_shard_that_is_staged() {
    let mut world = World::new();
    let revoke =
        |world: &World| world.with_found(|found| revoke_lease(found, TENANT, FenceEpoch::INITIAL));
    let unpark = |world: &World| {
        world.with_found(|found| unpark(found, world.now, TENANT, KEY, operation(1)))
    };
    let all = ShardFilter::all();
    let filters = [all, all.roots(), ShardFilter::active(), ShardFilter::available()];
    let shown = |world: &World| {
        let (shard, takeover) = (world.shard.view(), world.takeover);
        filters.map(|filter| filter.admits(&shard, world.gate.status, world.now, takeover))
    };
    assert_eq!(revoke(&world), Ok(Decision::Replay(())));
    assert_eq!(shown(&world), [true; 4]);
    world.gate.status = RunStatus::Initializing;
    assert_eq!(revoke(&world), Err(RevokeLeaseError::ShardNotFound));
    assert_eq!(unpark(&world), Err(UnparkError::ShardNotFound));
    assert_eq!(shown(&world), [false; 4]);
}

/// V4: nor what is left of a registration whose run was cancelled, while it is being deleted.
#[test]
fn nobody_sees_what_a_cancelled_registration_left() {
    let (mut world, lease) = World::leased();
    (world.gate.status, world.gate.hides_shards) = (RunStatus::Cancelled, true);
    let not_found = CoordError::ShardNotFound { shard: KEY };
    for op in [
        Op::Renew,
        Op::Release,
        Op::Checkpoint(CursorUpdate::at(b"k")),
        Op::Park(ParkReason::Other),
    ] {
        let request = Request { tenant: TENANT, lease, op, op_id: operation(1) };
        assert_eq!(world.perform(&request), Err(not_found.clone()));
    }
    let acquired = world.ask_acquire(TENANT, OTHER_WORKER);
    assert_eq!(acquired, Err(AcquireError::ShardNotFound { shard: KEY }));
    let revoked = world.with_found(|found| revoke_lease(found, TENANT, lease.fence()));
    assert_eq!(revoked, Err(RevokeLeaseError::ShardNotFound));
    let unparked = world.with_found(|found| unpark(found, world.now, TENANT, KEY, operation(1)));
    assert_eq!(unparked, Err(UnparkError::ShardNotFound));
    // A run that had shards shows them when it is cancelled.
    world.gate.hides_shards = false;
    let revoked = world.with_found(|found| revoke_lease(found, TENANT, lease.fence()));
    assert_eq!(revoked, Err(RevokeLeaseError::RunTerminal { status: RunStatus::Cancelled }));
}

/// The gate says it from the moment of the cancel on, and goes on saying it.
#[test]
fn the_gate_of_a_run_that_was_cancelled_before_it_was_active_hides_its_shards() {
    let (mut store, keys) = (Store::new(), keys(5));
    let rows = manifest(&keys, 0);
    let request = RegisterRequest::new(TENANT, &rows, operation(1));
    for _ in 0..2 {
        let Ok(Decision::Execute(step)) = decide(&store, 2, &request) else { panic!() };
        assert!(store.commit(store.revision, step, &request));
        assert!(!store.run.gate().hides_shards && !store.run.shows_shards());
    }
    let cancelled = cancel_run(Some(&store.run), START, TENANT, operation(2));
    let Ok(Decision::Execute(update)) = cancelled else { panic!("{cancelled:?}") };
    store.run.apply(update);
    assert!(store.run.gate().hides_shards && !store.run.shows_shards());
    while let Some((update, _)) = discard_staged(&store.run, 1) {
        store.run.apply(update);
        assert!(store.run.gate().hides_shards);
    }
    let mut active = Store::new();
    drive(&mut active, 2, &request).unwrap();
    let cancelled = cancel_run(Some(&active.run), START, TENANT, operation(2));
    let Ok(Decision::Execute(update)) = cancelled else { panic!("{cancelled:?}") };
    active.run.apply(update);
    assert!(!active.run.gate().hides_shards && active.run.shows_shards());
}

/// A run of Monday that is registered on Tuesday is not left behind.
#[test]
fn a_run_is_stale_when_nobody_has_taken_a_step_of_its_registration_for_long() {
    let (mut store, keys) = (Store::new(), keys(5));
    let rows = manifest(&keys, 0);
    let request = RegisterRequest::new(TENANT, &rows, operation(1));
    let later = |millis| START.checked_add(millis).unwrap();
    assert!(!store.run.is_stale(START) && store.run.is_stale(later(1)));
    for step in 1..=3 {
        let now = later(step * 100);
        let decision = register_step(Some(&store.run), now, &store.room(), 2, &request);
        let Ok(Decision::Execute(step)) = decision else { panic!() };
        assert!(store.commit(store.revision, step, &request));
        assert!(!store.run.is_stale(now), "a step was taken");
        assert!(store.run.is_stale(now.checked_add(1).unwrap()));
    }
    drive(&mut store, 2, &request).unwrap();
    assert!(!store.run.is_stale(later(u64::MAX / 2)), "it is active");
}

#[test]
fn a_registration_goes_on_where_whoever_drove_it_stopped() {
    let (mut store, keys) = (Store::new(), keys(5));
    let rows = manifest(&keys, 0);
    for _ in 0..2 {
        let request = RegisterRequest::new(TENANT, &rows, operation(1));
        let Ok(Decision::Execute(step)) = decide(&store, 2, &request) else { panic!() };
        assert!(store.commit(store.revision, step, &request));
    }
    let staged = store.run.registration.map(|registration| registration.staged);
    assert_eq!(staged, Some(2));
    let request = RegisterRequest::new(TENANT, &rows, operation(1));
    assert_eq!(drive(&mut store, 2, &request), Ok(3));
    assert_eq!(store.run.status, RunStatus::Active);
}

/// V5.
#[test]
fn a_registration_under_another_id_takes_the_place_of_one_that_was_left() {
    let (mut store, keys) = (Store::new(), keys(5));
    let (left, wanted) = (manifest(&keys, 0), manifest(&keys[..4], 3));
    let first = RegisterRequest::new(TENANT, &left, operation(1));
    for _ in 0..3 {
        let Ok(Decision::Execute(step)) = decide(&store, 2, &first) else { panic!() };
        assert!(store.commit(store.revision, step, &first));
    }
    assert_eq!(store.shards.len(), 4);
    // Other shards under the same id are a mistake.
    let reused = RegisterRequest::new(TENANT, &wanted, operation(1));
    let conflict = decide(&store, 2, &reused);
    assert!(matches!(conflict, Err(RegisterShardsError::OpIdConflict(_))), "{conflict:?}");

    let second = RegisterRequest::new(TENANT, &wanted, operation(2));
    let Ok(Decision::Execute(step)) = decide(&store, 2, &second) else { panic!() };
    assert!(store.commit(store.revision, step, &second));
    let overtaken = RegisterShardsError::Overtaken { by: operation(2) };
    assert_eq!(decide(&store, 2, &first), Err(overtaken.clone()));
    // Whoever asks again has nothing but its id: that is refused, too.
    let again = RegisterRequest::new(TENANT, &left, operation(1));
    assert_eq!(decide(&store, 2, &again), Err(overtaken));
    let reused = RegisterRequest::new(TENANT, &wanted, operation(1));
    let conflict = decide(&store, 2, &reused);
    assert!(matches!(conflict, Err(RegisterShardsError::OpIdConflict(_))), "{conflict:?}");
    // Two steps delete, two stage, one activates.
    assert_eq!(drive(&mut store, 2, &second), Ok(5));
    let status = RunStatus::Active;
    assert_eq!(decide(&store, 2, &first), Err(RegisterShardsError::WrongStatus { status }));
}

/// A decision that was not stored gave nobody a place that could be taken.
#[test]
fn a_registration_whose_begin_was_not_stored_is_not_overtaken() {
    let (mut store, keys) = (Store::new(), keys(5));
    let (left, wanted) = (manifest(&keys, 0), manifest(&keys[..4], 3));
    let slow = RegisterRequest::new(TENANT, &left, operation(1));
    let late = RegisterRequest::new(TENANT, &wanted, operation(2));
    let Ok(Decision::Execute(begin)) = decide(&store, 2, &slow) else { panic!() };
    assert!(store.commit(store.revision, begin, &slow));
    let (revision, begin) = (store.revision, decide(&store, 2, &late));
    let Ok(Decision::Execute(stage)) = decide(&store, 2, &slow) else { panic!() };
    assert!(store.commit(store.revision, stage, &slow));
    let Ok(Decision::Execute(begin @ RegisterStep::Begin(_))) = begin else { panic!() };
    assert!(!store.commit(revision, begin, &late), "the record has changed");
    assert!(drive(&mut store, 2, &late).is_ok());
    assert_eq!(store.run.root_shards.len(), 3);
}

#[test]
fn a_cancelled_registration_is_cleared_away() {
    let (mut store, keys) = (Store::new(), keys(5));
    let rows = manifest(&keys, 0);
    let request = RegisterRequest::new(TENANT, &rows, operation(1));
    for _ in 0..3 {
        let Ok(Decision::Execute(step)) = decide(&store, 2, &request) else { panic!() };
        assert!(store.commit(store.revision, step, &request));
    }
    assert_eq!(discard_staged(&store.run, 9), None, "it has not ended");
    let cancelled = cancel_run(Some(&store.run), at(1_600), TENANT, operation(9));
    let Ok(Decision::Execute(update)) = cancelled else { panic!() };
    store.run.apply(update);
    let status = RunStatus::Cancelled;
    assert_eq!(decide(&store, 2, &request), Err(RegisterShardsError::WrongStatus { status }));
    for expected in [3, 1] {
        let (update, count) = discard_staged(&store.run, 3).unwrap();
        assert_eq!((count, update.event()), (expected, None));
        store.discard(count);
        store.run.apply(update);
        store.check();
    }
    assert_eq!((store.run.registration, discard_staged(&store.run, 3)), (None, None));
    assert_eq!((store.run.status, store.run.completed_at), (status, Some(at(1_600))));
    let again = fail_run(Some(&store.run), at(1_700), TENANT, operation(10));
    assert_eq!(again, Err(RunTransitionError::RunTerminal { status }));
}

/// Two that do not fit together: the second is refused before it stores anything, and the first
/// comes to its end whatever others take meanwhile.
#[test]
fn a_registration_that_has_begun_has_its_room() {
    let (mut store, keys) = (Store::new(), keys(5));
    store.per_tenant = 8;
    let rows = manifest(&keys, 0);
    let request = RegisterRequest::new(TENANT, &rows, operation(1));
    let Ok(Decision::Execute(step)) = decide(&store, 2, &request) else { panic!() };
    assert!(store.commit(store.revision, step, &request));
    assert_eq!((store.shards.len(), store.taken()), (0, 5));
    let rival = Store { per_tenant: 8, others: store.taken(), ..Store::new() };
    let over = |current, additional, max| {
        let scope = ShardLimitScope::Tenant;
        RegisterShardsError::ShardLimitExceeded { current, additional, max, scope }
    };
    assert_eq!(decide(&rival, 2, &request), Err(over(5, 5, 8)));
    store.others = 3;
    while let Ok(Decision::Execute(step)) = decide(&store, 2, &request) {
        assert!(store.commit(store.revision, step, &request));
        assert_eq!(store.taken(), 5);
    }
    assert_eq!(store.run.status, RunStatus::Active);
}

/// What is left of another makes room for as much, and a run that is cancelled gives back the rest.
#[test]
fn whoever_takes_a_place_takes_its_room_over() {
    let (mut store, keys) = (Store::new(), keys(6));
    store.per_tenant = 5;
    let (five, six) = (manifest(&keys[..6], 0), manifest(&keys, 0));
    let first = RegisterRequest::new(TENANT, &five, operation(1));
    for _ in 0..3 {
        let Ok(Decision::Execute(step)) = decide(&store, 2, &first) else { panic!() };
        assert!(store.commit(store.revision, step, &first));
    }
    let more = RegisterRequest::new(TENANT, &six, operation(2));
    let scope = ShardLimitScope::Tenant;
    let over = RegisterShardsError::ShardLimitExceeded { current: 5, additional: 1, max: 5, scope };
    assert_eq!(decide(&store, 2, &more), Err(over));
    // Four are left of the first, and have a place each until they are deleted.
    let one = RegisterRequest::new(TENANT, &five[..1], operation(3));
    for (steps, taken) in [(1, 4), (1, 2), (1, 1)] {
        for _ in 0..steps {
            let Ok(Decision::Execute(step)) = decide(&store, 2, &one) else { panic!() };
            assert!(store.commit(store.revision, step, &one));
        }
        assert_eq!(store.taken(), taken);
    }
    let cancelled = cancel_run(Some(&store.run), at(1_600), TENANT, operation(9));
    let Ok(Decision::Execute(update)) = cancelled else { panic!() };
    store.run.apply(update);
    assert_eq!((store.taken(), store.run.registration), (0, None));
}

/// What a record says comes from outside; a record that contradicts the manifest is not followed.
#[test]
fn a_record_that_no_registration_wrote_is_reported_as_damage() {
    let (mut store, keys) = (Store::new(), keys(5));
    let rows = manifest(&keys, 0);
    let request = RegisterRequest::new(TENANT, &rows, operation(1));
    let Ok(Decision::Execute(step)) = decide(&store, 2, &request) else { panic!() };
    assert!(store.commit(store.revision, step, &request));
    let begun = store.run.registration.unwrap();
    let is_damage = |refused| match refused {
        Err(RegisterShardsError::BackendError(InfraError::Corruption { .. })) => {}
        other => panic!("{other:?}"),
    };
    for count in [4, 6] {
        store.run.registration = Some(Registration { count, ..begun });
        is_damage(decide(&store, 2, &request).map(drop));
    }
    // A backend that stores all shards at once has none staged, by whomever.
    let of_another = Registration { op_id: operation(2), staged: 1, ..begun };
    let left = Registration { leftover: 5, ..begun };
    for registration in [begun, Registration { staged: 5, ..begun }, left, of_another] {
        store.run.registration = Some(registration);
        store.run.assert_invariants();
        let (run, room) = (Some(&store.run), store.room());
        let at_once = register_shards(run, at(1_500), TENANT, &room, &rows, operation(1));
        is_damage(at_once.map(drop));
    }
}

/// One who drives a registration: what it has read, and what it makes of it.
struct Registrar<'r> {
    request: RegisterRequest<'r>,
    read: Option<(u64, RegisterStep)>,
    answer: Option<Result<(), RegisterShardsError>>,
}

proptest! {
    #![proptest_config(cases(256))]

    /// Two who register different shards, each reading and writing whenever, dying and coming back,
    /// and somebody who may cancel: one manifest is registered whole, or none.
    #[test]
    fn of_rivals_one_registers_its_manifest_whole_or_nobody_does(
        turns in proptest::collection::vec((0..2usize, 0..12u8), 1..120),
        sizes in (1u8..6, 1u8..6),
        chunk in 1usize..4,
        cancels_at in proptest::option::weighted(0.3, 0..120usize),
    ) {
        let (keys, mut store) = ([keys(sizes.0), keys(sizes.1)], Store::new());
        let manifests = [manifest(&keys[0], 0), manifest(&keys[1], 3)];
        let request = |by: usize| {
            RegisterRequest::new(TENANT, &manifests[by], operation(by as u64 + 1))
        };
        let new = |by| Registrar { request: request(by), read: None, answer: None };
        let (mut registrars, mut began) = ([new(0), new(1)], [false; 2]);
        for (turn, (by, dies)) in turns.into_iter().enumerate() {
            if cancels_at == Some(turn)
                && let Ok(Decision::Execute(update)) =
                    cancel_run(Some(&store.run), at(1_600), TENANT, operation(9))
            {
                store.run.apply(update);
                store.revision += 1;
            }
            let registrar = &mut registrars[by];
            if dies == 0 {
                *registrar = new(by);
                continue;
            }
            match registrar.read.take() {
                Some((revision, step)) => {
                    let begins = matches!(step, RegisterStep::Begin(_));
                    let is_stored = store.commit(revision, step, &registrar.request);
                    began[by] |= begins && is_stored;
                }
                None if registrar.answer.is_some() => {}
                None => match decide(&store, chunk, &registrar.request) {
                    Ok(Decision::Execute(step)) => registrar.read = Some((store.revision, step)),
                    Ok(Decision::Replay(())) => registrar.answer = Some(Ok(())),
                    Err(error) => registrar.answer = Some(Err(error)),
                },
            }
        }
        // Whoever still lives goes on alone, and the other if that one's place was taken.
        let mut last = drive(&mut store, chunk, &request(0));
        if let Err(RegisterShardsError::Overtaken { by }) = last {
            prop_assert_eq!(by, operation(2));
            last = drive(&mut store, chunk, &request(1));
            prop_assert!(last.is_ok(), "{last:?}");
        }
        store.check();
        match store.run.status {
            RunStatus::Active => {
                let roots = &store.run.root_shards;
                let by = usize::from(roots[0] != manifests[0][0].shard);
                prop_assert!(last.is_ok() || by == 1);
                let ids: Vec<ShardId> = manifests[by].iter().map(|row| row.shard).collect();
                prop_assert_eq!(&store.run.root_shards, &ids);
            }
            // Registered, and cancelled later.
            RunStatus::Cancelled if !store.run.root_shards.is_empty() => {}
            RunStatus::Cancelled => {
                prop_assert!(last.is_err());
                while let Some((update, count)) = discard_staged(&store.run, chunk) {
                    store.discard(count);
                    store.run.apply(update);
                }
                prop_assert!(store.shards.is_empty() && store.run.registration.is_none());
            }
            status => prop_assert!(false, "the run is {status:?}"),
        }
        for (by, registrar) in registrars.iter().enumerate() {
            let id = operation(by as u64 + 1);
            let result = |entry: OpLogEntry<_>| (entry.op_id() == id).then(|| entry.result());
            let logged = store.run.op_log.iter().find_map(result);
            match &registrar.answer {
                Some(Ok(())) => prop_assert_eq!(logged, Some(OpResult::Completed)),
                Some(Err(RegisterShardsError::Overtaken { .. })) => {
                    prop_assert!(began[by], "a registrar that never began was overtaken");
                    prop_assert_eq!(logged, Some(OpResult::Superseded));
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_registration_shows_no_fingerprint() {
    let registration = Registration {
        op_id: operation(1),
        payload_hash: 987_654_321,
        count: 1,
        staged: 0,
        leftover: 0,
        stepped_at: START,
    };
    assert!(!format!("{registration:?}").contains("987654321"));
}
