//! The administrator: begins runs for every tenant, unparks what was parked, ends runs, and looks
//! around.

use std::cell::RefCell;

use gossip_contracts::identity::{
    LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId,
};
use gossip_coordination::{RunConfig, ShardFilter, ShardStatus};

use super::begin::begin;
use super::keys;
use super::op::{Answer, Bytes, Operation, OwnedCursor, OwnedRange, OwnedShardInput, Refusal};
use super::random::Random;
use super::simulated::SimulatedBackend;
use super::swarm::{Ingredient, Swarm};
use super::wire::Wire;
use super::worker::RunName;

pub(super) struct Admin {
    plans: Vec<Plan>,
    swarm: Swarm,
    /// When it acts next.
    pub(super) wakes: u64,
    /// How long it waits once there is calm and nothing to do.
    patience: u64,
}

/// A run as its administrator knows it.
struct Plan {
    tenant: TenantId,
    run: RunId,
    stage: Stage,
}

enum Stage {
    Create,
    /// Created and registered by one call; made again until it is answered.
    Begin {
        config: RunConfig,
        shards: Vec<OwnedShardInput>,
        op_id: OpId,
    },
    Register {
        shards: Vec<OwnedShardInput>,
        op_id: OpId,
    },
    Active,
    /// A request that ends it, or not; sent again until it is answered.
    End(Operation),
    Unpark(Operation),
    Ended,
}

impl Admin {
    pub(super) fn new(swarm: &Swarm) -> Self {
        Self { plans: Vec::new(), swarm: swarm.clone(), wakes: 1_000_000, patience: 1 }
    }

    /// Deletes a run that has ended, now and then.
    fn clear_away<S: SimulatedBackend>(&mut self, wire: &mut Wire<S>, random: &mut Random) {
        if !random.chance(20 * self.swarm.rate(Ingredient::EndRuns)) {
            return;
        }
        let ended = self.plans.iter().filter(|plan| matches!(plan.stage, Stage::Ended));
        let ended: Vec<RunName> = ended.map(|plan| (plan.tenant, plan.run)).collect();
        if !ended.is_empty() {
            let (tenant, run) = *random.pick(&ended);
            wire.delete_run(LogicalTime::from_raw(wire.time), tenant, run);
        }
    }

    /// A run that a worker might find work in; while there are faults, sometimes another.
    pub(super) fn some_run(&self, is_calm: bool, random: &mut Random) -> Option<RunName> {
        if self.plans.is_empty() {
            return None;
        }
        let any = !is_calm && random.chance(30);
        let open = |plan: &&Plan| {
            matches!(plan.stage, Stage::Active | Stage::End(_) | Stage::Unpark(_)) || any
        };
        let count = self.plans.iter().filter(open).count();
        if count == 0 {
            return None;
        }
        let plan = self.plans.iter().filter(open).nth(random.index(count))?;
        Some((plan.tenant, plan.run))
    }

    /// Takes on runs that somebody else has begun.
    fn adopt(&mut self, open: impl Iterator<Item = RunName>) {
        for (tenant, run) in open {
            match self.plans.iter_mut().find(|plan| (plan.tenant, plan.run) == (tenant, run)) {
                Some(plan) if !matches!(plan.stage, Stage::Ended) => {}
                Some(plan) => plan.stage = Stage::Create,
                None => self.plans.push(Plan { tenant, run, stage: Stage::Create }),
            }
        }
    }

    pub(super) fn step<S: SimulatedBackend>(
        &mut self,
        wire: &RefCell<Wire<S>>,
        random: &mut Random,
    ) {
        let mut wire = wire.borrow_mut();
        let wire = &mut *wire;
        if wire.is_calm {
            self.patience = (self.patience * 2).min(self.swarm.lease_duration);
        }
        self.wakes = wire.time + 1 + random.below(self.swarm.think) + self.patience / 2;
        if !wire.is_calm {
            self.begin_runs(wire);
            self.clear_away(wire, random);
        }
        let is_open = |plan: &Plan| !matches!(plan.stage, Stage::Ended);
        if wire.is_calm {
            // Everything that can be done is done at once, also for runs that only now arrived.
            self.adopt(wire.oracles.open_runs());
            for at in 0..self.plans.len() {
                if is_open(&self.plans[at]) {
                    self.attend(at, wire, random);
                }
            }
            return;
        }
        let count = self.plans.iter().filter(|plan| is_open(plan)).count();
        if count == 0 {
            return;
        }
        let nth = random.index(count);
        let at = (0..self.plans.len()).filter(|&at| is_open(&self.plans[at])).nth(nth);
        self.attend(at.expect("that many are open"), wire, random);
    }

