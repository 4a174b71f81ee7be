//! Ranges and cursors whose bytes live in a shared [`ByteSlab`], so that updating one allocates
//! nothing.
//!
//! A pooled value is only as good as its slab: reading it through another slab, or after it was
//! released, is a [`StaleSlot`].

use gossip_stdx::{ByteSlab, ByteSlot, ReplaceError, SlabFull, StaleSlot};

use super::cursor::CursorUpdate;
use super::shard_spec::ShardSpecRef;

/// A key range in a slab: start, end and metadata in one record, as they are read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PooledShardSpec {
    slot: ByteSlot,
    start_len: u32,
    end_len: u32,
}

impl PooledShardSpec {
    /// Copies a range into the slab; takes nothing when it does not fit.
    pub fn store(slab: &mut ByteSlab, spec: ShardSpecRef<'_>) -> Result<Self, SlabFull> {
        let slot = slab.alloc_parts(&[spec.start(), spec.end(), spec.metadata()])?;
        Ok(Self { slot, start_len: length(spec.start()), end_len: length(spec.end()) })
    }

    /// The range's bytes.
    #[inline]
    pub fn view<'s>(&self, slab: &'s ByteSlab) -> Result<ShardSpecRef<'s>, StaleSlot> {
        let (start, rest) = slab.get(self.slot)?.split_at(self.start_len as usize);
        let (end, metadata) = rest.split_at(self.end_len as usize);
        Ok(ShardSpecRef::new(start, end, metadata))
    }

    /// Gives the bytes back to the slab.
    pub fn release(self, slab: &mut ByteSlab) -> Result<(), StaleSlot> {
        slab.free(self.slot)
    }
}

/// A cursor in a slab: last key and token in one record. The initial cursor has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PooledCursor {
    slot: Option<ByteSlot>,
    key_len: Option<u32>,
    has_token: bool,
}

impl PooledCursor {
    /// The cursor of a shard on which nothing has been done; takes no slot.
    #[must_use]
    pub const fn initial() -> Self {
        Self { slot: None, key_len: None, has_token: false }
    }

    /// Copies a cursor into the slab; takes nothing when it does not fit.
    pub fn from_update(slab: &mut ByteSlab, cursor: CursorUpdate<'_>) -> Result<Self, SlabFull> {
        if cursor.is_initial() {
            return Ok(Self::initial());
        }
        let slot = slab.alloc_parts(&parts_of(&cursor))?;
        Ok(Self::at(slot, cursor))
    }

    /// The last key that was handled.
    pub fn last_key<'s>(&self, slab: &'s ByteSlab) -> Result<Option<&'s [u8]>, StaleSlot> {
        Ok(self.view(slab)?.last_key())
    }

    /// The cursor's bytes.
    #[inline]
    pub fn view<'s>(&self, slab: &'s ByteSlab) -> Result<CursorUpdate<'s>, StaleSlot> {
        let Some(slot) = self.slot else {
            return Ok(CursorUpdate::initial());
        };
        let (key, token) = slab.get(slot)?.split_at(self.key_len.unwrap_or(0) as usize);
        Ok(CursorUpdate::new(self.key_len.map(|_| key), self.has_token.then_some(token)))
    }

    /// Becomes `cursor`, in place where it fits; stays as it is when the slab has no room.
    ///
    /// # Panics
    /// If the cursor's own bytes are not in `slab`.
    pub fn replace(
        &mut self,
        slab: &mut ByteSlab,
        cursor: CursorUpdate<'_>,
    ) -> Result<(), SlabFull> {
        const OWN: &str = "the replaced cursor was in this slab";
        *self = match self.slot {
            None => Self::from_update(slab, cursor)?,
            Some(slot) if cursor.is_initial() => {
                slab.free(slot).expect(OWN);
                Self::initial()
            }
            Some(slot) => match slab.replace_parts(slot, &parts_of(&cursor)) {
                Ok(slot) => Self::at(slot, cursor),
                Err(ReplaceError::Full(full)) => return Err(full),
                Err(ReplaceError::Stale(_)) => panic!("{OWN}"),
            },
        };
        Ok(())
    }

    /// Gives the bytes back to the slab.
    pub fn release(self, slab: &mut ByteSlab) -> Result<(), StaleSlot> {
        self.slot.map_or(Ok(()), |slot| slab.free(slot))
    }

    fn at(slot: ByteSlot, cursor: CursorUpdate<'_>) -> Self {
        Self {
            slot: Some(slot),
            key_len: cursor.last_key().map(length),
            has_token: cursor.token().is_some(),
        }
    }
}

fn parts_of<'a>(cursor: &CursorUpdate<'a>) -> [&'a [u8]; 2] {
    [cursor.last_key().unwrap_or_default(), cursor.token().unwrap_or_default()]
}

/// A slab holds less than 4 GiB, so what is in one has such a length.
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("the bytes are in a slab")
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
    fn a_replaced_cursor_is_the_new_one_or_stays() {
        let mut slab = ByteSlab::with_capacity(64);
        let mut pooled = PooledCursor::initial();
        for cursor in [
            CursorUpdate::at(b"k"),
            CursorUpdate::new(Some(b"key"), Some(b"token")),
            CursorUpdate::new(None, Some(b"token")),
            CursorUpdate::new(Some(b""), Some(b"")),
            CursorUpdate::initial(),
            CursorUpdate::at(b"kkk"),
        ] {
            let old = pooled;
            pooled.replace(&mut slab, cursor).unwrap();
            assert_eq!(pooled.view(&slab), Ok(cursor));
            assert!(old.slot.is_none() || old.view(&slab).is_err());
        }
        assert!(pooled.replace(&mut slab, CursorUpdate::at(&[b'k'; 65])).is_err());
        assert_eq!(pooled.view(&slab), Ok(CursorUpdate::at(b"kkk")));
        pooled.release(&mut slab).unwrap();
        assert_eq!(accounting(&slab), (0, 0));
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

    proptest::proptest! {
        /// A pooled cursor says what an owned one says, and its slab holds nothing else.
        #[test]
        fn a_pooled_cursor_follows_an_owned_one(
            steps in proptest::collection::vec(
                (
                    proptest::option::of(proptest::collection::vec(0u8.., 0..40)),
                    proptest::option::of(proptest::collection::vec(0u8.., 0..40)),
                ),
                0..40,
            ),
        ) {
            let mut slab = ByteSlab::with_capacity(1024);
            let mut pooled = PooledCursor::initial();
            for (key, token) in &steps {
                let cursor = CursorUpdate::new(key.as_deref(), token.as_deref());
                pooled.replace(&mut slab, cursor).unwrap();
                proptest::prop_assert_eq!(pooled.view(&slab), Ok(cursor));
                proptest::prop_assert_eq!(pooled.last_key(&slab), Ok(cursor.last_key()));
                proptest::prop_assert_eq!(slab.live_slots(), usize::from(!cursor.is_initial()));
            }
            pooled.release(&mut slab).unwrap();
            proptest::prop_assert_eq!(accounting(&slab), (0, 0));
        }
    }
}
