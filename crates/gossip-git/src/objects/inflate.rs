//! zlib streams: a whole one of known length, the first bytes of one, or piece by piece.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use flate2::{Decompress, FlushDecompress, Status};

use super::ObjectError;
use super::pack::Pack;

const BAD: ObjectError = ObjectError::Corrupt("its compressed bytes");

/// Compressed bytes taken at a time.
const INPUT: usize = 64 << 10;

/// Inflates one stream after the other. Its memory stays.
pub(crate) struct Inflater(Decompress);

impl Default for Inflater {
    fn default() -> Self {
        Self(Decompress::new(true))
    }
}

impl Inflater {
    /// The stream at the front of `input`, which must have exactly `len` bytes.
    pub(crate) fn exactly(&mut self, input: &[u8], len: usize) -> Result<Vec<u8>, ObjectError> {
        let mut out = Vec::new();
        self.exactly_into(input, len, &mut out)?;
        out.truncate(len);
        Ok(out)
    }

    /// The same, at the front of `out`, which only ever grows: a buffer that is used again is neither
    /// taken nor cleared anew. (`decompress_vec` clears all that a vector has room for, each time.)
    pub(crate) fn exactly_into<'o>(
        &mut self,
        input: &[u8],
        len: usize,
        out: &'o mut Vec<u8>,
    ) -> Result<&'o [u8], ObjectError> {
        // One more, so that a longer stream shows, and an empty one has room to end.
        let room = len.saturating_add(1);
        if out.len() < room {
            let too_large = |_| ObjectError::TooLarge { size: len as u64 };
            out.try_reserve_exact(room - out.len()).map_err(too_large)?;
            out.resize(room, 0);
        }
        self.0.reset(true);
        let status = self.0.decompress(input, &mut out[..room], FlushDecompress::Finish);
        match status {
            Ok(Status::StreamEnd) if self.0.total_out() == len as u64 => Ok(&out[..len]),
            _ => Err(BAD),
        }
    }

    /// Fills `out` with the first bytes of the stream; how many there are, if they are fewer.
    pub(crate) fn head(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, ObjectError> {
        self.0.reset(true);
        let input = &input[..input.len().min(INPUT)];
        self.0.decompress(input, out, FlushDecompress::None).map_err(|_| BAD)?;
        Ok(self.0.total_out() as usize)
    }
}

/// Where a stream's compressed bytes are.
pub(crate) enum Compressed {
    Packed { pack: Arc<Pack>, at: u64 },
    Loose(File),
}

impl Compressed {
    /// Up to [`INPUT`] bytes from `offset` on, through `buf` if they have to be read.
    fn bytes<'b>(&'b self, offset: u64, buf: &'b mut Vec<u8>) -> Result<&'b [u8], ObjectError> {
        match self {
            Self::Packed { pack, at } => {
                let rest = pack.compressed(*at + offset)?;
                Ok(&rest[..rest.len().min(INPUT)])
            }
            Self::Loose(file) => {
                buf.resize(INPUT, 0);
                let read = file.read_at(buf, offset).map_err(ObjectError::Io)?;
                Ok(&buf[..read])
            }
        }
    }
}

/// A large object, read piece by piece. Reading backwards starts over.
pub(crate) struct InflateStream {
    compressed: Compressed,
    state: Decompress,
    input: Vec<u8>,
    skipped: Vec<u8>,
    /// Bytes before the object's first.
    header_len: u64,
    size: u64,
}

impl InflateStream {
    pub(crate) fn new(compressed: Compressed, header_len: u64, size: u64) -> Self {
        let (input, skipped) = (Vec::new(), Vec::new());
        Self { compressed, state: Decompress::new(true), input, skipped, header_len, size }
    }

    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, ObjectError> {
        let room = self.size.saturating_sub(offset).min(buf.len() as u64) as usize;
        if room == 0 {
            return Ok(0);
        }
        let from = offset + self.header_len;
        if from < self.state.total_out() {
            self.state.reset(true);
        }
        let mut skipped = std::mem::take(&mut self.skipped);
        skipped.resize(INPUT, 0);
        while self.state.total_out() < from {
            let missing = (from - self.state.total_out()).min(INPUT as u64) as usize;
            self.inflate(&mut skipped[..missing])?;
        }
        self.skipped = skipped;
        self.inflate(&mut buf[..room])
    }

    /// Some of the bytes that come next, at least one.
    fn inflate(&mut self, out: &mut [u8]) -> Result<usize, ObjectError> {
        let Self { compressed, state, input, .. } = self;
        let before = state.total_out();
        while state.total_out() == before {
            let bytes = compressed.bytes(state.total_in(), input)?;
            let taken = state.total_in();
            state.decompress(bytes, out, FlushDecompress::None).map_err(|_| BAD)?;
            if state.total_out() == before && state.total_in() == taken {
                return Err(BAD);
            }
        }
        Ok((state.total_out() - before) as usize)
    }
}
