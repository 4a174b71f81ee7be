//! What stands around a name and a value and says that the value is no secret. There are five reasons:
//! others may have it, it was made of a secret, it is a word of a program, it belongs to something else
//! than the name, or it is cut off.
//!
//! Each has a test here, and a neighbour that must be found in `tests.rs`
//! (`what_stands_beside_a_secret_does_not_silence_it`) or here.

use super::name::{Kind, Named};
use super::place::Place;
use super::syntax::Syntax;
use super::value;
use crate::ignore_case;

/// Words weigh less.
const RANDOM_BITS: f32 = 12.0;
/// How far behind a value it may be told what is made of it.
pub(super) const REACH: usize = 64;

/// Whether the value is no secret by what stands around it.
pub(super) fn deny(place: &Place<'_>, named: Named) -> bool {
    is_public(place, named)
        || is_made_of_secret(place)
        || is_word_of_program(place)
        || is_of_something_else(place)
        || (named.kind != Kind::Password && is_cut_off(place))
}

/// Whether others may have the value. A name that speaks of a secret is believed: private keys stand
/// beside their public ones, and tokens may look like addresses.
fn is_public(place: &Place<'_>, named: Named) -> bool {
    let is_secret = match named.kind {
        Kind::Password | Kind::Secret => true,
        Kind::Token => false,
        Kind::Key | Kind::Auth | Kind::Marked => named.is_explicit,
    };
    // The contract that a token of a chain is of: `TOKEN = 0x…`, `tokenA`, not `api_token`.
    let is_of_chain = || {
        let tail = place.name().get(b"token".len()..).unwrap_or(b"");
        ignore_case::starts_with_any(place.name(), &["token"])
            && tail.len() <= 2
            && value::is_address(place.value())
    };
    let is_called = match named.kind {
        Kind::Token => is_of_chain(),
        _ => is_called_public(place),
    };
    !is_secret && (is_made_public(place) || is_called)
}

/// `address!("…")`, `Signature::from_str("…")`, `key: PublicKey = "…"`: what is made of the value is public.
fn is_made_public(place: &Place<'_>) -> bool {
    const MAKERS: &[&str] =
        &["address", "signature", "publickey", "public_key", "verifyingkey", "verifying_key"];
    matches!(place.found.syntax, Syntax::Wrapped | Syntax::Quoted)
        && words(place.between()).any(|word| ignore_case::is_any(word, MAKERS))
}

/// Whether it is said that a key is public, or it looks like one.
fn is_called_public(place: &Place<'_>) -> bool {
    const NAMES: &[&str] = &["pubkey", "publickey", "public_key"];
    // `public key: …`.
    let is_word = ignore_case::ends_with_any(place.before(), &["public "]);
    // `"type": "acme/PubKey", "key": …`, `"public_key": {"key": …`: signs of an object between.
    let signs = place.before().iter().rev().take_while(|byte| is_sign(byte)).count();
    let (before, signs) = place.before().split_at(place.before().len() - signs);
    let is_in_object = signs.iter().any(|sign| b"\"'{".contains(sign));
    let is_typed = is_in_object && ignore_case::ends_with_any(before, NAMES);
    is_word || is_typed || becomes_public_key(place) || value::may_be_public(place.value())
}

/// `"…".parse::<PublicKey>()`, `"…", "signatures": …`: what others sign is shown to them.
fn becomes_public_key(place: &Place<'_>) -> bool {
    let rest = place.behind(REACH);
    let name = rest.iter().position(u8::is_ascii_alphabetic).unwrap_or(rest.len());
    let is_apart = rest[..name].contains(&b',') && rest[..name].ends_with(b"\"");
    let statement = rest.split(|byte| *byte == b';').next().unwrap_or(rest);
    (is_apart && rest[name..].starts_with(b"signatures\""))
        || memchr::memmem::find(statement, b"PublicKey>").is_some()
}

