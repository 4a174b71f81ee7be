//! What stands around a name and a value and says that the value is none: it is public, compared, listed,
//! or the name of something else.

use std::ops::Range;

use super::name::Kind;
use super::syntax::{Assignment, Syntax};
use super::value;
use crate::ignore_case;

/// Words weigh less.
const RANDOM_BITS: f32 = 12.0;
const PLURALS: &[&str] = &["passwords", "passphrases", "secrets", "keys", "tokens", "credentials"];
/// How far before a name the kind of its key may be told.
const REACH_BEFORE: usize = 48;
/// How far behind a value it may be told what is made of it.
pub(super) const REACH: usize = 64;

/// Whether the value at `found` is no secret by what stands around it. The name begins at `phrase` if it
/// is written as several words, and its line at `line`.
pub(super) fn deny(
    text: &[u8],
    line: usize,
    phrase: usize,
    name: &Range<usize>,
    kind: Kind,
    found: &Assignment,
) -> bool {
    // A private key stands beside its public one.
    let is_private =
        ignore_case::contains_any(&text[name.clone()], &["private", "secret", "api", "access"]);
    let of_key = kind == Kind::Key
        && !is_private
        && (is_called_public(&text[line..phrase])
            || is_after_public_key(&text[line..name.start])
            || becomes_public_key(text, found.value.end));
    of_key
        || is_within_word(text, name.start)
        || is_compared(text, name, found.syntax)
        || is_made_public(&text[name.end..found.value.start], found.syntax)
        || is_neighbour(text, name, found)
        || is_in_list_of_words(text, &text[name.clone()], found)
        || is_commit(text, &found.value)
        || is_command(&text[name.clone()], &text[found.value.clone()], found.syntax)
        || is_made_of_secret(&text[line..name.start], &text[name.end..found.value.start])
        || is_salted(text, found)
        || is_called_encrypted(text, found.value.end)
}

/// `enable password … encrypted`: routers say so of a hash.
fn is_called_encrypted(text: &[u8], end: usize) -> bool {
    const WORD: &[u8] = b" encrypted";
    let rest = text.get(end..end + WORD.len() + 1).or(text.get(end..)).unwrap_or(b"");
    rest.strip_prefix(WORD).is_some_and(|rest| matches!(rest, [] | [b'\r' | b'\n']))
}

/// `passwd app` asks for one.
fn is_command(name: &[u8], value: &[u8], syntax: Syntax) -> bool {
    let is_user = value.iter().all(u8::is_ascii_lowercase);
    syntax == Syntax::Directive && name == b"passwd" && is_user
}

/// `checksum/secret: …`, by which Kubernetes notices a change; `SetCredentialEncrypted=key: …` of systemd;
/// `md5($key) == …`; `SHA512 (token.tgz) = …`.
fn is_made_of_secret(before: &[u8], between: &[u8]) -> bool {
    // The call of the hash is open where the name stands.
    let call = memchr::memrchr(b'(', before).map(|at| &before[..at]);
    let is_hashed = call.is_some_and(|call| {
        ignore_case::ends_with_any(call, &["md5", "sha1", "sha256"])
            && memchr::memchr(b')', &before[call.len()..]).is_none()
            && memchr::memmem::find(between, b"==").is_some()
    });
    let is_listed = before.strip_suffix(b" (").is_some_and(|algorithm| {
        ignore_case::starts_with_any(algorithm, &["sha", "md5", "rmd160", "blake2"])
            && algorithm.iter().all(u8::is_ascii_alphanumeric)
            && algorithm.iter().any(u8::is_ascii_digit)
    });
    is_hashed || is_listed || before.ends_with(b"checksum/") || before.ends_with(b"Encrypted=")
}

/// `{"value": "…", "salt": "…"}`: a hash, with what it was made with.
fn is_salted(text: &[u8], found: &Assignment) -> bool {
    const MAX_SIGNS: usize = 8;
    let behind = &text[found.value.end..text.len().min(found.value.end + MAX_SIGNS + 4)];
    let signs = behind.iter().take_while(|byte| !byte.is_ascii_alphanumeric()).count();
    let is_next = behind[..signs].contains(&b'"') && behind[signs..].starts_with(b"salt");
    found.syntax == Syntax::Pair && is_next
}

/// `public key: …`.
fn is_called_public(before: &[u8]) -> bool {
    let before = before.strip_suffix(b" ").unwrap_or(b"");
    ignore_case::ends_with_any(before, &["public"])
}

/// `"type": "acme/PubKey", "key": …`.
fn is_after_public_key(before: &[u8]) -> bool {
    let before = &before[before.len().saturating_sub(REACH_BEFORE)..];
    ignore_case::contains_any(before, &["pubkey\"", "publickey\"", "pubkey\\\"", "publickey\\\""])
}

