//! What can happen to a bucket and its objects while they are read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gossip_contracts::connector::{Connector, ConnectorError, Page};
use gossip_contracts::coordination::CursorUpdate;
use gossip_object_store::{ObjectSource, OpenError};

use crate::conformance::options;
use crate::server::Weed;

fn content(number: usize) -> Vec<u8> {
    format!("object {number}\n").repeat(number + 1).into_bytes()
}

fn fill(weed: &Weed, bucket: &str, objects: usize) {
    for number in 0..objects {
        weed.put(bucket, &format!("dir{}/{number:03}", number % 3), &content(number)).unwrap();
    }
}

fn keys(source: &ObjectSource) -> Vec<String> {
    let (mut page, mut all) = (Page::new(), Vec::new());
    let mut last: Option<Vec<u8>> = None;
    loop {
        let cursor = CursorUpdate::new(last.as_deref(), None);
        source.list(source.key_range(), cursor, 7, &mut page).unwrap();
        all.extend(page.iter().map(|entry| String::from_utf8(entry.key.to_vec()).unwrap()));
        if page.is_last() {
            return all;
        }
        last = page.get(page.len() - 1).map(|entry| entry.key.to_vec());
    }
}

fn read(source: &ObjectSource, key: &str) -> Result<Vec<u8>, ConnectorError> {
    let mut reader = source.open(key.as_bytes())?;
    let (mut bytes, mut buf) = (Vec::new(), vec![0; 100_000]);
    loop {
        match reader.read_at(bytes.len() as u64, &mut buf)? {
            0 => return Ok(bytes),
            len => bytes.extend_from_slice(&buf[..len]),
        }
    }
}

/// How many bytes a request asks for.
fn bytes_asked_for(head: &str) -> u64 {
    let mut lines = head.lines().filter_map(|line| line.split_once(": bytes="));
    let range = lines.find(|(name, _)| name.eq_ignore_ascii_case("range"));
    let ends = range.and_then(|(_, range)| range.split_once('-'));
    ends.map_or(0, |(first, last)| 1 + last.parse::<u64>().unwrap() - first.parse::<u64>().unwrap())
}

