//! Every syntax, and what is none.

use super::*;

/// `@…@` marks the value that is to be found.
fn check(marked: &str, word: &str, syntax: Syntax, kind: FileKind) {
    let text = marked.replace('@', "");
    let start = text.to_ascii_lowercase().find(word).unwrap();
    let word = word.trim_end_matches(':');
    let name = name_around(text.as_bytes(), start..start + word.len()).unwrap();
    let found = assignment(text.as_bytes(), &name, kind);
    let value = marked.find('@').unwrap();
    let len = marked[value + 1..].find('@').unwrap();
    let found = found.unwrap_or_else(|| panic!("nothing in {text}"));
    assert_eq!((found.value, found.syntax), (value..value + len, syntax), "{text}");
}

#[test]
fn values_are_found_in_every_syntax() {
    use FileKind::{Code, Config, Text, Unknown};
    for (marked, syntax, kind) in [
        ("password = \"@kdxnyjwb@\"", Syntax::Quoted, Code),
        ("\"password\": \"@kdxnyjwb@\",", Syntax::Quoted, Config),
        ("\\\"password\\\": \\\"@kdxnyjwb@\\\"", Syntax::Quoted, Code),
        ("'password' => '@kdxnyjwb@'", Syntax::Quoted, Code),
        ("let password: &'static str = \"@kdxnyjwb@\";", Syntax::Quoted, Code),
        ("char password[] = \"@kdxnyjwb@\";", Syntax::Quoted, Code),
        ("password: string = '@kdxnyjwb@'", Syntax::Quoted, Code),
        ("define('DB_PASSWORD', '@kdxnyjwb@');", Syntax::Listed, Code),
        ("(8, 'mail_password', '@kdxnyjwb@', 'yes'),", Syntax::Listed, Code),
        (
            "<meta-data android:name=\"acme.password\"\n  android:value=\"@kdxnyjwb@\" />",
            Syntax::Pair,
            Config,
        ),
        (
            "<w:Password Type=\"http://a.io/w#PasswordText\">@kdxnyjwb@</w:Password>",
            Syntax::Element,
            Config,
        ),
        ("password: dev ? '@kdxnyjwb@' : '',", Syntax::Quoted, Code),
        ("password: isDev ? '' : '@kdxnyjwb@',", Syntax::Quoted, Code),
        ("password, _ := base64.DecodeString(\"@kdxnyjwb@\")", Syntax::Wrapped, Code),
        ("byte[] password = Base64.getDecoder().decode(\"@kdxnyjwb@\");", Syntax::Wrapped, Code),
        ("set :password, '@kdxnyjwb@'", Syntax::Listed, Code),
        ("  password : STRING(32) := '@kdxnyjwb@';", Syntax::Quoted, Code),
        ("{$ACME.PASSWORD}=@kdxnyjwb@\n", Syntax::BareEquals, Config),
        (
            "document.querySelector('input[type=password]').value = '@kdxnyjwb@';",
            Syntax::Argument,
            Code,
        ),
        ("(defparameter *password* \"@kdxnyjwb@\")", Syntax::Quoted, Code),
        ("s:8:\"password\";s:8:\"@kdxnyjwb@\";", Syntax::Quoted, Code),
        ("'s:8:\\\"password\\\";s:8:\\\"@kdxnyjwb@\\\";'", Syntax::Quoted, Code),
        ("let(:password) { \"@kdxnyjwb@\" }", Syntax::Quoted, Code),
        ("pb.authWithPassword('app', '@kdxnyjwb@');", Syntax::Login, Code),
        ("open_encrypted_with_password(\"a\", File.READ, \"@kdxnyjwb@\")", Syntax::Login, Code),
        ("setPassword(\"@kdxnyjwb@\")", Syntax::Argument, Code),
        ("if password === '@kdxnyjwb@' {", Syntax::Compared, Code),
        ("password = Some(\"@kdxnyjwb@\"),", Syntax::Wrapped, Code),
        ("DB_PASSWORD=@kdxnyjwb@\n", Syntax::Variable, Config),
        ("password: @kdx!nyj%wb@\n", Syntax::BareColon, Config),
        ("-e PASSWORD=@kdxnyjwb@ \\", Syntax::Variable, Config),
        ("?user=a&password=@kdxnyjwb@&x=1", Syntax::Parameter, Unknown),
        ("\"https://h.internal/x?password=@kdxnyjwb@\"", Syntax::Parameter, Code),
        ("<password>@kdxnyjwb@</password>", Syntax::Element, Config),
        ("tool --password @kdxnyjwb@ --verbose", Syntax::Flag, Unknown),
        ("Connect -Password @kdxnyjwb@ -Server x", Syntax::Flag, Unknown),
        ("<password>\n    @kdxnyjwb@\n</password>", Syntax::Element, Config),
        ("var password string = \"@kdxnyjwb@\"", Syntax::Quoted, Code),
        ("$password .= '@kdxnyjwb@'", Syntax::Quoted, Code),
        ("password :::= \"@kdxnyjwb@\"", Syntax::Quoted, Code),
        ("variable \"password\" {\n  default = \"@kdxnyjwb@\"\n}", Syntax::Quoted, Config),
        (
            "variable \"password\" {\n  type = string\n  default = \"@kdxnyjwb@\"\n}",
            Syntax::Quoted,
            Config,
        ),
        ("credentials {\n    password '@kdxnyjwb@'\n}", Syntax::Argument, Code),
        ("ROLE x LOGIN PASSWORD '@kdxnyjwb@'", Syntax::Sql, Code),
        ("- name: DB_PASSWORD\n  value: @kdxnyjwb@\n", Syntax::Pair, Config),
        ("<add key=\"Password\" value=\"@kdxnyjwb@\" />", Syntax::Pair, Config),
        ("PGPASSWORD=@kdxnyjwb@ psql -h db", Syntax::Variable, Config),
        ("spring.password=@kdxnyjwb@\n", Syntax::BareEquals, Config),
        ("tool --password=@kdxnyjwb@ list", Syntax::Flag, Config),
        ("--set auth.password=@kdxnyjwb@,replicas=2", Syntax::BareEquals, Config),
        ("requirepassword @kdx!nyjwb@\n", Syntax::Directive, Config),
        ("#define PASSWORD \"@kdxnyjwb@\"", Syntax::Quoted, Code),
        ("name,value\nDB_PASSWORD,@kdxnyjwb@\n", Syntax::BareEquals, Unknown),
        ("my $password = q{@kdxnyjwb@};", Syntax::Quoted, Code),
        ("password: %q(@kdxnyjwb@)", Syntax::Quoted, Code),
        ("my ($user, $password) = ('app', '@kdxnyjwb@');", Syntax::Quoted, Code),
        ("host, user, password = 'h', 'app', '@kdxnyjwb@'", Syntax::Quoted, Code),
        ("public string Password { get; set; } = \"@kdxnyjwb@\";", Syntax::Quoted, Code),
        ("public string Password {get;init;}=\"@kdxnyjwb@\";", Syntax::Quoted, Code),
        ("strncpy(config.password, \"@kdxnyjwb@\", 9)", Syntax::Listed, Code),
        ("setValue(\"db/password\", \"@kdxnyjwb@\")", Syntax::Listed, Code),
        ("var(\"DB_PASSWORD\").unwrap_or(\"@kdxnyjwb@\".into())", Syntax::Quoted, Code),
        ("env = \"DB_PASSWORD\", default_value = \"@kdxnyjwb@\"", Syntax::Pair, Code),
        ("page.type('input[name=\"password\"]', '@kdxnyjwb@')", Syntax::Argument, Code),
        ("<b>Password:</b> @kdxnyjwb@\n", Syntax::Element, Code),
        (
            "<setting name=\"Password\" as=\"x\">\n<value>@kdxnyjwb@</value>",
            Syntax::Element,
            Config,
        ),
        ("x-password:\n  - @kdxnyjwb@\n", Syntax::Cell, Config),
        (
            "DECLARE @password NVARCHAR(50) = N'@kdxnyjwb@'".replacen('@', "", 1).as_str(),
            Syntax::Quoted,
            Code,
        ),
        ("OPTIONS (user 'app', password '@kdxnyjwb@')", Syntax::Sql, Code),
        ("const std::string password{\"@kdxnyjwb@\"};", Syntax::Quoted, Code),
        ("If strPassword <> \"@kdxnyjwb@\" Then", Syntax::Compared, Code),
        ("(when (= password \"@kdxnyjwb@\") :ok)", Syntax::Compared, Code),
        ("{admin_password, <<\"@kdxnyjwb@\">>},", Syntax::Listed, Code),
        ("flag.StringVar(&x, \"password\", \"@kdxnyjwb@\", \"\")", Syntax::Listed, Code),
        ("default['db']['password']['app'] = '@kdxnyjwb@'", Syntax::Quoted, Code),
        ("<ns:Password Type=\"Text\">@kdxnyjwb@</ns:Password>", Syntax::Element, Config),
        ("<password><![CDATA[@kdxnyjwb@]]></password>", Syntax::Element, Config),
        ("Const Password As String = \"@kdxnyjwb@\"", Syntax::Quoted, Code),
        ("PASSWORD = (\n  '@kdxnyjwb@'\n)", Syntax::Quoted, Code),
        ("process.env.PASSWORD || '@kdxnyjwb@'", Syntax::Compared, Code),
        ("ENV['PASSWORD'] || '@kdxnyjwb@'", Syntax::Compared, Code),
        ("environ.get('PASSWORD') or '@kdxnyjwb@'", Syntax::Compared, Code),
        ("\"${db.password:@kdxnyjwb@}\"", Syntax::Quoted, Code),
        ("${DB_PASSWORD:-@kdxnyjwb@}", Syntax::Quoted, Config),
        ("<key>password</key>\n<string>@kdxnyjwb@</string>", Syntax::Element, Config),
        ("<string name=\"password\">@kdxnyjwb@</string>", Syntax::Element, Config),
        ("<p name=\"password\">\n <value>@kdxnyjwb@</value>", Syntax::Element, Config),
        ("<password encoding=\"x\">@kdxnyjwb@</password>", Syntax::Element, Config),
        ("\"password\": {\"Type\": \"x\", \"Default\": \"@kdxnyjwb@\"}", Syntax::Quoted, Config),
        ("Password:\n  Type: String\n  Default: @kdxnyjwb@\n", Syntax::Pair, Config),
        ("\"name\":\"PASSWORD\",\"type\":\"x\",\"value\":\"@kdxnyjwb@\"", Syntax::Pair, Config),
        ("add_argument('--password', default='@kdxnyjwb@')", Syntax::Pair, Code),
        ("password: >-\n  @kdxnyjwb@\n", Syntax::BareColon, Config),
        ("password: !!str @kdxnyjwb@\n", Syntax::BareColon, Config),
        ("\"user=app password=@kdxnyjwb@ dbname=x\"", Syntax::ConnectionString, Code),
        ("- **Password**: `@kdxnyjwb@`\n", Syntax::Quoted, Text),
        ("- **Password:** @kdxnyjwb@\n", Syntax::BareColon, Text),
        ("| Password | `@kdx4nyjwb@` |\n", Syntax::Cell, Text),
        ("SetEnv DB_PASSWORD \"@kdxnyjwb@\"\n", Syntax::Argument, Config),
        ("enable password @kdx4nyjwb@\n", Syntax::Directive, Config),
        ("username x privilege 15 password 0 @kdx4nyjwb@\n", Syntax::Directive, Config),
        ("app.smtp.password:@kdxnyjwb@\n", Syntax::Label, Config),
        ("the password is \"@kdxnyjwb@\", he said", Syntax::Said, Text),
        ("the password is @kdx4nyjwb@", Syntax::Said, Text),
        ("flag.String(&pw, \"password\", \"@kdxnyjwb@\", \"x\")", Syntax::Among, Code),
        ("if (strcmp(password, \"@kdxnyjwb@\") == 0)", Syntax::Compared, Code),
        ("map.put(Names.PASSWORD, \"@kdxnyjwb@\")", Syntax::Listed, Code),
        ("page.type('#password', '@kdxnyjwb@')", Syntax::Listed, Code),
        ("cy.get('input[name=password]').type('@kdxnyjwb@')", Syntax::Argument, Code),
        ("find(By.id(\"password\")).sendKeys(\"@kdxnyjwb@\")", Syntax::Argument, Code),
        ("field \"PASSWORD\", \"\\\"@kdxnyjwb@\\\"\"", Syntax::Among, Code),
        ("password = [[@kdxnyjwb@]],", Syntax::Quoted, Code),
        ("\"jdbc:x;user=sa;password=@kdx4nyjwb@;encrypt=true\"", Syntax::ConnectionString, Code),
        ("setPassword(encode(\"@kdxnyjwb@\"))", Syntax::Wrapped, Code),
        ("login, password = 'app', '@kdxnyjwb@'", Syntax::Quoted, Code),
        ("val (user, password) = (\"app\", \"@kdxnyjwb@\")", Syntax::Quoted, Code),
        ("connect(user, password=\"@kdxnyjwb@\", db=\"x\")", Syntax::Quoted, Code),
        ("put_env(:app, :password, \"@kdxnyjwb@\")", Syntax::Listed, Code),
        ("Map(\"password\" -> \"@kdxnyjwb@\")", Syntax::Quoted, Code),
        ("mapOf(\"password\" to \"@kdxnyjwb@\")", Syntax::Quoted, Code),
        ("{:user \"app\" :password \"@kdxnyjwb@\"}", Syntax::Quoted, Code),
        ("#{password => <<\"@kdxnyjwb@\">>}", Syntax::Quoted, Code),
        ("$ENV{PASSWORD} = \"@kdxnyjwb@\";", Syntax::Quoted, Code),
        ("$config->{'password'} = '@kdxnyjwb@';", Syntax::Quoted, Code),
        ("password = []byte{@7, 200, 3, 0x4f, 90, 66, 21, 8@}", Syntax::Bytes, Code),
        ("<string name=\"password\" x=\"y\">@kdxnyjwb@</string>", Syntax::Element, Config),
        ("password constant varchar2(30) := '@kdxnyjwb@';", Syntax::Quoted, Code),
        ("password VARCHAR2(30) NOT NULL := '@kdxnyjwb@';", Syntax::Quoted, Code),
        ("DECLARE password text DEFAULT '@kdxnyjwb@';", Syntax::Quoted, Code),
        ("Password : constant String := \"@kdxnyjwb@\";", Syntax::Quoted, Code),
        ("page.fill('input[name=password]', '@kdxnyjwb@')", Syntax::Argument, Code),
        ("get('[name=\"password\"]').clear().type('@kdxnyjwb@{enter}')", Syntax::Argument, Code),
        ("find('#password').set '@kdxnyjwb@'", Syntax::Argument, Code),
        ("fill_in :new_password, with: \"@kdxnyjwb@\"", Syntax::Argument, Code),
        ("fill_in 'user[password]', with: '@kdxnyjwb@'", Syntax::Argument, Code),
        ("I fill in \"Password\" with \"@kdxnyjwb@\"", Syntax::Argument, Unknown),
        ("I log in with password \"@kdx4nyjwb@\"", Syntax::Said, Unknown),
        ("ssh app@h password ~@kdx4nyjwb@~".replacen('@', "", 1).as_str(), Syntax::Said, Unknown),
        ("- password :: @kdxnyjwb@\n", Syntax::BareColon, Unknown),
        ("// password \"@kdxnyjwb@\" // before", Syntax::Argument, Config),
        ("the password was @kdx4nyjwb@, do not use it", Syntax::Said, Text),
        ("    BindPassword @kdx4nyjwb.@\n", Syntax::Directive, Config),
        ("DATA lv_password TYPE string VALUE '@kdxnyjwb@'.", Syntax::Quoted, Code),
        ("config.set('db', 'password', '@kdxnyjwb@')", Syntax::Listed, Code),
        ("password = \"\".join([\"@kdxnyjwb@\", x])", Syntax::Wrapped, Code),
        (
            "Password:\n  A: b\n  C: 1\n  D: x y\n  E: 8\n  Default: @kdxnyjwb@\n",
            Syntax::Pair,
            Config,
        ),
    ] {
        check(marked, "password", syntax, kind);
    }
}

