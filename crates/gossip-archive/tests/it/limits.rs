//! Archives that are made to cost more than they should.

use std::io::{Cursor, Read};

use gossip_archive::{Format, InnerPath, Limits, NotRead, Stop, VisitError, Visitor, unpack};

use crate::support::{ar_of, bz2, gz, see, see_within, seven_zip_stored, tar_of, xz, zip_of, zst};

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

#[test]
fn a_7z_archive_takes_no_more_memory_than_allowed() {
    // Its header is compressed to some hundred bytes.
    let files = vec![("a name that is the same each time", &b"x"[..]); 3000];
    let bytes = seven_zip_stored(&files);
    let limits = Limits { memory: 8 << 20, ..Limits::default() };
    let too_much = [(String::new(), NotRead::TooMuch)];
    assert_eq!(see_within(&limits, "x.7z", &bytes).files.len(), 3000);
    let limits = Limits { memory: 2 << 20, ..limits };
    let seen = see_within(&limits, "x.7z", &bytes);
    assert_eq!((seen.files.len(), seen.not_read), (0, too_much.to_vec()));

    let mut archive = sevenz_rust2::ArchiveWriter::new(Cursor::new(Vec::new())).unwrap();
    let large = sevenz_rust2::encoder_options::Lzma2Options::from_level(9);
    for (name, method) in [("one", large.into()), ("two", sevenz_rust2::EncoderMethod::COPY.into())]
    {
        archive.set_content_methods(vec![method]);
        let entry = sevenz_rust2::ArchiveEntry::new_file(name);
        archive.push_archive_entry(entry, Some(&b"content"[..])).unwrap();
    }
    let bytes = archive.finish().unwrap().into_inner();
    assert_eq!(see("x.7z", &bytes).names(), ["one", "two"]);
    let limits = Limits { memory: 16 << 20, ..limits };
    let seen = see_within(&limits, "x.7z", &bytes);
    assert_eq!((seen.names(), &seen.not_read[..]), (vec!["two"], &too_much[..]));
}

/// The length of its dictionary is what the archive says, and its reader takes it.
#[test]
fn lzma_in_zip_is_not_read() {
    let mut zip = zip_of(&[("a", b"content")]);
    let central = zip.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    for at in [8, central + 10] {
        zip[at..at + 2].copy_from_slice(&14_u16.to_le_bytes());
    }
    let seen = see("x.zip", &zip);
    assert_eq!(seen.not_read, [("a".to_owned(), NotRead::Unsupported)]);
}

#[test]
fn copies_of_archives_within_each_other_share_the_memory() {
    let content: Vec<u8> = (0..40_000_u32).flat_map(|n| n.wrapping_mul(n).to_le_bytes()).collect();
    let mut zip = zip_of(&[("core", &content)]);
    let size = zip.len();
    for _ in 0..4 {
        zip = zip_of(&[("in.zip", &zip)]);
    }
    let limits = Limits { memory: size * 5 / 2, ..Limits::default() };
    let seen = see_within(&limits, "x.zip", &zip);
    assert_eq!(seen.not_read, [("in.zip!in.zip!in.zip".to_owned(), NotRead::TooMuch)]);
    assert_eq!(see("x.zip", &zip).files.len(), 1);
}

struct Stopping;

impl Visitor for Stopping {
    fn file(&mut self, _: &InnerPath, _: &mut dyn Read) -> Result<(), VisitError> {
        panic!("there is no file");
    }

    fn not_read(&mut self, _: &InnerPath, why: NotRead) {
        panic!("{why:?} before an end");
    }

    fn tick(&mut self) -> Result<(), Stop> {
        Err(Stop)
    }
}

/// A visitor renews its lease, and ends, where there is much to pass over and no file.
#[test]
fn what_is_no_file_is_passed_over_with_ticks() {
    let mut header = tar::Header::new_ustar();
    header.set_path("pax").unwrap();
    header.set_entry_type(tar::EntryType::XGlobalHeader);
    header.set_size(0);
    header.set_cksum();
    let table = format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", "/", 0, 0, 0, 0, 4096);
    let table = [b"!<arch>\n", table.as_bytes(), &[0; 4096]].concat();
    for bytes in [header.as_bytes().repeat(3), table, gz(&zip_of(&[]))] {
        let (format, size) = (Format::detect(&bytes).unwrap(), bytes.len() as u64);
        let mut source = Cursor::new(bytes);
        let limits = Limits::default();
        assert_eq!(unpack(&mut source, size, b"x", format, &limits, &mut Stopping), Err(Stop));
    }
}
