//! What a name says about the value beside it: a vocabulary of credential words, and of the words
//! that make something else of them.
//!
//! A name is taken apart into words: at `_`, `-`, `.`, and at the humps of camel case. The last
//! credential word in it decides; words behind it may deny it (`password_file`), and words before it
//! may deny or strengthen it (`public_key`, `api_key`).

mod credential;

use std::ops::Range;

use super::vocabulary::{self, Role, says};
use crate::ignore_case;
use credential::{NO_KEYS, Word, credential};

/// The kind of credential that a name speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Password,
    Secret,
    Token,
    Key,
    Auth,
    /// `PRIVATE`, `ACCESS`: of a key only beside the name of whoever gave it out.
    Marked,
}

/// What a name says, in bits: how much likelier a value beside it is a secret than beside any name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Named {
    pub(super) kind: Kind,
    pub(super) bits: f32,
    /// The name leaves no doubt of what it names: `api_key`, not `key`.
    pub(super) is_explicit: bool,
}

/// What logs in with a user's name: a password, whatever it is called.
pub(super) const LOGIN: Named = Named { kind: Kind::Password, bits: 6.0, is_explicit: true };

/// Longest name that is looked at, to either side of the credential word.
pub(super) const MAX_SIDE: usize = 48;
const MAX_WORDS: usize = 16;

/// What the name of a key says that is of something unknown: `acme_key`, but not `key`.
pub(super) const UNKNOWN_KEY_BITS: f32 = -1.0;
/// And that of a key of anything.
pub(super) const KEY_BITS: f32 = -3.0;

/// And that of a key that is a header.
const HEADER_BITS: f32 = 4.0;

/// Credential words as the first stage looks for them.
#[rustfmt::skip]
pub(super) const PASSWORD_ANCHORS: [&str; 54] = [
    "pass", "pwd", "psk",
    // As a word of its own it is too short to be looked for: with what stands before it.
    "_pw", ".pw", " pw", "$pw", "\"pw", "'pw", "\npw", ">pw",
    "rootpw", "adminpw", "dbpw", "sqlpw", "ftppw", "smtppw", "userpw", "bindpw", "modpw",
    "senha", "contrase", "kennwort", "wachtwoord", "clave", "haslo", "heslo", "parola", "motdepasse",
    "mot_de_passe", "salasana", "lozinka", "adgangskode", "losenord",
    "contraseña", "hasło", "lösenord", "geheim", "geheimnis", "sifre", "şifre", "mot de passe", "пароль",
    "Пароль", "ПАРОЛЬ", "jelszo", "jelszó", "mdp", "parolası", "パスワード", "密码", "密碼", "비밀번호",
    // In Dutch, with a colon only.
    " ww",
];
/// Where those of other languages begin.
const OTHER_LANGUAGES: usize = 20;
/// What `pw` is glued to.
const GLUED_TO_PW: &[&str] =
    &["rootpw", "adminpw", "dbpw", "sqlpw", "ftppw", "smtppw", "userpw", "bindpw", "modpw"];
pub(super) const SECRET_ANCHORS: [&str; 6] =
    ["secret", "token", "key", "auth", "credential", "creds"];
/// A personal access token, as the environment has it. Patterns are called so, too.
pub(super) const PERSONAL: &str = "_PAT";
/// Words that are everywhere unless they are written so; most of them say less.
pub(super) const MARKED_ANCHORS: [&str; 3] = ["PRIVATE", "ACCESS", PERSONAL];

/// What is told to people, wherever it stands in a name.
const LABELS: &[&str] = &[
    "error",
    "i18n",
    "invalid",
    "l10n",
    "label",
    "locale",
    "message",
    "missing",
    "msg",
    "text",
    "title",
    "translate",
    "translation",
    "wrong",
];

/// What a field of a form holds.
const CONTENT: [&str; 2] = ["text", "value"];

