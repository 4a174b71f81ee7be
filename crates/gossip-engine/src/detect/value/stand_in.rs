//! Values that only show where a value would be, or are something else as a whole.

use super::form::{is_generated, is_hex, is_uuid};
use super::identifier::{ends_in_what_it_names, is_constant_name};
use super::public::is_public;
use super::published::is_published;
use crate::decode::base64;
use crate::ignore_case;

/// The bits of a kind for which none are enough.
const NONE: f32 = f32::INFINITY;

type Predicate = fn(&[u8]) -> bool;

/// The kinds of stand-ins, and the bits from which a value of that form is a secret after all. What
/// most values are told by stands first.
#[rustfmt::skip]
const KINDS: &[(Predicate, f32)] = &[
    (is_encrypted, NONE),           // opens nothing without another key
    (is_pattern, NONE),             // says what a password must look like
    (is_whole_word, NONE),          // `null`, `changeit`
    (is_numbered, NONE),            // one of several that were made up: `pwd1`
    (is_escaped_bytes, NONE),       // judged where they are decoded
    (has_uuid_in_braces, NONE),     // an identifier of Windows
    (is_repetitive, NONE),          // `xxxx`
    (has_foreign_character, NONE),  // text of another script
    (is_path, NONE),                // says where a secret is
    (is_file_of_key, 12.0),         // says where a key is
    (is_prefix, NONE),              // what secrets begin with
    (is_version, 12.0),             // of a licence, or of a program
    (is_case, 20.0),                // one of several tests of an algorithm
    (is_hash, NONE),                // does not give the password back
    (is_node, NONE),                // printed by a parser
    (is_constant_name, 12.0),       // capitals may be random
    (is_date, NONE),                // of a version
    (is_versioned, NONE),           // a package, or an image
    (is_of_code, NONE),             // what code has in strings
    (is_ssh_public_key, NONE),      // public
    (is_label, NONE),               // stands before a field
    (ends_in_what_it_names, NONE),  // names a secret
    (is_part_of_token, NONE),       // lacks the signature
    (is_qualified, NONE),           // a URL, or a name with its module
    (is_template, NONE),            // filled in later
    (is_format, 24.0),              // filled in by a call, unless a password has the sign by chance
    (has_telling_part, NONE),       // says that it is none
    (only_says_secret, NONE),       // says what it is, and nothing more
    (is_published, NONE),           // everybody has it
    (is_public, NONE),              // everybody may have it
];

/// Whether a value, which weighs this many bits, only shows where a value would be, or is something
/// else as a whole.
pub(super) fn is_one(value: &[u8], bits: f32) -> bool {
    KINDS.iter().any(|(is_of_kind, bits_of_secret)| bits < *bits_of_secret && is_of_kind(value))
}

/// Whether the value begins or ends as an expression does: this is known before the value is weighed.
pub(super) fn is_expression(value: &[u8]) -> bool {
    let opens = value.first().is_some_and(|first| b"$%{<[(&#:,".contains(first));
    let is_starred = value.starts_with(b"*") && value.ends_with(b"*");
    let goes_on = value.ends_with(b"(") || value.ends_with(b"[");
    (opens || is_starred || goes_on) && !is_generated(value)
}

fn has(value: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(value, part).is_some()
}

/// What stands for a value, or is none: whole, in lower case.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "null", "none", "nil", "true", "false", "undefined", "yes", "off", "optional", "required",
    "string", "text", "todo", "fixme", "tbd", "empty", "unset", "void", "secret", "private",
    "public", "default", "default_value", "test", "testing", "sample", "demo", "hidden", "redacted",
    "masked", "asdf", "qwerty", "foo", "bar", "baz", "foobar", "passwd", "pwd", "mypwd",
    "nopass", "xyz", "abc", "abc123", "user", "root", "admin", "guest", "mysql", "postgres",
    "vagrant", "rabbitmq", "mongodb", "postgresql", "p@ssw0rd", "passw0rd", "pa$$w0rd",
    "pa55word", "pass123", "password123", "changeit", "sha256", "sha512", "sha1", "md5", "hmac",
    "bcrypt", "argon2", "s3cr3t", "s3cr3t!", "s3cret", "deadbeef",
    "hello", "helloworld", "sekrit", "sekret",
];