/// Whether the value is a hash or a checksum of a secret, or was encrypted.
fn is_made_of_secret(place: &Place<'_>) -> bool {
    let before = &place.text[place.line..place.name.start];
    // `checksum/secret: …`, by which Kubernetes notices a change; `SetCredentialEncrypted=key: …` of
    // systemd.
    before.ends_with(b"checksum/")
        || before.ends_with(b"CredentialEncrypted=")
        || is_compared_with_hash(before, place.between())
        || is_listed_checksum(before)
        || is_called_encrypted(place)
        || (is_digest(place.value())
            && (is_salted(place) || is_called_hashed(place) || is_digested(place)))
}

/// `md5($key) == …`: the call of the hash is open where the name stands.
fn is_compared_with_hash(before: &[u8], between: &[u8]) -> bool {
    let call = memchr::memrchr(b'(', before).map(|at| &before[..at]);
    call.is_some_and(|call| {
        ignore_case::ends_with_any(call, &["md5", "sha1", "sha256"])
            && memchr::memchr(b')', &before[call.len()..]).is_none()
            && memchr::memmem::find(between, b"==").is_some()
    })
}

/// `SHA512 (token.tgz) = …`.
fn is_listed_checksum(before: &[u8]) -> bool {
    before.strip_suffix(b" (").is_some_and(|algorithm| {
        ignore_case::starts_with_any(algorithm, &["sha", "md5", "rmd160", "blake2"])
            && algorithm.iter().all(u8::is_ascii_alphanumeric)
            && algorithm.iter().any(u8::is_ascii_digit)
    })
}

/// `enable password … encrypted`: routers say so of a hash.
fn is_called_encrypted(place: &Place<'_>) -> bool {
    const WORD: &[u8] = b" encrypted";
    let rest = place.behind(WORD.len() + 1).strip_prefix(WORD);
    rest.is_some_and(|rest| matches!(rest, [] | [b'\r' | b'\n']))
}

/// `{"value": "…", "salt": "…"}`: a hash, with what it was made with.
fn is_salted(place: &Place<'_>) -> bool {
    const MAX_SIGNS: usize = 8;
    const NEXT: &[u8] = b"salt\"";
    let behind = place.behind(MAX_SIGNS + NEXT.len());
    let signs = behind.iter().take_while(|byte| !byte.is_ascii_alphanumeric()).count();
    let is_next = behind[..signs].contains(&b'"') && behind[signs..].starts_with(NEXT);
    place.found.syntax == Syntax::Pair && is_next
}

/// `HashedPass("…")`, `NT-Password := "…"`, `"password", "secretData": "{\"value\": …` of Keycloak.
fn is_called_hashed(place: &Place<'_>) -> bool {
    /// Of Asterisk, which writes no other secret so.
    const SECRET: &[&str] = &["md5secret"];
    let is_wrapped =
        place.found.syntax == Syntax::Wrapped && ignore_case::contains(place.between(), "hashed");
    let is_kept = place.found.syntax == Syntax::Pair
        && memchr::memmem::find(place.between(), b"secretData").is_some();
    is_wrapped || is_kept || is_behind_algorithm(place) || ignore_case::is_any(place.name(), SECRET)
}

/// `NT-Password`, `SSHA-Password`: how RADIUS calls what was made of a password.
fn is_behind_algorithm(place: &Place<'_>) -> bool {
    const ALGORITHMS: &[&str] =
        &["nt", "lm", "md5", "smd5", "sha", "ssha", "sha1", "sha2", "crypt"];
    let algorithm = place.name().split(|byte| *byte == b'-').next().unwrap_or(b"");
    let rest = place.name().get(algorithm.len()..).unwrap_or(b"");
    ignore_case::is_any(rest, &["-password"]) && ignore_case::is_any(algorithm, ALGORITHMS)
}

