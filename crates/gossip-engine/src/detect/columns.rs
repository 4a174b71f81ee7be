//! Credentials in a column of a table, as browsers, password managers and databases export them.
//!
//! ```text
//! name,url,username,password
//! Shop,https://shop.acme.io,app,…
//!
//! INSERT INTO users (id, name, password) VALUES (1, 'app', '…'), (2, 'web', '…');
//!
//! CREATE TABLE `users` (`id` int, `password` varchar(64));
//! INSERT INTO `users` VALUES (1, '…'), (2, '…');
//! ```

mod rows;

use std::ops::Range;

use super::Detected;
use super::chosen;
use super::file_kind::FileKind;
use super::keyboard;
use super::name::{self, Kind, Named};
use super::named;
use super::syntax::{Assignment, Syntax};
use super::value;
use crate::ignore_case;
use crate::rules::Confidence;
use rows::{Rows, Separator};

/// How the name of such a column ends.
#[rustfmt::skip]
pub(super) const ANCHORS: [&str; 26] = [
    "password", "pass", "\npw", "passphrase", "passwd", "pwd", "_pw", "\tpw", ",pw", ";pw", " pw", "psk", "passwort", "kennwort", "wachtwoord",
    "mot de passe", "senha", "contraseña", "haslo", "hasło", "heslo", "secret", "token", "_key", "apikey", "api key",
];

const MAX_HEADER: usize = 256;
const MAX_COLUMNS: usize = 24;
/// Names of columns are no longer, unlike what a sentence has between its commas.
const MAX_NAME: usize = 32;
/// What may stand between the names of columns and the rows that are inserted.
const MAX_GAP: usize = 64;
const CREATE: &str = "create table ";
/// How far before a column its table is created.
const MAX_CREATED: usize = 512;
/// The definitions of the columns behind the one that is read, and what a dump has between them and the rows.
const MAX_DEFINED: usize = 768;
/// What is shorter is not taken for a credential.
const MIN_LEN: usize = 5;
/// So many bytes of rows are read; those of longer tables are many like these.
const MAX_BYTES: usize = 16 * 1024;
/// So many cells that are no credential end a column, unless they are empty or hashes. So does the name of a
/// column below it: of two headers above each other no row is read twice for the same column.
const MAX_UNFIT: usize = 16;

/// How far a header goes back.
const MAX_BACK: usize = 127;
pub(super) const REACH_BEFORE: usize = MAX_BACK + MAX_CREATED;
pub(super) const REACH_AFTER: usize = MAX_HEADER + MAX_GAP + MAX_BYTES;
const _: () = assert!(MAX_DEFINED < REACH_AFTER);

/// Where there are only two columns, the other one says whose credential it is, or of what.
#[rustfmt::skip]
const OTHERS: &[&str] = &[
    "user", "login", "name", "mail", "account", "host", "url", "site", "server", "title", "ssid",
    "domain", "benutzer", "konto", "ip", "service", "system", "device", "vendor", "client", "environment", "serveur",
    "servidor", "utilisateur", "usuario", "usuário", "gebruiker", "compte", "cuenta", "conta",
];

/// [`ANCHORS`] with what stands behind a name where blanks, bars or what wikis have align columns: a blank alone
/// follows any word of a sentence.
#[rustfmt::skip]
pub(super) const ALIGNED: [&str; 29] = [
    "password  ", "passwd  ", "passwort  ", "kennwort  ", "password ^", "passwort ^", "password !", "passwort !", "password |",
    "passwd |", "passwort |", "kennwort |", "passphrase |", " pw |", "pwd |", "pass |", "psk |", "secret |", "token |", "_key |",
    " key |", "apikey |", "senha |", "contraseña |", "mot de passe |", "haslo |", "hasło |", "heslo |", "wachtwoord |",
];

/// Whether `next` ends the column's name.
pub(super) fn may_follow(word: &[u8], next: u8) -> bool {
    b",;\t|\"\r\n)`]<".contains(&next) || word.last().is_some_and(|last| is_behind_name(*last))
}

fn is_behind_name(byte: u8) -> bool {
    b" |^!".contains(&byte)
}

