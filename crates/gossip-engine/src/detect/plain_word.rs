//! Passwords that are plain words: `opensesame`, `letmein-prod`.
//!
//! Beside the name of a password stand labels, types and names of fields as well. A word counts where
//! a program is given it: by its environment, by a name that speaks of nothing else, or with the user
//! or the host that it is for.

use std::ops::Range;

use super::Plain;
use super::chosen;
use super::file_kind::FileKind;
use super::keyboard;
use super::name::{self, Kind, Named};
use super::named::CLEAR_BITS;
use super::own;
use super::place::Place;
use super::siblings::{self, Given};
use super::syntax::{self, Assignment, Syntax};
use super::users;
use super::value;
use super::vocabulary::{Role, says};
use crate::ignore_case;

/// What a name says at least that is of nothing but a password.
const SURE_NAME_BITS: f32 = 5.0;

/// Whether the value is a word, and the password that the name speaks of.
pub(super) fn is_password(place: &Place<'_>, named: Named) -> bool {
    let Place { text, kind, name, found, .. } = place;
    let (kind, word) = (*kind, place.value());
    if is_secret(place.name(), named, kind, found.syntax, word) {
        return is_given(text, name, found, kind);
    }
    let is_clear = named.kind == Kind::Password && named.is_explicit && named.bits >= CLEAR_BITS;
    if is_clear && value::is_app_password(word) {
        return true;
    }
    let given = || siblings::given(text, kind, place.word.start, &found.value);
    let is_value = || value::weigh(word, f32::MIN).is_some();
    // Beside a user nothing else is asked of what people choose, and they type `app12345`, too.
    let is_typed = || value::weigh_typed(word, f32::MIN).is_some();
    // JSON and YAML have numbers that are measured.
    let is_text = kind != FileKind::Config || found.syntax != Syntax::BareColon;
    let is_numbered = || {
        chosen::is_numbered_by_people(word)
            || own::is_digits(word)
            || (is_text && own::is_number(word))
    };
    let is_chosen = || {
        chosen::is_walk(word) || ((chosen::weigh(word).is_some() || is_numbered()) && is_typed())
    };
    if is_clear && kind != FileKind::Text && is_chosen() {
        let is_set = keyboard::is_long_walk(word)
            && (kind == FileKind::Config
                || (found.syntax == Syntax::Quoted && syntax::is_constant(place.name())));
        return is_given(text, name, found, kind)
            && (is_set || is_behind_user(place) || given() == Given::Something);
    }
    let is_capitalised = || chosen::is_capitalised(word) && is_value();
    let is_mixed = || found.syntax == Syntax::Login && chosen::is_short_mixed(word);
    let is_word_of_place = || chosen::is_word_of_place(word) && is_value();
    if is_clear
        && (chosen::is_short_word(word) || is_capitalised() || is_mixed() || is_word_of_place())
    {
        return is_rare(place, word, given);
    }
    if is_clear && says_what_it_is(place, word) && given() != Given::Same {
        return true;
    }
    let is_phrase = is_clear && chosen::is_pass_phrase(word);
    if !is_clear || !(is_phrase || chosen::is_word_of_login(word)) || !is_value() {
        return false;
    }
    let is_long = is_phrase || chosen::is_word(word);
    let is_name = word.contains(&b'_') && !is_phrase;
    if !is_name && is_of_environment(place.name(), found.syntax, kind) {
        // `DB_USER: app`, `DB_PASSWORD: app`: an example, or a database of nobody but a test.
        return given() != Given::Same;
    }
    let is_noted = is_phrase && matches!(found.syntax, Syntax::BareColon | Syntax::Said);
    if kind == FileKind::Text || !(is_noted || is_given(text, name, found, kind)) {
        return false;
    }
    // Three words are chosen, wherever they stand.
    let is_phrase = is_phrase || word.iter().filter(|byte| **byte == b'-').count() >= 2;
    let is_sure = is_long
        && is_sure_name(place.name(), named)
        && (is_phrase || matches!(kind, FileKind::Code | FileKind::Config))
        && found.syntax != Syntax::ConnectionString
        // `<string name="password">` may be told to people, `<password>` is not.
        && (found.syntax != Syntax::Element || is_behind(text, name.start, b"<"));
    match given() {
        Given::Something => true,
        Given::Nothing => is_sure || (is_behind_user(place) && !is_name),
        Given::Same => false,
    }
}

