//! Files that programs keep their secrets in: what is found in them by their names, and only by these.

use gossip_engine::{Scratch, template};

use crate::support::builtin;

const INSTANCES: u64 = 12;

/// Rule and secret of what is found.
fn found(path: &str, text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    builtin().scan(&mut Scratch::new(), text.as_bytes(), Some(path.as_bytes()), &mut |finding| {
        let secret = String::from_utf8_lossy(finding.secret().expose()).into_owned();
        found.push((finding.rule().id().to_owned(), secret));
    });
    found
}

/// Path, template, rule.
type Case = (&'static str, &'static str, &'static str);

fn is_found((path, example, rule): &Case, seed: u64) -> bool {
    let expanded = template::expand(example, seed).unwrap();
    let secret = &expanded.text[expanded.secret];
    found(path, &expanded.text).iter().any(|(by, value)| by == rule && value == secret)
}

#[rustfmt::skip]
const FILES: &[Case] = &[
    ("home/.vault-token", "[[{base62:26}]]\n", "secret-file"),
    ("config/master.key", "[[{hex:32}]]", "secret-file"),
    ("app/config/credentials/production.key", "[[{hex:32}]]\n", "secret-file"),
    ("home/.erlang.cookie", "[[{upper:20}]]\n", "secret-file"),
    ("etc/mongo-keyfile", "[[{base64:1008}]]\n", "secret-file"),
    ("etc/mongodb.key", "[[{base64:64}]]\n{base64:64}\n{base64:40}\n", "secret-file"),
    ("secret.key", "[[{base64:43}=]]\n", "secret-file"),
    ("etc/jwt_secret.txt", "[[{base62:40}]]\n", "secret-file"),
    ("encrypted_data_bag_secret", "[[{base64:512}]]\n", "secret-file"),
    ("zabbix/agent.psk", "[[{hex:64}]]\n", "secret-file"),
    ("group_vars/.vault_pass", "[[{base62:20}]]\n", "password-file"),
    ("vault_password_file", "[[zwetschge7]]\n", "password-file"),
    ("secrets/db_password.txt", "[[Sommer{digit:3}!]]\n", "password-file"),
    (".restic-password", "[[{base62:12}]]\n", "password-file"),
    ("etc/ldap.secret", "[[{base62:12}]]", "password-file"),
    ("openvpn/client/auth.txt", "app\n[[{base62:12}]]\n", "password-file"),
    ("bin/git-askpass.sh", "#!/bin/sh\necho \"[[{base62:12}]]\"\n", "password-file"),
    ("home/.curlrc", "user = \"app:[[{base62:12}5]]\"\n", "login-per-line"),
    ("kubernetes/known_tokens.csv", "[[{base62:32}]],app,1001,\"system:masters\"\n", "login-per-line"),
    ("etc/rsyncd.secrets", "# who may\napp:[[{base62:12}5]]\n", "login-per-line"),
    ("exim4/passwd.client", "*.acme.io:app:[[{base62:12}5]]\n", "login-per-line"),
    ("pgbouncer/userlist.txt", "\"app\" \"[[{base62:12}5]]\"\n", "login-per-line"),
    ("conf/shiro.ini", "[users]\nadmin = [[{base62:12}5]], admin\n", "login-per-line"),
    ("jetty-realm.properties", "admin: [[{base62:12}5]], admin\n", "login-per-line"),
    ("repo/conf/passwd", "[users]\napp = [[{base62:12}5]]\n", "login-per-line"),
    ("etc/ppp/chap-secrets", "# client server secret\napp * \"[[{base62:10}]]\" *\n", "secret-column"),
    ("etc/ppp/pap-secrets", "\"app\"\t*\t\"[[zwetschge]]\"\n", "secret-column"),
    ("etc/ntp.keys", "1 M [[{base62:16}]]\n", "secret-column"),
    ("etc/chrony.keys", "1 SHA256 HEX:[[{HEX:64}]]\n", "secret-column"),
    ("davfs2/secrets", "https://h/dav app [[{base62:12}]]\n", "secret-column"),
    ("ossec/etc/client.keys", "001 h1 10.0.0.1 [[{hex:64}]]\n", "secret-column"),
    ("github-recovery-codes.txt", "[[{hex:5}-{hex:5}\n{hex:5}-{hex:5}\n{hex:5}-{hex:5}\n{hex:5}-{hex:5}]]\n", "recovery-codes-file"),
    ("notes/2026-07-23.txt", "root [[Zwetschge{digit:4}!]]\n", "noted-password"),
    ("Notizen/Zugänge.txt", "kasse: eva.k -> [[zwetschge{digit:3}]]\n", "noted-password"),
    ("slack/general.json", "{{\"type\": \"message\", \"text\": \"[[Zwetschge{digit:2}]]\"}}\n", "noted-password"),
    ("mail/access.eml", "Subject: vpn\n\nuse [[Zwetschge{digit:2}]] for it\n", "noted-password"),
    ("WhatsApp Chat with Eva.txt", "01.02.26, 10:20 - Eva: [[Zwetschge{digit:2}]]\n", "noted-password"),
    ("wiki/Servers.md", "| h1 | root | `[[{base62:12}5a]]` |\n", "noted-password"),
    ("vpn/ipsec.secrets", "app : XAUTH [[{base62:12}]]\n", "ipsec-user-secret"),
    ("asterisk/sip.conf", "secret=[[83{digit:4}]]\n", "telephone-secret"),
    ("tests/login.robot", "    Login             app    [[{base62:12}5a]]\n", "robot-login-password"),
    ("backup.zip!notes/wifi.txt", "Zwetschge\n[[Zwetschge{digit:2}]]\n", "noted-password"),
    ("terraform.tfstate", "\"type\": \"random_string\", \"attributes\": {{ \"result\": \"[[{base62:24}]]\"", "key-in-state"),
];

#[test]
fn what_a_file_is_called_says_what_it_holds() {
    for case in FILES {
        for seed in 0..INSTANCES {
            assert!(is_found(case, seed), "{case:?} {seed}");
        }
        let elsewhere = ("src/notes.rs", case.1, case.2);
        assert!(!is_found(&elsewhere, 1), "{case:?} by any other name");
    }
}

#[test]
fn files_of_such_names_hold_other_things_as_well() {
    for (path, text) in [
        ("config/master.key", "${MASTER_KEY}\n"),
        ("config/master.key", "see the wiki\n"),
        ("public.key", "{base64:43}=\n"),
        ("api_key.txt", "your-api-key-goes-here\n"),
        ("token.txt", "the-name-of-the-token\n"),
        ("askpass.sh", "#!/bin/sh\necho \"$PASSWORD\"\n"),
        (".vault_pass", "#!/bin/sh\npass show vault\n"),
        ("vault_pass.txt", "changeme\n"),
        ("home/.pgpass", "*:*:*:app:none\n"),
        ("password.txt", "password\n"),
        ("bin/bypass.txt", "zwetschge7\n"),
        ("password.txt", "$6${base62:8}${base62:40}\n"),
        ("password", "{{ lookup('env', 'PASSWORD') }}\n"),
        ("passwd", "root:x:0:0:root:/root:/bin/bash\n"),
        ("share/bash-completion/completions/passwd", "complete1\n"),
        ("etc/rsyncd.secrets", "# app:{base62:12}\n"),
        ("userlist.txt", "\"app\" \"md5{hex:32}\"\n"),
        ("shiro.ini", "securityManager = org.apache.shiro.mgt.Manager\n"),
        ("etc/ppp/chap-secrets", "# app * {base62:12} *\n"),
        ("etc/ntp.keys", "# 1 M {base62:16}\n"),
        ("recovery-codes.md", "How to store recovery codes\n\nPrint them.\n"),
        ("docs/install.md", "| h1 | root | `zwetschge{digit:2}` |\n"),
        ("src/ipsec/eap.c", "  app : EAP zwetschge{digit:2}\n"),
        ("asterisk/sip.conf", "secret=12345678\n"),
        ("asterisk/sip_codes.conf", "secret=83{digit:4}\n"),
        ("tests/login.robot", "    Login             app    homepage\n"),
        ("servers/app.log", "root zwetschge{digit:2}\n"),
        ("notes/README.md", "kasse: zwetschge{digit:2}\n"),
        ("node_modules/notes/todo.txt", "zwetschge{digit:2}\n"),
        ("src/notes/page.html", "root zwetschge{digit:2}\n"),
        ("backup_codes.py", "import secrets\n\nCODES = 10\n"),
    ] {
        let text = text.replace("{{", "{{{{").replace("}}", "}}}}").replace("${M", "${{M");
        let text = text.replace("KEY}", "KEY}}");
        for seed in 0..INSTANCES {
            let text = template::expand(&text, seed).unwrap().text;
            assert_eq!(found(path, &text), [], "{path} {text}");
        }
    }
}

/// The public key follows the private one: 64 bytes, in decimals.
#[test]
fn a_key_pair_of_solana_is_a_file_of_its_own() {
    let bytes = |count: u32| {
        let list: Vec<_> = (1..=count)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 13 & 255).to_string())
            .collect();
        format!("[{}]", list.join(", "))
    };
    let rules = |text: &str| found("config/id.json", text);
    assert_eq!(rules(&bytes(64)), [("solana-keypair".to_owned(), bytes(64))]);
    assert_eq!(rules(&bytes(63)), []);
    assert_eq!(rules(&format!("{{\"bytes\": {}}}", bytes(64))), []);
    let counting: Vec<_> = (0..64).map(|at| at.to_string()).collect();
    assert_eq!(rules(&format!("[{}]", counting.join(","))), []);
}

