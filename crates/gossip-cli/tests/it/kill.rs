//! `kill -9` of a scan at random moments.
//!
//! Each life of the process writes what it reads to its own log (`--read-log`). Leases last an hour:
//! a scan that waited for one would not end within the test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::git::{git, history};
use crate::support::{Place, gossip, token, zip_of};
use crate::weed::Weed;

const KILLS: u64 = 15;
const KILLS_OF_SOURCES: u64 = 5;
const KILLS_OF_A_SOAK: u64 = 100;
const FILES: u64 = 400;
const COMMITS: u64 = 40;
const TOKENS: u64 = 20;
const THREADS: u64 = 2;
const CHECKPOINT_BYTES: u64 = 1 << 20;
const TUNING: [&str; 4] = [
    "--lease-ms=3600000",
    "--checkpoint-bytes=1048576",
    "--checkpoint-ms=3600000",
    "--max-shard-retries=100000",
];

/// Where things were found: everything but what the tenant's key makes different.
type Findings = Vec<(String, String, u64, u64, String)>;

#[test]
fn a_scan_killed_at_any_moment_finds_what_an_undisturbed_one_finds() {
    let place = Place::new();
    plant(&place);
    let_files_settle();
    kill_and_go_on(&place, &What::tree(&place), KILLS, Some(THREADS * CHECKPOINT_BYTES));
}

/// Unpacking is repeated, findings are not.
#[test]
fn a_scan_of_archives_killed_at_any_moment_finds_what_an_undisturbed_one_finds() {
    let place = Place::new();
    plant_archives(&place);
    let_files_settle();
    kill_and_go_on(&place, &What::tree(&place), KILLS_OF_SOURCES, None);
}

/// Objects of a real store: those ahead of the scan are fetched again, as well as what it had read.
#[test]
fn a_scan_of_a_bucket_killed_at_any_moment_finds_what_an_undisturbed_one_finds() {
    let (place, weed) = (Place::new(), Weed::start());
    for (name, content) in files(FILES / 2, TOKENS) {
        weed.put("bucket", &name, &content).expect("the store answers");
    }
    kill_and_go_on(&place, &What::bucket(&weed), KILLS_OF_SOURCES, None);
}

/// Objects of a pack, in the order of a manifest, and the work tree.
#[test]
fn a_scan_of_a_history_killed_at_any_moment_finds_what_an_undisturbed_one_finds() {
    let place = history(COMMITS);
    git(&place.tree, &["gc", "-q"]);
    let_files_settle();
    kill_and_go_on(&place, &What::history(&place), KILLS_OF_SOURCES, None);
}

/// `bound`: bytes that are read again after a kill, at most.
fn kill_and_go_on(place: &Place, what: &What, kills: u64, bound: Option<u64>) {
    let undisturbed = place.path("undisturbed");
    let Finished { code, found: expected, mut pace } =
        finish(what, &undisturbed, &place.path("trace"));
    assert_eq!((code, expected.len() as u64), (Some(1), what.findings));
    let totals_expected = totals(&undisturbed);

    let kills = if scale() > 1 { KILLS_OF_A_SOAK.max(kills * scale()) } else { kills };
    let (mut killed, mut at_work, mut again_max, mut round) = (0, 0, 0, 0);
    while killed < kills {
        round += 1;
        assert!(round <= 2 * kills, "{killed} kills in {round} scans: most of them were too fast");
        let state = place.path(&format!("state{round}"));
        let mut lives = Vec::new();
        while killed < kills {
            let trace = place.path(&format!("trace{round}.{}", lives.len()));
            let mut child = scan(what, &state, &trace).stdout(Stdio::null()).spawn().unwrap();
            let moment = if killed % 4 == 0 { Moment::Anytime } else { Moment::AtWork };
            let has_ended = pace.wait_for(moment, &mut child, &trace);
            kill(&mut child);
            let reads = read_trace(&trace);
            let has_read = !reads.is_empty();
            lives.push(reads);
            if has_ended {
                pace.learn(lives.len());
                break;
            }
            killed += 1;
            at_work += u64::from(has_read);
            assert!(has_read || moment == Moment::Anytime, "kill {killed} met no scan at work");
        }
        // Whether it ended or not, the next one says what is known.
        let trace = place.path(&format!("trace{round}.last"));
        let Finished { code, found, .. } = finish(what, &state, &trace);
        assert_eq!((code, &found), (Some(1), &expected), "after {} lives", lives.len());
        assert_eq!(totals(&state), totals_expected, "after {} lives", lives.len());
        lives.push(read_trace(&trace));
        for (life, reads) in lives.iter().enumerate() {
            let again: u64 = reads
                .iter()
                .map(|(item, ranges)| {
                    let later = lives[life + 1..].iter().filter_map(|reads| reads.get(item));
                    overlap(ranges, &later.flatten().cloned().collect::<Vec<_>>())
                })
                .sum();
            let within = bound.is_none_or(|bound| again <= bound);
            assert!(within, "{again} bytes of life {life} were read again, not {bound:?}");
            again_max = again.max(again_max);
        }
    }
    println!(
        "{killed} of {KILLS_OF_A_SOAK} kills ({at_work} of them after the first read) in {round} \
         scans of {:?}; at most {again_max} bytes read again after a kill, bound {bound:?}",
        pace.whole
    );
}

