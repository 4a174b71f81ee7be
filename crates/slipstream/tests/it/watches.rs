//! Watches and their cursors, on every backend.

use std::sync::Arc;
use std::time::Duration;

use slipstream::{CursorExpiry, KvError, StoreConfig, WatchCursor, WatchEvent, WatchScope};
use tokio::sync::mpsc;

use crate::backend::{Backend, Bucket, Watched, bucket, show};
use crate::server::NatsServer;

fn prefix(prefix: &str) -> WatchScope {
    WatchScope::Prefix(prefix.into())
}

fn prefixes(prefixes: &[&str]) -> WatchScope {
    WatchScope::Prefixes(prefixes.iter().map(|&prefix| prefix.to_owned()).collect())
}

/// Synced, and everything of it applied.
async fn synced(bucket: &Bucket, scope: &WatchScope) -> Watched {
    let mut watch = bucket.watch(scope, &WatchCursor::none()).await;
    watch.until_synced().await;
    watch
}

async fn expiry(bucket: &Bucket, scope: &WatchScope, from: &WatchCursor) -> CursorExpiry {
    match bucket.watcher.watch(scope, from).await {
        Ok(_) => panic!("the cursor is taken"),
        Err(KvError::CursorExpired(expiry)) => expiry,
        Err(other) => panic!("{other:?}"),
    }
}

pub(crate) async fn a_watch_lists_the_state_and_goes_on(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    bucket.put("a", "1").await;
    bucket.put("b", "1").await;
    bucket.put("a", "2").await;
    let mut watch = bucket.sync().await;
    // Written after the watch began, before anything was asked for.
    bucket.put("c", "1").await;
    let mut all = watch.until_synced().await;
    bucket.writer.purge("b").await.unwrap();
    bucket.writer.delete("a").await.unwrap();
    let expected = ["b=1@2", "a=2@3", "c=1@4", "--b@5", "-a@6"];
    all.extend(watch.updates(expected.len() - all.len()).await);
    assert_eq!(all, expected);
    assert_eq!(watch.watch.position(), 6);
}

/// The same of some keys, with others before, between and after. Read one by one, what was written
/// meanwhile comes after the state; read all at once, with it.
pub(crate) async fn a_watch_of_a_prefix_lists_the_state_and_goes_on(backend: impl Backend) {
    let cases = [(prefix("a."), 1), (prefix("a."), 99), (prefixes(&["a.", "b."]), 1)];
    for ((scope, max), name) in cases.into_iter().zip(["b1", "b2", "b3"]) {
        // A bucket each: one that is made again at once under the name of another that was deleted
        // may still hold its messages.
        let bucket = Bucket::named(backend.connection(), name, &StoreConfig::default()).await;
        for key in ["other", "a.1", "other.a.1", "a.2", "other"] {
            bucket.put(key, "1").await;
        }
        let mut watch = bucket.watch(&scope, &WatchCursor::none()).await;
        // Written after the watch began, before anything was asked for.
        for key in ["other.1", "a.3", "other.2", "a.4", "other.3"] {
            bucket.put(key, "2").await;
        }
        let (mut all, mut synced) = (Vec::new(), false);
        while !synced {
            let (event, updates) = watch.event(max).await;
            all.extend(updates);
            synced = matches!(event, WatchEvent::Synced { .. });
        }
        bucket.writer.delete("a.2").await.unwrap();
        bucket.writer.delete("other").await.unwrap();
        bucket.put("a.5", "3").await;
        let expected = ["a.1=1@2", "a.2=1@4", "a.3=2@7", "a.4=2@9", "-a.2@11", "a.5=3@13"];
        all.extend(watch.updates(expected.len() - all.len()).await);
        assert_eq!(all, expected, "{scope:?}");
        assert_eq!(watch.watch.position(), 13);
    }
}

pub(crate) async fn an_empty_bucket_is_in_sync_at_once(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for scope in [WatchScope::All, prefix("a."), prefixes(&["a.", "b"])] {
        let mut watch = bucket.watch(&scope, &WatchCursor::none()).await;
        let (event, updates) = watch.event(100).await;
        assert_eq!(event, WatchEvent::Synced { through: 0 });
        assert!(updates.is_empty());
    }
    bucket.put("c.1", "v").await;
    let mut watch = bucket.watch(&prefix("a."), &WatchCursor::none()).await;
    assert_eq!(watch.event(100).await.0, WatchEvent::Synced { through: 1 });
    assert_eq!(watch.watch.position(), 0);
}

