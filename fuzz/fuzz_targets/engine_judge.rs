//! Text made of what stands around credentials, so that detectors and the judge see more of it than
//! arbitrary bytes would show them: bytes from 128 on stand for such pieces.
#![no_main]

#[allow(dead_code, reason = "each target calls its own check")]
#[path = "../../crates/gossip-engine/tests/it/checks.rs"]
mod checks;

#[rustfmt::skip]
const PIECES: [&str; 64] = [
    "password", "passwd", "_pw", "pass", "secret", "token", "key", "auth", "credential", "api_key",
    "API key", "private key", "clockify", "stripe", "zorbify_", "Authorization: ", "basic ",
    "Bearer ", "://", "user:", "@host", "?token=", "&key=", " = ", ": ", "=", ":=", " => ", "==",
    "\"", "'", "`", "\\\"", "(", ")", "{", "}", "[", "]", "<password>", "</password>", ",", "\n",
    "\r\n", "  value: ", "name: ", "default = ", "--password ", "-p ", "${", "%s", "Some(",
    "test::from_hex(", "\nInput = ", "expected", "0x4f, ", "17, ", "example.com",
    "8ea332e7f666980c", "-----BEGIN RSA PRIVATE KEY-----", "-----END", "eyJhbGciOi", "Vq7xLm2p",
    "9b2f6c1e-7d34-",
];

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut text = Vec::new();
    for byte in data {
        match byte.checked_sub(128).and_then(|at| PIECES.get(usize::from(at))) {
            Some(piece) => text.extend_from_slice(piece.as_bytes()),
            None => text.push(*byte),
        }
    }
    checks::check_engine_scan(&text);
});
