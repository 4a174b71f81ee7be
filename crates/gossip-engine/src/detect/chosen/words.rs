//! Words that values are told by: those of examples, of programs, and those that say what a value is.

/// What people put numbers behind that is no password: of algorithms, hosts and examples.
#[rustfmt::skip]
pub(super) const NUMBERED: &[&str] = &[
    "abc", "aes", "alice", "app", "argon", "asd", "asdf", "aws", "bar", "base", "basic", "baz", "bearer", "blowfish", "bob", "chacha",
    "cluster", "cp", "curve", "des", "drupal", "ed", "example", "fake", "foo", "foobar", "guest",
    "hello", "hmac", "http", "hunter", "item", "java", "latin", "linux", "mac", "mysql", "oauth", "pbkdf", "pkcs",
    "postgres", "postgresql", "python", "qwerty", "rc", "ripemd", "rsa", "sample", "scram", "scrypt",
    "server", "sha", "shake", "some", "temp", "tmp", "tls", "ubuntu", "utf", "web", "win", "windows",
    "word", "www", "xyz",
];

/// What the value of an example begins with: its own name, or what it is for.
#[rustfmt::skip]
pub(super) const TELLING: &[&str] = &[
    "any", "autogen", "enter", "fill-", "fill_", "generated", "ignore", "insert", "mustbe", "must-", "must_", "mustchange", "not-", "not_", "nota", "nothing", "notimp",
    "notneeded", "notreal", "notsec", "notset", "notsome", "notused", "notvalid", "pass", "pwd", "some", "test", "token",
    "unused", "user", "what-", "what_", "whatever", "wrong-", "wrong_", "wrongp", "your",
];

/// Words that a value has which only says what it is.
pub(super) const NAMING: &[&str] = &["pass", "pwd", "token", "user", "credential"];

/// The same in other languages.
#[rustfmt::skip]
pub(super) const NAMING_ELSEWHERE: &[&str] = &[
    "kennwort", "wachtwoord", "adgangskode", "salasana", "losenord", "contrase", "motdepasse", "lozinka",
    "haslo", "heslo", "senha", "jelszo", "katasandi", "pasahitza", "wagwoord", "parool", "geslo", "zaporka",
    "sifre", "nenosiri", "kupuhipa", "fjalekalim",
];

/// Short words of programs, of their tests and manuals, and of what people are told: no passwords.
#[rustfmt::skip]
pub(super) const SHORT: &[&str] = &[
    "abcd", "abcde", "acme", "admin", "alice", "allow", "apple", "apply", "argon", "array", "asdf", "azure", "bash", "bind",
    "blah", "blank", "bool", "bytes", "chars", "clave", "close", "cloud", "conf", "const", "dummy", "eggs", "entry",
    "enum", "equal", "fail", "fails", "fake", "fetch", "files", "flag", "float", "foobar", "geslo", "good", "guest",
    "haslo", "hello", "heslo", "http", "https", "image", "json", "ldap", "lorem", "ipsum", "mongo", "mysql", "nginx", "nopw", "null",
    "ntlm", "oauth", "open", "optin", "optional", "oracle", "owner", "page", "parol", "plan", "post", "pswd", "pgsql", "psql", "query", "quux", "redis",
    "regex", "renew", "retry", "retype", "root", "rsync", "rule", "saml", "save", "seed", "senha", "shell", "sifre", "skip", "slack",
    "spam", "split", "stack", "stdin", "stop", "strong", "sudo", "swarm", "telnet", "temp", "term", "theme", "todo", "trim",
    "twice", "utf8", "vnc", "vault", "void", "weak", "wifi", "world", "woof", "yaml", "zero", "enter", "guess", "joe", "john", "jane", "fred", "barney", "bobby",
    "basic", "block", "cipher", "crypt", "email", "first", "hash", "item", "items", "local", "login", "lost", "mode", "mypw", "nopass", "none", "plain", "proxy", "range",
    "title", "true", "wrong", "xxxx", "xxxxx", "yyyy", "zzzz", "aaaa", "aaaaa", "bbbb", "abab", "sesam", "tiger", "zzzzz", "passw", "asdfg", "qwer", "qwert", "qwerty",
];

/// Words that types and fields are called by which say nothing beside a credential.
#[rustfmt::skip]
pub(super) const OF_TYPES: &[&str] = &[
    "abstract", "access", "action", "active", "activity", "alert", "amount", "application", "aware", "background", "bank", "bean", "bind",
    "binding", "body", "bold", "book", "border", "cell", "center", "chain", "check", "child", "choice", "collection", "combo", "component",
    "connection", "container", "content", "context", "control", "core", "count", "create", "credit", "custom", "detail", "details", "device", "document",
    "edit", "editor", "engine", "entity", "entry", "exception", "external", "fail", "fetch", "flag", "font", "gateway", "global", "gray", "green", "grid",
    "hello", "home", "http", "identity", "image", "internal", "invite", "item", "items", "language", "layer", "layout", "light", "linear", "local",
    "logger", "market", "member", "menu", "microsoft", "missing", "mobile", "modal", "native", "network", "normal", "open", "order", "owner", "panel",
    "parent", "password", "payment", "permission", "person", "phone", "plan", "platform", "popup", "print", "process", "product", "profile",
    "project", "proxy", "query", "record", "registered", "relation", "remember", "remote", "render", "replace", "report", "repository", "resource", "root",
    "save", "search", "section", "sender", "session", "sheet", "sign", "signed", "signer", "site", "store", "stored", "strict", "strong", "support",
    "symmetric", "system", "tab", "table", "target", "team", "temp", "test", "theme", "thread", "token", "track", "trust", "trusted", "unit", "upload", "viewer", "weak",
    "window", "windows", "work", "worker", "world", "wrapper",
];

/// Words of which settings, their names and what stands in for them are made.
#[rustfmt::skip]
pub(super) const OF_SETTINGS: &[&str] = &[
    "and", "at", "bar", "baz", "be", "blank", "body", "by", "cred", "creds", "db", "doe", "ds", "env", "fill", "filled", "foo", "for",
    "from", "get", "here", "hint", "in", "intent", "is", "it", "jane", "jdbc", "john", "kv", "label", "leave", "mailer", "of", "on", "ops",
    "or", "own", "please", "put", "pw", "real", "subject", "svc", "the", "this", "to", "vault", "with", "wort", "your",
];
