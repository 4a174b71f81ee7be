//! Answers that come when their sender has given up on them.
//!
//! What a network can do to a request (lose it, delay it behind its own repetition, double it) the
//! backend notices, and it is done where requests are sent. What it can do to an answer only the
//! sender notices. A worker does one call at a time, and its session takes one answer for each; so
//! there is no more than this:
//!
//! - It comes late, and the worker has waited. That is a worker who pauses after an answer that came
//!   in time ([`Ingredient::Pause`]): nothing else of it goes on meanwhile.
//! - It comes after the worker has given up, and the worker does not ask again. Nobody takes it: it is
//!   lost ([`Ingredient::LoseReply`]).
//! - It comes after the worker has given up and sent the same request again. Then it is taken for the
//!   answer to the second attempt, whose own comes behind it and is dropped, and the second request
//!   may still be under way. That is done here. A grant that comes so may be of a lease that is over,
//!   or of a shard that another holds by now.
//! - It comes twice. The second one waits like a late one, for somebody who sends the same request.

use std::any::Any;

use gossip_contracts::identity::WorkerId;

use super::{LATELY, Request, Wire};
#[cfg(doc)]
use crate::Ingredient;
use crate::simulated::SimulatedBackend;

/// An answer that is under way, and what it answers.
pub(super) struct Overdue {
    request: Request,
    /// As its caller wants it.
    reply: Box<dyn Any>,
}

impl Request {
    /// Whether an answer to one may be taken for an answer to the other.
    fn is_again(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (Self::Operation(a), Self::Operation(b)) => a == b,
            (Self::Claim(a), Self::Claim(b)) | (Self::Reacquire(a), Self::Reacquire(b)) => {
                (a.tenant, a.run, a.worker) == (b.tenant, b.run, b.worker)
            }
            _ => false,
        }
    }
}

impl<S: SimulatedBackend> Wire<S> {
    /// The answer is on its way, and its sender will not have waited for it.
    pub(super) fn hold_back<R: 'static>(&mut self, request: &Request, reply: Option<R>) {
        let Some(reply) = reply else { return };
        self.trace.note(|| "the answer is late".to_owned());
        if self.overdue.len() == LATELY {
            self.overdue.remove(0);
        }
        self.overdue.push(Overdue { request: request.clone(), reply: Box::new(reply) });
    }

    /// A worker's process has ended: the next one under its id gets no answers of this one's.
    pub(crate) fn hang_up(&mut self, worker: WorkerId) {
        self.overdue.retain(|late| match &late.request {
            Request::Operation(operation) => {
                operation.lease().is_none_or(|lease| lease.owner() != worker)
            }
            Request::Claim(by) | Request::Reacquire(by) => by.worker != worker,
        });
    }

    /// An answer to an earlier attempt at the same request, if it comes now.
    pub(super) fn take_overdue<R: Clone + 'static>(&mut self, request: &Request) -> Option<R> {
        if self.overdue.is_empty() || self.is_calm || self.is_over() {
            return None;
        }
        let at = self.overdue.iter().position(|late| request.is_again(&late.request))?;
        if !self.random.chance(700) {
            return None;
        }
        let reply = self.overdue[at].reply.downcast_ref::<R>()?.clone();
        let comes_again = self.random.chance(200);
        if !comes_again {
            self.overdue.remove(at);
        }
        self.trace.note(|| format!("the answer to an earlier attempt: {request:?}"));
        Some(reply)
    }
}

#[cfg(test)]
mod tests {
    use gossip_contracts::identity::{LogicalTime, RunId, TenantId};

    use super::*;
    use crate::op::{Answer, Operation};
    use crate::oracles::Oracles;
    use crate::random::Random;
    use crate::reference::Bounds;
    use crate::simulated::{Applicant, BackendLimits, Memory};
    use crate::swarm::Swarm;
    use crate::trace::Trace;
    use gossip_coordination::ShardLimits;

    const TENANT: TenantId = TenantId::from_bytes([1; 32]);
    const LIMITS: ShardLimits = ShardLimits { per_tenant: 10, global: 10 };

    fn wire() -> Wire<Memory> {
        let limits = BackendLimits::of_shards(LIMITS);
        let mut random = Random::new(1);
        let swarm = Swarm::draw(&mut random);
        let (trace, oracles) = (Trace::new(false), Oracles::new(Bounds::of_shards(LIMITS)));
        Wire::new(Memory::open(&limits), swarm, random, trace, vec![TENANT], oracles)
    }

    fn ask(run: u64) -> Request {
        let run = RunId::from_raw(run);
        Request::Operation(Box::new(Operation::GetRun { tenant: TENANT, run }))
    }

    fn claim(worker: u64, now: u64) -> Request {
        let (run, worker) = (RunId::from_raw(1), WorkerId::from_raw(worker));
        Request::Claim(Applicant { now: LogicalTime::from_raw(now), tenant: TENANT, run, worker })
    }

    /// Whether it comes at all.
    fn comes<R: Clone + 'static>(wire: &mut Wire<Memory>, request: &Request) -> bool {
        (0..50).any(|_| wire.take_overdue::<R>(request).is_some())
    }

    #[test]
    fn a_late_answer_is_taken_by_the_same_request_only() {
        let mut wire = wire();
        wire.hold_back(&ask(1), Some(Answer::Accepted));
        assert!(!comes::<Answer>(&mut wire, &ask(2)));
        assert!(!comes::<u8>(&mut wire, &ask(1)));
        assert!(comes::<Answer>(&mut wire, &ask(1)));
        // Twice at times, but not for ever.
        assert!((0..50).any(|_| !comes::<Answer>(&mut wire, &ask(1))));
    }

    #[test]
    fn a_claim_is_the_same_at_another_time_but_not_of_another_process() {
        let mut wire = wire();
        wire.hold_back(&claim(1, 5), Some(7));
        assert!(!comes::<i32>(&mut wire, &claim(2, 5)));
        wire.hang_up(WorkerId::from_raw(2));
        assert!(comes::<i32>(&mut wire, &claim(1, 9)));
        wire.hold_back(&claim(1, 5), Some(7));
        wire.hang_up(WorkerId::from_raw(1));
        assert!(!comes::<i32>(&mut wire, &claim(1, 9)));
    }
}
