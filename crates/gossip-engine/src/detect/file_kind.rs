//! What a file's name says about how values are written in it.

/// How a file writes names and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Values are quoted; a bare word is an expression.
    Code,
    /// Values may be bare: `NAME=value`, `name: value`.
    Config,
    /// Prose with examples in it.
    Text,
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
    "psrc", "csh", "tcsh", "opts", "options", "vault", "secret", "secrets", "creds",
];
#[rustfmt::skip]
const TEXT: &[&str] = &[
    "md", "markdown", "rst", "adoc", "asciidoc", "org", "tex", "mdx", "po", "pot",
];

/// What translations are kept in: their words stand beside names, and are none of them.
const TRANSLATED: &[&str] = &["yml", "yaml", "json", "properties", "php", "js", "ts", "xml", "arb"];
/// And where.
const TRANSLATIONS: &[&str] = &[
    "i18n",
    "l10n",
    "lang",
    "langs",
    "language",
    "languages",
    "locale",
    "locales",
    "translations",
];

/// Whether a folder or the file's name says that it holds what is told to people.
fn is_of_translations(path: &[u8], name: &[u8]) -> bool {
    let is_one =
        |word: &[u8]| TRANSLATIONS.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes()));
    let starts =
        |start: &[u8]| name.get(..start.len()).is_some_and(|s| s.eq_ignore_ascii_case(start));
    path.split(|byte| matches!(byte, b'/' | b'.')).any(is_one)
        || starts(b"messages_")
        || starts(b"messages.")
        || name.ends_with(b".arb")
}

impl FileKind {
    /// What the path says.
    pub(crate) fn of(path: Option<&[u8]>) -> Self {
        let Some(path) = path else { return Self::Unknown };
        let name = &path[memchr::memrchr(b'/', path).map_or(0, |at| at + 1)..];
        if name.first() == Some(&b'.') && contains(name, "env") {
            return Self::Config;
        }
        let is_a_file = || {
            ["dockerfile", "makefile", "procfile", "vagrantfile", "jenkinsfile"]
                .iter()
                .any(|word| contains(name, word))
        };
        if (contains(name, "file") && is_a_file()) || contains(name, "credentials") {
            return Self::Config;
        }
        // `.bashrc`, `_netrc`, `.zsh_history`.
        let is_of_shell = |end: &&str| name.ends_with(end.as_bytes());
        if ["rc", "history", "profile"].iter().any(is_of_shell)
            && !name[1.min(name.len())..].contains(&b'.')
        {
            return Self::Config;
        }
        let Some(dot) = memchr::memrchr(b'.', name) else { return Self::Unknown };
        let extension = &name[dot + 1..];
        let is_in =
            |list: &[&str]| list.iter().any(|e| extension.eq_ignore_ascii_case(e.as_bytes()));
        if is_in(TRANSLATED) && is_of_translations(path, name) {
            Self::Text
        } else if is_in(CODE) {
            Self::Code
        } else if is_in(CONFIG) {
            Self::Config
        } else if is_in(TEXT) {
            Self::Text
        } else {
            Self::Unknown
        }
    }
}

fn contains(name: &[u8], word: &str) -> bool {
    crate::rules::contains_ignore_case(name, word.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_kind() {
        let kind = |path: &str| FileKind::of(Some(path.as_bytes()));
        assert_eq!(kind("src/main.rs"), FileKind::Code);
        assert_eq!(kind("deploy/.env.production"), FileKind::Config);
        assert_eq!(kind("a/docker-compose.yml"), FileKind::Config);
        assert_eq!(kind("Dockerfile"), FileKind::Config);
        assert_eq!(kind("README.md"), FileKind::Text);
        assert_eq!(kind("config/locales/de.yml"), FileKind::Text);
        assert_eq!(kind("src/messages_de.properties"), FileKind::Text);
        assert_eq!(kind("src/lang/parser.rs"), FileKind::Code);
        assert_eq!(kind("a/b"), FileKind::Unknown);
        assert_eq!(FileKind::of(None), FileKind::Unknown);
    }
}
