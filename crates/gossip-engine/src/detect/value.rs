//! What a value looks like: random, or something that people write.
//!
//! The weight is in bits: how much likelier the value is by chance than as words, names, paths or
//! numbers. It is the sum of the letters' surprise ([`words`](super::words)) and of what mixtures of
//! cases, digits and signs say. What cannot be a secret at all has no weight.

use super::words;
use crate::checksum;
use crate::decode::base64;
use crate::judge;
use crate::rules::contains_ignore_case;

/// A value's weight and what else the judge asks of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weight {
    pub(super) bits: f32,
    pub(super) shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Digits only.
    Number,
    Uuid,
    /// Hexadecimal digits, at least sixteen.
    Hex,
    /// Letters only.
    Letters,
    /// Letters, digits, signs.
    Mixed,
    /// Words with blanks between them.
    Phrase,
}

/// What stands for a value, or is none: whole, in lower case.
#[rustfmt::skip]
const STAND_INS: &[&str] = &[
    "null", "none", "nil", "true", "false", "undefined", "yes", "off", "optional", "required",
    "string", "text", "todo", "fixme", "tbd", "empty", "unset", "void", "secret", "private",
    "public", "default", "default_value", "test", "sample", "demo", "hidden", "redacted",
    "masked", "asdf", "qwerty", "foo", "bar", "baz", "foobar", "passwd", "pwd", "mypwd",
    "nopass", "xyz", "abc", "abc123", "user", "root", "admin", "guest", "mysql", "postgres",
    "vagrant", "rabbitmq", "mongodb", "postgresql", "p@ssw0rd", "passw0rd", "pa$$w0rd",
    "pa55word", "pass123", "password123", "changeit", "sha256", "sha512", "sha1", "md5", "hmac",
    "bcrypt", "argon2", "s3cr3t", "s3cr3t!", "s3cret", "deadbeef",
    "helloworld", "sekrit", "sekret",
];

/// What people number when they need several: `pwd1`, `user2`.
const NUMBERED: &[&str] = &["pwd", "pass", "pw", "user", "token", "key", "test", "root", "admin"];

/// What somebody typed.
const TYPED_PARTS: &[&str] = &["12345", "abcdef", "qwert", "asdf"];

/// What a value begins with that is none.
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

/// What names of words weigh at most: some are short for something.
const NAME_BITS: f32 = 20.0;
/// Longer values have other signs than those of passwords in URLs.
const MAX_ESCAPED: usize = 128;

/// The beginnings of keys that their authors published to be used by everybody: the storage and the
/// database emulator's of Azure, and those of RFC 7748, 8032 and 8410. Too short to be keys.
#[rustfmt::skip]
const PUBLISHED: &[&str] = &[
    "eby8vdm02xnocqflquw", "c2y6ydjf5/r+ob0n8a7", "77076d0a7318a57d", "5dab087e624a8a4b",
    "9d61b19deffd5a60", "4ccd089b28ff96da", "c5aa8df43f9f837b", "d4ee72dbf913584a",
];

/// Of those, the emulators' come first.
const EMULATORS: usize = 2;

/// The beginnings of what the RFCs of OAuth (5849, 6749, 6750), of Basic credentials (7617) and the
/// manual of one-time passwords show, and half the world copies.
#[rustfmt::skip]
const SHOWN: &[&str] = &[
    "2yotnfzfejr1zc", "tgzv3jokf0xg5q", "splxlobezqqyby", "czzcagrsa3f0mz", "7fjfp0zbr1ktdr", "gx1fbat3bv",
    "mf_9.b5f-4.1jq", "9djdj82h48djs9", "kkk9d7dh3k39sj", "j49sn47ddh2s33", "dh893hdasih9d3", "kd94hf93k423kf",
    "nnch734d00sl2j", "hh5s93j4hdidpo", "pfkkdhi9sl3r4s", "dpf43f3p2l4k3l", "qwxhzgrpbjpvcg", "jbswy3dpehpk3p",
];

