//! What programs and people write where a secret might stand: paths, versions, dates, names of packages,
//! characters of other scripts.

use super::form::is_uuid;
use super::has;
use crate::ignore_case;

/// `/etc/x.key`, `~/x`, `./x`: base64 may begin with a slash too, but has no other signs.
pub(super) fn is_path(value: &[u8]) -> bool {
    let from_here =
        value.starts_with(b"~/") || value.starts_with(b"./") || value.starts_with(b"../");
    let sign = |byte: &u8| matches!(byte, b'.' | b'-' | b'_');
    let is_file = value.contains(&b'/') && has_extension(value);
    // `.ssh/id_rsa`.
    let is_hidden = value[0] == b'.' && value.contains(&b'/');
    from_here
        || is_file
        || is_hidden
        || (value[0] == b'/' && (value.iter().any(sign) || value.len() < 16))
}

/// `….txt`, `….gz`: two to four small letters behind the last dot.
pub(in crate::detect) fn has_extension(value: &[u8]) -> bool {
    let letters = value.iter().rev().take_while(|byte| byte.is_ascii_lowercase()).count();
    (2..=4).contains(&letters) && value.iter().rev().nth(letters) == Some(&b'.')
}

/// `server-2.pem`, `id_ecdsa`: the file that a key is in.
pub(super) fn is_file_of_key(value: &[u8]) -> bool {
    const ENDS: [&str; 12] =
        ["asc", "cer", "crt", "der", "gpg", "jks", "key", "p12", "pem", "pfx", "ppk", "pub"];
    const NAMES: [&str; 4] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let dot = memchr::memrchr(b'.', value).filter(|dot| *dot > 0);
    ignore_case::is_any(value, &NAMES)
        || dot.is_some_and(|dot| {
            ignore_case::is_any(&value[dot + 1..], &ENDS) && value.iter().all(in_name)
        })
}

/// `whsec_`, `app-cache-`: what values begin with.
pub(super) fn is_prefix(value: &[u8]) -> bool {
    let in_words = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-');
    matches!(value.last(), Some(b'_' | b'-')) && value.iter().all(in_words)
}

/// `Apache-2.0`, `HTTP/1.1`: words, and the number of a version.
pub(super) fn is_version(value: &[u8]) -> bool {
    let digits =
        value.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let (words, version) = value.split_at(value.len() - digits);
    let in_words = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'-';
    let is_numbered = version.len() >= 3
        && version.contains(&b'.')
        && version.split(|byte| *byte == b'.').all(|number| matches!(number.len(), 1 | 2));
    let words = words.strip_suffix(b"-").or(words.strip_suffix(b"/"));
    is_numbered && words.is_some_and(|words| words.len() >= 2 && words.iter().all(in_words))
}

/// `jwtdecode:2.0.0`.
pub(super) fn is_versioned(value: &[u8]) -> bool {
    let Some(colon) = memchr::memrchr(b':', value) else { return false };
    let (name, version) = (&value[..colon], &value[colon + 1..]);
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(byte);
    let in_version = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    name.iter().all(in_name)
        && version.contains(&b'.')
        && version.first().is_some_and(u8::is_ascii_digit)
        && version.iter().all(in_version)
}

/// `https://…`, `hkdf::Prk`, `arn:aws:kms:…`.
pub(super) fn is_qualified(value: &[u8]) -> bool {
    has(value, b"://")
        || has(value, b"::")
        || ignore_case::starts_with_any(value, &["arn:", "urn:", "pkcs11:", "magnet:"])
        || is_reference(value)
        || is_scoped(value)
}

/// `@acme/auth_token`: a name in the scope of somebody's packages.
fn is_scoped(value: &[u8]) -> bool {
    let in_name = |byte: &u8| byte.is_ascii_lowercase() || b"-_./".contains(byte);
    value.strip_prefix(b"@").is_some_and(|name| name.contains(&b'/') && name.iter().all(in_name))
}

/// `ssm:/app/db`: a place in a store, behind the store's name.
fn is_reference(value: &[u8]) -> bool {
    const MAX_STORE: usize = 16;
    let in_store = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'+');
    let store = value.iter().take_while(|byte| in_store(byte)).count();
    let in_place =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"/_.:-".contains(byte);
    (2..=MAX_STORE).contains(&store)
        && value[store..].starts_with(b":/")
        && value[store..].iter().all(in_place)
}

