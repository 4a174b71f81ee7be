//! Which files are notes: chats, mails, tickets, wikis, and what people write down, by their folders and names.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::detect::folders::{Folders, OF_PEOPLE, OF_PROGRAM};
use crate::ignore_case;

/// In which folders files with such an ending are notes, and whether they are by their names.
#[rustfmt::skip]
const ENDINGS: &[(&str, u8)] = &[
    ("adoc", OF_PEOPLE), ("csv", OF_PROGRAM | OF_PEOPLE | NAME), ("eml", ALL), ("htm", OF_PROGRAM), ("html", OF_PROGRAM),
    ("json", OF_PROGRAM), ("jsonl", OF_PROGRAM), ("log", OF_PROGRAM), ("markdown", OF_PROGRAM | OF_PEOPLE), ("mbox", ALL),
    ("md", OF_PROGRAM | OF_PEOPLE | NAME), ("mediawiki", OF_PEOPLE), ("ndjson", OF_PROGRAM), ("note", ALL), ("notes", ALL),
    ("org", OF_PEOPLE), ("rst", OF_PEOPLE), ("rtf", NAME), ("text", OF_PROGRAM | OF_PEOPLE | NAME),
    ("textile", OF_PROGRAM | OF_PEOPLE | NAME), ("tsv", OF_PROGRAM | OF_PEOPLE | NAME), ("txt", OF_PROGRAM | OF_PEOPLE | NAME),
    ("wiki", OF_PROGRAM | OF_PEOPLE | NAME), ("xml", OF_PROGRAM),
];
/// Where it is called so.
const NAME: u8 = 32;
/// Anywhere.
const ALL: u8 = 64;
/// Where it is called nothing else, and has no ending.
const ALONE: u8 = 128;
const _: () = assert!((OF_PROGRAM | OF_PEOPLE) & (NAME | ALL | ALONE) == 0);

// In lower case, and without the blanks, dashes and underscores that may join their words.