/// Eight processes work on one run; each file is read by one of them.
#[test]
fn processes_that_scan_the_same_share_the_work() {
    let place = Place::new();
    plant(&place);
    let_files_settle();
    let (what, state) = (What::tree(&place), place.path("state"));
    let traces: Vec<_> = (0..8).map(|number| place.path(&format!("trace{number}"))).collect();
    let start = |trace| scan(&what, &state, trace).stdout(Stdio::null()).spawn().unwrap();
    let children: Vec<Child> = traces.iter().map(|trace| start(trace)).collect();
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
    let read: Vec<String> = traces.iter().flat_map(|trace| read_trace(trace).into_keys()).collect();
    let distinct: BTreeSet<&String> = read.iter().collect();
    assert_eq!((read.len() as u64, distinct.len() as u64), (FILES, FILES));
    let Finished { code, found, .. } = finish(&what, &state, &place.path("last"));
    assert_eq!((code, found.len() as u64), (Some(1), TOKENS));
    assert!(read_trace(&place.path("last")).is_empty());
}

/// With leases of an hour, a survivor that waited for them would not end within the test.
#[test]
fn what_a_killed_process_held_goes_to_the_one_that_is_still_there() {
    let place = Place::new();
    plant(&place);
    let what = What::tree(&place);
    let expected = finish(&what, &place.path("undisturbed"), &place.path("trace")).found;
    let state = place.path("state");
    let (first, second) = (place.path("first"), place.path("second"));
    let mut victim = scan(&what, &state, &first).stdout(Stdio::null()).spawn().unwrap();
    reaches(1, &mut victim, &first);
    let mut other = scan(&what, &state, &second).stdout(Stdio::null()).spawn().unwrap();
    reaches(1, &mut other, &second);
    kill(&mut victim);
    assert_eq!(other.wait().unwrap().code(), Some(1));
    let Finished { code, found, .. } = finish(&what, &state, &place.path("third"));
    assert_eq!((code, found), (Some(1), expected));
}

/// When a process is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Also while it starts, plans, or ends.
    Anytime,
    /// After it has read, by what its log says.
    AtWork,
}

/// How an undisturbed scan goes: it sets the moments, whatever the machine and the program.
struct Pace {
    whole: Duration,
    /// From its first read on.
    at_work: Duration,
    /// What it writes to its log.
    log_bytes: u64,
}

impl Pace {
    /// Kills for each scan, about.
    const LIVES: u32 = 8;

    /// A scan that ends after few kills goes faster than the undisturbed one, which other tests held up.
    fn learn(&mut self, lives: usize) {
        const WHOLE_MIN: Duration = Duration::from_millis(40);
        if lives <= Self::LIVES as usize / 2 && self.whole > WHOLE_MIN {
            self.whole /= 2;
            self.at_work /= 2;
        }
    }

