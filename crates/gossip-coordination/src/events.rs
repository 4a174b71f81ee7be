//! What happened, for whoever watches: metrics, notices, a dashboard.
//!
//! Events are inert. The protocol never reads them, and a backend emits one only after the change
//! that it reports is stored.

use core::fmt;

use gossip_contracts::identity::{FenceEpoch, LogicalTime, RunId, ShardId, TenantId, WorkerId};

use crate::op_log::{OpKind, OpResult, RunOpKind};
use crate::record::{ShardState, ShardUpdate};
use crate::status::{ParkReason, ShardStatus};
use crate::transition::RunUpdate;

/// A key that shows its length only. Not serialisable on purpose.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RedactedKey(Option<Box<[u8]>>);

impl RedactedKey {
    /// A copy of `key`.
    #[must_use]
    pub fn new(key: Option<&[u8]>) -> Self {
        Self(key.map(Into::into))
    }

    /// The bytes, for code that needs them; never for logs.
    #[must_use]
    pub fn expose_bytes(&self) -> Option<&[u8]> {
        self.0.as_deref()
    }
}

impl fmt::Debug for RedactedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(key) => write!(f, "Some(<{} bytes>)", key.len()),
            None => f.write_str("None"),
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum EventKind {
    /// A worker got a shard.
    ShardAcquired { shard: ShardId, worker: WorkerId, fence_epoch: FenceEpoch },
    /// A lease was extended.
    ShardLeaseRenewed { shard: ShardId, new_deadline: LogicalTime },
    /// A worker released a shard.
    ShardReleased { shard: ShardId },
    /// A lease was taken from its holder.
    ShardLeaseRevoked { shard: ShardId, new_fence_epoch: FenceEpoch },
    /// A holder moved its shard's cursor.
    ShardCheckpointed {
        shard: ShardId,
        last_key: RedactedKey,
        /// When the lease ends now, if the checkpoint extended it.
        new_deadline: Option<LogicalTime>,
    },
    /// A shard gave away the rest of its range.
    ShardResidualCreated { parent: ShardId, residual: ShardId },
    /// A parked shard was set going again.
    ShardUnparked { shard: ShardId, new_fence_epoch: FenceEpoch },
    /// A shard is done.
    ShardCompleted { shard: ShardId },
    /// A shard was halted.
    ShardParked { shard: ShardId, reason: ParkReason },
    /// A shard was replaced by children.
    ShardSplit { parent: ShardId, children: Vec<ShardId> },
    /// A run was created.
    RunCreated,
    /// A run got its shards.
    RunActivated { shard_count: usize },
    /// A run ended well.
    RunCompleted,
    /// A run was given up.
    RunFailed,
    /// A run was called off.
    RunCancelled,
    /// A run that had ended was deleted, and its shards with it.
    RunDeleted,
}

impl ShardUpdate<'_> {
    /// What a watcher is told of this change of `shard`, which stood at `before`. Every backend
    /// reports this, once the change is durable.
    #[must_use]
    pub fn event(&self, shard: ShardId, before: &ShardState) -> EventKind {
        let (state, fence_before) = (&self.state, before.fence);
        match (self.log.map(|entry| entry.kind()), state.lease) {
            (Some(OpKind::Checkpoint), _) => {
                let last_key = self.cursor.and_then(|cursor| cursor.last_key());
                let last_key = RedactedKey::new(last_key);
                let deadline = |state: &ShardState| state.lease.map(|holder| holder.deadline());
                let new_deadline = deadline(state).filter(|_| deadline(state) != deadline(before));
                EventKind::ShardCheckpointed { shard, last_key, new_deadline }
            }
            (Some(OpKind::Complete), _) => EventKind::ShardCompleted { shard },
            (Some(OpKind::SplitReplace), _) => {
                EventKind::ShardSplit { parent: shard, children: self.spawned.to_vec() }
            }
            (Some(OpKind::SplitResidual), _) => {
                EventKind::ShardResidualCreated { parent: shard, residual: self.spawned[0] }
            }
            (Some(OpKind::Unpark), _) => {
                EventKind::ShardUnparked { shard, new_fence_epoch: state.fence }
            }
            (Some(OpKind::Park), _) => self.parked(shard),
            (None, _) if state.status == ShardStatus::Parked => self.parked(shard),
            (None, None) if state.fence > fence_before => {
                EventKind::ShardLeaseRevoked { shard, new_fence_epoch: state.fence }
            }
            (None, None) => EventKind::ShardReleased { shard },
            (None, Some(lease)) if state.fence > fence_before => {
                EventKind::ShardAcquired { shard, worker: lease.owner(), fence_epoch: state.fence }
            }
            (None, Some(lease)) => {
                EventKind::ShardLeaseRenewed { shard, new_deadline: lease.deadline() }
            }
        }
    }

    fn parked(&self, shard: ShardId) -> EventKind {
        let reason = self.state.park_reason.expect("R1: a parked shard has a reason");
        EventKind::ShardParked { shard, reason }
    }
}