pub(crate) async fn deletes_are_part_of_the_state(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for key in ["a", "b", "c"] {
        bucket.put(key, "1").await;
    }
    bucket.writer.delete("a").await.unwrap();
    bucket.writer.purge("b").await.unwrap();
    assert_eq!(bucket.sync().await.until_synced().await, ["c=1@3", "-a@4", "--b@5"]);
}

pub(crate) async fn updates_ascend_and_come_once(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..300 {
        bucket.put(&format!("k.{}", at * 7 % 50), "v").await;
    }
    let mut watch = bucket.sync().await;
    let write = async {
        for at in 0..300 {
            bucket.put(&format!("k.{}", at * 11 % 50), "w").await;
            tokio::task::yield_now().await;
        }
    };
    let mut revisions: Vec<u64> = Vec::new();
    let mut syncs = 0;
    let read = async {
        let mut updates = Vec::new();
        while watch.watch.position() < 600 {
            let event = watch.watch.next(&mut updates, 16).await.unwrap();
            syncs += usize::from(matches!(event, WatchEvent::Synced { .. }));
            revisions.extend(updates.drain(..).map(|update| update.version().as_u64().unwrap()));
        }
    };
    tokio::join!(write, read);
    assert!(revisions.is_sorted_by(|a, b| a < b), "{revisions:?}");
    assert!(syncs <= 1, "{syncs}");
}

pub(crate) async fn a_prefix_is_watched(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for key in ["a.1", "ab.1", "b.1", "a.b.1"] {
        bucket.put(key, "v").await;
    }
    let mut watch = bucket.watch(&prefix("a."), &WatchCursor::none()).await;
    assert_eq!(watch.until_synced().await, ["a.1=v@1", "a.b.1=v@4"]);
    for key in ["b.2", "a.2", "ab.2"] {
        bucket.put(key, "v").await;
    }
    assert_eq!(watch.updates(1).await, ["a.2=v@6"]);
}

pub(crate) async fn a_prefix_that_ends_within_a_token_is_watched(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for key in ["a.b1", "a.c1", "b1", "a.b.1"] {
        bucket.put(key, "v").await;
    }
    let mut watch = bucket.watch(&prefix("a.b"), &WatchCursor::none()).await;
    assert_eq!(watch.until_synced().await, ["a.b1=v@1", "a.b.1=v@4"]);
    // Only what the scope has counts, though the server sends more.
    for key in ["a.c2", "a.b2"] {
        bucket.put(key, "v").await;
    }
    assert_eq!(watch.updates(1).await, ["a.b2=v@6"]);
    let cursor = watch.cursor();
    bucket.put("a.c3", "v").await;
    let mut resumed = bucket.watch(&prefix("a.b"), &cursor).await;
    assert!(resumed.until_synced().await.is_empty());
}

pub(crate) async fn many_prefixes_are_one_watch(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    // Some cover others, and some share what the server can select by.
    let scope = prefixes(&["a.", "a.b.", "c.x", "c.y", "d.e.f."]);
    for key in ["a.1", "b.1", "c.x1", "c.y1", "c.z1", "d.e.1", "d.e.f.1", "a.b.c"] {
        bucket.put(key, "v").await;
    }
    let mut watch = bucket.watch(&scope, &WatchCursor::none()).await;
    let expected = ["a.1=v@1", "c.x1=v@3", "c.y1=v@4", "d.e.f.1=v@7", "a.b.c=v@8"];
    assert_eq!(watch.until_synced().await, expected);
    let cursor = watch.cursor();
    for key in ["b.2", "d.e.f.2", "c.z2", "c.x2"] {
        bucket.put(key, "v").await;
    }
    assert_eq!(watch.updates(2).await, ["d.e.f.2=v@10", "c.x2=v@12"]);
    let mut resumed = bucket.watch(&scope, &cursor).await;
    assert_eq!(resumed.until_synced().await, ["d.e.f.2=v@10", "c.x2=v@12"]);
    let all = prefixes(&["a.", ""]);
    assert_eq!(bucket.watch(&all, &WatchCursor::none()).await.until_synced().await.len(), 12);
}

pub(crate) async fn a_scope_without_a_prefix_is_refused(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for scope in [prefixes(&[]), prefix(".a"), prefixes(&["a.", "*"])] {
        let refused = bucket.watcher.watch(&scope, &WatchCursor::none()).await;
        assert!(matches!(refused.err(), Some(KvError::InvalidKey(_))), "{scope:?}");
    }
}

