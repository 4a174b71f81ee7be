//! A bounded store of key ranges behind handles, for staging many shards without many allocations.

use gossip_stdx::{ByteSlab, SlabFull};

use super::pooled::PooledShardSpec;
use super::shard_spec::ShardSpecRef;

/// Names one range in one [`ShardArena`]. Stale after `free` or `clear`, foreign to other arenas;
/// either way it yields nothing rather than another range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShardSpecHandle(PooledShardSpec);

/// Holds up to a fixed number of ranges in a fixed number of bytes.
///
/// ```
/// use gossip_contracts::coordination::{ShardArena, ShardSpecRef};
///
/// let mut arena = ShardArena::with_capacity(16, 4096);
/// let handle = arena.alloc(ShardSpecRef::new(b"a", b"m", b""))?;
/// assert_eq!(arena.get(handle).unwrap().end(), b"m");
/// arena.clear();
/// assert!(arena.get(handle).is_none());
/// # Ok::<(), gossip_stdx::SlabFull>(())
/// ```
#[derive(Debug)]
pub struct ShardArena {
    slab: ByteSlab,
}

impl ShardArena {
    /// An arena for at most `slots` ranges whose keys and metadata take at most `bytes`.
    #[must_use]
    pub fn with_capacity(slots: usize, bytes: usize) -> Self {
        Self { slab: ByteSlab::with_limits(bytes, slots) }
    }

    /// Copies a range into the arena; takes nothing when it does not fit.
    pub fn alloc(&mut self, spec: ShardSpecRef<'_>) -> Result<ShardSpecHandle, SlabFull> {
        PooledShardSpec::store(&mut self.slab, spec).map(ShardSpecHandle)
    }

    /// The range, if the handle is live in this arena.
    #[must_use]
    pub fn get(&self, handle: ShardSpecHandle) -> Option<ShardSpecRef<'_>> {
        handle.0.view(&self.slab).ok()
    }

    /// Drops one range. Returns whether the handle was live in this arena.
    pub fn free(&mut self, handle: ShardSpecHandle) -> bool {
        handle.0.release(&mut self.slab).is_ok()
    }

    /// Drops every range at once.
    pub fn clear(&mut self) {
        self.slab.clear();
    }

    /// Ranges held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slab.live_slots()
    }

    /// Whether no range is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held, rounded up as the slab does.
    #[must_use]
    pub fn live_bytes(&self) -> usize {
        self.slab.live_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_bytes_are_both_limits() {
        let mut few = ShardArena::with_capacity(1, 4096);
        few.alloc(ShardSpecRef::new(b"a", b"b", b"")).unwrap();
        assert!(few.alloc(ShardSpecRef::new(b"b", b"c", b"")).is_err());
        assert_eq!(few.len(), 1);

        let mut small = ShardArena::with_capacity(16, 64);
        let before = small.live_bytes();
        assert!(small.alloc(ShardSpecRef::new(b"a", &[b'b'; 65], b"")).is_err());
        assert_eq!((small.len(), small.live_bytes()), (0, before));
    }

    #[test]
    fn freed_cleared_and_foreign_handles_yield_nothing() {
        let mut arena = ShardArena::with_capacity(4, 4096);
        let mut other = ShardArena::with_capacity(4, 4096);
        let freed = arena.alloc(ShardSpecRef::new(b"a", b"b", b"")).unwrap();
        let foreign = other.alloc(ShardSpecRef::new(b"a", b"b", b"")).unwrap();
        assert!(arena.free(freed) && !arena.free(freed) && !arena.free(foreign));
        assert!(arena.is_empty() && arena.live_bytes() == 0);
        let reused = arena.alloc(ShardSpecRef::new(b"x", b"y", b"")).unwrap();
        assert!(!arena.is_empty() && arena.live_bytes() == 16);
        assert!(arena.get(freed).is_none() && arena.get(foreign).is_none());
        assert_eq!(arena.get(reused).unwrap().start(), b"x");
        arena.clear();
        assert!(arena.get(reused).is_none() && arena.is_empty());
        assert_eq!(other.get(foreign).unwrap().start(), b"a");
    }
}
