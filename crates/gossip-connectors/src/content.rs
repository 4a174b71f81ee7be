//! What kind of bytes an item has, told from the first of them.
//!
//! Text is what has no NUL byte at its beginning, has them where UTF-16 has them, or is otherwise
//! printable with few of them between; decoding that is the engine's. Formats that are known by their first bytes are named, so that a report can say
//! what was left out. Bytes that could begin a text make nothing binary by themselves: such a format
//! is named only where the rest is no text either.

use gossip_contracts::connector::{Classifier, ContentKind};
use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher};

/// How many bytes of the beginning are looked at; more are ignored.
pub const HEAD_SIZE: usize = 8192;

/// Changes whenever [`content_kind`] says something else of the same bytes for another cause than
/// its table of formats.
const CLASSIFIER_VERSION: u32 = 3;

/// What Git LFS has a file begin with that stands for one which is elsewhere.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";

/// What the item that begins with `head` is.
///
/// ```
/// use gossip_connectors::content::content_kind;
/// use gossip_contracts::connector::ContentKind;
///
/// assert_eq!(content_kind(b"key = value\n"), ContentKind::Text);
/// assert_eq!(content_kind(b"\x7fELF\x02\x01\x01\0"), ContentKind::Executable);
/// ```
#[must_use]
pub fn content_kind(head: &[u8]) -> ContentKind {
    let head = &head[..head.len().min(HEAD_SIZE)];
    if head.starts_with(LFS_POINTER) {
        return ContentKind::LfsPointer;
    }
    let named = FORMATS.iter().find(|format| format.begins(head));
    let is_named_for_sure = named.is_some_and(Format::is_no_text);
    let has_nul = memchr::memchr(0, head).is_some();
    if !is_named_for_sure && (!has_nul || looks_like_utf16(head) || is_printable_between_nuls(head))
    {
        return ContentKind::Text;
    }
    named.map_or(ContentKind::NulBytes, |format| format.kind)
}

/// [`content_kind`] as a connector's classifier: whatever the key.
#[derive(Clone, Copy, Debug)]
pub struct HeadClassifier;

impl Classifier for HeadClassifier {
    fn kind(&self, _key: &[u8], head: &[u8]) -> ContentKind {
        content_kind(head)
    }
}

impl CanonicalBytes for HeadClassifier {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(&CLASSIFIER_VERSION).value(&(HEAD_SIZE as u64)).value(&(FORMATS.len() as u64));
        for Format { offset, magic, kind } in FORMATS {
            hasher.value(&(*offset as u64)).value(*magic).value(&*kind.to_string());
        }
    }
}

struct Format {
    offset: usize,
    magic: &'static [u8],
    kind: ContentKind,
}

const fn format(magic: &'static [u8], kind: ContentKind) -> Format {
    Format { offset: 0, magic, kind }
}

const fn format_at(offset: usize, magic: &'static [u8], kind: ContentKind) -> Format {
    Format { offset, magic, kind }
}

/// As published by those who made the formats.
const FORMATS: &[Format] = &[
    format(b"PK\x03\x04", ContentKind::Archive),
    format(b"PK\x05\x06", ContentKind::Archive),
    format(b"\x1f\x8b\x08", ContentKind::Archive),
    format(b"BZh", ContentKind::Archive),
    format(b"\xfd7zXZ\0", ContentKind::Archive),
    format(b"7z\xbc\xaf\x27\x1c", ContentKind::Archive),
    format(b"\x28\xb5\x2f\xfd", ContentKind::Archive),
    format(b"\x04\x22\x4d\x18", ContentKind::Archive),
    format(b"Rar!\x1a\x07", ContentKind::Archive),
    format_at(257, b"ustar", ContentKind::Archive),
    format(b"!<arch>\n", ContentKind::Archive),
    format(b"\x89PNG\r\n\x1a\n", ContentKind::Image),
    format(b"\xff\xd8\xff", ContentKind::Image),
    format(b"GIF87a", ContentKind::Image),
    format(b"GIF89a", ContentKind::Image),
    format_at(8, b"WEBP", ContentKind::Image),
    format(b"\0\0\x01\0", ContentKind::Image),
    format(b"II*\0", ContentKind::Image),
    format(b"MM\0*", ContentKind::Image),
    format(b"BM", ContentKind::Image),
    format(b"ID3", ContentKind::Media),
    format(b"OggS\0", ContentKind::Media),
    format(b"fLaC\0", ContentKind::Media),
    format_at(8, b"WAVE", ContentKind::Media),
    format_at(4, b"ftyp", ContentKind::Media),
    format(b"\x1a\x45\xdf\xa3", ContentKind::Media),
    format(b"\x7fELF", ContentKind::Executable),
    format(b"MZ", ContentKind::Executable),
    format(b"\0asm", ContentKind::Executable),
    format(b"\xca\xfe\xba\xbe", ContentKind::Executable),
    format(b"\xcf\xfa\xed\xfe", ContentKind::Executable),
    format(b"\xce\xfa\xed\xfe", ContentKind::Executable),
    format(b"SQLite format 3\0", ContentKind::Database),
    format(b"wOFF\0", ContentKind::Font),
    format(b"wOF2\0", ContentKind::Font),
    format(b"OTTO\0", ContentKind::Font),
    format(b"\0\x01\0\0\0", ContentKind::Font),
];

impl Format {
    fn begins(&self, head: &[u8]) -> bool {
        // Most differ in the first byte already, and a comparison of more is a call.
        head.get(self.offset) == self.magic.first() && head[self.offset..].starts_with(self.magic)
    }

