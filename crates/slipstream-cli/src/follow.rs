//! What goes on until it is interrupted: `watch` and `fold`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use slipstream::{
    AppendLogSnapshot, FoldConfig, FoldHandle, FoldStatus, KvError, KvStore, KvUpdate, KvWatcher,
    SnapshotStore, Watch, WatchCursor, WatchScope, fold_control, protocol, watch_applied,
};

use crate::failure::{Failure, io};
use crate::{FOLD, position, print};

/// Prints the keys that begin with a prefix, and what happens to them.
pub(crate) async fn watch(store: Arc<dyn KvStore>, prefix: &str) -> Result<(), Failure> {
    let watcher = store.watcher().ok_or(KvError::Unsupported("watching"))?;
    let scope = WatchScope::Prefix(prefix.to_owned());
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(io("waiting")),
        failed = watch_on(&*watcher, &scope) => failed,
    }
}

/// Through interruptions, from where each of them began.
async fn watch_on(watcher: &dyn KvWatcher, scope: &WatchScope) -> Result<(), Failure> {
    let mut cursor = WatchCursor::none();
    let mut watch = watcher.watch(scope, &cursor).await?;
    loop {
        let lost = print_updates(&mut *watch, &mut cursor).await?;
        say(&format!("{lost}; waiting"));
        watch = watch_again(watcher, scope, &mut cursor).await?;
        say("watching again");
    }
}

/// Returns what the watch was lost by; the cursor is then that of what was printed.
async fn print_updates(
    watch: &mut dyn Watch,
    cursor: &mut WatchCursor,
) -> Result<KvError, Failure> {
    let mut updates = Vec::new();
    loop {
        if let Err(lost) = watch.next(&mut updates, 100).await {
            return Ok(lost);
        }
        print(&updates.drain(..).map(|update| line(&update)).collect::<String>())?;
        *cursor = watch.cursor();
    }
}

async fn watch_again(
    watcher: &dyn KvWatcher,
    scope: &WatchScope,
    cursor: &mut WatchCursor,
) -> Result<Box<dyn Watch>, KvError> {
    let mut failures = 0;
    loop {
        failures += 1;
        tokio::time::sleep(protocol::backoff(failures)).await;
        match watcher.watch(scope, cursor).await {
            Err(KvError::CursorExpired(why)) => {
                say(&format!("updates may have been missed, so all keys are printed again: {why}"));
                *cursor = WatchCursor::none();
            }
            Err(error) if heals(&error) => {}
            watch => return watch,
        }
    }
}

/// Whether an error may go away while one waits for the server.
fn heals(error: &KvError) -> bool {
    use KvError::{Backend, Connect, ConnectionLost, Timeout, WatchError};
    matches!(
        error,
        Backend { .. } | Connect(_) | ConnectionLost { .. } | Timeout { .. } | WatchError(_)
    )
}

fn line(update: &KvUpdate) -> String {
    let revision = update.version().as_u64().unwrap_or_default();
    let key = update.key().as_str();
    match update {
        KvUpdate::Put(entry) => {
            format!("{revision}\tput\t{key}\t{}\n", String::from_utf8_lossy(&entry.value))
        }
        KvUpdate::Delete { .. } => format!("{revision}\tdelete\t{key}\n"),
        KvUpdate::Purge { .. } => format!("{revision}\tpurge\t{key}\n"),
    }
}

pub(crate) fn scope(prefixes: &[String]) -> WatchScope {
    match prefixes {
        [] => WatchScope::All,
        prefixes => WatchScope::Prefixes(prefixes.to_vec()),
    }
}

/// The fold of a directory, which is made if there is none.
pub(crate) fn load(dir: &Path) -> Result<(PathBuf, WatchCursor, AppendLogSnapshot), Failure> {
    let path = dir.join(FOLD);
    std::fs::create_dir_all(dir).map_err(Failure::path(dir))?;
    let (cursor, fold) = AppendLogSnapshot::load(&path).map_err(Failure::store(&path))?;
    Ok((path, cursor, fold))
}

/// Keeps the directory equal to the bucket. `store` is where it is restored from.
pub(crate) async fn fold(
    config: FoldConfig,
    dir: &Path,
    once: bool,
    store: &str,
) -> Result<(), Failure> {
    let (path, cursor, fold) = load(dir)?;
    print(&format!("loaded {}\n", position(&cursor)))?;
    let (handle, control) = fold_control();
    let folding = tokio::spawn(watch_applied(config, fold, (), control));
    let (steer, status, store) = (handle.clone(), handle.status(), store.to_owned());
    let steering = tokio::spawn(async move {
        let on_synced = |now: &FoldStatus| {
            let text = format!("synced revision={} updates={}\n", now.applied, now.updates);
            print(&text).is_err() || once
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = announce(&steer, &store, on_synced) => {}
        }
        steer.shutdown();
    });
    let ended = folding.await.expect("the fold does not panic");
    steering.abort();
    ended.result.map_err(|source| Failure::Fold { path, source })?;
    let status = status.borrow().clone();
    print(&format!(
        "stopped {} updates={} repairs={} overruns={}\n",
        position(&ended.cursor),
        status.updates,
        status.repairs,
        status.overruns
    ))
}

