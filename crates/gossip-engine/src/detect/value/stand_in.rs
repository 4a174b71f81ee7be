//! Values that only show where a value would be, or are something else as a whole.

use super::form::{has_own_number, is_generated};
use super::identifier::{ends_in_what_it_names, is_constant_name};
use super::public::is_public;
use super::published::is_published;
use super::sealed::{is_encrypted, is_hash, is_part_of_token};
use super::written::{
    has_foreign_character, has_uuid_in_braces, is_case, is_date, is_escaped_bytes, is_file_of_key,
    is_label, is_node, is_of_code, is_path, is_prefix, is_qualified, is_version, is_versioned,
};
use super::{Shape, Weight, has};
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
    (is_label, NONE),               // stands before a field
    (is_part_of_token, NONE),       // lacks the signature
    (is_qualified, NONE),           // a URL, or a name with its module
    (is_template, NONE),            // filled in later
    (is_format, 24.0),              // filled in by a call, unless a password has the sign by chance
    (is_published, NONE),           // everybody has it
    (is_public, NONE),              // everybody may have it
];

/// What the words of a value say. Where nothing but a secret stands, people choose such values all the same.
const OF_WORDS: &[Predicate] = &[
    ends_in_what_it_names, // names a secret
    has_telling_part,      // says that it is none
    only_says_secret,      // says what it is, and nothing more
];

/// Those of the kinds that have hexadecimal digits and nothing else. There are more such values than others in
/// code that deals with ciphers.
const KINDS_OF_DIGITS: &[(Predicate, f32)] =
    &[(is_repetitive, NONE), (is_constant_name, 12.0), (is_published, NONE), (is_public, NONE)];

/// Whether a value, which weighs so much, only shows where a value would be, or is something else as a
/// whole.
pub(super) fn is_one(value: &[u8], weight: Weight) -> bool {
    let is_hex = weight.shape == Shape::Hex;
    is_of_kind(value, weight, if is_hex { KINDS_OF_DIGITS } else { KINDS })
        || (!is_hex && OF_WORDS.iter().any(|is_of_words| is_of_words(value)))
}

/// The same, whatever words the value has.
pub(super) fn is_one_but_for_words(value: &[u8], weight: Weight) -> bool {
    is_of_kind(value, weight, KINDS)
}

fn is_of_kind(value: &[u8], weight: Weight, kinds: &[(Predicate, f32)]) -> bool {
    kinds.iter().any(|(is_of_kind, bits)| weight.bits < *bits && is_of_kind(value))
}

/// Whether the value begins or ends as an expression does: this is known before the value is weighed.
pub(super) fn is_expression(value: &[u8]) -> bool {
    // `#9999ladder@` is no selector and no color.
    let is_fragment = |rest: &[u8]| {
        !(rest.iter().any(u8::is_ascii_digit) && rest.iter().any(|byte| b"!@#$%^&*".contains(byte)))
    };
    let opens = match value {
        [b'#', rest @ ..] => is_fragment(rest),
        [first, ..] => b"$%{<[(&:,".contains(first),
        [] => false,
    };
    let is_starred = value.starts_with(b"*") && value.ends_with(b"*");
    // `"…: ".$_POST['x'].""`: what stands between two strings of PHP.
    let joins = value.starts_with(b".$") || value.starts_with(b". $");
    let goes_on = value.ends_with(b"(") || value.ends_with(b"[");
    // `\$PASS` in a script that a string holds. Passwords with a dollar are written so, too.
    let is_escaped = value
        .strip_prefix(b"\\$")
        .is_some_and(|name| name.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_'));
    (opens || joins || is_starred || goes_on || is_escaped) && !is_generated(value)
}

/// What stands for a value, or is none: whole, in lower case.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "null", "none", "nil", "true", "false", "undefined", "yes", "off", "optional", "required",
    "string", "text", "todo", "fixme", "tbd", "empty", "unset", "void", "secret", "private",
    "public", "default", "default_value", "test", "testing", "sample", "demo", "hidden", "redacted",
    "masked", "asdf", "qwerty", "foo", "bar", "baz", "foobar", "passwd", "pwd", "mypwd",
    "nopass", "xyz", "xyzzy", "abc", "abc123", "user", "root", "admin", "guest", "mysql", "postgres",
    "vagrant", "rabbitmq", "mongodb", "postgresql", "p@ssw0rd", "passw0rd", "pa$$w0rd",
    "pa55word", "pass123", "password123", "changeit", "sha256", "sha512", "sha1", "md5", "hmac",
    "bcrypt", "argon2", "pbkdf2", "welcome", "s3cr3t", "s3cr3t!", "s3cret", "secr3t", "deadbeef",
    "hello", "helloworld", "hunter2", "sekrit", "sekret", "nullptr",
    // Tags of YAML, behind which the value or its name stands.
    "!vault", "!secret", "!env", "!ref", "!sub", "!encrypted",
];

