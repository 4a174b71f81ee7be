//! What a caller may choose. All of it is part of the policy hash.

use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher};

use crate::limits;

/// Which encodings are looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoding {
    /// Base64, standard and URL-safe.
    pub base64: bool,
    /// `%41`.
    pub percent: bool,
    /// `\x41` and `\u0041`.
    pub escapes: bool,
    /// Two hexadecimal digits a byte.
    pub hex: bool,
    /// UTF-16 of either byte order.
    pub utf16: bool,
    /// How many encodings may be on top of each other; at most
    /// [`MAX_DECODE_DEPTH`](limits::MAX_DECODE_DEPTH).
    pub max_depth: u8,
}

impl Default for Decoding {
    fn default() -> Self {
        let (base64, percent, escapes, hex, utf16) = (true, true, true, true, true);
        Self { base64, percent, escapes, hex, utf16, max_depth: 3 }
    }
}

impl Decoding {
    /// Bytes as they are.
    pub const NONE: Self = Self {
        base64: false,
        percent: false,
        escapes: false,
        hex: false,
        utf16: false,
        max_depth: 0,
    };
}

/// What becomes of a value whose checksum is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadChecksum {
    /// It is reported with low confidence.
    #[default]
    Distrust,
    /// It is not reported.
    Drop,
}

/// How an engine scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Encodings.
    pub decoding: Decoding,
    /// Wrong checksums.
    pub bad_checksum: BadChecksum,
    /// Whether `gossip:allow` and `gitleaks:allow` in a line silence it.
    pub allow_comments: bool,
    /// Whether what only a local configuration or a comment allows is reported, marked as silenced.
    pub report_silenced: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            decoding: Decoding::default(),
            bad_checksum: BadChecksum::default(),
            allow_comments: true,
            report_silenced: false,
        }
    }
}

/// With the engine's version and bounds, which decide what is found as much as the options do.
impl CanonicalBytes for Options {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(&limits::ENGINE_VERSION);
        for limit in [
            limits::SEGMENT_LEN,
            limits::CONTEXT_BEFORE,
            limits::CONTEXT_AFTER,
            limits::MAX_MATCH_LEN,
            limits::MAX_ENCODED_RUN_LEN,
            limits::MIN_BASE64_RUN_LEN,
            limits::MIN_UTF16_RUN_CHARS,
            limits::MAX_NOTES_LEN,
            limits::NEARBY,
            crate::literals::MAX_REACH,
        ] {
            hasher.value(&(limit as u64));
        }
        let Decoding { base64, percent, escapes, hex, utf16, max_depth } = self.decoding;
        for enabled in [base64, percent, escapes, hex, utf16] {
            hasher.value(&u8::from(enabled));
        }
        hasher.value(&max_depth.min(limits::MAX_DECODE_DEPTH));
        hasher.value(&(self.bad_checksum as u8)).value(&u8::from(self.allow_comments));
        hasher.value(&u8::from(self.report_silenced));
    }
}
