//! What a file's name says about how values are written in it.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::folders::{CATALOGUE, Folders, NOTES};
use crate::ignore_case;

/// How a file writes names and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Values are quoted; a bare word is an expression.
    Code,
    /// Values may be bare: `NAME=value`, `name: value`.
    Config,
    /// Prose with examples in it.
    Text,
    /// What is shown to people, in their language.
    Catalogue,
    /// Anything.
    Unknown,
}

#[rustfmt::skip]
const CODE: &[&str] = &[
    "rs", "c", "h", "cc", "cpp", "cxx", "hpp", "hh", "java", "kt", "kts", "scala", "go", "py",
    "rb", "js", "jsx", "mjs", "cjs", "ts", "tsx", "php", "cs", "swift", "m", "mm", "pl", "pm",
    "lua", "ex", "exs", "erl", "hs", "dart", "sol", "sql", "vb", "fs", "fsx", "clj", "groovy",
    "gradle", "vue", "svelte", "r", "jl", "nim", "zig", "d", "asm", "s", "css", "scss", "less",
    "html", "htm", "xhtml", "jsp", "erb", "ejs", "hbs", "twig", "cshtml", "razor", "proto",
    "graphql", "el", "lisp", "ml", "mli", "v", "sv", "vhd", "tcl", "awk", "cmake", "pyx", "pas",
    "f90", "ipynb", "svg", "thrift", "pp", "epp", "ino", "pde", "bas", "cls", "frm", "vbs", "hrl", "eex",
    "heex", "leex", "cljs", "cljc", "edn", "coffee", "cr", "fsi", "asp", "aspx", "cfm", "cfc", "hx",
    "rkt", "scm", "gd", "bicep", "mts", "cts",
];
#[rustfmt::skip]
const CONFIG: &[&str] = &[
    "env", "yml", "yaml", "properties", "ini", "cfg", "conf", "cnf", "cf", "config", "toml",
    "tf", "tfvars", "hcl", "sh", "bash", "zsh", "fish", "ksh", "ps1", "psm1", "bat", "cmd",
    "dockerfile", "mk", "make", "j2", "tpl", "tmpl", "template", "dist", "sample", "example",
    "local", "plist", "xml", "json", "json5", "jsonc", "npmrc", "pypirc", "netrc", "pgpass",
    "service", "desktop", "reg", "prefs", "tfstate", "envrc", "nix", "http", "rest", "log",
    "har", "bats", "inc", "setup", "sls", "exp", "psd1", "props", "targets", "pubxml", "settings",
    "psrc", "csh", "tcsh", "opts", "options", "vault", "secret", "secrets", "creds", "ldif", "nmconnection",
    "ovpn", "jcl", "realm", "rsc", "nomad",
];
#[rustfmt::skip]
const TEXT: &[&str] = &[
    "md", "markdown", "rst", "adoc", "asciidoc", "org", "tex", "mdx",
];
/// What people write down for themselves, and no documentation of a program.
#[rustfmt::skip]
const NAMES_OF_NOTES: &[&str] = &[
    "handover", "onboarding", "passwords", "postmortem", "post-mortem", "runbook",
    "inlog", "kennwoerter", "notities", "notizen", "passwoerter", "senhas", "sifreler", "wachtwoord", "zugangsdaten",
];
/// Directories of what people note down, or say to each other.
#[rustfmt::skip]
const FOLDERS_OF_NOTES: &[&str] = &[
    "chat", "chats", "daily", "diary", "inbox", "incidents", "journal", "meetings", "memos", "notes", "notities", "notizen",
    "postmortems", "runbooks", "tickets",
];
/// What the notes of a program are called that it ships with.
const NOTES_OF_PROGRAM: &[&str] = &["release", "upgrad", "version", "patch", "migration"];
const CATALOGUE_FILES: &[&str] = &["po", "pot", "mo", "arb", "xlf", "xliff", "resx", "strings"];
/// How they are written in directories of their own; other code may be in a package that is called so.
#[rustfmt::skip]
const IN_CATALOGUES: &[&str] = &[
    "json", "json5", "yml", "yaml", "properties", "xml", "ini", "toml", "php", "inc", "js", "mjs", "cjs",
    "ts", "txt", "lang",
];
/// Directories of theirs.
#[rustfmt::skip]
const CATALOGUES: &[&str] = &[
    "i18n", "l10n", "localization", "localisation", "lang", "langs", "language", "languages", "locale", "locales", "nls",
    "translation", "translations",
];