/// What people number when they need several: `pwd1`, `user2`.
const NUMBERED: &[&str] = &["pwd", "pass", "pw", "user", "token", "key", "test", "root", "admin"];

/// What a value begins with that says whose it is, and not what.
const TELLING_STARTS: &[&str] = &["my_", "my-", "the_", "the-"];

/// Parts that no value has which is one.
#[rustfmt::skip]
const TELLING_PARTS: &[&str] = &[
    "password", "passwd", "passphrase", "example", "placeholder", "changeme", "your_", "your-", "yourp",
    "insert", "replace", "redacted", "dummy", "xxxx", "lorem", "notareal",
    "process.env", "getenv", "environ", "localhost", "undefined", "function",
    "username", "sample", "fake", "foobar", "blahbla", "mock_", "mock-", "_mock", "-mock", "****", "...",
    "----", "____",
];

/// `ENC(…)` of Jasypt, `ENC[…]` of Hiera and SOPS, `ENCRYPTED[…]` of Cirrus; what Windows sealed for one
/// user, which begins with the number of the provider; and what Kubernetes' controller of sealed secrets
/// did, which begins with the length of an encrypted key, 512.
pub(in crate::detect) fn is_encrypted(value: &[u8]) -> bool {
    const MIN_SEALED: usize = 700;
    const DPAPI: &[u8] = b"AQAAANCMnd8BFdERjHoAwE";
    let is_sealed = value.len() >= MIN_SEALED
        && matches!(value, [b'A', b'g', b'A'..=b'D', ..])
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte));
    // Magento: the number of the key, and that of the cipher.
    let of_magento = matches!(value, [key, b':', cipher, b':', ..]
        if key.is_ascii_digit() && cipher.is_ascii_digit() && value.len() >= 40);
    value.starts_with(b"ENC(")
        || of_magento
        || value.starts_with(b"ENCRYPTED[")
        || value.starts_with(DPAPI)
        || has(value, b"ENC[")
        || is_sealed
}

fn is_whole_word(value: &[u8]) -> bool {
    ignore_case::is_any(value, WORDS)
}

