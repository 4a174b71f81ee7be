//! What a credential word says by itself, with what is glued to it and the word before it.

use super::{
    GLUED_TO_PW, KEY_BITS, Kind, MARKED_ANCHORS, Named, OTHER_LANGUAGES, PASSWORD_ANCHORS,
    PERSONAL, UNKNOWN_KEY_BITS, is_of_secret,
};
use crate::detect::vocabulary::{Role, says};
use crate::ignore_case;

/// Before `token` these say that it is of one page that was shown, and worth nothing without its session.
const OF_PAGES: &[&str] = &["csrf", "xsrf", "antiforgery", "authenticity", "csrfmiddleware"];

/// Before `token` these say that it is a place in a listing, or one of many changes.
#[rustfmt::skip]
const PLACES: &[&str] =
    &[
        "next", "page", "continuation", "pagination", "paging", "cursor", "resume", "sync", "delta",
        "lock", "update", "revision", "idempotency",
    ];

/// What may be glued to `psk`.
const OF_PSK: &[&str] = &["ike", "ipsec", "tls", "vpn", "wifi", "wlan", "wpa"];

/// What `key` is the end of that opens nothing: `monkey`, `turkey`.
pub(super) const NO_KEYS: &[&str] = &["mon", "tur", "don", "joc", "whis", "hoc"];

/// A credential word in its name.
pub(super) struct Word<'n> {
    pub(super) anchor: &'n [u8],
    /// Glued to the anchor.
    pub(super) head: &'n [u8],
    pub(super) tail: &'n [u8],
    /// The word before it.
    pub(super) before: Option<&'n [u8]>,
}

impl Word<'_> {
    fn is(&self, word: &str) -> bool {
        self.anchor.eq_ignore_ascii_case(word.as_bytes())
    }

    fn tail_is(&self, words: &[&str]) -> bool {
        ignore_case::is_any(self.tail, words)
    }

    fn is_behind(&self, words: &[&str]) -> bool {
        self.before.is_some_and(|word| ignore_case::is_any(word, words))
    }

    fn is_turkish(&self) -> bool {
        ignore_case::is_any(self.anchor, &["sifre", "şifre"])
    }

    /// Nothing is glued to it.
    fn is_whole(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty()
    }
}

const PLURAL: &[&str] = &["", "s"];
/// The last is Spanish and Portuguese, `clave secreta`.
const SECRET_TAILS: &[&str] = &["key", "keys", "access", "a"];
const AUTH_TAILS: &[&str] = &["orization"];

/// Whether a word of anything but a password is still one with these letters glued to its end.
pub(super) fn may_be_glued(anchor: &[u8], tail: &[u8]) -> bool {
    let is = |word: &str| anchor.eq_ignore_ascii_case(word.as_bytes());
    ignore_case::is_any(tail, PLURAL)
        || (is("secret") && ignore_case::is_any(tail, SECRET_TAILS))
        || (is("auth") && ignore_case::is_any(tail, AUTH_TAILS))
}

/// What the credential word itself says.
pub(super) fn credential(word: &Word<'_>) -> Option<Named> {
    let is_of_password = || ignore_case::is_any(word.anchor, &PASSWORD_ANCHORS);
    // There are many words for passwords, and few for anything else.
    if !is_of_secret(word.anchor) && (is_of_password() || word.is("pw") || word.is("ww")) {
        let bits = password(word)?;
        return Some(Named { kind: Kind::Password, bits, is_explicit: true });
    }
    let (kind, bits, is_explicit) = match word {
        _ if word.is("secret") => {
            let is_one = word.tail_is(PLURAL)
                || (word.tail_is(SECRET_TAILS)
                    && (!word.tail_is(&["a"]) || word.is_behind(&["clave", "llave", "chave"])));
            is_one.then_some((Kind::Secret, 5.0, true))
        }
        _ if word.is("token") => token(word),
        _ if word.is(PERSONAL) => Some((Kind::Token, 4.0, true)),
        _ if ignore_case::is_any(word.anchor, &MARKED_ANCHORS) => {
            word.tail.is_empty().then_some((Kind::Marked, UNKNOWN_KEY_BITS, false))
        }
        // What JNDI logs in with.
        Word { anchor: b"CREDENTIAL", tail: b"S", before: Some(b"SECURITY"), .. } => {
            Some((Kind::Password, 6.0, true))
        }
        _ if word.is("credential") || word.is("creds") => {
            word.tail_is(PLURAL).then_some((Kind::Secret, 3.0, false))
        }
        _ if word.is("auth") => auth(word),
        _ => key(word),
    }?;
    Some(Named { kind, bits, is_explicit })
}

