//! J1 and J2 for all detectors.

use proptest::prelude::*;

use super::*;

const DETECTORS: [Detector; 7] = [
    Detector::NamedPassword,
    Detector::NamedSecret,
    Detector::UrlPassword,
    Detector::Authorization,
    Detector::ServiceKey,
    Detector::PasswordColumn,
    Detector::NotedLogin,
];

/// Pieces of which text near a credential is made.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "password", "api_key", "Token", "SECRET", "auth", "://", "basic ", "Bearer ", "key",
            "--", "=", ": ", " = \"", "\"", "'", "\\\"", "(", ")", ",", "\n", "  value: ", "name: ",
            "<", ">", "</", "{", "0x4f, 12, 7, 99, 200, 3, 8, 17", "stripe", "clockify", "cloudsmith ", "_private-", "user:", "@host", "${",
            "secret ", "-5b939f2ddf9b332f70931407bd485047", "\nInput = 0", "zorbify_", "API ", "zorbify ", " PRIVATE ", "ACCESS-", "TOKEN:", "abcdefghijklmnopqrstuvwxyz12",
            "login(", "jwt.sign(", ".init(", "strcmp(", " pw", "psk", "clave", "creds", " is ", ".type(", "[[",
            "]]", "Sommer2024!", "SetEnv ", "admin:", ".into()", "Some(", "::new", "contrasena", "0 ",
            "user = \"app\"\n", "host: db01\n", "zwetschge", "letmein-prod", "<<\"", "user,password\n", "app,", "\" -> \"", ":password \"", "}", "user, password = ", "\", \"",
            "host,user,password\n", "h1  app  ", "Host    User   Password\n", "| host | pw |\n", "<th>password</th></tr>",
            "<td>q8Zr2LmT</td></tr>", "INSERT INTO t (id, password) VALUES ", "(1, 'q8Zr2LmT'), ", "FROM stdin;\n", " { get; set; } = \"",
            "client(\"", "Client.new('", "- ", "Authorization: Token ", " (prod) = ", "the password was reset to ", "bcrypt.hash('",
            "cpy(x.password, \"", " constant varchar2(9) := '", ", with: \"", " :: ", " ww: ", ">pw: ", "</t>", "&amp;", "\\u0026", "# ", "şifresi ", " digest=\"", "~", ").unwrap_or(\"", "q{", "<value>", "\\'", "\r\n", " / ", "vpn: eva.k / ", "\"root\", \"", "**", "&amp;", "\\u0026", "| initial password |\n",
            "CREATE TABLE `t` (`password` text);\n", "INSERT INTO `t` VALUES ('q8Zr2LmT');\n", "密码：",
            "session({ secret: '", "JWT_SECRET=", "quicktalk#secret", "\")\n    ?: \"", "process.env.DB_USER || \"", "WiFi.begin(\"n\", \"", "User ID=app;",
            ";Integrated Security=True", "\nNONCE: 00\nIN: 0", "kdxn yjwb vqzt hkrp\n", "export ", "...", "config['",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        2 => "[a-z0-9]{32,40}".prop_map(String::into_bytes),
        2 => "[a-zA-Z0-9]{1,40}".prop_map(String::into_bytes),
        1 => "[ -~]{0,80}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..20),
        1 => (1usize..3000).prop_map(|len| b"aZ3 ".iter().copied().cycle().take(len).collect()),
    ]
}

fn words(text: &[u8], detector: Detector) -> Vec<Range<usize>> {
    let lower = text.to_ascii_lowercase();
    let mut words = Vec::new();
    for anchor in detector.anchors() {
        let searched = if anchor.ignore_case { &lower[..] } else { text };
        let starts = memchr::memmem::find_iter(searched, &anchor.bytes);
        let found = starts.map(|at| at..at + anchor.bytes.len());
        words.extend(found.filter(|word| anchor.next.may_be(text.get(word.end))));
    }
    words
}

type Found = (Range<usize>, Range<usize>, Confidence, Reason);

/// What a file is decides how it is read.
fn kind() -> impl Strategy<Value = FileKind> {
    use FileKind::{Catalogue, Code, Config, Text, Unknown};
    prop::sample::select(vec![Code, Config, Text, Catalogue, Unknown])
}

