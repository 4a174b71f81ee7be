//! Values beside names that speak of credentials.
//!
//! Three things are weighed against each other, in bits: what the name says, how the value is
//! written, and what it looks like. Their sum decides; `docs/detection.md` says how the numbers were
//! chosen.

use std::ops::Range;

use super::Detected;
use super::authorization;
use super::calls;
use super::chosen;
use super::file_kind::FileKind;
use super::instead;
use super::name::{self, Kind, Named};
use super::own;
use super::place::Place;
use super::plain_word;
use super::services;
use super::signing;
use super::surroundings;
use super::syntax::{self, Assignment, Syntax};
use super::test_vector;
use super::unlisted::{self, Names};
use super::value::{self, Shape, Weight};
use crate::finding::Reason;
use crate::ignore_case;
use crate::rules::Confidence;

/// A sum of this is reported, with low confidence.
const REPORTED_BITS: f32 = 10.0;
/// And of this with medium confidence.
const SURE_BITS: f32 = 24.0;
/// No value says more than this, or a long one would need no name.
const MAX_VALUE_BITS: f32 = 24.0;
/// What no word behind the word for a password weighs.
const PROSE_BITS: f32 = 16.0;
/// What a password gains by being made as rules for passwords ask.
const CHOSEN_BITS: f32 = 3.0;
/// And by being a word with a number in a note.
const NOTED_BITS: f32 = 1.0;
/// What words in camel case weigh at most; random letters may look like them.
const CAMEL_CASE_BITS: f32 = 12.0;
/// What a name says at least that speaks of nothing but a credential.
pub(super) const CLEAR_BITS: f32 = 4.0;
/// A made-up value says less beside the name of a secret: these are more often made by programs, and
/// what is chosen there is more often the name of one.
const SECRET_LESS_BITS: f32 = 2.0;

pub(super) fn detect(text: &[u8], kind: FileKind, word: Range<usize>) -> Option<Detected> {
    if calls::is_opening(&text[word.clone()]) {
        return passed(text, kind, &word);
    }
    let (named, place) = resolve(Place::read(text, kind, word)?)?;
    if instead::is_something_else(&place, named) || surroundings::deny(&place, named) {
        return None;
    }
    let confidence = confidence(&place, named)?;
    // `"password", "DBPWD"`: a list of names.
    let is_listed = matches!(place.found.syntax, Syntax::Among | Syntax::Listed);
    let in_name = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    if is_listed && place.value().iter().all(in_name) && name::has_credential_word(place.value()) {
        return None;
    }
    // These are compared with more than one value, so they come last.
    if is_spelled(&place, named) || is_of_test_vector(&place, named) {
        return None;
    }
    Some(detected(named, place.name.start, place.found, confidence))
}

/// Whether the value says no more than its name. A password may be the name's start: `SHOPDB_PASSWORD=shop`.
fn is_spelled(place: &Place<'_>, named: Named) -> bool {
    let (name, value) = (place.name(), place.value());
    name::is_spelled(name, value)
        || (named.kind != Kind::Password && name::begins_with(name, value))
}

/// What a call is given that takes a password by its place.
fn passed(text: &[u8], kind: FileKind, opening: &Range<usize>) -> Option<Detected> {
    // What networks and tokens are protected with is made up by whoever writes the call.
    let takes_chosen = kind != FileKind::Text && calls::takes_chosen(&text[opening.clone()]);
    let judged = |(named, found): (Named, Assignment)| {
        let value = &text[found.value.clone()];
        let confidence = match judge(named, found.syntax, kind, value) {
            None if plain_word::is_argument(text, kind, named, &found) => Confidence::Low,
            None if takes_chosen && is_whole_argument(text, &found) && own::is_chosen(value) => {
                Confidence::Low
            }
            confidence => confidence?,
        };
        Some(detected(named, opening.start, found, confidence))
    };
    calls::arguments(text, opening).find_map(judged)
}

