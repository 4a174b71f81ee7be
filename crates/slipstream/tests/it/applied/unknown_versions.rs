//! Updates that do not say where in the log they are.

use std::sync::Arc;

use async_trait::async_trait;
use slipstream::protocol::Position;
use slipstream::{
    FoldConfig, KvEntry, KvError, KvUpdate, KvWatcher, LogCursor, LogInfo, Progress, Retention,
    VersionToken, Watch, WatchEvent, WatchScope,
};

use super::support::{TestStore, start};

/// Hands out one chunk, and then nothing.
struct Script(Vec<KvUpdate>);

const LOG: LogInfo = LogInfo {
    incarnation: 1,
    first: 1,
    last: 1,
    retention: Retention {
        max_age: None,
        max_bytes: None,
        max_messages: None,
        discards_oldest: false,
        per_message_ttl: false,
        marker_ttl: None,
    },
    subjects: 2,
    read_at_ms: 0,
};

fn cursor_at_one() -> LogCursor {
    LogCursor::new(Position::at(1, 1), &WatchScope::All)
}

#[async_trait]
impl KvWatcher for Script {
    async fn watch_from(
        &self,
        _: &WatchScope,
        _: Option<&LogCursor>,
    ) -> Result<Box<dyn Watch>, KvError> {
        Ok(Box::new(Scripted { left: self.0.clone(), synced: false }))
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        Ok(LOG)
    }
}

struct Scripted {
    left: Vec<KvUpdate>,
    synced: bool,
}

#[async_trait]
impl Watch for Scripted {
    async fn next(&mut self, into: &mut Vec<KvUpdate>, _: usize) -> Result<WatchEvent, KvError> {
        if !self.left.is_empty() {
            into.append(&mut self.left);
            return Ok(WatchEvent::Updates { pending: 0, stored_at_ns: 1 });
        }
        if !self.synced {
            self.synced = true;
            return Ok(WatchEvent::Synced { through: 1 });
        }
        std::future::pending().await
    }

    fn log_cursor(&self) -> LogCursor {
        cursor_at_one()
    }

    fn position(&self) -> u64 {
        1
    }

    fn advance(&mut self, _: u64) {}

    async fn progress(&mut self) -> Result<Progress, KvError> {
        Ok(Progress { head: 1, pending: 0, delivered: 1, received: 1, log: LOG })
    }
}

#[tokio::test]
async fn an_unknown_version_is_applied_and_moves_nothing() {
    let put =
        |key: &str, version| KvUpdate::Put(KvEntry { key: key.into(), value: "v".into(), version });
    let known = VersionToken::from_u64(1);
    for updates in [
        vec![put("a", known), put("b", VersionToken::unknown())],
        vec![put("b", VersionToken::unknown()), put("a", known)],
    ] {
        let fold = start(FoldConfig::new(Arc::new(Script(updates))), &TestStore::default());
        fold.synced().await;
        assert_eq!(fold.status().applied, 1);
        let ended = fold.stop().await;
        assert_eq!(ended.cursor.revision(), Some(1));
        assert_eq!(ended.store.contents().len(), 2);
    }
}