fn detect(detector: Detector, kind: FileKind, text: &[u8], word: Range<usize>) -> Vec<Found> {
    let mut all = Vec::new();
    detector.detect(text, kind, word, &mut |found| {
        all.push((found.whole, found.secret, found.confidence, found.reason));
    });
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// J1: what is further away than the reach changes nothing.
    #[test]
    fn nothing_beyond_the_reach_counts(
        pieces in prop::collection::vec(piece(), 1..24),
        kind in kind(),
    ) {
        let text = pieces.concat();
        for detector in DETECTORS {
            for word in words(&text, detector) {
                let from = word.start.saturating_sub(REACH_BEFORE);
                let to = text.len().min(word.end + REACH_AFTER);
                let inside = word.start - from..word.end - from;
                let near = detect(detector, kind, &text[from..to], inside);
                let shift = |range: Range<usize>| range.start + from..range.end + from;
                let near = near.into_iter().map(|(whole, secret, confidence, reason)| {
                    (shift(whole), shift(secret), confidence, reason)
                });
                prop_assert_eq!(detect(detector, kind, &text, word), near.collect::<Vec<_>>());
            }
        }
    }

    /// Spans lie within the text, the secret within the match.
    #[test]
    fn what_is_found_lies_within(
        pieces in prop::collection::vec(piece(), 1..24),
        kind in kind(),
    ) {
        let text = pieces.concat();
        for detector in DETECTORS {
            for word in words(&text, detector) {
                for (whole, secret, ..) in detect(detector, kind, &text, word) {
                    prop_assert!(whole.end <= text.len() && !secret.is_empty());
                    prop_assert!(whole.start <= secret.start && secret.end <= whole.end);
                }
            }
        }
    }
}

/// The first secret of a file of this kind that the words of passwords and secrets announce.
pub(super) fn found(kind: FileKind, text: &str) -> Option<&str> {
    [Detector::NamedPassword, Detector::NamedSecret].into_iter().find_map(|detector| {
        words(text.as_bytes(), detector).into_iter().find_map(|word| {
            let mut secret = None;
            detector.detect(text.as_bytes(), kind, word, &mut |found| secret = Some(found.secret));
            secret.map(|secret| &text[secret])
        })
    })
}

#[test]
fn what_people_are_shown_is_no_password() {
    for text in ["\"yourpassword\": \"Igamamfihlo\",", "$lang['pass'] = 'Alahidy';"] {
        assert_eq!(found(FileKind::Catalogue, text), None, "{text}");
    }
    assert!(found(FileKind::Catalogue, "\"password\": \"q8Zr2LmT0v\"").is_some());
    let label = "\"mailmypassword\": \"Otthokiha vasya ekootiku\"";
    assert_eq!(found(FileKind::Config, label), None);
}

#[test]
fn what_names_a_credential_or_a_key_is_none() {
    for text in [
        "await this.getCredentials('dhlApi7q')",
        "read_secret(\"xkq-prd-zz9-plur\")",
        "{\"ResetPassword\":{\"qxhttpz1\":{}}}",
        "sign_key: E709712C",
        "GOSU_GPG_KEY=B42F6819007F00F88E364FD4036A9C25BF357DD4",
        "expected_shared_secret = hex!(\"5166f24a6918368e2af831a4affadd97af0ac326bdf143\")",
        "{token : \"xml-pe.xml\"}",
        "add_key('query_graph_rrd')",
    ] {
        assert_eq!(found(FileKind::Config, text), None, "{text}");
    }
    for text in [
        "setCredentials('q8Zr2LmT0vXb')",
        "readonly_token(\"q8Zr2LmT0vXbN5wK\")",
        "sign_key: 3b9d07c41fe86a52908d4f7be1c6a03d",
        "{token : \"q8Zr2LmT0v.N5wKxx\"}",
    ] {
        assert!(found(FileKind::Config, text).is_some(), "{text}");
    }
}

