//! One seed, from its first draw to its verdict.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gossip_contracts::identity::TenantId;
use gossip_coordination::{ShardLimits, SplitCaps};

use super::admin::Admin;
use super::answer_kinds::AnswerKinds;
use super::oracles::{Oracles, PANIC, Violation};
use super::port::Port;
use super::random::Random;
use super::reference::Bounds;
use super::simulated::{BackendLimits, SimulatedBackend};
use super::swarm::{Ingredient, Swarm};
use super::trace::Trace;
use super::wire::{Failures, Wire};
use super::worker::Worker;

/// Operations of a seed before faults stop.
pub const OPERATIONS: u64 = 2_000;

/// How a seed is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What to leave out of what the seed draws.
    pub without: Vec<Ingredient>,
    /// Stop after so many operations.
    pub operations_max: Option<u64>,
    /// Look at all records after every operation, not only now and then.
    pub inspect_always: bool,
    /// Write down what happens.
    pub with_text: bool,
}

/// What came of a seed.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed that plays the same world again.
    pub seed: u64,
    /// What it was made of.
    pub swarm: Swarm,
    /// Requests that reached the backend.
    pub operations: u64,
    /// Simulated milliseconds.
    pub simulated: u64,
    /// A fingerprint of all that happened.
    pub hash: u64,
    /// Which answers it has seen to which operations.
    pub seen: AnswerKinds,
    /// How often the backend failed in the middle of something.
    pub failures: Failures,
    /// What must not have been, if anything.
    pub violation: Option<Violation>,
    /// What happened, line by line, if that was wanted.
    pub lines: Vec<String>,
}

