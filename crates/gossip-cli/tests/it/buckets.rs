//! Buckets of a real store, through the real program.

use crate::support::{Place, Ran, token};
use crate::weed::Weed;

fn scan(place: &Place, weed: &Weed, endpoint: String, words: &[&str]) -> Ran {
    let mut command = place.command();
    command.arg("scan").args(words).envs(weed.variables(endpoint));
    Ran::of(command.output().unwrap(), &words.join(" "))
}

/// One server, as it takes longest to start.
#[test]
fn what_is_wrong_with_a_bucket_is_named_and_the_rest_is_scanned() {
    let (place, weed) = (Place::new(), Weed::start());
    for number in 0..30 {
        let content = format!("words\nT={}\n", token(number));
        weed.put("bucket", &format!("dir{}/{number:02}.env", number % 3), content.as_bytes())
            .unwrap();
    }
    let direct = || weed.endpoint();
    let ran = scan(&place, &weed, direct(), &["s3://bucket"]).exits(1).says("30 findings");
    assert!(ran.stdout.contains("s3://bucket/dir0/00.env:2:3: github-token"), "{ran:?}");
    // A tag names the content: at once nothing is read again.
    scan(&place, &weed, direct(), &["s3://bucket"]).exits(1).says("30 unchanged");

    // Of several buckets a proof says which.
    weed.put("other", "dir0/00.env", b"words").unwrap();
    let proof = place.path("proof.jsonl");
    let words = ["s3://bucket/dir0/", "s3://other", "--proof", proof.to_str().unwrap()];
    scan(&place, &weed, direct(), &words).exits(1);
    let proof = std::fs::read_to_string(proof).unwrap();
    for path in ["s3://bucket/dir0/00.env", "s3://other/dir0/00.env"] {
        assert_eq!(proof.matches(&format!("\"path\":\"{path}\"")).count(), 1, "{proof}");
    }

    // One that is gone, and one that has changed.
    weed.delete("bucket", "dir1/04.env");
    weed.put("bucket", "dir2/05.env", b"nothing any more\n").unwrap();
    scan(&place, &weed, direct(), &["s3://bucket"]).exits(1).says("28 findings");

    // A store that throttles is waited for; what is refused is named and tried again.
    let place = Place::new();
    let throttled = weed.proxy(|_, number| number.is_multiple_of(2).then_some(503));
    scan(&place, &weed, throttled, &["s3://bucket/"]).exits(1).says("28 findings");
    let place = Place::new();
    let denied = weed.proxy(|line, _| line.contains("dir0/03.env").then_some(403));
    let ran = scan(&place, &weed, denied, &["s3://bucket/"]).exits(2);
    let ran = ran.says("27 findings").says("could not be read: 1 permission denied");
    ran.says("  s3://bucket/dir0/03.env: permission denied\n");

    // What is deleted, or replaced again and again, between listing and reading is no less named.
    let place = Place::new();
    let gone = weed.proxy(|line, _| {
        let answers = [("dir0/06.env", 404), ("dir1/07.env", 412)];
        answers.iter().find(|(name, _)| line.contains(name)).map(|(_, status)| *status)
    });
    let ran = scan(&place, &weed, gone, &["s3://bucket/", "-q"]).exits(2);
    let ran = ran.says("  s3://bucket/dir0/06.env: vanished\n");
    ran.says("  s3://bucket/dir1/07.env: kept failing\n");
    scan(&place, &weed, direct(), &["s3://bucket/"]).exits(1).says("28 findings");

    // A prefix that was mistyped is no error, but said, also to a job that is told to be quiet.
    let ran = scan(&place, &weed, direct(), &["s3://bucket/dri0", "-q"]).exits(0);
    assert_eq!(ran.stderr, "gossip: s3://bucket/dri0: nothing is there; is the prefix right?\n");

    // A page out of order parks its shard.
    weed.put("unordered", "a/b.env", b"words").unwrap();
    weed.put("unordered", "a-b.env", b"words").unwrap();
    let ran = scan(&place, &weed, direct(), &["s3://unordered", "-q"]).exits(2);
    ran.says("parked: list: the store lists names out of order\n").says("  from s3://unordered/");

    for (words, reason) in [
        (["s3://no-such-bucket/x"], "s3://no-such-bucket/x: there is no such bucket"),
        (["s3://"], "s3://: it is no address of a bucket"),
    ] {
        let ran = scan(&place, &weed, direct(), &words).exits(2).says(reason);
        assert_eq!((ran.stderr.lines().count(), ran.stdout.as_str()), (1, ""), "{ran:?}");
    }
    let mut wrong = place.command();
    wrong.args(["scan", "s3://bucket"]).envs(weed.variables(direct()));
    wrong.env("AWS_SECRET_ACCESS_KEY", "another");
    let ran = Ran::of(wrong.output().unwrap(), "scan").exits(2).says("refuses access");
    assert!(!ran.stderr.contains("another"), "{ran:?}");
}