/// `<user password="…" digest="sha"/>`: the same element says what was made of it.
fn is_digested(place: &Place<'_>) -> bool {
    let rest = place.behind(REACH);
    let element = rest.split(|byte| matches!(byte, b'>' | b'<')).next().unwrap_or(rest);
    let names_algorithm = |name: &&[u8]| {
        let value = memchr::memmem::find(element, name).map(|at| &element[at + name.len()..]);
        value.is_some_and(|value| {
            ignore_case::starts_with_any(value, &["md5", "sha", "bcrypt", "ssha"])
        })
    };
    place.found.syntax == Syntax::Quoted
        && [&b" digest=\""[..], b" algorithm=\""].iter().any(names_algorithm)
}

/// Whether the value is as long as a hash is, and written as one. What is hashed is shorter.
fn is_digest(value: &[u8]) -> bool {
    const MIN_LEN: usize = 22;
    let in_digest = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=$.".contains(byte);
    value.len() >= MIN_LEN && value.iter().all(in_digest)
}

/// Whether the value is a plain word, and a program means something else by the line than to give the
/// name a value.
fn is_word_of_program(place: &Place<'_>) -> bool {
    is_plain_word(place.value())
        && (is_compared(place) || is_in_list(place) || is_user_of_command(place))
}

fn is_plain_word(value: &[u8]) -> bool {
    let in_word = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_');
    value.iter().all(in_word) && value::weigh(value, RANDOM_BITS).is_none()
}

/// `test "$pass" = dlopen`: shells compare so, and assign without the sign of a variable.
fn is_compared(place: &Place<'_>) -> bool {
    let is_variable = place.text[..place.name.start].ends_with(b"$");
    let is_apart = matches!(place.text.get(place.name.end), Some(b'"' | b' '));
    place.found.syntax == Syntax::BareEquals && is_variable && is_apart
}

/// `password = ["zeroize"]`: what a feature needs. Passwords in a list have a name in the plural.
fn is_in_list(place: &Place<'_>) -> bool {
    const MAX_BLANKS: usize = 16;
    const PLURALS: &[&str] =
        &["passwords", "passphrases", "secrets", "keys", "tokens", "credentials"];
    let quote = place.found.value.start.saturating_sub(1);
    let before = place.text[quote.saturating_sub(MAX_BLANKS)..quote].trim_ascii_end();
    place.found.syntax == Syntax::Quoted
        && before.ends_with(b"[")
        && !ignore_case::ends_with_any(place.name(), PLURALS)
}

/// `passwd app` asks for a password.
fn is_user_of_command(place: &Place<'_>) -> bool {
    place.found.syntax == Syntax::Directive && place.name() == b"passwd"
}

/// Whether the name or the value is part of something else, and they only stand beside each other.
fn is_of_something_else(place: &Place<'_>) -> bool {
    is_within_word(place)
        || is_neighbour(place)
        || is_commit(place)
        || is_id(place)
        || is_of_nobody(place)
}

/// `login anonymous password me@acme.io`: who logs in as nobody gives an address.
fn is_of_nobody(place: &Place<'_>) -> bool {
    let before = place.before().trim_ascii_end();
    let at = place.value().iter().position(|byte| *byte == b'@');
    ignore_case::ends_with_any(before, &["login anonymous", "login ftp", "user anonymous"])
        && at.is_some_and(|at| at > 0 && place.value()[at..].contains(&b'.'))
}

/// `<Token Id="UserToken-3b9d…">`: an element is called so.
fn is_id(place: &Place<'_>) -> bool {
    place.found.syntax == Syntax::Joined
        && place.before().contains(&b'<')
        && ignore_case::ends_with_any(&place.text[..place.name.start], &[" id=\"", ":id=\""])
}

/// `Ġclave`: Latin letters with accents belong to a word, too; marks of all kinds do not.
fn is_within_word(place: &Place<'_>) -> bool {
    // U+00C0 to U+024F.
    matches!(place.text[..place.name.start], [.., 0xC3..=0xC9, 0x80..=0xBF])
}

