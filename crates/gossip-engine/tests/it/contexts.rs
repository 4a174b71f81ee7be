//! Secrets where people put them, and stand-ins where people put those.

use std::collections::BTreeSet;

use gossip_engine::{Scratch, template};

use crate::encodings::{STANDARD, base64};
use crate::support::{builtin, scan, scan_with};

/// `@` is where the secret goes.
const CONTEXTS: [&str; 26] = [
    "@",
    "@\n",
    "\n@",
    "key = \"@\"\n",
    "let token: &str = \"@\";\n",
    "const t = '@';",
    "$secret = '@';\r\n",
    "var k = `@`;",
    "String key = \"@\"; // production",
    "    \"token\": \"@\",\n",
    "{\"a\":1,\"token\":\"@\",\"b\":[1,2]}",
    "token: @\n",
    "  - name: TOKEN\n    value: \"@\"\n",
    "export TOKEN=@\n",
    "TOKEN=@\r\nOTHER=1\r\n",
    "# old one: @\n",
    "// TODO remove @ before release\n",
    "/* @ */",
    "<token>@</token>",
    "curl -H \"X-Auth: @\" https://api.internal/v1\n",
    "https://api.internal/v1?token=@&page=2",
    "| prod | @ |\n",
    "(@)",
    "[@]",
    "set_token(\"@\");",
    "{\\\"token\\\": \\\"@\\\"}",
];

/// Rules whose example is a secret and nothing else: those with a shape of their own.
fn shaped_rules() -> Vec<(String, String)> {
    let rules = builtin().rules();
    let shaped = rules.iter().flat_map(|rule| {
        let plain = rule.examples().iter().filter(|example| !example.contains("[["));
        plain.map(|example| (rule.id().to_owned(), example.clone()))
    });
    shaped.collect()
}

fn check(text: &str, rule: &str, secret: &str, scratch: &mut Scratch) -> bool {
    let start = text.find(secret).unwrap();
    scan_with(builtin(), scratch, text.as_bytes()).iter().any(|found| {
        found.rule == rule && (found.start, found.end) == (start, start + secret.len())
    })
}

