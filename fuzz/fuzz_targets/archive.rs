//! Archives out of arbitrary bytes.
#![no_main]

use std::io::{Cursor, Read};

use gossip_archive::{Format, InnerPath, Limits, NotRead, Stop, VisitError, Visitor, unpack};

/// Small enough that one input does not take long.
const LIMITS: Limits =
    Limits { bytes: 4 << 20, ratio: 100, ratio_from: 1 << 20, files: 1000, ..Limits::DEFAULT };

#[derive(Default)]
struct Count {
    bytes: u64,
    names: Vec<Vec<u8>>,
    reads: bool,
}

impl Visitor for Count {
    fn file(&mut self, path: &InnerPath, bytes: &mut dyn Read) -> Result<(), VisitError> {
        self.names.push(path.shown().to_vec());
        if self.reads {
            let mut buf = [0; 4096];
            loop {
                match bytes.read(&mut buf)? {
                    0 => break,
                    read => self.bytes += read as u64,
                }
            }
        }
        Ok(())
    }

    fn not_read(&mut self, _: &InnerPath, _: NotRead) {}

    fn tick(&mut self) -> Result<(), Stop> {
        Ok(())
    }
}

// Nothing panics, no more comes out than the limits allow, and the files do not depend on whether
// they are read.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some(format) = Format::detect(data) else { return };
    let walk = |reads| {
        let mut count = Count { reads, ..Count::default() };
        let size = data.len() as u64;
        let mut source = Cursor::new(data);
        unpack(&mut source, size, b"a.gz", format, &LIMITS, &mut count).expect("it never stops");
        count
    };
    let (read, passed) = (walk(true), walk(false));
    assert!(read.bytes <= LIMITS.bytes.max(data.len() as u64));
    // One that reads reaches a limit sooner.
    assert!(passed.names.starts_with(&read.names) || read.names.starts_with(&passed.names));
});