#[test]
fn stores_of_keys_and_tickets_are_found_by_their_names() {
    for path in
        ["etc/krb5.keytab", "p/key4.db", "wallet.dat", "login.keychain-db", "tmp/krb5cc_1000"]
    {
        assert_eq!(
            found(path, ""),
            [("credential-store-file".to_owned(), String::new())],
            "{path}"
        );
    }
    for path in ["keytab.c", "key4.db.md", "mywallet.dat.py", "krb5cc.h"] {
        assert_eq!(found(path, ""), [], "{path}");
    }
}

/// Each line is a match: many of them may not make a file slow.
#[test]
fn long_files_of_such_names_are_read_in_time() {
    let lines = "app other:zwetschge7 q8Zr2LmT0v\n".repeat(30_000);
    for (path, ..) in FILES {
        for text in
            [lines.as_str(), &"a".repeat(1 << 20), &"0f-".repeat(1 << 18), &"1 ".repeat(1 << 19)]
        {
            let started = std::time::Instant::now();
            found(path, text);
            assert!(started.elapsed().as_secs() < 20, "{path}: {:?}", started.elapsed());
        }
    }
}

/// What is that long was not written by hand.
#[test]
fn notes_are_read_word_by_word_up_to_a_limit() {
    let len = gossip_engine::limits::MAX_NOTES_LEN;
    let line = "use Zwetschge2041! there\n";
    let filler = "one word and another\n";
    for (before, count) in [(len - 1000, 1), (len + gossip_engine::limits::SEGMENT_LEN, 0)] {
        let text = filler.repeat(before / filler.len()) + line;
        assert_eq!(found("notes/long.txt", &text).len(), count, "{before}");
    }
}

#[test]
fn a_rule_with_a_path_of_its_own_says_which_files_are_notes() {
    let rules = r#"
        [[rules]]
        id = "own-notes"
        path = '''(?:^|/)handwritten/'''
        detect = "noted-password"
    "#;
    let rules = gossip_engine::RuleSet::from_toml("mine.toml", rules).unwrap();
    let engine = gossip_engine::Engine::new(rules, gossip_engine::Options::default());
    let found = |path: &str| {
        let (mut found, mut scratch) = (0, Scratch::new());
        engine.scan(&mut scratch, b"root Zwetschge4711!\n", Some(path.as_bytes()), &mut |_| {
            found += 1
        });
        found
    };
    assert_eq!((found("handwritten/x.md"), found("notes/x.md"), found("src/x.rs")), (1, 0, 0));
}