/// The weight of a value, or none if it cannot be a secret or weighs less than `least` bits.
pub(super) fn weigh(value: &[u8], least: f32) -> Option<Weight> {
    let weight = weigh_typed(value, least)?;
    (!is_typed(value)).then_some(weight)
}

/// Whether somebody typed the value, by the order of the alphabet or of the keyboard.
pub(super) fn is_typed(value: &[u8]) -> bool {
    TYPED_PARTS.iter().any(|part| contains_ignore_case(value, part.as_bytes()))
        || judge::looks_typed(value)
}

/// The same, but of a value in which the alphabet or the digits may stand in order. What is cheap to
/// tell is looked at first, as most values are none.
pub(super) fn weigh_typed(value: &[u8], least: f32) -> Option<Weight> {
    let (first, last) = (*value.first()?, *value.last()?);
    let opens =
        matches!(first, b'$' | b'%' | b'{' | b'<' | b'[' | b'(' | b'&' | b'#' | b':' | b',')
            || (first == b'*' && last == b'*');
    if ((opens || last == b'(') && !is_generated(value))
        || !value.iter().all(|byte| matches!(byte, b' '..=b'~'))
    {
        return None;
    }
    let mut buffer = [0; MAX_ESCAPED];
    let weight = weight(without_escapes(value, &mut buffer));
    (weight.bits >= least && !is_stand_in(value)).then_some(weight)
}

/// The value without what a URL cannot have: the digits of `caf%C3%A9` say nothing.
fn without_escapes<'v>(value: &'v [u8], buffer: &'v mut [u8; MAX_ESCAPED]) -> &'v [u8] {
    if !value.contains(&b'%') || value.len() > MAX_ESCAPED {
        return value;
    }
    let (mut at, mut len) = (0, 0);
    while let Some(&byte) = value.get(at) {
        let is_escape = matches!(&value[at..], [b'%', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
        if is_escape {
            at += 3;
            continue;
        }
        buffer[len] = byte;
        (at, len) = (at + 1, len + 1);
    }
    &buffer[..len]
}

/// Whether the value only shows where a value would be, or is something else as a whole.
fn is_stand_in(value: &[u8]) -> bool {
    const SIGNS: [&[u8]; 10] =
        [b"${", b"{{", b"#{", b"<%", b"%(", b"(%", b"$(", b"()", b"{0}", b"%s"];
    let has = |part: &[u8]| memchr::memmem::find(value, part).is_some();
    value.starts_with(b"@{")
        || [b"ENC(".as_slice(), b"ENCRYPTED["].iter().any(|sign| value.starts_with(sign))
        || (value.iter().any(|byte| b"[\\(*$".contains(byte))
            && (has(b"ENC[") || is_pattern(value)))
        || is_in(value, STAND_INS)
        || is_numbered(value)
        || is_escaped_bytes(value)
        || has_uuid_in_braces(value)
        || is_monotonous(value)
        || is_path(value)
        || is_hash(value)
        || is_node(value)
        || is_constant(value)
        || is_date(value)
        || is_of_code(value)
        || is_label(value)
        || is_name(value)
        || is_part_of_token(value)
        || has(b"://")
        || has(b"::")
        || (value.iter().any(|byte| b"{(%".contains(byte))
            && SIGNS.into_iter().any(has)
            && !is_generated(value))
        || TELLING_STARTS.iter().any(|start| {
            value
                .get(..start.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(start.as_bytes()))
        })
        || TELLING_PARTS.iter().any(|part| contains_ignore_case(value, part.as_bytes()))
        || (contains_ignore_case(value, b"secret") && !is_labelled(value))
        || is_published(value)
}

/// A node of a syntax tree and where it stands, as parsers print them: `STRING_LITERAL@12..18`.
fn is_node(value: &[u8]) -> bool {
    let Some(at) = memchr::memrchr(b'@', value) else { return false };
    let range = &value[at + 1..];
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let dots = memchr::memmem::find(range, b"..");
    dots.is_some_and(|dots| is_number(&range[..dots]) && is_number(&range[dots + 2..]))
}

/// The name of a constant: `HTTP_NOT_FOUND`, `RSA_OAEP_SHA_256`.
fn is_constant(value: &[u8]) -> bool {
    /// Random letters weigh more.
    const MAX_BITS: f32 = 12.0;
    const SIZES: &[&str] =
        &["1", "2", "3", "128", "192", "224", "256", "384", "512", "1024", "2048", "3072", "4096"];
    let inner = value.strip_prefix(b"_").and_then(|inner| inner.strip_suffix(b"_"));
    let mut words = inner.unwrap_or(value).split(|byte| *byte == b'_');
    let is_word = |word: &[u8]| word.len() >= 2 && word.iter().all(u8::is_ascii_uppercase);
    value.contains(&b'_')
        && words.next().is_some_and(is_word)
        && words.all(|word| is_word(word) || is_in(word, SIZES))
        && weight(value).bits < MAX_BITS
}

/// `Pasiwedi:`, what stands before a field.
fn is_label(value: &[u8]) -> bool {
    let text = value.strip_suffix(b":");
    text.is_some_and(|text| text.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b' '))
}

/// `2020-02-01-preview`: the day of a version.
fn is_date(value: &[u8]) -> bool {
    let is_day = value.get(..10).is_some_and(|day| {
        day.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    });
    is_day && value[10..].iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'-')
}

