//! Files that are keys, by their names and by their bytes.

use gossip_engine::{Reason, Scratch};

use crate::support::builtin;

fn rules(path: &str, bytes: &[u8]) -> Vec<(String, Reason)> {
    let mut found = Vec::new();
    builtin().scan(&mut Scratch::new(), bytes, Some(path.as_bytes()), &mut |finding| {
        found.push((finding.rule().id().to_owned(), finding.reason()));
    });
    found
}

fn found(path: &str, bytes: &[u8]) -> Vec<String> {
    rules(path, bytes).into_iter().map(|(rule, _)| rule).collect()
}

/// Bytes without meaning, the same each time.
fn noise(len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[test]
fn stores_of_keys_are_found_by_their_names() {
    for path in ["a/release.p12", "x.PFX", "debug.keystore", "b.jks", "passwords.kdbx"] {
        assert_eq!(rules(path, b""), [("keystore-file".to_owned(), Reason::Path)], "{path}");
    }
    for path in ["a/p12", "keystore.rs", "jks.txt"] {
        assert_eq!(found(path, b""), [] as [&str; 0], "{path}");
    }
}

#[test]
fn keys_and_stores_are_found_by_their_bytes() {
    let rsa = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01];
    let jks =
        [&[0xFE, 0xED, 0xFE, 0xED, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1][..], &noise(200)].concat();
    let head = [0x30, 0x82, 0x09, 0x51, 2, 1, 3, 0x30, 0x82, 0x09, 0x17, 6, 9];
    let p12 = [&head[..], &rsa, &[0x07, 0x01], &noise(200)].concat();
    let pkcs1 = [&[0x30, 0x82, 4, 0xA4, 2, 1, 0, 2, 0x82, 1, 1, 0][..], &noise(200)].concat();
    let head = [0x30, 0x82, 4, 0xBE, 2, 1, 0, 0x30, 0x0D, 6, 9];
    let tail = [1, 1, 5, 0, 4, 0x82, 4, 0xA8, 0x30, 0x82, 4, 0xA4, 2, 1, 0, 2, 0x82, 1, 1, 0];
    let pkcs8 = [&head[..], &rsa, &tail, &noise(200)].concat();
    for (bytes, rule) in [
        (jks, "java-keystore"),
        (p12, "pkcs12-keystore"),
        (pkcs1, "der-private-key"),
        (pkcs8, "der-private-key"),
    ] {
        assert_eq!(found("blob.bin", &bytes), [rule]);
        // What it was found to be is said once, and not by its name as well.
        assert_eq!(found("release.p12", &bytes), [rule]);
        // Cut off within the first bytes it is nothing.
        assert_eq!(found("blob.bin", &bytes[..10]), [] as [&str; 0], "{rule}");
    }
    let public = [&[0x30, 0x82, 1, 0x22, 0x30, 0x0D, 6, 9][..], &rsa, &[1, 1, 5, 0], &noise(200)];
    assert_eq!(found("public.der", &public.concat()), [] as [&str; 0]);
}

#[test]
fn a_pgpass_is_read_by_its_name_and_its_lines_by_their_port() {
    let text = b"# comment\ndb.internal:5432:app:app:q8Zr2LmT0v\n*:*:app:app:password\n";
    assert_eq!(found("home/.pgpass", text), ["pgpass-password"]);
    assert_eq!(found("home/other", text), ["pgpass-line"]);
    let text = b"db.internal:5400:app:app:q8Zr2LmT0v\n*:*:app:app:q8Zr2LmT0v\n";
    assert_eq!(found("home/.pgpass", text), ["pgpass-password", "pgpass-password"]);
    assert_eq!(found("home/other", text), [] as [&str; 0]);
}

#[test]
fn the_secrets_of_tunnels_are_read_by_their_name_only() {
    let text = b": RSA gw.key\n: RSA gw.key \"Tea2017%\"\n10.0.0.1 10.0.0.2 : PSK \"q8Zr2LmT0v\"\n\
        #app : EAP \"q8Zr2LmT0v\"\napp : XAUTH 'zwetschge'\napp : EAP \"<password>\"\n";
    assert_eq!(found("etc/ipsec.secrets", text), ["ipsec-secret"; 3]);
    // What a note says of a key is found there, too, but by its name.
    assert_eq!(found("etc/notes", text), ["generic-password"]);
}

