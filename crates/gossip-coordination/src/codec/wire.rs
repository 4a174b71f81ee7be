//! The pieces of which records are made, written and read.

use super::error::{CodecError, RecordKind};
use crate::op_log::{OpLogEntry, OpResult, OperationLog};
use gossip_contracts::identity::{LogicalTime, OpId, ShardId};

/// Appends fields to a buffer that the caller keeps.
pub(super) struct Writer<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> Writer<'o> {
    /// Empties `out` and starts a record in it.
    pub(super) fn begin(kind: RecordKind, out: &'o mut Vec<u8>) -> Self {
        out.clear();
        out.extend([kind as u8, kind.newest_version()]);
        Self { out }
    }

    /// Ends the record with its checksum.
    pub(super) fn finish(self) {
        let crc = crc32fast::hash(self.out);
        self.out.extend(crc.to_le_bytes());
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    pub(super) fn u8(&mut self, value: u8) -> &mut Self {
        self.raw(&[value])
    }

    pub(super) fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn u64(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let len = u32::try_from(bytes.len()).expect("a field is shorter than 4 GiB");
        self.u32(len).raw(bytes)
    }

    pub(super) fn option<T>(
        &mut self,
        value: Option<T>,
        write: impl FnOnce(&mut Self, T),
    ) -> &mut Self {
        self.u8(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
        self
    }

    /// Counts as it goes and writes the count in front afterwards.
    pub(super) fn list<T>(
        &mut self,
        items: impl Iterator<Item = T>,
        write: impl Fn(&mut Self, T),
    ) -> &mut Self {
        let at = self.out.len();
        self.u32(0);
        let mut count = 0u32;
        for item in items {
            write(self, item);
            count += 1;
        }
        self.out[at..at + 4].copy_from_slice(&count.to_le_bytes());
        self
    }

    pub(super) fn shard_ids(&mut self, ids: impl Iterator<Item = ShardId>) -> &mut Self {
        self.list(ids, |w, id| {
            w.u64(id.as_raw());
        })
    }

    pub(super) fn op_log<K: Copy>(
        &mut self,
        entries: impl Iterator<Item = OpLogEntry<K>>,
        kind_byte: impl Fn(K) -> u8,
    ) -> &mut Self {
        self.list(entries, |w, entry| {
            w.u64(entry.op_id().as_raw())
                .u8(kind_byte(entry.kind()))
                .u8(entry.result() as u8)
                .u64(entry.payload_hash())
                .u64(entry.executed_at().as_raw());
        })
    }
}

/// Takes fields off the front of what remains. Every method names the field for its errors.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    version: u8,
}

impl<'a> Reader<'a> {
    /// Checks kind, version and checksum, in this order: the checksum belongs to the version.
    pub(super) fn begin(kind: RecordKind, bytes: &'a [u8]) -> Result<Self, CodecError> {
        let [found_kind, found_version, ..] = *bytes else {
            return Err(CodecError::Truncated { field: "header" });
        };
        if found_kind != kind as u8 {
            return Err(CodecError::WrongKind { expected: kind, found: found_kind });
        }
        let newest = kind.newest_version();
        if found_version > newest {
            return Err(CodecError::NewerVersion { kind, found: found_version, newest });
        }
        if found_version == 0 {
            return Err(CodecError::UnknownVersion { found: found_version });
        }
        let (body, crc) = bytes[2..]
            .split_last_chunk()
            .map(|(fields, crc)| (fields, u32::from_le_bytes(*crc)))
            .ok_or(CodecError::Truncated { field: "checksum" })?;
        if crc32fast::hash(&bytes[..2 + body.len()]) != crc {
            return Err(CodecError::ChecksumMismatch);
        }
        Ok(Self { rest: body, version: found_version })
    }

    /// The format version of the record.
    pub(super) const fn version(&self) -> u8 {
        self.version
    }

    /// Checks that nothing remains.
    pub(super) fn finish(self) -> Result<(), CodecError> {
        match self.rest.len() {
            0 => Ok(()),
            count => Err(CodecError::TrailingBytes { count }),
        }
    }

    fn slice(&mut self, field: &'static str, len: usize) -> Result<&'a [u8], CodecError> {
        let (taken, rest) =
            self.rest.split_at_checked(len).ok_or(CodecError::Truncated { field })?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(
        &mut self,
        field: &'static str,
    ) -> Result<[u8; N], CodecError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(CodecError::Truncated { field })?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self, field: &'static str) -> Result<u8, CodecError> {
        let [byte] = self.array(field)?;
        Ok(byte)
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, CodecError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64, CodecError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// A u64 for which zero means "unset".
    pub(super) fn set_u64(&mut self, field: &'static str) -> Result<u64, CodecError> {
        match self.u64(field)? {
            0 => Err(CodecError::Zero { field }),
            value => Ok(value),
        }
    }

    /// A time that is set.
    pub(super) fn time(&mut self, field: &'static str) -> Result<LogicalTime, CodecError> {
        Ok(LogicalTime::from_raw(self.set_u64(field)?))
    }

    pub(super) fn discriminant<T>(
        &mut self,
        field: &'static str,
        from_raw: impl FnOnce(u8) -> Option<T>,
    ) -> Result<T, CodecError> {
        let value = self.u8(field)?;
        from_raw(value).ok_or(CodecError::BadDiscriminant { field, value })
    }

    pub(super) fn option<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T, CodecError>,
    ) -> Result<Option<T>, CodecError> {
        match self.u8(field)? {
            0 => Ok(None),
            1 => read(self).map(Some),
            value => Err(CodecError::BadDiscriminant { field, value }),
        }
    }

    /// A length or count of at most `max`. The limit is checked before anything is made of it.
    fn size(&mut self, field: &'static str, max: usize) -> Result<usize, CodecError> {
        let size = self.u32(field)? as usize;
        if size > max {
            return Err(CodecError::LimitExceeded { field, size, max });
        }
        Ok(size)
    }

    pub(super) fn bytes(
        &mut self,
        field: &'static str,
        max: usize,
    ) -> Result<&'a [u8], CodecError> {
        let len = self.size(field, max)?;
        self.slice(field, len)
    }

    /// Reads at most `max` ids into `ids`, which grows only for ids that are there.
    pub(super) fn shard_ids(
        &mut self,
        field: &'static str,
        max: usize,
        ids: &mut Vec<ShardId>,
    ) -> Result<(), CodecError> {
        let count = self.size(field, max)?;
        let (raw, []) = self.slice(field, count * 8)?.as_chunks() else {
            unreachable!("the slice is a multiple of eight bytes long")
        };
        ids.clear();
        ids.extend(raw.iter().map(|&id| ShardId::from_raw(u64::from_le_bytes(id))));
        Ok(())
    }

    /// Reads a log that fits into `log`.
    pub(super) fn op_log<K: Copy, const N: usize>(
        &mut self,
        log: &mut OperationLog<K, N>,
        kind_from_raw: impl Fn(u8) -> Option<K>,
    ) -> Result<(), CodecError> {
        log.clear();
        for _ in 0..self.size("op-log", N)? {
            let op_id = OpId::from_raw(self.u64("op-log id")?);
            let kind = self.discriminant("op-log kind", &kind_from_raw)?;
            let result = self.discriminant("op-log result", OpResult::from_raw)?;
            let hash = self.set_u64("op-log payload hash")?;
            let at = self.time("op-log time")?;
            log.push_back_overwrite(OpLogEntry::new(op_id, kind, result, hash, at));
        }
        Ok(())
    }
}