/// One server, as it takes longest to start.
#[test]
fn a_bucket_is_read_through_throttling_replacing_deleting_and_denying() {
    let weed = Weed::start();
    fill(&weed, "bucket", 40);
    let open =
        |url: &str, endpoint: &str| ObjectSource::open(url, &options(&weed, endpoint.to_owned()));
    let direct = open("s3://bucket/", &weed.endpoint()).unwrap();
    let all = keys(&direct);
    assert_eq!(all.len(), 40);

    // A prefix is what names begin with.
    let part = open("s3://bucket/dir1/", &weed.endpoint()).unwrap();
    assert!(keys(&part).iter().all(|key| key.starts_with("dir1/")));
    assert_eq!((keys(&part).len(), part.url()), (13, "s3://bucket/dir1/".to_owned()));

    // Two requests of three are refused for a while.
    let throttled = weed.proxy(|_, number| (number % 3 != 2).then_some(503));
    let source = open("s3://bucket", &throttled).unwrap();
    assert_eq!(keys(&source), all);
    for key in all.iter().step_by(9) {
        let number: usize = key[key.len() - 3..].parse().unwrap();
        assert_eq!(read(&source, key).unwrap(), content(number), "{key}");
    }

    // A token that has expired leads where the key leads.
    let forgetful = weed.proxy(|line, _| line.contains("continuation-token").then_some(400));
    let source = open("s3://bucket", &forgetful).unwrap();
    let mut page = Page::new();
    source.list(source.key_range(), CursorUpdate::initial(), 11, &mut page).unwrap();
    let token = page.token().unwrap().to_vec();
    let cursor = CursorUpdate::new(Some(all[10].as_bytes()), Some(&token));
    source.list(source.key_range(), cursor, 5, &mut page).unwrap();
    assert_eq!(page.get(0).unwrap().key, all[11].as_bytes());

    // This store has an order of its own where a name goes on from that of a folder.
    weed.put("unordered", "a/b", b"1").unwrap();
    weed.put("unordered", "a-b", b"2").unwrap();
    let source = open("s3://unordered", &weed.endpoint()).unwrap();
    let listed = source.list(source.key_range(), CursorUpdate::initial(), 9, &mut page);
    let error = listed.expect_err("a cursor in it would skip");
    assert!(error.to_string().contains("out of order") && page.is_empty(), "{error}");

    // Large, in several requests; replaced in the middle, it is no mixture.
    let large: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    weed.put("bucket", "large", &large).unwrap();
    assert!(read(&direct, "large").unwrap() == large);
    // In parts that others read between: nothing is fetched behind the end of a part.
    let asked_for = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked_for);
    let counting = weed.proxy(move |head, _| {
        counted.fetch_add(bytes_asked_for(head), Ordering::Relaxed);
        None
    });
    let source = open("s3://bucket", &counting).unwrap();
    let mut reader = source.open(b"large").unwrap();
    let (opened, parts) = (1 << 20, [2_000_000..7_500_000, 9_000_000..11_000_001]);
    let mut chunk = vec![0; 256 << 10];
    for part in parts.clone() {
        reader.limit_read_ahead(part.end as u64);
        let mut at = part.start;
        while at < part.end {
            let room = chunk.len().min(part.end - at);
            let read = reader.read_at(at as u64, &mut chunk[..room]).unwrap();
            assert!(read > 0 && chunk[..read] == large[at..at + read]);
            at += read;
        }
    }
    let wanted = opened + parts.map(|part| part.len() as u64).iter().sum::<u64>();
    assert_eq!(asked_for.load(Ordering::Relaxed), wanted);
    // The limit is none for reads.
    assert!(reader.read_at(11_500_000, &mut chunk).unwrap() > 0);

    let mut reader = direct.open(b"large").unwrap();
    let mut buf = [0; 1000];
    assert_eq!(reader.read_at(0, &mut buf).unwrap(), 1000);
    assert_eq!(reader.size(), large.len() as u64);
    weed.put("bucket", "large", b"something else, and shorter").unwrap();
    let error = reader.read_at(9_000_000, &mut buf).unwrap_err();
    assert!(error.is_retryable() || matches!(error, ConnectorError::NotFound { .. }), "{error}");
    assert_eq!(read(&direct, "large").unwrap(), b"something else, and shorter");

    // Gone, refused, and no bucket at all.
    weed.delete("bucket", &all[3]);
    let gone = read(&direct, &all[3]).unwrap_err();
    assert!(matches!(gone, ConnectorError::NotFound { .. }), "{gone}");
    let denied = all[5].clone();
    let denying = weed.proxy(move |line, _| line.contains(&denied).then_some(403));
    let source = open("s3://bucket", &denying).unwrap();
    let error = read(&source, &all[5]).unwrap_err();
    assert!(matches!(error, ConnectorError::PermissionDenied { .. }), "{error}");
    assert!(read(&source, &all[6]).is_ok());
    // A part that is refused is not asked for as a whole; an empty object has no parts.
    let whole = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&whole);
    let refusing = weed.proxy(move |head, _| {
        let is_object = head.starts_with("GET") && head.contains("/dir");
        let is_whole = is_object && bytes_asked_for(head) == 0;
        counted.fetch_add(u64::from(is_whole), Ordering::Relaxed);
        (is_object && !is_whole).then_some(400)
    });
    let source = open("s3://bucket", &refusing).unwrap();
    let error = read(&source, &all[6]).unwrap_err();
    assert!(matches!(error, ConnectorError::Permanent { .. }), "{error}");
    assert_eq!(whole.load(Ordering::Relaxed), 0);
    weed.put("bucket", "nothing", b"").unwrap();
    assert_eq!(read(&direct, "nothing").unwrap(), b"");
    match open("s3://another-bucket/x", &weed.endpoint()) {
        Err(OpenError::Store { reason, .. }) => assert_eq!(reason, "there is no such bucket"),
        other => panic!("{:?}", other.map(drop)),
    }
    assert!(matches!(open("http://bucket", ""), Err(OpenError::NotABucket { .. })));
}
