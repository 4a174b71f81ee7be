//! The suite of the contract, on a bucket. In one test: a server takes longer to start than a case
//! takes to run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use gossip_contracts::connector::conformance::{Harness, Item, run_case};
use gossip_object_store::{ObjectOptions, ObjectSource};

use crate::server::Weed;

/// The test holds it, and it ends with the test: nothing drops a static.
static SERVER: Mutex<Weak<Weed>> = Mutex::new(Weak::new());
static BUCKETS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn options(weed: &Weed, endpoint: String) -> ObjectOptions {
    let mut options = ObjectOptions::default();
    let variables = weed.variables(endpoint).into_iter();
    options.settings = variables.map(|(name, value)| (name.to_lowercase(), value)).collect();
    options
}

fn server() -> Arc<Weed> {
    SERVER.lock().unwrap().upgrade().expect("the test holds it")
}

struct Bucket(String);

impl Bucket {
    fn name(key: &[u8]) -> &str {
        str::from_utf8(key).unwrap()
    }
}

impl Harness for Bucket {
    type Connector = ObjectSource;

    const EMPTY_ITEMS: bool = false;

    fn build(items: &[Item]) -> Self {
        let bucket = Self(format!("case{}", BUCKETS.fetch_add(1, Ordering::Relaxed)));
        // What is empty is not listed, and keeps the bucket there.
        server().put(&bucket.0, ".keep", b"").unwrap();
        for item in items {
            server().put(&bucket.0, Self::name(&item.key), &item.content).unwrap();
        }
        bucket
    }

    fn connect(&self) -> ObjectSource {
        let weed = server();
        ObjectSource::open(&format!("s3://{}", self.0), &options(&weed, weed.endpoint())).unwrap()
    }

    fn put(&mut self, key: &[u8], content: &[u8]) {
        server().put(&self.0, Self::name(key), content).unwrap();
    }

    fn remove(&mut self, key: &[u8]) {
        server().delete(&self.0, Self::name(key));
    }

    fn keys() -> Vec<Vec<u8>> {
        // This store sorts folders by their names without the `/`: no name here goes on from that of
        // a folder with a lesser character. What it makes of others is a case of its own.
        let names = [
            "-",
            ".hidden",
            "0/0",
            "a/-",
            "a/b/c",
            "a/b/d/e",
            "a/b0",
            "a/\u{e9}",
            "b c",
            "plus+and%25",
        ];
        names.map(|name| name.as_bytes().to_vec()).to_vec()
    }
}

macro_rules! run_all {
    ($($family:ident { $($name:ident)* })*) => {
        #[test]
        fn the_contract_holds_for_a_bucket() {
            let weed = Arc::new(Weed::start());
            *SERVER.lock().unwrap() = Arc::downgrade(&weed);
            $($(
                println!("{}::{}", stringify!($family), stringify!($name));
                run_case::<Bucket>(concat!(stringify!($family), "::", stringify!($name)));
            )*)*
        }
    };
}
gossip_contracts::for_each_connector_case! { [run_all] }
