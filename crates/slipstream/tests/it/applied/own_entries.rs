//! Callers that keep the entries themselves, with a cursor of their own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use slipstream::{
    Applier, CursorExpiry, CursorOnly, FoldStatus, KvEntry, KvUpdate, LogCursor, VersionToken,
    WatchCursor, fold_control, watch_applied,
};

use super::support::World;

/// What a caller has on its disk.
#[derive(Clone, Default)]
struct Own(Arc<Mutex<(BTreeMap<String, KvEntry>, WatchCursor)>>);

impl Applier for Own {
    type Item = KvUpdate;

    fn parse(&mut self, update: &KvUpdate) -> Option<KvUpdate> {
        Some(update.clone())
    }

    fn apply(&mut self, batch: Vec<KvUpdate>) {
        let (entries, _) = &mut *self.0.lock().unwrap();
        for update in batch {
            let key = update.key().as_str().to_owned();
            match update {
                KvUpdate::Put(entry) => drop(entries.insert(key, entry)),
                _ => drop(entries.remove(&key)),
            }
        }
    }

    fn on_resync(&mut self, cursor: &WatchCursor) {
        self.0.lock().unwrap().1 = cursor.clone();
    }

    fn on_applied(&mut self, cursor: &WatchCursor, _: u64) {
        self.0.lock().unwrap().1 = cursor.clone();
    }

    fn keeps_entries(&self) -> bool {
        true
    }

    fn retain(&mut self, is_current: &dyn Fn(&str, VersionToken) -> bool) {
        self.0.lock().unwrap().0.retain(|key, entry| is_current(key, entry.version));
    }
}

impl Own {
    fn contents(&self) -> BTreeMap<String, String> {
        let text = |entry: &KvEntry| String::from_utf8(entry.value.to_vec()).unwrap();
        let own = self.0.lock().unwrap();
        own.0.iter().map(|(key, entry)| (key.clone(), text(entry))).collect()
    }

    /// Follows the bucket from the caller's cursor to its head.
    async fn catch_up(&self, world: &World) -> FoldStatus {
        let (handle, control) = fold_control();
        let store = CursorOnly::new(self.0.lock().unwrap().1.clone());
        let folding = tokio::spawn(watch_applied(world.config(), store, self.clone(), control));
        handle.synced().await.unwrap();
        handle.wait_for(world.bucket.log().last).await.unwrap();
        handle.shutdown();
        let ended = folding.await.unwrap();
        assert!(ended.result.is_ok());
        assert_eq!(ended.cursor, self.0.lock().unwrap().1, "the caller was told");
        handle.status().borrow().clone()
    }
}

#[tokio::test]
async fn a_caller_with_entries_of_its_own_resumes_and_is_repaired() {
    let world = World::new().await;
    for at in 0..10 {
        world.put(&format!("k.{at}"), "old").await;
    }
    let own = Own::default();
    own.catch_up(&world).await;
    assert_eq!(own.contents(), world.contents("").await);
    world.put("k.1", "new").await;
    let status = own.catch_up(&world).await;
    assert_eq!((status.updates, status.repairs), (1, 0), "only what is new is read");
    // Its tombstone is gone when it comes back.
    world.delete("k.2").await;
    let last = world.put("k.3", "new").await;
    world.bucket.evict_below(last);
    let status = own.catch_up(&world).await;
    assert!(matches!(status.last_repair.unwrap().why, CursorExpiry::BelowFloor { .. }));
    assert_eq!(own.contents(), world.contents("").await);
    world.bucket.recreate(None);
    world.put("k.9", "newest").await;
    own.catch_up(&world).await;
    assert_eq!(own.contents(), world.contents("").await);
    assert!(!LogCursor::decode(&own.0.lock().unwrap().1).unwrap().in_repair);
}
