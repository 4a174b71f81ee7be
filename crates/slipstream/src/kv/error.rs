//! What can go wrong with a bucket.

/// Why an operation on a bucket failed.
///
/// `Clone`, so that everyone who waits for one result gets it; causes are therefore rendered as text
/// where they enter the crate. No variant carries a key, a value or a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KvError {
    /// There is no connection: `connect` was not called, or `shutdown` was.
    #[error("not connected")]
    NotConnected,
    /// The server could not be reached.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The server refused the credentials, or the operation to them.
    #[error("refused by the server: {0}")]
    Unauthorized(String),
    /// The configuration cannot be used as it stands.
    #[error("bad configuration: {0}")]
    Config(String),
    /// There is no bucket of this name.
    #[error("there is no bucket {bucket:?}")]
    BucketNotFound {
        /// The bucket that was asked for.
        bucket: String,
    },
    /// The name cannot be a bucket's.
    #[error("a bucket's name has letters, digits, `-` and `_` only, 1 to 200 of them")]
    InvalidBucketName,
    /// The text cannot be a key, or a prefix of keys.
    #[error("not a key: {0}")]
    InvalidKey(&'static str),
    /// An empty value is how a versioned delete looks in the log, so it cannot be put.
    #[error("a value must not be empty")]
    EmptyValue,
    /// The value is larger than the server accepts.
    #[error("a value of {len} bytes is over the limit of {max}")]
    ValueTooLarge {
        /// Size that was asked for, in bytes.
        len: usize,
        /// Largest size, in bytes.
        max: usize,
    },
    /// The bucket is full and keeps what it has.
    #[error("the bucket is full: {0}")]
    BucketFull(String),
    /// The key has a value already.
    #[error("the key exists")]
    AlreadyExists,
    /// The key is at another version than the caller's.
    #[error("the key is at another version")]
    RevisionMismatch,
    /// The version was not minted by this kind of store.
    #[error("the version is not one of this store")]
    InvalidVersion,
    /// The log cannot be read on from the cursor. A fold repairs itself by listing the bucket.
    #[error("the cursor has expired: {0}")]
    CursorExpired(CursorExpiry),
    /// The watch has ended; a new one from the last cursor goes on.
    #[error("the watch has ended: {0}")]
    WatchError(String),
    /// A listing ended before it was complete. What had arrived is withheld.
    #[error("the listing was cut short: {received} of {expected} entries, {cause}")]
    ListingCut {
        /// Entries that had arrived.
        received: u64,
        /// Entries that the server had announced.
        expected: u64,
        /// What cut it.
        cause: String,
    },
    /// The connection was lost while an answer was waited for. The operation may or may not have
    /// happened.
    #[error("the connection was lost: {operation}")]
    ConnectionLost {
        /// What was waited for.
        operation: &'static str,
    },
    /// No answer in time. The operation may or may not have happened.
    #[error("no answer within {after_ms} ms: {operation}")]
    Timeout {
        /// What was waited for.
        operation: &'static str,
        /// How long, in milliseconds.
        after_ms: u64,
    },
    /// This store or this server cannot do it.
    #[error("not supported: {0}")]
    Unsupported(&'static str),
    /// Anything else that the backend reported.
    #[error("{operation}: {cause}")]
    Backend {
        /// What was asked.
        operation: &'static str,
        /// What the backend said.
        cause: String,
    },
}

/// How it was found that a cursor's log cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum CursorExpiry {
    /// The bytes are not a cursor of this backend, or one without proof (of an older format).
    #[error("it is not a cursor of this store")]
    Unreadable,
    /// It is of a watch of other keys: how far those are says nothing about these.
    #[error("it is of a watch of other keys")]
    OtherScope,
    /// The bucket was deleted and made again.
    #[error("the bucket was made again")]
    Recreated,
    /// The log forgot updates that the cursor has not seen.
    #[error("the log begins at {first}, the cursor is at {revision}")]
    BelowFloor {
        /// Where the cursor is.
        revision: u64,
        /// Oldest revision that the log may hold.
        first: u64,
    },
    /// The log ends before the cursor, or before where it ended when the cursor was made: it lost
    /// acknowledged updates.
    #[error("the log ends at {last}, and had gone to {revision}")]
    AheadOfLog {
        /// How far the log had gone.
        revision: u64,
        /// Newest revision of the log.
        last: u64,
    },
    /// The log has another message where the cursor saw one, or none though it is the key's newest.
    #[error("the log does not have the message that was at {revision}")]
    WitnessDisagrees {
        /// Revision of the message.
        revision: u64,
    },
    /// Tombstones of keys that expired since the cursor may have expired too.
    #[error("the log may have dropped the tombstones of keys that expired meanwhile")]
    TombstonesExpired,
    /// The log has messages of fewer keys than it had: somebody purged some of them, or tombstones
    /// expired.
    #[error("the log has messages of fewer keys than it had")]
    Purged,
    /// A listing did not bring every key that the log has.
    #[error("the listing was not whole")]
    NotWhole,
    /// The fold is in the middle of a repair, whose process ended.
    #[error("a repair was interrupted")]
    Interrupted,
    /// There is no cursor, though the fold has entries: whoever made it came to none.
    #[error("the fold has entries, but no cursor")]
    Missing,
    /// The cursor itself is good; but the log had evicted values before the fold read them, and there is
    /// an artifact that has them.
    #[error("the log had evicted values before they were read")]
    Incomplete,
    /// Nothing that the cursor remembers can be looked up any more.
    #[error("no witness of the cursor is left in the log")]
    Unproven,
}
