//! What a seed is made of. Each seed draws which operations and faults are on, and how large the
//! world is: a fault that never happens lets others happen often.

use core::fmt;

use gossip_contracts::coordination::CursorSemantics;
use gossip_coordination::RunConfig;

use super::random::Random;

/// Something that a seed has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Ingredient {
    /// Workers renew.
    Renew,
    /// Workers give away the rest of a shard.
    Residual,
    /// Workers replace a shard by children.
    Replace,
    /// Workers halt shards.
    Park,
    /// Workers release shards.
    Release,
    /// The administrator cancels and fails runs.
    EndRuns,
    /// Workers acquire a shard by name.
    Directed,
    /// Requests that were answered are sent again.
    Repeat,
    /// Requests that no honest caller makes.
    Misuse,
    /// Records, counts and listings are read.
    Reads,
    /// Requests are lost.
    LoseRequest,
    /// Requests are carried out and their answers lost.
    LoseReply,
    /// Requests arrive late, behind others, while their sender has given up on them.
    Delay,
    /// Requests arrive twice.
    Duplicate,
    /// Answers come when their sender has given up on them, and are taken for those of later
    /// attempts.
    LateReply,
    /// The store is busy.
    StoreError,
    /// The store gives up in the middle of an operation.
    Interrupt,
    /// The store has no room.
    Full,
    /// A commit fails, or seems to.
    CommitError,
    /// Somebody else wants to write in the middle of an operation.
    Rival,
    /// Some items are so large that their worker says several times how far into them it has come.
    LargeItems,
    /// Runs differ in how they are worked on.
    MixedRuns,
    /// Workers pause, often past the end of their lease, and go on as if nothing had happened.
    Pause,
    /// Workers crash and forget everything.
    Crash,
    /// Clocks differ.
    Skew,
    /// Clocks jump.
    Jump,
    /// Bytes for keys and cursors are scarce.
    Slab,
    /// Ceilings on the number of shards are low.
    Ceilings,
    /// Workers that found nothing must wait.
    Cooldown,
    /// The backend's process crashes and starts again.
    Reopen,
    /// The backend's processes are silent for so long that the store takes them for dead.
    Silence,
}

impl Ingredient {
    /// Every ingredient.
    pub const ALL: [Self; 31] = [
        Self::Renew,
        Self::Residual,
        Self::Replace,
        Self::Park,
        Self::Release,
        Self::EndRuns,
        Self::Directed,
        Self::Repeat,
        Self::Misuse,
        Self::Reads,
        Self::LoseRequest,
        Self::LoseReply,
        Self::Delay,
        Self::Duplicate,
        Self::LateReply,
        Self::StoreError,
        Self::Interrupt,
        Self::Full,
        Self::CommitError,
        Self::Rival,
        Self::LargeItems,
        Self::MixedRuns,
        Self::Pause,
        Self::Crash,
        Self::Skew,
        Self::Jump,
        Self::Slab,
        Self::Ceilings,
        Self::Cooldown,
        Self::Reopen,
        Self::Silence,
    ];

    /// The ingredient with this name, whatever its case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| format!("{it:?}").eq_ignore_ascii_case(name))
    }
}

/// How long leases may last, in milliseconds, shortest first.
const LEASES: [u64; 4] = [60, 200, 1_000, 5_000];

/// How often a shard may be acquired without its cursor moving.
const TRIES: [u32; 5] = [1, 2, 3, 5, 20];

/// A seed's draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swarm {
    /// How often, per thousand for faults and as a weight for operations; zero is off.
    rates: [u32; Ingredient::ALL.len()],
    pub(super) workers: u64,
    pub(super) tenants: usize,
    /// Runs that a tenant has under way.
    pub(super) runs: usize,
    /// Items of a run.
    pub(super) items: u32,
    /// Shards with which a run begins.
    pub(super) roots: u32,
    pub(super) lease_duration: u64,
    /// For how long after its deadline a lease keeps other workers out, where a backend does that.
    pub(super) skew_allowance: u64,
    pub(super) max_shard_retries: u32,
    /// Items between checkpoints, at most.
    pub(super) stride: u32,
    /// Milliseconds between a worker's steps, at most.
    pub(super) think: u64,
    /// Bytes of metadata and tokens, at most.
    pub(super) padding: usize,
}