pub(crate) async fn a_resumed_watch_brings_the_delta_only(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..100 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let cursor = synced(&bucket, &WatchScope::All).await.cursor();
    bucket.put("k.5", "w").await;
    bucket.writer.delete("k.6").await.unwrap();
    let mut watch = bucket.watch(&WatchScope::All, &cursor).await;
    assert_eq!(watch.watch.position(), 100);
    assert_eq!(watch.until_synced().await, ["k.5=w@101", "-k.6@102"]);
    bucket.put("k.7", "w").await;
    assert_eq!(watch.updates(1).await, ["k.7=w@103"]);
}

pub(crate) async fn a_resumed_watch_of_a_prefix_brings_the_delta_only(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..50 {
        bucket.put(&format!("a.{at}"), "v").await;
        bucket.put(&format!("b.{at}"), "v").await;
    }
    for scope in [prefix("a."), prefixes(&["a.", "c."])] {
        let cursor = synced(&bucket, &scope).await.cursor();
        let first = bucket.put("a.5", "w").await;
        bucket.put("b.5", "w").await;
        let mut watch = bucket.watch(&scope, &cursor).await;
        assert_eq!(watch.until_synced().await, [format!("a.5=w@{first}")]);
        assert_eq!(watch.watch.position(), first);
    }
}

pub(crate) async fn a_cursor_from_the_middle_of_a_state_sync_loses_nothing(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..60 {
        bucket.put(&format!("k.{at:02}"), "v").await;
    }
    for at in (0..60).step_by(3) {
        bucket.put(&format!("k.{at:02}"), "w").await;
    }
    let mut first = bucket.sync().await;
    let mut seen = first.updates(30).await;
    let cursor = first.cursor();
    drop(first);
    seen.extend(bucket.watch(&WatchScope::All, &cursor).await.until_synced().await);
    let mut keys: Vec<_> = seen.iter().map(|update| update[..4].to_owned()).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 60);
    assert_eq!(seen.len(), 60);
}

pub(crate) async fn a_cursor_from_the_middle_of_a_watch_says_how_far_the_log_went(
    backend: impl Backend,
) {
    let bucket = bucket(&backend).await;
    for key in ["a", "b", "c", "a"] {
        bucket.put(key, "v").await;
    }
    let end = |watch: &Watched| watch.watch.log_cursor().position.end;
    let mut listing = bucket.sync().await;
    assert_eq!(listing.updates(1).await, ["b=v@2"]);
    assert_eq!(end(&listing), 4, "in a shorter log the first `a` is back");
    let cursor = listing.cursor();
    bucket.put("d", "v").await;
    let mut resumed = bucket.watch(&WatchScope::All, &cursor).await;
    assert_eq!(end(&resumed), 5);
    assert_eq!(resumed.updates(1).await, ["c=v@3"]);
    bucket.put("e", "v").await;
    resumed.watch.progress().await.unwrap();
    assert_eq!((resumed.watch.position(), end(&resumed)), (3, 6));
}

pub(crate) async fn a_cursor_outlives_many_resumes_without_news(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..20 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let first = synced(&bucket, &WatchScope::All).await.cursor();
    let mut cursor = first.clone();
    for _ in 0..5 {
        let mut watch = bucket.watch(&WatchScope::All, &cursor).await;
        assert!(watch.until_synced().await.is_empty());
        cursor = watch.cursor();
    }
    assert_eq!(cursor, first);
    assert!(cursor.as_bytes().len() <= 255);
}

pub(crate) async fn without_a_position_there_is_no_cursor(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    assert!(synced(&bucket, &WatchScope::All).await.cursor().is_none());
}

pub(crate) async fn a_cursor_below_the_floor_has_expired(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..10 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let scopes = [WatchScope::All, prefix("k."), prefixes(&["k.", "l."])];
    let mut cursors = Vec::new();
    for scope in &scopes {
        let mut watch = bucket.watch(scope, &WatchCursor::none()).await;
        watch.updates(5).await;
        cursors.push(watch.cursor());
    }
    backend.evict_below("b", 7).await;
    for (scope, cursor) in scopes.iter().zip(&cursors) {
        let below = CursorExpiry::BelowFloor { revision: 5, first: 7 };
        assert_eq!(expiry(&bucket, scope, cursor).await, below);
    }
}