#[test]
fn what_logs_in_stands_behind_the_name_of_a_user() {
    for (marked, word) in [
        ("get(url, auth=('app', '@kdxnyjwb@'))", "auth"),
        ("req.SetBasicAuth(\"app\", \"@kdxnyjwb@\")", "auth"),
        ("new NetworkCredential(\"app\", \"@kdxnyjwb@\")", "credential"),
        ("smtp.PlainAuth(\"\", \"app\", \"@kdxnyjwb@\", host)", "auth"),
        ("Credentials.basic(\"app\", \"@kdxnyjwb@\")", "credential"),
        ("Credentials::new(\"app\".into(), \"@kdxnyjwb@\".into())", "credential"),
        ("new UsernamePasswordToken(\"app\", \"@kdxnyjwb@\")", "token"),
        ("http.basic_auth 'app', '@kdxnyjwb@'", "auth"),
        ("[basic_auth: {\"app\", \"@kdxnyjwb@\"}]", "auth"),
        ("get(url).basic_auth(\"app\", Some(\"@kdxnyjwb@\"))", "auth"),
    ] {
        check(marked, word, Syntax::Login, FileKind::Code);
    }
    let features = b"aws-auth = [\"kdx-types\", \"kdx-nyjwb\", \"kdx-runtime\"]";
    let found = assignment(features, &(0..8), FileKind::Config);
    assert!(found.is_none_or(|found| found.syntax != Syntax::Login));
    check("x -passin pass:@kdxnyjwb@ -noout", "pass:", Syntax::Flag, FileKind::Config);
}

