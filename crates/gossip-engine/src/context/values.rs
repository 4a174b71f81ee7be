//! Words of a line that could be values, whatever rules say of them (N2).
//!
//! Rules weigh whether a value is worth a report. Here nothing is weighed: what stands where a value
//! of a credential stands is masked, a short word or an example too.

use super::MASK;
use crate::detect::has_credential_word;

/// Words of this length that mix letters and digits could be values.
const VALUE_LEN_MIN: usize = 8;
/// Parts of names that speak of a credential, beside the words that detectors look for.
const NAMES: [&str; 8] = ["basic", "bearer", "cred", "creds", "login", "otp", "pin", "pw"];
/// Between a name and its value, in prose.
const FILLERS: [&str; 7] = ["are", "be", "equals", "is", "set", "to", "was"];
/// Behind a name in prose these begin no value.
const NO_VALUES: [&str; 12] =
    ["a", "an", "and", "at", "for", "from", "in", "of", "on", "or", "the", "with"];

/// Of a pair of a name and a value, each with a name of its own, the name of the value.
const VALUE_NAMES: [&str; 2] = ["val", "value"];
/// A longer run of capitals is a value rather than a word of a name.
const CAPITALS_LEN_MAX: usize = 12;
/// What else a name may hold beside words in capitals: a number, or a short word.
const SUFFIX_LEN_MAX: usize = 3;

/// What stands before and behind a secret, without such words.
pub(super) fn without(before: &str, after: &str) -> (String, String) {
    let mut text: Vec<char> = before.chars().collect();
    let secret = text.len();
    text.push(MASK);
    text.extend(after.chars());
    let line = Line { text: &text, secret };
    let mut hidden: Vec<bool> = text.iter().map(|&c| c == MASK).collect();
    let names = line.hide_named(&mut hidden);
    line.hide_mixed_words(&names, &mut hidden);
    line.hide_rest_of_secret(&mut hidden);
    line.hide_users(&mut hidden);
    let shown = |from: usize, to: usize| {
        let mut out = String::new();
        for at in from..to {
            if !hidden[at] {
                out.push(text[at]);
            } else if at == from || !hidden[at - 1] {
                out.push(MASK);
            }
        }
        out
    };
    (shown(0, secret), shown(secret + 1, text.len()))
}

/// Ends a word: what is between two of these may be a value.
pub(super) fn is_delimiter(c: char) -> bool {
    let is_sign = matches!(
        c,
        '=' | ':' | ',' | ';' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '&' | '|'
    );
    is_sign || is_quote(c) || c.is_whitespace() || c.is_control()
}

fn is_quote(c: char) -> bool {
    matches!(c, '\'' | '"' | '`')
}

/// Stands between a name and what it belongs to, and says nothing of either.
fn is_around(c: char) -> bool {
    c.is_whitespace() || is_quote(c) || c == '\\'
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// A line, in which one character stands for the secret.
struct Line<'l> {
    text: &'l [char],
    secret: usize,
}