pub(crate) async fn a_cursor_of_other_keys_is_refused(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    bucket.put("k.1", "v").await;
    let scopes = [WatchScope::All, prefix("k."), prefixes(&["k.", "l."])];
    for of in &scopes {
        let cursor = synced(&bucket, of).await.cursor();
        for other in scopes.iter().filter(|other| *other != of) {
            assert_eq!(expiry(&bucket, other, &cursor).await, CursorExpiry::OtherScope);
        }
    }
}

pub(crate) async fn a_cursor_at_the_floor_goes_on(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..10 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let mut watch = bucket.sync().await;
    watch.updates(5).await;
    let cursor = watch.cursor();
    backend.evict_below("b", 5).await;
    let mut resumed = bucket.watch(&WatchScope::All, &cursor).await;
    assert_eq!(resumed.until_synced().await.len(), 5);
}

pub(crate) async fn a_bucket_made_again_is_told_from_the_old_one(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..10 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let before = bucket.watcher.log().await.unwrap();
    let scopes = [WatchScope::All, prefix("k."), prefixes(&["k.", "l."])];
    let mut cursors = Vec::new();
    for scope in &scopes {
        cursors.push(synced(&bucket, scope).await.cursor());
    }
    backend.delete_bucket("b").await;
    let bucket = Bucket::make(backend.connection(), &StoreConfig::default()).await;
    // The same updates under the same revisions, and more.
    for at in 0..20 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let after = bucket.watcher.log().await.unwrap();
    assert!(after.incarnation > before.incarnation);
    for (scope, cursor) in scopes.iter().zip(&cursors) {
        assert_eq!(expiry(&bucket, scope, cursor).await, CursorExpiry::Recreated);
    }
}

pub(crate) async fn bytes_that_are_no_cursor_have_expired(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    bucket.put("a", "v").await;
    let bare = 1u64.to_be_bytes().to_vec();
    for bytes in [vec![0], bare, vec![2; 21], vec![0xff; 255]] {
        let cursor = WatchCursor::from_bytes(bytes.clone()).unwrap();
        match expiry(&bucket, &WatchScope::All, &cursor).await {
            CursorExpiry::Unreadable => {}
            // Well-formed, of a scope that never was.
            CursorExpiry::OtherScope => assert_eq!(bytes.len(), 21),
            other => panic!("{bytes:?}: {other:?}"),
        }
    }
}

pub(crate) async fn an_overwritten_witness_leaves_it_to_the_next(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..10 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let cursor = synced(&bucket, &WatchScope::All).await.cursor();
    // The three newest are gone; the fourth speaks for the log.
    for at in 7..10 {
        bucket.put(&format!("k.{at}"), "w").await;
    }
    let mut watch = bucket.watch(&WatchScope::All, &cursor).await;
    assert_eq!(watch.watch.position(), 7);
    assert_eq!(watch.until_synced().await, ["k.7=w@11", "k.8=w@12", "k.9=w@13"]);
}

pub(crate) async fn a_cursor_whose_witnesses_are_all_overwritten_has_expired(
    backend: impl Backend,
) {
    let bucket = bucket(&backend).await;
    for at in 0..10 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let cursor = synced(&bucket, &WatchScope::All).await.cursor();
    for at in 1..10 {
        bucket.put(&format!("k.{at}"), "w").await;
    }
    assert_eq!(expiry(&bucket, &WatchScope::All, &cursor).await, CursorExpiry::Unproven);
}

pub(crate) async fn long_keys_leave_room_for_a_witness(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    let long = "k".repeat(2048);
    bucket.put("short", "v").await;
    bucket.put(&long, "v").await;
    let cursor = synced(&bucket, &WatchScope::All).await.cursor();
    assert!(cursor.as_bytes().len() <= 255);
    bucket.put("other", "v").await;
    let mut watch = bucket.watch(&WatchScope::All, &cursor).await;
    assert_eq!(watch.until_synced().await, ["other=v@3"]);
    bucket.put(&long, "w").await;
    assert_eq!(expiry(&bucket, &WatchScope::All, &cursor).await, CursorExpiry::Unproven);
}