/// How frameworks call what they put into pages.
const TO_PAGES: &[&str] = &["next_public_", "nuxt_public_", "expo_public_"];
/// What is kept under a `key` there; a token or a secret opens it.
const OF_KEYS: &[&str] =
    &["cache", "data", "group", "map", "primary", "redis", "registry", "s3", "search", "storage"];
/// Objects that hold settings.
const SETTINGS: &[&str] = &["config", "custom", "env", "option", "setting"];

/// Whether a credential word that `next` follows can be one: most words that begin like one are
/// others (`keyboard`, `passed`, `authors`).
pub(super) fn may_follow(word: &[u8], next: u8) -> bool {
    if is_pw(word)
        || ignore_case::is_any(word, &["psk", "mdp"])
        || ignore_case::is_any(word, GLUED_TO_PW)
    {
        return b"= :\"'\t".contains(&next);
    }
    if is_ww(word) {
        return next == b':';
    }
    if ignore_case::is_any(word, &PASSWORD_ANCHORS[OTHER_LANGUAGES..]) {
        // A colon of East Asia begins with the last of these.
        let ends = b"_-. \t\"'`\\])=:>,(\xEF".contains(&next) || next.is_ascii_uppercase();
        return match word.eq_ignore_ascii_case(b"contrase") {
            true => matches!(next | 0x20, b'n'),
            false => ends || matches!(next | 0x20, b's'),
        };
    }
    if word == PERSONAL.as_bytes() {
        return b"= :\"'\t".contains(&next);
    }
    let is_short = word.len() == 3;
    if next.is_ascii_alphabetic() {
        // Each byte costs the first stage an entry of its own: only what is common.
        if is_short {
            b"sSVBHDP".contains(&next)
        } else {
            next.is_ascii_uppercase() || b"swpckaio".contains(&next)
        }
    } else if is_short {
        // `[data-test=pwd]`.
        let closes = next == b']' && word.eq_ignore_ascii_case(b"pwd");
        closes || next.is_ascii_digit() || b"_- \t\n\r\"'`\\=:>(|?![<{".contains(&next)
    } else {
        next.is_ascii_digit() || b"_-. \t\n\r\"'`\\])=:>,(|?![<{}".contains(&next)
    }
}

/// Whether a credential word, as the first stage found it, speaks of anything but a password.
pub(super) fn is_of_secret(word: &[u8]) -> bool {
    ignore_case::is_any(word, &SECRET_ANCHORS) || ignore_case::is_any(word, &MARKED_ANCHORS)
}

/// Whether the letters behind a credential word of anything but a password, up to the end of its name, make
/// something else of it. [`judge`] would say the same, and needs the value to be read first; most names of code
/// end so.
pub(super) fn ends_otherwise(anchor: &[u8], tail: &[u8]) -> bool {
    let glued = tail.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    // Small letters behind capitals belong to the last of them.
    if glued > 0 && anchor.last().is_some_and(u8::is_ascii_uppercase) {
        return false;
    }
    let last = last_word(&tail[glued..]);
    (glued > 0 && !credential::may_be_glued(anchor, &tail[..glued]))
        || (says(last, Role::DeniesBehind) && !ignore_case::is_any(last, &CONTENT))
}

/// The last word of a name, from a hump or a sign on.
fn last_word(name: &[u8]) -> &[u8] {
    let small = name.iter().rev().take_while(|byte| byte.is_ascii_lowercase()).count();
    let rest = &name[..name.len() - small];
    let capitals = match small {
        0 => rest.iter().rev().take_while(|byte| byte.is_ascii_uppercase()).count(),
        _ => usize::from(rest.last().is_some_and(u8::is_ascii_uppercase)),
    };
    &name[rest.len() - capitals..]
}

/// `pw`, with what stands before it.
pub(super) fn is_pw(word: &[u8]) -> bool {
    word.len() == 3 && word[1..].eq_ignore_ascii_case(b"pw")
}