/// Calls back with every credential of the rows below the header in which `word` stands.
pub(super) fn detect(
    text: &[u8],
    kind: FileKind,
    word: Range<usize>,
    on_found: &mut dyn FnMut(Detected),
) {
    let behind = text[word.clone()].iter().rev().take_while(|byte| is_behind_name(**byte)).count();
    let word = word.start..word.end - behind;
    // Code, and what programs are configured with, has lists of names in such lines, and no tables.
    let closes = matches!(text.get(word.end), Some(b')' | b']'));
    let may_be_line = matches!(kind, FileKind::Unknown | FileKind::Text) && !closes;
    let line = if may_be_line { lines(text, &word) } else { None };
    let is_line = line.is_some();
    let table = line
        .or_else(|| inserted(text, &word))
        .or_else(|| created(text, &word))
        .or_else(|| elements(text, &word));
    let Some(table) = table else { return };
    let Table { named, column, rows } = table;
    let mut others = 0;
    for secret in rows.column(column).flatten() {
        let value = &text[secret.clone()];
        if let Some(confidence) = judge(named, is_line, value) {
            others = 0;
            let found = Assignment { value: secret.clone(), syntax: syntax_of(named) };
            on_found(named::detected(named, secret.start, found, confidence));
            continue;
        }
        // Another header: its rows are read for its own word.
        if named_by(value).is_some() {
            return;
        }
        others += usize::from(!value.is_empty() && !is_hash(named, value));
        if others == MAX_UNFIT {
            return;
        }
    }
}

/// What is no password was made by a program.
fn syntax_of(named: Named) -> Syntax {
    if named.kind == Kind::Password { Syntax::Quoted } else { Syntax::Cell }
}

/// How sure it is that a cell is what the name of its column says. What stands in a table may be bare, in
/// documentation as elsewhere.
fn judge(named: Named, is_line: bool, value: &[u8]) -> Option<Confidence> {
    // Other columns have numbers and short words as well, and tables may not be what they look like.
    if value.len() < MIN_LEN || value.iter().all(u8::is_ascii_digit) || is_hash(named, value) {
        return None;
    }
    named::judge(named, syntax_of(named), FileKind::Config, value).or_else(|| {
        let is_word = (is_line || keyboard::is_walk(value))
            && named.kind == Kind::Password
            && is_chosen(value);
        is_word.then_some(Confidence::Low)
    })
}

/// Whether a table has what was made of a password, as those of databases do.
fn is_hash(named: Named, value: &[u8]) -> bool {
    // `… (md5)` says so.
    let value = value.split(|byte| *byte == b' ').next().unwrap_or(value);
    let is_digest = matches!(value.len(), 16 | 32 | 40 | 48 | 56 | 64 | 96 | 128);
    named.kind == Kind::Password && is_digest && value.iter().all(u8::is_ascii_hexdigit)
}

/// Whether the value is a word, or several, as people choose, or where fingers go on a keyboard. What is shorter
/// may say how somebody logs in.
fn is_chosen(value: &[u8]) -> bool {
    let is_one =
        chosen::is_pass_phrase(value) || chosen::is_word(value) || chosen::is_capitalised(value);
    keyboard::is_walk(value) || (is_one && value::weigh(value, f32::MIN).is_some())
}

struct Table<'t> {
    named: Named,
    /// The one that is read.
    column: usize,
    rows: Rows<'t>,
}

