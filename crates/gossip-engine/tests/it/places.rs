//! Secrets that a rule finds by what else their file holds, or passes over by what the file is.

use gossip_engine::{Scratch, template};

use crate::support::builtin;

/// Rule and secret of what is found.
fn found(path: &str, text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    builtin().scan(&mut Scratch::new(), text.as_bytes(), Some(path.as_bytes()), &mut |finding| {
        let secret = String::from_utf8(finding.secret().expose().to_vec()).unwrap();
        found.push((finding.rule().id().to_owned(), secret));
    });
    found
}

fn expanded(template: &str) -> String {
    template::expand(template, 7).unwrap().text
}

/// The id of a key is none, and its PEM block is not reported once more.
#[test]
fn a_service_account_key_is_one_finding() {
    let key = expanded("{pem-escaped:PRIVATE KEY}");
    let id = expanded("{hex:40}");
    let kind = "\"type\": \"service_account\"".to_owned();
    let id = format!("\"private_key_id\": \"{id}\"");
    let mail = "\"client_email\": \"app@acme.iam.gserviceaccount.com\"".to_owned();
    let private = format!("\"private_key\": \"{key}\\n\"");
    for fields in [[&kind, &id, &private, &mail], [&mail, &private, &id, &kind]] {
        let fields = fields.map(String::as_str);
        for text in [
            format!("{{\n  {}\n}}\n", fields.join(",\n  ")),
            format!("GOOGLE_CREDENTIALS='{{{}}}'\n", fields.join(",").replace(": ", ":")),
        ] {
            let expected = ("gcp-service-account-key".to_owned(), key.clone());
            assert_eq!(found("sa.json", &text), [expected], "{text}");
        }
        let escaped = fields.join(", ").replace('\\', "\\\\").replace('"', "\\\"");
        let expected = ("gcp-service-account-key".to_owned(), key.replace('\\', "\\\\"));
        assert_eq!(found("app.json", &format!("{{\"env\": \"{{{escaped}}}\"}}")), [expected]);
    }
    assert_eq!(found("sa.json", &format!("{{{id}}}")), []);
    let alone = found("app.json", &format!("{{{private}}}"));
    assert_eq!(alone, [("private-key".to_owned(), key)]);
}

#[test]
fn what_documentation_shows_is_nobodys_session() {
    let text = expanded("Set-Cookie: JSESSIONID={HEX:32}; Path=/\n");
    for path in ["docs/login.md", "README.markdown", "guide.rst", "a.adoc"] {
        assert_eq!(found(path, &text), [], "{path}");
    }
    for path in ["access.log", "capture.txt", "md"] {
        assert_eq!(found(path, &text).len(), 1, "{path}");
    }
}