impl RunUpdate {
    /// What a watcher is told of this change of a run. Nothing, of a step of a registration before
    /// the last, and of what is cleared away after a run has ended.
    #[must_use]
    pub fn event(&self) -> Option<EventKind> {
        let log = self.log.filter(|log| log.result() == OpResult::Completed)?;
        Some(match log.kind() {
            RunOpKind::RegisterShards => EventKind::RunActivated {
                shard_count: self.root_shards.as_ref().map_or(0, Vec::len),
            },
            RunOpKind::Complete => EventKind::RunCompleted,
            RunOpKind::Fail => EventKind::RunFailed,
            RunOpKind::Cancel => EventKind::RunCancelled,
        })
    }
}

impl EventKind {
    /// Whether it concerns a shard.
    #[must_use]
    pub const fn is_shard_event(&self) -> bool {
        match self {
            Self::ShardAcquired { .. }
            | Self::ShardLeaseRenewed { .. }
            | Self::ShardReleased { .. }
            | Self::ShardLeaseRevoked { .. }
            | Self::ShardCheckpointed { .. }
            | Self::ShardResidualCreated { .. }
            | Self::ShardUnparked { .. }
            | Self::ShardCompleted { .. }
            | Self::ShardParked { .. }
            | Self::ShardSplit { .. } => true,
            Self::RunCreated
            | Self::RunActivated { .. }
            | Self::RunCompleted
            | Self::RunFailed
            | Self::RunCancelled
            | Self::RunDeleted => false,
        }
    }

    /// Whether it concerns a run as a whole.
    #[must_use]
    pub const fn is_run_event(&self) -> bool {
        !self.is_shard_event()
    }

    /// Whether it ends what it concerns.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        match self {
            Self::ShardCompleted { .. }
            | Self::ShardParked { .. }
            | Self::ShardSplit { .. }
            | Self::RunCompleted
            | Self::RunFailed
            | Self::RunCancelled
            | Self::RunDeleted => true,
            Self::ShardAcquired { .. }
            | Self::ShardLeaseRenewed { .. }
            | Self::ShardReleased { .. }
            | Self::ShardLeaseRevoked { .. }
            | Self::ShardCheckpointed { .. }
            | Self::ShardResidualCreated { .. }
            | Self::ShardUnparked { .. }
            | Self::RunCreated
            | Self::RunActivated { .. } => false,
        }
    }
}

/// An event with what is needed to route and order it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StateTransitionEvent {
    /// Whose.
    pub tenant: TenantId,
    /// In which run.
    pub run: RunId,
    /// When.
    pub at: LogicalTime,
    /// What.
    pub kind: EventKind,
}

/// Takes in the events of one tenant.
#[derive(Clone, Debug, Default)]
pub struct EventCollector {
    events: Vec<StateTransitionEvent>,
    tenant: Option<TenantId>,
    max: Option<usize>,
}

impl EventCollector {
    /// An empty collector.
    #[must_use]
    pub const fn new() -> Self {
        Self { events: Vec::new(), tenant: None, max: None }
    }