/// `@scope/package`, `npm:package@^4`, `Ctrl-Shift-P`, `bsj,j->bs`, half of a character, a public key of
/// SSH or its kind: what code has in strings.
fn is_of_code(value: &[u8]) -> bool {
    const KEYS: [&[u8]; 4] = [b"Ctrl-", b"Shift-", b"Alt-", b"Ctrl+"];
    const PUBLIC: [&[u8]; 3] =
        [b"AAAAB3NzaC1yc2E", b"AAAAC3NzaC1lZDI1NTE5", b"AAAAE2VjZHNhLXNoYTIt"];
    const KINDS: [&[u8]; 4] = [b"ssh-rsa", b"ssh-dss", b"ssh-ed25519", b"ssh-ed448"];
    let has = |part: &[u8]| memchr::memmem::find(value, part).is_some();
    let in_package =
        |byte: &u8| byte.is_ascii_lowercase() || b"@/-.".contains(byte) || byte.is_ascii_digit();
    let begins = |starts: &[&[u8]]| starts.iter().any(|start| value.starts_with(start));
    (value[0] == b'@' && value.contains(&b'/') && value.iter().all(in_package))
        || begins(&KEYS)
        || begins(&PUBLIC)
        || begins(&KINDS)
        || value.starts_with(b"npm:")
        || (has(b"->") && !value.iter().any(u8::is_ascii_digit))
        || has(b"\\ud8")
}

/// What ends in what it is the name of: `orders-dlq-key`. Random letters may end so, too.
fn is_name(value: &[u8]) -> bool {
    const ENDS: [&str; 5] = ["key", "keys", "token", "pass", "pwd"];
    let tail = value.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (head, tail) = value.split_at(value.len() - tail);
    let in_name = |byte: &u8| byte.is_ascii_lowercase() || b"-_.".contains(byte);
    matches!(head.last(), Some(b'-' | b'_'))
        && is_in(tail, &ENDS)
        && head.iter().all(in_name)
        && weight(head).bits < NAME_BITS
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
    const PARTS: [&[u8]; 9] =
        [b"(?", b"[a-z", b"[A-Z", b"[0-9", b"[^", b"\\d", b"\\w", b"\\s", b".*"];
    let has = |part: &&&[u8]| memchr::memmem::find(value, part).is_some();
    let is_whole = value.len() > 2 && value.starts_with(b"^") && value.ends_with(b"$");
    is_whole || PARTS.iter().filter(has).count() >= 2
}

