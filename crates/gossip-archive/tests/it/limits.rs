//! Archives that are made to cost more than they should.

use gossip_archive::{Limits, NotRead};

use crate::support::{ar_of, bz2, gz, see, see_within, tar_of, xz, zip_of, zst};

#[test]
fn what_grows_beyond_a_ratio_ends_there_and_is_said() {
    let zeros = vec![0; 8 << 20];
    let limits = Limits { ratio_from: 4 << 20, ..Limits::default() };
    for (name, bomb) in [
        ("x.gz", gz(&zeros)),
        ("x.bz2", bz2(&zeros)),
        ("x.xz", xz(&zeros)),
        ("x.zst", zst(&zeros)),
        ("x.zip", zip_of(&[("zeros", &zeros)])),
    ] {
        assert!(bomb.len() < 16_000, "{name} has {} bytes", bomb.len());
        let seen = see_within(&limits, name, &bomb);
        assert_eq!(seen.not_read, [(String::new(), NotRead::TooMuch)], "{name}");
        let size: usize = seen.files.iter().map(|(_, content)| content.len()).sum();
        assert!(size as u64 <= limits.ratio_from, "{name}: {size} bytes came out");
    }
}

/// Each layer is harmless: what they come to is not.
#[test]
fn bombs_within_bombs_are_counted_together() {
    let leaf = zip_of(&[("zeros", &vec![0; 1 << 20])]);
    let mut bomb = leaf;
    for _ in 0..3 {
        let names: Vec<String> = (0..10).map(|number| format!("{number}.zip")).collect();
        let files: Vec<(&str, &[u8])> =
            names.iter().map(|name| (name.as_str(), bomb.as_slice())).collect();
        bomb = zip_of(&files);
    }
    let limits = Limits { ratio_from: 4 << 20, ratio: 1, ..Limits::default() };
    let seen = see_within(&limits, "bomb.zip", &bomb);
    assert_eq!(seen.not_read, [(String::new(), NotRead::TooMuch)]);
    assert!(seen.files.len() <= 4, "{}", seen.files.len());
}

#[test]
fn more_files_or_layers_than_allowed_are_said() {
    let names: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    let limits = Limits { files: 20, ..Limits::default() };
    for bytes in [zip_of(&files), tar_of(&files), ar_of(&files)] {
        let seen = see_within(&limits, "many", &bytes);
        assert_eq!(seen.files.len(), 20);
        assert_eq!(seen.not_read, [(String::new(), NotRead::TooMuch)]);
    }

    let mut nested = tar_of(&[("core", b"x")]);
    for depth in 1..12 {
        nested = tar_of(&[(&format!("{depth}.tar"), &nested), ("beside", b"y")]);
    }
    let seen = see("deep.tar", &nested);
    assert_eq!(seen.files.len(), 8, "{:?}", seen.names());
    assert_eq!(seen.not_read.len(), 1);
    assert_eq!(seen.not_read[0].1, NotRead::TooMuch);
    assert!(seen.not_read[0].0.ends_with("4.tar"), "{:?}", seen.not_read);
}

#[test]
fn an_archive_that_is_read_from_its_end_and_is_too_large_for_memory_is_said() {
    let content: Vec<u8> = (0..400_000_u32).flat_map(|n| n.wrapping_mul(n).to_le_bytes()).collect();
    let inner = zip_of(&[("big", &content)]);
    let limits = Limits { memory: 64 << 10, ..Limits::default() };
    let seen = see_within(&limits, "x.tar", &tar_of(&[("in.zip", &inner), ("last", b"x")]));
    assert_eq!(seen.names(), ["last"]);
    assert_eq!(seen.not_read, [("in.zip".to_owned(), NotRead::TooMuch)]);
    // By itself it is not copied.
    assert_eq!(see_within(&limits, "in.zip", &inner).names(), ["big"]);
}

/// Its length is what the archive says: it is not believed.
#[test]
fn a_name_of_a_gigabyte_is_not_read() {
    let mut header = tar::Header::new_gnu();
    header.set_path("././@LongLink").unwrap();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(1 << 30);
    header.set_cksum();
    let seen = see("x.tar", &[&header.as_bytes()[..], &[b'n'; 4096]].concat());
    assert_eq!((seen.files.len(), seen.not_read), (0, vec![(String::new(), NotRead::Damaged)]));
}
