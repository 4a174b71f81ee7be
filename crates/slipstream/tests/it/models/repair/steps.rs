//! What the process does, step by step.

use slipstream::protocol::{
    Advance, Guard, Position, Resume, Vanished, advance, before_first_gap, check_listing, cut,
    is_quiet, is_vanished, live_guard, resume, vanished, was_purged,
};
use slipstream::{CursorExpiry, LogInfo, Progress};

use super::{Consumer, Cursor, KEYS, LogFacts, Message, Mutation, Repair, Run, State, facts};

impl State {
    pub(super) fn store(&mut self, in_repair: bool, revision: u64, mutation: Option<Mutation>) {
        let Some(run) = &self.run else { return };
        let end = match mutation {
            Some(Mutation::CursorWithoutEnd) => revision,
            _ => run.end.max(revision).max(run.position),
        };
        let witnesses = run.recent.clone();
        let incarnation = run.began.as_ref().map_or(0, |began| began.incarnation);
        let subjects = run.subjects;
        let at = Position { end, subjects, ..Position::at(incarnation, revision) };
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
    pub(super) fn arm(&mut self, mutation: Option<Mutation>) {
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

    pub(super) fn receive(&mut self, mutation: Option<Mutation>) -> Option<()> {
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
                (Guard::Pass, _) => {}
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
        let Message { revision, key, put, id } = message;
        self.fold[key] = put.then_some((revision, id));
        let run = self.run.as_mut()?;
        run.position = revision;
        run.recent.retain(|witness| witness.key != key);
        run.recent.insert(0, message);
        match &mut run.repair {
            Some(repair) => {
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
                let frontier = run.frontier;
                self.store(false, frontier, mutation);
            }
        }
        Some(())
    }

    fn overrun(&mut self, info: &LogInfo, mutation: Option<Mutation>) -> Option<()> {
        let run = self.run.as_mut()?;
        let cut = cut(run.frontier, info);
        run.end = run.end.max(cut.end);
        let early = mutation == Some(Mutation::DropsBeforeReadingThrough);
        let claim = early.then_some(cut.revision);
        let (seen, cut, floor_at_start) = (None, Some(cut), info.first);
        let keeps = false;
        run.repair = Some(Repair { seen, cut, claim, keeps, victims: None, floor_at_start });
        self.store(true, 0, mutation);
        Some(())
    }

    /// The second half of a progress marker.
    pub(super) fn check(&mut self, mutation: Option<Mutation>) -> Option<()> {
        let info = self.log.info();
        let run = self.run.as_mut()?;
        let (head, pending, delivered) = run.asked.take()?;
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
            return self.check_complete(&began, &marker, mutation);
        }
        let repair = run.repair.as_mut()?;
        let is_listing = repair.seen.is_some();
        if let Some(seen) = repair.seen {
            let count = seen.iter().flatten().count() as u64;
            let counts = mutation != Some(Mutation::NoCount);
            if counts && is_quiet(&marker) && count != info.subjects {
                self.run = None;
                return Some(());
            }
        }
        let was = LogInfo { incarnation: began.incarnation, last: began.last, ..info };
        let mut cut = match (repair.cut, check_listing(&was, run.position, &marker)) {
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
            run.end = cut.end;
        }
        let unread = matches!(
            mutation,
            Some(Mutation::NoConsumerCheck | Mutation::DropsBeforeReadingThrough)
        );
        let claim = cut.claim(run.position, &marker);
        repair.claim = claim.or(unread.then_some(cut.revision));
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
            let victims = self.victims(mutation)?;
            self.run.as_mut()?.repair.as_mut()?.victims = Some(victims);
        }
        Some(())
    }

    fn check_complete(
        &mut self,
        began: &LogFacts,
        marker: &Progress,
        mutation: Option<Mutation>,
    ) -> Option<()> {
        let run = self.run.as_mut()?;
        let info = &marker.log;
        let keeps = vanished(run.evicted, info) == Vanished::Keep;
        let unguarded = mutation == Some(Mutation::Unguarded);
        match advance(began.incarnation, run.frontier, marker) {
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
        if was_purged(run.subjects, info) && mutation != Some(Mutation::NoCount) {
            self.run = None;
            return Some(());
        }
        if is_quiet(marker) {
            run.subjects = info.subjects;
        }
        let frontier = run.frontier;
        self.store(false, frontier, mutation);
        let below = |held: &(u64, u8)| is_vanished(true, Some(held.0), info.first);
        let purged = self.fold.iter().flatten().any(below);
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

    fn victims(&self, mutation: Option<Mutation>) -> Option<Vec<usize>> {
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
        Some((0..KEYS).filter(vanished).collect())
    }

    /// Drops one vanished key; the last one goes with the cursor.
    pub(super) fn sweep(&mut self, mutation: Option<Mutation>) -> Option<()> {
        let mut victims = self.victims(mutation)?;
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
            let floor = run.repair.take()?.cut?.floor;
            run.frontier = revision;
            // A log that has these again is another one.
            if mutation != Some(Mutation::WitnessesOfDroppedKeys) {
                run.recent.retain(|witness| witness.revision >= floor);
            }
            self.store(false, revision, mutation);
            self.old_seen = None;
        }
        Some(())
    }
}
