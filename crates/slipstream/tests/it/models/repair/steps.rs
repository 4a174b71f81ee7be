//! What the process does, step by step.

use slipstream::protocol::{
    Advance, Cut, Guard, Position, Resume, Vanished, advance, before_first_gap, check_listing, cut,
    is_quiet, is_vanished, live_guard, resume, tombstones_are_left, vanished, was_purged,
};
use slipstream::{CursorExpiry, LogInfo, Progress};

use super::{
    Asked, Consumer, Cursor, KEYS, LogFacts, Message, Mutation, Repair, Run, State, World, facts,
};

impl State {
    pub(super) fn store(&mut self, in_repair: bool, revision: u64, mutation: Option<Mutation>) {
        let Some(run) = &self.run else { return };
        let end = match mutation {
            Some(Mutation::CursorWithoutEnd) => revision,
            _ => run.end.max(revision).max(run.position),
        };
        let witnesses = match mutation {
            Some(Mutation::CursorWithoutWitnesses) => Vec::new(),
            _ => run.recent.clone(),
        };
        let incarnation = run.began.as_ref().map_or(0, |began| began.incarnation);
        let subjects = run.subjects;
        let observed_through_ms = run.watch_observed_ms;
        let at = Position::at(incarnation, revision);
        let at = Position { end, subjects, observed_through_ms, ..at };
        if in_repair && mutation == Some(Mutation::InRepairIsNoCursor) {
            self.cursor = None;
            return;
        }
        let evicted = run.evicted;
        self.cursor = Some(match in_repair {
            true => Cursor { in_repair, evicted, at: Position::at(0, 0), witnesses: Vec::new() },
            false => Cursor { in_repair, evicted, at, witnesses },
        });
    }

    /// Decides how to begin.
    pub(super) fn arm(&mut self, world: &World) {
        let mutation = world.mutation;
        let info = self.log.info();
        let evicted = self.cursor.as_ref().is_some_and(|cursor| cursor.evicted);
        let mut run = Run {
            began: None,
            consumer: None,
            position: 0,
            frontier: 0,
            end: 0,
            subjects: 0,
            evicted,
            observed_ms: 0,
            watch_observed_ms: 0,
            applied: 0,
            repair: None,
            recent: Vec::new(),
            asked: None,
            proven: false,
        };
        if let Some(cursor) = self.cursor.clone().filter(|cursor| !cursor.in_repair)
            && let Some(from) = self.resumes(&cursor, &info)
        {
            run.began = Some(facts(&info));
            run.consumer = Some(Consumer { exists: true, sent: from, in_flight: Vec::new() });
            (run.position, run.frontier, run.end) = (from, from, info.last);
            run.subjects = cursor.at.subjects;
            run.observed_ms = cursor.at.observed_through_ms;
            run.watch_observed_ms = cursor.at.observed_through_ms;
            run.applied = if world.waits { from } else { 0 };
            run.recent = cursor.witnesses;
            run.recent.retain(|witness| witness.revision <= from);
            self.run = Some(run);
            return;
        }
        let seen = match mutation {
            Some(Mutation::SeenOutlivesItsConsumer) => self.old_seen.unwrap_or([None; KEYS]),
            _ => [None; KEYS],
        };
        let keeps = false;
        run.repair = Some(Repair {
            seen: Some(seen),
            cut: None,
            claim: None,
            keeps,
            victims: None,
            floor_at_start: info.first,
        });
        self.run = Some(run);
        if mutation != Some(Mutation::KeepsTheOldCursor) {
            self.store(true, 0, mutation);
        }
    }

    fn resumes(&self, cursor: &Cursor, info: &LogInfo) -> Option<u64> {
        let mut findings = Vec::new();
        loop {
            match resume(cursor.at, info, &findings, cursor.witnesses.len()) {
                Resume::From(from) => return Some(from),
                Resume::Expired(_) => return None,
                Resume::NeedNextWitness => {
                    let witness = &cursor.witnesses[findings.len()];
                    let place = |message: &Message| (message.revision, message.key);
                    findings.push(super::super::find(&self.log.messages, witness, place));
                }
            }
        }
    }