#[test]
fn shaped_secrets_are_found_in_every_context() {
    let mut scratch = Scratch::new();
    let mut failures = BTreeSet::new();
    for (rule, example) in shaped_rules() {
        for seed in 100..103 {
            let secret = template::expand(&example, seed).unwrap().text;
            for context in CONTEXTS {
                let text = context.replace('@', &secret);
                if !check(&text, &rule, &secret, &mut scratch) {
                    failures.insert(format!("{rule} `{example}` in {context:?}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn shaped_secrets_are_found_in_a_long_minified_line() {
    let mut scratch = Scratch::new();
    let filler = "function a(b,c){return b[c]||(b[c]={})}var d=e.f(\"g\");".repeat(400);
    for (rule, example) in shaped_rules() {
        let secret = template::expand(&example, 7).unwrap().text;
        let text = format!("{filler}var k=\"{secret}\";{filler}");
        assert!(check(&text, &rule, &secret, &mut scratch), "{rule} `{example}`");
    }
}

#[test]
fn named_secrets_are_found_behind_other_lines_and_in_comments() {
    let engine = builtin();
    let mut scratch = Scratch::new();
    let mut failures = BTreeSet::new();
    for rule in engine.rules().iter().filter(|rule| rule.id() != "terraform-password") {
        for example in rule.examples().iter().filter(|example| example.contains("[[")) {
            let expanded = template::expand(example, 9).unwrap();
            for (before, after) in
                [("a = 1\n", "\nb = 2\n"), ("a = 1\r\n", "\r\nb = 2\r\n"), ("\t", ""), ("", "\n")]
            {
                let text = format!("{before}{}{after}", expanded.text);
                let secret = before.len() + expanded.secret.start;
                let found = scan_with(engine, &mut scratch, text.as_bytes());
                if !found.iter().any(|f| f.rule == rule.id() && f.start == secret) {
                    failures
                        .insert(format!("{} `{example}` between {before:?} {after:?}", rule.id()));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn stand_ins_are_not_found() {
    let engine = builtin();
    let x = |n: usize| "x".repeat(n);
    let stand_ins = [
        format!("ghp_{}", x(36)),
        format!("ghp_{}", "A".repeat(36)),
        format!("sk_live_{}", x(24)),
        "AKIAIOSFODNN7EXAMPLE".to_owned(),
        "AKIAXXXXXXXXXXXXXXXX".to_owned(),
        format!("glpat-{}", x(20)),
        "xoxb-your-token-here-please".to_owned(),
        format!("AIza{}", x(35)),
        format!("npm_{}", "0".repeat(36)),
        format!("hf_{}", x(34)),
        format!("SG.{}.{}", x(22), x(43)),
        "your-key-here".to_owned(),
        "${SECRET_TOKEN_FROM_ENV}".to_owned(),
        "{{ secrets.TOKEN_NUMBER_1 }}".to_owned(),
        "<your-api-key-goes-here>".to_owned(),
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".to_owned(),
        "00000000000000000000000000000000".to_owned(),
        "REPLACE_ME_WITH_A_REAL_TOKEN_1".to_owned(),
        "example-token-0a9b8c7d6e5f4a3b".to_owned(),
    ];
    for stand_in in &stand_ins {
        for context in CONTEXTS {
            let text = context.replace('@', stand_in);
            assert_eq!(scan(engine, text.as_bytes()), [], "{text:?}");
        }
        for name in ["api_key", "AWS_SECRET_ACCESS_KEY", "DATADOG_API_KEY", "password"] {
            for text in [format!("{name} = \"{stand_in}\""), format!("{name}: {stand_in}\n")] {
                let found = scan(engine, text.as_bytes());
                assert_eq!(found, [], "{text:?}");
            }
        }
    }
}

#[test]
fn a_value_that_somebody_typed_has_low_confidence_or_is_not_found() {
    let engine = builtin();
    let typed = "0123456789abcdef0123456789abcdef";
    assert_eq!(scan(engine, format!("api_key = \"{typed}\"").as_bytes()), []);
    let found = scan(engine, format!("DATADOG_API_KEY={typed}\n").as_bytes());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].confidence, gossip_engine::Confidence::Low);
}

/// Names of services that nobody knows; values as they are given out, and typed.
#[test]
fn keys_of_unknown_services_are_found_beside_a_credential_word() {
    let engine = builtin();
    let hex = template::expand("{hex:32}", 3).unwrap().text;
    let mixed = template::expand("{base62:24}", 3).unwrap().text;
    let typed = "1234567890abcdef1234567890abcdef";
    for (text, value) in [
        (format!("zorbify SECRET {mixed}"), mixed.as_str()),
        (format!("zorbify secret key {mixed}"), &mixed),
        (format!("Zorbify API key: {mixed}"), &mixed),
        (format!("Authorization: Token {hex}"), &hex),
        (format!("zorbify-secrettoken-{hex}"), &hex),
        (format!("X-Zorbify-Token:{hex}\r\n"), &hex),
        (format!("zorbify_key = \"{typed}\""), typed),
        (format!("ZORBIFY_API_TOKEN={typed}"), typed),
        (format!("zorbify TOKEN {typed}"), typed),
    ] {
        let start = text.find(value).unwrap();
        let found = scan(engine, text.as_bytes());
        let spans: Vec<_> = found.iter().map(|found| (found.start, found.end)).collect();
        assert_eq!(spans, [(start, start + value.len())], "{text}");
    }
}

#[test]
fn what_stands_apart_from_a_credential_word_or_names_no_service_is_not_found() {
    let engine = builtin();
    let hex = template::expand("{hex:32}", 3).unwrap().text;
    for text in [
        format!("cache key {hex}"),
        format!("/cache-token-{hex}/"),
        format!("secret-{hex}.txt"),
        "the token begins2024 with a number".to_owned(),
        "timestamp_token = \"1.2.840.113549.1.9.16.1.4\"".to_owned(),
        "nextToken = \"1234567890abcdef1234567890abcdef\"".to_owned(),
        "password hunterxyz2024 is what you type".to_owned(),
    ] {
        assert_eq!(scan(engine, text.as_bytes()), [], "{text}");
    }
}

#[test]
fn published_keys_and_those_of_tests_are_not_found() {
    let engine = builtin();
    let rest = template::expand("{hex:48}", 5).unwrap().text;
    for text in [
        format!("secret_key = \"9d61b19deffd5a60{rest}\""),
        format!("account_key = \"Eby8vdM02xNOcqFlqUwJ{rest}==\""),
        format!("raw_key = test::from_hex(\"{rest}\")"),
    ] {
        assert_eq!(scan(engine, text.as_bytes()), [], "{text}");
    }
}

#[test]
fn a_password_made_as_rules_for_passwords_ask_is_found() {
    let text = "Connect-VIServer -Server a -User b -Password VMware1!";
    assert_eq!(scan(builtin(), text.as_bytes()).len(), 1);
    let text = "Connect-VIServer -Server a -User b -Password internal";
    assert_eq!(scan(builtin(), text.as_bytes()), []);
}

#[test]
fn results_of_tests_are_no_passwords() {
    for result in ["PASS: ld-elf/tls7a.exp", "PASS: objdump2-x", "PASS: Kq7xLm2pVt"] {
        let log = format!("Running tests\n{result}\nFAIL: other\n");
        assert!(scan(builtin(), log.as_bytes()).is_empty(), "{result}");
    }
    assert!(!scan(builtin(), b"  PASS: Kq7xLm2pVt\n").is_empty(), "a key of a mapping");
    assert!(!scan(builtin(), b"PASS=Kq7xLm2pVt\n").is_empty(), "a variable");
}

#[test]
fn ordinary_code_has_no_findings() {
    let engine = builtin();
    let text = r#"
        let token = lexer.next_token()?;
        fn secret_key(&self) -> Option<&SecretKey> { self.secret_key.as_ref() }
        const API_KEY_HEADER: &str = "x-api-key";
        password: Option<String>,
        access_token = response["access_token"]
        tokens: Vec<TokenTree>, // see TokenStream::from_iter
        secret = os.environ.get("CLIENT_SECRET", "")
        "integrity": "sha512-9UZCFRHQdNrfTpGg8+1INIg93B6zE0aXMVFkw1WFwvO4SlZywU6aLg5Of0Ap/PgcbSw4LNxvMWXMeugwMCX0AA=="
        checksum = "2b5b9a3d9b3c7c1f0c1d4f8a7a9a0c9e1b0e7a0f6f7a9f3d2e5c1b4a8d7e6f50"
        key: "some.dotted.configuration.name.v2"
        https://example.com/path/to/page?token=abc
    "#;
    assert_eq!(scan(engine, text.as_bytes()), []);
}

#[test]
fn a_specific_rule_wins_over_a_generic_one_on_the_same_value() {
    let engine = builtin();
    let token = template::expand("ghp_{base62:30}{crc32}", 1).unwrap().text;
    let text = format!("api_token = \"{token}\"\npassword = \"{token}\"\n");
    let found = scan(engine, text.as_bytes());
    let rules: Vec<_> = found.iter().map(|found| found.rule.as_str()).collect();
    assert_eq!(rules, ["github-token", "github-token"]);
}

/// What a name says that stands a little further off, or within another word.
#[test]
fn what_is_public_or_of_something_else_is_left_and_its_neighbour_is_found() {
    let hex = |len| template::expand(&format!("{{hex:{len}}}"), 3).unwrap().text;
    let base62 = |len| template::expand(&format!("{{base62:{len}}}"), 3).unwrap().text;
    let (hex32, hex40, key) = (hex(32), hex(40), base62(26));
    let login = |user: &str, word: &str| {
        let plain = format!("{user}:{word}");
        format!(
            "http-request set-header Authorization Basic\\ {}",
            base64(plain.as_bytes(), STANDARD)
        )
    };
    for (none, one) in [
        (format!("  ReactNativeCameraKit: {hex40}\n"), format!("  prodmerakiKey: {hex40}\n")),
        (
            format!("configure(withAPIKey: \"appl_{key}\")"),
            format!("configure(withAPIKey: \"{key}\")"),
        ),
        (
            format!("const KEY = 'MIIBIjANBgkqhkiG9w0BAQEFAAOC{key}{key}';"),
            format!("const API_KEY = '{key}{key}';"),
        ),
        (
            "{\"tokenStorageKey\": \"@acme/auth_token\"}".to_owned(),
            format!("{{\"token\": \"{key}\"}}"),
        ),
        (
            format!("<Pass encoding=\"crypt\">{key}</Pass>"),
            format!("<Pass kind=\"crypto\">{key}</Pass>"),
        ),
        ("tlspsks: none".to_owned(), format!("tlspsk: {hex32}\n")),
        ("rootpwmodpw none\n".to_owned(), format!("rootpwmodpw: {key}\n")),
        (login("app", "password"), login("app", "OtterLadder")),
        (
            "https://app:password@h.acme.io/".to_owned(),
            "https://app:otter_climbs_my_ladder@h.acme.io/".to_owned(),
        ),
        (
            "API key of the sandbox: **none**".to_owned(),
            format!("API key of the sandbox: **{hex32}**"),
        ),
        (format!("file_key = {key}\n"), format!("api_key = {key}\n")),
    ] {
        assert!(scan(builtin(), none.as_bytes()).is_empty(), "{none}");
        assert!(!scan(builtin(), one.as_bytes()).is_empty(), "{one}");
    }
}
