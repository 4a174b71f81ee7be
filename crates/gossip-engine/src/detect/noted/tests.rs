use proptest::prelude::*;

use super::*;

fn found(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    detect(text.as_bytes(), 0..text.len(), &mut |detected| found.push(detected.secret));
    found.into_iter().map(|secret| &text[secret]).collect()
}

#[track_caller]
fn check(text: &str, value: &str) {
    assert_eq!(found(text), [value], "{text}");
}

#[track_caller]
fn check_none(texts: &[&str]) {
    for text in texts {
        assert_eq!(found(text), [""; 0], "{text}");
    }
}

#[test]
fn a_password_stands_behind_its_user() {
    for text in [
        "root zwetschge7\n",
        "nas: root / zwetschge7",
        "nas -> admin -> zwetschge7 (old)",
        "ILO: Administrator with zwetschge7, ask first",
        "eva.k + zwetschge7",
        "wiki: eva@acme.io, zwetschge7",
        "| h1 | ACME\\eva | zwetschge7 |",
        "h1   10.0.0.1   backup   zwetschge7",
        "<tr><td>root</td><td>zwetschge7</td></tr>",
        "h1,10.0.0.1,admin,zwetschge7,x",
        "h1\tadmin\tzwetschge7\tx",
        "root -> **zwetschge7**",
        "user eva, zwetschge7",
        "вход: root zwetschge7",
        "数据库：sa，zwetschge7",
        "the new vpn user eva (zwetschge7)",
        "admin:zwetschge7",
        "db: system/zwetschge7@db1:1521/XE",
        "app pw zwetschge7",
        "口令 zwetschge7",
    ] {
        check(text, "zwetschge7");
    }
    check_none(&[
        "the user zwetschge7",
        "we support zwetschge7",
        "root plum",
        "host zwetschge7",
        "root /var/lib/zwetschge7",
        "admin:",
        "root (see the store)",
        "oracle / v14.2-alpine3",
        "admin eva7@acme.io",
    ]);
}

#[test]
fn less_is_said_of_what_looks_like_a_password() {
    for text in [
        "it's Zwetschge26 now",
        "Bob: Zwetschge26",
        "[01.02.2026 10:20:30] Bob: Zwetschge26",
        "10:20 <@bob> Zwetschge26",
        "> Zwetschge26\n",
        "  - Zwetschge26\r\n",
        "{\"user\": \"bob\", \"text\": \"Zwetschge26\", \"ts\": \"1\"}",
        "<sms body=\"use Zwetschge26 for it\" />",
        "guest wifi → Zwetschge26",
        "会議室：Zwetschge26",
        "wlan\tZwetschge26\n",
        "c'est Zwetschge26 (sans espace)",
    ] {
        check(text, "Zwetschge26");
    }
    check("the beamer wants q8Zr2LmT0vKpW as always", "q8Zr2LmT0vKpW");
    check("the beamer wants Zw3tschge!x as always", "Zw3tschge!x");
    check("plum-otter-ladder-quiver\n", "plum-otter-ladder-quiver");
    check_none(&[
        "the party Zwetschge26 is on Friday",
        "the team name is Zwetschge26",
        "codename will be Zwetschge26",
        "Zwetschge2026! – the plan",
        "Bob: Thanks!",
        "Bob: Zwetschgen?",
        "{\"id\": \"Zwetschge26\"}",
        "<a href=\"x?name=Zwetschge26\">here</a>",
        "<uuid>q8Zr2LmT0vKpW4xN+s==</uuid>",
        "print(\"Zwetschge26\")",
        "X-Mailer: Zwetschge26",
        "ticket: Zwetschge26",
        "a,b,Zwetschge26,c",
        "| zwetschge26 | 10.0.0.1 | see the store |",
    ]);
}

#[test]
fn much_else_has_digits_and_signs() {
    check_none(&[
        "Bob: https://acme.io/Zwetschge26",
        "Bob: Room204\n",
        "Bob: Sprint-42",
        "Bob: 2026-07-23",
        "Bob: 10:30",
        "Bob: v2.14.3-rc1",
        "Bob: OPS-7422",
        "Bob: DS-2CD27G2",
        "Bob: K98PL4HW#HMB",
        "Bob: 3f4e5d6c7b8a",
        "Bob: 9b2f6c1e-7d34-4a58-b0c9-3e1f5a7d8c26",
        "Bob: price_3b9d07c41fe8",
        "Bob: db-prod-07",
        "Bob: eu-west-1",
        "Bob: riscv64",
        "Bob: getUser3",
        "Bob: PickCostBasedL0Files",
        "Bob: 64MB_max",
        "Bob: --depth=12",
        "Bob: x2.acme.io",
        "Bob: Notes26.docx",
        "Bob: @eva42",
        "Bob: flush~10KB",
        "Bob: Utf8PathBuf",
        "Bob: legacy-plum-links",
        "Bob: **Ujjwal",
        "user_id: Zwetschge26x",
        "main.rs: zwetschge26x",
        "a\tb\tZwetschge26\tc",
        "see\nlong=\nZwetschge26!\n",
        "Zwetschge26!=\nlong",
        "root -> Zwets26,chge",
        "root -> Zwets&amp;chge26",
        "Bob: 2*Boundary",
        "Bob: RETRIES=Max12",
        "PASS: Zwetschge26-x.exp of 12",
        "\u{fc}brigZwetschge26",
    ]);
    let block = "q8Zr2LmT0vKpW4xNq8Zr2LmT0vKpW4xNq8Zr2LmT0vKpW4xNq8Zr2LmT0vKpW4xN";
    check_none(&[&format!("{block}\n{block}\nq8Zr2LmT0vKpW4xN\n")]);
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[ \t,;:|/>\"`<(\n-]{1,3}".prop_map(String::into_bytes),
        "(root|admin|eva\\.k|eva@acme\\.io|user|is|with|host|\"text\": \"|<td>)"
            .prop_map(String::into_bytes),
        "[A-Za-z0-9!#%@_.-]{1,14}".prop_map(String::into_bytes),
        "[A-Za-z0-9+/]{60,80}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 1..6),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// J1: what is further away than the reach changes nothing, and neither does where a part begins.
    #[test]
    fn nothing_beyond_the_reach_counts(
        pieces in prop::collection::vec(piece(), 1..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let text = pieces.concat();
        let all = |owned: Range<usize>| {
            let mut all = Vec::new();
            detect(&text, owned, &mut |found| all.push(found.secret));
            all
        };
        let whole = all(0..text.len());
        let cut = cut.index(text.len());
        prop_assert_eq!(&whole, &[all(0..cut), all(cut..text.len())].concat());
        for secret in whole {
            prop_assert!(!secret.is_empty() && secret.end <= text.len());
            let start = secret.start.saturating_sub(REACH_BEFORE);
            let end = text.len().min(secret.end + REACH_AFTER);
            let owned = secret.start.saturating_sub(MAX_WORD).max(start) - start..secret.end - start;
            let mut near = Vec::new();
            detect(&text[start..end], owned, &mut |found| near.push(found.secret));
            prop_assert!(near.contains(&(secret.start - start..secret.end - start)));
        }
    }
}