/// Runs one seed. A panic of the backend is a violation, too.
#[must_use]
pub fn run_seed<S: SimulatedBackend>(seed: u64, options: &Options) -> Report {
    let mut random = Random::new(seed);
    let mut swarm = Swarm::draw(&mut random);
    if S::HAS_OWNERS {
        swarm.draw_silence(&mut Random::new(!seed));
    }
    options.without.iter().for_each(|&it| swarm.remove(it));
    let mut limits = limits(&swarm, &mut random);
    limits.split = SplitCaps {
        max_children: limits.split.max_children.min(S::SPLIT_MAX.max_children),
        max_bytes: limits.split.max_bytes.min(S::SPLIT_MAX.max_bytes),
    };
    let subject = match catch_unwind(|| S::open(&limits)) {
        Ok(subject) => subject,
        Err(panic) => {
            let violation = Some(Violation { oracle: PANIC, what: message_of(&*panic) });
            let (operations, simulated, hash, lines) = (0, 0, 0, Vec::new());
            let (seen, failures) = (AnswerKinds::default(), Failures::default());
            return Report {
                seed,
                swarm,
                operations,
                simulated,
                hash,
                seen,
                failures,
                violation,
                lines,
            };
        }
    };
    let tenants: Vec<TenantId> =
        (1..=swarm.tenants).map(|number| TenantId::from_bytes([number as u8; 32])).collect();
    let trace = Trace::new(options.with_text);
    let oracles = Oracles::new(Bounds {
        shards: limits.shards,
        claim_cooldown: if S::HAS_COOLDOWN { limits.claim_cooldown } else { 0 },
        byte_capacity: S::BOUNDS_BYTES.then_some(limits.byte_capacity),
        skew_allowance: if S::HAS_CAPS { limits.skew_allowance } else { 0 },
        split: if S::HAS_CAPS { limits.split } else { SplitCaps::PROTOCOL },
        claims_in_turn: S::CLAIMS_IN_TURN,
        hints_of_all_max: S::HINTS_OF_ALL_MAX,
    });
    let faults = Random::new(random.next());
    let mut wire = Wire::new(subject, swarm.clone(), faults, trace, tenants, oracles);
    wire.operations_max = options.operations_max.unwrap_or(u64::MAX);
    wire.inspect_always = options.inspect_always;
    let started = wire.time;
    let wire = RefCell::new(wire);
    let finished = catch_unwind(AssertUnwindSafe(|| live(&wire, &swarm, random)));
    let mut wire = wire.into_inner();
    if let Err(panic) = finished {
        let what = message_of(&*panic);
        wire.violation = Some(Violation { oracle: PANIC, what });
    }
    Report {
        seed,
        swarm,
        operations: wire.operations,
        simulated: wire.time - started,
        hash: wire.trace.hash(),
        seen: wire.trace.seen(),
        failures: wire.failures,
        violation: wire.violation,
        lines: wire.trace.into_lines(),
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

fn limits(swarm: &Swarm, random: &mut Random) -> BackendLimits {
    let (low, high) = (random.between(20, 60) as usize, random.between(40, 90) as usize);
    let shards = if swarm.has(Ingredient::Ceilings) {
        ShardLimits { per_tenant: low, global: high }
    } else {
        ShardLimits { per_tenant: 3_000, global: 4_000 }
    };
    let scarce = random.between(600, 6_000) as usize;
    let (max_children, max_bytes) =
        (random.between(2, 4) as usize, random.between(20, 120) as usize);
    let split = if swarm.has(Ingredient::Ceilings) {
        SplitCaps { max_children, max_bytes }
    } else {
        SplitCaps::PROTOCOL
    };
    BackendLimits {
        shards,
        claim_cooldown: if swarm.has(Ingredient::Cooldown) { swarm.think } else { 0 },
        byte_capacity: if swarm.has(Ingredient::Slab) { scarce } else { 1 << 20 },
        skew_allowance: swarm.skew_allowance,
        split,
    }
}

/// All actors until the seed is over.
fn live<S: SimulatedBackend>(wire: &RefCell<Wire<S>>, swarm: &Swarm, mut random: Random) {
    // A session borrows its port for as long as it lives, so each needs one of its own.
    let mut ports: Vec<Port<'_, S>> = (0..SESSIONS).map(|_| Port(wire)).collect();
    let mut ports = ports.iter_mut();
    let mut admin = Admin::new(swarm);
    let mut workers: Vec<Worker<'_, '_, S>> =
        (0..swarm.workers).map(|number| Worker::new(number, swarm, &mut random)).collect();
    let mut calm_until = None;
    let mut calm_turns = 0;
    loop {
        if wire.borrow().is_over() {
            return;
        }
        let (operations, is_calm) = (wire.borrow().operations, wire.borrow().is_calm);
        if !is_calm && operations >= OPERATIONS {
            calm(wire, &mut admin, &mut workers);
        }
        if is_calm {
            let left = wire.borrow().oracles.work_left() as u64;
            let until = *calm_until
                .get_or_insert_with(|| operations + 500 + left * (60 + 4 * u64::from(swarm.items)));
            calm_turns += 1;
            if left == 0 || operations >= until || calm_turns >= CALM_TURNS_MAX {
                let mut wire = wire.borrow_mut();
                wire.inspect();
                if let Err(violation) = wire.oracles.check_liveness() {
                    wire.violation.get_or_insert(violation);
                }
                return;
            }
        }
        let worker = (0..workers.len()).min_by_key(|&at| workers[at].wakes);
        let next_worker = worker.map_or(u64::MAX, |at| workers[at].wakes);
        let arrival = wire.borrow().next_arrival().unwrap_or(u64::MAX);
        let next = next_worker.min(admin.wakes).min(arrival);
        wire.borrow_mut().time = next;
        if next == arrival {
            wire.borrow_mut().deliver_late();
        } else if next == admin.wakes {
            admin.step(wire, &mut random);
        } else if let Some(at) = worker {
            workers[at].step(wire, &admin, &mut ports, &mut random);
        }
        let reopens = !is_calm && random.chance(swarm.rate(Ingredient::Reopen));
        if reopens {
            wire.borrow_mut().reopen();
        }
        // Nothing is drawn where it is off.
        let silence = swarm.rate(Ingredient::Silence);
        if silence > 0 && !is_calm && random.chance(silence) {
            wire.borrow_mut().fall_silent();
        }
    }
}

/// Turns of actors after which a calm in which nothing is asked is over, too.
const CALM_TURNS_MAX: u64 = 100_000;

/// Ports for sessions: more than a seed can begin.
const SESSIONS: usize = 16_384;

/// Faults stop, and everybody does what remains.
fn calm<S: SimulatedBackend>(
    wire: &RefCell<Wire<S>>,
    admin: &mut Admin,
    workers: &mut [Worker<'_, '_, S>],
) {
    let mut wire = wire.borrow_mut();
    wire.is_calm = true;
    wire.trace.note(|| "calm".to_owned());
    let time = wire.time;
    admin.wakes = time + 1;
    workers.iter_mut().for_each(|worker| worker.calm_down(time));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Memory;
    use crate::testing::{Faulty, Forgetful, Panicking};

    #[test]
    fn a_seed_run_twice_tells_the_same_story() {
        let options = Options { with_text: true, ..Options::default() };
        for seed in 1..=12 {
            let (once, again) =
                (run_seed::<Memory>(seed, &options), run_seed::<Memory>(seed, &options));
            assert_eq!(once.violation, None, "seed {seed}");
            assert!(once.operations >= OPERATIONS, "seed {seed}: {} operations", once.operations);
            assert_eq!(once.lines, again.lines, "seed {seed}");
            assert_eq!((once.hash, once.operations), (again.hash, again.operations));
            assert_ne!(once.hash, run_seed::<Memory>(seed + 100, &options).hash);
        }
    }

    #[test]
    fn looking_more_often_and_writing_it_down_changes_nothing() {
        let plain = run_seed::<Memory>(5, &Options::default());
        let options = Options { with_text: true, inspect_always: true, ..Options::default() };
        let watched = run_seed::<Memory>(5, &options);
        assert_eq!((plain.hash, plain.operations), (watched.hash, watched.operations));
        assert!(plain.lines.is_empty() && watched.lines.len() as u64 >= watched.operations);
    }

    #[test]
    fn requests_and_answers_of_every_kind_are_lost_late_and_out_of_order() {
        let mut missing = vec![
            "lost: Operation",
            "lost: Claim",
            "late:",
            "the answer is late",
            "the answer to an earlier attempt: Operation(Checkpoint",
            "the answer to an earlier attempt: Operation(SplitResidual",
            "the answer to an earlier attempt: Claim",
        ];
        let options = Options { with_text: true, ..Options::default() };
        for seed in 1..=60 {
            let lines = run_seed::<Memory>(seed, &options).lines;
            missing.retain(|note| !lines.iter().any(|line| line.trim_start().starts_with(note)));
            if missing.is_empty() {
                return;
            }
        }
        panic!("no seed had {missing:?}");
    }

    #[test]
    fn a_fault_ends_its_seed_and_is_reported() {
        let report = run_seed::<Faulty>(3, &Options::default());
        assert_eq!(report.violation.map(|found| found.oracle), Some("S9 index"));
        assert!(report.operations < OPERATIONS, "{}", report.operations);
    }

    #[test]
    fn all_records_are_looked_at_right_after_a_crash() {
        let found = (1..=20).filter_map(|seed| {
            run_seed::<Forgetful>(seed, &Options::default()).violation.map(|found| found.what)
        });
        let found: Vec<String> = found.collect();
        assert!(found.len() >= 5, "{} of these seeds have crashes", found.len());
        let at_once = "records are gone, 0 requests after the crash";
        assert!(found.iter().all(|what| what == at_once), "{found:?}");
    }

    #[test]
    fn a_panic_of_the_backend_is_a_violation() {
        let report = run_seed::<Panicking>(3, &Options::default());
        let violation = report.violation.expect("it panics");
        assert_eq!((violation.oracle, violation.what.as_str()), ("panic", "the records are gone"));
    }
}
