//! Where values stand.

use super::Value::{self, Basic, Bytes, Hex, Letters, Password, Short, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Assignment,
    Bare,
    Context,
    File,
    Encoding,
    Vendor,
}

impl Family {
    pub(super) const ALL: [Self; 6] =
        [Self::Assignment, Self::Bare, Self::Context, Self::File, Self::Encoding, Self::Vendor];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Assignment => "quoted assignments",
            Self::Bare => "bare assignments",
            Self::Context => "contexts",
            Self::File => "files",
            Self::Encoding => "encodings",
            Self::Vendor => "vendors' formats",
        }
    }
}

use Family::{Assignment, Bare, Context, Encoding, File};

/// Family, kind of value, path, shape.
pub(super) const SHAPES: &[(Family, Value, &str, &str)] = &[
    (Assignment, Password, "app.py", "password=\"§\"\n"),
    (Assignment, Short, "app.py", "password = '§'\n"),
    (Assignment, Password, "Main.java", "private static final String DB_PASSWORD = \"§\";\n"),
    (Assignment, Password, "main.go", "\tPassword:   \"§\",\n"),
    (Assignment, Password, "main.rs", "let passphrase: &str = \"§\";\n"),
    (Assignment, Password, "conf.rb", "  :password => '§',\n"),
    (Assignment, Password, "a.json", "  \"password\": \"§\",\n"),
    (Assignment, Password, "a.js", "const s = \"{\\\"pass\\\": \\\"§\\\"}\";\n"),
    (Assignment, Password, "a.scala", "password = Some(\"§\"),\n"),
    (Assignment, Password, "a.php", "$cfg['db_passwd'] = '§';\n"),
    (Assignment, Password, "A.java", "client.setPassword(\"§\");\n"),
    (Assignment, Password, "a.ts", "if (user === 'bob' && password === '§') {\n"),
    (Assignment, Letters, "a.py", "client_secret = \"§\"\n"),
    (Assignment, Letters, "a.py", "auth_token = \"§\"\n"),
    (Assignment, Letters, "a.py", "consumerKey = \"§\"\n"),
    (Assignment, Token, "a.py", "api_key = \"§\"\n"),
    (Assignment, Token, "a.ts", "export const accessToken: string = '§';\n"),
    (Assignment, Token, "a.cs", "var signingKey = \"§\";\n"),
    (Assignment, Token, "a.swift", "let apiSecret = \"§\"\n"),
    (Assignment, Hex, "a.rb", "secret_key_base: '§'\n"),
    (Assignment, Hex, "a.kt", "val encryptionKey = \"§\"\n"),
    (Assignment, Bytes, "a.go", "var aesKey = []byte{§}\n"),
    (Assignment, Bytes, "a.c", "static const uint8_t secret_key[] = {§};\n"),
    (Assignment, Token, "jwk.json", "{\"kty\":\"oct\",\"k\":\"§\",\"alg\":\"HS256\"}\n"),
    (Assignment, Token, "a.xml", "<add key=\"ApiToken\" value=\"§\" />\n"),
    (Assignment, Token, "a.json", "{\"name\": \"API_TOKEN\", \"value\": \"§\"}\n"),
    (Bare, Password, ".env", "DB_PASSWORD=§\n"),
    (Bare, Short, ".env", "MYSQL_ROOT_PASSWORD=§\n"),
    (Bare, Password, "docker-compose.yml", "      - POSTGRES_PASSWORD=§\n"),
    (Bare, Password, "docker-compose.yml", "      POSTGRES_PASSWORD: §\n"),
    (Bare, Password, "application.properties", "spring.datasource.password=§\n"),
    (Bare, Password, "application.yml", "    password: §\n"),
    (Bare, Password, "database.yml", "production:\n  adapter: x\n  password: §\n"),
    (Bare, Password, "app.ini", "password = §\n"),
    (Bare, Token, "deploy.sh", "export API_TOKEN=§\n"),
    (Bare, Token, ".env.local", "STRANGE_SERVICE_SECRET=§\n"),
    (Bare, Token, "values.yaml", "  apiKey: §\n"),
    (Bare, Token, "env.yml", "  - name: SERVICE_TOKEN\n    value: §\n"),
    (Bare, Token, "nats.conf", "  nkey: §\n"),
    (Bare, Token, "config.toml", "secret_key = '§'\n"),
    (Bare, Password, "Dockerfile", "ENV ADMIN_PASSWORD=§\n"),
    (
        Bare,
        Password,
        "kubeconfig",
        "users:\n- name: a\n  user:\n    username: a\n    password: §\n",
    ),
    (Context, Hex, "a.yml", "  Authorization: Bearer §\n"),
    (Context, Token, "a.sh", "curl -H 'Authorization: Bearer §' https://api.internal/\n"),
    (Context, Basic, "a.json", "  \"Authorization\": \"Basic §\",\n"),
    (Context, Basic, "a.sh", "curl -H \"Authorization: Basic §\" https://api.internal/\n"),
    (Context, Password, "a.conf", "routes = [ nats-route://ruser:§@10.1.2.3:6222 ]\n"),
    (Context, Password, "a.py", "client.connect('mqtt://dev:§@broker.internal:1883')\n"),
    (Context, Password, "a.py", "url = 'oracle://scott:§@db.internal/x'\n"),
    (Context, Password, "a.py", "driver('neo4j://neo:§@graph.internal:7687')\n"),
    (Context, Password, "a.go", "dsn := \"app:§@tcp(db.internal:3306)/app\"\n"),
    (Context, Password, "a.py", "connect(\"host=db user=app password=§ dbname=app\")\n"),
    (Context, Password, "a.sql", "CREATE USER 'app'@'%' IDENTIFIED BY '§';\n"),
    (Context, Password, "a.sql", "ALTER ROLE app WITH LOGIN PASSWORD '§';\n"),
    (Context, Password, "a.sh", "tool login --username app --password § --quiet\n"),
    (Context, Password, "a.sh", "curl -u app:§ https://host.internal/x\n"),
    (Context, Password, "a.ps1", "$p = ConvertTo-SecureString \"§\" -AsPlainText -Force\n"),
    (Context, Password, "a.php", "curl_setopt($ch, CURLOPT_USERPWD, \"app:§\");\n"),
    (Context, Password, "a.cs", "\"Server=db1;Database=app;User Id=sa;Password=§;\"\n"),
    (Context, Token, "a.log", "GET /v1/x?access_token=§&page=2 HTTP/1.1\n"),
    (Context, Token, "a.har", "{\"name\": \"X-Auth-Token\", \"value\": \"§\"}\n"),
    (File, Basic, ".docker/config.json", "{\"auths\": {\"r.internal\": {\"auth\": \"§\"}}}\n"),
    (File, Basic, ".npmrc", "//npm.internal/:_auth=§\n"),
    (File, Token, ".npmrc", "//npm.internal/:_password=§\n"),
    (File, Password, ".pgpass", "db.internal:5432:app:app:§\n"),
    (File, Password, ".my.cnf", "[client]\nuser=app\npassword=§\n"),
    (File, Password, ".pypirc", "[pypi]\nusername = app\npassword = §\n"),
    (File, Password, "NuGet.Config", "<add key=\"ClearTextPassword\" value=\"§\" />\n"),
    (File, Password, "settings.xml", "<server><id>x</id><password>§</password></server>\n"),
    (File, Password, "wp-config.php", "define( 'DB_PASSWORD', '§' );\n"),
    (File, Password, ".netrc", "machine h.internal login app password §\n"),
    (Encoding, Token, "a.yml", "base64"),
    (Encoding, Token, "a.yml", "base64x2"),
    (Encoding, Token, "a.yml", "base64x3"),
    (Encoding, Token, "a.yml", "hex"),
    (Encoding, Token, "a.js", "u-escapes"),
    (Encoding, Token, "a.py", "x-escapes"),
    (Encoding, Token, "a.log", "percent"),
    (Encoding, Token, "a.reg", "utf-16"),
];