/// Programs that people talk with or keep their work in, and what these export.
#[rustfmt::skip]
const PROGRAMS: &[&str] = &[
    "asana", "basecamp", "bitwarden", "bugzilla", "chat", "chats", "confluence", "conversations", "dingtalk",
    "discord", "evernote", "feishu", "freshdesk", "gitter", "glpi", "googlechat", "googlekeep", "hangouts",
    "helpdesk", "irc", "irclog", "irclogs", "jabber", "jira", "joplin", "kakaotalk", "keep", "keepass", "lark",
    "line", "logseq", "mantis", "matrix", "mattermost", "messages", "messenger", "msteams", "notion", "obsidian",
    "onenote", "otrs", "phabricator", "pidgin", "qq", "redmine", "rocket.chat", "rocketchat", "servicedesk", "servicenow",
    "sharepoint", "signal", "simplenote", "skype", "slack", "slackarchive", "slackbackup", "slackexport", "sms",
    "smsbackup", "smsbackups", "stickynotes", "teams", "telegram", "threema", "topdesk", "trello", "viber", "webex",
    "wechat", "weechat", "whatsapp", "xchat", "xmpp", "youtrack", "zalo", "zammad", "zendesk", "zoom", "zulip", "微信",
    "钉钉", "飞书",
];
/// What people sort their files by, beside what they call them.
#[rustfmt::skip]
const FOLDERS: &[&str] = &[
    "admin", "administration", "anotacoes", "anotações", "anteckningar", "appunti", "apuntes", "belgeler", "biljeske",
    "breakglass", "briefings", "buero", "bureau", "buro", "büro", "call", "calls", "catatan", "cctv", "changerequest",
    "changerequests", "cheatsheets", "checklist", "checklists", "client", "clientes", "clienti", "clients", "club",
    "cmdb", "comment", "comments", "confidential", "correo", "correos", "courrier", "courriers", "course", "customer",
    "customers", "desktop", "diary", "disasterrecovery", "discussions", "documenti", "documentos", "documents",
    "dokumente", "dokumenty", "dokuwiki", "download", "downloads", "dropbox", "edv", "email", "emails", "event",
    "events", "familie", "famille", "family", "firewalls", "forum", "geräte", "gist", "gists", "handovers", "ict",
    "inbox", "incident", "incidents", "infra", "infrastructure", "intranet", "iot", "issue", "issues", "it",
    "jegyzetek", "journal", "kb", "klanten", "knowledgebase", "kunden", "kurs", "lab", "labs", "logbook", "mail",
    "mails", "mediawiki", "meetings", "memos", "mergerequests", "muistiinpanot", "mynotes", "nextcloud", "notas",
    "notat", "notater", "noter", "notite", "notițe", "office", "onedrive", "ops", "outbox", "paste", "pastes", "pbx",
    "personal", "playbook", "playbooks", "poczta", "post", "posta", "postausgang", "posteingang", "postmortem",
    "postmortems", "poznamky", "poznámky", "privat", "private", "procedure", "procedures", "protokolle",
    "pullrequest", "pullrequests", "pw", "pwd", "review", "reviews", "runbooks", "school", "schreibtisch", "schule",
    "schulung", "scratch", "sop", "sops", "standup", "standups", "support", "sysadmin", "team", "telefonie", "thread",
    "threads", "ticket", "tickets", "trac", "training", "veranstaltungen", "verein", "vertraulich", "vimwiki", "voip",
    "wiki", "workshop", "zettel", "zettelkasten", "σημειώσεις", "заметки", "нотатки", "メモ", "工单", "笔记", "筆記", "메모",
];
/// Folders and files.
#[rustfmt::skip]
const FOLDERS_AND_NAMES: &[&str] = &[
    "acces", "accesos", "access", "account", "accounts", "accès", "acessos", "briefing", "cheatsheet", "credential",
    "credentials", "creds", "devices", "emergency", "firewall", "handover", "hosting", "inventory", "kennworter",
    "kennwörter", "login", "logins", "meeting", "memo", "merkzettel", "minutes", "nas", "network", "netzwerk",
    "notatki", "note", "notes", "notfall", "notities", "notizen", "notlar", "onboarding", "password", "passwords",
    "passworter", "passwörter", "pasword", "paswords", "printer", "printers", "router", "routers", "runbook", "server", "servers",
    "switches", "uebergabe", "wifi", "wlan", "zugaenge", "zugange", "zugänge", "übergabe",
];
/// Files.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "benutzer", "camera", "cameras", "chat", "chats", "contrasenas", "contraseñas", "database", "databases", "device",
    "domains", "drucker", "environment", "environments", "ftp", "hasla", "hesla", "host", "hosts", "important",
    "info", "infos", "inloggegevens", "inloggningar", "jelszavak", "kakaotalk", "konten", "losenord", "lozinke",
    "lösenord", "mailboxes", "motdepasse", "motsdepasse", "parole", "passord", "postfächer", "reminder", "salasanat",
    "secrets", "senhas", "slack", "spickzettel", "ssh", "telegram", "todo", "tunnukset", "umgebungen", "user",
    "users", "usuarios", "usuários", "utilisateurs", "vpn", "whatsapp", "wichtig", "zugangsdaten",
];
/// In names of files, beside anything.
#[rustfmt::skip]
const NAMES_ANYWHERE: &[&str] = &[
    "[line]", "κωδικοί", "диалог", "доступы", "пароли", "паролі", "чат", "トーク", "メモ", "备忘", "密码", "群聊", "聊天记录", "账号",
    "대화",
];
/// Files that are called this and nothing else.
#[rustfmt::skip]
const NAMES_ALONE: &[&str] = &[
    "creds", "handover", "kennwörter", "login", "logins", "memo", "merkzettel", "notatki", "note", "notes", "notities", "notizen", "password", "passwords", "passwort", "passwörter", "runbook", "wifi", "wlan",
];
/// What Telegram exports is called so, and by its day.
const EXPORTS_OF_DAY: &[&str] = &["chatexport_", "chatexport-", "chatexport "];