/// Whether nothing but a comma or a parenthesis stands behind a string.
fn is_whole_argument(text: &[u8], found: &Assignment) -> bool {
    const MAX_BLANKS: usize = 32;
    let start = text.len().min(found.value.end + 1);
    let rest = text[start..text.len().min(start + MAX_BLANKS)].trim_ascii_start();
    matches!(rest.first(), Some(b',' | b')'))
}

/// What the name says, and the value with the syntax that follows from that: of `user:value` the
/// password alone.
fn resolve(place: Place<'_>) -> Option<(Named, Place<'_>)> {
    let Place { text, kind, phrase, .. } = place;
    let word = place.word.start - phrase..place.word.end - phrase;
    let named = name::judge(place.whole_name(), word)?;
    let named = if logs_in(&place, named) { name::LOGIN } else { named };
    if place.value().len() < min_len(named) {
        return None;
    }
    let password =
        if is_login(named) { syntax::password_of_user(text, &place.found) } else { None };
    let is_one = |password: &Assignment| {
        let value = &text[password.value.clone()];
        judge(name::LOGIN, password.syntax, kind, value).is_some()
            || plain_word::is_of_user(&text[place.name.clone()], kind, value)
    };
    let (named, found) = match password.filter(is_one) {
        Some(password) => (name::LOGIN, password),
        None if named.kind == Kind::Auth => {
            (named, authorization::behind_scheme(text, place.found.clone()))
        }
        None => (named, place.found.clone()),
    };
    let syntax = told(text, &place.name, named, &found);
    Some((named, place.with(Assignment { syntax, ..found })))
}

/// What is shorter is no such credential, and needs no further look; most values of code are. Of a user
/// and a password the latter alone has four characters.
fn min_len(named: Named) -> usize {
    match named.kind {
        Kind::Password => 4,
        Kind::Secret | Kind::Auth => 6,
        Kind::Token | Kind::Key | Kind::Marked => 8,
    }
}

/// Whether the value logs somebody in, whatever it is called.
fn logs_in(place: &Place<'_>, named: Named) -> bool {
    match place.found.syntax {
        Syntax::Login => true,
        // `enable secret 0 …`: routers say so that it is no hash.
        Syntax::Directive => place.text[place.name.end..].starts_with(b" 0 "),
        // `redis.auth("…")` logs in without a user.
        Syntax::Argument => named.kind == Kind::Auth && chosen::weigh(place.value()).is_some(),
        _ => false,
    }
}

/// How sure it is that the value is what the name speaks of: by its weight, as a plain word, or as the
/// key of a service.
fn confidence(place: &Place<'_>, named: Named) -> Option<Confidence> {
    let (value, syntax) = (place.value(), place.found.syntax);
    if let Some(confidence) = judge(named, syntax, place.kind, value) {
        return Some(confidence);
    }
    let is_of_service = || {
        let names = Names { before: place.before(), name: place.whole_name() };
        let may_be = !matches!(syntax, Syntax::Bytes | Syntax::Among);
        may_be
            && named.kind != Kind::Password
            && unlisted::is_key(named, syntax, place.kind, value, &names, || {
                services::is_named(&place.text[place.line..place.name.end])
            })
    };
    let is_password =
        || plain_word::is_password(place, named) || plain_word::is_encoded(place, named);
    let is_one = is_password() || signing::is_chosen(place, named) || is_of_service();
    is_one.then_some(Confidence::Low)
}

/// What was found beside a name that begins at `start`.
pub(super) fn detected(
    named: Named,
    start: usize,
    found: Assignment,
    confidence: Confidence,
) -> Detected {
    let reason = match named.kind {
        Kind::Password => Reason::NamedPassword,
        _ => Reason::NamedSecret,
    };
    // A value may stand before its name.
    let start = start.min(found.value.start);
    Detected { whole: start..found.value.end, secret: found.value, confidence, reason }
}

/// Whether the key is one of a test vector.
fn is_of_test_vector(place: &Place<'_>, named: Named) -> bool {
    // The environment's are in use, and a public key may stand beside.
    let is_of_environment = place.kind == FileKind::Config && syntax::is_constant(place.name());
    named.kind != Kind::Password
        && !is_of_environment
        && test_vector::is_one(place.text, &place.found, named.is_explicit)
}