/// The line around `word`, if it has nothing but names of columns.
fn lines<'t>(text: &'t [u8], word: &Range<usize>) -> Option<Table<'t>> {
    let in_header = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"_ .-/#\",;\t|\r*^!".contains(&byte) || !byte.is_ascii()
    };
    let line = around(text, word, in_header)?;
    let begins = line.start == 0 || text[line.start - 1] == b'\n';
    if !begins || text.get(line.end) != Some(&b'\n') {
        return None;
    }
    let (separates_names, separator) = Separator::of(&text[line.clone()]);
    let header = Header::read(text, &line, word, separates_names)?;
    let is_name =
        |name: &[u8]| name.iter().any(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
    let is_all_names = header.names().all(|name| name.is_empty() || is_name(name));
    // A name and a comma is a line of a list. Where there are two columns, the other one says whose the
    // credential is.
    let count = header.names().filter(|name| is_name(name)).count();
    let tells = || header.names().any(|name| ignore_case::contains_any(name, OTHERS));
    // A row that repeats a name is one of a list, as this one is.
    let limit = text.len().min(line.end + 1 + MAX_HEADER);
    let row = &text[line.end + 1..limit];
    let row = &row[..memchr::memchr(b'\n', row).unwrap_or(row.len())];
    let is_repeated = || {
        header
            .names()
            .zip(separator.cells(row))
            .any(|(name, cell)| !name.is_empty() && name == bare(&row[cell]))
    };
    // Where blanks and bars align columns, a row of what is called so says something of it behind it.
    let is_aligned = matches!(separator, Separator::Blanks | Separator::Byte(b'|'));
    let must_tell = count == 2 || (is_aligned && header.column == 0);
    let is_sentence = is_aligned && header.names().any(|name| name.ends_with(b"."));
    if !is_all_names || is_sentence || count < 2 || (must_tell && !tells()) || is_repeated() {
        return None;
    }
    let rows = Rows::lines(text, line.end + 1, separator, header.columns);
    Some(Table { named: header.named, column: header.column, rows })
}

/// The names in parentheses around `word`, if rows are inserted behind them.
fn inserted<'t>(text: &'t [u8], word: &Range<usize>) -> Option<Table<'t>> {
    let in_header = |byte: u8| byte.is_ascii_alphanumeric() || b"_,`\"[] \t\r\n".contains(&byte);
    // What is behind is looked at first: most parentheses are those of calls.
    let end = word.end + ahead(text, word, in_header)?;
    if text.get(end) != Some(&b')') {
        return None;
    }
    let rest = &text[end + 1..text.len().min(end + MAX_GAP)];
    let blanks = rest.len() - rest.trim_ascii_start().len();
    let is_followed_by = |words| ignore_case::starts_with_any(&rest[blanks..], &[words]);
    let (values, stdin) = (is_followed_by("values"), is_followed_by("from stdin;"));
    if !values && !stdin {
        return None;
    }
    let names = around(text, word, in_header)?;
    if names.start.checked_sub(1).is_none_or(|at| text[at] != b'(') {
        return None;
    }
    let Header { named, column, columns, .. } =
        Header::read(text, &names, word, Separator::Byte(b','))?;
    let behind = end + 1;
    let rows = if values {
        Rows::tuples(text, behind + blanks + "values".len(), columns)
    } else {
        let start = behind + memchr::memchr(b'\n', rest)? + 1;
        Rows::lines(text, start, Separator::Byte(b'\t'), columns)
    };
    Some(Table { named, column, rows })
}

/// The table that is created with the column `word`, if rows are inserted into it that name no columns.
fn created<'t>(text: &'t [u8], word: &Range<usize>) -> Option<Table<'t>> {
    /// What a definition begins with that is of no column.
    #[rustfmt::skip]
    const NO_COLUMNS: &[&str] = &[
        "key ", "primary ", "unique ", "index ", "constraint ", "foreign ", "fulltext ", "check ", "check(",
    ];
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    // Behind most names in quotes stands one of these, and behind none that a table has.
    let (quote, next) = (text.get(word.end), text.get(word.end + 1));
    let may_be = matches!(quote, Some(b'`' | b'"'));
    if !may_be || next.is_some_and(|next| b":=)]};.".contains(next)) {
        return None;
    }
    let name = around(text, word, in_name)?;
    let opens = name.start.checked_sub(1).and_then(|at| text.get(at));
    if opens != quote || name.end != word.end {
        return None;
    }
    let before = &text[name.start.saturating_sub(MAX_CREATED)..name.start];
    let create = ignore_case::find_iter(before, CREATE).last()?;
    let table = rows::name_at(&before[create + CREATE.len()..])?;
    let defined = &text[name.end + 1..text.len().min(name.end + MAX_DEFINED)];
    // The last column is counted as none: columns are counted from it.
    let (mut column, mut end) = (0, rows::end_of_value(defined, 0)?);
    while defined[end] == b',' {
        let next = defined[end + 1..].trim_ascii_start();
        column += usize::from(!ignore_case::starts_with_any(next, NO_COLUMNS));
        end = rows::end_of_value(defined, end + 1)?;
    }
    let named = named_by(&text[name.clone()])?;
    let rows = Rows::statements(text, name.end + 1 + end..name.end + MAX_DEFINED, table)?;
    Some(Table { named, column, rows })
}

