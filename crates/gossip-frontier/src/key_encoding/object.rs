//! Objects of an object store as keys.

use core::fmt;

use gossip_contracts::coordination::MAX_KEY_SIZE;

use super::{KeyBuf, KeyEncoding};

/// No bucket name holds it, and it sorts before every byte that one may hold.
const SEPARATOR: u8 = 0;

/// One object: bucket, a zero byte, then the object's key as it is.
///
/// Buckets follow each other as plain strings do (`logs` before `logs-old`), and inside a bucket
/// the order is the byte order in which stores list. An empty key is the place before a bucket's
/// first object, so `[(b, ""), …)` is how a range over a bucket begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey<'a> {
    // Field order is the order of the key.
    bucket: &'a str,
    key: &'a [u8],
}

impl<'a> ObjectKey<'a> {
    /// The key of the object `key` in `bucket`. Checks, in this order: the bucket is there, it
    /// holds no zero byte, everything fits.
    pub fn try_new(bucket: &'a str, key: &'a [u8]) -> Result<Self, ObjectKeyError> {
        if bucket.is_empty() {
            return Err(ObjectKeyError::EmptyBucket);
        }
        if bucket.as_bytes().contains(&SEPARATOR) {
            return Err(ObjectKeyError::SeparatorInBucket);
        }
        let size = bucket.len() + 1 + key.len();
        if size > MAX_KEY_SIZE {
            return Err(ObjectKeyError::TooLarge { size, max: MAX_KEY_SIZE });
        }
        Ok(Self { bucket, key })
    }

    /// The bucket, the key's first component.
    #[must_use]
    pub const fn bucket(&self) -> &'a str {
        self.bucket
    }

    /// The object's key in its bucket.
    #[must_use]
    pub const fn key(&self) -> &'a [u8] {
        self.key
    }
}

impl KeyEncoding for ObjectKey<'_> {
    fn encode_into(&self, buf: &mut KeyBuf) {
        buf.copy_from_slice(self.bucket.as_bytes());
        buf.extend_from_slice(&[SEPARATOR]);
        buf.extend_from_slice(self.key);
    }
}

/// The object that `key` encodes, if it encodes one.
#[must_use]
pub fn decode_object_key(key: &[u8]) -> Option<ObjectKey<'_>> {
    let separator = key.iter().position(|&byte| byte == SEPARATOR)?;
    let bucket = core::str::from_utf8(&key[..separator]).ok()?;
    ObjectKey::try_new(bucket, &key[separator + 1..]).ok()
}

/// Shows lengths: buckets and objects may be private.
impl fmt::Debug for ObjectKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectKey")
            .field("bucket", &format_args!("[{} bytes]", self.bucket.len()))
            .field("key", &format_args!("[{} bytes]", self.key.len()))
            .finish()
    }
}

/// Why a bucket and a key do not make an object key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum ObjectKeyError {
    /// No bucket was named.
    #[error("the bucket name is empty")]
    EmptyBucket,
    /// The bucket name would end early.
    #[error("the bucket name holds a zero byte")]
    SeparatorInBucket,
    /// Bucket, separator and key together are longer than a key may be.
    #[error("the object key has {size} bytes with its bucket; at most {max} are allowed")]
    TooLarge {
        /// Bytes of the encoding.
        size: usize,
        max: usize,
    },
}
