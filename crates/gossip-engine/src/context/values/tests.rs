//! Lines as people write them, each with what is shown of it.

use proptest::prelude::*;

use super::*;
use crate::template;

/// The line with its values masked; `@@` is the secret.
fn masked(line: &str) -> String {
    let (before, after) = line.split_once("@@").unwrap();
    let (before, after) = without(before, after);
    format!("{before}@@{after}")
}

#[test]
fn values_of_credentials_are_masked_however_they_are_written() {
    for (line, expected) in [
        ("password=swordfish t=@@", "password=… t=@@"),
        ("t=@@ password=correct-horse-battery", "t=@@ password=…"),
        ("pw: abc, t=@@", "pw: …, t=@@"),
        ("secret=don't-tell t=@@", "secret=… t=@@"),
        ("'X-Auth: abc' t=@@", "'X-Auth: …' t=@@"),
        ("PIN=1234 t=@@", "PIN=… t=@@"),
        ("{\"password\": \"sword fish\", \"t\": \"@@\"}", "{\"password\": \"…\", \"t\": \"@@\"}"),
        ("\\\"password\\\": \\\"a b\\\", t=@@", "\\\"password\\\": \\\"…\", t=@@"),
        ("password = \"a\\\"bc d\" t=@@", "password = \"…\" t=@@"),
        ("pass = \"ab\" + \"cd\" t=@@", "pass = \"…\" t=@@"),
        ("secret := []byte(\"sword fish\"), @@", "secret := […\"), @@"),
        ("<password>sword fish</password> @@", "<password>…</password> @@"),
        ("mysql --password swordfish @@", "mysql --password … @@"),
        ("the password is swordfish, @@", "the password is … @@"),
        ("passphrase: correct horse battery T=@@", "passphrase: … T=@@"),
        ("?password=abc&t=@@&x=1", "?password=…&t=@@&x=1"),
        ("Authorization: Basic YWJj t=@@", "Authorization: … … t=@@"),
        ("define('DB_PASSWORD', 'abc'); @@", "define('DB_PASSWORD', '…'); @@"),
        ("db=postgres://u:swordfishes@h/db t=@@", "db=postgres://u:…@h/db t=@@"),
        ("https://swordfish@h/x @@", "https://…@h/x @@"),
        ("passwords = [\"swordfish\", \"catfish\"], t=@@", "passwords = [\"…\"], t=@@"),
        ("passwords = ('a', 'b', 'c'), t=@@", "passwords = ('…'), t=@@"),
        ("passwords = {\"a\",\"b\"}; @@", "passwords = {\"…\"}; @@"),
        ("set_password(\"bob\", \"@@\")", "set_password(\"…\", \"@@\")"),
        ("sshpass -p swordfish ssh bob@h @@", "sshpass -p …@@"),
        ("sshpass -pswordfish ssh bob@h; t=@@", "sshpass -p…; t=@@"),
        ("docker login -u bob -p swordfish reg T=@@", "docker login -u … T=@@"),
        ("T=@@ docker login --username bob -p swordfish", "T=@@ docker login --username …"),
        ("pw: correct horse, t=@@", "pw: …, t=@@"),
        ("secret: correct horse battery T=@@", "secret: … T=@@"),
        ("db_creds = correct horse @@", "db_creds = …@@"),
        ("sshpass -p 'sword;fish' ssh bob@h T=@@", "sshpass -p … T=@@"),
        ("sshpass -p \"a|b&c d\" ssh bob@h; T=@@", "sshpass -p …; T=@@"),
        ("sshpass -psword';'fish ssh bob@h T=@@", "sshpass -p… T=@@"),
        ("don't: sshpass -p 'sword;fish' ssh h T=@@", "don't: sshpass -p … T=@@"),
        ("sshpass -p sword\\;fish ssh bob@h T=@@", "sshpass -p … T=@@"),
        ("sshpass -p 'one;two @@ fish;three' x", "sshpass -p …@@…"),
        ("sshpass -p 'sword;fish @@ and", "sshpass -p …@@…"),
        ("T=@@; sshpass -p 'sword;fish' ssh h", "T=@@; sshpass -p …"),
        ("sh -c 'sshpass -p abc ssh h' T=@@", "sh -c 'sshpass -p … T=@@"),
        ("{\"run\": \"login -p 'a;b' h\", \"t\": \"@@\"}", "{\"run\": \"login -p … \"t\": \"@@\"}"),
        ("\"login -p \\\"a;b\\\" h\", \"t\": \"@@\"", "\"login -p … \"t\": \"@@\""),
        ("vault login --id=swordfish T=@@", "vault login --id=… T=@@"),
        ("vault login --id='sword;fish' T=@@", "vault login --id=… T=@@"),
        ("vault login --id=a:b --no-store T=@@", "vault login --id=…@@"),
        ("vault login --id=@@ T=x", "vault login --id=@@ T=x"),
        ("vault login --id=@@ -p swordfish; ls", "vault login --id=@@…; ls"),
        ("docker login -u @@ -p swordfish T=x", "docker login -u @@… T=x"),
        ("docker login -u bob -p  sword:fish reg T=@@", "docker login -u … T=@@"),
        ("docker login -u bob -p 'sword: fish' reg T=@@", "docker login -u … T=@@"),
    ] {
        assert_eq!(masked(line), expected, "{line}");
    }
}