/// `ww`, with the blank before it.
pub(super) fn is_ww(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b" ww")
}

/// What the name says whose credential word, found by the first stage, is `word` of `name`.
pub(super) fn judge(name: &[u8], word: Range<usize>) -> Option<Named> {
    let anchor = &name[word.clone()];
    let anchor_end = word.end;
    let mut words = [(0usize, 0usize); MAX_WORDS];
    let count = split(name, &mut words);
    let words = &words[..count];
    let at = words.iter().position(|(start, end)| *start <= word.start && word.start < *end);
    // `_pw` begins with what separates words.
    let at = at.or_else(|| words.iter().position(|(start, _)| *start == word.start + 1))?;
    let (start, end) = words[at];
    let head = &name[start..word.start.max(start)];
    let tail = &name[word.end.min(end)..end];
    let before = at.checked_sub(1).map(|at| &name[words[at].0..words[at].1]);
    let mut named = credential(&Word { anchor, head, tail, before })?;
    if is_of_protocol(name) {
        return None;
    }
    // `X-Internal-Key` is a header that lets somebody in.
    let is_header = ignore_case::starts_with_any(name, &["x-"])
        && !before.is_some_and(|word| ignore_case::is_any(word, OF_REQUESTS));
    if named.kind == Kind::Key && is_header && named.bits < HEADER_BITS {
        named = Named { bits: HEADER_BITS, is_explicit: true, ..named };
    }
    // `pre-shared-key`: the two ends chose it, as a password.
    let is_word = |back: usize, word: &str| {
        at.checked_sub(back)
            .is_some_and(|at| name[words[at].0..words[at].1].eq_ignore_ascii_case(word.as_bytes()))
    };
    let is_shared = is_word(1, "preshared") || (is_word(1, "shared") && is_word(2, "pre"));
    if named.kind == Kind::Key && is_shared {
        named = Named { kind: Kind::Password, bits: 5.0, is_explicit: true };
    }
    // `pass_word`.
    let is_split = |next: &[u8]| {
        ignore_case::is_any(anchor, &["pass"]) && ignore_case::is_any(next, &["word", "phrase"])
    };
    for (index, (start, end)) in words[at + 1..].iter().enumerate() {
        // `mot_de_passe` is three of them.
        let is_of_anchor = *start < anchor_end;
        let word = &name[*start..*end];
        if is_of_anchor || (index == 0 && is_split(word)) {
            continue;
        }
        // What stands in a field of a form: `txtPassword.Text`.
        let is_content = named.kind == Kind::Password
            && name[*start - 1] == b'.'
            && ignore_case::is_any(word, &CONTENT);
        if is_content {
            continue;
        }
        if says(word, Role::DeniesBehind) {
            return None;
        }
        if !word.iter().all(u8::is_ascii_digit) && !says(word, Role::NeutralBehind) {
            named.bits -= 3.0;
        }
    }
    let heads = || words[..at].iter().map(|(start, end)| &name[*start..*end]);
    // `NEXT_PUBLIC_ACME_TOKEN`: what a page is given is public, and should not be a token.
    let is_given_to_page = named.kind != Kind::Key && ignore_case::starts_with_any(name, TO_PAGES);
    let is_public = |word: &[u8]| ignore_case::is_any(word, &["public", "pub", "publishable"]);
    if heads().any(is_public) && !is_given_to_page {
        return None;
    }
    // What was made of a password.
    if named.kind == Kind::Password
        && heads().any(|word| ignore_case::is_any(word, &["hash", "hashed"]))
    {
        return None;
    }
    // What was encrypted opens nothing without another key; an encrypted disk has a key of its own.
    if before.is_some_and(|word| ignore_case::is_any(word, &["encrypted"])) {
        return None;
    }
    // `dataSource.password`: what a password belongs to does not deny it, unless it is all about words.
    let segment = match named.kind {
        Kind::Password => name[..word.start].iter().rposition(|byte| *byte == b'.').unwrap_or(0),
        _ => 0,
    };
    let denying = match named.kind {
        Kind::Password => Role::DeniesPassword,
        _ => Role::DeniesBefore,
    };
    let is_near = |at: &usize| words[*at].0 >= segment;
    // `config.token`: where settings are kept says nothing of them.
    let is_place = |at: usize| {
        let (start, end) = words[at];
        name.get(end) == Some(&b'.') && ignore_case::is_any(&name[start..end], SETTINGS)
    };
    let denies = |at: usize| {
        let word = &name[words[at].0..words[at].1];
        if !says(word, denying) {
            return false;
        }
        // `plain_text_passwd`.
        let before = at.checked_sub(1).map(|at| &name[words[at].0..words[at].1]);
        if before.is_some_and(|before| ignore_case::is_any(before, &["plain", "clear"])) {
            return false;
        }
        let is_of_key = named.kind != Kind::Key && ignore_case::is_any(word, OF_KEYS);
        let is_near = is_near(&at) || ignore_case::is_any(word, LABELS);
        let is_given = is_given_to_page && is_public(word);
        is_near && !is_of_key && !is_place(at) && !is_given
    };
    if (0..at).any(denies) {
        let key_after_all = named.kind == Kind::Key && named.is_explicit;
        if !key_after_all {
            named.bits -= 6.0;
            named.is_explicit = false;
        }
    }
    Some(named)
}