/// `secret_8f3a…`, `acmeSECRET0a1b…`: a key that says what it is, and goes on as keys do.
fn is_labelled(value: &[u8]) -> bool {
    const MIN_LEN: usize = 24;
    let tail = value.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let tail = &value[value.len() - tail..];
    let tail = if contains_ignore_case(tail, b"secret") {
        &tail[tail.iter().position(u8::is_ascii_digit).unwrap_or(tail.len())..]
    } else {
        tail
    };
    tail.len() >= MIN_LEN && tail.iter().filter(|byte| byte.is_ascii_digit()).count() >= 3
}

/// Whether the value is no secret because everybody has it.
fn is_published(value: &[u8]) -> bool {
    let is_long = value.len() >= 32;
    is_shown(value)
        || (is_long && PUBLISHED.iter().any(|start| contains_ignore_case(value, start.as_bytes())))
        || (is_long && checksum::is_public_nkey(value))
        || (is_long && checksum::is_published_google_key(value))
}

/// Whether the value is an example of an RFC, or the key of an emulator that everybody has, by its
/// beginning. What only contains one may be more: a private key contains its public one.
pub(super) fn is_shown(value: &[u8]) -> bool {
    const LEN_MIN: usize = 10;
    let begins = |start: &&str| {
        value.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start.as_bytes()))
    };
    value.len() >= LEN_MIN
        && (SHOWN.iter().any(begins) || PUBLISHED[..EMULATORS].iter().any(begins))
}

/// Whether a program made the value of letters, digits and many signs, as those of frameworks do:
/// what its signs mean elsewhere says nothing.
fn is_generated(value: &[u8]) -> bool {
    const SIGNS: &[u8] = b"!@#$%^&*(-_=+)";
    const MIN_SIGNS: usize = 5;
    let distinct = SIGNS.iter().filter(|sign| value.contains(sign)).count();
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    (40..=128).contains(&value.len())
        && distinct >= MIN_SIGNS
        && digits >= 3
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || SIGNS.contains(byte))
}

/// Letters of both cases, digits and a sign: what rules for passwords ask people for. `VMware1!`
pub(super) fn is_by_the_rules(value: &[u8]) -> bool {
    let has = |of: fn(&u8) -> bool| value.iter().any(of);
    (8..=24).contains(&value.len())
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
        && has(|byte| b"!@#$^&*?".contains(byte))
        && has_no_other_sign(value)
}

fn has_no_other_sign(value: &[u8]) -> bool {
    value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!@#$^&*?".contains(byte))
}

/// Whether the value's letters make words, whatever else it may be.
pub(super) fn is_wordlike(value: &[u8]) -> bool {
    const WORDS: f32 = -6.0;
    value.is_ascii() && weight(value).bits < WORDS
}

fn weight(value: &[u8]) -> Weight {
    if is_number(value) {
        let bits = if value.len() >= 5 && !judge::looks_typed(value) { 3.0 } else { -4.0 };
        return Weight { bits, shape: Shape::Number };
    }
    if is_uuid(value) || is_grouped_hex(value) {
        return Weight { bits: 6.0, shape: Shape::Uuid };
    }
    if is_hex(value) {
        let is_random = judge::entropy(value) >= 2.5 && !counts_up(value);
        let bits = if is_random { (value.len() as f32 / 2.0).min(24.0) } else { -4.0 };
        return Weight { bits, shape: Shape::Hex };
    }
    let mut bits = letters_and_digits(value);
    let sign = |byte: &&u8| byte.is_ascii_punctuation() && !b"-_./:,'\"=+()\\".contains(byte);
    bits += 1.5 * value.iter().filter(sign).count().min(4) as f32;
    let blanks = value.iter().filter(|byte| **byte == b' ').count();
    let shape = if blanks > 0 {
        bits -= 2.0 * blanks as f32;
        Shape::Phrase
    } else if value.iter().all(u8::is_ascii_alphabetic) {
        Shape::Letters
    } else {
        Shape::Mixed
    };
    Weight { bits, shape }
}

