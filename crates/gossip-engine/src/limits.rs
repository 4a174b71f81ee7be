//! Every bound of the engine, in one place. All of them are part of the policy hash.

use crate::literals::MAX_REACH;

/// Changes whenever the same rules would find something else in the same bytes, or say more of it.
pub const ENGINE_VERSION: u32 = 15;

/// Bytes are judged in segments of this size, counted from the start of the object, so that what is
/// found does not depend on how the bytes arrive.
pub const SEGMENT_LEN: usize = 256 * 1024;
/// What a segment sees of the bytes before it: lines, boundaries, text before a keyword.
pub const CONTEXT_BEFORE: usize = 4 * 1024;
/// What a segment sees of the bytes after it: the rest of a match that starts in it.
pub const CONTEXT_AFTER: usize = 64 * 1024;

/// The longest match. A private key of 16 384 bits is shorter.
pub const MAX_MATCH_LEN: usize = 16 * 1024;
/// The longest encoded run that is decoded, in encoded bytes; of a longer one, its start.
pub const MAX_ENCODED_RUN_LEN: usize = 48 * 1024;
/// Shorter runs of base64 cannot hold a secret that has a shape.
pub const MIN_BASE64_RUN_LEN: usize = 32;
/// Shorter runs of UTF-16 are chance.
pub const MIN_UTF16_RUN_CHARS: usize = 12;
/// How often decoded text is decoded again, at most.
pub const MAX_DECODE_DEPTH: u8 = 4;

/// How much of a file of notes is read word by word, which takes as long as twenty times as much of anything
/// else: more than this is written by programs. It ends with a segment.
pub const MAX_NOTES_LEN: usize = 4 * 1024 * 1024;

/// How far an allow comment, or a keyword that the expression does not contain, may be from the
/// match.
pub const NEARBY: usize = 1024;

/// The size of a compiled regular expression.
pub const MAX_REGEX_BYTES: usize = 2 * 1024 * 1024;
/// The rules of one set.
pub const MAX_RULES: usize = 4096;

const _: () = assert!(MAX_NOTES_LEN.is_multiple_of(SEGMENT_LEN));
const _: () = assert!(CONTEXT_BEFORE >= MAX_REACH + NEARBY);
const _: () = assert!(CONTEXT_AFTER >= MAX_MATCH_LEN + NEARBY);
const _: () = assert!(CONTEXT_AFTER >= MAX_ENCODED_RUN_LEN + NEARBY);