/// Each was silenced once by something that stands beside it.
/// What looks like something that is none, and was once taken for it.
#[test]
fn what_only_looks_like_something_else_is_found() {
    const KEY: &str = "q8Zr2LmT3vWcJ7dYh4sx9";
    for text in [
        "api_key: xkqz-wvbn-rtyp-lmjh\n".to_owned(),
        "license_key: QWRT-ZXPV-BNMK-LJHG\n".to_owned(),
        "app.encrypted.datasource.password: kdxN4jwb!Q\n".to_owned(),
        format!("ENCRYPTED_KEY_PASSWORD={KEY}\n"),
        "SHOPDB_PASSWORD=zwetschge\n".to_owned(),
        "export DB_PASSWORD=\"\\$8kLm!2pQz9\"\n".to_owned(),
        format!("\"MyCompany::Billing::StripeApiKey\": \"{KEY}\"\n"),
        "secret: \"ab:/8kLm2pQ0vTz1xY\"\n".to_owned(),
        format!("LIFECYCLE_MANAGER_SECRET={KEY}\n"),
    ] {
        assert!(found(FileKind::Config, &text).is_some(), "{text}");
    }
}

#[test]
fn what_stands_beside_a_secret_does_not_silence_it() {
    const HEX: &str = "3b9d07c41fe86a52908d4f7be1c6a03d3b9d07c41fe86a52908d4f7be1c6a03d";
    const KEY: &str = "q8Zr2LmT0vXbN5wKcJ7dHfPs3Wq7kP2z";
    for text in [
        format!("DEPLOYER_PRIVATE_KEY=0x{HEX}\nNEXT_PUBLIC_CHAIN_ID=1\n"),
        format!("const privateKey = \"0x{HEX}\";\nconst message = \"hi\";"),
        format!("PRIVATE_KEY={HEX}\nPUBLIC_KEY={HEX}\n"),
        format!("\u{feff}API_KEY={KEY}\n"),
        format!("\u{2022} password: {KEY}\n"),
        format!("\u{5bc6}\u{7801}password: {KEY}\n"),
        format!("ID=\"{HEX}\"\nJWT_SECRET=\"{HEX}\"\nHASH=\"{HEX}\"\n"),
        format!("client.put(\"/prod/db/password\", \"{KEY}\")"),
        format!("vault.write(\"secret/app/api_token\", \"{KEY}\")"),
        format!("{{\"publicKey\":\"{KEY}\",\"privateKey\":\"{HEX}\"}}"),
        format!("<ApiKey>{KEY}</ApiKey><PublicKey>abc</PublicKey>"),
        format!("SLACK_VERIFICATION_TOKEN={KEY}\n"),
        format!("{{\"accessToken\":\"CfDJ8{KEY}{KEY}\"}}"),
        "NT_PASSWORD=Winter2024!x\n".to_owned(),
        format!("WEBSOCKET_KEY={KEY}\n"),
        format!("VALIDATOR_KEY={HEX}\n"),
        format!("API_KEY_MGMT={KEY}\n"),
        "DB_PASSWORD=Progress2024\n".to_owned(),
        "Shared account (password: Wq7!kP2zRm9)\n".to_owned(),
        "if (md5($user) == $u && $password == 'Tr0ub4dor&3x')".to_owned(),
        "password = [\"kdxnyjwbqzrtplmcvhgf\"]".to_owned(),
        format!("secret = hmac_signature(\"{KEY}\")"),
        "passwd Wq7kP2zRm9xx\n".to_owned(),
        "$password = Wq7kP2zRm9xx\n".to_owned(),
        "PASSWORD=Wq7kP2zRm9xx encrypted=no\n".to_owned(),
        "pleaseletmein2024!".replace("please", "DB_PASSWORD=please"),
        "DB_PASSWORD=Winter-2.0x\n".to_owned(),
        // What the name says counts for more than what the value looks like.
        format!("api_token=0x{}\n", &HEX[..40]),
        format!("SECRET=02{HEX}\n"),
        format!("{{\"api_key\": \"04{HEX}{HEX}\"}}"),
        format!("token: tok_{}\n", &KEY[..24].to_lowercase()),
        // What is public stands beside, but is not it.
        format!("  public encryptionKey = '{KEY}';"),
        format!("{{\"publicKey\": \"abc\", \"key\": \"{HEX}\"}}"),
        format!("let signing_key = \"{HEX}\", verifier: Arc<PublicKey> = other"),
        format!("secret = signature(\"{KEY}\")"),
        // Hashes are longer than what is hashed.
        "password = hashed(\"Wq7!kP2zRm9\")".to_owned(),
        "{\"name\": \"db_password\", \"value\": \"Wq7!kP2zRm9\", \"salt\": \"x\"}".to_owned(),
        format!("{{\"name\": \"api_token\", \"value\": \"{KEY}\", \"saltRounds\": 10}}"),
        format!("IsEncrypted=token={KEY}\n"),
        format!("checksum_secret: {KEY}\n"),
        "if [ \"$password\" = Wq7kP2zRm9xx ]; then\n".to_owned(),
        "# $password = Sommer2024!\n".to_owned(),
        // Other neighbours.
        format!("\u{d7} password: {KEY}\n"),
        format!("[\"password\", \"{KEY}\"]"),
        "passwords = [\"zwetschgenmus\"]".to_owned(),
        "key `3b9d07c4a1f2` (secret: `Wq7kP2zRm9xx`)".to_owned(),
    ] {
        assert!(found(FileKind::Config, &text).is_some(), "{text}");
    }
}