    /// Waits for such a moment; whether the process has ended before.
    fn wait_for(&self, moment: Moment, child: &mut Child, trace: &Path) -> bool {
        let ended = match moment {
            Moment::Anytime => {
                sleep(random_below(self.whole));
                false
            }
            Moment::AtWork => {
                let share = self.log_bytes / u64::from(Self::LIVES);
                let ended = reaches(1 + random_number_below(share), child, trace);
                sleep(random_below(self.at_work / Self::LIVES));
                ended
            }
        };
        ended || child.try_wait().unwrap().is_some()
    }
}

/// Waits until the log has so many bytes; whether the process has ended before.
fn reaches(bytes: u64, child: &mut Child, trace: &Path) -> bool {
    while fs::metadata(trace).map_or(0, |trace| trace.len()) < bytes {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        sleep(Duration::from_micros(200));
    }
    false
}

/// Until then no version of a file can be trusted, and everything would be read again for that reason.
fn let_files_settle() {
    sleep(Duration::from_millis(2_200));
}

/// Files with tokens among them, some of them several checkpoints long.
fn plant(place: &Place) {
    let mut largest = 0;
    for (name, content) in files(FILES, TOKENS) {
        largest = largest.max(content.len() as u64);
        place.write(&name, content);
    }
    assert!(largest > 4 * CHECKPOINT_BYTES);
}

fn files(files: u64, tokens: u64) -> impl Iterator<Item = (String, Vec<u8>)> {
    let every = files / tokens;
    (0..files).map(move |number| {
        let lines = if number % 200 == 50 { 200_000 } else { 500 };
        let mut content = format!("{number}: words and more words\n").repeat(lines);
        if number % every == every / 2 {
            content.push_str(&format!("token = {}\n", token(number)));
        }
        (format!("{}/{}/{number}.txt", number % 3, number % 7), content.into_bytes())
    })
}

/// What is scanned, and with what in the environment.
struct What {
    word: std::ffi::OsString,
    variables: Vec<(&'static str, String)>,
    checkpoint_items: u64,
    findings: u64,
}

impl What {
    fn tree(place: &Place) -> Self {
        Self {
            word: place.tree.clone().into(),
            variables: Vec::new(),
            // Bytes decide, so that what is read again has a bound.
            checkpoint_items: 1_000_000,
            findings: TOKENS,
        }
    }

    fn bucket(weed: &Weed) -> Self {
        let (word, variables) = ("s3://bucket/".into(), weed.variables(weed.endpoint()));
        Self { word, variables, checkpoint_items: 1_000_000, findings: TOKENS }
    }

    /// A token of each commit, and those of the 23 files that the work tree still has.
    fn history(place: &Place) -> Self {
        Self { checkpoint_items: 10, findings: COMMITS + 23, ..Self::tree(place) }
    }
}

/// The same number of tokens in files of a zip archive, of archives in it, and of a compressed tar.
fn plant_archives(place: &Place) {
    let files: Vec<(String, Vec<u8>)> = files(FILES / 4, TOKENS / 2).collect();
    let (half, other) = files.split_at(files.len() / 2);
    let inner = zip_of(half);
    place.write("a.zip", zip_of(&[half, &[("inner.zip".to_owned(), inner)]].concat()));
    let gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gz);
    for (name, content) in other {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, name, content.as_slice()).unwrap();
    }
    let tar = tar.into_inner().unwrap().finish().unwrap();
    place.write("b.tar.gz", &tar);
    place.write("c/d.tar.gz", tar);
    place.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\r");
}

/// A run's numbers: the newest.
fn totals(state: &Path) -> Value {
    let ran = gossip(state).args(["runs", "--format", "json"]).output().unwrap();
    let mut runs: Vec<Value> = serde_json::from_slice(&ran.stdout).unwrap();
    let run = runs.pop().expect("there is a run");
    assert_eq!(run["shards"]["active"], 0);
    let what = ["status", "items", "bytes", "findings", "skipped", "failed"];
    what.iter().map(|what| run[*what].clone()).collect()
}

