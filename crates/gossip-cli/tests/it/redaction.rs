//! Secrets do not get out: not in any format, not in logs, not into the state directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gossip_engine::{RuleSet, template};

use crate::git::git;
use crate::support::{Place, token};

/// Shorter ones may be part of something harmless.
const LEN_MIN: usize = 16;

#[test]
fn no_output_and_no_file_holds_a_secret() {
    let place = Place::new();
    let mut secrets = BTreeMap::new();
    for (seed, rule) in RuleSet::builtin().iter().enumerate() {
        for (index, example) in rule.examples().iter().enumerate() {
            let example = template::expand(example, seed as u64).unwrap();
            place.write(&format!("{seed}/{index}.txt"), format!("{}\n", example.text));
            let secret = example.text[example.secret].as_bytes().to_vec();
            if secret.len() >= LEN_MIN {
                secrets.insert(secret, rule.id().to_owned());
            }
        }
    }
    assert!(secrets.len() >= 200, "{}", secrets.len());
    let check = |bytes: &[u8], what: &str| {
        for (secret, rule) in &secrets {
            let found = memchr::memmem::find(bytes, secret).is_some();
            assert!(!found, "{what} holds a secret of the rule {rule}");
        }
    };
    let mut findings = 0;
    for words in [
        "-vv scan TREE -j 2",
        "-vv scan TREE --format json",
        "-vv scan TREE --format jsonl --fresh",
        "-vv findings",
        "-vv findings --format json",
        "-vv runs --format jsonl",
        "-vv show 1 --format json",
        "-vv findings --format sarif",
        "-vv findings --format csv",
        "-vv findings --format junit",
        "-vv findings --format gitlab",
        "-vv findings --format html",
        "-vv findings --new-since 1 --format jsonl",
        "-vv baseline -o -",
        "scan TREE --quiet --redact",
        "-vv doctor",
    ] {
        let ran = place.run(words);
        check(ran.stdout.as_bytes(), &format!("the output of `gossip {words}`"));
        check(ran.stderr.as_bytes(), &format!("the log of `gossip {words}`"));
        if words.ends_with("jsonl --fresh") {
            findings = ran.jsonl().len();
        }
    }
    assert!(findings >= 200, "only {findings} were found, so little was tested");
    for option in ["proof", "output"] {
        let file = place.path(option);
        place.run(&format!("scan TREE --{option} {}", file.display())).exits(1);
        check(&fs::read(&file).unwrap(), &format!("the file of --{option}"));
    }
    let mut files = 0;
    each_file(&place.state, &mut |path| {
        files += 1;
        check(&fs::read(path).unwrap(), &path.display().to_string());
    });
    assert!(files >= 2, "the database and the key, at least");
}

const FORMATS: [&str; 8] = ["text", "json", "jsonl", "sarif", "csv", "junit", "gitlab", "html"];

/// A rule that is not chosen knows a secret all the same, and what it knows is not shown beside
/// another rule's.
#[test]
fn beside_a_secret_no_other_is_shown_whichever_rules_are_chosen() {
    let place = Place::new();
    let mut beside = Vec::new();
    for (seed, rule) in RuleSet::builtin().iter().enumerate() {
        for (index, example) in rule.examples().iter().enumerate() {
            let example = template::expand(example, seed as u64 + 1000).unwrap();
            let secret = example.text[example.secret].to_owned();
            let path = format!("{seed}/{index}.txt");
            place.write(&path, format!("{} {} {}\n", token(1), example.text, token(2)));
            beside.push((path, secret, rule.id().to_owned()));
        }
    }
    let ran = place.run("scan TREE --only-rule github-token -f jsonl").exits(1);
    let rows = ran.jsonl();
    let mut shown = 0;
    for (path, secret, rule) in &beside {
        for row in rows.iter().filter(|row| row["path"] == path.as_str()) {
            let context = row["context"].as_str().unwrap();
            shown += 1;
            // One of a few bytes may be part of what is harmless.
            let is_shown = secret.len() >= 4 && context.contains(secret.as_str());
            assert!(!is_shown, "a secret of the rule {rule} is in `{context}`");
        }
    }
    assert!(shown >= 400, "only {shown} were looked at");
}