    pub(super) fn receive(&mut self, world: &World) -> Option<()> {
        let mutation = world.mutation;
        let info = self.log.info();
        let run = self.run.as_mut()?;
        let message = run.consumer.as_mut()?.in_flight.remove(0);
        run.asked = None;
        let began = run.began.as_ref()?.incarnation;
        if run.repair.is_none()
            && let Some(before) = before_first_gap(run.frontier, [message.revision])
        {
            // The log is read by the connection that the watch runs on, which ends with the consumer.
            if !run.consumer.as_ref()?.exists {
                self.run = None;
                return Some(());
            }
            let guard = live_guard(began, before, message.revision, &info);
            run.evicted |= self.log.evicts;
            let guarded = !matches!(mutation, Some(Mutation::Unguarded | Mutation::ProbesOnly));
            match (guard, vanished(run.evicted, &info)) {
                (Guard::Pass, _) if tombstones_are_left(&info, run.observed_ms) => {}
                (Guard::Pass, _) => {
                    self.store(true, 0, mutation);
                    self.run = None;
                    return Some(());
                }
                _ if !guarded => {}
                (Guard::Trip(CursorExpiry::BelowFloor { .. }), Vanished::Keep) => {
                    run.frontier = run.frontier.max(info.first - 1);
                }
                (Guard::Trip(CursorExpiry::BelowFloor { .. }), Vanished::Delete) => {
                    self.overrun(&info, mutation)?;
                }
                _ => {
                    self.run = None;
                    return Some(());
                }
            }
            let run = self.run.as_mut()?;
            run.end = run.end.max(info.last);
        }
        let Message { revision, key, put, id, at_ms } = message;
        self.fold[key] = put.then_some((revision, id));
        let run = self.run.as_mut()?;
        run.position = revision;
        run.recent.retain(|witness| witness.key != key);
        run.recent.insert(0, message);
        let lists = run.repair.as_ref().is_some_and(|repair| repair.cut.is_none());
        if !lists {
            run.watch_observed_ms = run.watch_observed_ms.max(at_ms);
        }
        match &mut run.repair {
            Some(repair) => {
                if world.waits && mutation == Some(Mutation::WaitForIsAnsweredInARepair) {
                    run.applied = revision;
                }
                if let Some(seen) = &mut repair.seen {
                    seen[key] = Some(put);
                    self.old_seen = Some(*seen);
                }
                if mutation == Some(Mutation::BatchCursorsInARepair) {
                    self.store(false, revision, mutation);
                }
            }
            None => {
                run.frontier = run.frontier.max(revision);
                run.observed_ms = run.observed_ms.max(at_ms);
                self.complete_through(world);
            }
        }
        Some(())
    }

    /// The fold has everything up to the frontier.
    fn complete_through(&mut self, world: &World) {
        let Some(run) = &mut self.run else { return };
        let frontier = run.frontier;
        run.applied = if world.waits { frontier } else { 0 };
        self.store(false, frontier, world.mutation);
    }

    fn overrun(&mut self, info: &LogInfo, mutation: Option<Mutation>) -> Option<()> {
        let run = self.run.as_mut()?;
        let cut = cut(run.frontier, run.observed_ms, info);
        run.end = run.end.max(cut.head);
        let early = mutation == Some(Mutation::DropsBeforeReadingThrough);
        let claim = early.then_some(cut.revision);
        let (seen, cut, floor_at_start) = (None, Some(cut), info.first);
        let keeps = false;
        run.repair = Some(Repair { seen, cut, claim, keeps, victims: None, floor_at_start });
        self.store(true, 0, mutation);
        Some(())
    }

