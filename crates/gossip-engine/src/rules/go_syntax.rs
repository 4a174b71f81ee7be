//! Go's regular expressions, in which rule files are written, as the expressions of Rust.
//!
//! Both descend from RE2, so most of an expression stands as it is. What differs is translated:
//!
//! | Go | here |
//! |---|---|
//! | a `{` that begins no repetition is itself: `\${X}`, `{{` | escaped |
//! | `[` in a class is itself, and `&&`, `--`, `~~` are two characters | escaped |
//! | `\Q…\E` quotes | each character escaped |
//! | `\101` is octal | hexadecimal |
//! | `\<` and `\>` are `<` and `>` | without the backslash |
//! | `\s` is tab, line feed, form feed, return and blank | these five |
//! | `\xNN` and classes may name characters beyond ASCII | in Unicode, that part alone |
//! | `\pL`, `\p{L}`, `\p{N}` and the like | their ASCII part, and of letters every byte beyond it |
//!
//! Of Rust's own syntax `\b{start}`, `\b{end}` and their halves are kept. Expressions match bytes:
//! `.` is one byte of a character that has several, and letters beyond ASCII have one case.

use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

/// An expression of Go in Rust's syntax. What neither knows is left as it is, for the parser to
/// refuse.
pub(super) fn translate(source: &str) -> String {
    let mut translator = Translator { rest: source.chars().peekable(), out: String::new() };
    while let Some(c) = translator.rest.next() {
        match c {
            '\\' => translator.escape(),
            '[' => translator.class(),
            '{' => translator.brace(),
            _ => translator.out.push(c),
        }
    }
    translator.out
}

struct Translator<'s> {
    rest: Peekable<Chars<'s>>,
    out: String,
}

/// One member of a class, or an end of a range of it.
enum Member {
    One(char),
    /// Something that is no end of a range, as Rust writes it.
    Set(String),
}

const SPACE: &str = r"\t\n\f\r ";

