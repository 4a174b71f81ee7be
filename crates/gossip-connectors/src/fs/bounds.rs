//! Where a listing starts and ends, seen from the whole tree and from inside one directory.
//!
//! A directory's key is its path plus `/`. Names hold no `/`, so all keys below a directory lie
//! together, between its key and its siblings'.

use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};

/// The first keys that a listing may give.
#[derive(Clone, Copy)]
pub(super) struct Lower<'a> {
    key: &'a [u8],
    inclusive: bool,
}

impl<'a> Lower<'a> {
    pub(super) const fn everything() -> Self {
        Self::at(b"")
    }

    pub(super) const fn at(key: &'a [u8]) -> Self {
        Self { key, inclusive: true }
    }

    pub(super) const fn behind(key: &'a [u8]) -> Self {
        Self { key, inclusive: false }
    }

    /// What is left of `range` behind `cursor`.
    pub(super) fn of(range: ShardSpecRef<'a>, cursor: CursorUpdate<'a>) -> Self {
        match cursor.last_key() {
            Some(last) if last >= range.start() => Self::behind(last),
            _ => Self::at(range.start()),
        }
    }

    pub(super) const fn key(&self) -> &'a [u8] {
        self.key
    }

    pub(super) fn admits(&self, key: &[u8]) -> bool {
        self.key < key || self.inclusive && self.key == key
    }

    /// Whether the directory with key `dir` may hold a key that is admitted, or is one.
    pub(super) fn may_be_below(&self, dir: &[u8]) -> bool {
        self.admits(dir) || self.key.starts_with(dir)
    }

    /// The same bound for what follows the directory key `dir`, which [`Lower::may_be_below`].
    pub(super) fn below(&self, dir: &[u8]) -> Self {
        match self.key.strip_prefix(dir) {
            Some(rest) => Self { key: rest, inclusive: self.inclusive },
            None => Self::everything(),
        }
    }
}

/// The first key that a listing may no longer give; none if it may give all.
#[derive(Clone, Copy)]
pub(super) struct Upper<'a>(Option<&'a [u8]>);

impl<'a> Upper<'a> {
    pub(super) fn of(end: &'a [u8]) -> Self {
        Self((!end.is_empty()).then_some(end))
    }

    pub(super) fn admits(&self, key: &[u8]) -> bool {
        self.0.is_none_or(|end| key < end)
    }

    /// The same bound for what follows the directory key `dir`, which it admits.
    pub(super) fn below(&self, dir: &[u8]) -> Self {
        // An end elsewhere is behind all of the directory, since it is behind its key.
        Self(self.0.and_then(|end| end.strip_prefix(dir)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_of_start_and_cursor_counts() {
        let range = ShardSpecRef::new(b"b", b"", b"");
        assert!(Lower::of(range, CursorUpdate::initial()).admits(b"b"));
        assert!(Lower::of(range, CursorUpdate::at(b"a")).admits(b"b"));
        assert!(!Lower::of(range, CursorUpdate::at(b"b")).admits(b"b"));
        assert!(Lower::of(range, CursorUpdate::at(b"b")).admits(b"b\0"));
    }

    #[test]
    fn a_directory_is_entered_if_the_bound_lies_in_it_or_before_it() {
        let lower = Lower::behind(b"a/m");
        assert!(lower.may_be_below(b"a/") && lower.may_be_below(b"b/"));
        assert!(!lower.may_be_below(b"a-/") && !lower.may_be_below(b"a/l/"));
        assert!(!lower.below(b"a/").admits(b"m") && lower.below(b"a/").admits(b"m0"));
        assert!(lower.below(b"b/").admits(b"a"));
    }

    #[test]
    fn an_end_inside_a_directory_cuts_it_there_only() {
        let upper = Upper::of(b"a/m");
        assert!(upper.below(b"a/").admits(b"l") && !upper.below(b"a/").admits(b"m"));
        assert!(upper.below(b"a-/").admits(b"z"));
        assert!(Upper::of(b"").admits(b"\xff") && !Upper::of(b"a").admits(b"a"));
    }
}