#[test]
fn a_password_stands_behind_its_user() {
    let split = |text: &str, syntax| {
        let found = Assignment { value: 0..text.len(), syntax };
        password_of_user(text.as_bytes(), &found).map(|found| text[found.value].to_owned())
    };
    assert_eq!(split("app:kdxnyjwb", Syntax::Quoted), Some("kdxnyjwb".to_owned()));
    assert_eq!(split("app@h.internal:kdxnyjwb", Syntax::Flag), Some("kdxnyjwb".to_owned()));
    for text in ["app", "app:", ":kdxnyjwb", "http://h", "a b:c", "12:30:15", "app:x/y", "1:2"] {
        assert_eq!(split(text, Syntax::Quoted), None, "{text}");
    }
    assert_eq!(split("app:kdxnyjwb", Syntax::Element), None);
}

#[test]
fn expressions_and_prose_have_no_value() {
    for text in [
        "password = get_password(user)",
        "password: the one that you chose",
        "password is needed",
        "password 'quoted",
        "password default is needed",
        "password constant folding",
        "password, with: us",
        "password :: String",
        "password = a + b",
        "passwords(",
        "password",
    ] {
        let name = name_around(text.as_bytes(), 0..4).unwrap();
        let found = assignment(text.as_bytes(), &name, FileKind::Code);
        assert_eq!(found, None, "{text}");
    }
}

/// Found by the property below.
#[test]
fn a_word_with_signs_behind_it_may_be_the_value_of_a_directive() {
    let text = b"token a,=";
    assert!(!is_prose(text, &(0..5), FileKind::Config) && is_prose(text, &(0..5), FileKind::Code));
}

proptest::proptest! {
    /// Telling prose early changes no answer.
    #[test]
    fn prose_has_no_assignment(
        before in "(--?)?[a-z_]{0,6}",
        word in "(token|secret|key)",
        behind in "[ ,;)=\n\r\"']{1,3}[a-z]{0,24}[ ,;)=\n\r\"'*\\[1:]{0,3}[a-z=\"']{0,4}",
    ) {
        let text = format!("{before}{word}{behind}");
        let start = before.len();
        for kind in [FileKind::Config, FileKind::Code, FileKind::Text, FileKind::Unknown] {
            let name = name_around(text.as_bytes(), start..start + word.len()).unwrap();
            if name.end < text.len() && is_prose(text.as_bytes(), &name, kind) {
                proptest::prop_assert_eq!(assignment(text.as_bytes(), &name, kind), None);
            }
        }
    }
}