    /// A collector with room for `capacity` events before it allocates.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { events: Vec::with_capacity(capacity), ..Self::new() }
    }

    /// A collector that keeps at most `max` events and drops what comes after.
    #[must_use]
    pub const fn with_max_capacity(max: usize) -> Self {
        Self { events: Vec::new(), tenant: None, max: Some(max) }
    }

    /// Runs `f` while this collector stands in the slot that `slot` finds in `owner`, and takes it
    /// back afterwards, also when `f` panics. For backends: it is what their `with_events` does.
    pub fn lend<T, R>(
        &mut self,
        owner: &mut T,
        slot: impl Fn(&mut T) -> &mut Option<Self>,
        f: impl FnOnce(&mut T) -> R,
    ) -> R {
        struct GiveBack<'g, T, S: Fn(&mut T) -> &mut Option<EventCollector>> {
            owner: &'g mut T,
            slot: S,
            lender: &'g mut EventCollector,
            before: Option<EventCollector>,
        }
        impl<T, S: Fn(&mut T) -> &mut Option<EventCollector>> Drop for GiveBack<'_, T, S> {
            fn drop(&mut self) {
                let lent = core::mem::replace((self.slot)(self.owner), self.before.take());
                *self.lender = lent.unwrap_or_default();
            }
        }
        let before = slot(owner).replace(core::mem::take(self));
        let guard = GiveBack { owner, slot, lender: self, before };
        f(&mut *guard.owner)
    }

    /// Takes an event in. Returns whether it was kept.
    ///
    /// # Panics
    /// If the event is of another tenant than the first one was.
    pub fn emit(&mut self, event: StateTransitionEvent) -> bool {
        let tenant = *self.tenant.get_or_insert(event.tenant);
        assert!(tenant == event.tenant, "one collector was given the events of two tenants");
        if self.max.is_some_and(|max| self.events.len() >= max) {
            return false;
        }
        self.events.push(event);
        true
    }

    /// All events so far, leaving none.
    pub fn drain(&mut self) -> Vec<StateTransitionEvent> {
        core::mem::take(&mut self.events)
    }

    /// Hands every event to `f`, leaving none, and keeps the memory for the next ones.
    pub fn drain_with(&mut self, f: impl FnMut(StateTransitionEvent)) {
        self.events.drain(..).for_each(f);
    }

    /// Events held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether no event is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The events held, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &StateTransitionEvent> {
        self.events.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(tenant: u8, kind: EventKind) -> StateTransitionEvent {
        StateTransitionEvent {
            tenant: TenantId::from_bytes([tenant; 32]),
            run: RunId::from_raw(1),
            at: LogicalTime::from_raw(1),
            kind,
        }
    }

    #[test]
    fn a_full_collector_drops_and_says_so() {
        let mut collector = EventCollector::with_max_capacity(1);
        assert!(collector.emit(event(1, EventKind::RunCreated)));
        assert!(!collector.emit(event(1, EventKind::RunFailed)));
        assert_eq!(collector.drain(), [event(1, EventKind::RunCreated)]);
        assert!(collector.is_empty() && collector.emit(event(1, EventKind::RunFailed)));
    }

    #[test]
    fn draining_with_a_function_keeps_order_and_empties() {
        let mut collector = EventCollector::with_capacity(2);
        collector.emit(event(1, EventKind::RunCreated));
        collector.emit(event(1, EventKind::RunFailed));
        assert_eq!((collector.len(), collector.iter().len()), (2, 2));
        let mut seen = Vec::new();
        collector.drain_with(|event| seen.push(event.kind));
        assert_eq!(seen, [EventKind::RunCreated, EventKind::RunFailed]);
        assert!(collector.is_empty());
    }

    #[test]
    #[should_panic(expected = "two tenants")]
    fn tenants_are_not_mixed() {
        let mut collector = EventCollector::new();
        collector.emit(event(1, EventKind::RunCreated));
        collector.drain();
        collector.emit(event(2, EventKind::RunCreated));
    }

    #[test]
    fn kinds_are_classified() {
        let shard = ShardId::from_raw(1);
        assert!(EventKind::ShardReleased { shard }.is_shard_event());
        assert!(!EventKind::ShardReleased { shard }.is_terminal());
        assert!(EventKind::ShardCompleted { shard }.is_terminal());
        assert!(EventKind::RunActivated { shard_count: 1 }.is_run_event());
        assert!(!EventKind::RunActivated { shard_count: 1 }.is_terminal());
        assert!(EventKind::RunCancelled.is_terminal());
    }

    #[test]
    fn debug_shows_no_key_byte() {
        let last_key = RedactedKey::new(Some(b"hush"));
        let (shard, new_deadline) = (ShardId::from_raw(1), None);
        let kind = EventKind::ShardCheckpointed { shard, last_key, new_deadline };
        let shown = format!("{kind:?}");
        assert!(shown.contains("Some(<4 bytes>)") && !shown.contains("hush"));
    }
}