/// `"a/password.php", "x" => …`, `"token=x", "y=…"`: strings that only stand beside each other.
fn is_neighbour(place: &Place<'_>) -> bool {
    if !matches!(place.found.syntax, Syntax::Listed | Syntax::Among) {
        return false;
    }
    // A store of secrets is written to by a path, too: `put("app/password", "x")`.
    let is_file = place.name().contains(&b'.');
    let before = place.name.start.checked_sub(1).map(|at| place.text[at]);
    let is_part = before == Some(b'=') || (before == Some(b'/') && is_file);
    let rest = place.behind(REACH).get(1..).unwrap_or(b"");
    is_part || rest.trim_ascii_start().starts_with(b"=>")
}

/// `token=234lsdkf....`: only the start of a value is shown. A password may end a sentence so, and so may a
/// whole key.
fn is_cut_off(place: &Place<'_>) -> bool {
    const LEN_MAX: usize = 20;
    let behind = place.behind(3);
    place.value().len() < LEN_MAX && (behind == b"..." || behind == "…".as_bytes())
}

/// ``[`fb884e1`](…)``: a commit that a changelog links to.
fn is_commit(place: &Place<'_>) -> bool {
    let value = place.value();
    (7..=12).contains(&value.len())
        && value.iter().all(u8::is_ascii_hexdigit)
        && place.behind(3) == b"`]("
}

fn is_sign(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'\\,:{".contains(byte)
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
}

#[cfg(test)]
mod tests {
    use crate::detect::FileKind;
    use crate::detect::tests::found;

    /// Digits that mean nothing.
    const KEY: &str = "3b9d07c41fe86a52908d4f7be1c6a03d3b9d07c41fe86a52908d4f7be1c6a03d";

    #[test]
    fn what_is_called_public_is_none() {
        for text in [
            format!("{{\"type\": \"acme/PubKey\", \"key\": \"{KEY}\"}}"),
            format!("{{\"public_key\": {{\"key\": \"{KEY}\"}}}}"),
            format!("{{\"key\": \"{KEY}\",\n  \"signatures\": {{"),
            format!("let key = \"{KEY}\"\n    .parse::<PublicKey>()"),
            format!("let key = PublicKey::from_str(\"{KEY}\");"),
            format!("let key: PublicKey = \"{KEY}\".parse()?;"),
        ] {
            assert_eq!(found(FileKind::Code, &text), None, "{text}");
        }
        // A bare value counts in a configuration only.
        assert_eq!(found(FileKind::Config, &format!("# public key: {KEY}\n")), None);
        for text in [format!("# secret key: {KEY}\n"), format!("let secret_key = \"{KEY}\";")] {
            assert!(found(FileKind::Config, &text).is_some(), "{text}");
        }
    }

    #[test]
    fn shells_compare_and_do_not_assign_variables() {
        for text in ["if test \"$pass\" = zwetschge; then", "fi # $pass = zwetschge\n"] {
            assert_eq!(found(FileKind::Config, text), None, "{text}");
        }
        assert!(found(FileKind::Config, "password = zwetschge\n").is_some());
    }

    #[test]
    fn addresses_signatures_and_hashes_are_made_of_what_is_public() {
        for maker in ["address!(", "Signature::from_str(", "Rule::AddHashedPass("] {
            let text = format!("let token = {maker}\"{KEY}\");");
            assert_eq!(found(FileKind::Code, &text), None, "{text}");
        }
        let text = format!("let token = decode(\"{KEY}\");");
        assert!(found(FileKind::Code, &text).is_some());
    }

    #[test]
    fn ids_of_elements_and_addresses_of_nobody_are_none() {
        let element = |name| format!("<w:Token {name}=\"UserToken-{}\">", &KEY[..32]);
        assert_eq!(found(FileKind::Config, &element("w:Id")), None);
        assert!(found(FileKind::Config, &element("w:Value")).is_some());
        let login = |user| format!("default login {user} password kdxn4jwb@acme.io\n");
        assert_eq!(found(FileKind::Config, &login("anonymous")), None);
        assert!(found(FileKind::Config, &login("app")).is_some());
    }