/// The element around `word`, if it is one of a row's: `<th>…</th>`, `<Cell><Data>…</Data></Cell>`.
fn elements<'t>(text: &'t [u8], word: &Range<usize>) -> Option<Table<'t>> {
    if text.get(word.end) != Some(&b'<') {
        return None;
    }
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_ -".contains(&byte);
    let name = around(text, word, in_name)?;
    let opens = name.start.checked_sub(1).is_some_and(|at| text[at] == b'>');
    let name = &text[name];
    if !opens || name.len() > MAX_NAME {
        return None;
    }
    let named = named_by(name)?;
    let (rows, column) = Rows::elements(text, word.end)?;
    Some(Table { named, column, rows })
}

/// As far as `word` has such bytes around it, which must end before what is looked at does.
fn around(text: &[u8], word: &Range<usize>, is_in: impl Fn(u8) -> bool) -> Option<Range<usize>> {
    let end = word.end + ahead(text, word, &is_in)?;
    let floor = word.start.saturating_sub(MAX_BACK);
    let back = text[floor..word.start].iter().rev().take_while(|byte| is_in(**byte)).count();
    let start = word.start - back;
    (start == 0 || start > floor).then_some(start..end)
}

/// How many such bytes stand behind `word`.
fn ahead(text: &[u8], word: &Range<usize>, is_in: impl Fn(u8) -> bool) -> Option<usize> {
    let rest = &text[word.end..text.len().min(word.end + MAX_HEADER)];
    let ahead = rest.iter().take_while(|byte| is_in(**byte)).count();
    (ahead < MAX_HEADER).then_some(ahead)
}

/// The names of the columns, and what they say.
struct Header<'t> {
    cells: [&'t [u8]; MAX_COLUMNS],
    columns: usize,
    /// The one that is read.
    column: usize,
    named: Named,
}

impl<'t> Header<'t> {
    fn read(
        text: &'t [u8],
        line: &Range<usize>,
        word: &Range<usize>,
        separator: Separator,
    ) -> Option<Self> {
        let line_text = &text[line.clone()];
        let last = word.end - 1 - line.start;
        let (mut cells, mut columns, mut column) = ([&b""[..]; MAX_COLUMNS], 0, None);
        for cell in separator.cells(line_text) {
            if cell.contains(&last) {
                column = Some(columns);
            }
            let name = bare(&line_text[cell]);
            if name.len() > MAX_NAME {
                return None;
            }
            *cells.get_mut(columns)? = name;
            columns += 1;
        }
        let column = column?;
        Some(Self { cells, columns, column, named: named_by(cells[column])? })
    }

    fn names(&self) -> impl Iterator<Item = &'t [u8]> + use<'t, '_> {
        self.cells[..self.columns].iter().copied()
    }
}

/// What the name of a column says of what is in it. It ends with the word: what is behind it would make
/// something else of it.
fn named_by(name: &[u8]) -> Option<Named> {
    // Words of which others are parts, or that are several.
    let is_password = ignore_case::is_any(name, &["pw"])
        || ignore_case::ends_with_any(name, &[" pw", "contraseña", "mot de passe"]);
    if is_password {
        return Some(name::LOGIN);
    }
    let word = name::last_credential_word(name)?;
    let named = name::judge(name, word)?;
    (named.is_explicit && ignore_case::ends_with_any(name, &ANCHORS)).then_some(named)
}

