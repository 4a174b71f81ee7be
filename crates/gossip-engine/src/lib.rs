//! Rules in, findings out: how gossip recognises secrets in bytes. No I/O, no clock.
//!
//! A scan has three stages. The first looks, in one pass that does not depend on the number of
//! rules, for the literals that the rules' expressions guarantee (`ghp_`, `AKIA`, `-----BEGIN`).
//! The second tries a rule's expression at the places of its literals only. The third judges what
//! matched: entropy, stand-ins, allow-lists, allow comments, checksums. Base64, percent-encoded and
//! UTF-16 text is decoded and goes through the same stages.
//!
//! ```
//! use gossip_engine::{Engine, Options, RuleSet, Scratch};
//!
//! let engine = Engine::new(RuleSet::builtin(), Options::default());
//! let mut scratch = Scratch::new();
//! engine.scan(&mut scratch, b"nothing to see here", Some(b"notes.txt"), &mut |finding| {
//!     println!("{}: {}", finding.rule().id(), finding.secret().redact());
//! });
//! ```

mod candidates;
mod checksum;
mod context;
mod decode;
mod detect;
mod engine;
mod finding;
mod ignore_case;
mod judge;
pub mod limits;
mod literals;
mod options;
mod path_class;
mod pattern;
mod position;
mod prefilter;
mod rules;
mod scratch;
mod segment;
mod stream;
mod tables;
pub mod template;

pub use context::Context;
pub use decode::Encoding;
pub use detect::Detector;
pub use engine::Engine;
pub use finding::{Finding, Reason, Redacted, Secret, Silenced, Span};
pub use options::{BadChecksum, Decoding, Options};
pub use position::{LineCounter, Position};
pub use rules::{
    Checksum, Confidence, Location, Origin, Rule, RuleFault, RuleFileError, RuleNote, RuleSet,
    Severity, rules_for_gitleaks_id,
};
pub use scratch::Scratch;
pub use stream::{Stream, StreamMark};
