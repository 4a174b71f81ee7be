//! Values beside names that speak of credentials.
//!
//! Three things are weighed against each other, in bits: what the name says, how the value is
//! written, and what it looks like. Their sum decides; `docs/detection.md` says how the numbers were
//! chosen.

use std::ops::Range;

use super::Detected;
use super::authorization;
use super::file_kind::FileKind;
use super::name::{self, Kind, Named};
use super::services;
use super::syntax::{self, Syntax};
use super::test_vector;
use super::unlisted::{self, Names};
use super::value::{self, Shape, Weight};
use crate::finding::Reason;
use crate::rules::Confidence;

/// A sum of this is reported, with low confidence.
const REPORTED_BITS: f32 = 10.0;
/// And of this with medium confidence.
const SURE_BITS: f32 = 24.0;
/// No value says more than this, or a long one would need no name.
const MAX_VALUE_BITS: f32 = 24.0;
/// What a password gains by being made as rules for passwords ask.
const CHOSEN_BITS: f32 = 3.0;

pub(super) fn detect(text: &[u8], kind: FileKind, word: Range<usize>) -> Option<Detected> {
    let (name, found) = match syntax::joined(text, word.clone()) {
        Some(joined) => joined,
        None => {
            let name = syntax::name_around(text, word.clone())?;
            if !syntax::may_assign(*text.get(name.end)?) || syntax::is_prose(text, &name, kind) {
                return None;
            }
            let found = syntax::assignment(text, &name, kind)?;
            (name, found)
        }
    };
    if name::has_credential_word(&text[word.end..name.end]) {
        return None;
    }
    let floor = name.start.saturating_sub(services::MAX_BEFORE);
    let line = memchr::memrchr(b'\n', &text[floor..name.start]).map_or(floor, |at| floor + at + 1);
    let phrase = syntax::phrase(text, &name, line);
    let in_name = word.start - phrase..word.end - phrase;
    let named = name::judge(&text[phrase..name.end], in_name)?;
    let named = if found.syntax == Syntax::Login { name::LOGIN } else { named };
    let value = &text[found.value.clone()];
    if found.syntax == Syntax::Parameter && is_picture(&text[line..name.start]) {
        return None;
    }
    let confidence = match judge(named, found.syntax, kind, value) {
        Some(_) if named.kind != Kind::Password && test_vector::is_one(text, &found) => {
            return None;
        }
        Some(confidence) => confidence,
        None => {
            let of_service = found.syntax != Syntax::Bytes && named.kind != Kind::Password;
            let names = Names { before: &text[line..phrase], name: &text[phrase..name.end] };
            let is_key = of_service
                && unlisted::is_key(named, found.syntax, kind, value, &names, || {
                    services::is_named(&text[line..name.end])
                });
            is_key.then_some(Confidence::Low)?
        }
    };
    let reason = match named.kind {
        Kind::Password => Reason::NamedPassword,
        _ => Reason::NamedSecret,
    };
    let whole = name.start..found.value.end;
    Some(Detected { whole, secret: found.value, confidence, reason })
}

/// Whether the address before a parameter is that of a picture: `….svg?token=` shows a badge, and
/// its token opens no more than that.
fn is_picture(address: &[u8]) -> bool {
    let has = |part: &[u8]| memchr::memmem::find(address, part).is_some();
    has(b".svg?") || has(b".png?") || has(b"badge") || has(b"shields.io/")
}

fn judge(named: Named, syntax: Syntax, kind: FileKind, value: &[u8]) -> Option<Confidence> {
    if syntax == Syntax::Bytes {
        let is_key = matches!(named.kind, Kind::Key | Kind::Secret | Kind::Token);
        return (is_key && named.is_explicit && named.bits > 0.0).then_some(Confidence::Low);
    }
    if named.kind == Kind::Marked || syntax == Syntax::Label {
        return None;
    }
    if named.kind == Kind::Auth
        && let Some(confidence) = authorization::basic(value)
    {
        return Some(confidence);
    }
    let chosen = named.kind == Kind::Password && value::is_by_the_rules(value);
    let bits = named.bits + syntax_bits(syntax, kind) + if chosen { CHOSEN_BITS } else { 0.0 };
    let needed = REPORTED_BITS - bits;
    // Passwords are words, and prose puts a word behind every word.
    let in_prose = named.kind == Kind::Password && matches!(syntax, Syntax::Blank | Syntax::Joined);
    if needed > MAX_VALUE_BITS || !may_name(named, syntax, kind) || in_prose {
        return None;
    }
    let weight = value::weigh(value, needed)?;
    if !fits(named, weight, value) {
        return None;
    }
    let is_sure = bits + weight.bits.min(MAX_VALUE_BITS) >= SURE_BITS && named.is_explicit;
    Some(if is_sure { Confidence::Medium } else { Confidence::Low })
}

/// Whether a value of such a shape is what the name speaks of.
fn fits(named: Named, weight: Weight, value: &[u8]) -> bool {
    let len = value.len();
    // What names anything names identifiers and code, too.
    let is_code = || {
        value::is_camel_case(value)
            || value::ends_in_uuid(value)
            || value::is_dotted(value)
            || value.iter().any(|byte| b"()[]{}".contains(byte))
    };
    if !named.is_explicit && is_code() {
        return false;
    }
    match named.kind {
        Kind::Password => (4..=128).contains(&len),
        Kind::Secret => (6..=1024).contains(&len) && weight.shape != Shape::Phrase,
        Kind::Token | Kind::Key | Kind::Auth | Kind::Marked => {
            let shape = !matches!(weight.shape, Shape::Phrase | Shape::Number);
            (8..=1024).contains(&len) && shape && (named.is_explicit || len >= 12)
        }
    }
}

/// A name that may name anything needs a value that is written as one.
fn may_name(named: Named, syntax: Syntax, kind: FileKind) -> bool {
    named.is_explicit
        || match syntax {
            Syntax::BareEquals | Syntax::BareColon | Syntax::Variable => {
                matches!(kind, FileKind::Config | FileKind::Unknown)
            }
            Syntax::Parameter => named.kind == Kind::Key,
            Syntax::Element | Syntax::Flag | Syntax::Listed => false,
            Syntax::Directive | Syntax::Cell | Syntax::ConnectionString => false,
            Syntax::Blank | Syntax::Joined | Syntax::Label => false,
            _ => true,
        }
}

fn syntax_bits(syntax: Syntax, kind: FileKind) -> f32 {
    match syntax {
        Syntax::Quoted | Syntax::Pair | Syntax::Sql => 2.0,
        Syntax::Listed | Syntax::Element => 1.0,
        Syntax::Argument | Syntax::Compared | Syntax::Parameter | Syntax::Flag => 0.0,
        Syntax::Directive | Syntax::Login | Syntax::ConnectionString => 0.0,
        Syntax::Wrapped => -1.0,
        Syntax::Cell => -2.0,
        Syntax::BareEquals | Syntax::BareColon | Syntax::Variable => match kind {
            FileKind::Config => 1.0,
            FileKind::Unknown => 0.0,
            FileKind::Text => -1.0,
            FileKind::Code => -5.0,
        },
        Syntax::Bytes => 0.0,
        // Joined by a blank or a dash only, any two words are: the value must speak for itself.
        Syntax::Blank | Syntax::Joined | Syntax::Label => -8.0,
    }
}