/// `jwtdecode:2.0.0`.
fn is_versioned(value: &[u8]) -> bool {
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
fn is_qualified(value: &[u8]) -> bool {
    has(value, b"://")
        || has(value, b"::")
        || ignore_case::starts_with_any(value, &["arn:", "urn:", "pkcs11:"])
}

/// `${TOKEN}`, `{{ token }}`, `%(token)s`, `token()`.
fn is_template(value: &[u8]) -> bool {
    const SIGNS: [&[u8]; 9] = [b"${", b"{{", b"#{", b"%>", b"%(", b"(%", b"$(", b"()", b"{0}"];
    // Each sign has one of these, and few values do.
    let may_be = value.iter().any(|byte| b"{(%".contains(byte));
    may_be
        && (value.starts_with(b"@{") || SIGNS.iter().any(|sign| has(value, sign)))
        && !is_generated(value)
}

/// `Bearer %s`.
fn is_format(value: &[u8]) -> bool {
    has(value, b"%s")
}

/// Whether a text says of itself that it is no secret: `changeme`, `the example of a nonce`.
pub(super) fn tells(text: &[u8]) -> bool {
    is_whole_word(text)
        || is_numbered(text)
        || ignore_case::contains_any(text, TELLING_PARTS)
        || only_says_secret(text)
}

/// `your-password`, `my_token`, `process.env.TOKEN`.
fn has_telling_part(value: &[u8]) -> bool {
    ignore_case::starts_with_any(value, TELLING_STARTS)
        || ignore_case::contains_any(value, TELLING_PARTS)
}

/// `the-secret-of-acme`, but not a key that says what it is.
fn only_says_secret(value: &[u8]) -> bool {
    ignore_case::contains(value, "secret") && !is_labelled(value)
}

/// A node of a syntax tree and where it stands, as parsers print them: `STRING_LITERAL@12..18`.
fn is_node(value: &[u8]) -> bool {
    let Some(at) = memchr::memrchr(b'@', value) else { return false };
    let range = &value[at + 1..];
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let dots = memchr::memmem::find(range, b"..");
    dots.is_some_and(|dots| is_number(&range[..dots]) && is_number(&range[dots + 2..]))
}

/// `jelsz\u00f3`, `\u{f000b}`: a character that is no ASCII, as code and JSON write it. What is written in
/// other scripts weighs nothing, either.
fn has_foreign_character(value: &[u8]) -> bool {
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

/// `whsec_`, `app-cache-`: what values begin with.
fn is_prefix(value: &[u8]) -> bool {
    let in_words = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-');
    matches!(value.last(), Some(b'_' | b'-')) && value.iter().all(in_words)
}

/// `Apache-2.0`, `HTTP/1.1`: words, and the number of a version.
fn is_version(value: &[u8]) -> bool {
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

/// `RSA-OAEP-1`: what is tested, and a number.
fn is_case(value: &[u8]) -> bool {
    let mut words = value.rsplit(|byte| *byte == b'-');
    let number = words.next().unwrap_or(b"");
    let is_word = |word: &[u8]| word.len() >= 2 && word.iter().all(u8::is_ascii_uppercase);
    matches!(number.len(), 1 | 2)
        && number.iter().all(u8::is_ascii_digit)
        && words.clone().count() >= 2
        && words.all(is_word)
}

/// `server-2.pem`, `id_ecdsa`: the file that a key is in.
fn is_file_of_key(value: &[u8]) -> bool {
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

/// `Pasiwedi:`, what stands before a field.
fn is_label(value: &[u8]) -> bool {
    let text = value.strip_suffix(b":");
    text.is_some_and(|text| text.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b' '))
}

/// `2020-02-01-preview`, `2020-02-01T10:30:00Z`: the day of a version, or a time.
fn is_date(value: &[u8]) -> bool {
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

/// `@scope/package`, `npm:package@^4`, `Ctrl-Shift-P`, `bsj,j->bs`, half of a character.
fn is_of_code(value: &[u8]) -> bool {
    const SHORTCUTS: [&[u8]; 4] = [b"Ctrl-", b"Shift-", b"Alt-", b"Ctrl+"];
    let in_package =
        |byte: &u8| byte.is_ascii_lowercase() || b"@/-.".contains(byte) || byte.is_ascii_digit();
    (value[0] == b'@' && value.contains(&b'/') && value.iter().all(in_package))
        || SHORTCUTS.iter().any(|keys| value.starts_with(keys))
        || value.starts_with(b"npm:")
        || (has(value, b"->") && !value.iter().any(u8::is_ascii_digit))
        || has(value, b"\\ud8")
}

/// A public key of SSH, or the kind that stands before one.
fn is_ssh_public_key(value: &[u8]) -> bool {
    const STARTS: [&[u8]; 7] = [
        b"AAAAB3NzaC1yc2E",
        b"AAAAC3NzaC1lZDI1NTE5",
        b"AAAAE2VjZHNhLXNoYTIt",
        b"ssh-rsa",
        b"ssh-dss",
        b"ssh-ed25519",
        b"ssh-ed448",
    ];
    STARTS.iter().any(|start| value.starts_with(start))
}

/// The head or the claims of a signed token: without its signature it opens nothing. Base64 of an object
/// whose strings are short, as those of a secret are not.
fn is_part_of_token(value: &[u8]) -> bool {
    const MAX_LEN: usize = 512;
    /// No name and no number is longer; identifiers are in groups.
    const MAX_RUN: usize = 16;
    let value = value.strip_suffix(b".").unwrap_or(value);
    if !value.starts_with(b"eyJ") || value.len() > MAX_LEN {
        return false;
    }
    let mut bytes = [0u8; MAX_LEN];
    let digits = value.iter().take_while(|byte| **byte != b'=').count();
    let len = base64::decode_into(&value[..digits], &mut bytes);
    let object = &bytes[..len];
    let is_whole = len * 4 / 3 + 2 >= digits;
    let is_text = object.iter().all(|byte| (b' '..=b'~').contains(byte));
    let mut runs = object.split(|byte| !byte.is_ascii_alphanumeric());
    is_whole && is_text && runs.all(|run| run.len() <= MAX_RUN)
}

/// A regular expression: what a password must look like.
fn is_pattern(value: &[u8]) -> bool {
    #[rustfmt::skip]
    const PARTS: [&[u8]; 12] = [
        b"(?", b"[a-z", b"[A-Z", b"[0-9", b"[^", b"\\d", b"\\w", b"\\s", b".*", b"zA-Z", b"(.", b"?:",
    ];
    // Each part has one of these, and few values do.
    let may_be = value.iter().any(|byte| b"[\\(*$".contains(byte));
    let is_whole = value.len() > 2 && value.starts_with(b"^") && value.ends_with(b"$");
    may_be && (is_whole || PARTS.iter().filter(|part| has(value, part)).count() >= 2)
}

/// `secret_8f3a…`, `acmeSECRET0a1b…`: a key that says what it is, and goes on as keys do.
fn is_labelled(value: &[u8]) -> bool {
    const MIN_LEN: usize = 24;
    let tail = value.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let tail = &value[value.len() - tail..];
    let tail = if ignore_case::contains(tail, "secret") {
        &tail[tail.iter().position(u8::is_ascii_digit).unwrap_or(tail.len())..]
    } else {
        tail
    };
    tail.len() >= MIN_LEN && tail.iter().filter(|byte| byte.is_ascii_digit()).count() >= 3
}

/// `/etc/x.key`, `~/x`, `./x`: base64 may begin with a slash too, but has no other signs.
fn is_path(value: &[u8]) -> bool {
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

/// `pwd1`.
fn is_numbered(value: &[u8]) -> bool {
    let digits = value.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    (1..=4).contains(&digits) && ignore_case::is_any(&value[..value.len() - digits], NUMBERED)
}

/// Bytes in a string, `\x1f\x8b…` or `\0`: what they say is judged where they are decoded.
fn is_escaped_bytes(value: &[u8]) -> bool {
    // What colours a terminal begins with the escape character.
    let is_colour = ignore_case::starts_with_any(value, &["\\x1b", "\\033", "\\u001b", "\\e["]);
    let is_escape = |pair: &[u8]| pair[0] == b'\\' && matches!(pair[1], b'x' | b'0' | b'u' | b'U');
    let escapes = value.windows(2).filter(|pair| is_escape(pair)).count();
    is_colour || (escapes > 0 && (escapes * 8 >= value.len() || value.ends_with(b"\\0")))
}

/// What a password was made into, or a fingerprint: `pbkdf2_sha256$10000$…`, `sha256:04ce2a…`,
/// `51:C4:0C:6D:…`.
fn is_hash(value: &[u8]) -> bool {
    let algorithms =
        ["pbkdf2", "bcrypt", "argon2", "scrypt", "sha1$", "sha256$", "sha512$", "md5$", "{SSHA"];
    let begins = |names: &[&str]| names.iter().any(|name| value.starts_with(name.as_bytes()));
    let is_pair = |pair: &[u8]| pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit);
    // Those of MD5 and SHA-1; longer ones may be keys.
    let in_pairs =
        || matches!(value.len(), 47 | 59) && value.split(|byte| *byte == b':').all(is_pair);
    // As Tomcat keeps them: salt, iterations and digest.
    let of_tomcat = || {
        let mut parts = value.split(|byte| *byte == b'$');
        let [salt, count, digest] = [(); 3].map(|()| parts.next().unwrap_or(b""));
        salt.len() >= 32 && is_hex(salt) && is_hex(digest) && count.iter().all(u8::is_ascii_digit)
    };
    // As PostgreSQL and MySQL keep them.
    let of_database = || match value {
        [b'm', b'd', b'5', digits @ ..] => is_hex(digits) && digits.len() == 32,
        [b'*', digits @ ..] => is_hex(digits) && digits.len() == 40,
        _ => value.starts_with(b"SCRAM-SHA-"),
    };
    (value.iter().filter(|byte| **byte == b'$').count() >= 2 && begins(&algorithms))
        || of_database()
        || of_tomcat()
        || begins(&["sha256:", "sha512:", "sha1:", "SHA256:"])
        || in_pairs()
}

/// `xxxx`, `abab`, `0000001`.
fn is_repetitive(value: &[u8]) -> bool {
    let mut seen = [false; 128];
    value.iter().for_each(|byte| seen[usize::from(*byte & 0x7F)] = true);
    let distinct = seen.iter().filter(|seen| **seen).count();
    distinct <= 2 || (value.len() >= 8 && distinct <= 3) || has_long_run(value)
}

/// Four of the same in a row make up a third of it.
fn has_long_run(value: &[u8]) -> bool {
    let mut same = 1;
    let mut longest = 1;
    for pair in value.windows(2) {
        same = if pair[0] == pair[1] { same + 1 } else { 1 };
        longest = longest.max(same);
    }
    longest >= 4 && longest * 3 >= value.len()
}

/// `{262E99C9-…}`: an identifier of Windows, with or without more around it.
fn has_uuid_in_braces(value: &[u8]) -> bool {
    let uuid = memchr::memchr(b'{', value).and_then(|at| value.get(at + 1..at + 37));
    uuid.is_some_and(is_uuid)
}

#[cfg(test)]
mod tests {
    use crate::detect::value::weigh;

    #[test]
    fn stand_ins_have_no_weight() {
        for value in [
            "${TOKEN}",
            "{{ x }}",
            "<token>",
            "****",
            "xxxxxxxx",
            "JSX_STRING_LITERAL@12..1864",
            "null",
            "changeme",
            "%s",
            "パス",
            "your-password",
            "pbkdf2_sha256$10$abc$def",
            "/etc/pki/my.key",
            "e72ca165...",
            "$2y$10$abc",
            "https://x.y/z",
            "aaaa",
            "ENC(abc)",
            "ENCRYPTED[cfd48b16731c2540]",
            "pwd1",
            "s3cr3t",
            "\\x65\\x78\\x70\\x20",
            "\\x1B[0;32m",
            "nfkc\\0\\0",
            "\\UD83D\\UDCA9",
            "HTTP_NOT_FOUND",
            "_SA_{262E99C9-6160-4871-ACEC-4E61736B6F21}",
            "hkdf::Prk",
            "a6ddcc84-8e4d/data.FPKM-UQ.txt.gz",
            "reordered-hijklmnopq",
            "HTTP_NOT_FOUND",
            "RSA_OAEP_SHA_256",
            "_DBC_DBPASS_",
            "SCRAM-SHA-256$4096:wLr5nqC+3F+r7FdQPnB+nA==$x",
            "*EE0D72C1085C46C5278932678FBE2C6A782821B4",
            "md55a231fcdb710d73268c4f44283487ba2",
            "2020-02-01-preview",
            "@jupyter/ydoc",
            "Ctrl-Shift-P",
            "bsj,j->bs",
            "\\ud83d\\udca9",
            "Pasiwedi:",
            "AAAAC3NzaC1lZDI1NTE5AAAAIHv4wovK7u1Est8e1rMv",
            "2YotnFZFEjr1zCsicMWpAA",
            "sha256:04ce2ae89ff4295a6b9c4111640bdcb3",
            "51:C4:0C:6D:7E:A5:6C:D8:8F:B4:3A:DF:91:78:4F:18:BC:D5:E4:C5",
            "orders-dlq-key",
            "\\UD83D\\UDCA9",
            "carol_mock_token.q7Zr2L",
            "1/Blahblaqx424",
            "eyJhbGciOiJub25lIn0",
            "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0",
            "9d61b19deffd5a60ffffffff0d1e2f3a4b",
            "pleaseletmein",
            "jelsz\\u00f3",
            "\\u{f000b}",
            "server-2.pem",
            "id_ecdsa",
            "zorbify_",
            "Zorb-Wiki-2.0",
            "HTTP/1.1",
            "RSA-OAEP-10",
            "pkcs11:id=7374;object=zorb",
            "2020-02-01T10:30:00Z",
            ".ssh/zorb_key",
            "HTTP_X_ZORB_ROOT",
            "--[a-zA-Z][a-zA-Z0-9-]*",
            "oauth2[",
            "",
        ] {
            assert_eq!(weigh(value.as_bytes(), f32::MIN), None, "{value}");
        }
    }
}