/// What an extension says by itself.
#[derive(Clone, Copy, Default)]
struct Extension {
    kind: Option<FileKind>,
    is_in_catalogues: bool,
}

impl Extension {
    /// No extension that says anything is longer.
    const MAX: usize = 16;

    fn of(extension: &[u8]) -> Self {
        static ALL: OnceLock<HashMap<&[u8], Extension>> = OnceLock::new();
        // Each file is asked: a comparison with each of the lists' words would take longer than anything else that
        // is done with its path.
        let all = ALL.get_or_init(|| {
            let mut all = HashMap::<&[u8], Self>::new();
            let kinds = [
                (CODE, FileKind::Code),
                (CONFIG, FileKind::Config),
                (TEXT, FileKind::Text),
                (CATALOGUE_FILES, FileKind::Catalogue),
            ];
            for (extensions, kind) in kinds {
                extensions.iter().for_each(|own| {
                    let before = all.entry(own.as_bytes()).or_default().kind.replace(kind);
                    debug_assert!(before.is_none(), "{own} is of one kind");
                });
            }
            for own in IN_CATALOGUES {
                all.entry(own.as_bytes()).or_default().is_in_catalogues = true;
            }
            all
        });
        let mut lower = [0; Self::MAX];
        let Some(lower) = lower.get_mut(..extension.len()) else { return Self::default() };
        lower.copy_from_slice(extension);
        lower.make_ascii_lowercase();
        all.get(&*lower).copied().unwrap_or_default()
    }
}

impl FileKind {
    /// What the path says.
    pub(crate) fn of(path: &[u8], folders: &mut Folders) -> Self {
        // What is in an archive stands behind its name: `changelog.gz!changelog`.
        let name = &path[memchr::memrchr2(b'/', b'!', path).map_or(0, |at| at + 1)..];
        if name.first() == Some(&b'.') && ignore_case::contains(name, "env") {
            return Self::Config;
        }
        let is_a_file = || {
            ["dockerfile", "makefile", "procfile", "vagrantfile", "jenkinsfile"]
                .iter()
                .any(|word| ignore_case::contains(name, word))
        };
        if (ignore_case::contains(name, "file") && is_a_file())
            || ignore_case::contains(name, "credentials")
            // Of cloud-init.
            || ignore_case::is_any(name, &["user-data", "userdata"])
        {
            return Self::Config;
        }
        // `.bashrc`, `_netrc`, `.zsh_history`, `.gitconfig`.
        let is_of_shell = |end: &&str| name.ends_with(end.as_bytes());
        if ["rc", "history", "profile", "config"].iter().any(is_of_shell)
            && !name[1.min(name.len())..].contains(&b'.')
        {
            return Self::Config;
        }
        let Some(dot) = memchr::memrchr(b'.', name) else {
            let is_text = ignore_case::is_any(name, &["changelog", "readme", "news"]);
            return if is_text { Self::Text } else { Self::Unknown };
        };
        let extension = &name[dot + 1..];
        let Extension { kind, is_in_catalogues } = Extension::of(extension);
        // `config.ini.php`, `sql.conf.ext`; `app.conf.5` is a page of the manual.
        if ignore_case::ends_with_any(&name[..dot], &[".ini", ".conf"])
            && !extension.iter().any(u8::is_ascii_digit)
            && (extension == b"php" || !matches!(kind, Some(Self::Text | Self::Code)))
        {
            return Self::Config;
        }
        let mut is_in = |folder: u8| folders.of(path) & folder != 0;
        if is_in_catalogues && (is_in(CATALOGUE) || name.starts_with(b"messages_")) {
            return Self::Catalogue;
        }
        let mut is_of_notes = || is_note(name) || (is_in(NOTES) && !is_readme(name));
        match kind {
            Some(Self::Text) if is_of_notes() => Self::Unknown,
            Some(kind) => kind,
            None if is_manual(path, extension) => Self::Text,
            None => Self::Unknown,
        }
    }
}

fn is_note(name: &[u8]) -> bool {
    let is_of_program = || ignore_case::contains_any(name, NOTES_OF_PROGRAM);
    ignore_case::contains_any(name, NAMES_OF_NOTES)
        || (ignore_case::contains(name, "notes") && !is_of_program())
        || is_dated(name)
}