/// Each has a neighbour above that is found.
/// Each was silent, or found, by mistake; with what stands beside it that must stay so.
#[test]
fn what_stands_around_a_value_makes_it_one_or_none() {
    use FileKind::{Code, Config, Text};
    for (kind, text, value) in [
        (
            Code,
            "x(\"Data Source=h;User ID=app;Password=fetalino;Integrated Security=False\");",
            "fetalino",
        ),
        (Code, "new Sequelize('shop', 'app', 'yxADgIiJEv', {", "yxADgIiJEv"),
        (Code, "getenv(\"SIGN_PASSWORD\")\n    ?: \"otterchat813\"", "otterchat813"),
        (Code, "# https://h.acme.io/f?user=1207&pass=kdxna\n", "kdxna"),
        (Config, "ENV DB_PASSWORD QWRTZPLKMJHGFX\n", "QWRTZPLKMJHGFX"),
        (Text, "OSS SecretKey:flG8Ljw9K0EBYCUMvZIrUQlzt4XA4K\n", "flG8Ljw9K0EBYCUMvZIrUQlzt4XA4K"),
        (
            Code,
            "$appsecret = \"71499d0c4e75ab3251c1089adb5c4cb0\";\nstatic public $key = 'eebc59dfde239f2ac5e88b0b4ccd6183';",
            "71499d0c4e75ab3251c1089adb5c4cb0",
        ),
    ] {
        assert_eq!(found(kind, text), Some(value), "{text}");
    }
    for (kind, text) in [
        (Config, "export PGUSER PGPASSWORD PGDATABASE\n"),
        (Code, "List(\"password\", \"DBPWD\")"),
        (Code, "echo \"<li>Mot de passe : \".$_POST['x'].\"</li>\";"),
        (Config, "OPENAI_API_KEY=lsv2_pt_...    # of ours\n"),
        (Code, "password = otterladder;\n"),
    ] {
        assert_eq!(found(kind, text), None, "{text}");
    }
}

#[test]
fn public_forms_silence_names_that_speak_of_no_secret() {
    const HEX: &str = "3b9d07c41fe86a52908d4f7be1c6a03d3b9d07c41fe86a52908d4f7be1c6a03d";
    for text in [
        format!("validator_key = \"0x{}\"", &HEX[..40]),
        format!("signer_key = \"02{HEX}\""),
        format!("key = \"04{HEX}{HEX}\""),
        // Letters of both cases are an address's checksum; Stripe numbers its tokens for cards.
        "token = \"0x3B9d07c41Fe86a52908D4f7bE1c6a03d3b9D07C4\"".to_owned(),
        "token = \"tok_1B9d07c41Fe86a52908D4f7b\"".to_owned(),
    ] {
        assert_eq!(found(FileKind::Code, &text), None, "{text}");
    }
}

