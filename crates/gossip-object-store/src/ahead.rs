//! Fetching objects before they are opened.
//!
//! Whoever opens the objects of a page one after the other will open the next ones. The more of them
//! were opened in order, the further ahead is fetched; one that is passed over ends that, so that a
//! scan that reads little of a bucket fetches little of it.

use std::collections::VecDeque;
use std::sync::Mutex;

use gossip_contracts::connector::{ConnectorError, Page};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::Client;
use crate::read::{First, fetch_first};

/// Pages that are remembered: about one for each worker.
const PAGES_MAX: usize = 64;
/// Objects ahead of one worker, at most: each is a MiB of memory.
const DEPTH_MAX: usize = 16;

type Fetched = Result<First, ConnectorError>;

pub(crate) struct Ahead {
    depth_max: usize,
    pages: Mutex<VecDeque<Listed>>,
}

/// A page, and how far it was opened.
struct Listed {
    keys: Vec<Vec<u8>>,
    /// The index behind the object opened last.
    next: usize,
    depth: usize,
    /// Under way, in order, from the index `next` on.
    under_way: VecDeque<JoinHandle<Fetched>>,
}

impl Ahead {
    pub(crate) fn new(requests: usize) -> Self {
        Self { depth_max: DEPTH_MAX.min(requests), pages: Mutex::default() }
    }

    pub(crate) fn page_listed(&self, page: &Page) {
        if page.len() < 2 {
            return;
        }
        let keys: Vec<Vec<u8>> = page.iter().map(|entry| entry.key.to_vec()).collect();
        let mut pages = self.pages.lock().expect("nobody panics while holding it");
        // One that goes on from a page that was opened to its end will be opened like that.
        let before = pages.iter().filter(|before| before.keys.last() < keys.first());
        let before = before.max_by_key(|before| before.keys.last());
        let depth = before.filter(|before| before.is_read()).map_or(0, |before| before.depth);
        let listed = Listed { keys, next: 0, depth, under_way: VecDeque::new() };
        if pages.len() == PAGES_MAX {
            pages.pop_front();
        }
        pages.push_back(listed);
    }

    /// What was fetched ahead of this object, or is being fetched; and fetches what comes after it.
    pub(crate) fn take(
        &self,
        key: &[u8],
        handle: &Handle,
        client: &Client,
    ) -> Option<impl Future<Output = Fetched> + use<>> {
        let mut pages = self.pages.lock().expect("nobody panics while holding it");
        // The newest first: a part of a page may have been listed again.
        let (listed, at) = pages.iter_mut().rev().find_map(|listed| {
            let at = listed.keys.binary_search_by(|known| known.as_slice().cmp(key)).ok()?;
            Some((listed, at))
        })?;
        let fetched = listed.open(at);
        listed.depth =
            if at == listed.next { (2 * listed.depth).clamp(1, self.depth_max) } else { 0 };
        listed.next = at + 1;
        let end = listed.keys.len().min(listed.next + listed.depth);
        for key in listed.keys.get(listed.next + listed.under_way.len()..end).unwrap_or_default() {
            listed.under_way.push_back(handle.spawn(fetch_first(client.clone(), key.clone())));
        }
        let fetched = fetched?;
        Some(async move {
            fetched.await.unwrap_or_else(|_| {
                let message = "the request was broken off".to_owned();
                Err(ConnectorError::Retryable { operation: "open", message })
            })
        })
    }
}

impl Listed {
    /// Whether it was opened to its end.
    fn is_read(&self) -> bool {
        self.next == self.keys.len()
    }

    /// Takes what is under way for the object at this index. What is before it nobody wants.
    fn open(&mut self, at: usize) -> Option<JoinHandle<Fetched>> {
        if at < self.next {
            return None;
        }
        for _ in self.next..at {
            if let Some(unwanted) = self.under_way.pop_front() {
                unwanted.abort();
            }
        }
        self.under_way.pop_front()
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.under_way.iter().for_each(JoinHandle::abort);
    }
}
