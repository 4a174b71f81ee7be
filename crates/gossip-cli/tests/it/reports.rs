//! Reports, each through the program and as its reader reads it.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::support::{Place, token, zip_of};

/// Names and contents that would be markup, formulas or commands somewhere.
fn hostile() -> Place {
    let place = Place::with_a_token();
    let names: [&[u8]; 5] = [
        b"<img src=x onerror=alert(1)>.env",
        b"]]>&amp;\"'.env",
        b"=cmd|' /C calc'!A0.env",
        b"bad\xff name\n.env",
        "späße/ключ.env".as_bytes(),
    ];
    for (name, seed) in names.iter().zip(10..) {
        let path = place.tree.join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let line = format!("</script><script>alert(1)</script> @T = '{}' \u{1b}[31m", token(seed));
        fs::write(path, line).unwrap();
    }
    place
}

const FINDINGS: usize = 6;

#[test]
fn a_finding_says_everything_that_is_needed_to_act() {
    let place = Place::new();
    place.write("app.env", format!("# größe\nschlüssel = '{}' # prod\n", token(1)));
    let found = &place.run("scan TREE -f json").exits(1).json()[0];
    for (field, value) in [
        ("rule", "github-token"),
        ("severity", "critical"),
        ("confidence", "high"),
        ("reason", "checksum"),
        ("path", "app.env"),
        ("secret", "ghp_… (40 bytes)"),
        ("context", "schlüssel = 'ghp_…' # prod"),
    ] {
        assert_eq!(found[field], value, "{field}");
    }
    assert!(found["description"].as_str().unwrap().contains("GitHub"), "{found}");
    assert!(found["why"].as_str().unwrap().contains("checksum"), "{found}");
    let number = |field: &str| found[field].as_u64().unwrap();
    assert_eq!((number("line"), number("column")), (2, 14));
    assert_eq!((number("end_line"), number("end_column")), (2, 54));
    assert_eq!(found["fingerprint"].as_str().unwrap().len(), 32);
}

#[test]
fn sarif_is_valid_and_points_to_every_finding() {
    let place = hostile();
    let text = place.run("scan TREE -f sarif").exits(1).stdout;
    let sarif: Value = serde_json::from_str(&text).unwrap();
    let mut schema: Value =
        serde_json::from_str(include_str!("../schemas/sarif-2.1.0.json")).unwrap();
    // The pattern of languages, which we do not write, is no regular expression of JavaScript.
    for holder in ["run", "toolComponent"] {
        let language = &mut schema["definitions"][holder]["properties"]["language"];
        assert!(language.as_object_mut().unwrap().remove("pattern").is_some());
    }
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&sarif).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let run = &sarif["runs"][0];
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), FINDINGS);
    for result in results {
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(rule["help"]["text"].as_str().unwrap().contains("Revoke it"));
        let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert!(uri.as_str().unwrap().is_ascii(), "{uri}");
        assert_eq!(result["partialFingerprints"]["gossip/v2"].as_str().unwrap().len(), 32);
    }
    // So is one without findings.
    let text = place.run("scan TREE -f sarif --only-rule jwt").exits(0).stdout;
    assert!(validator.is_valid(&serde_json::from_str(&text).unwrap()));
}

/// No registry has GitLab's schemas, so this looks for what they require of a report.
#[test]
fn gitlab_has_the_shape_of_a_secret_detection_report() {
    let place = hostile();
    let text = place.run("scan TREE -f gitlab").exits(1).stdout;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["version"], "15.2.1");
    let scan = &report["scan"];
    assert_eq!((&scan["type"], &scan["status"]), (&"secret_detection".into(), &"success".into()));
    for tool in ["analyzer", "scanner"] {
        for field in ["id", "name", "version"] {
            assert!(scan[tool][field].is_string(), "{tool}.{field}");
        }
        assert!(scan[tool]["vendor"]["name"].is_string());
    }
    for time in ["start_time", "end_time"] {
        let time = scan[time].as_str().unwrap();
        assert!(time.len() == 19 && time.as_bytes()[10] == b'T', "{time}");
    }
    let found = report["vulnerabilities"].as_array().unwrap();
    assert_eq!(found.len(), FINDINGS);
    for found in found {
        assert!(
            ["Critical", "High", "Medium", "Low"].contains(&found["severity"].as_str().unwrap())
        );
        assert!(found["id"].as_str().unwrap().len() == 36 && found["name"].is_string());
        let id = &found["identifiers"][0];
        assert!(id["type"].is_string() && id["name"].is_string() && id["value"].is_string());
        let place = &found["location"];
        assert!(place["file"].is_string() && place["commit"]["sha"].is_string());
        assert!(place["start_line"].as_u64() <= place["end_line"].as_u64());
    }
}