impl Translator<'_> {
    /// What Go takes for text up to here stands for itself.
    fn literal(&mut self, c: char) {
        if c.is_ascii_punctuation() && c != '<' && c != '>' {
            self.out.push('\\');
        }
        self.out.push(c);
    }

    fn brace(&mut self) {
        let mut ahead = self.rest.clone();
        let mut digits = || std::iter::from_fn(|| ahead.next_if(char::is_ascii_digit)).count();
        let repeats = digits() > 0 && {
            if ahead.next_if_eq(&',').is_some() {
                while ahead.next_if(char::is_ascii_digit).is_some() {}
            }
            ahead.next() == Some('}')
        };
        self.out.push_str(if repeats { "{" } else { r"\{" });
    }

    /// What follows a backslash outside of a class.
    fn escape(&mut self) {
        match self.rest.next() {
            None => self.out.push('\\'),
            Some('Q') => self.quoted(),
            Some('s') => write!(self.out, "[{SPACE}]").expect("a string takes it"),
            Some('S') => write!(self.out, "[^{SPACE}]").expect("a string takes it"),
            Some(c @ ('<' | '>')) => self.out.push(c),
            Some(c @ ('p' | 'P')) => match self.property(c == 'P') {
                Ok(set) => write!(self.out, "[{set}]").expect("a string takes it"),
                Err(source) => self.out.push_str(&source),
            },
            Some('x') => match self.hexadecimal() {
                Ok(c) if c.is_ascii() => {
                    write!(self.out, r"\x{:02X}", u32::from(c)).expect("it takes it")
                }
                Ok(c) => self.out.push(c),
                Err(source) => self.out.push_str(&source),
            },
            Some(c @ '0'..='7') if self.is_octal(c) => {
                let c = self.octal(c);
                write!(self.out, r"\x{{{:X}}}", u32::from(c)).expect("a string takes it");
            }
            Some('b') => {
                self.out.push_str(r"\b");
                self.boundary();
            }
            Some(c) => {
                self.out.push('\\');
                self.out.push(c);
            }
        }
    }

    /// Rust's `\b{start-half}` and its kin.
    fn boundary(&mut self) {
        let ahead: String = self.rest.clone().take("{start-half}".len()).collect();
        let kinds = ["{start}", "{end}", "{start-half}", "{end-half}"];
        if let Some(kind) = kinds.into_iter().find(|kind| ahead.starts_with(kind)) {
            self.out.push_str(kind);
            self.rest.nth(kind.len() - 1);
        }
    }

    fn quoted(&mut self) {
        while let Some(c) = self.rest.next() {
            if c == '\\' && self.rest.next_if_eq(&'E').is_some() {
                return;
            }
            self.literal(c);
        }
    }

    /// `NN` or `{N…}` after `\x`; what it was if it is none.
    fn hexadecimal(&mut self) -> Result<char, String> {
        let mut ahead = self.rest.clone();
        let digits: String = if ahead.next_if_eq(&'{').is_some() {
            let digits = std::iter::from_fn(|| ahead.next_if(char::is_ascii_hexdigit)).collect();
            match ahead.next() {
                Some('}') => digits,
                _ => return Err(r"\x".to_owned()),
            }
        } else {
            std::iter::from_fn(|| ahead.next_if(char::is_ascii_hexdigit)).take(2).collect()
        };
        let number = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
        let c = number.ok_or_else(|| r"\x".to_owned())?;
        self.rest = ahead;
        Ok(c)
    }

    /// A single digit that is not 0 would be a back-reference.
    fn is_octal(&mut self, first: char) -> bool {
        first == '0' || self.rest.peek().is_some_and(|next| ('0'..='7').contains(next))
    }

    fn octal(&mut self, first: char) -> char {
        let mut number = first.to_digit(8).expect("an octal digit");
        for _ in 0..2 {
            let Some(digit) = self.rest.next_if(|c| c.is_digit(8)) else { break };
            number = number * 8 + digit.to_digit(8).expect("an octal digit");
        }
        char::from_u32(number).expect("three octal digits are a character")
    }

    /// The members of `\pL` or `\p{L}`, in ASCII; what it was if that is not known.
    fn property(&mut self, is_negated: bool) -> Result<String, String> {
        let mut ahead = self.rest.clone();
        let name: String = if ahead.next_if_eq(&'{').is_some() {
            ahead.by_ref().take_while(|c| *c != '}').collect()
        } else {
            ahead.next().into_iter().collect()
        };
        let (is_negated, name) = match name.strip_prefix('^') {
            Some(rest) => (!is_negated, rest),
            None => (is_negated, name.as_str()),
        };
        let members = match name {
            "L" | "Letter" => r"A-Za-z\x80-\xFF",
            "Lu" => "A-Z",
            "Ll" => "a-z",
            "N" | "Nd" => "0-9",
            "Zs" => " ",
            _ => return Err(if is_negated { r"\P".to_owned() } else { r"\p".to_owned() }),
        };
        self.rest = ahead;
        Ok(if is_negated { format!("^{members}") } else { members.to_owned() })
    }

    /// A class, from behind its `[` to its `]`.
    fn class(&mut self) {
        let mut body = String::new();
        if self.rest.next_if_eq(&'^').is_some() {
            body.push('^');
        }
        let mut is_first = true;
        let mut is_ascii = true;
        loop {
            let Some(&next) = self.rest.peek() else {
                // It does not end: the parser says so.
                self.out.push('[');
                self.out.push_str(&body);
                return;
            };
            if next == ']' && !is_first {
                self.rest.next();
                break;
            }
            is_first = false;
            let low = match self.member() {
                Member::Set(set) => {
                    body.push_str(&set);
                    continue;
                }
                Member::One(low) => low,
            };
            is_ascii &= low.is_ascii();
            push_member(&mut body, low);
            let mut ahead = self.rest.clone();
            if ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']') {
                self.rest.next();
                match self.member() {
                    Member::One(high) => {
                        is_ascii &= high.is_ascii();
                        body.push('-');
                        push_member(&mut body, high);
                    }
                    Member::Set(set) => {
                        body.push_str(r"\-");
                        body.push_str(&set);
                    }
                }
            }
        }
        // Bytes beyond ASCII are no characters; with Unicode on they are.
        let class = if is_ascii { format!("[{body}]") } else { format!("(?u:[{body}])") };
        self.out.push_str(&class);
    }

    fn member(&mut self) -> Member {
        match self.rest.next().expect("somebody looked") {
            '[' => match self.posix() {
                Some(set) => Member::Set(set),
                None => Member::One('['),
            },
            '\\' => self.escaped_member(),
            c => Member::One(c),
        }
    }

    /// `[:alpha:]`, whose `[` is taken.
    fn posix(&mut self) -> Option<String> {
        let mut ahead = self.rest.clone();
        (ahead.next() == Some(':')).then_some(())?;
        let name: String =
            std::iter::from_fn(|| ahead.next_if(|c| c.is_ascii_lowercase() || *c == '^')).collect();
        (!name.is_empty() && ahead.next() == Some(':') && ahead.next() == Some(']'))
            .then_some(())?;
        self.rest = ahead;
        Some(format!("[:{name}:]"))
    }

    fn escaped_member(&mut self) -> Member {
        let Some(c) = self.rest.next() else { return Member::Set(r"\".to_owned()) };
        match c {
            'd' => Member::Set("0-9".to_owned()),
            'w' => Member::Set("0-9A-Za-z_".to_owned()),
            's' => Member::Set(SPACE.to_owned()),
            'D' => Member::Set("[^0-9]".to_owned()),
            'W' => Member::Set("[^0-9A-Za-z_]".to_owned()),
            'S' => Member::Set(format!("[^{SPACE}]")),
            'a' => Member::One('\x07'),
            'f' => Member::One('\x0c'),
            't' => Member::One('\t'),
            'n' => Member::One('\n'),
            'r' => Member::One('\r'),
            'v' => Member::One('\x0b'),
            'p' | 'P' => match self.property(c == 'P') {
                Ok(set) => Member::Set(format!("[{set}]")),
                Err(source) => Member::Set(source),
            },
            'x' => self.hexadecimal().map_or_else(Member::Set, Member::One),
            '0'..='7' if self.is_octal(c) => Member::One(self.octal(c)),
            c if c.is_ascii_alphanumeric() => Member::Set(format!("\\{c}")),
            c => Member::One(c),
        }
    }
}

fn push_member(body: &mut String, c: char) {
    if c.is_ascii_control() {
        write!(body, r"\x{:02X}", u32::from(c)).expect("a string takes it");
    } else {
        // A blank and `#` mean something under `(?x)`, which Go does not have, but which is taken.
        if matches!(c, '[' | ']' | '\\' | '^' | '-' | '&' | '~' | ' ' | '#') {
            body.push('\\');
        }
        body.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    /// One difference a row: an expression of Go, what it matches there, and what it does not.
    const DIFFERENCES: &[(&str, &[&str], &[&str])] = &[
        (r"\${X}", &["${X}"], &["$X", "$"]),
        (r"{{ name }}", &["{{ name }}"], &["{ name }"]),
        (r"^x{,3}$", &["x{,3}"], &["xx", ""]),
        (r"^x{2}y{1,}z{0,2}$", &["xxyz", "xxyyzz"], &["xy", "x{2}yz"]),
        (r"^a{b}$", &["a{b}"], &["ab"]),
        (r"^a{1,b}$", &["a{1,b}"], &["a"]),
        (r"^[[a]$", &["[", "a"], &["b", "[a"]),
        (r"^[a&&b]$", &["a", "&", "b"], &["&&", "c"]),
        (r"^[+--]$", &["+", ",", "-"], &[".", "*"]),
        (r"^[a~~b]$", &["a", "~", "b"], &["c"]),
        (r"^[]a]$", &["]", "a"], &["b"]),
        (r"^[^]a]$", &["b"], &["]", "a"]),
        (r"^[\w-]$", &["-", "w", "_"], &["+"]),
        (r"^[a-]$", &["-", "a"], &["b"]),
        (r"^[\d-z]$", &["5", "-", "z"], &["y"]),
        (r"^[[:alpha:]-]$", &["q", "-"], &["5", ":"]),
        (r"^[^[:space:]]$", &["q"], &[" "]),
        (r"^\Qa.b*\E+$", &["a.b*", "a.b**"], &["axb*", "a.b"]),
        (r"^\Q{[\$", &[r"{[\$"], &["{["]),
        (r"^\101\x42[\103]\012$", &["ABC\n"], &["101"]),
        (r"^\<\>$", &["<>"], &[""]),
        (r"^\s$", &[" ", "\t", "\n", "\r", "\x0c"], &["\x0b", "x"]),
        (r"^[\S]$", &["x", "\x0b"], &[" "]),
        (r"^\xe9$", &["é"], &["e"]),
        (r"^[à-ü]\x{1F511}$", &["é🔑"], &["e🔑"]),
        (r"^\p{L}+$", &["abc", "Öl"], &["5"]),
        (r"^\pN[\p{Lu}]\PL$", &["5A-"], &["aA-", "5a-"]),
        (r"^(?P<name>a)(?<other>b)$", &["ab"], &["a"]),
        (r"^\-\_\/\ \%$", &["-_/ %"], &["-"]),
        (r"^(?i)key(?-i)X$", &["KEYX"], &["KEYx"]),
    ];

    #[test]
    fn a_class_keeps_its_blanks_and_signs_where_blanks_are_left_out() {
        let (pattern, _) = Pattern::parse(&translate(r"(?x) ^ [\ \#] $")).unwrap();
        for (text, wanted) in [(" ", true), ("#", true), ("", false), ("\\", false)] {
            assert_eq!(pattern.is_match(text.as_bytes()), wanted, "{text:?}");
        }
    }

    #[test]
    fn every_difference_means_here_what_it_means_in_go() {
        for (source, matched, not) in DIFFERENCES {
            let translated = translate(source);
            let (pattern, _) = Pattern::parse(&translated)
                .unwrap_or_else(|fault| panic!("{source} as {translated}: {fault:?}"));
            for text in *matched {
                assert!(pattern.is_match(text.as_bytes()), "{source} as {translated}: {text:?}");
            }
            for text in *not {
                assert!(!pattern.is_match(text.as_bytes()), "{source} as {translated}: {text:?}");
            }
        }
    }

    /// All but `\p{Greek}`, whose tables are not here, Go refuses too.
    #[test]
    fn what_is_not_known_is_left_for_the_parser_to_refuse() {
        for source in
            ["x(", "[a", r"\", "x**?+(", r"\1", r"(?=x)", r"\p{Greek}", r"\xZZ", "*", r"\C", r"x\Z"]
        {
            let translated = translate(source);
            assert!(Pattern::parse(&translated).is_err(), "{source} as {translated}");
        }
    }

    #[test]
    fn what_means_the_same_stands_as_it_is() {
        for source in [
            r#"(?i)[\w.-]{0,50}?(?:acme)"#,
            r"\bghp_[A-Za-z0-9]{36}\b",
            "^(?:a|b)+?$",
            r"\d\D\w\W\B\A\z\.\n",
            r"\b{start}x\b{end-half}",
            "ключ",
        ] {
            let expected = source.replace(r"[\w.-]", r"[0-9A-Za-z_.\-]");
            assert_eq!(translate(source), expected);
        }
    }
}
