//! The tour of the README, pasted into bash.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// The block that starts a server, and what it is said to print.
fn tour() -> (String, String) {
    let readme = include_str!("../../../slipstream/README.md");
    let blocks = readme.split("```bash\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let script = blocks.filter(|block| block.contains("server=$!")).collect::<String>();
    let shown = script.lines().filter_map(|line| line.strip_prefix("#> "));
    let shown = shown.flat_map(|line| [line, "\n"]).collect();
    (script, shown)
}

fn program(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_tour_prints_what_it_shows() {
    let (script, shown) = tour();
    assert!(shown.lines().count() > 10, "{shown}");
    let dir = tempfile::tempdir().unwrap();
    // The server takes a free port instead of the usual one, and the program learns which.
    let server = dir.path().join("server");
    let real = std::env::var("GOSSIP_NATS_SERVER").expect("GOSSIP_NATS_SERVER is not set");
    program(&server, &format!("exec '{real}' \"$@\" -p -1 --ports_file_dir \"$PORTS\"\n"));
    let port = r#"NATS_URL=$(cat "$PORTS"/*.ports 2> "$PORTS/none" | grep -o 'nats://[0-9.:]*' | head -n 1)"#;
    let real = env!("CARGO_BIN_EXE_slipstream");
    let slipstream = dir.path().join("slipstream");
    program(&slipstream, &format!("{port}\nexport NATS_URL\nexec '{real}' \"$@\"\n"));
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("bash")
        .args(["-c", &script])
        .env("PATH", format!("{}:{path}", dir.path().display()))
        .env("GOSSIP_NATS_SERVER", &server)
        .env("PORTS", dir.path())
        .env("TMPDIR", dir.path())
        .env_remove("SLIPSTREAM_BUCKET")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), shown, "{error}");
}
