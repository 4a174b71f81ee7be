//! Which format an archive has, told from its first bytes.

/// A format of archives or of compressed streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Zip, and what is made of it: jar, docx, apk, whl.
    Zip,
    /// Tar.
    Tar,
    /// Ar, and so deb and static libraries.
    Ar,
    /// 7z.
    SevenZip,
    /// One gzip stream, or several after each other.
    Gzip,
    /// The same of bzip2.
    Bzip2,
    /// The same of xz.
    Xz,
    /// The same of zstd.
    Zstd,
}

impl Format {
    /// The format of what begins with `head`, of which [`HEAD_SIZE`](crate::HEAD_SIZE) bytes are
    /// enough. No text is taken for an archive: where a format begins with letters, what must follow
    /// them is checked as well.
    #[must_use]
    pub fn detect(head: &[u8]) -> Option<Self> {
        let begins = |magic: &[u8]| head.starts_with(magic);
        if begins(b"PK\x03\x04") || begins(b"PK\x05\x06") {
            Some(Self::Zip)
        } else if begins(b"\x1f\x8b\x08") {
            Some(Self::Gzip)
        } else if begins(b"\xfd7zXZ\0") {
            Some(Self::Xz)
        } else if begins(b"\x28\xb5\x2f\xfd") {
            Some(Self::Zstd)
        } else if begins(b"7z\xbc\xaf\x27\x1c") {
            Some(Self::SevenZip)
        } else if is_bzip2(head) {
            Some(Self::Bzip2)
        } else if begins(b"!<arch>\n") && head.get(66..68).is_none_or(|end| end == b"`\n") {
            Some(Self::Ar)
        } else if is_tar(head) {
            Some(Self::Tar)
        } else {
            None
        }
    }

    /// Whether it holds one stream of bytes and no names.
    pub(crate) const fn is_stream(self) -> bool {
        matches!(self, Self::Gzip | Self::Bzip2 | Self::Xz | Self::Zstd)
    }
}

/// A level, and the mark of a first block or of the end.
fn is_bzip2(head: &[u8]) -> bool {
    let Some((b"BZh", rest)) = head.split_first_chunk() else { return false };
    let Some((level, rest)) = rest.split_first() else { return false };
    let mark = rest.starts_with(b"1AY&SY") || rest.starts_with(b"\x17rE8P\x90");
    (b'1'..=b'9').contains(level) && mark
}

/// The name of the format and a right checksum.
fn is_tar(head: &[u8]) -> bool {
    let Some(header) = head.first_chunk::<512>() else { return false };
    if &header[257..262] != b"ustar" {
        return false;
    }
    let stored = str::from_utf8(&header[148..156]).ok();
    let stored = stored.map(|text| text.trim_matches(['\0', ' ']));
    let stored = stored.and_then(|text| u32::from_str_radix(text, 8).ok());
    let sum = header.iter().enumerate().map(|(at, byte)| {
        if (148..156).contains(&at) { u32::from(b' ') } else { u32::from(*byte) }
    });
    stored == Some(sum.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_about_formats_are_no_archives() {
        let mut ustar = [b'x'; 512];
        ustar[257..262].copy_from_slice(b"ustar");
        let notes: [&[u8]; 6] = [
            b"",
            b"BZh is how bzip2 files begin",
            b"BZh91 is no block",
            b"!<arch>\nand then sixty bytes of something else that is not a header at all, no",
            b"PK and other beginnings",
            &ustar,
        ];
        for note in notes {
            assert_eq!(Format::detect(note), None, "{note:?}");
        }
    }
}
