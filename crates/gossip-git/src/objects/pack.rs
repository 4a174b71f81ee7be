//! One pack and its index.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::odb::pack;
use pack::data::entry::Header;

use super::{ObjectError, ObjectKind};

/// A pack with its index, both mapped into memory.
pub(crate) struct Pack {
    id: u64,
    index: pack::index::File,
    data: pack::data::File,
}

/// What an entry of a pack begins with.
pub(crate) struct PackEntry {
    pub(crate) form: Form,
    /// Inflated, in the form that it is stored in.
    pub(crate) len: u64,
    /// Where its compressed bytes begin.
    pub(crate) data: u64,
}

/// How an object is stored.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Whole(ObjectKind),
    /// As instructions over the object at this offset.
    Delta {
        base: u64,
    },
}

impl Pack {
    /// Opens the pack of the index at `path`.
    pub(crate) fn open(path: &Path, hash: HashKind) -> Result<Self, ObjectError> {
        let bad_index = |_| ObjectError::Corrupt("a pack's index");
        let index = pack::index::File::at(path, hash).map_err(bad_index)?;
        let bad_pack = |_| ObjectError::Corrupt("a pack's header");
        let data = pack::data::File::at(path.with_extension("pack"), hash).map_err(bad_pack)?;
        if data.num_objects() != index.num_objects() {
            return Err(ObjectError::Corrupt("a pack's index, which is another's"));
        }
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Ok(Self { id, index, data })
    }

    /// No other pack that this process opens has the same.
    pub(crate) const fn unique_id(&self) -> u64 {
        self.id
    }

    pub(crate) fn path(&self) -> &Path {
        self.index.path()
    }

    /// Whether what its objects name may not have been fetched.
    pub(crate) fn is_promised(&self) -> bool {
        self.path().with_extension("promisor").exists()
    }

    pub(crate) fn len(&self) -> u32 {
        self.index.num_objects()
    }

    /// The object's position in the index.
    pub(crate) fn find(&self, id: &gix::oid) -> Option<u32> {
        self.index.lookup(id)
    }

    /// The object at a position of the index.
    pub(crate) fn id(&self, position: u32) -> ObjectId {
        self.index.oid_at_index(position).to_owned()
    }

    /// Where the object at a position of the index is.
    pub(crate) fn offset(&self, position: u32) -> u64 {
        self.index.pack_offset_at_index(position)
    }

    /// The entry at an offset.
    pub(crate) fn entry(&self, offset: u64) -> Result<PackEntry, ObjectError> {
        const BAD: ObjectError = ObjectError::Corrupt("the header of a pack's entry");
        if offset >= self.data.pack_end() as u64 {
            return Err(BAD);
        }
        let entry = self.data.entry(offset).map_err(|_| BAD)?;
        let form = match entry.header {
            Header::Blob => Form::Whole(ObjectKind::Blob),
            Header::Tree => Form::Whole(ObjectKind::Tree),
            Header::Commit => Form::Whole(ObjectKind::Commit),
            Header::Tag => Form::Whole(ObjectKind::Tag),
            Header::OfsDelta { base_distance } => {
                let base = offset.checked_sub(base_distance).filter(|_| base_distance > 0);
                Form::Delta { base: base.ok_or(BAD)? }
            }
            // A pack on a disk has the bases of its deltas.
            Header::RefDelta { base_id } => {
                Form::Delta { base: self.offset(self.find(&base_id).ok_or(BAD)?) }
            }
        };
        Ok(PackEntry { form, len: entry.decompressed_size, data: entry.data_offset })
    }

    /// The pack's bytes from `offset` on: a compressed stream is at their front.
    pub(crate) fn compressed(&self, offset: u64) -> Result<&[u8], ObjectError> {
        let bytes = self.data.entry_slice(offset..self.data.pack_end() as u64);
        bytes.filter(|bytes| !bytes.is_empty()).ok_or(ObjectError::Corrupt("the end of a pack"))
    }
}
