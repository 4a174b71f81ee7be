//! Values some of whose characters are written as names or numbers: `&amp;` and `&#33;` of XML, `\u0026` of
//! JSON. They are judged as what they stand for.

/// Longer values are no passwords, and random enough as they are.
const MAX_LEN: usize = 128;

/// The characters that a value stands for.
pub(super) struct Unescaped {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl Unescaped {
    /// None if nothing in the value is written so, or something is that no password has: letters of other
    /// languages are those of a text.
    pub(super) fn of(value: &[u8]) -> Option<Self> {
        memchr::memchr2(b'&', b'\\', value)?;
        let mut unescaped = Self { bytes: [0; MAX_LEN], len: 0 };
        let mut at = 0;
        let mut any = false;
        while at < value.len() {
            let (byte, len) = match value[at] {
                b'&' => entity(&value[at..])?,
                b'\\' => escape(&value[at..])?,
                byte => (byte, 1),
            };
            *unescaped.bytes.get_mut(unescaped.len)? = byte;
            unescaped.len += 1;
            any |= len > 1;
            at += len;
        }
        any.then_some(unescaped)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The character that stands at the start of `rest`, which begins with `&`, and how long it is as written. None
/// if it is not visible.
fn entity(rest: &[u8]) -> Option<(u8, usize)> {
    const NAMED: [(&[u8], u8); 5] =
        [(b"&amp;", b'&'), (b"&lt;", b'<'), (b"&gt;", b'>'), (b"&quot;", b'"'), (b"&apos;", b'\'')];
    const MAX_DIGITS: usize = 4;
    if let Some((name, byte)) = NAMED.iter().find(|(name, _)| rest.starts_with(name)) {
        return Some((*byte, name.len()));
    }
    let (digits, radix, start) = match rest {
        [b'&', b'#', b'x' | b'X', digits @ ..] => (digits, 16, 3),
        [b'&', b'#', digits @ ..] => (digits, 10, 2),
        _ => return Some((b'&', 1)),
    };
    let len = digits.iter().take(MAX_DIGITS).take_while(|byte| byte.is_ascii_hexdigit()).count();
    if digits.get(len) != Some(&b';') {
        return Some((b'&', 1));
    }
    Some((visible(&digits[..len], radix)?, start + len + 1))
}

/// The same of a backslash.
fn escape(rest: &[u8]) -> Option<(u8, usize)> {
    match rest {
        [b'\\', b'u', a, b, c, d, ..] => Some((visible(&[*a, *b, *c, *d], 16)?, 6)),
        _ => Some((b'\\', 1)),
    }
}

/// The visible character of this number.
fn visible(digits: &[u8], radix: u32) -> Option<u8> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let number = u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()?;
    u8::try_from(number).ok().filter(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::FileKind;
    use crate::detect::tests::found;

    fn unescaped(value: &str) -> Option<String> {
        Unescaped::of(value.as_bytes())
            .map(|unescaped| String::from_utf8(unescaped.bytes().to_vec()).unwrap())
    }

    #[test]
    fn entities_and_escapes_are_the_characters_they_stand_for() {
        assert_eq!(unescaped("a&lt;b&amp;c&#33;d&#x3F;").as_deref(), Some("a<b&c!d?"));
        assert_eq!(unescaped("a\\u0026b\\u0021").as_deref(), Some("a&b!"));
        assert_eq!(unescaped("a&b&amp;c\\d").map(|value| value.len()), Some(7));
        for value in ["zwetschge", "a&b", "a\\nb", "&#12", "caf\\u00e9", "&#10;a", "\\u4e2d\\u6587"]
        {
            assert_eq!(unescaped(value), None, "{value}");
        }
        assert_eq!(unescaped(&"&amp;".repeat(129)), None);
    }

    #[test]
    fn a_password_is_judged_as_what_it_stands_for() {
        for text in [
            "<x user=\"app\" password=\"Oyster1969&#33;\"/>",
            "<password>Oyster1969&amp;x</password>",
            "{\"user\": \"app\", \"password\": \"oyster99\\u00268\"}",
            "{\"user\": \"app\", \"password\": \"Oyster\\u0032024\\u0021\"}",
        ] {
            assert!(found(FileKind::Config, text).is_some(), "{text}");
        }
        for text in [
            "<password>&lt;hidden&gt;</password>",
            "{\"password\": \"\\u003cyour password\\u003e\"}",
            "{\"password\": \"Contrase\\u00f1a\"}",
        ] {
            assert_eq!(found(FileKind::Config, text), None, "{text}");
        }
    }
}
