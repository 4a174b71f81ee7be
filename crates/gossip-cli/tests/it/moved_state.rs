//! A state directory whose database was moved away, or put back, while everything else in it stayed.

use std::fs;
use std::path::Path;

use crate::git::{commit, repository};
use crate::support::{Place, token};

/// A token that the second commit takes out, scanned by two runs.
fn scanned_twice() -> Place {
    let place = repository();
    place.write("app.env", format!("T={}\n", token(1)));
    commit(&place, "first");
    place.write("app.env", "T=\n");
    commit(&place, "second");
    place.run("scan TREE").exits(1);
    place.write("b.txt", "b\n");
    commit(&place, "third");
    place.run("scan TREE").exits(1);
    place
}

fn move_database(from: &Path, to: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let name = format!("gossip.db{suffix}");
        if from.join(&name).exists() {
            fs::rename(from.join(&name), to.join(&name)).unwrap();
        }
    }
}

/// Run numbers begin again, and what was planned for the old ones used to be taken for the new.
#[test]
fn a_history_is_scanned_anew_after_the_database_was_moved_away() {
    let place = scanned_twice();
    let (away, other) = (place.path("away"), place.path("other"));
    fs::create_dir(&away).unwrap();
    fs::create_dir(&other).unwrap();
    fs::write(other.join("x.txt"), "nothing\n").unwrap();
    move_database(&place.state, &away);
    place.run(&format!("scan {}", other.display())).exits(0);
    // Run 2, of which there is a plan that leaves out what the old run 1 had settled.
    for _ in 0..2 {
        place.run("scan TREE").exits(1);
    }
    place.write("c.txt", "c\n");
    commit(&place, "fourth");
    place.run("scan TREE").exits(1);
    // The old database comes back, and with it runs whose plans were replaced.
    fs::remove_file(place.state.join("gossip.db")).unwrap();
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(place.state.join(format!("gossip.db{suffix}"))).ok();
    }
    move_database(&away, &place.state);
    place.write("d.env", format!("D={}\n", token(2)));
    commit(&place, "fifth");
    place.write("d.env", "D=\n");
    commit(&place, "sixth");
    let found = place.run("scan TREE -f jsonl").exits(1).jsonl();
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn what_was_committed_and_removed_after_old_runs_is_found_by_the_first_scan_of_a_new_database() {
    let place = scanned_twice();
    place.write("app.env", format!("T={}\n", token(2)));
    commit(&place, "another");
    place.write("app.env", "T=\n");
    commit(&place, "taken out");
    let away = place.path("away");
    fs::create_dir(&away).unwrap();
    move_database(&place.state, &away);
    let found = place.run("scan TREE -f jsonl").exits(1).jsonl();
    assert_eq!(found.len(), 2, "{found:?}");
}

/// What a process that was killed, or a full disk, leaves of a plan is nothing or all of it.
#[test]
fn half_a_plan_is_not_used() {
    let place = scanned_twice();
    let plans = fs::read_dir(place.state.join("git")).unwrap().next().unwrap().unwrap().path();
    // Run 3 was killed while it wrote its plan, and an old database's run 4 left one.
    let plan = fs::read(plans.join("2.manifest")).unwrap();
    fs::write(plans.join("3.draft"), &plan[..plan.len() / 2]).unwrap();
    fs::write(plans.join("4.manifest"), &plan).unwrap();
    for number in 3..5 {
        place.write("d.env", format!("D={}\n", token(number)));
        commit(&place, "a new token");
        place.write("d.env", "D=\n");
        commit(&place, "taken out");
        let found = place.run("scan TREE -f jsonl").exits(1).jsonl();
        assert_eq!(found.len() as u64, number - 1, "{found:?}");
    }
}