fn scan(what: &What, state: &Path, trace: &Path) -> Command {
    let mut command = gossip(state);
    command
        .args(["scan", "--all-versions", "--format", "json", "-j", &THREADS.to_string()])
        .arg(&what.word)
        .envs(what.variables.iter().map(|(name, value)| (name, value)))
        .args(TUNING)
        .arg(format!("--checkpoint-items={}", what.checkpoint_items))
        .arg("--read-log")
        .arg(trace)
        .stderr(Stdio::null());
    command
}

/// A scan that went to its end.
struct Finished {
    code: Option<i32>,
    found: Findings,
    pace: Pace,
}

/// Scans to the end.
fn finish(what: &What, state: &Path, trace: &Path) -> Finished {
    let path = trace.with_extension("json");
    let stdout = File::create(&path).unwrap();
    let started = Instant::now();
    let mut child = scan(what, state, trace).stdout(stdout).spawn().unwrap();
    reaches(1, &mut child, trace);
    let starting = started.elapsed();
    let code = child.wait().unwrap().code();
    let whole = started.elapsed();
    let log_bytes = fs::metadata(trace).map_or(0, |trace| trace.len());
    let found: Vec<Value> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut found: Findings = found
        .iter()
        .map(|found| {
            let (start, length) = (found["start"].as_u64(), found["length"].as_u64());
            let commit = found["commit"].as_str().unwrap_or_default().to_owned();
            (text(&found["path"]), commit, start.unwrap(), length.unwrap(), text(&found["rule"]))
        })
        .collect();
    found.sort();
    Finished { code, found, pace: Pace { whole, at_work: whole - starting, log_bytes } }
}

pub(crate) fn kill(child: &mut Child) {
    // SIGKILL, or nothing if it has ended.
    child.kill().unwrap();
    child.wait().unwrap();
}

type Reads = BTreeMap<String, Vec<Range<u64>>>;

/// What was read of each item. A last line that was cut short does not count.
fn read_trace(path: &Path) -> Reads {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut reads = Reads::new();
    for line in text.lines() {
        if let [item, offset, length] = line.split(' ').collect::<Vec<_>>()[..]
            && let (Ok(offset), Ok(length)) = (offset.parse::<u64>(), length.parse::<u64>())
        {
            reads.entry(item.to_owned()).or_default().push(offset..offset + length);
        }
    }
    reads
}

/// Bytes of the one that are also in the other, which may name some more than once.
fn overlap(ranges: &[Range<u64>], others: &[Range<u64>]) -> u64 {
    let mut edges = BTreeMap::<u64, [i64; 2]>::new();
    for (which, ranges) in [ranges, others].into_iter().enumerate() {
        for range in ranges {
            edges.entry(range.start).or_default()[which] += 1;
            edges.entry(range.end).or_default()[which] -= 1;
        }
    }
    let (mut open, mut from, mut bytes) = ([0, 0], 0, 0);
    for (at, [one, other]) in edges {
        if open.iter().all(|&open| open > 0) {
            bytes += at - from;
        }
        from = at;
        open = [open[0] + one, open[1] + other];
    }
    bytes
}

#[test]
fn overlaps_are_counted_once() {
    assert_eq!(overlap(&[0..10, 20..30], &[5..25, 5..25, 28..40]), 5 + 5 + 2);
    assert_eq!(overlap(&[0..5, 5..10], &[10..15, 15..20]), 0);
}

pub(crate) fn random_below(limit: Duration) -> Duration {
    Duration::from_nanos(random_number_below(1 + limit.as_nanos() as u64))
}

fn random_number_below(limit: u64) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) % limit.max(1)
}

pub(crate) fn scale() -> u64 {
    std::env::var("GOSSIP_SOAK_SCALE").map_or(1, |scale| scale.parse().unwrap())
}
