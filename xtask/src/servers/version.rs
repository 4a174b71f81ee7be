//! Versions as programs tell them.

use std::fmt;

/// Major, minor, patch; what is not told is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(pub(super) u32, pub(super) u32, pub(super) u32);

impl Version {
    /// The first word of `text` that is a version.
    pub(super) fn find(text: &str) -> Option<Self> {
        text.split(|c: char| c.is_whitespace() || c == '"').find_map(Self::parse)
    }

    /// `v1.2.3-rc.1`: a leading `v` and what follows the numbers do not count.
    fn parse(word: &str) -> Option<Self> {
        let word = word.strip_prefix('v').unwrap_or(word);
        let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
        let (numbers, rest) = word.split_at(end);
        if !(rest.is_empty() || rest.starts_with(['-', '+', ',', '_'])) {
            return None;
        }
        let mut parts = numbers.split('.').map(str::parse::<u32>);
        let version = Self(
            parts.next()?.ok()?,
            parts.next().unwrap_or(Ok(0)).ok()?,
            parts.next().unwrap_or(Ok(0)).ok()?,
        );
        Some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}.{}", self.0, self.1, self.2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (said, version) in [
            ("nats-server: v2.15.1\n", Version(2, 15, 1)),
            ("version 8000GB 4.48 pypi linux amd64", Version(4, 48, 0)),
            ("etcd Version: 3.4.23\nGo Version: go1.19.8", Version(3, 4, 23)),
            ("openjdk 17.0.15 2025-04-15", Version(17, 0, 15)),
            ("openjdk 21 2023-09-19", Version(21, 0, 0)),
            ("TLC2 Version 2.15 of Day Month 20??", Version(2, 15, 0)),
            ("x v3.6.0-rc.1", Version(3, 6, 0)),
        ] {
            assert_eq!(Version::find(said), Some(version), "{said}");
        }
        assert_eq!(Version::find("no number here, 8000GB, 99999999999"), None);
    }
}
