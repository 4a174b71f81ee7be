//! Where in an archive a file is.

/// The longest name of an entry that is kept; the rest is cut off.
const NAME_MAX: usize = 4096;

/// A file's place in an archive: its name there, or in an archive inside of it the names on the way.
/// No `Debug`: names may be private.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct InnerPath {
    shown: Vec<u8>,
    slashed: Vec<u8>,
}

impl InnerPath {
    /// With `!` between the name of an archive and what is in it: `lib/a.jar!b/c.env`. Empty for the
    /// archive itself.
    #[must_use]
    pub fn shown(&self) -> &[u8] {
        &self.shown
    }

    /// With `/` there, as if archives were directories.
    #[must_use]
    pub fn slashed(&self) -> &[u8] {
        &self.slashed
    }

    /// The place of `name` in what is here.
    pub(crate) fn join(&self, name: &[u8]) -> Self {
        let name = name.strip_prefix(b"./").unwrap_or(name);
        let name = &name[..name.len().min(NAME_MAX)];
        let join = |base: &[u8], separator: &[u8]| {
            let separator = if base.is_empty() { b"" } else { separator };
            [base, separator, name].concat()
        };
        Self { shown: join(&self.shown, b"!"), slashed: join(&self.slashed, b"/") }
    }
}

/// What a stream that was compressed under `name` was called before.
pub(crate) fn stem(name: &[u8]) -> Vec<u8> {
    let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    let tars: [(&[u8], &[u8]); 3] = [(b".tgz", b".tar"), (b".tbz2", b".tar"), (b".txz", b".tar")];
    for (short, long) in tars {
        if let Some(stem) = name.strip_suffix(short) {
            return [stem, long].concat();
        }
    }
    let ends: [&[u8]; 5] = [b".gz", b".bz2", b".xz", b".zst", b".zstd"];
    let stem = ends.iter().find_map(|end| name.strip_suffix(*end));
    stem.filter(|stem| !stem.is_empty()).unwrap_or(b"content").to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_on_the_way_are_joined() {
        let path = InnerPath::default().join(b"lib/a.jar").join(b"./b/c.env");
        assert_eq!(path.shown(), b"lib/a.jar!b/c.env");
        assert_eq!(path.slashed(), b"lib/a.jar/b/c.env");
        assert_eq!(InnerPath::default().join(&[b'n'; 5000]).shown().len(), NAME_MAX);
    }

    #[test]
    fn a_stream_is_called_what_it_was_before() {
        for (name, expected) in [
            ("logs/app.log.gz", "app.log"),
            ("a.tgz", "a.tar"),
            ("a.sql.zst", "a.sql"),
            (".gz", "content"),
            ("data", "content"),
        ] {
            assert_eq!(stem(name.as_bytes()), expected.as_bytes());
        }
    }
}