    /// Whether no text begins like this.
    fn is_no_text(&self) -> bool {
        self.magic.iter().any(is_control) || str::from_utf8(self.magic).is_err()
    }
}

/// Whether no text has this byte.
fn is_control(byte: &u8) -> bool {
    byte.is_ascii_control() && !b"\t\n\r\x0c\x1b".contains(byte)
}

/// Names that end with a NUL, as of an environment or of `find -print0`, or a log with a hole in it: text but
/// for NULs, which stand together in places that are few for its length.
fn is_printable_between_nuls(head: &[u8]) -> bool {
    // First what most programs and images fail at within a few bytes.
    if head.iter().any(|byte| *byte != 0 && is_control(byte)) {
        return false;
    }
    let is_utf8 = match str::from_utf8(head) {
        Ok(_) => true,
        // The head may end in the middle of a character.
        Err(error) => error.error_len().is_none(),
    };
    let nuls = memchr::memchr_iter(0, head).count();
    let places = head.windows(2).filter(|pair| pair[0] != 0 && pair[1] == 0).count()
        + usize::from(head.first() == Some(&0));
    is_utf8 && places * 8 <= head.len() - nuls
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
            assert_eq!(content_kind(text), ContentKind::Text, "{text:?}");
        }
    }

    #[test]
    fn utf16_is_text_in_both_orders_with_and_without_a_mark() {
        for text in ["token = abc123", "\u{feff}token", "mostly ASCII, some 中文 too"] {
            assert_eq!(content_kind(&utf16(text, u16::to_le_bytes)), ContentKind::Text, "{text}");
            assert_eq!(content_kind(&utf16(text, u16::to_be_bytes)), ContentKind::Text, "{text}");
        }
        // Cut in the middle of a character, as a head may be.
        assert_eq!(content_kind(&utf16("abc", u16::to_le_bytes)[..5]), ContentKind::Text);
        // With a mark, all else may be without zeros.
        assert_eq!(content_kind(&utf16("\u{feff}中文", u16::to_be_bytes)), ContentKind::Text);
    }

    #[test]
    fn nul_bytes_elsewhere_are_binary() {
        for bytes in [
            &b"text\0\x01more text that goes on"[..],
            b"text\0 and \xff\xfe what is no character",
            b"few words\0a\0b\0c",
            b"\0",
            b"\0\0\0\0",
            b"a\0\0b\0\0c\0\0",
        ] {
            assert_eq!(content_kind(bytes), ContentKind::NulBytes, "{bytes:?}");
        }
    }

    #[test]
    fn text_with_nul_bytes_between_its_parts_is_text() {
        let padded = [b"a line of a log\n", &[0; 4096][..], b"and the next one\n"].concat();
        for bytes in [
            &b"HOME=/root\0PATH=/usr/bin\0TOKEN=something\0"[..],
            b"text\0more text that goes on",
            &padded,
            "ends within a character\0 \u{20ac}".as_bytes().split_last().unwrap().1,
        ] {
            assert_eq!(content_kind(bytes), ContentKind::Text, "{bytes:?}");
        }
    }

    #[test]
    fn only_the_beginning_counts() {
        let mut bytes = vec![b'x'; HEAD_SIZE];
        bytes[1] = 0;
        bytes.push(1);
        assert_eq!(content_kind(&bytes), ContentKind::Text);
        bytes[HEAD_SIZE - 1] = 1;
        assert_eq!(content_kind(&bytes), ContentKind::NulBytes);
    }

    #[test]
    fn known_formats_are_named() {
        for format in FORMATS {
            let mut bytes = vec![b'x'; format.offset];
            bytes.extend_from_slice(format.magic);
            bytes.extend_from_slice(b"\x01\0\0\0\x02\x03");
            assert_eq!(content_kind(&bytes), format.kind, "{:?}", format.magic);
        }
    }

    #[test]
    fn lfs_pointers_are_told_from_what_speaks_of_them() {
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n";
        assert_eq!(content_kind(pointer), ContentKind::LfsPointer);
        assert_eq!(content_kind(&[b"see ", &pointer[..]].concat()), ContentKind::Text);
    }

    /// If this fails, the ledgers of users call files binary that no longer are, or the reverse:
    /// raise `CLASSIFIER_VERSION`, unless only the table changed, and pin what comes out.
    #[test]
    fn what_is_binary_changes_only_with_the_detectors_identity() {
        let mut kinds = Vec::new();
        for zeros in 0..=64_usize {
            for odd in [0, 1, 3] {
                let at = |index: usize| (index % 2 == odd % 2 || odd == 3) && index / 2 < zeros;
                let head: Vec<u8> = (0..128).map(|index| b'a' * u8::from(!at(index))).collect();
                for head in [head.clone(), [b"\xff\xfe", &head[..]].concat()] {
                    let kind = content_kind(&head);
                    kinds.extend((kind != ContentKind::Text).then(|| kind.to_string()));
                    kinds.push("/".to_owned());
                }
            }
        }
        let kinds = PolicyHash::derive(&*kinds.concat()).to_string();
        let pinned = "284465d18217ec2788e4cf391c1301ad9c2d56a0c937f7d021662ae10bdbf404";
        assert_eq!(kinds, pinned);
        let pinned = "9224e05a9a6b9fca6713098385a2484f0aed897493eb305523fa1899757706c8";
        assert_eq!(PolicyHash::derive(&HeadClassifier).to_string(), pinned);
    }

    #[test]
    fn real_files_are_what_they_are() {
        let this_program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(content_kind(&this_program), ContentKind::Executable);
        assert_eq!(content_kind(include_bytes!("content.rs")), ContentKind::Text);
    }
}
