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
use super::value::{self, Shape, Weight};
use crate::finding::Reason;
use crate::rules::Confidence;

/// A sum of this is reported, with low confidence.
const REPORTED_BITS: f32 = 10.0;
/// And of this with medium confidence.
const SURE_BITS: f32 = 24.0;
/// No value says more than this, or a long one would need no name.
const MAX_VALUE_BITS: f32 = 24.0;

pub(super) fn detect(text: &[u8], kind: FileKind, word: Range<usize>) -> Option<Detected> {
    let name = syntax::name_around(text, word.clone())?;
    let after = *text.get(name.end)?;
    if !syntax::may_assign(after) {
        return None;
    }
    let in_name = word.start - name.start..word.end - name.start;
    let found = syntax::assignment(text, &name, kind)?;
    if name::has_credential_word(&text[word.end..name.end]) {
        return None;
    }
    let named = name::judge(&text[name.clone()], in_name)?;
    let value = &text[found.value.clone()];
    let floor = name.start.saturating_sub(services::MAX_BEFORE);
    let line = memchr::memrchr(b'\n', &text[floor..name.start]).map_or(floor, |at| floor + at + 1);
    let is_service = || services::is_named(&text[line..name.end]);
    if found.syntax == Syntax::Parameter && is_picture(&text[line..name.start]) {
        return None;
    }
    let confidence = match judge(named, found.syntax, kind, value) {
        Some(confidence) => confidence,
        None => judge_service(named, found.syntax, value).filter(|_| is_service())?,
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
    has(b".svg?") || has(b".png?") || has(b"badge")
}

fn judge(named: Named, syntax: Syntax, kind: FileKind, value: &[u8]) -> Option<Confidence> {
    if syntax == Syntax::Bytes {
        let is_key = matches!(named.kind, Kind::Key | Kind::Secret | Kind::Token);
        return (is_key && named.is_explicit && named.bits > 0.0).then_some(Confidence::Low);
    }
    if named.kind == Kind::Auth
        && let Some(confidence) = authorization::basic(value)
    {
        return Some(confidence);
    }
    let bits = named.bits + syntax_bits(syntax, kind);
    let needed = REPORTED_BITS - bits;
    if needed > MAX_VALUE_BITS || !may_name(named, syntax, kind) {
        return None;
    }
    let weight = value::weigh(value, needed)?;
    if !fits(named, weight, value) {
        return None;
    }
    let is_sure = bits + weight.bits.min(MAX_VALUE_BITS) >= SURE_BITS && named.is_explicit;
    Some(if is_sure { Confidence::Medium } else { Confidence::Low })
}

/// The key of a service that is named beside it needs less: it may have been typed, or stand apart
/// from its name by a blank only. Passwords are chosen by people and get none of this.
fn judge_service(named: Named, syntax: Syntax, value: &[u8]) -> Option<Confidence> {
    const MIN_LEN: usize = 12;
    if named.kind == Kind::Password || syntax == Syntax::Bytes || value.len() < MIN_LEN {
        return None;
    }
    let has_digit = value.iter().any(u8::is_ascii_digit);
    let is_plain = !value.iter().any(|byte| b" /(){}<>,;".contains(byte));
    if !has_digit || !is_plain {
        return None;
    }
    value::weigh_typed(value, 0.0).map(|_| Confidence::Low)
}

/// Whether a value of such a shape is what the name speaks of.
fn fits(named: Named, weight: Weight, value: &[u8]) -> bool {
    let len = value.len();
    // What names anything names identifiers and code, too.
    let is_code = || {
        value::is_camel_case(value)
            || value::ends_in_uuid(value)
            || value.iter().any(|byte| b"()[]{}".contains(byte))
    };
    if !named.is_explicit && is_code() {
        return false;
    }
    match named.kind {
        Kind::Password => (4..=128).contains(&len),
        Kind::Secret => (6..=1024).contains(&len) && weight.shape != Shape::Phrase,
        Kind::Token | Kind::Key | Kind::Auth => {
            let shape = !matches!(weight.shape, Shape::Phrase | Shape::Number);
            (8..=1024).contains(&len) && shape && (named.is_explicit || len >= 12)
        }
    }
}

/// A name that may name anything needs a value that is written as one.
fn may_name(named: Named, syntax: Syntax, kind: FileKind) -> bool {
    named.is_explicit
        || match syntax {
            Syntax::BareEquals | Syntax::BareColon => {
                matches!(kind, FileKind::Config | FileKind::Unknown)
            }
            Syntax::Element | Syntax::Flag | Syntax::Parameter | Syntax::Listed => false,
            _ => true,
        }
}

fn syntax_bits(syntax: Syntax, kind: FileKind) -> f32 {
    match syntax {
        Syntax::Quoted | Syntax::Pair | Syntax::Sql => 2.0,
        Syntax::Listed | Syntax::Element => 1.0,
        Syntax::Argument | Syntax::Compared | Syntax::Parameter | Syntax::Flag => 0.0,
        Syntax::Wrapped => -1.0,
        Syntax::BareEquals | Syntax::BareColon => match kind {
            FileKind::Config => 1.0,
            FileKind::Unknown => 0.0,
            FileKind::Text => -1.0,
            FileKind::Code => -5.0,
        },
        Syntax::Bytes => 0.0,
        // Joined by a blank only, any two words are: only a named service makes it a pair.
        Syntax::Blank => f32::NEG_INFINITY,
    }
}