/// Words that stand apart in the name of a file and are looked up as one: `wi-fi`, `mots de passe`.
const JOINED_MAX: usize = 3;

/// Where a file must be that is called so, or is below what is called so.
struct Places {
    of_ending: HashMap<&'static [u8], u8>,
    of_word: HashMap<&'static [u8], u8>,
}

impl Places {
    fn all() -> &'static Self {
        static ALL_PLACES: OnceLock<Places> = OnceLock::new();
        ALL_PLACES.get_or_init(|| {
            let words = [
                (PROGRAMS, OF_PROGRAM),
                (FOLDERS, OF_PEOPLE),
                (FOLDERS_AND_NAMES, OF_PEOPLE | NAME),
                (NAMES, NAME),
                (NAMES_ALONE, ALONE),
            ];
            let mut of_word = HashMap::<&[u8], u8>::new();
            for (word, place) in
                words.iter().flat_map(|(words, place)| words.iter().map(move |word| (word, place)))
            {
                *of_word.entry(word.as_bytes()).or_default() |= place;
            }
            let of_ending = ENDINGS.iter().map(|(ending, places)| (ending.as_bytes(), *places));
            Self { of_ending: of_ending.collect(), of_word }
        })
    }

    fn of_ending(&self, ending: &[u8]) -> u8 {
        self.of_ending.get(Folded::of(ending).word()).copied().unwrap_or(0)
    }

    fn of_name(&self, name: &[u8]) -> u8 {
        self.of_word.get(Folded::of(name).word()).copied().unwrap_or(0)
    }

    fn of_folder(&self, folder: &[u8]) -> u8 {
        let is_export = ignore_case::starts_with_any(folder, EXPORTS_OF_DAY);
        (if is_export { OF_PROGRAM } else { self.of_name(folder) }) & (OF_PROGRAM | OF_PEOPLE)
    }
}

/// What a folder that is called so tells.
pub(in crate::detect) fn of_folder(name: &[u8]) -> u8 {
    Places::all().of_folder(name)
}

/// Whether files of this path hold what people write down, or say to each other.
pub(in crate::detect) fn is_note(path: &[u8], folders: &mut Folders) -> bool {
    let places = Places::all();
    let name = &path[memchr::memrchr2(b'/', b'!', path).map_or(0, |at| at + 1)..];
    let Some(dot) = memchr::memrchr(b'.', name) else { return is_alone(name, places) };
    let (stem, ending) = (&name[..dot], places.of_ending(&name[dot + 1..]));
    // Most files have another.
    ending != 0
        && ((ending & ALL != 0 && !stem.is_empty())
            || (ending & NAME != 0 && is_called(stem, places))
            || folders.of(path) & ending != 0)
}

/// `Passwords`, `my-notes`: a file that is called nothing else.
fn is_alone(name: &[u8], places: &Places) -> bool {
    let is_mine = ignore_case::starts_with_any(name, &["my ", "my-", "my_"]);
    places.of_name(&name[if is_mine { 3 } else { 0 }..]) & ALONE != 0
}

/// Whether one of the words is in the name, with no letter beside it.
fn is_called(stem: &[u8], places: &Places) -> bool {
    let is_letter = |at: usize| stem.get(at).is_some_and(u8::is_ascii_alphabetic);
    let begins = |at: &usize| in_word(stem[*at]) && !at.checked_sub(1).is_some_and(is_letter);
    let is_name = |at: usize| {
        words_at(&stem[at..])
            .any(|end| !is_letter(at + end) && places.of_name(&stem[at..at + end]) & NAME != 0)
    };
    (0..stem.len()).filter(begins).any(is_name) || ignore_case::contains_any(stem, NAMES_ANYWHERE)
}

