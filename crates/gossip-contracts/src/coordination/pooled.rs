//! Ranges and cursors whose bytes live in a shared [`ByteSlab`], so that updating one allocates
//! nothing.
//!
//! A pooled value is only as good as its slab: reading it through another slab, or after it was
//! released, is a [`StaleSlot`].

use gossip_stdx::{ByteSlab, ByteSlot, SlabFull, StaleSlot};

use super::cursor::CursorUpdate;
use super::shard_spec::ShardSpecRef;

/// A key range in a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PooledShardSpec {
    start: ByteSlot,
    end: ByteSlot,
    metadata: ByteSlot,
}

impl PooledShardSpec {
    /// Slots of the slab that one range takes.
    pub const SLOTS: usize = 3;

    /// Copies a range into the slab; takes nothing when it does not fit.
    pub fn store(slab: &mut ByteSlab, spec: ShardSpecRef<'_>) -> Result<Self, SlabFull> {
        let [start, end, metadata] =
            store_all(slab, [Some(spec.start()), Some(spec.end()), Some(spec.metadata())])?
                .map(|slot| slot.expect("every field was given"));
        Ok(Self { start, end, metadata })
    }

    /// The range's bytes.
    pub fn view<'s>(&self, slab: &'s ByteSlab) -> Result<ShardSpecRef<'s>, StaleSlot> {
        Ok(ShardSpecRef::new(slab.get(self.start)?, slab.get(self.end)?, slab.get(self.metadata)?))
    }

    /// Gives the bytes back to the slab.
    pub fn release(self, slab: &mut ByteSlab) -> Result<(), StaleSlot> {
        slab.free(self.start)?;
        slab.free(self.end)?;
        slab.free(self.metadata)
    }
}

/// A cursor in a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PooledCursor {
    last_key: Option<ByteSlot>,
    token: Option<ByteSlot>,
}

impl PooledCursor {
    /// The cursor of a shard on which nothing has been done; takes no slot.
    #[must_use]
    pub const fn initial() -> Self {
        Self { last_key: None, token: None }
    }

    /// Copies a cursor into the slab; takes nothing when it does not fit.
    pub fn from_update(slab: &mut ByteSlab, cursor: CursorUpdate<'_>) -> Result<Self, SlabFull> {
        let [last_key, token] = store_all(slab, [cursor.last_key(), cursor.token()])?;
        Ok(Self { last_key, token })
    }

    /// The last key that was handled.
    pub fn last_key<'s>(&self, slab: &'s ByteSlab) -> Result<Option<&'s [u8]>, StaleSlot> {
        self.last_key.map(|slot| slab.get(slot)).transpose()
    }

    /// The cursor's bytes.
    pub fn view<'s>(&self, slab: &'s ByteSlab) -> Result<CursorUpdate<'s>, StaleSlot> {
        let token = self.token.map(|slot| slab.get(slot)).transpose()?;
        Ok(CursorUpdate::new(self.last_key(slab)?, token))
    }

    /// Becomes `cursor`; stays as it is when that does not fit beside it.
    ///
    /// # Panics
    /// If the cursor's own bytes are not in `slab`.
    pub fn replace(
        &mut self,
        slab: &mut ByteSlab,
        cursor: CursorUpdate<'_>,
    ) -> Result<(), SlabFull> {
        let new = Self::from_update(slab, cursor)?;
        let old = core::mem::replace(self, new);
        old.release(slab).expect("the replaced cursor was in this slab");
        Ok(())
    }

    /// Gives the bytes back to the slab.
    pub fn release(self, slab: &mut ByteSlab) -> Result<(), StaleSlot> {
        for slot in [self.last_key, self.token].into_iter().flatten() {
            slab.free(slot)?;
        }
        Ok(())
    }
}

/// Copies every given field, or none.
fn store_all<const N: usize>(
    slab: &mut ByteSlab,
    fields: [Option<&[u8]>; N],
) -> Result<[Option<ByteSlot>; N], SlabFull> {
    let mut slots = [None; N];
    for (index, field) in fields.into_iter().enumerate() {
        let Some(bytes) = field else { continue };
        match slab.alloc(bytes) {
            Ok(slot) => slots[index] = Some(slot),
            Err(full) => {
                for slot in slots.into_iter().flatten() {
                    slab.free(slot).expect("the slot was taken a moment ago");
                }
                return Err(full);
            }
        }
    }
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounting(slab: &ByteSlab) -> (usize, usize) {
        (slab.live_bytes(), slab.live_slots())
    }

    #[test]
    fn values_come_back_as_they_went_in_and_leave_nothing_behind() {
        let mut slab = ByteSlab::with_capacity(4096);
        let spec = ShardSpecRef::new(b"a", b"b", b"meta");
        let cursor = CursorUpdate::new(Some(b"a1"), Some(b"token"));
        let pooled_spec = PooledShardSpec::store(&mut slab, spec).unwrap();
        let pooled_cursor = PooledCursor::from_update(&mut slab, cursor).unwrap();
        assert_eq!(pooled_spec.view(&slab), Ok(spec));
        assert_eq!(pooled_cursor.view(&slab), Ok(cursor));
        assert_eq!(PooledCursor::initial().view(&slab), Ok(CursorUpdate::initial()));
        pooled_spec.release(&mut slab).unwrap();
        pooled_cursor.release(&mut slab).unwrap();
        assert_eq!(accounting(&slab), (0, 0));
        assert!(pooled_spec.view(&slab).is_err() && pooled_cursor.view(&slab).is_err());
    }

    #[test]
    fn a_value_that_does_not_fit_takes_nothing() {
        let mut slab = ByteSlab::with_capacity(256);
        let before = accounting(&slab);
        let big = [0; 200];
        assert!(PooledShardSpec::store(&mut slab, ShardSpecRef::new(b"a", &big, &big)).is_err());
        assert!(
            PooledCursor::from_update(&mut slab, CursorUpdate::new(Some(&big), Some(&big)))
                .is_err()
        );
        assert_eq!(accounting(&slab), before);
    }

    #[test]
    fn another_slab_gives_nothing_away() {
        let mut slab = ByteSlab::with_capacity(256);
        let mut other = ByteSlab::with_capacity(256);
        let spec = PooledShardSpec::store(&mut slab, ShardSpecRef::new(b"a", b"b", b"")).unwrap();
        let _same_place =
            PooledShardSpec::store(&mut other, ShardSpecRef::new(b"x", b"y", b"")).unwrap();
        assert!(spec.view(&other).is_err());
        assert!(spec.release(&mut other).is_err());
        assert!(spec.view(&slab).is_ok());
    }
}