/// `POSTGRES_PASSWORD=otterpassword`, `MASTER_PASSWORD = "OtterPasscode2025"`: an environment and constants give what
/// is in use, even if it says what it is. Constants of code are also set to names, which have no number.
fn says_what_it_is(place: &Place<'_>, word: &[u8]) -> bool {
    let is_set = match place.kind {
        // In YAML the names of secrets have dashes.
        FileKind::Config => !(place.found.syntax == Syntax::BareColon && word.contains(&b'-')),
        FileKind::Code => word.windows(3).any(|three| three.iter().all(u8::is_ascii_digit)),
        _ => false,
    };
    is_set
        && syntax::is_constant(place.name())
        && place.name().contains(&b'_')
        && is_of_environment(place.name(), place.found.syntax, place.kind)
        && ignore_case::contains_any(word, &["pass", "pwd"])
        && own::is_chosen(word)
}

/// Whether a word that is short, or written as types are, is the password: where it is said whose it is, or
/// something is called as constants are.
fn is_rare(place: &Place<'_>, word: &[u8], given: impl Fn() -> Given) -> bool {
    let Place { text, kind, name, found, .. } = place;
    if *kind == FileKind::Text || !is_given(text, name, found, *kind) {
        return false;
    }
    let is_capitalised = chosen::is_capitalised(word);
    let is_constant =
        syntax::is_constant(place.name()) && (is_capitalised || place.name().contains(&b'_'));
    let is_set = match kind {
        FileKind::Config => !chosen::is_short_word(word) || is_constant,
        FileKind::Code => match found.syntax {
            Syntax::Quoted => {
                is_constant || (is_capitalised && place.between().starts_with(b":=\""))
            }
            Syntax::ConnectionString => is_capitalised && is_whole_string(place),
            // A page does not say what it hides.
            _ => memchr::memmem::find(place.before(), b"type=\"hidden\"").is_some(),
        },
        _ => false,
    };
    match given() {
        Given::Something => true,
        Given::Nothing => is_set || is_behind_user(place),
        Given::Same => false,
    }
}

/// `'password=value'`: a setting that is a string of its own.
fn is_whole_string(place: &Place<'_>) -> bool {
    let quote = place.name.start.checked_sub(1).map(|at| place.text[at]);
    matches!(quote, Some(b'"' | b'\'')) && place.behind(1).first() == quote.as_ref()
}

/// Whether nothing is written so but the password of a user who stands before it.
fn is_behind_user(place: &Place<'_>) -> bool {
    match place.found.syntax {
        Syntax::Login | Syntax::Sql => true,
        Syntax::Compared => is_behind_comparison(place.before()),
        Syntax::Directive => is_plain_of_router(place.text, &place.name),
        _ => false,
    }
}

/// `user == "ops" && `: what is compared next is what this user logs in with.
fn is_behind_comparison(before: &[u8]) -> bool {
    let Some(at) = memchr::memmem::rfind(before, b"==") else { return false };
    let name = before[..at].trim_ascii_end();
    let name = name.strip_suffix(b"=").unwrap_or(name).trim_ascii_end();
    let name = name.strip_suffix(b"\"]").or(name.strip_suffix(b"']")).unwrap_or(name);
    let user = before[at + 2..].trim_ascii_start();
    let Some((quote @ (b'"' | b'\''), user)) = user.split_first() else { return false };
    let Some(end) = memchr::memchr(*quote, user) else { return false };
    let behind = user[end + 1..].trim_ascii_start();
    end > 0 && users::is_field(name) && ignore_case::starts_with_any(behind, &["&&", "and "])
}

/// `username ops password 0 value`: routers say so that it is no hash.
fn is_plain_of_router(text: &[u8], name: &Range<usize>) -> bool {
    text[name.end..].starts_with(b" 0 ")
}

/// Whether what a name of Basic authentication gives a user is a word, or what people type: `user:value`.
pub(super) fn is_of_user(name: &[u8], kind: FileKind, word: &[u8]) -> bool {
    const NAMES: &[&str] = &["basic_auth", "basicauth", "basic-auth"];
    matches!(kind, FileKind::Config | FileKind::Unknown)
        && ignore_case::ends_with_any(name, NAMES)
        && is_typed_by_people(word)
}