/// Without blanks and quotes around it.
fn bare(name: &[u8]) -> &[u8] {
    &name[rows::within(name, |byte| byte.is_ascii_whitespace() || b"\"`[]*!".contains(&byte))]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "q8Zr2LmTvT0mL2rZq8Zr2LmTvT0mL2rZ";

    fn found(text: &str) -> Vec<&str> {
        let lower = text.to_ascii_lowercase();
        let find = |word: &&str| lower.find(*word).map(|start| start..start + word.len());
        let word = ALIGNED.iter().chain(&ANCHORS).find_map(find).unwrap();
        let mut found = Vec::new();
        let on_found = &mut |detected: Detected| found.push(detected.secret);
        detect(text.as_bytes(), FileKind::Unknown, word, on_found);
        found.into_iter().map(|secret| &text[secret]).collect()
    }

    #[test]
    fn every_row_below_the_header_is_read() {
        let text = "name,url,username,password,note\r\n\
                    Shop,https://shop.acme.io,app,q8Zr2LmT,\r\n\
                    \"A, B\",https://b.acme.io,bob,\"x7,Qp2\"\"v\",old\r\n\
                    None,https://c.acme.io,bob,,\r\n\
                    Wiki,https://w.acme.io,eve,Sommer2024!,";
        assert_eq!(found(text), ["q8Zr2LmT", "x7,Qp2\"\"v", "Sommer2024!"]);
        assert_eq!(found("host;password;x\nh1;q8Zr2LmT;1\n"), ["q8Zr2LmT"]);
        assert_eq!(found("password,note,id\nq8Zr2LmT,x,1\n"), ["q8Zr2LmT"]);
        // Most are empty, or hashes.
        let hash = "5,bob,3b9d07c41fe86a52908d4f7be1c6a03d\n".repeat(20);
        let text = format!("id,name,password\n{}{hash}6,app,q8Zr2LmT\n", "4,bob,\n".repeat(20));
        assert_eq!(found(&text), ["q8Zr2LmT"]);
        assert_eq!(found("host,pw,x\nh1,q8Zr2LmT,1\n"), ["q8Zr2LmT"]);
        // A note of two lines, a row that is none, an empty last cell.
        let text = "user,password,note\na,q8Zr2LmT,\"one\ntwo\"\n\nb,vT0mL2rZ,\n";
        assert_eq!(found(text), ["q8Zr2LmT", "vT0mL2rZ"]);
        // As databases and people write tables.
        let text = " host | user | password\n------+------+----------\n h1   | app  | q8Zr2LmT\n";
        assert_eq!(found(text), ["q8Zr2LmT"]);
        let text = "| host | user | db_pwd |\n|---|---|---|\n| h1 | app | q8Zr2LmT |\n";
        assert_eq!(found(text), ["q8Zr2LmT"]);
        assert_eq!(found(&format!("service\tapi_key\nacme\t{KEY}\n")), [KEY]);
        // As wikis do.
        for text in [
            "||Host||User||Password||\n|h1|app|q8Zr2LmT|\n",
            "^ Host ^ User ^ Password ^\n| h1 | app | q8Zr2LmT |\n",
            "! Host !! User !! Password\n|-\n| h1 || app || q8Zr2LmT\n",
            "| Host | Initial password | Note |\n|---|---|---|\n| h1 | q8Zr2LmT | x |\n",
            "Host  Initial password  Note\nh1    q8Zr2LmT          x\n",
            "| Host | Root PW | Note |\n|---|---|---|\n| h1 | q8Zr2LmT | x |\n",
            "| Serveur | Mot de passe |\n|---|---|\n| h1 | q8Zr2LmT |\n",
        ] {
            assert_eq!(found(text), ["q8Zr2LmT"], "{text}");
        }
        let text =
            "Host    User   Password\n\nh1      app    q8Zr2LmT\nh2      the app  vT0mL2rZ\n";
        assert_eq!(found(text), ["q8Zr2LmT", "vT0mL2rZ"]);
        // The rows of another header are its own.
        assert_eq!(found("user,password\nuser,password\na,q8Zr2LmT\n"), [""; 0]);
    }

    #[test]
    fn every_row_that_is_inserted_is_read() {
        let text = "INSERT INTO `users` (`id`, `password`, `note`) VALUES\n  \
                    (1, 'q8Zr2LmT', 'it''s (it\\'s) old'),\n  (2, N'vT0mL2rZ', NULL), (3, now(), 'x');";
        assert_eq!(found(text), ["q8Zr2LmT", "vT0mL2rZ"]);
        let text = format!("insert into t(name, api_key) values ('a', \"{KEY}\")");
        assert_eq!(found(&text), [KEY]);
        let text = "COPY public.users (id, login, password) FROM stdin;\n1\tapp\tq8Zr2LmT\n\\.\n";
        assert_eq!(found(text), ["q8Zr2LmT"]);
    }

    #[test]
    fn rows_of_a_table_that_was_just_created_are_read() {
        let table = "CREATE TABLE `users` (\n  `id` int(11) NOT NULL,\n  `password` varchar(64) \
                     DEFAULT 'a,b',\n  `mail` varchar(64),\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\n";
        let rows = "INSERT INTO `users` VALUES (1,'q8Zr2LmT','a'),(2,'vT0mL2rZ','b');\n";
        assert_eq!(found(&format!("{table}LOCK TABLES;\n{rows}")), ["q8Zr2LmT", "vT0mL2rZ"]);
        let each = "INSERT INTO \"users\" VALUES(1,'q8Zr2LmT');\nINSERT INTO \"users\" VALUES(2,'vT0mL2rZ');";
        let text = format!("CREATE TABLE \"users\" (\"id\" int, \"password\" text);\n{each}");
        assert_eq!(found(&text), ["q8Zr2LmT", "vT0mL2rZ"]);
        let other = "CREATE TABLE `x` (`id` int);\n";
        assert_eq!(found(&format!("{table}{other}{rows}")), ["q8Zr2LmT", "vT0mL2rZ"]);
        // Of another table.
        assert_eq!(found(&format!("{table}{}", rows.replace("users", "audit"))), [""; 0]);
        let values = ";insert into t values(\"password\",key 'q8Zr2LmT')".repeat(3);
        assert_eq!(found(&values), [""; 0]);
        assert_eq!(
            found(&format!("{table}{}", rows.replace("VALUES", "(a, b, c) VALUES"))),
            [""; 0]
        );
    }

    #[test]
    fn tables_of_pages_and_sheets_are_read() {
        let text = "<tr><th>Host</th><th>Password</th><th>Note</th></tr>\n<tr><td>h1</td>\
                    <td><p>q8Zr2LmT</p></td><td></td></tr><tr><td>h2</td><td>vT0mL2rZ</td><td>x</td></tr>";
        assert_eq!(found(text), ["q8Zr2LmT", "vT0mL2rZ"]);
        let text = "<tr><td><b>Host</b></td><td><b>Password</b></td></tr><tr><td>h1</td><td>q8Zr2LmT</td></tr>";
        assert_eq!(found(text), ["q8Zr2LmT"]);
        let cell = |value| format!("<Cell><Data ss:Type=\"String\">{value}</Data></Cell>");
        let text = format!(
            "<Row>{}{}</Row>\n<Row>{}{}</Row>",
            cell("Host"),
            cell("password"),
            cell("h1"),
            cell("q8Zr2LmT")
        );
        assert_eq!(found(&text), ["q8Zr2LmT"]);
    }

    #[test]
    fn what_is_no_table_is_not_read() {
        for text in [
            "call(user,password,note)\na,q8Zr2LmT,b\n",
            "a,password\nx,q8Zr2LmT\n",
            "user,password,b\nx,q8Zr2LmT\n",
            "user,password,b\nx,${PASSWORD},y\n",
            "the user,password,b",
            "the user enters a name, a password and so on,password,b\nx,q8Zr2LmT,y\n",
            "user password\nq8Zr2LmT\n",
            "user,password hash\na,q8Zr2LmT\n",
            "keyword\tservice\tpassword\nkeyword\tservice\tq8Zr2LmT\n",
            "user,token_type,password_hash\na,q8Zr2LmT,q8Zr2LmT\n",
            "<td>the password</td><td>q8Zr2LmT</td></tr>",
            "set password  Active  N/A\nq8Zr2LmT  Active  N/A\n",
            "ldap_host | set | Needed.\nldap_pass | set | Needed.\nq8Zr2LmT | set | Needed.\n",
            "<b>password</b> <td>q8Zr2LmT</td></tr>",
            "<tr><td><b>password</b></td><td>q8Zr2LmT</td></tr><tr><td>h1</td><td>q8Zr2LmT</td></tr>",
            "INSERT INTO t (id, password) VALUES (1, '3b9d07c41fe86a52908d4f7be1c6a03d')",
            "INSERT INTO t (id, password) VALUES (?, ?)",
            "INSERT INTO t (id, password) VALUES (1, 'q8Zr2LmT', 2)",
            "INSERT INTO t (id, password) SELECT ('q8Zr2LmT', 'q8Zr2LmT')",
            "INSERT INTO t (id, password) VALUES (1, 'q8Zr2LmT",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