/// Whether a protocol calls something else so.
fn is_of_protocol(name: &[u8]) -> bool {
    const PARTS: &[&str] = &["websocket", "samba", "verification"];
    let segment = &name[memchr::memrchr(b'.', name).map_or(0, |dot| dot + 1)..];
    if !ignore_case::contains_any(segment, PARTS) {
        return false;
    }
    // The letters at its end: `X-RequestVerificationToken`.
    let mut letters = [0; vocabulary::MAX_WORD];
    let mut start = letters.len();
    for byte in segment.iter().rev().filter(|byte| byte.is_ascii_alphanumeric()) {
        if start == 0 {
            break;
        }
        start -= 1;
        letters[start] = *byte;
    }
    (start..letters.len()).any(|start| says(&letters[start..], Role::OfProtocol))
}

/// Before `key` in a header these say what a request is about.
const OF_REQUESTS: &[&str] =
    &["cache", "correlation", "dedup", "idempotency", "meta", "request", "routing", "trace"];

/// Whether a word only ends like the name of a key.
pub(super) fn is_no_key(word: &[u8]) -> bool {
    // `monkey7`.
    let digits = word.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let word = &word[..word.len() - digits];
    let len = word.len().saturating_sub(3);
    word[len..].eq_ignore_ascii_case(b"key") && ignore_case::is_any(&word[..len], NO_KEYS)
}

/// Whether a credential word begins in `text`: then the name's last one is not the one before.
pub(crate) fn has_credential_word(text: &[u8]) -> bool {
    last_credential_word(text).is_some()
}