    /// The second half of a progress marker.
    pub(super) fn check(&mut self, world: &World) -> Option<()> {
        let mutation = world.mutation;
        let info = self.log.info();
        let run = self.run.as_mut()?;
        let asked = run.asked.take()?;
        let Asked { head, pending, delivered, .. } = asked;
        // A marker ends by asking whether the consumer is still there.
        let exists = run.consumer.as_ref()?.exists;
        if !exists && mutation != Some(Mutation::NoConsumerCheck) {
            self.run = None;
            return Some(());
        }
        let began = run.began.clone()?;
        let marker = Progress { head, pending, delivered, received: run.position, log: info };
        run.evicted |= self.log.evicts;
        if run.repair.is_none() {
            return self.check_complete(&began, &marker, asked, world);
        }
        let repair = run.repair.as_mut()?;
        let is_listing = repair.seen.is_some();
        if let Some(seen) = repair.seen {
            let count = seen.iter().flatten().count() as u64;
            let counts = mutation != Some(Mutation::NoCount) && world.scope == world.keys;
            if counts && is_quiet(&marker) && count != info.subjects {
                self.run = None;
                return Some(());
            }
        }
        let LogFacts { incarnation, last, read_at_ms, .. } = began;
        let was = LogInfo { incarnation, last, read_at_ms, ..info };
        let checked = match mutation {
            Some(Mutation::NoEndCheck) => {
                let was = LogInfo { last: 0, ..was };
                let marker = Progress { head: head.min(info.last), ..marker };
                check_listing(&was, run.position.min(info.last), &marker)
            }
            Some(Mutation::NoIncarnationCheck) => {
                let was = LogInfo { incarnation: info.incarnation, ..was };
                check_listing(&was, run.position, &marker)
            }
            _ => check_listing(&was, run.position, &marker),
        };
        let mut cut = match (repair.cut, checked) {
            (Some(cut), _) => cut,
            (None, Ok(cut)) => cut,
            (None, Err(_)) => {
                self.run = None;
                return Some(());
            }
        };
        if repair.cut.is_none() {
            assert!(is_listing, "an overrun has a cut from the beginning");
            match mutation {
                Some(Mutation::NoFloorCheck) => cut.floor = 0,
                Some(Mutation::FloorIsReadBeforeTheEnd) => cut.floor = repair.floor_at_start,
                Some(Mutation::ClaimsTheHeadItBeganWith) => {
                    cut.revision = cut.revision.max(began.last);
                }
                _ => {}
            }
            run.end = cut.head;
        }
        let unread = matches!(
            mutation,
            Some(Mutation::NoConsumerCheck | Mutation::DropsBeforeReadingThrough)
        );
        let minded = match mutation {
            Some(Mutation::NoTombstoneCheck) => Cut { since_ms: info.read_at_ms, ..cut },
            Some(Mutation::TombstoneCheckOfTheListingOnly) if repair.cut.is_some() => {
                Cut { since_ms: info.read_at_ms, ..cut }
            }
            _ => cut,
        };
        let Ok(claim) = minded.claim(run.position, &marker) else {
            self.run = None;
            return Some(());
        };
        repair.claim = claim.or(unread.then_some(cut.revision));
        // The watch observes what was read before the head that it has passed.
        if repair.claim.is_some_and(|claim| claim >= asked.head) {
            run.watch_observed_ms = run.watch_observed_ms.max(asked.read_at_ms);
        }
        if is_quiet(&marker) {
            run.subjects = info.subjects;
        }
        repair.keeps = match mutation {
            Some(Mutation::EvictionsAreForgotten) => vanished(false, &info) == Vanished::Keep,
            Some(Mutation::RetentionIsCheckedOnce) => began.evicts && info.first > 1,
            _ => is_listing && vanished(run.evicted, &info) == Vanished::Keep,
        };
        let early = repair.cut.is_none() && mutation == Some(Mutation::VanishedKeysAreFoundEarly);
        repair.cut = Some(cut);
        if early {
            let victims = self.victims(world)?;
            self.run.as_mut()?.repair.as_mut()?.victims = Some(victims);
        }
        Some(())
    }

