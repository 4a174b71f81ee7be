//! Passwords that people choose, in the places where they write them, and what stands in the same
//! places and is none.

use crate::random::{DIGITS, Random};

/// Path and shape.
#[rustfmt::skip]
pub(super) const SHAPES: &[(&str, &str)] = &[
    (".env", "DB_PASSWORD=§\n"),
    (".env", "export ADMIN_PASS='§'\n"),
    ("docker-compose.yml", "      MYSQL_PASSWORD: §\n"),
    ("docker-compose.yml", "      - ADMIN_PASSWORD=§\n"),
    ("application.yml", "    password: §\n"),
    ("application.properties", "quartz.dataSource.ds.password=§\n"),
    ("mail.properties", "app.mail.smtp.password:§\n"),
    ("app.ini", "bind_password = §\n"),
    ("odbc.ini", "PWD = §\n"),
    ("config.toml", "admin_pw = \"§\"\n"),
    ("terraform.tfvars", "db_password = \"§\"\n"),
    ("variables.tf", "variable \"db_password\" {\n  default = \"§\"\n}\n"),
    ("httpd.conf", "  SetEnv DB_PASSWORD \"§\"\n"),
    ("haproxy.cfg", "  stats auth admin:§\n"),
    ("switch.cfg", "username admin privilege 15 password 0 §\n"),
    ("netrc", "machine h.internal\nlogin app\npassword §\n"),
    ("users.conf", "bob Cleartext-Password := \"§\"\n"),
    ("server.xml", "<Connector keystoreFile=\"a.jks\" keystorePass=\"§\" />\n"),
    ("appsettings.json", "  \"Default\": \"Server=db;User ID=app;Password=§;Encrypt=true\",\n"),
    ("appsettings.json", "  \"SmtpPassword\": \"§\"\n"),
    ("Db.java", "private static final String PASSWORD = \"§\";\n"),
    ("Db.java", "if (password.equals(\"§\")) {\n"),
    ("Db.java", "new PasswordAuthentication(\"app\", \"§\".toCharArray());\n"),
    ("Db.java", "new UsernamePasswordToken(\"app\", \"§\");\n"),
    ("Db.java", "\"jdbc:sqlserver://db;user=sa;password=§;encrypt=true\"\n"),
    ("a.cs", "new NetworkCredential(\"app\", \"§\")\n"),
    ("a.go", "dbPassword = \"§\"\n"),
    ("a.go", "smtp.PlainAuth(\"\", \"app@h.internal\", \"§\", \"h.internal\")\n"),
    ("a.go", "req.SetBasicAuth(\"app\", \"§\")\n"),
    ("a.php", "$pdo = new PDO('mysql:host=db', 'app', '§');\n"),
    ("a.php", "mysqli_connect('db', 'app', '§', 'shop');\n"),
    ("a.php", "$clave = '§';\n"),
    ("a.php", "$haslo = \"§\";\n"),
    ("a.php", "$contrasenia = '§';\n"),
    ("a.rb", "User.create!(email: 'a@h.internal', password: '§')\n"),
    ("a.pl", "DBI->connect(\"dbi:mysql:shop\", \"app\", \"§\");\n"),
    ("a.py", "password = \"§\"\n"),
    ("a.py", "imap.login('app', '§')\n"),
    ("a.py", "jwt.encode(payload, \"§\", algorithm=\"HS256\")\n"),
    ("a.py", "os.environ[\"DB_PASSWORD\"] = \"§\"\n"),
    ("a.js", "const pw = process.env.PW ?? \"§\";\n"),
    ("a.js", "await page.type('#password', '§');\n"),
    ("a.js", "cy.get('input[name=password]').type('§');\n"),
    ("a.kt", "val creds = Credentials.basic(\"app\", \"§\")\n"),
    ("a.rs", "client.get(url).basic_auth(\"app\", Some(\"§\"))\n"),
    ("a.rs", "Credentials::new(\"app\".into(), \"§\".into())\n"),
    ("a.c", "if (strcmp(password, \"§\") == 0) {\n"),
    ("a.c", "mysql_real_connect(c, \"db\", \"app\", \"§\", \"shop\", 0, NULL, 0);\n"),
    ("a.ino", "WiFi.begin(\"home\", \"§\");\n"),
    ("a.ino", "const char *psk = \"§\";\n"),
    ("a.lua", "red:auth(\"§\")\n"),
    ("a.lua", "password = [[§]],\n"),
    ("a.sql", "CREATE USER 'app'@'%' IDENTIFIED BY '§';\n"),
    ("a.sh", "mysqldump --user=root --password=§ shop\n"),
    ("a.ps1", "$p = ConvertTo-SecureString \"§\" -AsPlainText -Force\n"),
    ("a.log", "connecting with user=app password=§ db=shop\n"),
    ("a.txt", "The temporary password is \"§\", please change it.\n"),
    ("a.txt", "Passwort: §\n"),
    ("a.md", "http --auth app:§ GET https://h.internal\n"),
    ("a.txt", "https://deploy:§@git.internal/x.git\n"),
];

/// What stands beside the name of a password in configurations and code, and is none.
#[rustfmt::skip]
pub(super) const OTHERS: &[&str] = &[
    "sha256", "argon2", "utf16", "field12", "required", "disabled", "optional", "string", "Wachtwoord",
    "passphrase2", "passwordTooShort", "^(?=.*[A-Z])(?=.*[0-9]).{8,}$", "${DB_PASSWORD}", "not-needed",
    "ENC(8Zr2LmT0)", "/run/secrets/db", "your-password", "{{ vault_password }}", "test1234", "hunter2",
    "password_hash", "changeme1", "********", "hash", "pass1", "user@host", "true",
];

const WORDS: [&str; 36] = [
    "sommer",
    "winter",
    "berlin",
    "barcelona",
    "dragon",
    "monkey",
    "sunshine",
    "gandalf",
    "liverpool",
    "welcome",
    "kaffee",
    "orange",
    "tiger",
    "soleil",
    "marseille",
    "amigo",
    "futbol",
    "london",
    "oracle",
    "postgres",
    "matrix",
    "wolf",
    "eagle",
    "summer",
    "spring",
    "november",
    "hamster",
    "pizza",
    "guitar",
    "rocket",
    "merlin",
    "zaphod",
    "jupiter",
    "castle",
    "madrid",
    "tequila",
];

/// A word with a number, with digits for letters, two words: what people choose.
pub(super) fn password(random: &mut Random) -> String {
    let word = random.pick(&WORDS);
    let capital = word[..1].to_uppercase() + &word[1..];
    let other = random.pick(&WORDS);
    let year = 1970 + random.below(60);
    match random.below(6) {
        0 => format!("{capital}{year}"),
        1 => format!("{capital}{year}{}", random.pick(&["!", "#", "?", "*"])),
        2 => format!("{word}{}", random.between(DIGITS, 2, 3)),
        3 => {
            let leet = capital.replace('o', "0").replace('e', "3").replace('a', "4");
            format!("{leet}{}!", random.below(10))
        }
        4 => format!("{word}-{other}-{}", random.below(10)),
        _ => format!("{capital}_{other}{}", random.between(DIGITS, 2, 2)),
    }
}
