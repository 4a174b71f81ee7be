//! Subjects with a fault, for the tests of the simulator itself.

use gossip_coordination::{
    EventCollector, InMemoryCoordinator, RunRecord, RunStatus, ShardRecordView,
};

use super::simulated::{BackendLimits, Memory, SimulatedBackend};

/// Its index is wrong as soon as some run is active.
pub(super) struct Faulty(Memory);

/// It panics when it is looked at.
pub(super) struct Panicking(Memory);

macro_rules! subject_like_memory {
    ($name:ident { $($own:item)* }) => {
        impl SimulatedBackend for $name {
            type Backend = InMemoryCoordinator;
            const HAS_COOLDOWN: bool = true;
            const IS_DURABLE: bool = false;
            const BOUNDS_BYTES: bool = true;
            const HAS_CAPS: bool = true;

            fn open(limits: &BackendLimits) -> Self {
                Self(Memory::open(limits))
            }

            fn with_events<R>(
                &mut self,
                collector: &mut EventCollector,
                f: impl FnOnce(&mut InMemoryCoordinator) -> R,
            ) -> R {
                self.0.with_events(collector, f)
            }

            fn for_each_shard(&mut self, f: &mut dyn FnMut(&ShardRecordView<'_>)) {
                self.0.for_each_shard(f);
            }

            $($own)*
        }
    };
}

subject_like_memory! {
    Faulty {
        fn for_each_run(&mut self, f: &mut dyn FnMut(&RunRecord)) {
            self.0.for_each_run(f);
        }

        fn check_consistent(&mut self) -> Result<(), String> {
            let mut active = false;
            self.0.for_each_run(&mut |run| active |= run.status == RunStatus::Active);
            if active { Err("a run is active".to_owned()) } else { Ok(()) }
        }
    }
}

subject_like_memory! {
    Panicking {
        fn for_each_run(&mut self, _: &mut dyn FnMut(&RunRecord)) {
            panic!("the records are gone");
        }

        fn check_consistent(&mut self) -> Result<(), String> {
            Ok(())
        }
    }
}

/// It loses its records when it crashes, and counts what it is asked afterwards.
pub(super) struct Forgetful {
    memory: Memory,
    asked_since_crash: Option<u32>,
}

impl SimulatedBackend for Forgetful {
    type Backend = InMemoryCoordinator;
    const HAS_COOLDOWN: bool = true;
    const IS_DURABLE: bool = true;
    const BOUNDS_BYTES: bool = true;
    const HAS_CAPS: bool = true;

    fn open(limits: &BackendLimits) -> Self {
        Self { memory: Memory::open(limits), asked_since_crash: None }
    }

    fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut InMemoryCoordinator) -> R,
    ) -> R {
        self.asked_since_crash.iter_mut().for_each(|asked| *asked += 1);
        self.memory.with_events(collector, f)
    }

    fn reopen(&mut self) {
        self.asked_since_crash.get_or_insert(0);
    }

    fn for_each_run(&mut self, f: &mut dyn FnMut(&RunRecord)) {
        self.memory.for_each_run(f);
    }

    fn for_each_shard(&mut self, f: &mut dyn FnMut(&ShardRecordView<'_>)) {
        self.memory.for_each_shard(f);
    }

    fn check_consistent(&mut self) -> Result<(), String> {
        match self.asked_since_crash {
            Some(asked) => Err(format!("records are gone, {asked} requests after the crash")),
            None => Ok(()),
        }
    }
}