pub(crate) async fn a_chunk_has_no_more_updates_than_were_asked_for(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..50 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let mut watch = bucket.sync().await;
    let mut seen = Vec::new();
    while seen.len() < 50 {
        let before = watch.watch.position();
        let (event, updates) = watch.event(7).await;
        let WatchEvent::Updates { pending, stored_at_ns } = event else { panic!("{event:?}") };
        assert!((1..=7).contains(&updates.len()), "{}", updates.len());
        seen.extend(updates);
        assert_eq!(pending, 50 - seen.len() as u64);
        assert!(stored_at_ns > 1_600_000_000_000_000_000, "{stored_at_ns}");
        assert!(watch.watch.position() > before);
    }
    assert!(matches!(watch.event(7).await.0, WatchEvent::Synced { through: 50 }));
}

pub(crate) async fn a_dropped_wait_takes_nothing(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    let mut watch = synced(&bucket, &WatchScope::All).await;
    let mut updates = Vec::new();
    for at in 0..50 {
        bucket.put(&format!("k.{at}"), "v").await;
        // Dropped at the first time that it has to wait, often with a message on its way.
        let next = watch.watch.next(&mut updates, 3);
        if let Ok(event) = tokio::time::timeout(Duration::ZERO, next).await {
            event.unwrap();
        }
    }
    let mut all: Vec<_> = updates.iter().map(show).collect();
    all.extend(watch.updates(50 - all.len()).await);
    let expected: Vec<_> = (0..50).map(|at| format!("k.{at}=v@{}", at + 1)).collect();
    assert_eq!(all, expected);
}

