//! What a scan should have covered and did not is said, whatever else is not, and by name.

use std::fs;

use serde_json::Value;

use crate::git::git;
use crate::support::{Place, Ran, token, zip_of};

/// Archives that end too early, one more than are named at the end of a scan.
fn with_damaged_archives(number: usize) -> Place {
    let place = Place::with_a_token();
    for number in 0..number {
        let zip = zip_of(&[("inner.env", format!("T={}\n", token(number as u64)))]);
        place.write(&format!("in/{number:02}.zip"), &zip[..zip.len() - 30]);
    }
    place
}

fn missed(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = ran.json()[0]["missed"].as_array().unwrap().clone();
    rows.iter().map(|row| (text(&row["path"]), text(&row["reason"]))).collect()
}

#[test]
fn who_wants_quiet_or_a_report_for_programs_is_told_what_went_wrong_and_nothing_else() {
    let place = with_damaged_archives(1);
    let said =
        "gossip: could not be read: 1 damaged archive\ngossip:   in/00.zip: damaged archive\n";
    for options in ["-q", "-f sarif", "-f json -q", "-f csv"] {
        let ran = place.run(&format!("scan TREE {options}")).exits(2);
        assert_eq!(ran.stderr, said, "{options}");
    }
    fs::remove_file(place.tree.join("in/00.zip")).unwrap();
    for options in ["-q", "-f sarif"] {
        assert_eq!(place.run(&format!("scan TREE {options}")).exits(1).stderr, "", "{options}");
    }
}

#[test]
fn the_history_of_a_repository_inside_of_the_target_is_named() {
    let place = Place::new();
    fs::create_dir(place.tree.join("inner")).unwrap();
    git(&place.tree.join("inner"), &["init", "-q", "-b", "main"]);
    let ran = place.run("scan TREE").exits(0);
    ran.says("inner/.git/objects: history of a nested repository");
    for options in ["-q", "-f json"] {
        let ran = place.run(&format!("scan TREE {options}")).exits(0);
        ran.says("out of reach: 1 history of a nested repository");
    }
    // Named beside it, its history is scanned.
    place.write("inner/app.env", format!("GITHUB_TOKEN={}\n", token(1)));
    let inner = place.tree.join("inner");
    git(&inner, &["add", "-A"]);
    git(&inner, &["commit", "-q", "-m", "first"]);
    fs::remove_file(inner.join("app.env")).unwrap();
    place.run("scan TREE").exits(0);
    let ran = place.run("scan TREE inner -f json").exits(1);
    assert_eq!(ran.json().len(), 1, "{ran:?}");
    // Its own is the one that is scanned.
    git(&place.tree, &["init", "-q", "-b", "main"]);
    let ran = place.run("scan TREE").exits(0);
    assert_eq!(ran.stderr.matches("objects").count(), 1, "{ran:?}");
}

#[test]
fn what_could_not_be_read_is_named_up_to_a_bound_and_all_of_it_on_request() {
    let place = with_damaged_archives(12);
    let ran = place.run("scan TREE").exits(2).says("could not be read: 12 damaged archive");
    let ran = ran.says("  in/09.zip: damaged archive\n");
    assert!(!ran.stderr.contains("in/10.zip"), "{ran:?}");
    ran.says("gossip:   2 more: `gossip show 1` names them all\n");
    let shown = place.run("show 1").exits(0);
    for number in 0..12 {
        let line = format!("  in/{number:02}.zip: damaged archive\n");
        assert!(shown.stdout.contains(&line), "{shown:?}");
    }
    let all = missed(&place.run("show 1 -f json").exits(0));
    assert_eq!((all.len(), &all[11].0[..], &all[11].1[..]), (12, "in/11.zip", "damaged archive"));
    // What is left out for its kind is counted, and not named.
    place.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let ran = place.run("scan TREE").exits(2).says("not scanned: 1 binary: image");
    assert!(!ran.stderr.contains("picture.png"), "{ran:?}");
    let old = place.run("show 1").exits(0).stdout;
    assert!(old.contains("`gossip show 2` names what it missed"), "{old}");
    assert_eq!(missed(&place.run("show 2 -f json").exits(0)).len(), 12);
}

#[test]
fn items_of_several_targets_are_named_as_seen_from_here() {
    let place = with_damaged_archives(1);
    place.write("other/b.zip", fs::read(place.tree.join("in/00.zip")).unwrap());
    let ran = place.run("scan -q in other").exits(2);
    for name in ["in/00.zip", "other/b.zip"] {
        assert!(ran.stderr.contains(&format!("  {name}: damaged archive\n")), "{ran:?}");
    }
}

/// Their contents are elsewhere: no failure, but nobody chose to leave them out.
#[test]
fn submodules_and_lfs_pointers_of_a_history_are_named_by_their_paths() {
    let place = Place::new();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    let oid = "0123456789abcdef".repeat(4);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:";
    place.write("media/big.bin", format!("{pointer}{oid}\nsize 12345\n"));
    git(&place.tree, &["add", "-A"]);
    let commit = "1234567890123456789012345678901234567890";
    git(
        &place.tree,
        &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},vendor/lib")],
    );
    git(&place.tree, &["commit", "-q", "-m", "first"]);
    let ran = place.run("scan --only-history TREE").exits(0);
    let ran = ran.says("gossip:   media/big.bin: Git LFS pointer\n");
    ran.says("gossip:   vendor/lib: submodule\n");
    let said = "gossip: out of reach: 1 Git LFS pointer, 1 submodule; `gossip show 2` names it\n";
    assert_eq!(place.run("scan --only-history -q TREE").exits(0).stderr, said);
    // Nothing of it is planned again, and it is still missing.
    let mut all = missed(&place.run("show 2 -f json").exits(0));
    all.sort();
    assert_eq!(all[0].0, "media/big.bin");
    assert_eq!(all[1], ("vendor/lib".to_owned(), "submodule".to_owned()));
}