/// `RSA-OAEP-1`: what is tested, and a number.
pub(super) fn is_case(value: &[u8]) -> bool {
    let mut words = value.rsplit(|byte| *byte == b'-');
    let number = words.next().unwrap_or(b"");
    let is_word = |word: &[u8]| word.len() >= 2 && word.iter().all(u8::is_ascii_uppercase);
    matches!(number.len(), 1 | 2)
        && number.iter().all(u8::is_ascii_digit)
        && words.clone().count() >= 2
        && words.all(is_word)
}

/// `2020-02-01-preview`, `2020-02-01T10:30:00Z`: the day of a version, or a time.
pub(super) fn is_date(value: &[u8]) -> bool {
    let is_day = value.get(..10).is_some_and(|day| {
        day.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    });
    let is_time = || {
        let in_time = |byte: &u8| byte.is_ascii_digit() || b":.+-TZ".contains(byte);
        value[10..].starts_with(b"T") && value[10..].iter().all(in_time)
    };
    is_day
        && (value[10..].iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'-') || is_time())
}

/// `Pasiwedi:`, what stands before a field.
pub(super) fn is_label(value: &[u8]) -> bool {
    let text = value.strip_suffix(b":");
    text.is_some_and(|text| text.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b' '))
}

/// A node of a syntax tree and where it stands, as parsers print them: `STRING_LITERAL@12..18`.
pub(super) fn is_node(value: &[u8]) -> bool {
    let Some(at) = memchr::memrchr(b'@', value) else { return false };
    let range = &value[at + 1..];
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let dots = memchr::memmem::find(range, b"..");
    dots.is_some_and(|dots| is_number(&range[..dots]) && is_number(&range[dots + 2..]))
}

/// `@scope/package`, `npm:package@^4`, `Ctrl-Shift-P`, `bsj,j->bs`, half of a character.
pub(super) fn is_of_code(value: &[u8]) -> bool {
    const SHORTCUTS: [&[u8]; 4] = [b"Ctrl-", b"Shift-", b"Alt-", b"Ctrl+"];
    let in_package =
        |byte: &u8| byte.is_ascii_lowercase() || b"@/-.".contains(byte) || byte.is_ascii_digit();
    (value[0] == b'@' && value.contains(&b'/') && value.iter().all(in_package))
        || SHORTCUTS.iter().any(|keys| value.starts_with(keys))
        || value.starts_with(b"npm:")
        || (has(value, b"->") && !value.iter().any(u8::is_ascii_digit))
        || has(value, b"\\ud8")
}

/// `jelsz\u00f3`, `\u{f000b}`: a character that is no ASCII, as code and JSON write it. What is written in
/// other scripts weighs nothing, either.
pub(super) fn has_foreign_character(value: &[u8]) -> bool {
    const MAX_DIGITS: usize = 6;
    memchr::memmem::find_iter(value, b"\\u").any(|at| {
        let rest = &value[at + 2..];
        let (rest, most) = match rest.strip_prefix(b"{") {
            Some(rest) => (rest, MAX_DIGITS),
            None => (rest, 4),
        };
        let digits = rest.iter().take(most).take_while(|byte| byte.is_ascii_hexdigit()).count();
        let number = std::str::from_utf8(&rest[..digits]).ok();
        let number = number.and_then(|number| u32::from_str_radix(number, 16).ok());
        number.is_some_and(|number| number >= 0x80)
    })
}

/// Bytes in a string, `\x1f\x8b…` or `\0`: what they say is judged where they are decoded.
pub(super) fn is_escaped_bytes(value: &[u8]) -> bool {
    // What colours a terminal begins with the escape character.
    let is_colour = ignore_case::starts_with_any(value, &["\\x1b", "\\033", "\\u001b", "\\e["]);
    let is_escape = |pair: &[u8]| pair[0] == b'\\' && matches!(pair[1], b'x' | b'0' | b'u' | b'U');
    let escapes = value.windows(2).filter(|pair| is_escape(pair)).count();
    is_colour || (escapes > 0 && (escapes * 8 >= value.len() || value.ends_with(b"\\0")))
}

/// `{262E99C9-…}`: an identifier of Windows, with or without more around it.
pub(super) fn has_uuid_in_braces(value: &[u8]) -> bool {
    let uuid = memchr::memchr(b'{', value).and_then(|at| value.get(at + 1..at + 37));
    uuid.is_some_and(is_uuid)
}