/// Short ones, several in a line, and such as no rule would report.
#[test]
fn other_secrets_of_a_line_are_nowhere_whichever_rules_are_chosen() {
    let place = Place::new();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    let secrets = ["swordfishes", "correct-horse-battery", "hush!77", "opensesame"];
    let [url, named, short, quoted] = secrets;
    place.write(
        "app.env",
        format!(
            "tok={} db=postgres://u:{url}@h/db password={named} pw={short} x={} \
             {{\"secret\": \"{quoted}\"}} {url}\n",
            token(1),
            token(2),
        ),
    );
    git(&place.tree, &["add", "-A"]);
    git(&place.tree, &["commit", "-q", "-m", &format!("password {named} token {}", token(3))]);
    let gitleaks = place.path("gitleaks.toml");
    let rule = "[[rules]]\nid = \"mine\"\nregex = '''ghp_[0-9A-Za-z]{36}'''\n";
    fs::write(&gitleaks, rule).unwrap();
    let check = |bytes: &[u8], what: &str| {
        for secret in secrets {
            let found = memchr::memmem::find(bytes, secret.as_bytes()).is_some();
            assert!(!found, "{what} holds `{secret}`");
        }
    };
    let proof = place.path("proof");
    for rules in [
        String::new(),
        "--only-rule github-token".to_owned(),
        "--disable-rule connection-string-password --disable-rule generic-password".to_owned(),
        format!("--config {}", gitleaks.display()),
    ] {
        for format in FORMATS {
            let words = format!("-vv scan TREE {rules} -f {format} --proof {}", proof.display());
            let ran = place.run(&words).exits(1);
            check(ran.stdout.as_bytes(), &format!("the output of `gossip {words}`"));
            check(ran.stderr.as_bytes(), &format!("the log of `gossip {words}`"));
        }
        check(&fs::read(&proof).unwrap(), "the proof");
        check(place.run("baseline -o -").stdout.as_bytes(), "the baseline");
    }
    each_file(&place.state, &mut |path| {
        check(&fs::read(path).unwrap(), &path.display().to_string());
    });
}

/// A short secret could be guessed from a plain hash of what was piped.
#[test]
fn who_reads_the_state_directory_cannot_guess_what_was_piped() {
    use std::io::Write;
    let place = Place::new();
    let piped = b"hush!77\n";
    let mut command = place.command();
    command.args(["scan", "-"]).stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(piped).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let hash = blake3::hash(piped);
    let hex = hash.to_hex();
    each_file(&place.state, &mut |path| {
        let bytes = fs::read(path).unwrap();
        for part in [&hash.as_bytes()[..], hex.as_bytes(), &piped[..7]] {
            let found = memchr::memmem::find(&bytes, part).is_some();
            assert!(!found, "{} tells", path.display());
        }
    });
}