/// Whether a name of what logs in may name a user and a password at once.
fn is_login(named: Named) -> bool {
    named.kind == Kind::Auth || (named.kind == Kind::Secret && !named.is_explicit)
}

/// What the syntax is, now that the kind is known: `password:value` on a line of its own is no label,
/// and passwords are told in sentences more often than keys.
fn told(text: &[u8], name: &Range<usize>, named: Named, found: &Assignment) -> Syntax {
    let is_password = named.kind == Kind::Password;
    match found.syntax {
        Syntax::Label if is_password && text.get(name.end) == Some(&b':') => {
            let alone = syntax::starts_line(text, name.start) && named.is_explicit;
            if alone { Syntax::BareColon } else { Syntax::Label }
        }
        Syntax::Said if !is_password => Syntax::Blank,
        // `String::from("…")` is a string as any.
        Syntax::Wrapped if plain_word::is_string(&text[name.end..found.value.start]) => {
            Syntax::Quoted
        }
        other => other,
    }
}

pub(super) fn judge(
    named: Named,
    syntax: Syntax,
    kind: FileKind,
    value: &[u8],
) -> Option<Confidence> {
    if syntax == Syntax::Bytes {
        let is_key = matches!(named.kind, Kind::Key | Kind::Secret | Kind::Token);
        return (is_key && named.is_explicit && named.bits > 0.0).then_some(Confidence::Low);
    }
    if named.kind == Kind::Marked {
        return None;
    }
    // `name:value`: only what cannot be anything else.
    if syntax == Syntax::Label {
        let is_key = matches!(named.kind, Kind::Key | Kind::Secret | Kind::Token);
        let is_sure =
            || value::weigh(value, SURE_BITS).is_some_and(|weight| fits(named, weight, value));
        return (is_key && named.is_explicit && named.bits >= CLEAR_BITS && is_sure())
            .then_some(Confidence::Low);
    }
    if named.kind == Kind::Auth
        && let Some(confidence) = authorization::basic(value)
    {
        return Some(confidence);
    }
    let is_password = named.kind == Kind::Password;
    let by_the_rules = is_password && value::is_by_the_rules(value);
    // What somebody wrote down was not chosen as an example.
    let is_noted = syntax == Syntax::Said
        && kind == FileKind::Unknown
        && is_password
        && chosen::is_word_and_number(value);
    let made = match (by_the_rules, is_noted) {
        (true, _) => CHOSEN_BITS,
        (false, true) => NOTED_BITS,
        (false, false) => 0.0,
    };
    let bits = named.bits + syntax_bits(syntax, kind) + made;
    // Passwords are words, and prose puts a word behind every word.
    let in_prose = is_password
        && matches!(syntax, Syntax::Blank | Syntax::Joined)
        && (value.contains(&b'=') || value::weigh(value, PROSE_BITS).is_none());
    let needed = REPORTED_BITS - bits;
    if needed > MAX_VALUE_BITS || !may_name(named, syntax, kind) || in_prose {
        return None;
    }
    // What documentation shows was chosen as an example; what rules for passwords ask for is not.
    let is_example = kind == FileKind::Text && !by_the_rules;
    let chosen = if is_example { None } else { chosen_bits(named, syntax, value) };
    let chosen = chosen.filter(|chosen| *chosen >= needed);
    let least = if chosen.is_some() { f32::MIN } else { needed };
    // Rules for passwords ask for digits and signs; that they were typed in order says nothing.
    let weight = match chosen {
        Some(_) if by_the_rules => value::weigh_typed(value, least)?,
        _ => value::weigh(value, least)?,
    };
    if !fits(named, weight, value) {
        return None;
    }
    let is_sure = bits + weight.bits.min(MAX_VALUE_BITS) >= SURE_BITS && named.is_explicit;
    Some(if is_sure { Confidence::Medium } else { Confidence::Low })
}

