//! Packs of git out of arbitrary bytes.
#![no_main]

use std::fs;
use std::io::Write;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::ZlibEncoder;

static DIR: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("there is room");
    fs::create_dir(dir.path().join("pack")).expect("there is room");
    dir
});

/// The id of the entry of this number: ascending, as an index has them.
fn id(number: usize) -> [u8; 20] {
    let mut id = [0; 20];
    id[1] = number as u8;
    id
}

/// Type and length of an entry: four bits of the length, then seven a byte.
fn header(kind: u8, mut len: usize, pack: &mut Vec<u8>) {
    let mut byte = kind << 4 | (len & 0xf) as u8;
    len >>= 4;
    while len > 0 {
        pack.push(byte | 0x80);
        byte = (len & 0x7f) as u8;
        len >>= 7;
    }
    pack.push(byte);
}

/// The entries that `data` describes: each by a byte for its kind, one for how it lies about its length or
/// what its base is, one for its length, and its bytes.
fn entries(mut data: &[u8], pack: &mut Vec<u8>) -> Vec<u32> {
    let mut offsets = Vec::new();
    while let Some((&[how, number, len], rest)) = data.split_first_chunk()
        && offsets.len() < 64
    {
        let (bytes, rest) = rest.split_at(rest.len().min(usize::from(len)));
        data = rest;
        let start = pack.len();
        let kind = [1, 2, 3, 4, 6, 7, 6, 6][usize::from(how & 7)];
        let lies = if how & 8 != 0 { usize::from(number) << (how >> 4) } else { 0 };
        header(kind, bytes.len() + lies, pack);
        match kind {
            // The distance to the base: most often to an entry that there is.
            6 => {
                let base = offsets.get(usize::from(number) % (offsets.len() + 1));
                let distance = base.map_or(usize::from(number), |base| start - *base as usize);
                if distance > 0x7f {
                    pack.push(((distance >> 7) as u8).wrapping_sub(1) | 0x80);
                }
                pack.push(distance as u8 & 0x7f);
            }
            7 => pack.extend(id(usize::from(number))),
            _ => {}
        }
        if how & 0xc0 == 0xc0 {
            pack.extend_from_slice(bytes);
        } else {
            let mut encoder = ZlibEncoder::new(&mut *pack, Compression::fast());
            encoder.write_all(bytes).and_then(|()| encoder.try_finish()).expect("memory");
        }
        offsets.push(start as u32);
    }
    offsets
}

// A pack of such entries, and the index that it should have.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut pack = b"PACK\0\0\0\x02\0\0\0\0".to_vec();
    let offsets = entries(data, &mut pack);
    let count = offsets.len() as u32;
    pack[8..12].copy_from_slice(&count.to_be_bytes());
    pack.extend([0; 20]);
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    index.extend([count; 256].iter().flat_map(|count| count.to_be_bytes()));
    (0..offsets.len()).for_each(|number| index.extend(id(number)));
    index.extend(vec![0; 4 * offsets.len()]);
    index.extend(offsets.iter().flat_map(|offset| offset.to_be_bytes()));
    index.extend([0; 40]);
    fs::write(DIR.path().join("pack/pack-1.pack"), &pack).expect("there is room");
    fs::write(DIR.path().join("pack/pack-1.idx"), &index).expect("there is room");
    let _ = gossip_git::fuzzing::objects(DIR.path());
});
