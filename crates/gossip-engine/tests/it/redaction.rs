//! F1 for every rule, every detector and every encoding: what may be shown of a finding is what all
//! values of its kind begin with, and how long it is.

use gossip_engine::{Finding, Scratch, template};

use crate::encodings;
use crate::support::builtin;

/// Shorter pieces turn up by chance, in rules' names and in numbers.
const WINDOW: usize = 6;

/// Panics if anything that shows `finding` shows more of the secret than its public prefix.
fn assert_redacted(finding: &Finding<'_>) {
    let redacted = finding.secret().redact().to_string();
    let shown = format!("{finding:?} {redacted} {:?}", finding.secret());
    let public = redacted.split('…').next().unwrap_or_default();
    let is_of_all = |literal: &[u8]| literal.starts_with(public.as_bytes());
    let rule = finding.rule();
    assert!(rule.literals().any(is_of_all) || public.is_empty(), "{}: {redacted}", rule.id());
    // A literal may be longer than what is shown of it.
    let secret = finding.secret().expose();
    let begins = rule.literals().filter(|literal| secret.starts_with(literal));
    let rest = &secret[begins.map(<[u8]>::len).max().unwrap_or(0).max(public.len())..];
    // Words of a key file's head turn up in what is shown; digits of a key do not.
    let is_value = |window: &&[u8]| window.iter().all(u8::is_ascii_alphanumeric);
    for window in rest.windows(WINDOW).filter(is_value) {
        let window = std::str::from_utf8(window).expect("ASCII");
        assert!(!shown.contains(window) || rule.id().contains(window), "{}", rule.id());
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn base64(text: &str) -> String {
    encodings::base64(text.as_bytes(), encodings::STANDARD)
}

fn each(text: &str, format: impl Fn(u8) -> String) -> String {
    text.bytes().map(format).collect()
}

#[test]
fn no_finding_of_any_rule_in_any_encoding_shows_its_secret() {
    let engine = builtin();
    let mut scratch = Scratch::new();
    let mut seen = std::collections::BTreeMap::new();
    for example in engine.rules().iter().flat_map(|rule| rule.examples()) {
        let text = template::expand(example, 7).unwrap().text;
        let utf16: Vec<u8> = text.bytes().flat_map(|byte| [byte, 0]).collect();
        for written in [
            text.clone().into_bytes(),
            base64(&text).into_bytes(),
            base64(&base64(&text)).into_bytes(),
            hex(&text).into_bytes(),
            each(&text, |byte| format!("%{byte:02X}")).into_bytes(),
            each(&text, |byte| format!("\\x{byte:02x}")).into_bytes(),
            each(&text, |byte| format!("\\u00{byte:02x}")).into_bytes(),
            utf16,
        ] {
            engine.scan(&mut scratch, &written, Some(b"src/main.tf"), &mut |finding| {
                assert_redacted(&finding);
                *seen.entry(format!("{:?}", finding.encoding())).or_insert(0) += 1;
            });
        }
    }
    let few: Vec<_> = seen.iter().filter(|(_, count)| **count < 100).collect();
    assert!(seen.len() >= 6 && few.is_empty(), "little was looked at: {seen:?}");
}

#[test]
fn passwords_of_files_that_are_known_by_name_are_not_shown() {
    let pgpass = "db.internal:5432:app:app:q8Zr2LmT0v\n";
    let nuget = "<add key=\"ClearTextPassword\" value=\"q8Zr2LmT0v\" />\n";
    let csv = "url,username,password\nhttps://h.internal,app,q8Zr2LmT0v\n";
    for (path, text) in [(".pgpass", pgpass), ("nuget.config", nuget), ("export.csv", csv)] {
        let mut found = 0;
        let report = &mut |finding: Finding<'_>| {
            assert_redacted(&finding);
            found += 1;
        };
        builtin().scan(&mut Scratch::new(), text.as_bytes(), Some(path.as_bytes()), report);
        assert_eq!(found, 1, "{path}");
    }
}

#[test]
fn passwords_that_people_choose_are_not_shown() {
    let chosen = ["Sommer", "Barcelona", "gandalf"].map(|word| format!("{word}{}!", 1990 + 7));
    let lines = |password: &str| {
        [
            format!("server.login(\"app\", \"{password}\")\n"),
            format!("new PDO('mysql:host=db', 'app', '{password}');\n"),
            format!("SetEnv DB_PASSWORD \"{password}\"\n"),
            format!("stats auth app:{password}\n"),
            format!("page.type('#password', '{password}')\n"),
            format!("the password is \"{password}\", he said\n"),
            format!("$clave = '{password}'; $pw = \"{password}\";\n"),
            format!("https://app:{password}@git.internal/x\n"),
        ]
    };
    let mut found = 0;
    for text in chosen.iter().flat_map(|password| lines(password)) {
        let before = found;
        builtin().scan(&mut Scratch::new(), text.as_bytes(), Some(b"app.conf"), &mut |finding| {
            assert_redacted(&finding);
            let context = format!("{:?}", finding.context());
            assert!(!chosen.iter().any(|password| context.contains(password.as_str())));
            found += 1;
        });
        assert!(found > before, "{text}");
    }
}

#[test]
fn what_people_sign_with_or_protect_networks_with_is_not_shown() {
    let chosen =
        ["otterladder#quiver", "hereGoOtters", "otter ladder", "kdxn yjwb vqzt hkrp", "root4813"];
    let lines = |value: &str| {
        [
            (".env", format!("JWT_SECRET=\"{value}\"\nSESSION_SECRET=\"{value}\"\n")),
            ("app.js", format!("app.use(session({{ secret: '{value}' }}));\n")),
            (
                "app.js",
                format!("const s = process.env.JWT_SECRET || '{value}'; jwt.sign(x, '{value}')\n"),
            ),
            ("app.ino", format!("WiFi.begin(\"net\", \"{value}\");\n")),
            (
                "app.kts",
                format!("password = System.getenv(\"SIGN_PASSWORD\")\n    ?: \"{value}\"\n"),
            ),
            (".env", format!("EMAIL_USER=app\nEMAIL_PASS={value}\n")),
        ]
    };
    let mut found = 0;
    for (path, text) in chosen.iter().flat_map(|value| lines(value)) {
        builtin().scan(
            &mut Scratch::new(),
            text.as_bytes(),
            Some(path.as_bytes()),
            &mut |finding| {
                assert_redacted(&finding);
                let context = format!("{:?}", finding.context());
                assert!(!chosen.iter().any(|value| context.contains(value)), "{context}");
                found += 1;
            },
        );
    }
    assert!(found >= 4 * chosen.len(), "{found}");
}

#[test]
fn files_that_are_keys_show_no_byte() {
    let noise: Vec<u8> =
        (0..200u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let jks = [0xFE, 0xED, 0xFE, 0xED, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1];
    let pkcs1 = [0x30, 0x82, 4, 0xA4, 2, 1, 0, 2, 0x82, 1, 1, 0];
    let mut found = 0;
    for head in [&jks[..], &pkcs1] {
        let bytes = [head, &noise].concat();
        builtin().scan(&mut Scratch::new(), &bytes, Some(b"a.bin"), &mut |finding| {
            let redacted = finding.secret().redact().to_string();
            assert!(redacted.starts_with('…'), "{redacted}");
            assert_redacted(&finding);
            found += 1;
        });
    }
    assert_eq!(found, 2);
}
