//! Scans of anything, whole and in pieces.

use gossip_engine::limits::{CONTEXT_AFTER, SEGMENT_LEN};
use gossip_engine::{Engine, Finding, Options, Position, RuleSet, Scratch, StreamMark, template};
use proptest::prelude::*;

use crate::checks::{check_engine_scan, check_rules_toml};
use crate::support::{Found, builtin, scan, scan_with, stream};

/// Text of which much is almost, or really, a secret.
fn mixture() -> impl Strategy<Value = Vec<u8>> {
    let rules = builtin().rules();
    let templates: Vec<String> =
        rules.iter().flat_map(|rule| rule.examples().iter().cloned()).collect();
    let piece = prop_oneof![
        2 => (prop::sample::select(templates), any::<u64>())
            .prop_map(|(template, seed)| template::expand(&template, seed).unwrap().text.into_bytes()),
        2 => "[ -~]{0,60}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..60),
        1 => prop::sample::select(vec![
            "\n", "\r\n", " = \"", "\"", ": ", " # gossip:allow\n", "token=", "%20", "\0", "eyJ",
        ]).prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// E1, E2, and C1's order.
    #[test]
    fn any_bytes_are_scanned_and_spans_lie_within(text in mixture()) {
        check_engine_scan(&text);
    }

    #[test]
    fn any_text_is_a_rule_file_or_an_error(
        text in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![
                "[[rules]]\n", "id = 'a'\n", "id = 'b'\n", "regex = , \n", "(?i)", "[a-z]{2,9}",
                "(x|yz)", "{1000}", "(", ")", "secretGroup = 1\n", "entropy = 3\n", "keywords = ['k']\n",
                "path = 'p'\n", "[[rules.allowlists]]\n", "regexes = ['x']\n", "[extend]\n",
                "useDefault = true\n", "disabledRules = ['jwt']\n", "checksum = 'jwt'\n", "token",
            ]).prop_map(str::to_owned),
            "[ -~\n]{0,12}",
        ], 0..16),
    ) {
        check_rules_toml(text.concat().as_bytes());
    }

    /// A scratch that has seen other bytes finds the same.
    #[test]
    fn scratch_carries_nothing_over(first in mixture(), second in mixture()) {
        let mut scratch = Scratch::new();
        scan_with(builtin(), &mut scratch, &first);
        prop_assert_eq!(scan_with(builtin(), &mut scratch, &second), scan(builtin(), &second));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// E1: pieces of any size, over several segments.
    #[test]
    fn pieces_of_any_size_give_what_the_whole_gives(
        parts in prop::collection::vec((mixture(), 0usize..200_000), 4..8),
        sizes in prop::collection::vec(1usize..150_000, 1..6),
    ) {
        let mut text = Vec::new();
        for (part, filler) in &parts {
            text.extend_from_slice(part);
            text.extend(b"filler text, of no interest\n".iter().cycle().take(*filler));
        }
        prop_assert_eq!(stream(builtin(), &text, &sizes), scan(builtin(), &text));
    }

    /// M1: wherever a scan is cut, with secrets all around the ends of its segments.
    #[test]
    fn a_scan_goes_on_from_its_mark_with_exactly_what_was_not_reported(
        parts in prop::collection::vec((mixture(), 0usize..3_000), 3..4),
        size in 1usize..150_000,
    ) {
        let mut text = Vec::new();
        for (index, (part, before)) in parts.iter().enumerate() {
            text.resize((index + 1) * SEGMENT_LEN - before, b'\n');
            text.extend_from_slice(part);
        }
        text.extend_from_slice(&vec![b'.'; CONTEXT_AFTER + 7]);
        let whole = scan(builtin(), &text);
        let mut scratch = Scratch::new();
        let mut found = Vec::new();
        let mut last = None;
        let mut stream = builtin().stream(&mut scratch, Some(b"src/config.txt"));
        for piece in text.chunks(size) {
            stream.push(piece, &mut |finding| found.push(Found::of(finding)));
            if let Some(mark) = stream.mark().filter(|mark| Some(*mark) != last) {
                last = Some(mark);
                let mark = StreamMark::from_bytes(&mark.to_bytes()).unwrap();
                let mut scratch = Scratch::new();
                let mut rest = Vec::new();
                let mut later = builtin().resume(&mut scratch, Some(b"src/config.txt"), mark);
                for piece in text[mark.read_from() as usize..].chunks(size) {
                    later.push(piece, &mut |finding| rest.push(Found::of(finding)));
                }
                later.finish(&mut |finding| rest.push(Found::of(finding)));
                prop_assert_eq!(&rest[..], &whole[found.len()..]);
            }
        }
        prop_assert!(last.is_some());
    }

    /// M1: parts that are scanned apart, from marks that nobody scanned up to.
    #[test]
    fn parts_between_marks_give_what_the_whole_gives(
        parts in prop::collection::vec((mixture(), 0usize..3_000), 7..8),
        steps in 1_u64..4,
    ) {
        let mut text = Vec::new();
        for (index, (part, before)) in parts.iter().enumerate() {
            text.resize((index + 1) * SEGMENT_LEN - before, b'\n');
            text.extend_from_slice(part);
        }
        let (mut scratch, mut found) = (Scratch::new(), Vec::new());
        let mut on_finding = |finding: Finding<'_>| found.push(Found::of(finding));
        let mut stream = builtin().stream(&mut scratch, Some(b"src/config.txt"));
        stream.push(&text[..SEGMENT_LEN + CONTEXT_AFTER + 1], &mut on_finding);
        let mut mark = stream.mark().unwrap();
        while mark.read_to(steps) < text.len() as u64 {
            let bytes = &text[mark.read_from() as usize..mark.read_to(steps) as usize];
            stream.skip_to(mark.ahead(0));
            stream.push(bytes, &mut |finding: Finding<'_>| {
                let Position { line, column } = mark.place(finding.position());
                found.push(Found { line, column, ..Found::of(finding) });
            });
            let next = mark.follow(stream.mark().unwrap());
            prop_assert_eq!(next.read_from(), mark.ahead(steps).read_from());
            mark = next;
        }
        let mut on_finding = |finding: Finding<'_>| found.push(Found::of(finding));
        stream.skip_to(mark);
        stream.push(&text[mark.read_from() as usize..], &mut on_finding);
        stream.finish(&mut on_finding);
        prop_assert_eq!(found, scan(builtin(), &text));
    }
}