/// What a value weighs that somebody made up, beside a name that leaves no doubt.
fn chosen_bits(named: Named, syntax: Syntax, value: &[u8]) -> Option<f32> {
    // A word that the vocabulary does not know may make something else of the name.
    let is_clear = named.is_explicit && named.bits >= CLEAR_BITS;
    let less = match named.kind {
        Kind::Password if is_clear => 0.0,
        Kind::Secret if is_clear && value::is_by_the_rules(value) => 0.0,
        Kind::Secret if is_clear => SECRET_LESS_BITS,
        // A key that somebody made up as a password.
        Kind::Key if is_clear && value::is_by_the_rules(value) => SECRET_LESS_BITS,
        _ => return None,
    };
    let is_assigned = matches!(
        syntax,
        Syntax::Quoted | Syntax::Pair | Syntax::BareEquals | Syntax::BareColon | Syntax::Variable
    );
    let called_out = || if is_assigned { chosen::weigh_called_out(value) } else { None };
    chosen::weigh(value).or_else(called_out).map(|bits| bits - less)
}

/// Whether a value of such a shape is what the name speaks of.
fn fits(named: Named, weight: Weight, value: &[u8]) -> bool {
    let len = value.len();
    // What names anything names identifiers and code, too.
    let is_code = || {
        value::is_camel_case(value)
            || value::ends_in_uuid(value)
            || value::is_dotted(value)
            || value::is_named_hash(value)
            || value::is_option(value)
            || value::is_place(value)
            || value.iter().any(|byte| b"()[]{}".contains(byte))
    };
    if !named.is_explicit && is_code() {
        return false;
    }
    // `"Zoho-oauthtoken " + token`: how something is authorized.
    if named.kind == Kind::Auth && ignore_case::ends_with_any(value, &["token", "key"]) {
        return false;
    }
    // `Auth : X-B3-TraceId=…`: another name, with a value of its own.
    let is_pair = || memchr::memchr(b'=', value).is_some_and(|at| at + 2 < value.len());
    if named.kind == Kind::Auth && value.first().is_some_and(u8::is_ascii_uppercase) && is_pair() {
        return false;
    }
    // Words in a language that the model does not know; a pass phrase has a digit or is none to it.
    if weight.shape == Shape::Phrase && !value.iter().any(u8::is_ascii_digit) {
        return false;
    }
    match named.kind {
        Kind::Password => (4..=128).contains(&len),
        Kind::Secret => (6..=1024).contains(&len) && weight.shape != Shape::Phrase,
        Kind::Token | Kind::Key | Kind::Auth | Kind::Marked => {
            let shape = !matches!(weight.shape, Shape::Phrase | Shape::Number);
            (8..=1024).contains(&len)
                && shape
                && (named.is_explicit || len >= 12)
                && !value::is_dotted(value)
                && !value::is_snake_case(value)
                && !(value::is_joined_name(value)
                    && (weight.bits < SURE_BITS || !named.is_explicit))
                && !(value::is_camel_case(value) && weight.bits < CAMEL_CASE_BITS)
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
            Syntax::Blank | Syntax::Joined | Syntax::Label | Syntax::Said => false,
            Syntax::Among => false,
            _ => true,
        }
}

fn syntax_bits(syntax: Syntax, kind: FileKind) -> f32 {
    match syntax {
        Syntax::Quoted | Syntax::Pair | Syntax::Sql => 2.0,
        Syntax::Listed | Syntax::Element => 1.0,
        Syntax::Argument | Syntax::Compared | Syntax::Parameter | Syntax::Flag => 0.0,
        Syntax::Login | Syntax::ConnectionString => 0.0,
        Syntax::Directive => 1.0,
        Syntax::Wrapped | Syntax::Said => -1.0,
        Syntax::Cell => -2.0,
        Syntax::BareEquals | Syntax::BareColon | Syntax::Variable => match kind {
            FileKind::Config | FileKind::Catalogue => 1.0,
            FileKind::Unknown => 0.0,
            FileKind::Text => -1.0,
            FileKind::Code => -5.0,
        },
        Syntax::Bytes => 0.0,
        // Joined by a blank or a dash only, any two words are: the value must speak for itself.
        Syntax::Blank | Syntax::Joined | Syntax::Label | Syntax::Among => -8.0,
    }
}