/// The last credential word that begins in `text`.
pub(super) fn last_credential_word(text: &[u8]) -> Option<Range<usize>> {
    (0..text.len().saturating_sub(2)).rev().find_map(|at| {
        let begins = |word: &&&[u8]| {
            text[at..].get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        words_from(text[at]).iter().find(begins).map(|word| at..at + word.len())
    })
}

/// The anchors that begin with this byte and may stand within a name.
fn words_from(first: u8) -> &'static [&'static [u8]] {
    match first.to_ascii_lowercase() {
        b'a' => &[b"auth", b"adgangskode", b"adminpw"],
        b'b' => &[b"bindpw"],
        b'c' => &[b"credential", b"creds", b"contrase", b"clave"],
        b'd' => &[b"dbpw"],
        b'f' => &[b"ftppw"],
        b'g' => &[b"geheim"],
        b'h' => &[b"haslo", b"heslo", b"has\xc5\x82o"],
        b'r' => &[b"rootpw"],
        b'k' => &[b"key", b"kennwort"],
        b'l' => &[b"lozinka", b"losenord", b"l\xc3\xb6senord"],
        b'j' => const { &[b"jelszo", "jelszó".as_bytes()] },
        b'm' => &[b"motdepasse", b"mot_de_passe", b"mot de passe", b"mdp", b"modpw"],
        b'p' => &[b"pass", b"pwd", b"psk", b"parola"],
        b's' => &[b"secret", b"senha", b"salasana", b"sifre", b"sqlpw", b"smtppw"],
        b't' => &[b"token"],
        b'u' => &[b"userpw"],
        b'w' => &[b"wachtwoord"],
        0xC5 => const { &["şifre".as_bytes()] },
        0xD0 => {
            const { &["пароль".as_bytes(), "Пароль".as_bytes(), "ПАРОЛЬ".as_bytes()] }
        }
        0xE3 => const { &["パスワード".as_bytes()] },
        0xE5 => const { &["密码".as_bytes(), "密碼".as_bytes()] },
        0xEB => const { &["비밀번호".as_bytes()] },
        b'_' => &[b"_pw"],
        b'.' => &[b".pw"],
        _ => &[],
    }
}

/// Whether a value says no more than its name does: `SET_PWD_REQ = "set-pwd-req"`, its end or a word of it.
pub(super) fn is_spelled(name: &[u8], value: &[u8]) -> bool {
    words(name).any(|word| word.eq_ignore_ascii_case(value))
        || spells(letters(name).rev(), letters(value).rev())
}

/// Whether a value says no more than its name begins with: `CRC32C_HASH_KEY = "crc32c_hash"`.
pub(super) fn begins_with(name: &[u8], value: &[u8]) -> bool {
    spells(letters(name), letters(value))
}

fn letters(text: &[u8]) -> impl DoubleEndedIterator<Item = &u8> {
    text.iter().filter(|byte| byte.is_ascii_alphanumeric())
}

fn spells<'b>(
    mut name: impl Iterator<Item = &'b u8>,
    mut value: impl Iterator<Item = &'b u8>,
) -> bool {
    value.all(|letter| name.next().is_some_and(|byte| byte.eq_ignore_ascii_case(letter)))
}

/// Whether a word of the names is neither of the vocabulary nor speaks of a credential: it may be the
/// name of a service.
pub(super) fn has_unknown_word(names: &[u8]) -> bool {
    words(names).any(is_unknown)
}

/// Whether the last word of `text` is such a one, with at most a few signs behind it.
pub(super) fn ends_in_unknown_word(text: &[u8]) -> bool {
    const MAX_SIGNS: usize = 4;
    let signs = text.iter().rev().take_while(|byte| !byte.is_ascii_alphanumeric()).count();
    let rest = &text[..text.len() - signs];
    let len = rest.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    signs <= MAX_SIGNS && has_unknown_word(&rest[rest.len() - len..])
}

fn is_unknown(word: &[u8]) -> bool {
    const MIN_LEN: usize = 4;
    let glued = ["key", "token", "secret"]
        .into_iter()
        .find(|tail| ignore_case::ends_with_any(word, &[tail]));
    let word = &word[..word.len() - glued.map_or(0, str::len)];
    word.len() >= MIN_LEN
        && word.iter().all(u8::is_ascii_alphabetic)
        && !vocabulary::is_known(word)
        && !has_credential_word(word)
}

/// The words of a name.
pub(super) fn words(name: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    let mut words = [(0, 0); MAX_WORDS];
    let count = split(name, &mut words);
    words.into_iter().take(count).map(|(start, end)| &name[start..end])
}

/// Letters of other scripts and with accents count as any.
fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