/// Says what becomes of the fold; returns when it has caught up and that is all, or it has ended.
pub(crate) async fn announce(
    handle: &FoldHandle,
    store: &str,
    mut on_synced: impl FnMut(&FoldStatus) -> bool,
) {
    let mut status = handle.status();
    let mut before = FoldStatus::default();
    loop {
        let now = status.borrow_and_update().clone();
        news(&before, &now, store).iter().for_each(|text| say(text));
        let is_news = now.synced && (!before.synced || now.repairs > before.repairs);
        if is_news && on_synced(&now) {
            return;
        }
        before = now;
        if status.changed().await.is_err() {
            return;
        }
    }
}

/// What somebody should know who sees only how the fold stood and how it stands.
fn news(before: &FoldStatus, now: &FoldStatus, store: &str) -> Vec<String> {
    let mut news = Vec::new();
    match (&before.watch_error, &now.watch_error) {
        // While a server is away, the texts of one error differ.
        (None, Some(error)) => news.push(format!("{error}; waiting")),
        (Some(_), None) => news.push("watching again".to_owned()),
        _ => {}
    }
    if let Some(repair) = &now.last_repair {
        if now.repairs > before.repairs {
            let by = match repair.from_artifact {
                true => "the fold is restored from an artifact",
                false => "the bucket is listed",
            };
            news.push(format!("updates may have been missed, so {by}: {}", repair.why));
        }
        if now.synced && (!before.synced || now.repairs > before.repairs) {
            let (deleted, unconfirmed) = (repair.deleted, repair.unconfirmed);
            news.push(format!("repaired: deleted={deleted} unconfirmed={unconfirmed}"));
        }
    }
    if now.restoring && !before.restoring {
        news.push("the bucket has evicted what the fold lacks; downloading an artifact".to_owned());
    }
    if let Some(why) = &now.not_restored
        && now.not_restored != before.not_restored
    {
        news.push(format!("{store}: the fold is not restored from an artifact: {why}"));
    }
    if now.synced && now.may_be_incomplete && !(before.synced && before.may_be_incomplete) {
        news.push(
            "the bucket had evicted values before they were read: keys may be missing".into(),
        );
    }
    if now.overruns > before.overruns {
        news.push(
            "the log has dropped what was to be read; keys that it has no more leave the fold"
                .into(),
        );
    }
    news
}

pub(crate) fn say(text: &str) {
    eprintln!("slipstream: {text}");
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use slipstream::{CursorExpiry, Repair};

    use super::*;

    #[test]
    fn a_fold_says_each_change_once() {
        let quiet = FoldStatus { synced: true, applied: 3, ..FoldStatus::default() };
        assert!(news(&quiet, &FoldStatus { applied: 9, ..quiet.clone() }, "").is_empty());
        let lost = FoldStatus { watch_error: Some(KvError::NotConnected), ..quiet.clone() };
        let other = FoldStatus { watch_error: Some(KvError::EmptyValue), ..quiet.clone() };
        assert_eq!(news(&quiet, &lost, ""), ["not connected; waiting"]);
        assert!(news(&lost, &other, "").is_empty());
        assert_eq!(news(&other, &quiet, ""), ["watching again"]);
        let overrun = FoldStatus { overruns: 1, ..quiet.clone() };
        assert_eq!(news(&quiet, &overrun, "").len(), 1);
        assert!(news(&overrun, &overrun, "").is_empty());
        let refused = FoldStatus { not_restored: Some("it said no".into()), ..quiet.clone() };
        let said = "s3://b: the fold is not restored from an artifact: it said no";
        assert_eq!(news(&quiet, &refused, "s3://b"), [said]);
        assert!(news(&refused, &refused, "s3://b").is_empty());
    }

    #[test]
    fn a_repair_is_said_when_it_begins_and_when_it_is_done() {
        let (why, at) = (CursorExpiry::Recreated, SystemTime::UNIX_EPOCH);
        let last_repair = Some(Repair {
            why,
            deleted: 2,
            unconfirmed: 0,
            at,
            from_artifact: false,
            is_over: true,
        });
        let quiet = FoldStatus { synced: true, ..FoldStatus::default() };
        let begun = FoldStatus { repairs: 1, last_repair, ..FoldStatus::default() };
        let done = FoldStatus { synced: true, ..begun.clone() };
        let begins =
            "updates may have been missed, so the bucket is listed: the bucket was made again";
        let ends = "repaired: deleted=2 unconfirmed=0";
        assert_eq!(news(&quiet, &begun, ""), [begins]);
        assert_eq!(news(&begun, &done, ""), [ends]);
        // Too quick to be seen at work.
        assert_eq!(news(&quiet, &done, ""), [begins, ends]);
        assert!(news(&done, &done, "").is_empty());
    }
}
