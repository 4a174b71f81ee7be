//! What names the content of a file.

use rustix::fs::Stat;

/// Bytes of an encoded version.
const SIZE: usize = 40;

/// A file younger than this when it was read is not trusted: clocks of file systems tick slowly
/// (two seconds on FAT), and a write in the same tick leaves no trace.
const SETTLED_AFTER_MS: i128 = 2000;

/// The version of a file, 40 bytes, integers little-endian:
///
/// | bytes | what |
/// |---|---|
/// | 0..8 | size |
/// | 8..16, 16..20 | modification time: seconds since 1970 (signed), nanoseconds |
/// | 20..28, 28..32 | change time, likewise |
/// | 32..40 | inode |
///
/// The device is left out: its number may change when a machine starts again, and then every file
/// would look new.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Version([u8; SIZE]);

impl Version {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(super) fn of(stat: &Stat) -> Self {
        let mut bytes = [0; SIZE];
        bytes[0..8].copy_from_slice(&size(stat).to_le_bytes());
        bytes[8..16].copy_from_slice(&(stat.st_mtime as i64).to_le_bytes());
        bytes[16..20].copy_from_slice(&(stat.st_mtime_nsec as u32).to_le_bytes());
        bytes[20..28].copy_from_slice(&(stat.st_ctime as i64).to_le_bytes());
        bytes[28..32].copy_from_slice(&(stat.st_ctime_nsec as u32).to_le_bytes());
        bytes[32..40].copy_from_slice(&(stat.st_ino as u64).to_le_bytes());
        Self(bytes)
    }

    pub(super) const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The later of both times, in milliseconds, rounded up.
    fn last_touched_ms(&self) -> i128 {
        let time = |at: usize| {
            let seconds = i64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"));
            let nanos = u32::from_le_bytes(self.0[at + 8..at + 12].try_into().expect("four bytes"));
            i128::from(seconds) * 1000 + i128::from(nanos.div_ceil(1_000_000))
        };
        time(8).max(time(20))
    }
}

/// A file's size; a negative one, which no sane file system reports, counts as none.
#[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
pub(super) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size as i64).unwrap_or(0)
}

/// Whether equal versions may be taken for equal bytes: `version` is one of an
/// [`FsSource`](super::FsSource), and its file had last been touched at least two seconds before it
/// was opened for reading, at `opened_at_unix_ms`.
///
/// A file that was touched later, or in the future, may be written once more within the same tick
/// of its file system's clock, without a trace in its version: do not remember it as scanned.
///
/// ```
/// # use gossip_connectors::fs::is_settled;
/// assert!(!is_settled(b"not a version", u64::MAX));
/// ```
#[must_use]
pub fn is_settled(version: &[u8], opened_at_unix_ms: u64) -> bool {
    Version::from_bytes(version).is_some_and(|version| {
        i128::from(opened_at_unix_ms) - version.last_touched_ms() >= SETTLED_AFTER_MS
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(mtime: (i64, u32), ctime: (i64, u32)) -> Version {
        let mut bytes = [0; SIZE];
        bytes[8..16].copy_from_slice(&mtime.0.to_le_bytes());
        bytes[16..20].copy_from_slice(&mtime.1.to_le_bytes());
        bytes[20..28].copy_from_slice(&ctime.0.to_le_bytes());
        bytes[28..32].copy_from_slice(&ctime.1.to_le_bytes());
        Version(bytes)
    }

    #[test]
    fn two_seconds_after_the_later_time_a_version_is_settled() {
        for touched in [version((7, 5_000_001), (3, 0)), version((3, 0), (7, 5_000_001))] {
            assert!(!is_settled(touched.as_bytes(), 9005));
            assert!(is_settled(touched.as_bytes(), 9006));
        }
    }

    #[test]
    fn times_at_the_ends_of_their_range_do_not_overflow() {
        assert!(!is_settled(version((i64::MAX, 999_999_999), (0, 0)).as_bytes(), u64::MAX));
        assert!(is_settled(version((i64::MIN, 0), (i64::MIN, 0)).as_bytes(), 0));
    }

    #[test]
    fn other_bytes_are_never_settled() {
        assert!(!is_settled(b"", u64::MAX) && !is_settled(&[0; SIZE + 1], u64::MAX));
    }

    #[test]
    fn every_part_of_a_stat_is_in_its_version() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stat = rustix::fs::fstat(file.as_file()).unwrap();
        let base = Version::of(&stat);
        let changes: [fn(&mut Stat); 6] = [
            |stat| stat.st_size += 1,
            |stat| stat.st_mtime += 1,
            |stat| stat.st_mtime_nsec ^= 1,
            |stat| stat.st_ctime += 1,
            |stat| stat.st_ctime_nsec ^= 1,
            |stat| stat.st_ino += 1,
        ];
        for change in changes {
            let mut stat = stat;
            change(&mut stat);
            assert!(Version::of(&stat) != base);
        }
    }
}