/// Whether the base64 of a word, or of what people type, is made into a string where the value stands.
pub(super) fn is_encoded(place: &Place<'_>, named: Named) -> bool {
    const DECODERS: &[&str] = &[
        "b64decode(",
        "base64_decode(",
        "decode64(",
        "atob(",
        "frombase64string(",
        "decodestring(",
    ];
    let between = without_quote(place.between());
    let between = between.strip_suffix(b"b").unwrap_or(between);
    named.kind == Kind::Password
        && place.kind != FileKind::Text
        && place.found.syntax == Syntax::Wrapped
        && ignore_case::ends_with_any(between, DECODERS)
        && Plain::of(place.value()).is_some_and(|plain| is_typed_by_people(plain.bytes()))
}

/// Whether a value that stands where nothing but a password does is one that people choose.
pub(super) fn is_typed_by_people(word: &[u8]) -> bool {
    let is_word = || {
        chosen::is_word_of_login(word)
            || chosen::is_capitalised(word)
            || chosen::weigh(word).is_some()
    };
    chosen::is_short_word(word)
        || chosen::is_walk(word)
        || (is_word() && value::weigh(word, f32::MIN).is_some())
}

/// Whether a name is of a password and cannot be of anything else: `pass` alone may be one of many over
/// some data, `dbPass` is none.
fn is_sure_name(name: &[u8], named: Named) -> bool {
    let mut words = name::words(name).rev();
    let is_pass = words.next().is_some_and(|word| word.eq_ignore_ascii_case(b"pass"));
    named.bits >= SURE_NAME_BITS
        || (is_pass && words.next().is_some_and(|w| says(w, Role::GluedToPass)))
}

/// Whether code, or a configuration of lines, sets a secret to one long word. In YAML it is more often
/// the name of one.
fn is_secret(name: &[u8], named: Named, kind: FileKind, syntax: Syntax, word: &[u8]) -> bool {
    let is_key =
        named.kind == Kind::Key && ignore_case::ends_with_any(name, &["secret_key", "secretkey"]);
    let is_named = is_key || (named.kind == Kind::Secret && named.bits >= SURE_NAME_BITS);
    let is_set = match kind {
        FileKind::Code => syntax == Syntax::Quoted,
        FileKind::Config => syntax == Syntax::BareEquals,
        _ => false,
    };
    is_named
        && named.is_explicit
        && is_set
        && (!word.contains(&b'-') || (syntax == Syntax::BareEquals && name == b"secret"))
        && chosen::is_word(word)
        && value::weigh(word, f32::MIN).is_some()
}

/// Whether a call is given a word as a password, behind the user that it is for.
pub(super) fn is_argument(text: &[u8], kind: FileKind, named: Named, found: &Assignment) -> bool {
    let word = &text[found.value.clone()];
    named.kind == Kind::Password
        && kind != FileKind::Text
        && (is_typed_by_people(word)
            || chosen::is_short_mixed(word)
            || chosen::is_numbered_by_people(word)
            || own::is_chosen(word))
        && is_behind_another(text, found.value.start, word)
}

/// Whether the string of `word` at `start` stands behind another one and a comma: `"user", "value"`.
fn is_behind_another(text: &[u8], start: usize, word: &[u8]) -> bool {
    const MAX_BEFORE: usize = 48;
    let before = &text[start.saturating_sub(MAX_BEFORE)..start.saturating_sub(1)];
    let before = before.trim_ascii_end();
    let Some(before) = before.strip_suffix(b",") else { return false };
    match before.trim_ascii_end().split_last() {
        Some((b'"' | b'\'', user)) => {
            !ignore_case::ends_with_any(user, &[std::str::from_utf8(word).unwrap_or("")])
        }
        _ => false,
    }
}

/// Whether the value is given to a program with its environment, `DB_PASSWORD=…`: what stands there is
/// the password, and no label for it, even if it is a word.
fn is_of_environment(name: &[u8], syntax: Syntax, kind: FileKind) -> bool {
    let is_bare = matches!(syntax, Syntax::Variable | Syntax::BareColon | Syntax::BareEquals);
    match kind {
        FileKind::Config => {
            matches!(syntax, Syntax::Quoted | Syntax::BareEquals | Syntax::BareColon)
                || (is_bare && syntax::is_constant(name))
        }
        _ => syntax == Syntax::Quoted && syntax::is_constant(name) && name.contains(&b'_'),
    }
}