#[test]
fn a_mark_that_no_object_could_have_is_refused() {
    for bytes in [[0xff; StreamMark::SIZE], {
        let mut lines = [0; StreamMark::SIZE];
        lines[15] = 1;
        lines
    }] {
        assert_eq!(StreamMark::from_bytes(&bytes), None);
    }
}

/// Whatever the place relative to the end of a segment, each secret is found exactly once.
#[test]
fn a_secret_at_the_end_of_a_segment_is_found_exactly_once() {
    let engine = builtin();
    let mut scratch = Scratch::new();
    let rules =
        ["github-token", "private-key", "telegram-bot-token", "generic-assignment", "service-key"];
    for rule in rules {
        let example = engine.rules().get(rule).unwrap().examples()[0].clone();
        let expanded = template::expand(&example, 3).unwrap();
        let len = expanded.text.len();
        let mut places: Vec<_> = (0..=len).step_by(1 + len / 40).collect();
        places.push(len);
        for place in places {
            let filler = SEGMENT_LEN - place;
            let mut text = vec![b'.'; filler - 1];
            text.push(b'\n');
            text.extend_from_slice(expanded.text.as_bytes());
            text.push(b'\n');
            text.resize(SEGMENT_LEN + CONTEXT_AFTER + 100, b'.');
            let found = scan_with(engine, &mut scratch, &text);
            let spans: Vec<_> =
                found.iter().map(|f| (f.rule.as_str(), f.start, f.end, f.line)).collect();
            let start = filler + expanded.secret.start;
            assert_eq!(spans, [(rule, start, filler + expanded.secret.end, 2)], "place {place}");
        }
    }
}