/// Runs of letters by their surprise, short ones and digits by how they alternate.
fn letters_and_digits(value: &[u8]) -> f32 {
    let mut bits = 0.0;
    let mut at = 0;
    while at < value.len() {
        let start = at;
        if value[at].is_ascii_alphabetic() {
            at = end_of_word(value, at);
            bits += word_bits(value, start, at);
        } else if value[at].is_ascii_digit() {
            at += value[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let letter_before = start > 0 && value[start - 1].is_ascii_alphabetic();
            let letter_after = value.get(at).is_some_and(u8::is_ascii_alphabetic);
            bits += match (letter_before, letter_after) {
                (true, true) => 2.0,
                (false, true) => 1.0,
                (true, false) => 0.3 * (at - start).min(4) as f32,
                (false, false) => 0.0,
            };
        } else {
            at += 1;
        }
    }
    bits
}

/// A run of letters of one case, or a capital and what follows it.
fn end_of_word(value: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < value.len() && value[at].is_ascii_alphabetic() {
        let up = value[at].is_ascii_uppercase();
        let was_up = value[at - 1].is_ascii_uppercase();
        let down_next = value.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        if up && (!was_up || down_next) {
            break;
        }
        at += 1;
    }
    at
}

fn word_bits(value: &[u8], start: usize, end: usize) -> f32 {
    let neighbour = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphanumeric);
    let before = neighbour(start.checked_sub(1).and_then(|at| value.get(at)));
    let after = neighbour(value.get(end));
    match end - start {
        1 | 2 if before && after => 1.6,
        1 | 2 if before || after => 0.8,
        1 | 2 => 0.0,
        len => {
            // Digits on either side leave little of a short word.
            let is_digit = |at: Option<&u8>| at.is_some_and(u8::is_ascii_digit);
            let digits = [start.checked_sub(1).and_then(|at| value.get(at)), value.get(end)];
            let least = match (len, digits.map(is_digit)) {
                (3 | 4, [true, true]) => 0.0,
                (3, [true, _] | [_, true]) => -1.0,
                _ => f32::MIN,
            };
            words::surprise(&value[start..end]).max(least)
        }
    }
}

/// `000102030405…`: bytes that follow each other.
fn counts_up(hex: &[u8]) -> bool {
    let byte = |pair: &[u8]| {
        std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok())
    };
    let pairs: usize = hex.len() / 2;
    let rising = (1..pairs).filter(|at| {
        let (before, here) = (byte(&hex[at * 2 - 2..at * 2]), byte(&hex[at * 2..at * 2 + 2]));
        before.zip(here).is_some_and(|(before, here)| before.wrapping_add(1) == here)
    });
    rising.count() * 2 > pairs
}

fn is_in(value: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}

/// `/etc/x.key`, `~/x`, `./x`: base64 may begin with a slash too, but has no other signs.
fn is_path(value: &[u8]) -> bool {
    let from_here =
        value.starts_with(b"~/") || value.starts_with(b"./") || value.starts_with(b"../");
    let sign = |byte: &u8| matches!(byte, b'.' | b'-' | b'_');
    let is_file = value.contains(&b'/') && has_extension(value);
    from_here || is_file || (value[0] == b'/' && (value.iter().any(sign) || value.len() < 16))
}

/// `….txt`, `….gz`: two to four small letters behind the last dot.
pub(super) fn has_extension(value: &[u8]) -> bool {
    let letters = value.iter().rev().take_while(|byte| byte.is_ascii_lowercase()).count();
    (2..=4).contains(&letters) && value.iter().rev().nth(letters) == Some(&b'.')
}

/// Whether the value is a name in camel case: no two capitals in a row, and three letters to a word.
pub(super) fn is_camel_case(value: &[u8]) -> bool {
    let capitals = value.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    let apart = !value.windows(2).any(|pair| pair.iter().all(u8::is_ascii_uppercase));
    capitals > 1
        && apart
        && value.iter().all(u8::is_ascii_alphabetic)
        && capitals * 3 <= value.len()
}

