//! A shard whose bytes live in the coordinator's slab.

use gossip_contracts::coordination::{CursorSemantics, PooledCursor, PooledShardSpec};
use gossip_contracts::identity::{ShardId, ShardKey, TenantId};
use gossip_stdx::{ByteSlab, SlabFull};

use crate::op_log::OpLog;
use crate::record::{ShardRecordView, ShardState, ShardUpdate};

/// Slots are released only together with their shard's update, so a shard's slots are live.
const LIVE: &str = "a shard's bytes are in the slab";

#[derive(Debug)]
pub(super) struct Shard {
    pub(super) id: ShardId,
    pub(super) state: ShardState,
    spec: PooledShardSpec,
    cursor: PooledCursor,
    parent: Option<ShardId>,
    spawned: Vec<ShardId>,
    // Last: claims and renewals do not look at it, and it is most of the record.
    op_log: OpLog,
}

impl Shard {
    /// Copies a new record into the slab; takes nothing when it does not fit.
    pub(super) fn store(
        slab: &mut ByteSlab,
        record: &ShardRecordView<'_>,
    ) -> Result<Self, SlabFull> {
        record.assert_invariants();
        let spec = PooledShardSpec::store(slab, record.spec)?;
        let cursor = match PooledCursor::from_update(slab, record.cursor) {
            Ok(cursor) => cursor,
            Err(full) => {
                spec.release(slab).expect(LIVE);
                return Err(full);
            }
        };
        Ok(Self {
            id: record.key.shard,
            state: record.state,
            spec,
            cursor,
            parent: record.parent,
            spawned: record.spawned.to_vec(),
            op_log: record.op_log.clone(),
        })
    }

    /// Gives the slab back what [`Shard::store`] took.
    pub(super) fn release(self, slab: &mut ByteSlab) {
        self.spec.release(slab).expect(LIVE);
        self.cursor.release(slab).expect(LIVE);
    }

    pub(super) fn view<'s>(
        &'s self,
        tenant: TenantId,
        key: ShardKey,
        cursor_semantics: CursorSemantics,
        slab: &'s ByteSlab,
    ) -> ShardRecordView<'s> {
        ShardRecordView {
            tenant,
            key,
            state: self.state,
            spec: self.spec.view(slab).expect(LIVE),
            cursor: self.cursor.view(slab).expect(LIVE),
            cursor_semantics,
            parent: self.parent,
            spawned: &self.spawned,
            op_log: &self.op_log,
        }
    }

    /// Carries out a decision; changes nothing when its bytes do not fit.
    pub(super) fn apply(
        &mut self,
        slab: &mut ByteSlab,
        update: &ShardUpdate<'_>,
    ) -> Result<(), SlabFull> {
        let spec = update.spec.map(|spec| PooledShardSpec::store(slab, spec)).transpose()?;
        if let Some(cursor) = update.cursor
            && let Err(full) = self.cursor.replace(slab, cursor)
        {
            if let Some(spec) = spec {
                spec.release(slab).expect(LIVE);
            }
            return Err(full);
        }
        if let Some(spec) = spec {
            std::mem::replace(&mut self.spec, spec).release(slab).expect(LIVE);
        }
        self.state = update.state;
        self.spawned.extend_from_slice(&update.spawned);
        if let Some(entry) = update.log {
            self.op_log.push_back_overwrite(entry);
        }
        Ok(())
    }
}