/// Takes a name apart into words; returns how many.
fn split(name: &[u8], words: &mut [(usize, usize); MAX_WORDS]) -> usize {
    let mut count = 0;
    let mut start = 0;
    let mut push = |from: usize, to: usize| {
        if from < to && count < MAX_WORDS {
            words[count] = (from, to);
            count += 1;
        }
    };
    for at in 1..=name.len() {
        let (before, here) = (name[at - 1], name.get(at).copied());
        let hump = here.is_some_and(|here| {
            here.is_ascii_uppercase()
                && (before.is_ascii_lowercase()
                    || (before.is_ascii_uppercase()
                        && name.get(at + 1).is_some_and(u8::is_ascii_lowercase)))
        });
        let digit = here.is_some_and(|here| here.is_ascii_digit() != before.is_ascii_digit());
        let separator = here.is_none_or(|here| !in_word(here));
        if !in_word(before) {
            start = at;
        } else if hump || digit || separator {
            push(start, at);
            start = at;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(name: &str, word: &str) -> Option<Named> {
        let start = name.to_ascii_lowercase().rfind(word).unwrap();
        judge(name.as_bytes(), start..start + word.len())
    }

    #[test]
    fn credential_words_are_recognised_in_every_spelling() {
        for (name, word, kind) in [
            ("password", "pass", Kind::Password),
            ("DB_PASSWORD", "pass", Kind::Password),
            ("trustStorePassword", "pass", Kind::Password),
            ("spring.datasource.password", "pass", Kind::Password),
            ("bind_pw", "_pw", Kind::Password),
            ("userPass", "pass", Kind::Password),
            ("senhaBanco", "senha", Kind::Password),
            ("DEFAULT_PWD", "pwd", Kind::Password),
            ("REDIS_PASSWORD", "pass", Kind::Password),
            ("quartz.dataSource.password", "pass", Kind::Password),
            ("pass_word", "pass", Kind::Password),
            ("wifi_psk", "psk", Kind::Password),
            ("clave", "clave", Kind::Password),
            ("dbpw", "dbpw", Kind::Password),
            ("profile::ldap::bindpw", "bindpw", Kind::Password),
            ("PASSWORD_DB", "pass", Kind::Password),
            ("Context.SECURITY_CREDENTIALS", "credential", Kind::Password),
            ("client_secret", "secret", Kind::Secret),
            ("authToken", "token", Kind::Token),
            ("page_access_token", "token", Kind::Token),
            ("NEXT_AUTH_SECRET", "secret", Kind::Secret),
            ("x-api-key", "key", Kind::Key),
            ("apikey", "key", Kind::Key),
            ("AWS_SECRET_ACCESS_KEY", "key", Kind::Key),
        ] {
            let found = named(name, word);
            assert_eq!(found.map(|named| named.kind), Some(kind), "{name}");
            assert!(found.unwrap().is_explicit, "{name}");
        }
    }

    #[test]
    fn every_anchor_that_a_name_may_hold_is_a_credential_word() {
        for word in PASSWORD_ANCHORS.iter().chain(&SECRET_ANCHORS) {
            let in_name = !matches!(word.as_bytes()[0], b' ' | b'$' | b'"' | b'\'' | b'\n' | b'>');
            assert_eq!(has_credential_word(word.as_bytes()), in_name, "{word:?}");
            let upper = word.to_ascii_uppercase();
            assert_eq!(has_credential_word(upper.as_bytes()), in_name, "{upper:?}");
        }
        assert!(!has_credential_word(b"user_name.host"));
    }

    proptest! {
        #[test]
        fn a_name_that_ends_otherwise_says_nothing(
            head in "([a-z]{1,4}_|pre_?shared_|api|x-)?",
            anchor in prop::sample::select(
                ["key", "Key", "KEY", "token", "Token", "secret", "SECRET", "auth", "AUTH", "creds", "ACCESS"].to_vec()
            ),
            tail in "(s|S|a|access|orization|ority|Text|\\.text|_?[Ff]ile|_?FILE|_?(id|ID|Id)|_?len|_x|9|Data){0,3}",
        ) {
            let name = format!("{head}{anchor}{tail}");
            if ends_otherwise(anchor.as_bytes(), tail.as_bytes()) {
                let word = head.len()..head.len() + anchor.len();
                prop_assert_eq!(judge(name.as_bytes(), word), None, "{}", name);
            }
        }
    }

    #[test]
    fn most_names_of_code_are_told_by_their_end() {
        for (anchor, tail) in
            [("key", "_file"), ("Key", "Pair"), ("token", "izer"), ("auth", "or"), ("KEY", "_ID")]
        {
            assert!(ends_otherwise(anchor.as_bytes(), tail.as_bytes()), "{anchor}{tail}");
        }
        for (anchor, tail) in
            [("key", "s"), ("secret", "access"), ("auth", "orization"), ("KEY", "_B64")]
        {
            assert!(!ends_otherwise(anchor.as_bytes(), tail.as_bytes()), "{anchor}{tail}");
        }
    }

    #[test]
    fn a_value_that_spells_out_its_name_is_told() {
        assert!(is_spelled(b"SET_PWD_REQ", b"set-pwd-req"));
        assert!(is_spelled(b"bpki::SETPWD", b"setPwd"));
        assert!(is_spelled(b"certificate_password", b"certificate"));
        assert!(begins_with(b"CRC32C_HASH_KEY", b"crc32c_hash"));
        assert!(is_spelled(b"acme_api_key", b"api-key"));
        assert!(!is_spelled(b"DB_PASSWORD", b"kdxnyjwb"));
        assert!(!is_spelled(b"pwd", b"kdxnyjwb-pwd"));
    }

    #[test]
    fn other_words_make_something_else_of_it() {
        for (name, word) in [
            ("password_file", "pass"),
            ("encrypted_password", "pass"),
            ("password_ciphertext", "pass"),
            ("encrypted_token", "token"),
            ("passwordField", "pass"),
            ("token_type", "token"),
            ("tokenizer", "token"),
            ("keyboard", "key"),
            ("monkey", "key"),
            ("key_id", "key"),
            ("compass", "pass"),
            ("enclave", "clave"),
            ("author", "auth"),
            ("secretary", "secret"),
            ("cache_key", "key"),
            ("idempotencyKey", "key"),
            ("token_identifier", "token"),
            ("auth_results", "auth"),
            ("auth_tag", "auth"),
            ("authTag", "auth"),
            ("entry.sambaNTPassword", "pass"),
            ("__RequestVerificationToken", "token"),
            ("Sec-WebSocket-Key", "key"),
        ] {
            assert_eq!(named(name, word), None, "{name}");
        }
        assert_eq!(named("public_key", "key"), None);
        assert_eq!(named("recaptcha_site_key", "key"), None);
        assert_eq!(named("NEXT_PUBLIC_ACME_KEY", "key"), None);
        for (name, word) in [
            ("NEXT_PUBLIC_ACME_TOKEN", "token"),
            ("upstash_redis_token", "token"),
            ("config.token", "token"),
            ("db_mdp", "mdp"),
        ] {
            assert!(named(name, word).is_some_and(|named| named.is_explicit), "{name}");
        }
        assert_eq!(named("hashed_password", "pass"), None);
        for (name, word) in [
            ("redis_key", "key"),
            ("key", "key"),
            ("keys", "key"),
            ("nextToken", "token"),
            ("Win32_Security_Credentials", "credential"),
            ("NextContinuationToken", "token"),
            ("sonar.projectKey", "key"),
            ("invalid_password", "pass"),
            ("error.password", "pass"),
        ] {
            assert!(!named(name, word).unwrap().is_explicit, "{name}");
        }
    }
}
