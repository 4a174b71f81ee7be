//! Bugs planted on purpose, to measure whether the simulator finds them.
//!
//! There are none in a build without `--cfg planted`: there, `planted!` is what the product does,
//! and this module is empty.

/// `planted!(right, Bug => wrong, …)` is `right`, unless the build has planted bugs and `Bug` is
/// selected. `planted!(Bug => { wrong })` does nothing but for that, and `planted!(Bug)` says
/// whether it is.
#[cfg(not(planted))]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
    ($bug:ident => $wrong:block) => {};
    ($right:expr, $($bug:ident => $wrong:expr),+ $(,)?) => {
        $right
    };
}

#[cfg(planted)]
macro_rules! planted {
    ($bug:ident) => {
        $crate::planted::is_selected($crate::planted::Bug::$bug)
    };
    ($bug:ident => $wrong:block) => {
        if planted!($bug) $wrong
    };
    ($right:expr, $($bug:ident => $wrong:expr),+ $(,)?) => {
        $(if planted!($bug) { $wrong } else)+ { $right }
    };
}

#[cfg(planted)]
pub use bugs::{Backend, Bug, NOWHERE, current, is_selected, leak, select};

#[cfg(planted)]
mod bugs {
    use std::sync::atomic::{AtomicU8, Ordering};

    use gossip_contracts::coordination::CursorUpdate;

    use crate::lease::Lease;
    use crate::record::FoundShard;