#[test]
fn what_is_left_of_a_value_around_the_secret_is_masked() {
    for (line, expected) in [
        ("k=@@rest, x", "k=@@…, x"),
        ("k=firstpart-@@", "k=…@@"),
        ("password = \"one @@ two\" x", "password = \"…@@…\" x"),
        ("db=postgres://u:one@@two@h/db", "db=postgres://u:…@@…@h/db"),
    ] {
        assert_eq!(masked(line), expected, "{line}");
    }
}

#[test]
fn what_is_no_value_is_shown() {
    for line in [
        "let key = \"@@\"; // prod",
        "GITHUB_TOKEN=@@  # prod",
        "the token for the server in Rome: @@",
        "curl -H 'Authorization: @@' https://example.com/a/b",
        "db=postgres://user:@@@host/db",
        "call(\"@@\", 42, name)",
        "{\"key\":\"GH_BOT_A\",\"value\":\"@@\"}",
        "<add key=\"GH_BOT_12\" value=\"@@\"/>",
        "- {key: GH_BOT_one, value: @@}",
        "key = K8S_TOKEN; value = \"@@\"",
        "x: {\\\"key\\\": \\\"GH_BOT_12\\\", \\\"value\\\": \\\"@@\\\"}",
    ] {
        assert_eq!(masked(line), line);
    }
}

/// Only what is written as names are is one.
#[test]
fn what_could_be_a_value_in_the_place_of_a_name_is_masked() {
    let made = |template: &str| template::expand(template, 11).unwrap().text;
    let values = [
        made("sk_live_{base62:24}"),
        made("corp_{base62:24}"),
        made("CORP_{base62:24}"),
        made("CORP_{upper:16}"),
        made("AB_{hex:12}"),
        "swordfish".to_owned(),
        "SWORDFISH".to_owned(),
        "correct_horse".to_owned(),
        "Correct_Horse".to_owned(),
        "ADMIN_swordfish".to_owned(),
        "A1B_C2D_E3F".to_owned(),
        "bot".to_owned(),
        "A_1".to_owned(),
        "_GH_BOT".to_owned(),
        "GH-BOT".to_owned(),
    ];
    for value in values {
        for line in [
            "{\"key\":\"#\",\"value\":\"@@\"}",
            "<add key=\"#\" value=\"@@\"/>",
            "- {key: #, value: @@}",
            "key: #, value: @@",
        ] {
            let shown = line.replace('#', "…");
            assert_eq!(masked(&line.replace('#', &value)), shown, "{value} in {line}");
        }
    }
    for (line, expected) in [
        ("key: swordfish, value: @@", "key: …, value: @@"),
        ("private key = correct_horse; value = @@", "private key = …; value = @@"),
        ("private key = SWORD_FISH; value = @@", "private key = …; value = @@"),
        (
            "\"private key\": \"SWORD_FISH\", \"value\": \"@@\"",
            "\"private key\": \"…\", \"value\": \"@@\"",
        ),
        ("key SWORD_FISH, value: @@", "key …, value: @@"),
        ("key: SWORD_FISH value of @@", "key: … value of @@"),
        ("key: \"SWORD_FISH, value: x\" t=@@", "key: \"…\" t=@@"),
        ("pw = \"key: SWORD_FISH, value: x\", t=@@", "pw = \"…\", t=@@"),
    ] {
        assert_eq!(masked(line), expected, "{line}");
    }
}

proptest! {
    /// Whatever a shell needs quotes for.
    #[test]
    fn a_quoted_argument_is_masked_to_its_end(password in "[b-f;&|:=#\"\\[{(, -]{1,12}") {
        for (line, expected) in [
            ("sshpass -p '#' ssh bob@h T=@@", "sshpass -p … T=@@"),
            ("sshpass -p'#' ssh bob@h T=@@", "sshpass -p… T=@@"),
            ("docker login -u bob -p '#' h; T=@@", "docker login -u …; T=@@"),
            ("vault login --id='#' T=@@", "vault login --id=… T=@@"),
            ("T=@@ vault login --id '#'", "T=@@ vault login --id …"),
        ] {
            prop_assert_eq!(masked(&line.replace('#', &password)), expected);
        }
    }

    /// Signs in any order are read to their end, and only ever masked.
    #[test]
    fn what_is_shown_was_there(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "key", "value", "login", "GH_BOT", "b", " ", "-p", "--id", "=", ":", ",", ";", "'",
                "\"", "\\", "{", "<", "…", "@",
            ]),
            0..24,
        ),
        at in any::<prop::sample::Index>(),
    ) {
        let (before, after) = parts.split_at(at.index(parts.len() + 1));
        for (text, shown) in [before.concat(), after.concat()].iter().zip(
            <[String; 2]>::from(without(&before.concat(), &after.concat())),
        ) {
            let mut rest = text.as_str();
            for part in shown.split(MASK) {
                let found = rest.find(part);
                prop_assert!(found.is_some(), "{shown:?} of {text:?}");
                rest = &rest[found.unwrap() + part.len()..];
            }
        }
    }
}
