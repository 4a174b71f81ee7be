//! Whether bytes are worth reading as text, told from the first of them.
//!
//! Text is what has no NUL byte at its beginning, or has them where UTF-16 has them; decoding that
//! is the engine's. Formats that are known by their first bytes are named, so that a report can say
//! what was left out. A name alone never makes binary what could be text: it decides only if its
//! bytes are not text themselves.

use core::fmt;

use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher};

/// How many bytes of the beginning are looked at; more are ignored.
pub const HEAD_SIZE: usize = 8192;

/// Changes whenever [`binary_reason`] says something else of the same bytes for another cause than
/// its table of formats.
const DETECTOR_VERSION: u32 = 1;

/// What bytes are that are not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum BinaryReason {
    /// An archive, or compressed.
    Archive,
    /// A picture.
    Image,
    /// Sound or film.
    Media,
    /// A program, a library or bytecode.
    Executable,
    /// A database.
    Database,
    /// A font.
    Font,
    /// It has NUL bytes where no text has them.
    NulBytes,
}

impl fmt::Display for BinaryReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Archive => "archive",
            Self::Image => "image",
            Self::Media => "media",
            Self::Executable => "executable",
            Self::Database => "database",
            Self::Font => "font",
            Self::NulBytes => "NUL bytes",
        })
    }
}

/// Why the item that begins with `head` is not text; none if it may be.
///
/// ```
/// use gossip_connectors::binary::{BinaryReason, binary_reason};
///
/// assert_eq!(binary_reason(b"key = value\n"), None);
/// assert_eq!(binary_reason(b"\x7fELF\x02\x01\x01\0"), Some(BinaryReason::Executable));
/// ```
#[must_use]
pub fn binary_reason(head: &[u8]) -> Option<BinaryReason> {
    let head = &head[..head.len().min(HEAD_SIZE)];
    let named = FORMATS.iter().find(|format| format.begins(head));
    let is_named_for_sure = named.is_some_and(Format::is_no_text);
    let has_nul = head.contains(&0);
    if !is_named_for_sure && (!has_nul || looks_like_utf16(head)) {
        return None;
    }
    Some(named.map_or(BinaryReason::NulBytes, |format| format.reason))
}

/// All that decides what [`binary_reason`] says, to be hashed: what was left out as binary is worth
/// another look when this is another.
#[derive(Clone, Copy, Debug)]
pub struct Detector;

impl CanonicalBytes for Detector {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(&DETECTOR_VERSION).value(&(HEAD_SIZE as u64)).value(&(FORMATS.len() as u64));
        for Format { offset, magic, reason } in FORMATS {
            hasher.value(&(*offset as u64)).value(*magic).value(&*reason.to_string());
        }
    }
}

struct Format {
    offset: usize,
    magic: &'static [u8],
    reason: BinaryReason,
}

const fn format(magic: &'static [u8], reason: BinaryReason) -> Format {
    Format { offset: 0, magic, reason }
}

const fn format_at(offset: usize, magic: &'static [u8], reason: BinaryReason) -> Format {
    Format { offset, magic, reason }
}

/// As published by those who made the formats.
const FORMATS: &[Format] = &[
    format(b"PK\x03\x04", BinaryReason::Archive),
    format(b"PK\x05\x06", BinaryReason::Archive),
    format(b"\x1f\x8b\x08", BinaryReason::Archive),
    format(b"BZh", BinaryReason::Archive),
    format(b"\xfd7zXZ\0", BinaryReason::Archive),
    format(b"7z\xbc\xaf\x27\x1c", BinaryReason::Archive),
    format(b"\x28\xb5\x2f\xfd", BinaryReason::Archive),
    format(b"\x04\x22\x4d\x18", BinaryReason::Archive),
    format(b"Rar!\x1a\x07", BinaryReason::Archive),
    format_at(257, b"ustar", BinaryReason::Archive),
    format(b"!<arch>\n", BinaryReason::Archive),
    format(b"\x89PNG\r\n\x1a\n", BinaryReason::Image),
    format(b"\xff\xd8\xff", BinaryReason::Image),
    format(b"GIF87a", BinaryReason::Image),
    format(b"GIF89a", BinaryReason::Image),
    format_at(8, b"WEBP", BinaryReason::Image),
    format(b"\0\0\x01\0", BinaryReason::Image),
    format(b"II*\0", BinaryReason::Image),
    format(b"MM\0*", BinaryReason::Image),
    format(b"BM", BinaryReason::Image),
    format(b"ID3", BinaryReason::Media),
    format(b"OggS\0", BinaryReason::Media),
    format(b"fLaC\0", BinaryReason::Media),
    format_at(8, b"WAVE", BinaryReason::Media),
    format_at(4, b"ftyp", BinaryReason::Media),
    format(b"\x1a\x45\xdf\xa3", BinaryReason::Media),
    format(b"\x7fELF", BinaryReason::Executable),
    format(b"MZ", BinaryReason::Executable),
    format(b"\0asm", BinaryReason::Executable),
    format(b"\xca\xfe\xba\xbe", BinaryReason::Executable),
    format(b"\xcf\xfa\xed\xfe", BinaryReason::Executable),
    format(b"\xce\xfa\xed\xfe", BinaryReason::Executable),
    format(b"SQLite format 3\0", BinaryReason::Database),
    format(b"wOFF\0", BinaryReason::Font),
    format(b"wOF2\0", BinaryReason::Font),
    format(b"OTTO\0", BinaryReason::Font),
    format(b"\0\x01\0\0\0", BinaryReason::Font),
];