/// What a folder that is called so tells.
pub(super) fn of_folder(name: &[u8]) -> u8 {
    let is_catalogue = ignore_case::is_any(name, CATALOGUES) || is_language(name);
    let is_of_notes = ignore_case::is_any(name, FOLDERS_OF_NOTES);
    (if is_catalogue { CATALOGUE } else { 0 }) | (if is_of_notes { NOTES } else { 0 })
}

fn is_readme(name: &[u8]) -> bool {
    ignore_case::starts_with_any(name, &["readme", "changelog", "contributing"])
}

/// `2026-07-23.md`: a page of a journal. What has a title behind its date is published.
fn is_dated(name: &[u8]) -> bool {
    let day = if name.get(10) == Some(&b'.') { name.get(..10) } else { None };
    day.is_some_and(|day| {
        day.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => matches!(byte, b'-' | b'_' | b'.'),
            _ => byte.is_ascii_digit(),
        })
    })
}

/// `man1/git.1`, `man/openssl-mac.1ssl`, `info/gnupg.info-2`.
fn is_manual(path: &[u8], extension: &[u8]) -> bool {
    let is_page = matches!(extension, [b'1'..=b'8', suffix @ ..]
        if suffix.len() <= 4 && suffix.iter().all(u8::is_ascii_lowercase));
    let is_info = extension == b"info" || extension.starts_with(b"info-");
    let of_pages = |folder: &[u8]| match folder {
        b"man" => true,
        [b'm', b'a', b'n', section] => section.is_ascii_digit(),
        _ => false,
    };
    let mut folders = path.split(|byte| *byte == b'/');
    (is_page && folders.any(of_pages)) || (is_info && folders.any(|folder| folder == b"info"))
}

/// `cy_GB`, `pt-BR`.
fn is_language(folder: &[u8]) -> bool {
    matches!(folder, [a, b, b'_' | b'-', c, d]
        if [a, b].iter().all(|byte| byte.is_ascii_lowercase())
            && [c, d].iter().all(|byte| byte.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_kind() {
        let folders = &mut Folders::default();
        let mut kind = |path: &str| FileKind::of(path.as_bytes(), folders);
        assert_eq!(kind("src/main.rs"), FileKind::Code);
        assert_eq!(kind("deploy/.env.production"), FileKind::Config);
        assert_eq!(kind("a/docker-compose.yml"), FileKind::Config);
        assert_eq!(kind("Dockerfile"), FileKind::Config);
        assert_eq!(kind("README.md"), FileKind::Text);
        assert_eq!(kind("docs/release-notes.md"), FileKind::Text);
        assert_eq!(kind("ops/RUNBOOK.md"), FileKind::Unknown);
        for note in ["notes.md", "2026-07-23.md", "team/chat/ops.md", "docs/postmortem-3.md"] {
            assert_eq!(kind(note), FileKind::Unknown, "{note}");
        }
        for text in ["docs/2026.md", "_posts/2026-07-23-news.md", "notes/README.md"] {
            assert_eq!(kind(text), FileKind::Text, "{text}");
        }
        for manual in [
            "man1/git.1",
            "man5/app.conf.5",
            "man/man1/openssl-mac.1ssl.gz!openssl-mac.1ssl",
            "share/info/gnupg.info-2",
            "a.gz!changelog",
            "README",
        ] {
            assert_eq!(kind(manual), FileKind::Text, "{manual}");
        }
        for catalogue in [
            "app/i18n/cy.json",
            "Lang/mg.php",
            "cy_GB/labels.inc",
            "de.po",
            "Strings.resx",
            "config/locales/de.yml",
            "src/messages_de.properties",
        ] {
            assert_eq!(kind(catalogue), FileKind::Catalogue, "{catalogue}");
        }
        assert_eq!(kind("org/acme/lang/Main.java"), FileKind::Code);
        for config in
            ["lang/.env", "deploy/de.yml", "config/en.json", "inc/app.ini.php", "sql.conf.ext"]
        {
            assert_eq!(kind(config), FileKind::Config, "{config}");
        }
        for other in
            ["a/b", "lib.so.1", "app-1.2", "syslog.1", "backup.2", "service.info", "newsletter"]
        {
            assert_eq!(kind(other), FileKind::Unknown, "{other}");
        }
    }
}