/// The bits of a word for passwords.
fn password(word: &Word<'_>) -> Option<f32> {
    if word.is("pass") {
        if word.tail_is(&["word", "words", "wd", "wrd", "phrase", "code", "wort", "ord", "key"]) {
            return Some(6.0);
        }
        let is_whole = word.head.is_empty() || says(word.head, Role::GluedToPass);
        // `ssh_pass` is one of nothing else, `pass` may be one of many over some data.
        let is_of = word.before.is_some_and(|word| says(word, Role::GluedToPass));
        let bits = if is_of && word.head.is_empty() { 6.0 } else { 4.0 };
        return (word.tail.is_empty() && is_whole).then_some(bits);
    }
    if word.is("contrase") {
        return word.tail_is(&["na", "nas", "nia", "nya"]).then_some(6.0);
    }
    // In French; in English it is a process of decisions.
    if word.is("mdp") {
        let bits = if word.before.is_some() { 6.0 } else { 4.0 };
        return word.is_whole().then_some(bits);
    }
    if ignore_case::is_any(word.anchor, &PASSWORD_ANCHORS[OTHER_LANGUAGES..]) {
        // `enclave`.
        let is_whole = word.head.is_empty()
            || ignore_case::is_any(word.anchor, &["senha", "kennwort", "wachtwoord"]);
        // Turkish says of what it is: `modem şifresi`.
        let is_of = word.tail_is(&["si"]) && word.is_turkish();
        return ((word.tail_is(PLURAL) || is_of) && is_whole).then_some(6.0);
    }
    if word.is("psk") || ignore_case::is_any(word.anchor, GLUED_TO_PW) {
        // `rootpwmodpw`, `tlspsk`.
        let may_be_glued =
            word.is("modpw") || (word.is("psk") && ignore_case::is_any(word.head, OF_PSK));
        let is_whole = word.head.is_empty() || may_be_glued;
        return (is_whole && word.tail.is_empty()).then_some(5.0);
    }
    let bits = if word.is("pwd") { 5.0 } else { 4.0 };
    word.tail.is_empty().then_some(bits)
}

type Said = Option<(Kind, f32, bool)>;

fn token(word: &Word<'_>) -> Said {
    if !word.tail_is(PLURAL) || word.is_behind(OF_PAGES) {
        return None;
    }
    // Where a listing goes on.
    let is_place = word.head.is_empty() && word.is_behind(PLACES);
    Some(if is_place { (Kind::Token, -4.0, false) } else { (Kind::Token, 4.0, true) })
}

fn auth(word: &Word<'_>) -> Said {
    // The header: `"Authorization", "…"`.
    if word.anchor == b"Auth" && word.tail == b"orization" && word.head.is_empty() {
        return Some((Kind::Auth, 2.0, word.before.is_none()));
    }
    if word.is_whole() && word.is_behind(&["x"]) {
        return Some((Kind::Auth, 4.0, true));
    }
    let is_one = word.head.is_empty() && (word.tail.is_empty() || word.tail_is(AUTH_TAILS));
    is_one.then_some((Kind::Auth, 0.0, false))
}

/// `key`: alone it names anything; what is before it decides.
fn key(word: &Word<'_>) -> Said {
    const EXPLICIT: (Kind, f32, bool) = (Kind::Key, 4.0, true);
    const UNKNOWN: (Kind, f32, bool) = (Kind::Key, UNKNOWN_KEY_BITS, false);
    if word.tail_is(&["s"]) {
        return Some((Kind::Key, -6.0, false));
    }
    if !word.tail.is_empty() {
        return None;
    }
    let head = word.head;
    if !head.is_empty() {
        let is_explicit = says(head, Role::MakesKey)
            || ignore_case::ends_with_any(head, &["api", "access", "secret", "private"]);
        let is_none = says(head, Role::DeniesBefore)
            || ignore_case::is_any(head, NO_KEYS)
            || ignore_case::is_any(head, &["site"]);
        return (!is_none).then_some(if is_explicit { EXPLICIT } else { UNKNOWN });
    }
    match word.before {
        Some(before) if says(before, Role::NamesPlace) => None,
        // Whoever signs with a key of their own choice chose a password.
        Some(before) if ignore_case::is_any(before, &["jwt"]) => Some((Kind::Secret, 4.0, true)),
        Some(before)
            if says(before, Role::MakesKey) || ignore_case::ends_with_any(before, &["api"]) =>
        {
            Some(EXPLICIT)
        }
        Some(before) if !says(before, Role::DeniesBefore) => Some(UNKNOWN),
        _ => Some((Kind::Key, KEY_BITS, false)),
    }
}