/// A sentence is judged as any other place.
#[test]
fn what_a_sentence_tells_is_judged_as_an_assignment_is() {
    let told = "The password for the vpn is Wq7kP2zRm9\n";
    assert_eq!(found(FileKind::Text, told), Some("Wq7kP2zRm9"));
    const HEX: &str = "3b9d07c41fe86a52908d4f7be1c6a03d";
    for text in [
        // A commit, a test vector, a name that is only spelled out.
        "the token for auth is `3b9d07c41fe8`](https://x.y)".to_owned(),
        format!("the token of the vector: {HEX}\nInput = {HEX}\n"),
        "the key2fa_token for x: key2fa-token\n".to_owned(),
    ] {
        assert_eq!(found(FileKind::Text, &text), None, "{text}");
    }
    let key = format!("the api key of the staging system is {HEX}\n");
    assert_eq!(found(FileKind::Text, &key), Some(HEX));
    // In quotes as without them.
    const KEY: &str = "q8Zr2LmTvT0mL2rZx9Kp4Wn7";
    let key = format!("the acme key \"{KEY}\" expires\n");
    assert_eq!(found(FileKind::Unknown, &key), Some(KEY));
    assert_eq!(found(FileKind::Text, "the acme key \"backwards_1\" expires\n"), None);
}

/// What people note down, in their language and by their abbreviations.
#[test]
fn notes_tell_passwords_in_other_languages_and_in_elements() {
    for text in [
        "Modem şifresi: q8Zr2LmT\n",
        "wifi parolası: q8Zr2LmT\n",
        "Router login app ww: q8Zr2LmT\n",
        "Identifiant : app, mdp : q8Zr2LmT.\n",
        "<t>PW: q8Zr2LmT</t>",
        "<p>user app password q8Zr2LmT</p>",
        "bindpw: q8Zr2LmT\n",
        "- Mail: app@acme.io, wachtwoord zwetschge87\n",
        "passord: q8Zr2LmT\n",
        "the root password on db1 is q8Zr2LmT now\n",
        "password - q8Zr2LmT\n",
        "[Note] A temporary password is generated for root@localhost: q8Zr2LmTx7Kp\n",
    ] {
        assert!(found(FileKind::Unknown, text).is_some(), "{text}");
    }
    for text in [
        "wachtwoord zwetschge87 is verlopen\n",
        "Zie www: q8Zr2LmT\n",
        "the password on db1 is zwetschge now\n",
        "password - see sha256\n",
        "<p>reset your password first</p>",
        "one can also pass `crc32c` here\n",
        "&#39;Password resets1.&#39;</span>",
    ] {
        assert_eq!(found(FileKind::Unknown, text), None, "{text}");
    }
    // What ends the sentence is none of it.
    let text = "the old password was q8Zr2LmT. It is gone\n";
    assert_eq!(found(FileKind::Unknown, text), Some("q8Zr2LmT"));
    // No word, and one.
    assert_eq!(found(FileKind::Unknown, "(password `qtxtktbt`)"), Some("qtxtktbt"));
    assert_eq!(found(FileKind::Unknown, "(password `obsolete`)"), None);
}

#[test]
fn passwords_are_told_in_east_asia() {
    for text in [
        "パスワード: zwetschge26\n",
        "密码：zwetschge26\n",
        "WiFi密码：zwetschge26\n",
        "비밀번호: zwetschge26\n",
    ] {
        assert_eq!(found(FileKind::Unknown, text), Some("zwetschge26"), "{text}");
    }
    for text in ["密码错误：zwetschge26\n", "パスワードを入力してください\n"] {
        assert_eq!(found(FileKind::Unknown, text), None, "{text}");
    }
}

#[test]
fn what_pages_say_is_read_as_text() {
    let told = "<p>your temporary password is <b>Wq7kP2zRm9</b>.</p>";
    assert_eq!(found(FileKind::Code, told), Some("Wq7kP2zRm9"));
    let told = "<p>User: app<br>Password: zwetschge26</p>";
    assert_eq!(found(FileKind::Code, told), Some("zwetschge26"));
    assert_eq!(found(FileKind::Code, "<label>Password: <input></label>"), None);
}

/// What documentation shows was chosen as an example, unless it is made as rules for passwords ask.
#[test]
fn documentation_shows_examples_and_what_rules_ask_for() {
    assert_eq!(found(FileKind::Text, "password: Zwetschge26!\n"), Some("Zwetschge26!"));
    assert_eq!(found(FileKind::Text, "password: zwetschge26\n"), None);
    assert_eq!(found(FileKind::Unknown, "password: zwetschge26\n"), Some("zwetschge26"));
}