pub(crate) async fn a_slow_reader_loses_nothing(backend: impl Backend) {
    let config = StoreConfig { max_bytes: Some(1 << 30), ..StoreConfig::default() };
    let bucket = Bucket::make(backend.connection(), &config).await;
    let mut watch = synced(&bucket, &WatchScope::All).await;
    // More than the first windows of flow control, while nobody reads.
    let value = "v".repeat(20_000);
    let writers = (0..8).map(|writer| {
        let (kv, value) = (Arc::clone(&bucket.writer), value.clone());
        tokio::spawn(async move {
            for at in 0..250 {
                kv.put(&format!("k.{writer}.{at}"), value.clone().into()).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let mut seen = 0;
    while seen < 2000 {
        seen += watch.event(64).await.1.len();
        assert_eq!(watch.watch.position(), seen as u64);
    }
}

pub(crate) async fn what_is_evicted_under_a_watch_is_skipped_in_silence(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..10 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let cursor = synced(&bucket, &WatchScope::All).await.cursor();
    for at in 10..20 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    // The guard's facts show what the watch itself cannot.
    backend.evict_below("b", 15).await;
    let below = CursorExpiry::BelowFloor { revision: 10, first: 15 };
    assert_eq!(expiry(&bucket, &WatchScope::All, &cursor).await, below);
    assert_eq!(bucket.watcher.log().await.unwrap().first, 15);
    let seen = bucket.sync().await.until_synced().await;
    assert_eq!(seen.len(), 6);
    assert_eq!(seen[0], "k.14=v@15");
}

pub(crate) async fn progress_tells_what_is_pending_and_where_the_log_begins(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..10 {
        bucket.put(&format!("a.{at}"), "v").await;
        bucket.put(&format!("b.{at}"), "v").await;
    }
    let log = bucket.watcher.log().await.unwrap();
    assert_eq!((log.first, log.last), (1, 20));
    let mut watch = synced(&bucket, &prefix("a.")).await;
    let progress = watch.watch.progress().await.unwrap();
    assert_eq!((progress.head, progress.pending), (20, 0));
    assert_eq!((progress.delivered, progress.received), (19, 19));
    assert_eq!((progress.log.first, progress.log.incarnation), (1, log.incarnation));
    // Sent or still pending, but not received.
    bucket.put("a.new", "v").await;
    let progress = watch.watch.progress().await.unwrap();
    assert_eq!(progress.head, 21);
    assert!(progress.pending > 0 || progress.delivered == 21 || progress.received < 21);
    assert_eq!(watch.updates(1).await, ["a.new=v@21"]);
    backend.evict_below("b", 4).await;
    let progress = watch.watch.progress().await.unwrap();
    assert_eq!((progress.pending, progress.delivered, progress.received), (0, 21, 21));
    assert_eq!(progress.log.first, 4);
}

pub(crate) async fn an_advanced_watch_resumes_from_there(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    bucket.put("a.1", "v").await;
    let mut watch = synced(&bucket, &prefix("a.")).await;
    for at in 0..10 {
        bucket.put(&format!("b.{at}"), "v").await;
    }
    let before = watch.cursor();
    watch.watch.advance(11);
    watch.watch.advance(5);
    assert_eq!(watch.watch.position(), 11);
    assert_ne!(watch.cursor(), before);
    bucket.put("a.2", "v").await;
    assert_eq!(watch.updates(1).await, ["a.2=v@12"]);
    // The witness of the prefix holds the floor, or the advanced position expires with it.
    let mut resumed = bucket.watch(&prefix("a."), &watch.cursor()).await;
    assert!(resumed.until_synced().await.is_empty());
}

pub(crate) async fn updates_are_pushed_into_a_channel(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..10 {
        bucket.put(&format!("a.{at}"), "v").await;
        bucket.put(&format!("b.{at}"), "v").await;
    }
    let some = ["a.".to_owned(), "c.".to_owned()];
    let scopes = [WatchScope::All, prefix("a."), prefixes(&["a.", "c."])];
    let mut cursors = Vec::new();
    for scope in &scopes {
        cursors.push(synced(&bucket, scope).await.cursor());
    }
    for key in ["b.new", "a.new", "b.0", "c.new"] {
        bucket.put(key, "w").await;
    }
    let all: Vec<_> = (1..10).flat_map(|at| [format!("a.{at}"), format!("b.{at}")]).collect();
    let own: Vec<_> = (0..10).map(|at| format!("a.{at}")).collect();
    let owned = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect::<Vec<_>>();
    let expected = [
        [owned(&["a.0"]), all, owned(&["b.new", "a.new", "b.0", "c.new"])].concat(),
        [own.clone(), owned(&["a.new"])].concat(),
        [own, owned(&["a.new", "c.new"])].concat(),
        owned(&["b.new", "a.new", "b.0", "c.new"]),
        owned(&["a.new"]),
        owned(&["a.new", "c.new"]),
    ];
    for (case, expected) in expected.into_iter().enumerate() {
        let watcher = Arc::clone(&bucket.watcher);
        let (some, cursors) = (some.clone(), cursors.clone());
        let (tx, mut rx) = mpsc::channel(1);
        let pushing = tokio::spawn(async move {
            match case {
                0 => watcher.watch_all(tx).await,
                1 => watcher.watch_prefix("a.", tx).await,
                2 => watcher.watch_prefixes(&some, tx).await,
                3 => watcher.watch_all_from(&cursors[0], tx).await,
                4 => watcher.watch_prefix_from("a.", &cursors[1], tx).await,
                _ => watcher.watch_prefixes_from(&some, &cursors[2], tx).await,
            }
        });
        let mut received = Vec::new();
        while received.len() < expected.len() {
            received.push(rx.recv().await.unwrap().key().as_str().to_owned());
        }
        assert_eq!(received, expected, "case {case}");
        drop(rx);
        assert_eq!(pushing.await.unwrap(), Ok(()));
    }
}

pub(crate) async fn a_channel_without_a_reader_ends_the_watch(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    let (tx, rx) = mpsc::channel(1);
    drop(rx);
    assert_eq!(bucket.watcher.watch_all(tx).await, Ok(()));
    let garbage = WatchCursor::from_bytes(vec![0]).unwrap();
    let (tx, _rx) = mpsc::channel(1);
    let expired = bucket.watcher.watch_all_from(&garbage, tx).await;
    assert_eq!(expired, Err(KvError::CursorExpired(CursorExpiry::Unreadable)));
}

/// A server has room for only so many.
#[tokio::test]
async fn many_prefixes_are_one_consumer_on_nats() {
    let server = NatsServer::start();
    let bucket = Bucket::make(&server.connect().await, &StoreConfig::default()).await;
    let client = async_nats::connect(server.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    let mut stream = jetstream.get_stream("KV_b").await.unwrap();
    let many: Vec<_> = (0..20).map(|at| format!("p{at}.")).collect();
    for prefix in &many {
        bucket.put(&format!("{prefix}key"), "v").await;
    }
    let scope = WatchScope::Prefixes(many);
    let mut watch = bucket.watch(&scope, &WatchCursor::none()).await;
    assert_eq!(watch.until_synced().await.len(), 20);
    assert_eq!(stream.info().await.unwrap().state.consumer_count, 1);
    let _resumed = bucket.watch(&scope, &watch.cursor()).await;
    assert_eq!(stream.info().await.unwrap().state.consumer_count, 2);
}