    #[test]
    fn strings_beside_each_other_are_no_pair() {
        for text in [
            format!("'/safe/password.php', '{KEY}' => 1"),
            format!("(\"X-Acme-Secret=abc-secret\", \"{KEY}\")"),
        ] {
            assert_eq!(found(FileKind::Code, &text), None, "{text}");
        }
        assert!(found(FileKind::Code, &format!("define('SECRET', '{KEY}')")).is_some());
    }

    #[test]
    fn features_need_words_and_changelogs_link_to_commits() {
        assert_eq!(found(FileKind::Config, "password = [\"zwetschge\"]"), None);
        assert_eq!(found(FileKind::Config, "http-credentials = [\n  \"kdxnyjwb\"]"), None);
        assert!(found(FileKind::Config, "password = \"zwetschge\"").is_some());
        assert_eq!(found(FileKind::Text, "* fix token ([`3b9d07c4`](https://x.y))"), None);
        assert!(found(FileKind::Text, "* fix token (`3b9d07c41fe86a52`)").is_some());
        assert_eq!(found(FileKind::Config, "\u{120}clave: 95449"), None);
    }

    #[test]
    fn the_start_of_a_value_is_none() {
        for behind in ["...", "…"] {
            let text = format!("X-Auth: acme api_token={}{behind}\n", &KEY[..12]);
            assert_eq!(found(FileKind::Text, &text), None, "{text}");
        }
        let text = format!("X-Auth: acme api_token={}.\n", &KEY[..12]);
        assert!(found(FileKind::Text, &text).is_some());
        let whole = format!("client_secret={}... keep it safe\n", &KEY[..32]);
        assert!(found(FileKind::Text, &whole).is_some());
    }

    #[test]
    fn hashes_are_known_by_their_name_or_by_what_their_element_says() {
        let hex = "3b9d07c41fe86a52908d4f7be1c6a03d";
        for (none, one) in [
            (format!("md5secret={hex}"), format!("secret={hex}")),
            (format!("NT-Password := \"{hex}\""), format!("Client-Password := \"{hex}\"")),
            (format!("SSHA-Password := \"{hex}\""), "SSHA-Password := \"Kw7!xqzp\"".to_owned()),
            (
                format!("<user password=\"{hex}\" roles=\"x\" digest=\"sha\"/>"),
                format!("<user password=\"{hex}\" roles=\"x\"/><x digest=\"sha\"/>"),
            ),
            (
                format!(
                    "{{\"type\": \"password\", \"secretData\": \"{{\\\"value\\\":\\\"{hex}\\\"}}\"}}"
                ),
                format!("{{\"type\": \"password\", \"value\": \"{hex}\"}}"),
            ),
        ] {
            assert_eq!(found(FileKind::Config, &none), None, "{none}");
            assert!(found(FileKind::Config, &one).is_some(), "{one}");
        }
    }

    #[test]
    fn what_was_made_of_a_secret_is_none() {
        let hex = "3b9d07c41fe86a52908d4f7be1c6a03d";
        for text in [
            format!("checksum/secret: {hex}{hex}"),
            format!("SetCredentialEncrypted=secret: {hex}"),
            format!("SHA512 (secret.tgz) = {hex}{hex}{hex}{hex}"),
            format!("if (md5($_GET['secret']) == '{hex}')"),
            format!("\"type\": \"secret\", \"value\": \"{hex}\", \"salt\": \"{hex}\""),
        ] {
            assert_eq!(found(FileKind::Config, &text), None, "{text}");
        }
        let text = format!("if ($_GET['secret'] == '{hex}')");
        assert_eq!(found(FileKind::Code, &text), Some(hex));
        assert_eq!(found(FileKind::Config, "passwd zwetschge\n"), None);
        let text = "enable password zB8eWOui07oylqwb";
        assert!(found(FileKind::Config, text).is_some());
        assert_eq!(found(FileKind::Config, &format!("{text} encrypted\n")), None);
    }
}