/// Where the first words end, joined as they are; and where letters of ASCII end in them: words of other scripts
/// have nothing between them and their neighbours.
fn words_at(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let mut end = 0;
    let ends = (0..JOINED_MAX).flat_map(move |word| {
        if word > 0 {
            end += usize::from(matches!(text.get(end), Some(b' ' | b'-' | b'_')));
        }
        let rest = &text[end..];
        let ascii = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let all = rest.iter().take_while(|byte| in_word(**byte)).count();
        let ends = [end + ascii, end + all];
        end += all;
        ends
    });
    ends.filter(|end| *end > 0)
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || !byte.is_ascii()
}

/// A name in lower case, without what joins its words; empty if it is longer than any of them.
struct Folded {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Folded {
    const MAX: usize = 32;

    fn of(name: &[u8]) -> Self {
        let mut folded = Self { bytes: [0; Self::MAX], len: 0 };
        let is_joint = |byte: u8| matches!(byte, b' ' | b'-' | b'_');
        let mut lead = 0;
        for (at, &byte) in name.iter().enumerate() {
            // Between two words, and not before or behind them: `_matrix` is something else.
            let joins = is_joint(byte)
                && folded.len > 0
                && name.get(at + 1).is_some_and(|next| !is_joint(*next));
            if joins {
                continue;
            }
            let Some(place) = folded.bytes.get_mut(folded.len) else {
                folded.len = 0;
                break;
            };
            // Letters of Western Europe with marks, in UTF-8, differ by the same bit.
            let is_capital = lead == 0xC3 && (0x80..=0x9E).contains(&byte);
            *place = if is_capital { byte | 0x20 } else { byte.to_ascii_lowercase() };
            folded.len += 1;
            lead = byte;
        }
        folded
    }

    fn word(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_they_are_looked_up() {
        let places = Places::all();
        for word in places.of_word.keys().chain(places.of_ending.keys()) {
            assert_eq!(Folded::of(word).word(), *word);
        }
    }

    #[test]
    fn paths_tell_notes_from_other_files() {
        let folders = &mut Folders::default();
        for note in [
            "notes/2026-07-23.txt",
            "a/My Notes/x.md",
            "Notizen/Zug\u{e4}nge.txt",
            "\u{dc}bergabe/x.adoc",
            "slack/general.json",
            "Slack Export/general/2026.json",
            "ChatExport_2026-07-23/messages.html",
            "Rocket.Chat/a.csv",
            "x.eml",
            "a/b.note",
            "WhatsApp Chat with Eva.txt",
            "old-Wi-Fi.txt",
            "2026_mots de passe (2).md",
            "\u{5de5}\u{4f5c}\u{804a}\u{5929}\u{8bb0}\u{5f55}3.txt",
            "backup.zip!notes/wifi.txt",
            "a/Passwords",
            "my_notes",
            "my-creds",
            "wifi\u{4fe1}\u{606f}.txt",
            "\u{5de5}\u{4f5c}notes.txt",
            "Pasword/x.md",
        ] {
            assert!(is_note(note.as_bytes(), folders), "{note}");
        }
        for other in [
            "",
            ".eml",
            "src/notes/main.rs",
            "slack/client.py",
            "notes/data.json",
            "a/noteservers.txt",
            "keynotes/x.md",
            "changelog.md",
            "passwordsafe",
            "node_modules/team-x/x.js",
            "a.chat/readme.rst",
            "_matrix/x.json",
            "chatExportService/x.json",
            "__access__/x.md",
        ] {
            assert!(!is_note(other.as_bytes(), folders), "{other}");
        }
    }

    #[test]
    fn of_any_bytes_something_is_told() {
        let long = "notes-".repeat(40);
        for path in [&b"\xC3"[..], b"\xC3.txt", b"/!/.txt", b"a/\xC3\x9E/.md", long.as_bytes()] {
            assert!(!is_note(path, &mut Folders::default()));
        }
    }
}