    fn begin_runs<S: SimulatedBackend>(&mut self, wire: &mut Wire<S>) {
        for &tenant in &wire.tenants().to_vec() {
            let mine = || self.plans.iter().filter(|plan| plan.tenant == tenant);
            let open = mine().filter(|plan| !matches!(plan.stage, Stage::Ended)).count();
            if open < self.swarm.runs {
                let run = RunId::from_raw(mine().count() as u64 + 1);
                self.plans.push(Plan { tenant, run, stage: Stage::Create });
            }
        }
    }

    /// One request about a run, or a few.
    fn attend<S: SimulatedBackend>(&mut self, at: usize, wire: &mut Wire<S>, random: &mut Random) {
        let now = LogicalTime::from_raw(wire.time);
        let swarm = &self.swarm;
        let plan = &mut self.plans[at];
        let (tenant, run) = (plan.tenant, plan.run);
        let before = std::mem::discriminant(&plan.stage);
        plan.stage = match std::mem::replace(&mut plan.stage, Stage::Active) {
            Stage::Create if random.chance(300) => Stage::Begin {
                config: swarm.draw_config(random),
                shards: draw_manifest(swarm, random),
                op_id: wire.next_op(tenant),
            },
            Stage::Begin { config, shards, op_id } => {
                match begin(wire, now, (tenant, run), config, &shards, op_id) {
                    Answer::Refused(Refusal::Backend { .. }) => {
                        Stage::Begin { config, shards, op_id }
                    }
                    Answer::Refused(Refusal::InvalidConfig(_)) => Stage::Create,
                    // Somebody else has created it.
                    Answer::Refused(Refusal::ConfigMismatch { .. }) => {
                        Stage::Register { shards, op_id }
                    }
                    Answer::Refused(refusal) => end_of(refusal).unwrap_or_else(|| {
                        let op_id = wire.next_op(tenant);
                        Stage::End(Operation::CancelRun { tenant, run, op_id })
                    }),
                    _ => Stage::Active,
                }
            }
            Stage::Create => {
                let config = swarm.draw_config(random);
                match wire.request(now, Operation::CreateRun { tenant, run, config }) {
                    Some(Answer::Accepted | Answer::Refused(Refusal::RunAlreadyExists { .. })) => {
                        let op_id = wire.next_op(tenant);
                        Stage::Register { shards: draw_manifest(swarm, random), op_id }
                    }
                    _ => Stage::Create,
                }
            }
            Stage::Register { shards, op_id } => {
                // A run that has not begun cannot end well, nor badly.
                if !wire.is_calm && random.chance(20 * swarm.rate(Ingredient::Misuse)) {
                    let op_id = wire.next_op(tenant);
                    let ends = [
                        Operation::CompleteRun { tenant, run, result: None, op_id },
                        Operation::FailRun { tenant, run, op_id },
                    ];
                    wire.request(now, random.pick(&ends).clone());
                }
                let request =
                    Operation::RegisterShards { tenant, run, shards: shards.clone(), op_id };
                match wire.request(now, request) {
                    None => Stage::Register { shards, op_id },
                    Some(Answer::Refused(refusal)) => end_of(refusal).unwrap_or_else(|| {
                        let op_id = wire.next_op(tenant);
                        Stage::End(Operation::CancelRun { tenant, run, op_id })
                    }),
                    Some(_) => Stage::Active,
                }
            }
            Stage::End(request) => match wire.request(now, request.clone()) {
                None => Stage::End(request),
                Some(Answer::Refused(refusal)) => end_of(refusal).unwrap_or(Stage::Active),
                Some(_) => Stage::Ended,
            },
            Stage::Unpark(request) => match wire.request(now, request.clone()) {
                None => Stage::Unpark(request),
                Some(Answer::Refused(refusal)) => end_of(refusal).unwrap_or(Stage::Active),
                Some(_) => Stage::Active,
            },
            Stage::Active => look_after(tenant, run, swarm, now, wire, random),
            Stage::Ended => Stage::Ended,
        };
        if std::mem::discriminant(&plan.stage) != before {
            self.patience = 1;
        }
    }
}

/// A refusal that says that the run has ended.
fn end_of(refusal: Refusal) -> Option<Stage> {
    match refusal {
        Refusal::RunTerminal { .. } => Some(Stage::Ended),
        Refusal::WrongStatus { status, .. } if status.is_terminal() => Some(Stage::Ended),
        _ => None,
    }
}

