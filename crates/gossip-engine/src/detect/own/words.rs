//! Words that everybody takes: what is made of nothing else is an example, or says what it is.

/// In order.
#[rustfmt::skip]
pub(super) const SHARED: &[&str] = &[
    "a", "access", "adgangskode", "admin", "aendern", "aes", "algorithm", "alias", "alpha", "an", "and", "any", "api",
    "app", "application", "as", "asdf", "at", "atleast", "attacker", "auth", "authentication", "authorization", "aws",
    "azerty", "b", "backend", "bad", "banana", "bar", "base", "baz", "be", "bearer", "below", "beta", "bit", "bits",
    "blah", "box", "bug", "build", "buildonly", "by", "bypass", "byte", "bytes", "cat", "cbc", "change", "char",
    "chars", "chave", "check", "checker", "choose", "chosen", "ci", "class", "clave", "cle", "client", "code",
    "collect", "collectstatic", "column", "compass", "compilation", "compile", "component", "conf", "config",
    "configure", "confirm", "confirmation", "connection", "console", "contrasena", "contrasenya", "controller",
    "cookie", "cookies", "crypto", "current", "data", "database", "db", "de", "deadbeef", "decode", "deep", "default",
    "define", "delete", "demo", "deploy", "dev", "develop", "development", "dialog", "different", "disabled",
    "django", "docker", "docs", "dont", "dummy", "edit", "else", "email", "empty", "enabled", "encrypt", "encryption",
    "enter", "env", "environment", "error", "example", "exists", "expired", "express", "external", "extra", "fail",
    "fake", "fallback", "false", "field", "file", "fill", "fjalekalim", "flask", "foo", "foobar", "for", "forgot",
    "forgotten", "form", "from", "ftp", "gcm", "geheim", "geheimnis", "generate", "generated", "geslo", "get",
    "gmail", "go", "good", "graphql", "guest", "handler", "hash", "hashed", "haslo", "header", "hello", "helloworld",
    "helper", "here", "heslo", "hex", "hint", "hmac", "host", "hs", "http", "https", "id", "in", "incorrect", "info",
    "input", "insert", "integration", "internal", "invalid", "is", "issuer", "it", "its", "jelszo", "json", "jwt",
    "katasandi", "kennwort", "key", "keyboard", "keycloak", "keys", "keystore", "klucz", "kodeord", "label",
    "laravel", "ldap", "least", "length", "less", "letmein", "local", "localhost", "login", "long", "losenord",
    "lozinka", "ma", "mail", "main", "make", "manager", "mariadb", "master", "match", "matches", "me", "mega", "mein",
    "meine", "mern", "message", "mi", "min", "minha", "minimum", "mismatch", "missing", "mock", "mongo", "mongodb",
    "mot", "motdepasse", "msg", "must", "my", "mysql", "name", "nenosiri", "network", "never", "new", "next",
    "nextauth", "no", "node", "nodejs", "none", "not", "now", "null", "number", "oauth", "of", "off", "old", "on",
    "only", "openssl", "or", "other", "our", "override", "own", "page", "parol", "parola", "parool", "pasahitza",
    "pass", "passe", "passphrase", "passport", "passwd", "password", "passwords", "passwort", "path", "pbkdf", "pg",
    "phrase", "placeholder", "please", "policy", "port", "postgres", "postgresql", "precompile", "private", "prod",
    "production", "project", "prompt", "provide", "provider", "public", "put", "qa", "query", "quick", "qwerty",
    "qwertyuiop", "rabbitmq", "rahasia", "rails", "rand", "random", "react", "real", "redacted", "redis", "refresh",
    "reminder", "remove", "removed", "repeat", "replace", "required", "reset", "resource", "role", "root", "rs",
    "rule", "rules", "run", "safe", "salasana", "salt", "same", "sample", "schema", "screen", "secret", "secreta",
    "secrete", "secreto", "secrets", "secure", "security", "see", "segredo", "segreto", "sekret", "sekrit", "senha",
    "server", "service", "services", "session", "sessions", "set", "sh", "sha", "shared", "shh", "shhh", "short",
    "show", "sifre", "sign", "signature", "signed", "signing", "simple", "smtp", "some", "something", "source",
    "spring", "sql", "ssh", "ssl", "stage", "staging", "static", "storage", "store", "strength", "string", "strong",
    "supabase", "super", "supersegreto", "swordfish", "system", "tajne", "temp", "template", "temporary", "test",
    "tester", "testing", "text", "that", "the", "then", "this", "title", "to", "todo", "toggle", "token", "tokens",
    "too", "top", "true", "trust", "truststore", "type", "ultra", "undefined", "unit", "unknown", "unsafe", "update",
    "updated", "use", "used", "user", "username", "users", "utf", "valid", "validation", "validator", "value",
    "vault", "very", "via", "view", "visible", "wachtwoord", "wagwoord", "weak", "web", "website", "webtoken", "wifi",
    "with", "without", "wlan", "word", "words", "wrong", "www", "x", "xxx", "xyz", "y", "your", "z", "zaporka",
];

/// Parts of a value that ask for another one in its place, or say that there is none.
#[rustfmt::skip]
pub(super) const ASKING: &[&str] = &[
    "_here", "-here", "aendern", "app-specific", "app_password", "atleast", "at_least", "at-least", "change", "characters",
    "choose", "dummy", "enter", "example", "fake", "fill-", "fill_", "generate", "hashed", "insert", "minimum", "min-", "min_", "mock", "must",
    "not_", "not-", "nopass", "placeholder", "random", "replace", "same-", "same_", "sample", "something", "temporary", "test",
    "todo", "whatever", "without", "wrong", "xxx", "your",
];
