//! Reading objects: deltas are applied to bases that were decoded a moment ago.
//!
//! Objects come in an order in which a base is followed by what is built on it, so that with the last
//! few objects at hand each is inflated once.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use clru::{CLruCache, CLruCacheConfig, WeightScale};

use super::inflate::{Compressed, InflateStream, Inflater};
use super::loose::Loose;
use super::pack::{Form, Pack, PackEntry};
use super::{ObjectError, ObjectKind, Place, WHOLE_MAX, delta};

/// Larger objects are read piece by piece, if they are stored whole.
const STREAM_MIN: u64 = 16 << 20;

/// Longer chains of deltas are none that git made.
const CHAIN_MAX: usize = 1 << 16;

/// Which pack, and the offset in it.
type EntryKey = (u64, u64);

struct ByLength;

impl WeightScale<EntryKey, Decoded> for ByLength {
    fn weight(&self, _: &EntryKey, decoded: &Decoded) -> usize {
        decoded.bytes.len() + 128
    }
}

#[derive(Clone)]
struct Decoded {
    kind: ObjectKind,
    bytes: Arc<Vec<u8>>,
}

/// The bytes of an object.
pub(crate) enum Body {
    Whole { bytes: Arc<Vec<u8>>, range: Range<usize> },
    Stream(Box<InflateStream>),
}

impl Body {
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Whole { range, .. } => range.len() as u64,
            Self::Stream(stream) => stream.size(),
        }
    }

    pub(crate) fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, ObjectError> {
        match self {
            Self::Whole { bytes, range } => {
                let bytes = &bytes[range.clone()];
                let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..));
                let rest = rest.unwrap_or_default();
                let len = rest.len().min(buf.len());
                buf[..len].copy_from_slice(&rest[..len]);
                Ok(len)
            }
            Self::Stream(stream) => stream.read_at(offset, buf),
        }
    }
}

/// Decodes objects. One for each thread; its memory is bounded.
pub(crate) struct ObjectReader {
    cache: CLruCache<EntryKey, Decoded, std::hash::RandomState, ByLength>,
    inflater: Inflater,
    delta: Vec<u8>,
}

impl ObjectReader {
    /// Keeps up to `cache_bytes` of decoded objects.
    pub(crate) fn new(cache_bytes: usize) -> Self {
        let capacity = NonZeroUsize::new(cache_bytes.max(1)).expect("at least one");
        let cache = CLruCache::with_config(CLruCacheConfig::new(capacity).with_scale(ByLength));
        Self { cache, inflater: Inflater::default(), delta: Vec::new() }
    }

    /// Opens an object, whatever its size.
    pub(crate) fn open(&mut self, place: &Place) -> Result<(ObjectKind, Body), ObjectError> {
        match place {
            Place::Packed { pack, offset } => {
                let entry = pack.entry(*offset)?;
                if let Form::Whole(kind) = entry.form
                    && entry.len > STREAM_MIN
                {
                    let compressed = Compressed::Packed { pack: Arc::clone(pack), at: entry.data };
                    let stream = InflateStream::new(compressed, 0, entry.len);
                    return Ok((kind, Body::Stream(Box::new(stream))));
                }
                let Decoded { kind, bytes } = self.decode(pack, *offset)?;
                let range = 0..bytes.len();
                Ok((kind, Body::Whole { bytes, range }))
            }
            Place::Loose(path) => {
                let loose = Loose::open(path, &mut self.inflater)?;
                let (kind, header_len) = (loose.head.kind, loose.head.header_len);
                if loose.head.len > STREAM_MIN {
                    return Ok((kind, Body::Stream(Box::new(loose.stream()))));
                }
                let bytes = Arc::new(loose.whole(&mut self.inflater)?);
                let range = header_len..bytes.len();
                Ok((kind, Body::Whole { bytes, range }))
            }
        }
    }

    /// Reads an object whole.
    pub(crate) fn whole(&mut self, place: &Place) -> Result<(ObjectKind, Whole), ObjectError> {
        match self.open(place)? {
            (kind, Body::Whole { bytes, range }) => Ok((kind, Whole { bytes, range })),
            (_, Body::Stream(stream)) => Err(ObjectError::TooLarge { size: stream.size() }),
        }
    }

    /// The size of a loose object.
    pub(crate) fn size_of_loose(&mut self, path: &Path) -> Result<u64, ObjectError> {
        Ok(Loose::open(path, &mut self.inflater)?.head.len)
    }

    /// Decodes a packed object, and keeps it and what it is built on.
    fn decode(&mut self, pack: &Arc<Pack>, offset: u64) -> Result<Decoded, ObjectError> {
        let key = |offset| (pack.unique_id(), offset);
        let mut deltas: Vec<(u64, PackEntry)> = Vec::new();
        let mut at = offset;
        let mut decoded = loop {
            if let Some(known) = self.cache.get(&key(at)) {
                break known.clone();
            }
            let entry = pack.entry(at)?;
            match entry.form {
                Form::Whole(kind) => {
                    let bytes = self.inflate(pack, &entry)?;
                    let decoded = Decoded { kind, bytes: Arc::new(bytes) };
                    self.keep(key(at), &decoded);
                    break decoded;
                }
                Form::Delta { base } => {
                    if deltas.len() == CHAIN_MAX {
                        return Err(ObjectError::Corrupt("a chain of deltas that does not end"));
                    }
                    deltas.push((at, entry));
                    at = base;
                }
            }
        };
        while let Some((at, entry)) = deltas.pop() {
            let mut delta = std::mem::take(&mut self.delta);
            let len = whole_len(entry.len)?;
            let input = pack.compressed(entry.data)?;
            let instructions = self.inflater.exactly_into(input, len, &mut delta)?;
            let bytes = delta::apply(&decoded.bytes, instructions, WHOLE_MAX)?;
            self.delta = delta;
            decoded = Decoded { kind: decoded.kind, bytes: Arc::new(bytes) };
            self.keep(key(at), &decoded);
        }
        Ok(decoded)
    }

    fn inflate(&mut self, pack: &Pack, entry: &PackEntry) -> Result<Vec<u8>, ObjectError> {
        self.inflater.exactly(pack.compressed(entry.data)?, whole_len(entry.len)?)
    }

    fn keep(&mut self, key: EntryKey, decoded: &Decoded) {
        // One that is larger than the cache is not kept.
        self.cache.put_with_weight(key, decoded.clone()).ok();
    }
}

/// The bytes of an object that is in memory.
pub(crate) struct Whole {
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl std::ops::Deref for Whole {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

fn whole_len(len: u64) -> Result<usize, ObjectError> {
    if len > WHOLE_MAX {
        return Err(ObjectError::TooLarge { size: len });
    }
    Ok(len as usize)
}
