//! Once it has grown, a scratch needs nothing for buffers without findings.

use gossip_engine::Scratch;
use gossip_testalloc::count_allocations;

use crate::support::builtin;

/// Text that keeps every stage busy and has no finding.
fn busy_text() -> Vec<u8> {
    let line = "let token = lexer.next(); // api_key: none, password = \"changeme\", ghp_short \
        AKIA1 https://user:password@host/%20x%3Dy eyJub3QiOiJhIHNlY3JldCIsIm51bWJlciI6MTIzNDU2fQ \
        datadog = 12 aws_secret_access_key = \"your-key-here\" -----BEGIN PUBLIC KEY-----\n";
    let mut text = line.repeat(3000).into_bytes();
    text.extend(line.encode_utf16().flat_map(u16::to_le_bytes));
    text
}

#[test]
fn scanning_a_buffer_without_findings_allocates_nothing() {
    let engine = builtin();
    let text = busy_text();
    let mut scratch = Scratch::new();
    let mut findings = 0;
    let mut scan = || engine.scan(&mut scratch, &text, Some(b"a/b.rs"), &mut |_| findings += 1);
    scan();
    let ((), count) = count_allocations(scan);
    assert!(count.is_zero(), "{count:?}");
    assert_eq!(findings, 0);
}

#[test]
fn streaming_a_buffer_without_findings_allocates_nothing() {
    let engine = builtin();
    let text = busy_text();
    let mut scratch = Scratch::new();
    let mut findings = 0;
    let mut scan = || {
        let mut stream = engine.stream(&mut scratch, Some(b"a/b.rs"));
        for piece in text.chunks(10_000) {
            stream.push(piece, &mut |_| findings += 1);
        }
        stream.finish(&mut |_| findings += 1);
    };
    scan();
    let ((), count) = count_allocations(scan);
    assert!(count.is_zero(), "{count:?}");
    assert_eq!(findings, 0);
}