/// `http.sslCAInfo`, `xml-pe.xml`: words with dots between them; random letters are none.
pub(super) fn is_dotted(value: &[u8]) -> bool {
    let in_word = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'-';
    let is_word = |word: &[u8]| !word.is_empty() && word.iter().all(in_word);
    value.contains(&b'.')
        && value.split(|byte| *byte == b'.').all(is_word)
        && weight(value).bits < NAME_BITS
}

/// `query_graph_rrd`: three words or more in small letters.
pub(super) fn is_snake_case(value: &[u8]) -> bool {
    let mut words = value.split(|byte| *byte == b'_');
    words.clone().count() >= 3
        && words.all(|word| !word.is_empty() && word.iter().all(u8::is_ascii_lowercase))
        && weight(value).bits < NAME_BITS
}

/// Digits with or without the suffix of a type, `1296188491u32`; hexadecimal ones of a register's
/// width.
fn is_number(value: &[u8]) -> bool {
    const SUFFIXES: [&str; 16] = [
        "", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "usize", "l", "u", "ul", "ull",
        "ll", "n",
    ];
    let hex = value.strip_prefix(b"0x").or_else(|| value.strip_prefix(b"0X"));
    if let Some(hex) = hex {
        return hex.len() <= 16 && hex.iter().all(u8::is_ascii_hexdigit);
    }
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && is_in(&value[digits..], &SUFFIXES)
}

/// `pwd1`.
fn is_numbered(value: &[u8]) -> bool {
    let digits = value.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    (1..=4).contains(&digits) && is_in(&value[..value.len() - digits], NUMBERED)
}

/// Bytes in a string, `\x1f\x8b…` or `\0`: what they say is judged where they are decoded.
fn is_escaped_bytes(value: &[u8]) -> bool {
    // What colours a terminal begins with the escape character.
    let colours = [b"\\x1b".as_slice(), b"\\033", b"\\u001b", b"\\e["];
    let is_colour = colours.iter().any(|start| {
        value.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
    });
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
    // As PostgreSQL and MySQL keep them.
    let of_database = || match value {
        [b'm', b'd', b'5', digits @ ..] => is_hex(digits) && digits.len() == 32,
        [b'*', digits @ ..] => is_hex(digits) && digits.len() == 40,
        _ => value.starts_with(b"SCRAM-SHA-"),
    };
    (value.iter().filter(|byte| **byte == b'$').count() >= 2 && begins(&algorithms))
        || of_database()
        || begins(&["sha256:", "sha512:", "sha1:", "SHA256:"])
        || in_pairs()
}

/// `xxxx`, `abab`, `0000001`.
fn is_monotonous(value: &[u8]) -> bool {
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

pub(super) fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| {
            if matches!(at, 8 | 13 | 18 | 23) { *byte == b'-' } else { byte.is_ascii_hexdigit() }
        })
}

/// As a UUID, but with groups of other lengths.
fn is_grouped_hex(value: &[u8]) -> bool {
    let mut groups = value.split(|byte| *byte == b'-');
    let is_group = |group: &[u8]| group.len() >= 4 && group.iter().all(u8::is_ascii_hexdigit);
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    (28..=72).contains(&value.len())
        && value.contains(&b'-')
        && groups.all(is_group)
        && digits * 4 >= value.len()
}

/// `PROVIDER_KEY_3BD1C4BF-…`: a name that was made unique.
pub(super) fn ends_in_uuid(value: &[u8]) -> bool {
    let start = value.len().saturating_sub(36);
    start > 0 && is_uuid(&value[start..])
}

/// `{262E99C9-…}`: an identifier of Windows, with or without more around it.
fn has_uuid_in_braces(value: &[u8]) -> bool {
    let uuid = memchr::memchr(b'{', value).and_then(|at| value.get(at + 1..at + 37));
    uuid.is_some_and(is_uuid)
}

