//! Words that everybody takes: what is made of nothing else is an example, or says what it is.

/// In order.
#[rustfmt::skip]
pub(super) const SHARED: &[&str] = &[
    "a", "access", "admin", "aendern", "aes", "algorithm", "alias", "alpha", "an", "and", "any", "api", "app",
    "application", "as", "asdf", "at", "atleast", "attacker", "auth", "authentication", "authorization", "aws",
    "azerty", "b", "backend", "bad", "banana", "bar", "base", "baz", "be", "bearer", "below", "beta", "bit", "bits",
    "blah", "bug", "build", "buildonly", "by", "bypass", "byte", "bytes", "cat", "cbc", "change", "char", "chars",
    "chave", "choose", "chosen", "ci", "class", "clave", "cle", "client", "code", "collect", "collectstatic",
    "compass", "compilation", "compile", "conf", "config", "configure", "connection", "console", "contrasena",
    "cookie", "cookies", "crypto", "current", "data", "database", "db", "de", "deadbeef", "decode", "deep", "default",
    "define", "delete", "demo", "deploy", "dev", "develop", "development", "different", "disabled", "django",
    "docker", "docs", "dont", "dummy", "edit", "else", "email", "empty", "enabled", "encrypt", "encryption", "enter",
    "env", "environment", "example", "express", "external", "extra", "fail", "fake", "fallback", "false", "file",
    "fill", "flask", "foo", "foobar", "for", "from", "ftp", "gcm", "geheim", "geheimnis", "generate", "generated",
    "get", "gmail", "go", "good", "graphql", "guest", "hash", "hashed", "haslo", "hello", "helloworld", "here",
    "heslo", "hex", "hmac", "host", "hs", "http", "https", "id", "in", "info", "insert", "integration",
    "internal", "invalid", "is", "issuer", "it", "its", "json", "jwt", "kennwort", "key", "keyboard", "keycloak",
    "keys", "keystore", "klucz", "laravel", "ldap", "least", "length", "less", "letmein", "local", "localhost",
    "login", "long", "ma", "mail", "main", "make", "manager", "mariadb", "master", "me", "mega", "mein", "meine",
    "mern", "mi", "min", "minha", "minimum", "missing", "mock", "mongo", "mongodb", "mot", "motdepasse", "must", "my",
    "mysql", "name", "network", "never", "new", "next", "nextauth", "no", "node", "nodejs", "none", "not", "now",
    "null", "number", "oauth", "of", "off", "old", "on", "only", "openssl", "or", "other", "our", "override", "own",
    "parola", "pass", "passe", "passphrase", "passport", "passwd", "password", "passwords", "passwort", "path",
    "pbkdf", "pg", "phrase", "placeholder", "please", "port", "postgres", "postgresql", "precompile", "private",
    "prod", "production", "project", "provide", "public", "put", "qa", "query", "quick", "qwerty", "qwertyuiop",
    "rabbitmq", "rahasia", "rails", "rand", "random", "react", "real", "redacted", "redis", "refresh", "remove",
    "removed", "replace", "reset", "resource", "role", "root", "rs", "run", "safe", "salt", "same", "sample",
    "schema", "secret", "secreta", "secrete", "secreto", "secrets", "secure", "security", "see", "segredo", "segreto",
    "sekret", "sekrit", "senha", "server", "service", "services", "session", "sessions", "set", "sh", "sha", "shared",
    "shh", "shhh", "sifre", "sign", "signature", "signed", "signing", "simple", "smtp", "some", "something", "source",
    "spring", "sql", "ssh", "ssl", "stage", "staging", "static", "storage", "store", "string", "strong", "supabase",
    "super", "supersegreto", "swordfish", "system", "tajne", "temp", "template", "temporary", "test", "tester",
    "testing", "text", "that", "the", "then", "this", "to", "todo", "token", "tokens", "too", "top", "true", "trust",
    "truststore", "type", "ultra", "undefined", "unit", "unknown", "unsafe", "use", "used", "user", "username",
    "users", "utf", "value", "vault", "very", "via", "weak", "web", "website", "webtoken", "wifi", "with", "without",
    "wlan", "word", "words", "wrong", "www", "x", "xxx", "xyz", "y", "your", "z",
];

/// Parts of a value that ask for another one in its place, or say that there is none.
#[rustfmt::skip]
pub(super) const ASKING: &[&str] = &[
    "_here", "-here", "aendern", "app-specific", "app_password", "atleast", "at_least", "at-least", "change", "characters",
    "choose", "dummy", "enter", "example", "fake", "fill-", "fill_", "generate", "hashed", "insert", "minimum", "min-", "min_", "mock", "must",
    "not_", "not-", "nopass", "placeholder", "random", "replace", "same-", "same_", "sample", "something", "temporary", "test",
    "todo", "whatever", "without", "wrong", "xxx", "your",
];
