//! What people write before a password that they tell each other, in the languages of Europe and a few of Asia.

/// What a password is called. In any file it is found behind such a name if it looks like one; in a note less is asked.
#[rustfmt::skip]
pub(super) const PASSWORDS: &[&str] = &[
    "adgangskode", "clave", "code", "contraseña", "contrasena", "credentials", "creds", "hasło", "hasla", "haslo", "heslo", "jelszó", "kennwort", "kod", "kodeord",
    "lösenord", "lozinka", "mdp", "parola", "parole", "pass", "passcode", "passe", "passphrase", "passwd", "password", "passwort", "passord", "pin", "psk", "pw", "pwd", "pword",
    "salasana", "senha", "şifre", "sifre", "şifresi", "wachtwoord", "пароль", "密码", "口令", "授权码", "パスワード", "비밀번호", "비번", "암호",
];

/// What leads from a user to the password.
#[rustfmt::skip]
pub(super) const WITH: &[&str] = &[
    "and", "avec", "com", "con", "e", "et", "ile", "met", "mit", "poi", "puis", "s", "then", "und", "with", "y", "z", "ze", "и", "с",
];

/// What somebody says right before a password.
#[rustfmt::skip]
pub(super) const SAYING: &[&str] = &[
    "accept", "accepts", "auf", "be", "became", "by", "c'est", "code", "con", "dann", "devient", "enter", "entered", "enters", "es", "est", "et",
    "for", "gave", "geheim", "gilt", "gir", "has", "have", "her", "him", "is", "ist", "it's", "its", "je", "jest", "jetzt", "kod", "lautet", "met", "mettez", "mit",
    "nehmt", "nimm", "now", "par", "pin", "probeer", "prova", "puis", "ser", "set", "still", "take", "tape", "tapez", "teď", "them", "then",
    "to", "tried", "try", "type", "typed", "und", "usa", "use", "used", "uses", "using", "war", "was", "wieder", "with", "works", "zu", "è", "é", "это", "теперь",
    "nun", "unlock", "unlocks", "enable", "login", "via", "nu", "wird", "blijft", "staat", "sind", "são", "són", "are", "będzie", "była", "był",
];

/// What has a number or a name of its own, which stands behind it.
#[rustfmt::skip]
pub(super) const OTHERS: &[&str] = &[
    "article", "asset", "bios-version", "branch", "build", "case", "change", "channel", "checksum", "cluster", "commit", "company", "computer",
    "container", "contract", "customer", "date", "device", "digest", "display", "domain", "fingerprint", "file", "filename", "firmware", "folder",
    "gerät", "hash", "host", "hostname", "image", "incident", "instance", "invoice", "issue", "job", "kernel", "kunde", "laptop", "license", "lot",
    "mac", "machine", "md5", "model", "modell", "modèle", "name", "named", "namespace", "codename", "team", "called", "heißt", "titled", "network", "netz", "node", "nr", "order", "os", "package", "part", "patch", "pod", "port", "printer",
    "process", "product", "project", "rack", "rechner", "ref", "release", "repo", "request", "revision", "room", "raum", "salle", "seriennummer", "serial", "server", "serveur", "serwer", "sha", "sha1",
    "sha256", "sn", "snapshot", "sprint", "ssid", "subject", "switch", "table", "tag", "task", "template", "thread", "ticket", "topic", "uuid", "version", "vlan",
    "vm", "volume", "week", "workspace", "user", "username", "benutzer", "benutzername", "gebruiker", "identifiant", "utilisateur", "usuario", "usuário", "utente",
    "email", "e-mail", "mail", "from", "by", "cc", "betreff", "objet", "asunto", "oggetto", "von", "an", "uid", "guid", "key-id", "keyid", "message-id", "id",
];

/// What is said to be something, and is a name.
#[rustfmt::skip]
pub(super) const NAMES: &[&str] = &[
    "branch", "codename", "commit", "host", "hostname", "image", "model", "modell", "modèle", "name", "release", "serial", "tag", "ticket",
    "title", "username", "version",
];

/// Fields of messages in JSON and XML that hold what somebody wrote.
#[rustfmt::skip]
pub(super) const FIELDS: &[&str] = &[
    "body", "comment", "content", "description", "message", "msg", "note", "notes", "preview", "remark", "summary", "text",
];

/// What is numbered, in any language: rooms, releases, machines. Nobody chooses them for a password.
#[rustfmt::skip]
pub(super) const NUMBERED: &[&str] = &[
    "account", "ad", "alpha", "android", "angular", "ap", "article", "artikel", "auftrag", "azure", "bestellung", "beta", "blatt", "box",
    "build", "bug", "bus", "case", "centos", "chapter", "client", "cluster", "covid", "day", "db", "dc", "debian", "disk", "draft", "dev", "epic", "esx", "esxi", "euro", "example",
    "exchange", "fall", "fedora", "figure", "file", "folder", "fs", "fw", "galaxy", "gate", "gleis", "gpt", "group", "gruppe", "halle", "host", "html", "hv", "invoice", "ios", "ipad",
    "iphone", "issue", "item", "java", "jdk", "kapitel", "kernel", "kw", "laptop", "level", "line", "linux", "log4j", "macos", "mail", "model", "mr", "nas", "nb", "node", "notebook", "office", "opt", "option", "order", "outlook", "page",
    "part", "pc", "phase", "php", "pixel", "plan", "port", "pos", "position", "pr", "printer", "prod", "proxmox", "python", "quarter", "rack", "raum", "rds", "rechnung", "release", "rev", "rfc", "rhel", "room",
    "round", "router", "salle", "section", "semaine", "server", "slot", "sprint", "sql", "srv", "stage", "staging", "station", "step", "story", "suse", "switch", "tab", "table", "tag", "task", "team", "terminal", "test",
    "ticket", "tier", "tram", "ts", "type", "ubuntu", "user", "variant", "variante", "version", "vlan", "vm", "vmware", "vsphere", "vue", "web", "week", "win", "windows", "woche", "zimmer", "zone",
];
