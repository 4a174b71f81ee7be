//! What a finding says of its place.

use gossip_engine::{Engine, Options, Origin, Position, RuleSet, Scratch, StreamMark};

use crate::support::engine;

const RULE: &str = "[[rules]]\nid = 'acme'\nregex = 'acme_[a-z0-9]{8}'\n";

/// Lines, columns and contexts of what is found.
fn places(engine: &Engine, text: &[u8]) -> Vec<(Position, Position, String, String)> {
    let mut places = Vec::new();
    engine.scan(&mut Scratch::new(), text, None, &mut |found| {
        let context = found.context();
        let (before, after) = (context.before.to_owned(), context.after.to_owned());
        places.push((found.position(), found.end(), before, after));
    });
    places
}

fn at(line: u64, column: u64) -> Position {
    Position { line, column }
}

#[test]
fn columns_are_characters_and_the_end_is_just_behind() {
    let line = "\n  schlüssel = \"acme_q8zr2lmt\"; // für später";
    let expected =
        (at(2, 16), at(2, 29), "schlüssel = \"".to_owned(), "\"; // für später".to_owned());
    let engine = engine(RULE);
    assert_eq!(places(&engine, line.as_bytes()), std::slice::from_ref(&expected));
    for unit in [u16::to_le_bytes, u16::to_be_bytes] {
        for mark in ["", "\u{feff}"] {
            let text: Vec<u8> = format!("{mark}{line}").encode_utf16().flat_map(unit).collect();
            // Of two bytes that begin with a line end nobody can tell more than that.
            let text =
                if mark.is_empty() { [b"x\0\0x"[..0].to_vec(), text].concat() } else { text };
            let found = places(&engine, &text);
            let (start, end, before, after) = &found[0];
            assert_eq!((found.len(), *start, *end), (1, expected.0, expected.1), "{mark:?}");
            assert_eq!((before, after), (&expected.2, &expected.3));
        }
    }
}

#[test]
fn every_secret_of_a_line_is_masked_in_the_context_of_each() {
    let text = b"a = acme_q8zr2lmt, b = acme_w7yx3knv # acme_q8zr2lmt";
    let found = places(&engine(RULE), text);
    let contexts: Vec<_> = found.iter().map(|(_, _, b, a)| (b.as_str(), a.as_str())).collect();
    assert_eq!(
        contexts,
        [("a = ", ", b = … # …"), ("a = …, b = ", " # …"), ("a = …, b = … # ", "")]
    );
}

/// Where two segments meet, too: what stands behind the border is masked as well.
#[test]
fn no_context_holds_a_secret_wherever_segments_end() {
    let engine = engine(RULE);
    let segment = gossip_engine::limits::SEGMENT_LEN;
    for shift in (0..400).step_by(7) {
        let filler = "x ".repeat((segment - shift) / 2);
        let text = format!("{filler}acme_q8zr2lmt acme_w7yx3knv acme_p4bn6vcx\n{filler}");
        let found = places(&engine, text.as_bytes());
        assert_eq!(found.len(), 3, "{shift}");
        for (_, _, before, after) in found {
            assert!(!before.contains("acme_") && !after.contains("acme_"), "{before}|{after}");
        }
    }
}

/// Numbers are secrets by their rule alone: nothing else would mask one that was reported before its
/// neighbour.
#[test]
fn what_was_reported_is_masked_in_contexts_that_come_later() {
    let engine = engine("[[rules]]\nid = 'number'\nregex = '[0-9]{16}'\n");
    let segment = gossip_engine::limits::SEGMENT_LEN;
    let numbers = ["3141592653589793", "2718281828459045"];
    // Around where the first is settled when the segment ends, and the second is not.
    let border = 2 * gossip_engine::limits::NEARBY;
    for shift in (border - 40..border + 60).step_by(4) {
        let filler = "x ".repeat((segment - shift) / 2);
        let text = format!("{filler}{}\n{filler}", numbers.join(" "));
        let found = places(&engine, text.as_bytes());
        assert_eq!(found.len(), 2, "{shift}");
        for (_, _, before, after) in found {
            let is_shown = |one: &&str| before.contains(*one) || after.contains(*one);
            assert!(!numbers.iter().any(is_shown), "{shift}");
        }
    }
}

/// What only a built-in rule knows, in a line beside: wherever blocks and segments begin, and however the
/// bytes arrive.
#[test]
fn what_built_in_rules_know_is_masked_wherever_blocks_begin() {
    let engine = engine(RULE);
    let segment = gossip_engine::limits::SEGMENT_LEN;
    let text = "password = \"kdxnyjwbq\"\nx acme_q8zr2lmt kdxnyjwbq\n";
    let shifts = (0..2100).step_by(13).chain((segment - 2100..segment + 100).step_by(29));
    for shift in shifts {
        let text = format!("{}\n{text}", "y ".repeat(shift / 2));
        let found = places(&engine, text.as_bytes());
        let [(_, _, before, after)] = &found[..] else { panic!("{shift}: {}", found.len()) };
        assert_eq!((before.as_str(), after.as_str()), ("x ", " …"), "{shift}");
        let mut scratch = Scratch::new();
        let mut stream = engine.stream(&mut scratch, None);
        let mut contexts = Vec::new();
        let mut on_found = |found: gossip_engine::Finding<'_>| {
            contexts.push((found.context().before.to_owned(), found.context().after.to_owned()));
        };
        for piece in text.as_bytes().chunks(70_000) {
            stream.push(piece, &mut on_found);
        }
        stream.finish(&mut on_found);
        assert_eq!(contexts, [("x ".to_owned(), " …".to_owned())], "{shift}");
    }
}

#[test]
fn a_scan_that_goes_on_counts_on_in_characters() {
    let engine = engine(RULE);
    let segment = gossip_engine::limits::SEGMENT_LEN;
    let filler = "ö\n".repeat(segment / 2);
    let text: Vec<u8> = format!("\u{feff}{filler}é acme_q8zr2lmt\n")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let whole = places(&engine, &text);
    let mut scratch = Scratch::new();
    let mut stream = engine.stream(&mut scratch, None);
    stream.push(&text, &mut |_| {});
    let mark = stream.mark().unwrap();
    let mark = StreamMark::from_bytes(&mark.to_bytes()).unwrap();
    let mut resumed = Vec::new();
    let mut scratch = Scratch::new();
    let mut stream = engine.resume(&mut scratch, None, mark);
    stream.push(&text[mark.read_from() as usize..], &mut |found| resumed.push(found.position()));
    stream.finish(&mut |found| resumed.push(found.position()));
    assert_eq!(resumed, [whole[0].0]);
    assert_eq!(whole[0].0, at(segment as u64 / 2 + 1, 3));
}

#[test]
fn what_a_local_list_lets_pass_is_reported_as_silenced_when_asked_for() {
    let config = "[allowlist]\nregexes = ['q8zr']\n";
    let rules = |origin| {
        RuleSet::from_toml("r.toml", RULE).unwrap().with_toml("c.toml", config, origin).unwrap()
    };
    let silenced = |origin, report_silenced| {
        let options = Options { report_silenced, ..Options::default() };
        let engine = Engine::new(rules(origin), options);
        let mut found = Vec::new();
        let text = b"acme_q8zr2lmt acme_w7yx3knv";
        engine.scan(&mut Scratch::new(), text, None, &mut |f| found.push(f.silenced().is_some()));
        found
    };
    assert_eq!(silenced(Origin::Target, true), [true, false]);
    assert_eq!(silenced(Origin::Target, false), [false]);
    assert_eq!(silenced(Origin::User, true), [false]);
}
