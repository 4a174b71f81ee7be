//! The program, as `cargo xtask sim` and the test command call it.

use std::process::{Command, Output};

fn simulator(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gossip-simulator")).args(args).output().unwrap()
}

#[test]
fn seeds_that_pass_are_counted() {
    for backend in ["memory", "sqlite", "etcd"] {
        let ran = simulator(&["--backend", backend, "--seeds", "2", "--start", "7"]);
        let said = String::from_utf8(ran.stdout).unwrap();
        assert!(ran.status.success(), "{said}");
        assert!(said.starts_with(&format!("passed on {backend}: 2 seeds, ")), "{said}");
    }
}

#[test]
fn an_option_that_it_does_not_know_is_refused() {
    let ran = simulator(&["--sedes", "2"]);
    assert!(!ran.status.success() && ran.stdout.is_empty());
    assert!(String::from_utf8(ran.stderr).unwrap().contains("--sedes"));
}
