//! Loose objects of git out of arbitrary bytes.
#![no_main]

use std::fs;
use std::io::Write;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::ZlibEncoder;

static DIR: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("there is room");
    fs::create_dir(dir.path().join("00")).expect("there is room");
    dir
});

// As they are, compressed, and compressed behind a header that is right.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let compressed = |parts: &[&[u8]]| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        parts.iter().for_each(|part| encoder.write_all(part).expect("memory"));
        encoder.finish().expect("memory")
    };
    let header = format!("blob {}\0", data.len());
    let files = [data.to_vec(), compressed(&[data]), compressed(&[header.as_bytes(), data])];
    for (file, number) in files.iter().zip(1..) {
        fs::write(DIR.path().join(format!("00/{number:038x}")), file).expect("there is room");
    }
    assert!(gossip_git::fuzzing::objects(DIR.path()) >= 1, "the last of them is right");
});