/// What an administrator does about a run that is under way.
fn look_after<S: SimulatedBackend>(
    tenant: TenantId,
    run: RunId,
    swarm: &Swarm,
    now: LogicalTime,
    wire: &mut Wire<S>,
    random: &mut Random,
) -> Stage {
    let rate = |ingredient, wire: &Wire<S>| if wire.is_calm { 0 } else { swarm.rate(ingredient) };
    let weights = [
        40,
        rate(Ingredient::EndRuns, wire),
        10 * rate(Ingredient::Reads, wire),
        5 * rate(Ingredient::Repeat, wire),
        5 * rate(Ingredient::Misuse, wire),
    ];
    let op_id = wire.next_op(tenant);
    match random.weighted(&weights) {
        Some(1) if random.chance(500) => Stage::End(Operation::CancelRun { tenant, run, op_id }),
        Some(1) => Stage::End(Operation::FailRun { tenant, run, op_id }),
        Some(2) => {
            let request = match random.below(3) {
                0 => Operation::GetRun { tenant, run },
                1 => Operation::GetRunProgress { tenant, run },
                _ => Operation::ListShards { tenant, run, filter: draw_filter(random) },
            };
            wire.request(now, request);
            Stage::Active
        }
        Some(choice @ (3 | 4)) => {
            if let Some(known) = wire.recall(random) {
                let request =
                    if choice == 3 { known } else { super::misuse::twist(known, wire, random) };
                wire.request(now, request);
            }
            Stage::Active
        }
        _ => {
            let hasty = !wire.is_calm && random.chance(100);
            if hasty {
                return Stage::End(Operation::CompleteRun { tenant, run, result: None, op_id });
            }
            if !wire.is_calm && random.chance(60) {
                revoke(tenant, run, now, wire, random);
            }
            match wire.request(now, Operation::GetRunProgress { tenant, run }) {
                Some(Answer::Progress(progress)) if progress.active + progress.parked == 0 => {
                    let result = random.chance(500).then(|| draw_result(random));
                    Stage::End(Operation::CompleteRun { tenant, run, result, op_id })
                }
                Some(Answer::Progress(progress)) if progress.parked > 0 => {
                    unpark(tenant, run, op_id, now, wire, random)
                }
                _ => Stage::Active,
            }
        }
    }
}

/// Takes a lease from whoever holds it.
fn revoke<S: SimulatedBackend>(
    tenant: TenantId,
    run: RunId,
    now: LogicalTime,
    wire: &mut Wire<S>,
    random: &mut Random,
) {
    let filter = ShardFilter::active();
    let listed = wire.request(now, Operation::ListShards { tenant, run, filter });
    let Some(Answer::Shards(shards)) = listed else { return };
    if shards.is_empty() {
        return;
    }
    let shard = random.pick(&shards);
    let (key, mut fence) = (ShardKey::new(run, shard.shard), shard.fence);
    if random.chance(100) {
        fence = fence.next();
    }
    wire.request(now, Operation::RevokeLease { tenant, key, fence });
}

fn unpark<S: SimulatedBackend>(
    tenant: TenantId,
    run: RunId,
    op_id: OpId,
    now: LogicalTime,
    wire: &mut Wire<S>,
    random: &mut Random,
) -> Stage {
    let filter = ShardFilter::parked();
    let listed = wire.request(now, Operation::ListShards { tenant, run, filter });
    let Some(Answer::Shards(parked)) = listed else { return Stage::Active };
    if parked.is_empty() {
        return Stage::Active;
    }
    let key = ShardKey::new(run, random.pick(&parked).shard);
    Stage::Unpark(Operation::Unpark { tenant, key, op_id })
}

/// What a run came to, as its administrator has it.
fn draw_result(random: &mut Random) -> RunResult {
    RunResult::from_bytes([random.below(256) as u8; 32])
}

fn draw_filter(random: &mut Random) -> ShardFilter {
    let filter = *random.pick(&[
        ShardFilter::all(),
        ShardFilter::active(),
        ShardFilter::available(),
        ShardFilter::parked(),
        ShardFilter { status: Some(ShardStatus::Done), ..ShardFilter::all() },
    ]);
    if random.chance(200) { filter.roots() } else { filter }
}

/// Roots that share the items, now and then with some left out between them, and now and then with
/// progress brought along.
fn draw_manifest(swarm: &Swarm, random: &mut Random) -> Vec<OwnedShardInput> {
    let each = (swarm.items / swarm.roots).max(2);
    (0..swarm.roots)
        .map(|root| {
            let start = root * each;
            let end = start + each - u32::from(random.chance(200));
            let metadata: Bytes =
                std::iter::repeat_n(b'm', random.index(swarm.padding + 1)).collect();
            let range = OwnedRange {
                start: keys::key(start)[..].into(),
                end: keys::key(end)[..].into(),
                metadata,
            };
            let brought = random.chance(100).then(|| keys::key(start)[..].into());
            OwnedShardInput {
                shard: ShardId::from_raw(u64::from(root)),
                range,
                cursor: OwnedCursor { last_key: brought, token: None },
            }
        })
        .collect()
}
