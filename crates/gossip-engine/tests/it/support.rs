//! What the tests share.

use std::sync::OnceLock;

use gossip_engine::{Confidence, Encoding, Engine, Finding, Options, RuleSet, Scratch};

/// A finding, kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) rule: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) line: u64,
    pub(crate) column: u64,
    pub(crate) confidence: Confidence,
    pub(crate) encoding: Encoding,
    pub(crate) secret: Vec<u8>,
}

impl Found {
    pub(crate) fn of(finding: Finding<'_>) -> Self {
        Self {
            rule: finding.rule().id().to_owned(),
            start: finding.span().start as usize,
            end: finding.span().end() as usize,
            line: finding.position().line,
            column: finding.position().column,
            confidence: finding.confidence(),
            encoding: finding.encoding(),
            secret: finding.secret().expose().to_vec(),
        }
    }
}

pub(crate) fn builtin() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(RuleSet::builtin(), Options::default()))
}

pub(crate) fn engine(rules: &str) -> Engine {
    Engine::new(RuleSet::from_toml("test.toml", rules).unwrap(), Options::default())
}

pub(crate) fn scan(engine: &Engine, text: &[u8]) -> Vec<Found> {
    scan_with(engine, &mut Scratch::new(), text)
}

pub(crate) fn scan_with(engine: &Engine, scratch: &mut Scratch, text: &[u8]) -> Vec<Found> {
    let mut found = Vec::new();
    engine.scan(scratch, text, Some(b"src/config.txt"), &mut |finding| {
        found.push(Found::of(finding));
    });
    found
}

/// The same bytes in pieces of these sizes, over and over.
pub(crate) fn stream(engine: &Engine, text: &[u8], sizes: &[usize]) -> Vec<Found> {
    let mut scratch = Scratch::new();
    let mut found = Vec::new();
    let mut stream = engine.stream(&mut scratch, Some(b"src/config.txt"));
    let mut rest = text;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, later) = rest.split_at((*size).clamp(1, rest.len()));
        stream.push(piece, &mut |finding| found.push(Found::of(finding)));
        rest = later;
    }
    stream.finish(&mut |finding| found.push(Found::of(finding)));
    found
}