#[test]
fn an_encoded_secret_at_the_end_of_a_segment_is_found_exactly_once() {
    let engine = builtin();
    let token = template::expand("ghp_{base62:30}{crc32}", 3).unwrap().text;
    let line = format!("token = \"{token}\" and more text here\r\n");
    let utf16: Vec<u8> = line.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let percent = token.replace('_', "%5f").into_bytes();
    for (encoded, secret_len) in [(utf16, token.len() * 2), (percent, token.len() + 2)] {
        for place in (0..=encoded.len()).step_by(2) {
            let mut text = vec![b' '; SEGMENT_LEN - place];
            text.extend_from_slice(&encoded);
            text.resize(SEGMENT_LEN * 2, b' ');
            let found = scan(engine, &text);
            let rules: Vec<_> = found.iter().map(|f| (f.rule.as_str(), f.end - f.start)).collect();
            assert_eq!(rules, [("github-token", secret_len)], "place {place}");
        }
    }
}

/// Where no match begins is remembered from one anchor to the next, and what follows is still found.
#[test]
fn tokens_among_very_many_anchors_are_all_found() {
    let token = |seed| template::expand("{jwt}", seed).unwrap().text;
    let anchors = "eyJ. sk.eyJ ".repeat(3_000);
    let text = format!("{anchors} {} {anchors}{anchors} {} {anchors}", token(1), token(2));
    let found: Vec<_> = scan(builtin(), text.as_bytes())
        .into_iter()
        .map(|found| (found.rule, found.secret))
        .collect();
    let expected = [1, 2].map(|seed| ("jwt".to_owned(), token(seed).into_bytes()));
    assert_eq!(found, expected);
}

#[test]
fn lines_and_columns_are_counted_from_one() {
    let token = template::expand("ghp_{base62:30}{crc32}", 3).unwrap().text;
    let text = format!("{token}\nab {token}\r\n\r\n  {token}");
    let found = scan(builtin(), text.as_bytes());
    let places: Vec<_> = found.iter().map(|f| (f.line, f.column)).collect();
    assert_eq!(places, [(1, 1), (2, 4), (4, 3)]);
}

#[test]
fn allow_comments_silence_their_line_unless_switched_off() {
    let token = template::expand("ghp_{base62:30}{crc32}", 3).unwrap().text;
    let text =
        format!("a = {token} # gossip:allow\nb = {token} // gitleaks:allow because\nc = {token}\n");
    let lines = |engine: &Engine| -> Vec<u64> {
        scan(engine, text.as_bytes()).iter().map(|found| found.line).collect()
    };
    assert_eq!(lines(builtin()), [3]);
    let options = Options { allow_comments: false, ..Options::default() };
    assert_eq!(lines(&Engine::new(RuleSet::builtin(), options)), [1, 2, 3]);
}

#[test]
fn debug_of_a_finding_shows_no_secret() {
    let token = template::expand("ghp_{base62:30}{crc32}", 3).unwrap().text;
    let mut shown = String::new();
    builtin().scan(&mut Scratch::new(), token.as_bytes(), None, &mut |finding| {
        shown = format!("{finding:?} {}", finding.secret().redact());
    });
    assert!(shown.contains("ghp_… (40 bytes)"), "{shown}");
    for window in token.as_bytes()[4..].windows(4) {
        let window = std::str::from_utf8(window).unwrap();
        assert!(!shown.contains(window), "{shown}");
    }
}

#[test]
fn an_engine_without_rules_finds_nothing() {
    let engine = Engine::new(RuleSet::empty(), Options::default());
    assert_eq!(scan(&engine, b"anything at all"), []);
}

#[test]
fn one_scratch_serves_engines_in_turn() {
    let mut scratch = Scratch::new();
    let token = template::expand("ghp_{base62:30}{crc32}", 3).unwrap().text;
    let rules = "[[rules]]\nid = 'a'\nregex = 'ghp_([a-zA-Z0-9]{4})'\n";
    let other = Engine::new(RuleSet::from_toml("t", rules).unwrap(), Options::default());
    for _ in 0..3 {
        assert_eq!(scan_with(builtin(), &mut scratch, token.as_bytes())[0].rule, "github-token");
        assert_eq!(scan_with(&other, &mut scratch, token.as_bytes())[0].rule, "a");
    }
}