impl Line<'_> {
    /// How many characters from `at` on fulfil this.
    fn run(&self, at: usize, is_in: impl Fn(char) -> bool) -> usize {
        self.text[at.min(self.text.len())..].iter().take_while(|&&c| is_in(c)).count()
    }

    fn is(&self, at: usize, what: impl Fn(char) -> bool) -> bool {
        self.text.get(at).is_some_and(|&c| what(c))
    }

    fn word(&self, from: usize, to: usize) -> String {
        self.text[from..to].iter().collect::<String>().to_ascii_lowercase()
    }

    /// All but the names of pairs that begin at `names`.
    fn hide_mixed_words(&self, names: &[usize], hidden: &mut [bool]) {
        let mut at = 0;
        for word in self.text.split(|&c| is_delimiter(c)) {
            let has = |what: fn(char) -> bool| word.iter().any(|&c| what(c));
            let is_long = word.iter().map(|c| c.len_utf8()).sum::<usize>() >= VALUE_LEN_MIN;
            let is_mixed = has(|c| c.is_ascii_digit()) && has(char::is_alphabetic);
            if is_long && is_mixed && !names.contains(&at) {
                hidden[at..at + word.len()].fill(true);
            }
            at += word.len() + 1;
        }
    }

    /// A rule may know a part of a value only.
    fn hide_rest_of_secret(&self, hidden: &mut [bool]) {
        let is_glued = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | MASK);
        let end = self.secret + 1;
        hidden[end..end + self.run(end, is_glued)].fill(true);
        let before = self.text[..self.secret].iter().rev().take_while(|&&c| is_glued(c)).count();
        if before >= VALUE_LEN_MIN {
            hidden[self.secret - before..self.secret].fill(true);
        }
    }

    /// `scheme://user:password@host`, and `scheme://token@host`.
    fn hide_users(&self, hidden: &mut [bool]) {
        for at in 0..self.text.len().saturating_sub(2) {
            if self.text[at..at + 3] != [':', '/', '/'] {
                continue;
            }
            let from = at + 3;
            let len =
                self.run(from, |c| !c.is_whitespace() && !is_quote(c) && !matches!(c, '<' | '>'));
            let address = &self.text[from..from + len];
            let Some(end) = address.iter().rposition(|&c| c == '@') else { continue };
            let colon = address[..end].iter().position(|&c| c == ':');
            hidden[from + colon.map_or(0, |colon| colon + 1)..from + end].fill(true);
        }
    }

    /// Values beside names that speak of credentials, but for the names of pairs. Returns where those
    /// begin.
    fn hide_named(&self, hidden: &mut [bool]) -> Vec<usize> {
        let mut names = Vec::new();
        let mut name = String::new();
        let mut at = 0;
        while at < self.text.len() {
            let len = self.run(at, in_name);
            name.clear();
            name.extend(self.text[at..at + len].iter().map(char::to_ascii_lowercase));
            at += len;
            let is_listed = || name.split(|c: char| !c.is_ascii_alphanumeric()).any(is_known);
            if len > 0 && (has_credential_word(name.as_bytes()) || is_listed()) {
                let (from, to) = self.value_behind(at, &name);
                if name == "key" && self.is_name_of_pair(at - len, from, to) {
                    names.push(from);
                } else {
                    hidden[from..to].fill(true);
                }
            }
            at += usize::from(len == 0);
        }
        names
    }

    /// `"key": "GH_BOT", "value": …`: whether the value at `from..to` of the `key` at `key` is a name,
    /// which tells one secret from the next. What could be a value all the same is none: it stays masked.
    fn is_name_of_pair(&self, key: usize, from: usize, to: usize) -> bool {
        let is_assigned = self.text[key..from].iter().any(|c| matches!(c, '=' | ':'));
        let escapes = self.text[from..to].iter().rev().take_while(|c| **c == '\\').count();
        let next = to + self.run(to, |c| is_around(c) || matches!(c, ',' | ';'));
        let end = next + self.run(next, in_name);
        let operator = end + self.run(end, is_around);
        is_assigned
            && is_name_in_capitals(&self.text[from..to - escapes])
            && VALUE_NAMES.contains(&self.word(next, end).as_str())
            && self.is(operator, |c| matches!(c, '=' | ':'))
            && self.begins_entry(key)
    }

    /// Whether the name at `at` is the first of an object, an element or a line. Behind another word it
    /// may be a part of what that word names: `private key = …`.
    fn begins_entry(&self, at: usize) -> bool {
        let end = at - self.text[..at].iter().rev().take_while(|&&c| is_around(c)).count();
        let word = self.text[..end].iter().rev().take_while(|&&c| in_name(c)).count();
        match self.text[..end - word] {
            [] => word == 0,
            [.., last] if word == 0 => matches!(last, '{' | '[' | '(' | ',' | ';'),
            [.., '<'] => true,
            _ => false,
        }
    }

    /// Where the value of the name that ends at `end` begins and ends.
    fn value_behind(&self, end: usize, name: &str) -> (usize, usize) {
        let is_blank = |c: char| matches!(c, ' ' | '\t');
        let closed = end + self.run(end, |c| is_quote(c) || matches!(c, '\\' | ']' | ')' | '}'));
        let mut at = closed + self.run(closed, is_blank);
        let operators =
            self.run(at, |c| matches!(c, '=' | ':' | '>' | '(' | ',' | '|' | '~' | '?' | '!'));
        let is_element = self.is(at, |c| c == '>');
        at += operators;
        at += self.run(at, |c| is_blank(c) || matches!(c, '[' | '{' | '(' | '\\'));
        if operators == 0 && self.is(at, |c| c == '-') {
            return self.arguments_behind(at);
        }
        if operators == 0 {
            at = self.behind_fillers(at);
            let next = self.word(at, at + self.run(at, char::is_alphabetic));
            if at == end || NO_VALUES.contains(&next.as_str()) {
                return (at, at);
            }
        }
        if is_element {
            return (at, at + self.run(at, |c| c != '<'));
        }
        let may_have_blanks = operators > 0 && may_be_phrase(name);
        let quote = usize::from(self.is(at, is_quote));
        let is_list =
            quote > 0 && self.text[closed..at].iter().any(|c| matches!(*c, '[' | '{' | '('));
        let end = self.end_of_value(at, may_have_blanks);
        (at + quote, if is_list { self.end_of_list(end) } else { end })
    }

    /// `sshpass -p swordfish ssh host`: which of the arguments is the value, only the program knows.
    /// From the option at `at` on, all but options are masked, up to the end of the command.
    fn arguments_behind(&self, mut at: usize) -> (usize, usize) {
        while self.is(at, |c| c == '-') {
            let dashes = self.run(at, |c| c == '-');
            let len = self.run(at, |c| !c.is_whitespace());
            let name = self.run(at, in_name);
            if dashes == 1 && len > 2 {
                // A letter and its value.
                at += 2;
                break;
            }
            if name < len {
                // A name, an operator and the value.
                at += name;
                at += self.run(at, |c| matches!(c, '=' | ':'));
                break;
            }
            at += len + self.run(at + len, char::is_whitespace);
        }
        let end = self.end_of_command(at);
        let blanks = self.text[at..end].iter().rev().take_while(|c| c.is_whitespace()).count();
        (at, end - blanks)
    }

    /// Where the command ends of which arguments begin at `from`: at an operator of the shell, or before
    /// the next name with a value. Quotes and backslashes make arguments of operators, and what follows
    /// an option may be its value. The secret is an argument like others.
    fn end_of_command(&self, from: usize) -> usize {
        let outer = self.end_of_quotes_around(from);
        let mut word = from;
        let mut at = from;
        while at < self.text.len() {
            let c = self.text[at];
            let is_escaped = at > from && self.text[at - 1] == '\\';
            let is_pair = c.is_whitespace() && self.text[word] != '-' && self.begins_pair(at + 1);
            if !is_escaped && (matches!(c, ';' | '&' | '|') || is_pair) {
                return at;
            }
            if c.is_whitespace() && self.is(at + 1, |c| !c.is_whitespace()) {
                word = at + 1;
            }
            if is_quote(c) && outer != Some(at) {
                at = self.closing_quote(at);
            }
            at += 1;
        }
        self.text.len()
    }

    /// Where the quotes end within which the whole command stands that has an argument at `at`.
    fn end_of_quotes_around(&self, at: usize) -> Option<usize> {
        let mut from = 0;
        while from < at {
            let is_in_word = from > 0 && self.text[from - 1].is_alphanumeric();
            if is_quote(self.text[from]) && !is_in_word {
                let end = self.closing_quote(from);
                if end >= at {
                    // Behind a blank it would open others.
                    let is_closing = !is_delimiter(self.text[end - 1])
                        && self.text.get(end + 1).is_none_or(|&next| is_delimiter(next));
                    return is_closing.then_some(end);
                }
                from = end;
            }
            from += 1;
        }
        None
    }

    /// Where the last of the quoted values ends that are listed with the one whose closing quote is at
    /// `end`, before the secret.
    fn end_of_list(&self, mut end: usize) -> usize {
        loop {
            let next = end + 1 + self.run(end + 1, |c| c.is_whitespace() || c == ',');
            if next == end + 1 || !self.is(next, is_quote) {
                return end;
            }
            let closing = self.closing_quote(next);
            if (next..closing).contains(&self.secret) {
                return end;
            }
            end = closing;
        }
    }

    fn behind_fillers(&self, mut at: usize) -> usize {
        loop {
            let len = self.run(at, char::is_alphabetic);
            let blanks = self.run(at + len, |c| c.is_whitespace() || matches!(c, '=' | ':'));
            if blanks == 0 || !FILLERS.contains(&self.word(at, at + len).as_str()) {
                return at;
            }
            at += len + blanks;
        }
    }

    /// Where the value that begins at `at` ends: at its closing quote, and without quotes at a blank
    /// or before the next name with a value. Passwords without quotes may have blanks.
    fn end_of_value(&self, from: usize, may_have_blanks: bool) -> usize {
        let mut at = from;
        loop {
            let is_opened = at == from || "([{,".contains(self.text[at - 1]);
            if is_opened && self.is(at, is_quote) {
                let end = self.closing_quote(at);
                // What is put together from parts goes on.
                let next = end + 1;
                at = next
                    + self.run(next, |c| c.is_whitespace() || matches!(c, '+' | '.' | '&' | '\\'));
                if at == next || !self.is(at, is_quote) {
                    return end;
                }
                continue;
            }
            let Some(&c) = self.text.get(at) else { return self.text.len() };
            let is_blank = c.is_whitespace();
            let ends = is_blank && !may_have_blanks
                || matches!(c, '<' | '>')
                || is_quote(c) && self.text.get(at + 1).is_none_or(|&next| is_delimiter(next))
                || at > from && at == self.secret && may_have_blanks
                || at > self.secret && from <= self.secret && is_blank
                || (is_blank || matches!(c, '&' | ';' | ',')) && self.begins_pair(at + 1);
            if ends {
                return at;
            }
            at += 1;
        }
    }

    /// The closing quote of what the quote at `at` opens, or the end of the line.
    fn closing_quote(&self, at: usize) -> usize {
        let quote = self.text[at];
        let is_escaped = |at: usize| at > 0 && self.text[at - 1] == '\\';
        let is_inner = is_escaped(at);
        let rest = at + 1..self.text.len();
        let mut ends = rest.filter(|&end| self.text[end] == quote && is_escaped(end) == is_inner);
        ends.next().unwrap_or(self.text.len())
    }

    /// Whether a name and its value, or a comment, follow.
    fn begins_pair(&self, at: usize) -> bool {
        let at = at + self.run(at, char::is_whitespace);
        let len = self.run(at, |c| in_name(c) || is_quote(c));
        let end = at + len + self.run(at + len, |c| matches!(c, ' ' | '\t'));
        self.is(at, |c| c == '#')
            || self.is(at, |c| c == '/') && self.is(at + 1, |c| c == '/')
            || len > 0 && self.is(end, |c| matches!(c, '=' | ':'))
    }
}

fn is_known(part: &str) -> bool {
    NAMES.contains(&part)
}

/// `GH_BOT_12`: words in capitals, and at most one number or short word of another kind.
fn is_name_in_capitals(name: &[char]) -> bool {
    let is_word = |part: &[char]| {
        (1..=CAPITALS_LEN_MAX).contains(&part.len()) && part.iter().all(char::is_ascii_uppercase)
    };
    let is_suffix = |part: &[char]| {
        (1..=SUFFIX_LEN_MAX).contains(&part.len()) && part.iter().all(char::is_ascii_alphanumeric)
    };
    let parts: Vec<&[char]> = name.split(|&c| c == '_').collect();
    let mut others = parts.iter().filter(|part| !is_word(part));
    parts.len() > 1
        && name.first().is_some_and(char::is_ascii_uppercase)
        && parts.iter().any(|part| part.len() > 1 && is_word(part))
        && others.next().is_none_or(|part| is_suffix(part))
        && others.next().is_none()
}

/// Whether a value of this name may be several words without quotes.
fn may_be_phrase(name: &str) -> bool {
    ["pass", "pw", "secret", "cred"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests;
