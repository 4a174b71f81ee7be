//! Archives that are not what they should be.

use std::sync::LazyLock;

use gossip_archive::{Format, Limits, NotRead};
use proptest::prelude::*;

use crate::support::{
    Files, ar_of, bz2, gz, see, see_within, seven_zip_of, seven_zip_stored, tar_of, xz, zip_of, zst,
};

fn contents() -> Vec<(String, Vec<u8>)> {
    let content = |seed: u32| (0..900_u32).flat_map(|n| ((n * n) ^ seed).to_le_bytes()).collect();
    (0..5).map(|number| (format!("file{number}"), content(number))).collect()
}

fn archives() -> Vec<(&'static str, Vec<u8>)> {
    let contents = contents();
    let files: Vec<(&str, &[u8])> =
        contents.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
    let files: Files<'_> = &files;
    vec![
        ("zip", zip_of(files)),
        ("tar", tar_of(files)),
        ("ar", ar_of(files)),
        ("7z", seven_zip_of(files)),
        ("gz", gz(&tar_of(files))),
        ("bz2", bz2(&tar_of(files))),
        ("xz", xz(&tar_of(files))),
        ("zst", zst(&tar_of(files))),
    ]
}

/// A tar or ar file that ends after a whole member cannot be told from one that has no more.
#[test]
fn an_archive_that_ends_too_soon_is_said_to_and_what_is_before_is_read() {
    let contents = contents();
    for (name, bytes) in archives() {
        for len in (512..bytes.len() - 1024).step_by(97) {
            let seen = see(name, &bytes[..len]);
            let said = seen.not_read.iter().filter(|(_, why)| *why == NotRead::Damaged).count();
            let whole = seen.files.iter().zip(&contents).take_while(|(a, b)| a == b).count();
            let may_be_whole = matches!(name, "tar" | "ar") && whole == seen.files.len();
            assert!(said == 1 || may_be_whole, "{name} of {len}: {:?}", seen.not_read);
            assert!(seen.files.len() - whole <= 1, "{name} of {len}: {:?}", seen.names());
            if matches!(name, "tar" | "gz") && len > bytes.len() / 2 {
                assert!(whole >= 1, "{name} of {len}");
            }
        }
    }
}

#[test]
fn a_broken_archive_inside_a_whole_one_does_not_stop_the_rest() {
    let broken = |bytes: Vec<u8>| bytes[..bytes.len() * 2 / 3].to_vec();
    for (name, inner) in archives() {
        let inner = broken(inner);
        let members: Files<'_> = &[("first", b"1"), ("inner", &inner), ("last", b"2")];
        for outer in [zip_of(members), tar_of(members), gz(&tar_of(members)), ar_of(members)] {
            let seen = see("outer", &outer);
            let (names, not_read) = (seen.names(), &seen.not_read);
            assert_eq!((names.first(), names.last()), (Some(&"first"), Some(&"last")), "{name}");
            assert_eq!(not_read.len(), 1, "{name}: {not_read:?}");
            assert!(not_read[0].0.starts_with("inner"), "{name}: {not_read:?}");
            assert_eq!(not_read[0].1, NotRead::Damaged, "{name}");
        }
    }
}

#[test]
fn a_zip_entry_with_wrong_bytes_is_said_and_the_others_are_read() {
    let contents = contents();
    let files: Vec<(&str, &[u8])> =
        contents.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
    let mut bytes = zip_of(&files);
    let second = bytes.windows(5).position(|window| window == b"file1").unwrap();
    bytes[second + 500] ^= 0x55;
    let seen = see("x.zip", &bytes);
    assert_eq!(seen.not_read, [("file1".to_owned(), NotRead::Damaged)]);
    assert_eq!(seen.files.iter().zip(&contents).filter(|(a, b)| a == b).count(), 4);
}

/// A decoder may report a wrong checksum once, and go on or end as if nothing had been wrong.
#[test]
fn a_wrong_checksum_is_said_once_and_the_bytes_before_it_are_read() {
    let content: Vec<u8> = (0..300_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    let two = |pack: fn(&[u8]) -> Vec<u8>, from_end: usize| {
        let mut first = pack(&content);
        let at = first.len() - from_end;
        first[at] ^= 1;
        [first, pack(b"second")].concat()
    };
    let mut stored = seven_zip_stored(&[("a", &content)]);
    stored[32 + content.len() / 2] ^= 1;
    for (name, bytes, lost) in [
        ("a.gz", two(gz, 8), 0),
        ("a.gz", two(gz, 4), 0),
        // Before its index of 12 bytes and its footer of 12.
        ("a.xz", two(xz, 12 + 12 + 1), 0),
        ("a.7z", stored, 1),
    ] {
        let seen = see(name, &bytes);
        assert_eq!(seen.not_read, [("a".to_owned(), NotRead::Damaged)], "{name}");
        let read = &seen.files[0].1;
        assert!(read.len() >= content.len() - lost, "{name}: {} bytes", read.len());
        let differ = read.iter().zip(&content).filter(|(a, b)| a != b).count();
        assert!(differ <= 1, "{name}: {differ} bytes differ");
    }
}

proptest! {
    /// Neither a panic, nor more than the limits allow, nor other bytes without a report.
    #[test]
    fn any_damage_ends_in_files_and_reports(
        which in 0_usize..8,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        static ARCHIVES: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(archives);
        let (name, mut bytes) = ARCHIVES[which].clone();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        if Format::detect(&bytes).is_some() {
            let limits = Limits { ratio_from: 1 << 20, ratio: 50, ..Limits::default() };
            let seen = see_within(&limits, name, &bytes);
            let size: usize = seen.files.iter().map(|(_, content)| content.len()).sum();
            prop_assert!(size <= 8 << 20);
            // These have checksums of everything.
            let is_checked = matches!(name, "7z" | "gz" | "bz2" | "xz");
            prop_assert!(!is_checked || !seen.not_read.is_empty() || seen.files == contents());
        }
    }
}
