//! Plain words as passwords: where a program is given them, and words that stand beside the same names
//! and are none.

use crate::random::Random;

/// Path and shape.
#[rustfmt::skip]
pub(super) const SHAPES: &[(&str, &str)] = &[
    ("a.py", "password = \"§\"\n"),
    ("a.py", "connect(host=\"db\", user=\"app\", password=\"§\")\n"),
    ("a.py", "session.auth = (\"app\", \"§\")\n"),
    ("a.js", "const pool = new Pool({ user: 'app', host: 'db', password: '§' });\n"),
    ("a.ts", "private readonly password = '§';\n"),
    ("a.rb", "http.basic_auth 'app', '§'\n"),
    ("a.php", "define('DB_PASSWORD', '§');\n"),
    ("a.php", "$db['default']['password'] = '§';\n"),
    ("a.go", "redis.Options{Addr: \"cache\", Password: \"§\"}\n"),
    ("a.rs", "let password = String::from(\"§\");\n"),
    ("a.rs", "Options::new().username(\"app\").password(\"§\")\n"),
    ("A.java", "ds.setPassword(\"§\");\n"),
    ("A.java", "props.put(\"password\", \"§\");\n"),
    ("A.java", "store.load(in, \"§\".toCharArray());\n"),
    ("a.cs", "b.Password = \"§\";\n"),
    ("a.cs", "o.UseSqlServer(\"Server=db;User Id=app;Password=§;Encrypt=True\");\n"),
    ("a.scala", "val props = Map(\"user\" -> \"app\", \"password\" -> \"§\")\n"),
    ("a.kt", "mapOf(\"user\" to \"app\", \"password\" to \"§\")\n"),
    ("a.swift", "URLCredential(user: \"app\", password: \"§\", persistence: .none)\n"),
    ("a.m", "NSDictionary *d = @{@\"user\": @\"app\", @\"password\": @\"§\"};\n"),
    ("a.exs", "config :app, Repo, username: \"app\", password: \"§\"\n"),
    ("a.erl", "opts() -> #{username => \"app\", password => <<\"§\">>}.\n"),
    ("sys.config", "  {db_password, \"§\"},\n"),
    ("a.clj", "(def db {:user \"app\" :password \"§\"})\n"),
    ("a.hs", "connInfo = info { connectUser = \"app\", connectPassword = \"§\" }\n"),
    ("a.ml", "connect ~host:\"db\" ~password:\"§\" ()\n"),
    ("a.R", "password <- \"§\"\n"),
    ("a.pl", "$config->{password} = '§';\n"),
    ("build.gradle", "    storePassword \"§\"\n"),
    ("a.vb", "Private Const DbPassword As String = \"§\"\n"),
    ("a.pp", "  root_password => '§',\n"),
    ("app.yml", "  username: app\n  password: §\n"),
    ("a.conf", "SetEnv DB_PASSWORD §\n"),
    ("a.xml", "<password>§</password>\n"),
    ("a.sh", "sshpass -p § ssh app@h.internal\n"),
    ("a.sh", "mysql -u root -p§ shop\n"),
    ("a.sh", "echo § | sudo -S reboot\n"),
    ("a.sh", "openssl rsa -in k.pem -passin pass:§\n"),
    ("a.sh", "sqlplus app/§@db @run.sql\n"),
    ("a.sh", "snmpget -v2c -c § switch sysUpTime\n"),
    ("a.sql", "CREATE USER 'app'@'%' IDENTIFIED BY '§';\n"),
    ("a.exp", "expect \"password:\"\nsend \"§\\r\"\n"),
];

/// What stands beside the name of a password, and says what it is, what it must be, or what it is called
/// elsewhere.
#[rustfmt::skip]
pub(super) const OTHERS: &[&str] = &[
    "required", "disabled", "optional", "password", "passwort", "kennwort", "wachtwoord", "motdepasse",
    "string", "placeholder", "changeme", "your_password", "db_password", "secret", "example", "test",
    "undefined", "invalid", "hidden", "${PASSWORD}", "{{ password }}", "userpass", "mysecret", "default",
];

const WORDS: [&str; 20] = [
    "sunshine",
    "rumpelstilz",
    "butterfly",
    "wolkenkuckuck",
    "chocolate",
    "pumpernickel",
    "starwarsfan",
    "nightingale",
    "trombone",
    "zitronenfalter",
    "barbarossa",
    "moonraker",
    "hippopotamus",
    "kartoffel",
    "saxophone",
    "vanilleeis",
    "bumblebee",
    "gingerbread",
    "trampolin",
    "marzipan",
];

/// A word of eight letters or more, or two.
pub(super) fn password(random: &mut Random) -> String {
    let word = random.pick(&WORDS);
    match random.below(3) {
        0 => format!("{word}-{}", random.pick(&WORDS)),
        _ => (*word).to_owned(),
    }
}