    fn check_complete(
        &mut self,
        began: &LogFacts,
        marker: &Progress,
        asked: Asked,
        world: &World,
    ) -> Option<()> {
        let mutation = world.mutation;
        let run = self.run.as_mut()?;
        let info = &marker.log;
        let keeps = vanished(run.evicted, info) == Vanished::Keep;
        let unguarded = mutation == Some(Mutation::Unguarded);
        let passed = advance(began.incarnation, run.frontier, marker);
        let is_left = info.last <= run.frontier || tombstones_are_left(info, run.observed_ms);
        if !matches!(passed, Advance::Trip(_)) && !is_left {
            self.store(true, 0, mutation);
            self.run = None;
            return Some(());
        }
        match passed {
            Advance::Wait => return Some(()),
            _ if unguarded => run.frontier = marker.head,
            Advance::To(head) => run.frontier = head,
            Advance::Trip(CursorExpiry::BelowFloor { .. }) if keeps => {
                run.frontier = info.first - 1;
                return Some(());
            }
            Advance::Trip(CursorExpiry::BelowFloor { .. }) => return self.overrun(info, mutation),
            Advance::Trip(_) => {
                self.run = None;
                return Some(());
            }
        }
        run.end = run.end.max(info.last);
        run.watch_observed_ms = run.watch_observed_ms.max(asked.read_at_ms);
        run.observed_ms = run.observed_ms.max(run.watch_observed_ms);
        let counts = mutation != Some(Mutation::NoCount) && !info.retention.per_message_ttl;
        if was_purged(run.subjects, info) && counts {
            self.run = None;
            return Some(());
        }
        if is_quiet(marker) {
            run.subjects = info.subjects;
        }
        self.complete_through(world);
        let below = |held: &(u64, u8)| is_vanished(true, Some(held.0), info.first);
        let purged = self.fold[..world.scope].iter().flatten().any(below);
        let looks = !matches!(
            mutation,
            Some(Mutation::NoFloorCheck | Mutation::Unguarded | Mutation::ProbesOnly)
        );
        if purged && !keeps && looks {
            return self.overrun(info, mutation);
        }
        let run = self.run.as_mut()?;
        run.proven = is_quiet(marker);
        Some(())
    }

    fn victims(&self, world: &World) -> Option<Vec<usize>> {
        let mutation = world.mutation;
        let run = self.run.as_ref()?;
        let repair = run.repair.as_ref()?;
        if let Some(victims) = &repair.victims {
            return Some(victims.clone());
        }
        let cut = repair.cut?;
        let vanished = |key: &usize| {
            let Some((version, _)) = self.fold[*key] else { return false };
            let listed = repair.seen.is_none_or(|seen| seen[*key] == Some(true));
            if repair.keeps {
                let wrong = mutation == Some(Mutation::FloorCheckWhereValuesAreEvicted);
                return wrong && version < cut.floor;
            }
            match mutation {
                Some(Mutation::KeepsVersionsBelowPosition) => {
                    is_vanished(listed, Some(version), cut.floor) && version <= run.position
                }
                _ => is_vanished(listed, Some(version), cut.floor),
            }
        };
        let keys = match mutation {
            Some(Mutation::SweepsBeyondTheScope) => 0..world.keys,
            _ => 0..world.scope,
        };
        Some(keys.filter(vanished).collect())
    }

    /// Drops one vanished key; the last one goes with the cursor.
    pub(super) fn sweep(&mut self, world: &World) -> Option<()> {
        let mutation = world.mutation;
        let mut victims = self.victims(world)?;
        let revision = self.run.as_ref()?.repair.as_ref()?.claim?;
        if mutation == Some(Mutation::CursorBeforeTheLastDelete) {
            self.store(false, revision, mutation);
        }
        if let Some(key) = victims.pop() {
            let dropped = self.fold[key].take().map(|(_, id)| id);
            self.lost |= dropped.is_some() && self.log.truth[key] == dropped;
        }
        let repair = self.run.as_mut()?.repair.as_mut()?;
        if repair.victims.is_some() {
            repair.victims = Some(victims.clone());
        }
        if victims.is_empty() {
            let run = self.run.as_mut()?;
            let Cut { floor, since_ms, .. } = run.repair.take()?.cut?;
            run.frontier = revision;
            let last_message = run.recent.first().map_or(0, |message| message.at_ms);
            run.observed_ms = match mutation {
                Some(Mutation::ObservedThroughTheLastMessage) => last_message.max(since_ms),
                _ => since_ms,
            };
            let watch_observed_ms = run.watch_observed_ms;
            run.watch_observed_ms = watch_observed_ms.min(run.observed_ms);
            // A log that has these again is another one.
            if mutation != Some(Mutation::WitnessesOfDroppedKeys) {
                run.recent.retain(|witness| witness.revision >= floor);
            }
            self.complete_through(world);
            self.run.as_mut()?.watch_observed_ms = watch_observed_ms;
            self.old_seen = None;
        }
        Some(())
    }
}
