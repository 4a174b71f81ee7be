//! Faults of the backend itself: a store that fails, a process that ends.

use gossip_contracts::identity::LogicalTime;

use super::{Request, Wire};
use crate::sim::op::{Answer, Refusal};
use crate::sim::perform::perform;
use crate::sim::subject::Subject;

impl<S: Subject> Wire<S> {
    /// Crashes the backend and starts it again.
    pub(in crate::sim) fn reopen(&mut self) {
        self.trace.note(|| "the backend crashes".to_owned());
        self.subject.reopen();
        if S::IS_DURABLE {
            self.inspect();
        }
    }

    /// Puts a request to a store that fails, where the backend has one: it must be refused, and
    /// change nothing. The next look at the records would tell.
    pub(super) fn obstruct(&mut self, now: LogicalTime, request: Request) {
        self.trace.note(|| format!("the store fails: {request:?}"));
        let Request::Operation(operation) = request else { return };
        let answer = self.with_scratch(|wire, scratch| {
            wire.subject.obstructed(|backend| perform(backend, scratch, now, &operation))
        });
        if let Some(answer @ Answer::Refused(Refusal::Backend { .. })) = &answer {
            let verdict = self.oracles.observe_provoked(&operation, answer);
            self.conclude(verdict);
        } else if let Some(answer) = answer {
            // Reading does not fail where only writing does.
            self.operations += 1;
            self.events.clear();
            self.trace.begin(self.operations, now, &operation);
            self.judge(now, &operation, &answer, None);
        }
    }

    /// The backend's process ends in the middle of a request: all of it is stored, or nothing. All
    /// records are looked at right after.
    pub(super) fn crash_during(&mut self, now: LogicalTime, request: Request) {
        let Request::Operation(operation) = request else { return self.reopen() };
        let at = self.collector_of(operation.tenant());
        let mut collector = std::mem::take(&mut self.collectors[at]);
        let written = if self.random.chance(100) { 1000 } else { self.random.below(1001) };
        let crashed = self.with_scratch(|wire, scratch| {
            wire.subject.crash_during(&mut collector, written, |backend| {
                perform(backend, scratch, now, &operation)
            })
        });
        self.collectors[at] = collector;
        let Some((answer, is_stored)) = crashed else { return };
        self.operations += 1;
        self.trace.note(|| format!("the backend crashes with {written} of 1000 written:"));
        self.trace.begin(self.operations, now, &operation);
        self.take_events(at);
        let changed = !self.events.is_empty();
        if is_stored || !changed {
            self.judge(now, &operation, &answer, None);
        }
        self.inspect();
    }
}
