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

/// What stands before and behind a secret, without such words.
pub(super) fn without(before: &str, after: &str) -> (String, String) {
    let mut text: Vec<char> = before.chars().collect();
    let secret = text.len();
    text.push(MASK);
    text.extend(after.chars());
    let line = Line { text: &text, secret };
    let mut hidden: Vec<bool> = text.iter().map(|&c| c == MASK).collect();
    line.hide_mixed_words(&mut hidden);
    line.hide_rest_of_secret(&mut hidden);
    line.hide_users(&mut hidden);
    line.hide_named(&mut hidden);
    line.show_names_of_pairs(&mut hidden);
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
    c.is_whitespace() || c.is_control() || is_quote(c) || "=:,;()[]{}<>&|".contains(c)
}

fn is_quote(c: char) -> bool {
    matches!(c, '\'' | '"' | '`')
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

    fn hide_mixed_words(&self, hidden: &mut [bool]) {
        let mut at = 0;
        for word in self.text.split(|&c| is_delimiter(c)) {
            let has = |what: fn(char) -> bool| word.iter().any(|&c| what(c));
            let is_long = word.iter().map(|c| c.len_utf8()).sum::<usize>() >= VALUE_LEN_MIN;
            if is_long && has(|c| c.is_ascii_digit()) && has(char::is_alphabetic) {
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
            let len = self.run(from, |c| !c.is_whitespace() && !is_quote(c) && !"<>".contains(c));
            let address = &self.text[from..from + len];
            let Some(end) = address.iter().rposition(|&c| c == '@') else { continue };
            let colon = address[..end].iter().position(|&c| c == ':');
            hidden[from + colon.map_or(0, |colon| colon + 1)..from + end].fill(true);
        }
    }

    /// Values beside names that speak of credentials.
    fn hide_named(&self, hidden: &mut [bool]) {
        let mut at = 0;
        while at < self.text.len() {
            let len = self.run(at, in_name);
            let name = self.word(at, at + len);
            at += len;
            let is_listed = || name.split(|c: char| !c.is_ascii_alphanumeric()).any(is_known);
            if len > 0 && (has_credential_word(name.as_bytes()) || is_listed()) {
                let (from, to) = self.value_behind(at, &name);
                hidden[from..to].fill(true);
            }
            at += usize::from(len == 0);
        }
    }

    /// `"key": "GH_BOT", "value": …`: a name, which tells one secret from the next. What could be a value
    /// all the same stays masked.
    fn show_names_of_pairs(&self, hidden: &mut [bool]) {
        let mut at = 0;
        while at < self.text.len() {
            let len = self.run(at, in_name);
            let is_key = self.word(at, at + len) == "key";
            at += len.max(1);
            if !is_key {
                continue;
            }
            let is_between = |c: char| c.is_whitespace() || is_quote(c) || "=:\\".contains(c);
            let from = at + self.run(at, is_between);
            let to = from + self.run(from, in_name);
            let next = to + self.run(to, |c| is_between(c) || ",;".contains(c));
            let sibling = self.word(next, next + self.run(next, in_name));
            let name = &self.text[from..to];
            let is_name = name.contains(&'_') || name.iter().all(|c| c.is_ascii_alphabetic());
            if is_name && VALUE_NAMES.contains(&sibling.as_str()) {
                hidden[from..to].fill(false);
            }
        }
    }

    /// Where the value of the name that ends at `end` begins and ends.
    fn value_behind(&self, end: usize, name: &str) -> (usize, usize) {
        let is_blank = |c: char| matches!(c, ' ' | '\t');
        let closed = end + self.run(end, |c| is_quote(c) || "\\])}".contains(c));
        let mut at = closed + self.run(closed, is_blank);
        let operators = self.run(at, |c| "=:>(,|~?!".contains(c));
        let is_element = self.is(at, |c| c == '>');
        at += operators;
        at += self.run(at, |c| is_blank(c) || "[{(\\".contains(c));
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
        let is_list = quote > 0 && self.text[closed..at].iter().any(|c| "[{(".contains(*c));
        let end = self.end_of_value(at, may_have_blanks);
        (at + quote, if is_list { self.end_of_list(end) } else { end })
    }

    /// `sshpass -p swordfish ssh host`: which of the arguments is the value, only the program knows.
    /// From the option at `at` on, all but options are masked, up to the end of the command.
    fn arguments_behind(&self, mut at: usize) -> (usize, usize) {
        while self.is(at, |c| c == '-') {
            let dashes = self.run(at, |c| c == '-');
            let len = self.run(at, |c| !c.is_whitespace());
            if dashes == 1 && len > 2 {
                // A letter and its value.
                at += 2;
                break;
            }
            at += len + self.run(at + len, char::is_whitespace);
        }
        let ends = |end: usize| {
            end == self.secret
                || ";&|".contains(self.text[end])
                || self.text[end].is_whitespace() && self.begins_pair(end + 1)
        };
        let end = (at..self.text.len()).find(|&end| ends(end)).unwrap_or(self.text.len());
        let blanks = self.text[at..end].iter().rev().take_while(|c| c.is_whitespace()).count();
        (at, end - blanks)
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
            let blanks = self.run(at + len, |c| c.is_whitespace() || "=:".contains(c));
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
                at = next + self.run(next, |c| c.is_whitespace() || "+.&\\".contains(c));
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
                || (is_blank || "&;,".contains(c)) && self.begins_pair(at + 1);
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

/// Whether a value of this name may be several words without quotes.
fn may_be_phrase(name: &str) -> bool {
    ["pass", "pw", "secret", "cred"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line with its values masked; `@@` is the secret.
    fn masked(line: &str) -> String {
        let (before, after) = line.split_once("@@").unwrap();
        let (before, after) = without(before, after);
        format!("{before}@@{after}")
    }

    #[test]
    fn values_of_credentials_are_masked_however_they_are_written() {
        for (line, expected) in [
            ("password=swordfish t=@@", "password=… t=@@"),
            ("t=@@ password=correct-horse-battery", "t=@@ password=…"),
            ("pw: abc, t=@@", "pw: …, t=@@"),
            ("secret=don't-tell t=@@", "secret=… t=@@"),
            ("'X-Auth: abc' t=@@", "'X-Auth: …' t=@@"),
            ("PIN=1234 t=@@", "PIN=… t=@@"),
            (
                "{\"password\": \"sword fish\", \"t\": \"@@\"}",
                "{\"password\": \"…\", \"t\": \"@@\"}",
            ),
            ("\\\"password\\\": \\\"a b\\\", t=@@", "\\\"password\\\": \\\"…\", t=@@"),
            ("password = \"a\\\"bc d\" t=@@", "password = \"…\" t=@@"),
            ("pass = \"ab\" + \"cd\" t=@@", "pass = \"…\" t=@@"),
            ("secret := []byte(\"sword fish\"), @@", "secret := […\"), @@"),
            ("<password>sword fish</password> @@", "<password>…</password> @@"),
            ("mysql --password swordfish @@", "mysql --password … @@"),
            ("the password is swordfish, @@", "the password is … @@"),
            ("passphrase: correct horse battery T=@@", "passphrase: … T=@@"),
            ("?password=abc&t=@@&x=1", "?password=…&t=@@&x=1"),
            ("Authorization: Basic YWJj t=@@", "Authorization: … … t=@@"),
            ("define('DB_PASSWORD', 'abc'); @@", "define('DB_PASSWORD', '…'); @@"),
            ("db=postgres://u:swordfishes@h/db t=@@", "db=postgres://u:…@h/db t=@@"),
            ("https://swordfish@h/x @@", "https://…@h/x @@"),
            ("passwords = [\"swordfish\", \"catfish\"], t=@@", "passwords = [\"…\"], t=@@"),
            ("passwords = ('a', 'b', 'c'), t=@@", "passwords = ('…'), t=@@"),
            ("passwords = {\"a\",\"b\"}; @@", "passwords = {\"…\"}; @@"),
            ("set_password(\"bob\", \"@@\")", "set_password(\"…\", \"@@\")"),
            ("sshpass -p swordfish ssh bob@h @@", "sshpass -p … @@"),
            ("sshpass -pswordfish ssh bob@h; t=@@", "sshpass -p…; t=@@"),
            ("docker login -u bob -p swordfish reg T=@@", "docker login -u … T=@@"),
            ("T=@@ docker login --username bob -p swordfish", "T=@@ docker login --username …"),
            ("pw: correct horse, t=@@", "pw: …, t=@@"),
            ("secret: correct horse battery T=@@", "secret: … T=@@"),
            ("db_creds = correct horse @@", "db_creds = …@@"),
        ] {
            assert_eq!(masked(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_left_of_a_value_around_the_secret_is_masked() {
        for (line, expected) in [
            ("k=@@rest, x", "k=@@…, x"),
            ("k=firstpart-@@", "k=…@@"),
            ("password = \"one @@ two\" x", "password = \"…@@…\" x"),
            ("db=postgres://u:one@@two@h/db", "db=postgres://u:…@@…@h/db"),
        ] {
            assert_eq!(masked(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_no_value_is_shown() {
        for line in [
            "let key = \"@@\"; // prod",
            "GITHUB_TOKEN=@@  # prod",
            "the token for the server in Rome: @@",
            "curl -H 'Authorization: @@' https://example.com/a/b",
            "db=postgres://user:@@@host/db",
            "call(\"@@\", 42, name)",
            "{\"key\":\"GH_BOT_A\",\"value\":\"@@\"}",
            "<add key=\"GH_BOT_12\" value=\"@@\"/>",
            "- {key: bot, value: @@}",
        ] {
            assert_eq!(masked(line), line);
        }
    }
}
