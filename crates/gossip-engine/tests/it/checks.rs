//! What must hold for any input. Property tests and the fuzz targets call the same checks.

use std::sync::OnceLock;

use gossip_engine::{Engine, Finding, Options, RuleSet, Scratch};

/// Start, end, rule.
type Found = (u64, u64, usize);

fn keep(found: &mut Vec<Found>) -> impl FnMut(Finding<'_>) {
    |finding| found.push((finding.span().start, finding.span().end(), finding.rule_index()))
}

/// Any bytes: no panic, spans within bounds and in order, nothing twice, and pieces give what the
/// whole gives. The first byte says how large the pieces are.
pub(crate) fn check_engine_scan(data: &[u8]) {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    let engine = ENGINE.get_or_init(|| Engine::new(RuleSet::builtin(), Options::default()));
    let Some((&size, data)) = data.split_first() else { return };
    let mut scratch = Scratch::new();
    let mut whole = Vec::new();
    engine.scan(&mut scratch, data, Some(b"any/path.txt"), &mut keep(&mut whole));
    for &(start, end, rule) in &whole {
        assert!(start < end && end <= data.len() as u64, "{start}..{end} of {}", data.len());
        assert!(rule < engine.rules().len());
    }
    assert!(whole.is_sorted_by_key(|(start, end, rule)| (*start, std::cmp::Reverse(*end), *rule)));
    let mut once = whole.clone();
    once.dedup();
    assert_eq!(once.len(), whole.len(), "a finding is reported twice");
    let mut pieces = Vec::new();
    let mut stream = engine.stream(&mut scratch, Some(b"any/path.txt"));
    for piece in data.chunks(usize::from(size) + 1) {
        stream.push(piece, &mut keep(&mut pieces));
    }
    stream.finish(&mut keep(&mut pieces));
    assert_eq!(pieces, whole);
}

/// Any text as a rule file: rules that work, or an error that names the file.
pub(crate) fn check_rules_toml(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match RuleSet::from_toml("any.toml", &text) {
        Ok(rules) => {
            let engine = Engine::new(rules, Options::default());
            let mut found = Vec::new();
            engine.scan(&mut Scratch::new(), data, None, &mut keep(&mut found));
            assert!(found.iter().all(|(_, end, _)| *end <= data.len() as u64));
        }
        Err(error) => assert!(error.to_string().starts_with("any.toml"), "{error}"),
    }
}