impl Swarm {
    pub(super) fn draw(random: &mut Random) -> Self {
        let mut rates = [0; Ingredient::ALL.len()];
        for ingredient in Ingredient::ALL {
            let (on, rate) = match ingredient {
                // Weights beside the work itself, which has 10.
                Ingredient::Renew => (700, *random.pick(&[1, 2, 6])),
                Ingredient::Residual | Ingredient::Replace => (600, *random.pick(&[1, 2, 4])),
                Ingredient::Park | Ingredient::Release => (500, *random.pick(&[1, 2, 4])),
                Ingredient::EndRuns => (400, *random.pick(&[1, 3])),
                Ingredient::Directed => (500, *random.pick(&[1, 3])),
                Ingredient::Repeat | Ingredient::Misuse => (500, *random.pick(&[1, 2, 4])),
                Ingredient::Reads => (700, *random.pick(&[1, 2])),
                Ingredient::Slab | Ingredient::Ceilings => (150, 1),
                Ingredient::Cooldown => (250, 1),
                Ingredient::Reopen => (500, *random.pick(&[1, 4])),
                // Drawn apart, where a backend has it: seeds of the others stay as they are.
                Ingredient::Silence => continue,
                Ingredient::Interrupt
                | Ingredient::Full
                | Ingredient::CommitError
                | Ingredient::Rival => (350, *random.pick(&[2, 6, 20])),
                // Checkpoints that such an item takes.
                Ingredient::LargeItems => (300, *random.pick(&[2, 5, 12])),
                Ingredient::MixedRuns => (500, 1),
                Ingredient::Skew => (500, *random.pick(&[50, 500])),
                Ingredient::Jump => (300, *random.pick(&[5, 20])),
                Ingredient::Pause | Ingredient::Crash => (500, *random.pick(&[5, 20, 60])),
                _ => (450, *random.pick(&[10, 40, 150])),
            };
            rates[ingredient as usize] = if random.chance(on) { rate } else { 0 };
        }
        Self {
            rates,
            workers: random.between(1, 8),
            tenants: 2,
            runs: random.between(1, 2) as usize,
            items: *random.pick(&[12, 40, 40, 120, 300]),
            roots: random.between(1, 6) as u32,
            lease_duration: *random.pick(&LEASES),
            skew_allowance: *random.pick(&[0, 0, 20, 300]),
            max_shard_retries: *random.pick(&TRIES),
            stride: *random.pick(&[1, 2, 4, 10]),
            think: *random.pick(&[4, 20, 20, 80]),
            padding: *random.pick(&[0, 8, 30]),
        }
    }

    /// Draws how often the backend's processes are silent for too long.
    pub(super) fn draw_silence(&mut self, random: &mut Random) {
        let rate = *random.pick(&[2, 8]);
        self.rates[Ingredient::Silence as usize] = if random.chance(400) { rate } else { 0 };
    }

    /// The shortest lease that a run may have.
    pub(super) fn lease_min(&self) -> u64 {
        if self.has(Ingredient::MixedRuns) { LEASES[0] } else { self.lease_duration }
    }

    /// How a run is worked on.
    pub(super) fn draw_config(&self, random: &mut Random) -> RunConfig {
        let usual = RunConfig {
            cursor_semantics: CursorSemantics::Completed,
            lease_duration: self.lease_duration,
            max_shard_retries: self.max_shard_retries,
        };
        if !self.has(Ingredient::MixedRuns) {
            return usual;
        }
        let semantics = [CursorSemantics::Completed, CursorSemantics::Dispatched];
        RunConfig {
            cursor_semantics: *random.pick(&semantics),
            lease_duration: *random.pick(&LEASES),
            max_shard_retries: *random.pick(&TRIES),
        }
    }

    /// How often; zero is off.
    pub(super) fn rate(&self, ingredient: Ingredient) -> u32 {
        self.rates[ingredient as usize]
    }

    pub(super) fn has(&self, ingredient: Ingredient) -> bool {
        self.rate(ingredient) > 0
    }

    /// Turns an ingredient off.
    pub fn remove(&mut self, ingredient: Ingredient) {
        self.rates[ingredient as usize] = 0;
    }

    /// What is on.
    pub fn ingredients(&self) -> impl Iterator<Item = Ingredient> + '_ {
        Ingredient::ALL.into_iter().filter(|&ingredient| self.has(ingredient))
    }
}

impl fmt::Display for Swarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} workers, {} tenants with {} runs of {} items in {} shards, leases of {} ms, {} tries;",
            self.workers,
            self.tenants,
            self.runs,
            self.items,
            self.roots,
            self.lease_duration,
            self.max_shard_retries
        )?;
        self.ingredients().try_for_each(|it| write!(f, " {it:?}:{}", self.rate(it)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ingredient_is_in_some_seeds_and_not_in_others() {
        let mut counts = [0; Ingredient::ALL.len()];
        for seed in 0..400 {
            let mut random = Random::new(seed);
            let mut swarm = Swarm::draw(&mut random);
            swarm.draw_silence(&mut random);
            swarm.ingredients().for_each(|it| counts[it as usize] += 1);
        }
        assert!(counts.iter().all(|count| (20..380).contains(count)), "{counts:?}");
    }

    #[test]
    fn an_ingredient_is_found_by_its_name_and_can_be_removed() {
        assert_eq!(Ingredient::named("losereply"), Some(Ingredient::LoseReply));
        assert_eq!(Ingredient::named("salt"), None);
        let mut swarm = Swarm::draw(&mut Random::new(1));
        Ingredient::ALL.into_iter().for_each(|it| swarm.remove(it));
        assert_eq!(swarm.ingredients().count(), 0);
    }
}