/// `"…".parse::<PublicKey>()`, `"…", "signatures": …`: what others sign is shown to them.
fn becomes_public_key(text: &[u8], end: usize) -> bool {
    let rest = &text[end..text.len().min(end + REACH)];
    let name = rest.iter().position(u8::is_ascii_alphabetic).unwrap_or(rest.len());
    let is_apart = rest[..name].contains(&b',') && rest[..name].ends_with(b"\"");
    if is_apart && rest[name..].starts_with(b"signatures\"") {
        return true;
    }
    let rest = &rest[..rest.iter().position(|byte| *byte == b';').unwrap_or(rest.len())];
    memchr::memmem::find(rest, b"PublicKey>").is_some()
}

/// `Ġclave`: Latin letters with accents belong to a word, too; marks of all kinds do not.
fn is_within_word(text: &[u8], start: usize) -> bool {
    // U+00C0 to U+024F.
    matches!(text[..start], [.., 0xC3..=0xC9, 0x80..=0xBF])
}

/// `test "$pass" = dlopen`: shells compare so, and assign without the sign of a variable.
fn is_compared(text: &[u8], name: &Range<usize>, syntax: Syntax) -> bool {
    let is_variable = name.start.checked_sub(1).is_some_and(|at| text[at] == b'$');
    let is_apart = matches!(text.get(name.end), Some(b'"' | b' '));
    let before = &text[name.start.saturating_sub(REACH_BEFORE)..name.start];
    let is_test = ["test ", "[ ", "if ", "# "]
        .iter()
        .any(|word| memchr::memmem::find(before, word.as_bytes()).is_some());
    syntax == Syntax::BareEquals && is_variable && is_apart && is_test
}

/// `address!("…")`, `Signature::from_str("…")`, `HashedPass("…")`: what is made of the value is public.
fn is_made_public(between: &[u8], syntax: Syntax) -> bool {
    const MAKERS: &[&str] =
        &["address", "signature", "publickey", "public_key", "verifyingkey", "verifying_key"];
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let is_maker =
        |word: &[u8]| ignore_case::is_any(word, MAKERS) || ignore_case::contains(word, "hashed");
    syntax == Syntax::Wrapped && between.split(|byte| !in_name(byte)).any(is_maker)
}

/// `"a/password.php", "x" => …`, `"token=x", "y=…"`: strings that only stand beside each other.
fn is_neighbour(text: &[u8], name: &Range<usize>, found: &Assignment) -> bool {
    if !matches!(found.syntax, Syntax::Listed | Syntax::Among) {
        return false;
    }
    // A store of secrets is written to by a path, too: `put("app/password", "x")`.
    let is_file = text[name.clone()].contains(&b'.');
    let before = name.start.checked_sub(1).map(|at| text[at]);
    let is_part = before == Some(b'=') || (before == Some(b'/') && is_file);
    let rest = &text[found.value.end..text.len().min(found.value.end + REACH)];
    is_part || rest.get(1..).unwrap_or(b"").trim_ascii_start().starts_with(b"=>")
}

/// `password = ["zeroize"]`: what a feature needs. Passwords in a list have a name in the plural.
fn is_in_list_of_words(text: &[u8], name: &[u8], found: &Assignment) -> bool {
    const MAX_BLANKS: usize = 16;
    let value = &text[found.value.clone()];
    let quote = found.value.start.saturating_sub(1);
    let before = text[quote.saturating_sub(MAX_BLANKS)..quote].trim_ascii_end();
    let in_word = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_');
    found.syntax == Syntax::Quoted
        && before.ends_with(b"[")
        && value.iter().all(in_word)
        && value::weigh(value, RANDOM_BITS).is_none()
        && !ignore_case::ends_with_any(name, PLURALS)
}

/// ``[`fb884e1`](…)``: a commit that a changelog links to.
fn is_commit(text: &[u8], value: &Range<usize>) -> bool {
    (7..=12).contains(&value.len())
        && text[value.clone()].iter().all(u8::is_ascii_hexdigit)
        && text.get(value.end..).is_some_and(|rest| rest.starts_with(b"`]("))
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
            format!("# public key: {KEY}\n"),
            format!("{{\"type\": \"acme/PubKey\", \"key\": \"{KEY}\"}}"),
            format!("{{\"key\": \"{KEY}\",\n  \"signatures\": {{"),
            format!("let key = \"{KEY}\"\n    .parse::<PublicKey>()"),
            format!("let key = PublicKey::from_str(\"{KEY}\");"),
        ] {
            assert_eq!(found(FileKind::Code, &text), None, "{text}");
        }
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
        let text = "Merge branch 'auth-refactor' ([`3b9d07c`](https://x.y))";
        assert_eq!(found(FileKind::Text, text), None);
        assert_eq!(found(FileKind::Config, "\u{120}clave: 95449"), None);
    }

    #[test]
    fn what_was_made_of_a_secret_is_none() {
        let hex = "3b9d07c41fe86a52908d4f7be1c6a03d";
        for text in [
            format!("checksum/secret: {hex}{hex}"),
            format!("SetCredentialEncrypted=secret: {hex}"),
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