/// Whether the syntax gives the name its value, and does not only put one behind the other.
fn is_given(text: &[u8], name: &Range<usize>, found: &Assignment, kind: FileKind) -> bool {
    let opening = found.value.start.checked_sub(2).map(|at| text[at]);
    let closed = text.get(found.value.end + 1).copied();
    match found.syntax {
        // A list of words goes on.
        Syntax::Quoted => !(matches!(opening, Some(b'(' | b'[')) && closed == Some(b',')),
        Syntax::Pair | Syntax::Sql | Syntax::Element | Syntax::ConnectionString => true,
        Syntax::Login => {
            matches!(closed, None | Some(b')' | b'\n' | b'\r'))
                || (closed == Some(b',') && text[name.end] == b'(')
        }
        Syntax::Argument => {
            let is_call = closed == Some(b')') && sets(&text[name.clone()]);
            let is_line =
                text.get(name.end) == Some(&b' ') && syntax::starts_line(text, name.start);
            is_call || is_line
        }
        Syntax::Listed => matches!(closed, Some(b')' | b'}')),
        Syntax::Wrapped => is_password_of(&text[name.end..found.value.start]),
        Syntax::Directive => kind == FileKind::Config || is_plain_of_router(text, name),
        Syntax::Flag | Syntax::Variable => kind == FileKind::Config,
        Syntax::Compared => kind != FileKind::Config,
        // `"${name:value}"` stands in code, too.
        Syntax::BareEquals => kind == FileKind::Config || is_behind(text, name.start, b"${"),
        Syntax::BareColon => kind == FileKind::Config,
        // `?user=app&password=value`.
        Syntax::Parameter => text[..name.start].ends_with(b"&"),
        _ => false,
    }
}

fn is_behind(text: &[u8], at: usize, sign: &[u8]) -> bool {
    text[..at].ends_with(sign)
}

/// Whether a function of this name is given a password, and not somebody's whose password it changes.
fn sets(name: &[u8]) -> bool {
    const SETTERS: &[&str] = &["", "set", "set_", "with", "with_", "add", "add_", "db_", "basic_"];
    let segment = name.rsplit(|byte| *byte == b'.').next().unwrap_or(name);
    let words = ["password", "passwd", "passphrase", "pwd", "pass"];
    words.into_iter().any(|word| {
        let head = segment.len().checked_sub(word.len());
        head.is_some_and(|head| {
            let is_setter = |setter: &&str| segment[..head].eq_ignore_ascii_case(setter.as_bytes());
            segment[head..].eq_ignore_ascii_case(word.as_bytes()) && SETTERS.iter().any(is_setter)
        })
    })
}

/// Whether what stands between a name and the letters of its value makes a string of it.
pub(super) fn is_string(between: &[u8]) -> bool {
    const MAKERS: &[&str] = &["string::from(", "some(", "string(", "[]byte(", "just("];
    ignore_case::ends_with_any(without_quote(between), MAKERS)
}

/// Whether it makes a password of it.
fn is_password_of(between: &[u8]) -> bool {
    ignore_case::ends_with_any(without_quote(between), &["password("])
}

