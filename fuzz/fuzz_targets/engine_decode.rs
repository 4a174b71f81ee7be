//! Arbitrary bytes, encoded up to four times over in ways that the first bytes choose, in a line.
#![no_main]

#[allow(dead_code, reason = "each target calls its own check")]
#[path = "../../crates/gossip-engine/tests/it/checks.rs"]
mod checks;

const LEVELS: usize = 4;
/// Encodings grow what they encode; more than this shows nothing new.
const MAX_BYTES: usize = 64 << 10;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((how, text)) = data.split_at_checked(LEVELS) else { return };
    let mut text = text.to_vec();
    for how in how {
        if text.len() > MAX_BYTES {
            break;
        }
        text = encode(*how, &text);
    }
    checks::check_engine_scan(&[b"\x40key = \"", text.as_slice(), b"\"\n"].concat());
});

fn encode(how: u8, text: &[u8]) -> Vec<u8> {
    let each = |format: fn(&u8) -> String| text.iter().map(format).collect::<String>().into_bytes();
    match how % 8 {
        0 => text.to_vec(),
        1 => each(|byte| format!("{byte:02x}")),
        2 => each(|byte| format!("%{byte:02X}")),
        3 => each(|byte| format!("\\x{byte:02x}")),
        4 => each(|byte| format!("\\u00{byte:02x}")),
        5 => text.iter().flat_map(|byte| [*byte, 0]).collect(),
        6 => base64(text, b"+/"),
        _ => base64(text, b"-_"),
    }
}

fn base64(text: &[u8], last: &[u8; 2]) -> Vec<u8> {
    let digit = |value: u32| match value as u8 & 63 {
        value @ 0..26 => b'A' + value,
        value @ 26..52 => b'a' + value - 26,
        value @ 52..62 => b'0' + value - 52,
        value => last[usize::from(value - 62)],
    };
    let mut digits = Vec::new();
    for group in text.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        digits.extend((0..=group.len()).map(|at| digit(bits >> (18 - 6 * at))));
    }
    digits
}