/// What people number when they need several: `pwd1`, `user2`.
const NUMBERED: &[&str] = &["pwd", "pass", "pw", "user", "token", "key", "test", "root", "admin"];

/// What a value begins with that says whose it is, and not what.
const TELLING_STARTS: &[&str] = &["my_", "my-", "the_", "the-"];

/// Parts that no value has which is one.
#[rustfmt::skip]
const TELLING_PARTS: &[&str] = &[
    "password", "passwd", "passphrase", "example", "placeholder", "changeme", "change-me", "change_me", "your_", "your-", "yourp",
    "insert", "replace", "redacted", "dummy", "xxxx", "lorem", "notareal",
    "process.env", "getenv", "environ", "localhost", "undefined", "function",
    "username", "sample", "fake", "foobar", "blahbla", "mock_", "mock-", "_mock", "-mock", "****", "...",
    "----", "____", "goes-here", "goes_here", "correct-horse", "correcthorse",
];

fn is_whole_word(value: &[u8]) -> bool {
    ignore_case::is_any(value, WORDS)
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

/// `pwd1`, `admin123`.
fn is_numbered(value: &[u8]) -> bool {
    let digits = value.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (word, number) = value.split_at(value.len() - digits);
    (1..=4).contains(&digits) && ignore_case::is_any(word, NUMBERED) && !has_own_number(number)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::detect::value::{weigh, weight};

    proptest! {
        /// Digits are never of a kind that only the longer table has.
        #[test]
        fn digits_are_told_by_the_shorter_table(
            value in "[0-9a-f]{16,80}|[0-9A-F]{16,80}|(00|0[1-4]|ff|[a-f]{2}){8,33}",
        ) {
            let value = value.as_bytes();
            let weight = weight(value);
            prop_assume!(weight.shape == Shape::Hex);
            let is_of_words = OF_WORDS.iter().any(|is_of_words| is_of_words(value));
            prop_assert_eq!(
                is_of_kind(value, weight, KINDS) || is_of_words,
                is_of_kind(value, weight, KINDS_OF_DIGITS)
            );
        }
    }

    #[test]
    fn stand_ins_have_no_weight() {
        for value in [
            "${TOKEN}",
            "\\$_ZORB_PWD",
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
            "MDoEEPgAAAAq8Zr2LmTvT0mL2rZ",
            "credentialsJSON:9b2f6c1e",
            "encrypted:3b9d07c41fe86a52",
            "enc:q8Zr2LmTvT0mL2rZ",
            "vault:v1:q8Zr2LmTvT0mL2rZ",
            "EJ[1:q8Zr2LmTvT0mL2rZ]",
            "AQICAHq8Zr2LmTvT0mL2rZ",
            "AYADeq8Zr2LmTvT0mL2rZ",
            "kms:q8Zr2LmTvT0mL2rZ",
            "![q8Zr2LmTvT0mL2rZ]",
            "nullptr",
            "!vault",
            "ssm:/zorb/db",
            "app:$2y$05$q8Zr2LmTvT0mL2rZ",
            "grub.pbkdf2.sha512.10000.3b9d07c41fe86a52908d",
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