fn without_quote(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\"").or(text.strip_suffix(b"'")).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::tests::found;

    #[test]
    fn a_word_is_a_password_where_code_gives_it_to_a_program() {
        for text in [
            "const password = 'zwetschge';",
            "b.Password = \"zwetschge\";",
            "String dbPass = \"zwetschge\";",
            "ds.setPassword(\"zwetschge\");",
            "props.put(\"password\", \"zwetschge\");",
            "let password = String::from(\"zwetschge\");",
            "  storePassword 'zwetschge'\n",
            "{:password \"zwetschge\"}",
            "PASSWORD => 'zwetschge';",
            "@Value(\"${db.password:zwetschge}\")",
            "password <- \"zwetschge\"",
            "{password, \"zwetschge\"}",
        ] {
            assert_eq!(found(FileKind::Code, text), Some("zwetschge"), "{text}");
        }
        for text in [
            "mysqldump --password=zwetschge shop",
            "<password>zwetschge</password>",
            "SetEnv DB_PASSWORD zwetschge\n",
            "username app password 0 zwetschge\n",
        ] {
            assert_eq!(found(FileKind::Config, text), Some("zwetschge"), "{text}");
        }
        let label = "<string name=\"password\">zwetschge</string>";
        assert_eq!(found(FileKind::Config, label), None);
    }

    #[test]
    fn a_short_word_or_a_name_is_one_with_whom_it_is_for() {
        for value in ["gandalf", "green_tomato"] {
            let alone = format!("password = \"{value}\"");
            assert_eq!(found(FileKind::Code, &alone), None, "{alone}");
            let with_user = format!("user = \"app\", {alone}");
            assert_eq!(found(FileKind::Code, &with_user), Some(value), "{with_user}");
        }
        let numbered = "[db]\nuser = app\npass = charlie7\n";
        assert_eq!(found(FileKind::Config, numbered), Some("charlie7"));
        assert_eq!(found(FileKind::Config, "pass = charlie7\n"), None);
        assert_eq!(found(FileKind::Config, "user: app\npassword: s3cr3t\n"), None);
        let same = "user: 'gandalf', password: 'gandalf'";
        assert_eq!(found(FileKind::Code, same), None);
        let same = "DB_USER: zwetschge\n  DB_PASSWORD: zwetschge\n";
        assert_eq!(found(FileKind::Config, same), None);
        let other = "DB_USER: app\n  DB_PASSWORD: zwetschge\n";
        assert!(found(FileKind::Config, other).is_some());
    }

    #[test]
    fn what_is_compared_behind_a_user_is_what_this_user_logs_in_with() {
        for operator in ["&&", "and"] {
            let line = format!("if user == \"app\" {operator} password == \"gandalf\" {{");
            assert_eq!(found(FileKind::Code, &line), Some("gandalf"), "{line}");
        }
        for line in [
            "if password == \"gandalf\" {",
            "if user == app && password == \"gandalf\" {",
            "if x(\"app\") && password == \"gandalf\" {",
            "if kind == \"edit\" && password == \"gandalf\" {",
        ] {
            assert_eq!(found(FileKind::Code, line), None, "{line}");
        }
    }

    #[test]
    fn a_list_of_clojure_has_no_comma() {
        let line = "(get url {:basic-auth [\"app\" \"kdxn4jwb\"]})";
        assert_eq!(found(FileKind::Code, line), Some("kdxn4jwb"));
        assert_eq!(found(FileKind::Code, "{:basic-auth [\"app\"] \"kdxn4jwb\"}"), None);
    }

    #[test]
    fn what_people_type_counts_beside_a_user() {
        for value in ["harbour123456", "123QWEasdf"] {
            let line = format!("user = 'app'\npassword = '{value}'\n");
            assert_eq!(found(FileKind::Code, &line), Some(value), "{line}");
        }
        assert_eq!(found(FileKind::Code, "password = 'harbour123456'\n"), None);
    }

    #[test]
    fn phrases_and_words_of_programs_are_one_in_configurations() {
        use FileKind::{Code, Config};
        for value in [
            "otter.climbs.far.away",
            "OttersOpenMyLadder",
            "Otter-Ladder",
            "mysql@harbour",
            "redis_2019",
        ] {
            let line = format!("DB_PASSWORD={value}\n");
            assert_eq!(found(Config, &line), Some(value), "{line}");
        }
        for value in ["com.acme.db.otter", "WindowPanelGridView", "app@localhost", "redis_20"] {
            let line = format!("DB_PASSWORD={value}\n");
            assert_eq!(found(Config, &line), None, "{line}");
        }
        assert_eq!(found(Code, "password = \"mysql@harbour\""), None);
    }

    #[test]
    fn a_word_of_four_letters_is_one_with_whom_it_is_for_or_beside_a_constant() {
        use FileKind::{Code, Config, Text};
        for (kind, text) in [
            (Config, "{ \"user\": \"app\", \"pass\": \"mimi\" }"),
            (Config, "DB_PASSWORD=mimi\n"),
            (Config, "add name=app password=mimi service=l2tp\n"),
            (Config, "- {name: app, password: mimi, type: text}\n"),
            (Code, "open(\"Server=db;UID=app;PWD=mimi;\")"),
            (Code, "ADMIN_PASSWORD = \"mimi\""),
            (Code, "new NetworkCredential(\"app\", \"mimi\")"),
            (Code, "ALTER ROLE app PASSWORD 'mimi';"),
            (Code, "<input type=\"hidden\" name=\"ftp_pass\" value=\"mimi\">"),
        ] {
            assert_eq!(found(kind, text), Some("mimi"), "{text}");
        }
        for (kind, text) in [
            (Config, "password: mimi\n"),
            (Config, "{ \"user\": \"app\", \"pass\": \"none\" }"),
            (Config, "DB_PASSWORD=file\n"),
            (Config, "user = mimi\npassword = mimi\n"),
            (Code, "password = \"mimi\""),
            (Code, "PASSWORD = \"mimi\""),
            (Code, "<input type=\"text\" name=\"ftp_pass\" value=\"mimi\">"),
            (Text, "DB_PASSWORD=mimi\n"),
        ] {
            assert_eq!(found(kind, text), None, "{text}");
        }
    }

    #[test]
    fn words_with_capitals_are_one_in_configurations_constants_and_calls() {
        use FileKind::{Code, Config};
        for (kind, text) in [
            (Config, "pass = \"OtterLadder\"\n"),
            (Config, "ssl.key.password=OtterLadder\n"),
            (Code, "PASSWORD = \"OtterLadder\""),
            (Code, "sheet.Unprotect Password:=\"OtterLadder\""),
            (Code, "Params.Add('password=OtterLadder');"),
            (Code, "{\"user\": \"app\", \"password\": \"OtterLadder\"}"),
            (Code, "CREATE ROLE app WITH LOGIN PASSWORD 'OtterLadder' VALID UNTIL 'infinity';"),
        ] {
            assert_eq!(found(kind, text), Some("OtterLadder"), "{text}");
        }
        for text in [
            "password = \"OtterLadder\"",
            "passwordView: OtterLadder",
            "PASSWORD = \"UserDetails\"",
            "f('x', 'password=OtterLadder&y')",
        ] {
            assert_eq!(found(Code, text), None, "{text}");
        }
    }

    #[test]
    fn what_an_environment_has_may_say_what_it_is() {
        use FileKind::{Code, Config};
        for text in ["SHOP_DB_PASSWORD=otterpassword\n", "  MYSQL_PASSWORD: otterpass_db\n"] {
            assert!(found(Config, text).is_some(), "{text}");
        }
        assert!(found(Code, "MASTER_PASSWORD = \"OtterPasscode2025\"").is_some());
        for (kind, text) in [
            (Config, "SHOP_DB_PASSWORD=mypassword\n"),
            (Config, "SHOP_DB_PASSWORD=your_otterpassword\n"),
            (Config, "SHOP_DB_USER=otterpassword\nSHOP_DB_PASSWORD=otterpassword\n"),
            (Config, "password: otterpassword\n"),
            (Code, "SHOP_DB_PASSWORD = \"otterpassword\""),
            (Code, "SHOP_DB_PASSWORD = \"mypassword123\""),
        ] {
            assert_eq!(found(kind, text), None, "{text}");
        }
        assert!(found(Config, "EMAIL_PASS=kdxn yjwb vqzt hkrp\n").is_some());
        assert_eq!(found(Config, "EMAIL_PASS=this that here they\n"), None);
    }

    #[test]
    fn walks_are_one_in_configurations_unless_everybody_types_them() {
        use FileKind::{Code, Config};
        for (kind, text) in [
            (Config, "bindPasswort: 'qwertzasdf8'\n"),
            (Config, "flower_basic_auth = app:qwertzasdf8\n"),
            (Config, "GET /export?user=eva&password=qwertzasdf8 HTTP/1.1\n"),
            (Code, "DB_PASSWORD = 'qwertzasdf8';"),
            (Code, "db = mysqli_connect('h', 'app', 'qwertzasdf8', 'shop');"),
        ] {
            assert_eq!(found(kind, text), Some("qwertzasdf8"), "{text}");
        }
        for (kind, text) in [
            (Config, "password: 'qwerty123'\n"),
            (Config, "GET /export?password=qwertzasdf8 HTTP/1.1\n"),
            (Config, "flower_basic_auth = app:basic\n"),
            (Code, "password = 'qwertzasdf8';"),
        ] {
            assert_eq!(found(kind, text), None, "{text}");
        }
    }

    #[test]
    fn a_word_in_base64_is_one_where_it_is_decoded() {
        let decoded = |call| format!("db_password = {call}(\"cXdlcnR6YXNkZjg=\")");
        for call in ["base64.b64decode", "atob", "base64_decode"] {
            assert_eq!(found(FileKind::Code, &decoded(call)), Some("cXdlcnR6YXNkZjg="), "{call}");
        }
        assert_eq!(found(FileKind::Code, &decoded("icon")), None);
        assert_eq!(found(FileKind::Code, "db_password = atob(\"cGFzc3dvcmQ=\")"), None);
    }

    #[test]
    fn a_word_behind_a_user_is_one() {
        for text in [
            "new NetworkCredential(\"app\", \"gandalf\", \"CORP\")",
            "get(url, auth=('app', 'gandalf'))",
            "ftp.login(\"app\", \"gandalf\")",
        ] {
            assert_eq!(found(FileKind::Code, text), Some("gandalf"), "{text}");
        }
    }

    #[test]
    fn a_secret_is_one_long_word_in_code_or_in_lines() {
        assert!(found(FileKind::Code, "SECRET_KEY = 'zwetschge'").is_some());
        assert!(found(FileKind::Config, "secret = zwetschge\n").is_some());
        assert_eq!(found(FileKind::Config, "secret: zwetschge\n"), None);
        let text = "const JWT_SECRET = 'zwetschge';";
        assert_eq!(found(FileKind::Code, text), Some("zwetschge"));
        assert_eq!(found(FileKind::Text, text), None);
        assert_eq!(found(FileKind::Code, "secret: 'fritz-secrets'"), None);
    }

    /// Each place finds a word that programs do not know, so the vocabulary is what tells.
    #[test]
    fn words_of_the_vocabulary_are_no_passwords_anywhere() {
        for (kind, before, behind) in [
            (FileKind::Code, "const password = '", "';"),
            (FileKind::Code, "String dbPass = \"", "\";"),
            (FileKind::Code, "user = \"app\", password = \"", "\""),
            (FileKind::Code, "const JWT_SECRET = '", "';"),
            (FileKind::Code, "ftp.login(\"app\", \"", "\")"),
            (FileKind::Config, "DB_PASSWORD=", "\n"),
            (FileKind::Config, "<password>", "</password>"),
            (FileKind::Config, "mysqldump --password=", " shop"),
        ] {
            let value =
                |value: &str| found(kind, &format!("{before}{value}{behind}")).map(str::to_owned);
            assert_eq!(value("zwetschge").as_deref(), Some("zwetschge"), "{before}");
            for known in ["forgotten", "following", "mandatory", "plaintext"] {
                assert_eq!(value(known), None, "{before}{known}");
            }
        }
    }

    #[test]
    fn lists_labels_and_what_is_done_with_a_password_are_none() {
        for text in [
            "password = ('obfuscated', x)",
            "change_password(\"zwetschge\")",
            "password = icon(\"zwetschge\", x)",
            "currentPass = \"offscreen\"",
            "('password', 'zwetschge', 'x')",
            "get('password'), 'zwetschge'",
            "form.label :password, 'zwetschge*'",
            "password: 'motdepasse'",
            "passwordLabel: 'zwetschge'",
            "password = \"user_name_of_it\"",
            "(\"x\", \"password\"): (\"zwetschge\", \"password\")",
        ] {
            assert_eq!(found(FileKind::Code, text), None, "{text}");
        }
        for text in [
            "auth = [\"argon\", \"getrandom\", \"zeroize\"]",
            "'OAuth': ('oauth_get_sbs', 'oauth_urlencode')",
            "ftp.login(\"gandalf\", \"gandalf\")",
        ] {
            assert_eq!(found(FileKind::Code, text), None, "{text}");
        }
        assert_eq!(found(FileKind::Text, "password = 'zwetschge'"), None);
    }
}