#[test]
fn relays_and_states_are_read_by_their_names_only() {
    let relay = b"[smtp.acme.io]:587  app@acme.io:Sommer2024!\n# comment\n";
    let state = b"\"type\": \"random_password\",\n\"length\": 16,\n\"result\": \"CzU+mX5a*fUz\"";
    for (path, text, rule) in [
        ("etc/postfix/sasl_passwd", &relay[..], "sasl-password-map"),
        ("infra/terraform.tfstate", state, "terraform-random-password"),
    ] {
        assert_eq!(found(path, text), [rule]);
        assert!(!found("home/other", text).iter().any(|found| found == rule));
    }
}

#[test]
fn a_nuget_config_is_read_by_its_name_only() {
    let text = b"<add key=\"ClearTextPassword\" value=\"Unlocked2\" />\n\
        <add key=\"ClearTextPassword\" value=\"%NUGET_TOKEN%\" />\n\
        <add key=\"ClearTextPassword\" value=\"#{NugetToken}#\" />\n\
        <add key=\"ClearTextPassword\" value=\"&lt;password&gt;\" />\n";
    assert_eq!(found("src/NuGet.config", text), ["nuget-config-password"]);
    assert_eq!(found("src/notes", text), [] as [&str; 0]);
    let keys = b"<add key=\"https://nuget.acme.io/\" value=\"q8Zr2LmT0vxB5wKd7yNp\" />\n\
        <add key=\"https://nuget.acme.io/v3\" value=\"https://nuget.acme.io/v3/index.json\" />\n";
    assert_eq!(found("src/NuGet.config", keys), ["nuget-config-key"]);
}

#[test]
fn a_file_of_passwords_is_read_by_its_name_only() {
    let text = b"wiki: Sommer2024!\nshop  app@acme.io  q8Zr2LmT0v\nmail - bob / Winter23\n\
        site: https://acme.io/\nuser: administrator\nthe rest is in the safe\npin: 4711\n";
    assert_eq!(found("Desktop/my passwords.txt", text), ["password-list"; 3]);
    assert_eq!(found("Desktop/Zugangsdaten.txt", text), ["password-list"; 3]);
    assert!(!found("Desktop/notes.txt", text).contains(&"password-list".to_owned()));
}

#[test]
fn every_row_of_a_list_of_passwords_is_read() {
    let text = b"url,username,password\nhttps://h.internal,app,q8Zr2LmT0v\nhttps://i.internal,bob,vT0mL2rZ8q\n";
    assert_eq!(found("export.csv", text), ["password-column"; 2]);
    assert_eq!(found("notes", text), ["password-column"; 2]);
    assert_eq!(found("export.csv", b"url,username,password\nx,app,password\n"), [] as [&str; 0]);
}

#[test]
fn a_kubernetes_secret_is_found_in_whatever_order_its_parts_stand() {
    let value = "cThacjJMbVQwdlhiTjV3Sw==";
    for (path, text) in [
        ("a.yaml", format!("kind: Secret\nmetadata:\n  name: s\ndata:\n  db: {value}\n")),
        ("a.yaml", format!("data:\n  db: {value}\nkind: Secret\nmetadata:\n  name: s\n")),
        (
            "a.yaml",
            format!("metadata:\n  name: s\ndata:\n  db: {value}\n  x: eQ==\nkind: Secret\n"),
        ),
        ("a.json", format!("{{\"kind\": \"Secret\", \"data\": {{\"db\": \"{value}\"}}}}")),
    ] {
        assert_eq!(found(path, text.as_bytes()), ["kubernetes-secret"], "{text}");
        let other = text.replace("Secret", "ConfigMap");
        assert_eq!(found(path, other.as_bytes()), [] as [&str; 0], "{other}");
    }
}