#[test]
fn csv_has_a_row_for_each_finding_and_no_formula() {
    let place = hostile();
    let text = place.run("scan TREE -f csv").exits(1).stdout;
    // A name has a line end in it.
    let rows: Vec<&str> = text.split("\r\n").filter(|row| !row.is_empty()).collect();
    assert_eq!(rows.len(), FINDINGS + 1, "{text}");
    assert!(rows[0].starts_with("severity,confidence,rule,description,path,line,column"));
    let columns = rows[0].split(',').count();
    for row in &rows[1..] {
        assert_eq!(row.split("\",\"").count(), columns, "{row}");
        assert!(!row.contains("\"=") && !row.contains("\"@") && !row.contains("\"+"), "{row}");
    }
    assert!(text.contains("\"'=cmd|"), "{text}");
}

/// A parser of XML would be another dependency for one test: this looks at what one looks at first.
#[test]
fn junit_has_a_failure_for_each_finding_and_its_text_is_escaped() {
    let place = hostile();
    let text = place.run("scan TREE -f junit").exits(1).stdout;
    assert!(
        text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"6\"")
    );
    assert_eq!(text.matches("<testcase ").count(), FINDINGS);
    assert_eq!(text.matches("<failure ").count(), FINDINGS);
    assert_eq!(text.matches("</failure>").count(), FINDINGS);
    for part in ["<img", "<script", "]]>", "\u{1b}", "&amp;amp;\"'"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
    let clean = place.run("scan TREE -f junit --only-rule jwt").exits(0).stdout;
    assert!(clean.contains("tests=\"1\" failures=\"0\""), "{clean}");
}

#[test]
fn output_goes_to_a_file_whole_and_its_ending_chooses_the_format() {
    let place = Place::with_a_token();
    for (name, begins) in [
        ("r.sarif", "{\n  \"$schema\""),
        ("r.json", "["),
        ("r.jsonl", "{\"finding\""),
        ("r.csv", "severity,"),
        ("r.xml", "<?xml"),
        ("r.html", "<!doctype html>"),
        ("r.txt", "config/app.env:1:14: "),
    ] {
        let file = place.path(name);
        let ran = place.run(&format!("scan TREE -o {}", file.display())).exits(1).says("1 finding");
        assert_eq!(ran.stdout, "", "{name}");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with(begins), "{name}: {text}");
        let again = place.run(&format!("findings -o {}", file.display())).exits(1);
        assert_eq!(again.stdout, "");
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "{name}");
    }
    let ran = place.run("findings -o - -f jsonl").exits(1);
    assert_eq!(ran.jsonl().len(), 1);
    let none = place.path("none/r.json");
    place.run(&format!("scan TREE -o {}", none.display())).exits(2).says("none/r.json: ");
    // What there was stays when the disk is full.
    let file = place.path("r.json");
    let before = fs::read(&file).unwrap();
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_gossip"), "findings", "-o"]).arg(&file);
    let output = command.env("GOSSIP_STATE_DIR", &place.state).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(fs::read(&file).unwrap(), before);
    let left: Vec<_> = fs::read_dir(file.parent().unwrap()).unwrap().collect();
    assert!(
        left.iter().all(|f| !f.as_ref().unwrap().file_name().to_string_lossy().ends_with(".part"))
    );
}

#[test]
fn a_proof_names_what_was_scanned_and_what_was_not_and_any_change_is_seen() {
    let place = Place::with_a_token();
    place.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\0");
    let file = place.path("proof.jsonl");
    place.run(&format!("scan TREE --proof {}", file.display())).exits(1);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 5, "{text}");
    assert!(text.contains("\"not_scanned\":\"binary: image\""), "{text}");
    let verify = || place.run(&format!("proof verify {}", file.display()));
    let ran = verify().exits(0);
    assert!(
        ran.stdout.contains("2 items scanned, 1 not scanned, 0 could not be read, 1 finding; done"),
        "{ran:?}"
    );
    let lines: Vec<&str> = text.lines().collect();
    // They are younger than what is trusted to be the same, and were read as they are.
    assert_eq!(text.matches("\"version\":\"").count(), 3, "{text}");
    let head: Value = serde_json::from_str(lines[0]).unwrap();
    let (policy, silent) = (&head["policy_of"], &head["not_reported"]);
    let rules = policy["rules"].as_u64().unwrap();
    assert!(policy["decoded"].to_string().contains("base64") && policy["excluded"].is_null());
    assert_eq!((&silent["by_baseline"], &silent["by_ignore_files"]), (&0.into(), &0.into()));
    let without = |at: usize| {
        let mut lines = lines.clone();
        lines.remove(at);
        lines.join("\n") + "\n"
    };
    for (changed, part) in [
        (text.replace("notes.txt", "Notes.txt"), "the hash is wrong"),
        (text.replace("\"findings\":1", "\"findings\":0"), "the hash is wrong"),
        (without(2), "the hash is wrong"),
        (without(4), "something is missing"),
        (text.replace("{\"path\":\"notes", "{\"pfad\":\"notes"), "no line of a proof"),
        (String::new(), "this is no proof"),
        (
            text.replace("{\"gossip_proof\":4,", "{\"gossip_proof\":5,\"more\":1,"),
            "a proof of version 5",
        ),
    ] {
        assert_ne!(changed, text);
        fs::write(&file, changed).unwrap();
        verify().exits(2).says(part);
    }
    // What is not reported is counted, and other rules are another policy.
    place.write(".gossipignore", "config/\n");
    let words = "--exclude *.txt --disable-rule aws-access-key-id";
    place.run(&format!("scan TREE {words} --proof {}", file.display())).exits(0);
    verify().exits(0).prints("1 finding (1 not reported); done");
    let text = fs::read_to_string(&file).unwrap();
    let other: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(other["not_reported"]["by_ignore_files"], 1);
    assert_eq!(other["policy_of"]["rules"], rules - 1);
    assert_eq!(other["policy_of"]["excluded"], serde_json::json!(["*.txt"]));
    assert_ne!(other["policy_of"]["rules_hash"], policy["rules_hash"]);
}