/// A name is as public as a report is.
#[test]
fn a_token_in_the_name_of_a_file_is_nowhere_in_what_is_shown_or_written() {
    use std::os::unix::ffi::OsStringExt;
    let mut place = Place::new();
    let [of_dir, of_file, of_bytes, of_zip] = [11, 12, 13, 14].map(token);
    place.tree = place.tree.join(&of_dir);
    fs::create_dir(&place.tree).unwrap();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    place.write(&format!("in/{of_file}.txt"), format!("T={}\n", token(1)));
    place.write(&format!("in/copy of {of_file}.txt"), format!("T={}\n", token(1)));
    let bytes = [b"\xff ".to_vec(), of_bytes.clone().into_bytes()].concat();
    let path = place.tree.join(std::ffi::OsString::from_vec(bytes));
    fs::write(path, format!("T={}\n", token(2))).unwrap();
    place.write(&format!("{of_zip}.zip"), b"PK\x03\x04 cut short");
    git(&place.tree, &["add", "-A"]);
    git(&place.tree, &["commit", "-q", "-m", "first"]);
    let check = |text: &[u8], what: &str| {
        for secret in [&of_dir, &of_file, &of_bytes, &of_zip] {
            let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
            for part in [secret.as_bytes(), hex.as_bytes()] {
                let found = memchr::memmem::find(text, part).is_some();
                assert!(!found, "{what}: {}", String::from_utf8_lossy(text));
            }
        }
    };
    let run = |words: &str, code: i32| {
        let ran = place.run(words).exits(code);
        check(ran.stdout.as_bytes(), &format!("the output of `gossip {words}`"));
        check(ran.stderr.as_bytes(), &format!("what `gossip {words}` says"));
        ran
    };
    let proof = place.path("proof");
    run(&format!("-vv scan TREE --proof {}", proof.display()), 2)
        .says("ghp_….zip: damaged archive");
    check(&fs::read(&proof).unwrap(), "the proof");
    for format in FORMATS {
        let ran = run(&format!("findings -f {format}"), 2);
        assert!(ran.stdout.contains("ghp_…") || ran.stdout.contains("ghp_%E2%80%A6"), "{ran:?}");
    }
    run("findings -f jsonl --all-versions", 2);
    run("show 1 -f json", 0);
    run("show 1", 0);
    run("runs", 0);
    run("runs -f json", 0);
    run("baseline -o -", 2);
    run(&format!("scan in/no-such-{of_file}"), 2).says("ghp_…");
    run(&format!("findings --baseline {of_file}"), 2).says("ghp_…");
    run("scan --staged TREE", 0);
}

/// Names in which rules find something that does not look like a token at once.
#[test]
fn no_part_of_a_secret_in_a_name_is_shown_however_it_is_written_there() {
    let place = Place::new();
    let [one, other, third] = [21, 22, 23].map(token);
    let escaped: String = third.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let access_key = "AKIAQWERTYUIOPASDFGH";
    for name in [access_key, &escaped, &format!("{one}{other}")] {
        place.write(&format!("{name}.txt"), format!("T={}\n", token(1)));
        place.write(&format!("{name}/in.zip"), b"PK\x03\x04 cut short");
    }
    let proof = place.path("proof");
    let mut shown = Vec::new();
    let words = [
        "scan TREE --proof PROOF",
        "findings -f json",
        "findings -f sarif",
        "show 1",
        "baseline -o -",
    ];
    for words in words {
        let ran = place.run(&words.replace("PROOF", proof.to_str().unwrap()));
        shown.push((words.to_owned(), ran.stdout + &ran.stderr));
    }
    shown.push(("the proof".to_owned(), fs::read_to_string(&proof).unwrap()));
    for (what, text) in shown {
        for secret in [access_key, &one, &other, &escaped[..60]] {
            assert!(!text.contains(secret), "{what}: {text}");
        }
    }
}

/// What is typed in the wrong place may be a token.
#[test]
fn an_unknown_option_or_a_bad_value_that_holds_a_token_is_not_repeated() {
    let place = Place::new();
    let token = token(1);
    for words in [
        format!("scan --{token}"),
        format!("scan --exit-code {token} TREE"),
        token.clone(),
        format!("scan -j {token}"),
    ] {
        let ran = place.run(&words).exits(2);
        assert!(!ran.stderr.contains(&token) && ran.stderr.contains("ghp_…"), "{ran:?}");
        assert!(ran.stderr.contains("error:") && ran.stderr.contains("--help"), "{ran:?}");
    }
    place.run("scan --no-such").exits(2).says("unexpected argument '--no-such' found");
    place.run("--version").exits(0).prints("gossip ");
}

fn each_file(dir: &Path, f: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { each_file(&path, f) } else { f(&path) }
    }
}
