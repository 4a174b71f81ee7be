//! Deltas of git out of arbitrary bytes.
#![no_main]

/// Small enough that one input does not take long.
const MAX: u64 = 1 << 20;

/// Seven bits a byte, the lowest first.
fn size(mut value: u64, into: &mut Vec<u8>) {
    while value > 0x7f {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

// The first bytes are the length of the base and of the result: the instructions are reached.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (base, delta) = data.split_at(data.len() / 2);
    let _ = gossip_git::fuzzing::delta(base, delta, MAX);
    let Some((&[low, high], instructions)) = delta.split_first_chunk() else { return };
    let result_len = u64::from(u16::from_le_bytes([low, high]));
    let mut delta = Vec::new();
    size(base.len() as u64, &mut delta);
    size(result_len, &mut delta);
    delta.extend_from_slice(instructions);
    if let Some(result) = gossip_git::fuzzing::delta(base, &delta, MAX) {
        assert_eq!(result.len() as u64, result_len);
    }
});