#[test]
fn a_proof_has_what_was_not_scanned_inside_of_archives() {
    let place = Place::new();
    let picture = b"\x89PNG\r\n\x1a\n\0\0\0\0";
    place.write("some.zip", zip_of(&[("a.png", &picture[..]), ("b.png", picture), ("c", b"text")]));
    let file = place.path("proof.jsonl");
    place.run(&format!("scan TREE --proof {}", file.display())).exits(0);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"inside_not_scanned\":{\"binary: image\":2}"), "{text}");
    let ran = place.run(&format!("proof verify {}", file.display())).exits(0);
    ran.prints(
        "1 item scanned, 0 not scanned, 0 could not be read, 2 files in archives not scanned",
    );
}

#[test]
fn no_report_of_a_run_that_could_not_read_everything_says_that_all_is_well() {
    let place = Place::new();
    let zip = zip_of(&[("inner.env", "nothing")]);
    place.write("cut.zip", &zip[..zip.len() - 30]);
    for (format, well, unwell) in [
        ("junit", "errors=\"0\"", "errors=\"1\""),
        ("gitlab", "\"status\":\"success\"", "\"status\":\"failure\""),
        ("sarif", "\"executionSuccessful\":true", "\"executionSuccessful\":false"),
    ] {
        let ran = place.run(&format!("scan TREE -f {format}")).exits(2).prints(unwell);
        assert!(!ran.stdout.contains(well), "{ran:?}");
        place.run(&format!("findings -f {format}")).exits(2).prints(unwell);
    }
    place.run("findings").exits(2).says("could not read 1 item");
    fs::remove_file(place.tree.join("cut.zip")).unwrap();
    place.run("scan TREE -f junit").exits(0).prints("errors=\"0\"");
    place.run("findings -f gitlab").exits(0).prints("\"status\":\"success\"");
}

#[test]
fn a_report_goes_where_a_link_leads_and_keeps_the_rights_of_a_file() {
    let place = Place::with_a_token();
    let [file, link] = ["real.json", "link.json"].map(|name| place.path(name));
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("real.json", &link).unwrap();
    place.run(&format!("scan TREE -q -o {}", link.display())).exits(1);
    assert!(link.is_symlink());
    assert!(fs::read_to_string(&file).unwrap().contains("github"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // A link to standard output, which is a file: what is in that stays.
    let stdout = place.path("stdout");
    std::os::unix::fs::symlink("/proc/self/fd/1", &stdout).unwrap();
    for name in [&stdout, Path::new("/dev/stdout")] {
        let kept = place.path("kept");
        fs::write(&kept, "before\n").unwrap();
        let mut command = place.command();
        command.args(["findings", "-f", "jsonl", "-o"]).arg(name);
        command.stdout(fs::OpenOptions::new().append(true).open(&kept).unwrap());
        assert_eq!(command.status().unwrap().code(), Some(1));
        let text = fs::read_to_string(&kept).unwrap();
        assert!(text.starts_with("before\n{"), "{text}");
        assert!(name.is_symlink());
    }
}

#[test]
fn what_a_finding_is_and_why_are_sentences_of_their_own() {
    let place = Place::with_a_token();
    place.run("scan TREE").exits(1);
    let text = |format: &str| place.run(&format!("findings -f {format}")).exits(1).stdout;
    assert!(text("sarif").contains(": ghp_… (40 bytes). It "));
    assert!(text("gitlab").contains(". It "));
}