impl Format {
    fn begins(&self, head: &[u8]) -> bool {
        head.get(self.offset..).is_some_and(|rest| rest.starts_with(self.magic))
    }

    /// Whether no text begins like this.
    fn is_no_text(&self) -> bool {
        let is_control = |byte: &u8| byte.is_ascii_control() && !b"\t\n\r\x0c\x1b".contains(byte);
        self.magic.iter().any(is_control) || str::from_utf8(self.magic).is_err()
    }
}

/// A byte order mark, or at least half of the pairs with a zero on the same side and hardly any on
/// the other.
fn looks_like_utf16(head: &[u8]) -> bool {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return true;
    }
    let mut zeros = [0_usize; 2];
    let pairs = head.chunks_exact(2);
    let len = pairs.len();
    for pair in pairs {
        // Both zero is no character.
        if pair == [0, 0] {
            return false;
        }
        zeros[0] += usize::from(pair[0] == 0);
        zeros[1] += usize::from(pair[1] == 0);
    }
    let [fewer, more] = [zeros[0].min(zeros[1]), zeros[0].max(zeros[1])];
    len > 0 && more * 2 >= len && fewer * 16 <= len
}

#[cfg(test)]
mod tests {
    use gossip_contracts::identity::PolicyHash;

    use super::*;

    fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn text_is_not_binary() {
        let texts: [&[u8]; 9] = [
            b"",
            b"a",
            b"plain\r\n\ttext\x0c",
            "naïve, 中文, 🙂".as_bytes(),
            b"latin-1: \xe4\xf6\xfc",
            b"\x1b[31mcolour",
            b"BZh is how bzip2 files begin, and this note about them",
            b"MZ, BM, GIF89a, ID3: all could begin a text",
            b"!<arch>\nlooks like a static library, and is a note",
        ];
        for text in texts {
            assert_eq!(binary_reason(text), None, "{text:?}");
        }
    }

    #[test]
    fn utf16_is_text_in_both_orders_with_and_without_a_mark() {
        for text in ["token = abc123", "\u{feff}token", "mostly ASCII, some 中文 too"] {
            assert_eq!(binary_reason(&utf16(text, u16::to_le_bytes)), None, "{text}");
            assert_eq!(binary_reason(&utf16(text, u16::to_be_bytes)), None, "{text}");
        }
        // Cut in the middle of a character, as a head may be.
        assert_eq!(binary_reason(&utf16("abc", u16::to_le_bytes)[..5]), None);
        // With a mark, all else may be without zeros.
        assert_eq!(binary_reason(&utf16("\u{feff}中文", u16::to_be_bytes)), None);
    }

    #[test]
    fn nul_bytes_elsewhere_are_binary() {
        for bytes in [&b"text\0more text that goes on"[..], b"\0", b"\0\0\0\0", b"a\0\0b\0\0c\0\0"]
        {
            assert_eq!(binary_reason(bytes), Some(BinaryReason::NulBytes), "{bytes:?}");
        }
    }

    #[test]
    fn only_the_beginning_counts() {
        let mut bytes = vec![b'x'; HEAD_SIZE];
        bytes.push(0);
        assert_eq!(binary_reason(&bytes), None);
        bytes[HEAD_SIZE - 1] = 0;
        assert_eq!(binary_reason(&bytes), Some(BinaryReason::NulBytes));
    }

    #[test]
    fn known_formats_are_named() {
        for format in FORMATS {
            let mut bytes = vec![b'x'; format.offset];
            bytes.extend_from_slice(format.magic);
            bytes.extend_from_slice(b"\x01\0\0\0\x02\x03");
            assert_eq!(binary_reason(&bytes), Some(format.reason), "{:?}", format.magic);
        }
    }

    /// If this fails, the ledgers of users call files binary that no longer are, or the reverse:
    /// raise `DETECTOR_VERSION`, unless only the table changed, and pin what comes out.
    #[test]
    fn what_is_binary_changes_only_with_the_detectors_identity() {
        let mut verdicts = Vec::new();
        for zeros in 0..=64_usize {
            for odd in [0, 1, 3] {
                let at = |index: usize| (index % 2 == odd % 2 || odd == 3) && index / 2 < zeros;
                let head: Vec<u8> = (0..128).map(|index| b'a' * u8::from(!at(index))).collect();
                for head in [head.clone(), [b"\xff\xfe", &head[..]].concat()] {
                    verdicts.extend(binary_reason(&head).map(|reason| reason.to_string()));
                    verdicts.push("/".to_owned());
                }
            }
        }
        let verdicts = PolicyHash::derive(&*verdicts.concat()).to_string();
        let pinned = "1783685c849bba1d37beec9a77a48937486e35a21d682cb6fe83dcfaba7afdb1";
        assert_eq!(verdicts, pinned);
        let pinned = "1b2f2d7aba4eabc44424049e37c230ec8a1f24284dcf388edbd0d8851a8e9719";
        assert_eq!(PolicyHash::derive(&Detector).to_string(), pinned);
    }

    #[test]
    fn real_files_are_what_they_are() {
        let this_program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(binary_reason(&this_program), Some(BinaryReason::Executable));
        assert_eq!(binary_reason(include_bytes!("binary.rs")), None);
    }
}
