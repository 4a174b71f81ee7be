//! Names that a store takes and our library has no way to write. SeaweedFS takes none of them, so the
//! store here is a list of names that answers as S3 does.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use gossip_contracts::connector::{Connector, Page, SkipReason};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_object_store::{ObjectOptions, ObjectSource};

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, later @ ..] = rest {
        rest = later;
        if *first == b'%' {
            let hex = str::from_utf8(&later[..2]).unwrap();
            bytes.push(u8::from_str_radix(hex, 16).unwrap());
            rest = &later[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Answers one request for a list of `names`.
fn answer(stream: &TcpStream, names: &BTreeSet<String>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut rest = String::new();
    while reader.read_line(&mut rest)? > 2 {
        rest.clear();
    }
    let query = line.split(' ').nth(1).and_then(|path| path.split_once('?')).unwrap_or_default().1;
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| decoded(value))
    };
    let after = value("continuation-token").or_else(|| value("start-after")).unwrap_or_default();
    let (prefix, delimiter) = (value("prefix").unwrap_or_default(), value("delimiter"));
    let max = value("max-keys").map_or(1_000, |max| max.parse().unwrap());
    let wanted = names.iter().filter(|name| **name > after && name.starts_with(&prefix));
    let mut body = "<ListBucketResult>".to_owned();
    let page: Vec<&String> = wanted.clone().take(max).collect();
    for name in
        page.iter().filter(|name| delimiter.is_none() || !name[prefix.len()..].contains('/'))
    {
        body += &format!(
            "<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
             <ETag>&quot;tag&quot;</ETag><Size>5</Size></Contents>"
        );
    }
    if wanted.count() > max {
        body += &format!("<NextContinuationToken>{}</NextContinuationToken>", page[max - 1]);
    }
    body += "</ListBucketResult>";
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nConnection: close\r\n";
    write!(&*stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn bucket_of(names: &[&str]) -> ObjectSource {
    let names: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // A client that goes away is no matter.
            let _ = answer(&client, &names);
        }
    });
    let mut options = ObjectOptions::default();
    let settings = [("aws_endpoint_url", &endpoint[..]), ("aws_skip_signature", "true")];
    options.settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    ObjectSource::open("s3://bucket", &options).unwrap()
}

/// Every key of a range with whether it can be read, page by page.
fn listed(
    source: &ObjectSource,
    range: ShardSpecRef<'_>,
    with_tokens: bool,
) -> Vec<(String, bool)> {
    let (mut page, mut all) = (Page::new(), Vec::new());
    let (mut last, mut token): (Option<Vec<u8>>, Option<Vec<u8>>) = (None, None);
    loop {
        let cursor = CursorUpdate::new(last.as_deref(), token.as_deref());
        source.list(range, cursor, 8, &mut page).unwrap();
        for entry in page.iter() {
            assert!(matches!(entry.skip, None | Some(SkipReason::Unreadable)));
            let key = String::from_utf8(entry.key.to_vec()).unwrap();
            all.push((key, entry.skip.is_none()));
        }
        if page.is_last() {
            return all;
        }
        last = page.get(page.len() - 1).map(|entry| entry.key.to_vec());
        token = page.token().filter(|_| with_tokens).map(<[u8]>::to_vec);
    }
}

#[test]
fn a_name_that_cannot_be_written_is_listed_as_unreadable_and_all_others_are_read() {
    let names = [
        "a//b", "a/b", "b/..", "b/../x", "b/./y", "c/1", "c/2", "c/3", "c/4", "c/5", "c/6", "c/7",
        "c/8", "c/9", "d/\u{7f}", "d//", "d//1", "d//2", "z",
    ];
    let source = bucket_of(&names);
    let mut expected: Vec<(String, bool)> = names
        .iter()
        .map(|name| {
            let is_fine = |part: &str| !matches!(part, "" | "." | ".." | "\u{7f}");
            ((*name).to_owned(), name.split('/').all(is_fine))
        })
        .collect();
    expected.sort();
    for with_tokens in [true, false] {
        assert_eq!(listed(&source, source.key_range(), with_tokens), expected, "{with_tokens}");
    }
    // A shard that ends, or begins, between or at them.
    for at in [&b"a//b"[..], b"b/..", b"c/5", b"d//1"] {
        let whole = source.key_range();
        let before = ShardSpecRef::new(whole.start(), at, b"");
        let after = ShardSpecRef::new(at, whole.end(), b"");
        let both = [listed(&source, before, true), listed(&source, after, false)].concat();
        assert_eq!(both, expected, "{}", String::from_utf8_lossy(at));
    }
    // Where to cut is not their matter.
    source.split_points(source.key_range(), CursorUpdate::initial(), 2).unwrap();
}