    /// The backend in which a bug can be found.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Backend {
        /// The coordinator in memory.
        Memory,
        /// The embedded coordinator.
        Sqlite,
    }

    macro_rules! bugs {
        ($($backend:ident { $($bug:ident: $harm:literal,)* })*) => {
            /// A planted bug.
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            #[allow(missing_docs, reason = "Bug::harm has a line on each")]
            #[repr(u8)]
            pub enum Bug {
                $($($bug,)*)*
            }

            impl Bug {
                /// Every bug.
                pub const ALL: &[Self] = &[$($(Self::$bug,)*)*];

                /// Where it can be found.
                #[must_use]
                pub const fn backend(self) -> Backend {
                    match self {
                        $($(Self::$bug => Backend::$backend,)*)*
                    }
                }

                /// What a user would suffer.
                #[must_use]
                pub const fn harm(self) -> &'static str {
                    match self {
                        $($(Self::$bug => $harm,)*)*
                    }
                }
            }
        };
    }

    bugs! {
        Memory {
            // Leases.
            ExpiryAtDeadlineStillHeld: "at its deadline a lease counts as live and over at once",
            ExpiredLeaseMayWork: "a worker presumed dead goes on writing",
            AcquireKeepsFence: "the worker before writes into the shard of the next",
            ReacquireKeepsFence: "a lost worker's ghost shares its shard",
            AcquireIgnoresHolder: "two workers scan the same shard at the same time",
            ReleasedLeaseMayWork: "a worker that gave its shard back goes on writing into it",
            OwnRetriesNotCounted: "a worker that dies of a shard again and again never gives it up",
            AcquireIgnoresRunStatus: "workers get shards of a cancelled scan",
            TriesNotCounted: "an input that kills its worker kills the fleet",
            TriesOffByOne: "a poisoned shard kills one worker more than allowed",
            RenewShortensLease: "a clock that steps back takes a lease from its worker",
            ReleaseKeepsTries: "draining workers poisons healthy shards",
            ReleaseForgetsCursor: "a drained shard is scanned from its start",
            ReleaseIgnoresFence: "a zombie gives away the shard of another worker",
            // Fences and idempotency.
            LeaseBeforeIdempotency: "a retry after the lease is refused though its work is stored",
            RunGateBeforeIdempotency: "a retry after the run's end is refused",
            FenceComparedTheWrongWay: "zombies overwrite the work of their successors",
            FenceOneBehindAccepted: "the worker before the last still writes",
            FenceIgnoredForSameOwner: "a restarted worker's earlier self still writes",
            ReplayCrossesTenants: "one tenant's lease works on another tenant's shard",
            ReplayIgnoresPayload: "another request under a used id is called done and is not",
            PayloadWithoutTag: "a completion under a checkpoint's id is called done",
            OpLogForgetsEarly: "retries are carried out twice after eight operations",
            OpLogKeepsOldest: "after sixteen operations no retry is recognised",
            LoggedAsCheckpoint: "the record of a shard says that it was checkpointed, not completed",
            LoggedAtFirstTime: "the record of a shard does not say when things were done",
            ParkNotLogged: "a retried park is refused",
            // Cursors.
            CursorMayMoveBack: "finished work is done again and counted as new",
            CursorMustMove: "a checkpoint at the same key is refused",
            CursorAtEndAccepted: "a cursor passes its shard and claims a key of the next",
            CursorBeforeStartAccepted: "a cursor stands on a key that its shard never had",
            CheckpointWithoutKey: "a checkpoint without a key sends the shard back to its start",
            BoundsComparedByLength: "honest workers of some shards are refused for ever",
            CheckpointForgetsToken: "a source goes on from another place than it had reached",
            CompleteForgetsCursor: "a done shard shows less than was done",
            AnyCheckpointIsProgress: "a shard that never moves is never parked",
            TokenIsNoProgress: "a large item that takes many workers is parked as poisoned",
            RunEndIgnoredByCheckpoint: "a cancelled scan goes on",
            // Splits.
            ChildrenInheritCursor: "keys before the parent's cursor are never scanned by children",
            OpLogEntryLostOnSplit: "a retried split is refused, and its children are unknown",
            ForgottenResidualRunsAgain: "a late retry of a split is refused or splits again",
            ForgottenSplitIgnoresPlan: "another split under an old id is called done and is not",
            SplitGapAccepted: "keys between two children belong to nobody",
            ReplacedParentStaysActive: "a split shard is scanned again beside its children",
            ResidualParentKeepsRange: "keys given away are scanned twice",
            ResidualMayCutBehindCursor: "a cursor lies outside its shard",
            ResidualIdIgnoresOperation: "a second split is answered with the shard of the first",
            SplitIgnoresCeiling: "splits flood the coordinator",
            SplitReplayNamesAll: "a retried split names shards that it did not make",
            // Unparking and runs.
            UnparkKeepsFence: "whoever parked the shard comes back with its old lease",
            UnparkKeepsTries: "an unparked shard is parked again at once",
            UnparkAsksStatusFirst: "a retried unpark is refused",
            UnparkInEndedRun: "shards of an ended run come back to life",
            BegunRunIsRefused: "a scan that crashed while it began can never begin",
            BeginIgnoresConfig: "a scan runs on as another one was configured",
            RegisterAgain: "a second manifest is laid over the first",
            CompleteRunIgnoresParked: "a scan with parked shards is called complete",
            CompleteRunOnPartialView: "a scan with unfinished split-off shards is called complete",
            EndedRunEndsAgain: "a cancelled scan is called complete later",
            // The coordinator in memory.
            IndexKeepsParkedShard: "claims are offered a parked shard for ever",
            IndexForgetsReleasedShard: "a released shard is never claimed again",
            IndexForgetsUnparkedShard: "an unparked shard is never claimed",
            IndexForgetsRenewal: "claims wait for a lease that was renewed, or miss one",
            DeadlinesNotSifted: "an expired lease hides behind live ones",
            CountsForgetSplit: "progress is wrong for ever after a split",
            CeilingForgetsResiduals: "residual splits pass the ceiling unseen",
            FailedSplitLeaksBytes: "each split that does not fit makes the store smaller",
            RefusedCheckpointIsLogged: "a refused checkpoint is called done when it is retried",
            ClaimIgnoresExpired: "a dead worker's shards wait for ever",
            ClaimLateAtDeadline: "at its deadline a lease keeps claims out, though it is over",
            ClaimStopsAtPoison: "one poisoned shard hides every free one",
            ClaimPrefersFree: "dead workers' shards wait until nothing else is left",
            ClaimPassesExpired: "a claim that parks a shard leaves a dead worker's behind",
            HintCountsNothing: "workers believe that nothing is left to do, and go",
            HintHidesEstimate: "a hint that may be too low is taken for the number",
            CooldownSurvivesClock: "a clock that steps back makes a worker wait for hours",
            PoisonNotReported: "nobody learns that a shard was parked",
            ListingHidesExpired: "a shard whose worker died is not listed as free",
            SnapshotKeepsToken: "a worker resumes with the token of another shard",
            CooldownAfterSuccess: "busy workers are told to wait",
            EmptyListingFails: "a listing that nothing fits fails as if the store had",
            NoRoomForLongTokens: "checkpoints are refused for want of room that is there",
            CompletionNotReported: "nobody learns that a shard is done",
            RenewalReportedTwice: "whoever counts renewals counts too many",
            PoisonReportedAgain: "a parked shard is reported again with every request for it",
            EmptyClaimReportsEnd: "a scan is reported as complete while shards are parked",
            // Sessions.
            SessionWidensRange: "a worker works beyond what its shard has kept",
            SessionKeepsRange: "a worker scans keys that it gave away",
            SessionForgetsRenewal: "a worker stops though its lease was renewed",
            SessionKeepsCapacity: "a worker goes by what there was to do long ago",
            SessionForgetsSpawned: "a worker does not know which shard it gave away",
            SessionForgetsParent: "a worker does not know from which shard its own was split",
            SessionSkipsUnmovedComplete: "a finished shard is taken up again and again, for ever",
            SessionSkipsFirstKey: "the first item of a shard is never looked at",
        }
        Sqlite {
            AnswersBeforeCommit: "a crash loses what was answered as done",
            ParkedColumnStale: "claims find a parked shard in the index and fail",
            OwnerColumnStale: "a restarted worker does not get its shards back",
            SplitInTwoTransactions: "a crash between parent and children loses keys",
            ReplayRunsWrites: "a retried checkpoint stores its findings twice",
            RefusalKeepsWrites: "findings of a refused checkpoint are stored",
            CachedRecordServed: "decisions are taken on a record that has changed since",
            CountsForgetUnpark: "progress is wrong after an unpark",
            ExpiredComparedStrictly: "at its deadline a lease keeps claims out, though it is over",
            TotalsForgetSplits: "splits pass the ceiling unseen",
            RunStatusColumnStale: "the shards of an ended run stay open to workers",
            PoisonRolledBack: "a poisoned shard is never parked",
            ExpiredRowsIgnored: "a dead worker's shards wait for ever",
            ChildrenForgetSemantics: "split-off shards call work done that was only handed on",
            CommitErrorIgnored: "what a full disk refused is answered as done",
            WriteLockTakenLate: "an operation fails at once when another process gets in between",
            RecordReadBeforeLock: "two processes carry out the same retry, each on what it read before",
            RenewedColumnStale: "claims find a renewed lease over in the index and fail",
            UnmovedCheckpointFails: "a checkpoint at the same place fails as if the store had",
            BusyCalledDamage: "a database that is busy for a moment is called damaged",
            NewestFreeFirst: "shards that were given back early wait behind later ones",
            ReacquireTakesExpired: "a worker that comes back takes what others lost",
        }
    }

    /// No bug.
    const NONE: u8 = u8::MAX;
    const _: () = assert!(Bug::ALL.len() < NONE as usize);

    static SELECTED: AtomicU8 = AtomicU8::new(NONE);

    /// From now on the process has this bug, or none.
    pub fn select(bug: Option<Bug>) {
        SELECTED.store(bug.map_or(NONE, |bug| bug as u8), Ordering::Relaxed);
    }

    /// Whether the process has this bug.
    #[must_use]
    pub fn is_selected(bug: Bug) -> bool {
        SELECTED.load(Ordering::Relaxed) == bug as u8
    }

    /// The cursor of a shard on which nothing has been done.
    pub const NOWHERE: CursorUpdate<'static> = CursorUpdate::initial();

    /// The lease of whoever holds the shard that `lease` names, if anybody does.
    #[must_use]
    pub fn current(found: Option<FoundShard<'_, '_>>, lease: &Lease) -> &'static Lease {
        let held = found.and_then(|FoundShard { shard, .. }| {
            let holder = shard.state.lease?;
            let (owner, deadline) = (holder.owner(), holder.deadline());
            Some(Lease::new(lease.tenant(), lease.key(), owner, shard.state.fence, deadline))
        });
        Box::leak(Box::new(held.unwrap_or(*lease)))
    }

    /// A cursor that lives for ever: some bugs mix what borrows keep apart.
    #[must_use]
    pub fn leak(cursor: CursorUpdate<'_>) -> CursorUpdate<'static> {
        let leaked = |bytes: &[u8]| -> &'static [u8] { Vec::from(bytes).leak() };
        CursorUpdate::new(cursor.last_key().map(leaked), cursor.token().map(leaked))
    }
}