fn is_hex(value: &[u8]) -> bool {
    value.len() >= 16
        && value.iter().all(u8::is_ascii_hexdigit)
        && value.iter().any(u8::is_ascii_digit)
        && !(value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(value: &str) -> f32 {
        weigh(value.as_bytes(), f32::MIN).map_or(f32::NEG_INFINITY, |weight| weight.bits)
    }

    #[test]
    fn random_values_weigh_more_than_what_people_write() {
        for value in [
            "kdxnyjwb",
            "Vq7xLm2p",
            "rltsk",
            "q8Zr2LmT0vXbN5wK",
            "soau!Hhbgsjrn",
            "wzmlIVdas",
            "GESRVTMCJBHPHYXZHSXXGIFDL6",
            "3b9d07c41fe86a52908d4f7be1c6a03d",
        ] {
            assert!(bits(value) > 3.0, "{value} {}", bits(value));
        }
        for value in [
            "MyController",
            "get_user_name",
            "com.acme.service",
            "XXH3_hashLong_64b_withSeed",
            "UTF-8",
            "caf%C3%A9",
            "foo(b%5Dc",
            "application/json",
            "the user is here",
            "Enter",
            "admin1",
            "v1.2.3",
            "hello_world",
            "ServiceAccountName",
            "2024-01-02",
        ] {
            assert!(bits(value) < 2.0, "{value} {}", bits(value));
        }
    }

    #[test]
    fn numbers_with_a_type_are_numbers() {
        for value in ["1296188491u32", "826688587", "0x0B96", "17UL"] {
            assert_eq!(weight(value.as_bytes()).shape, Shape::Number, "{value}");
        }
        for value in ["1296188491u33", "u32", "0x3b9d07c41fe86a52908d4f7be1c6a03d"] {
            assert_ne!(weight(value.as_bytes()).shape, Shape::Number, "{value}");
        }
    }

    #[test]
    fn hexadecimal_digits_in_groups_weigh_as_a_uuid_does() {
        for value in ["0f3c-19ab-4d22c1-8e07bb-5a61f93d", "9b2f6c1e-7d34-4a58-b0c9-3e1f5a7d8c26"] {
            assert_eq!(weight(value.as_bytes()).shape, Shape::Uuid, "{value}");
        }
        for value in ["0f3c-19ab-4d22", "face-book-dead-beef-cafe-babe-feed", "2024-0a-01-0b-0c"] {
            assert_ne!(weight(value.as_bytes()).shape, Shape::Uuid, "{value}");
        }
    }

    #[test]
    fn signs_in_a_generated_value_mean_nothing() {
        assert!(bits("$k3v(%s9q=2m&x!w0z@p7+d()5r^t8b#n*1c-_f4hjl6yg_uaei") > 20.0);
        for value in
            ["$(get_the_name_of(the_user, 1) + 20 * 3 - 4 - x_y)", "%(user)s-%(host)s_1_2_3"]
        {
            assert_eq!(weigh(value.as_bytes(), f32::MIN), None, "{value}");
        }
    }

    #[test]
    fn passwords_by_the_rules_have_all_kinds_of_characters() {
        assert!(is_by_the_rules(b"VMware1!") && is_by_the_rules(b"Winter2024#"));
        for value in ["vmware1!", "VMware11", "VMware!!", "Vm1!", "Fix (#12)!a", "$Name->getA1()"] {
            assert!(!is_by_the_rules(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn names_in_camel_case_are_told_from_random_letters() {
        assert!(is_camel_case(b"IsIfxTpmWeakKey") && is_camel_case(b"KeyValueMetadata"));
        assert!(!is_camel_case(b"GESRVTMCJBHPHYXZ") && !is_camel_case(b"kdxnyjwb"));
        assert!(!is_camel_case(b"wzmXIVdasQW"));
    }

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
            "",
        ] {
            assert_eq!(weigh(value.as_bytes(), f32::MIN), None, "{value}");
        }
    }
}
