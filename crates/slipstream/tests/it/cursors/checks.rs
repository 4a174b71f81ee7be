//! What holds of a watch from arbitrary bytes; called by a property test and by fuzzing.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use slipstream::{
    Connection, KvError, KvWatcher, MemoryConnection, StoreConfig, WatchCursor, WatchScope,
};

/// Memory never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("memory waits"),
    }
}

/// A cursor after the first update.
fn cursor_of(watcher: &dyn KvWatcher) -> WatchCursor {
    let mut watch = now(watcher.watch(&WatchScope::All, &WatchCursor::none())).unwrap();
    now(watch.next(&mut Vec::new(), 1)).unwrap();
    watch.cursor()
}

/// The bytes are refused as expired, or lead to a position within the log whose cursor is taken
/// again. Incarnation and scope are made right, so that more than them is looked at.
pub(crate) fn check_cursor(data: &[u8]) {
    let connection = MemoryConnection::new();
    let store = now(connection.store("b", &StoreConfig::default())).unwrap();
    let (writer, watcher) = (store.writer().unwrap(), store.watcher().unwrap());
    for key in ["a", "b", "c", "a", "d"] {
        now(writer.put(key, "v".into())).unwrap();
    }
    let log = now(watcher.log()).unwrap();
    let mut bytes = data[..data.len().min(WatchCursor::MAX_LEN)].to_vec();
    let real = cursor_of(&*watcher);
    for fixed in [1..9, 17..21] {
        if let Some(part) = bytes.get_mut(fixed.clone()) {
            part.copy_from_slice(&real.as_bytes()[fixed]);
        }
    }
    let cursor = WatchCursor::from_bytes(bytes).unwrap();
    match now(watcher.watch(&WatchScope::All, &cursor)) {
        Ok(watch) => {
            assert!(watch.position() <= log.last, "{} of {}", watch.position(), log.last);
            assert!(now(watcher.watch(&WatchScope::All, &watch.cursor())).is_ok());
        }
        Err(KvError::CursorExpired(_)) => assert!(!cursor.is_none()),
        Err(other) => panic!("{other:?}"),
    }
}
