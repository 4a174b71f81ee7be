//! Reads over NATS.
//!
//! Listings, beside a raw consumer: one that receives the same messages and drops them, subscribed to
//! by hand, without flow control, heartbeats or a count. Points that any copy of the bucket answers,
//! beside those that its leader does.

use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::{self, consumer};
use futures_util::StreamExt;
use gossip_bench::figure;
use slipstream::{Connection, KvReader, StoreConfig};

use crate::server::NatsServer;

const KEYS: usize = 200_000;
const ROUNDS: usize = 40;

pub(crate) fn run(wanted: &dyn Fn(&str) -> bool) {
    if !["nats-scan", "nats-keys", "nats-get"].into_iter().any(wanted) {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let server = NatsServer::start();
        // The reference has a connection like ours.
        let options = async_nats::ConnectOptions::new().subscription_capacity(512 * 1024);
        let client = options.connect(server.url()).await.expect("connect");
        let connection = server.connect().await;
        let config = StoreConfig { max_bytes: None, ..StoreConfig::default() };
        let store = connection.store("bench", &config).await.expect("bucket");
        fill(&client).await;
        let reader = store.reader();
        if wanted("nats-scan") {
            listing("nats-scan", &client, false, async || {
                let entries = reader.scan("").await.expect("scan");
                assert_eq!(entries.len(), KEYS);
            })
            .await;
        }
        if wanted("nats-get") {
            let direct = store.direct_reader().expect("ours allow it");
            points(&*reader, &*direct).await;
        }
        if wanted("nats-keys") {
            listing("nats-keys", &client, true, async || {
                let keys = reader.keys("").await.expect("keys");
                assert_eq!(keys.len(), KEYS);
            })
            .await;
        }
    });
}

/// Keys of 23 bytes in an order that is not theirs.
fn key(at: usize) -> String {
    let key = format!("tenant.{:04}.item.{:06}", at % 1000, at * 7919 % KEYS);
    debug_assert_eq!(key.len(), 23);
    key
}

async fn fill(client: &Client) {
    let jetstream = jetstream::new(client.clone());
    let value = bytes::Bytes::from(vec![b'v'; 100]);
    let mut acks = Vec::new();
    for at in 0..KEYS {
        let subject = format!("$KV.bench.{}", key(at));
        acks.push(jetstream.publish(subject, value.clone()).await.expect("publish"));
        if acks.len() == 1000 {
            for ack in acks.drain(..) {
                ack.await.expect("ack");
            }
        }
    }
}

/// Points of a call, and calls of a round.
const POINTS: usize = 1000;
const CALLS: usize = 5;

async fn points(leader: &dyn KvReader, direct: &dyn KvReader) {
    let keys: Vec<_> = (0..POINTS).map(key).collect();
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    let (mut leader_took, mut direct_took) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (reader, took) in [(leader, &mut leader_took), (direct, &mut direct_took)] {
            let start = Instant::now();
            for _ in 0..CALLS {
                let entries = reader.multi_get(&keys).await.expect("read");
                assert!(entries.iter().all(Option::is_some));
            }
            took.push(start.elapsed());
        }
    }
    let rate = |took| (POINTS * CALLS) as f64 / fastest_quarter(took).as_secs_f64();
    let (leader, direct) = (rate(leader_took), rate(direct_took));
    figure("nats-get-leader", leader, "keys/s", None);
    figure("nats-get-direct", direct, "keys/s", Some(direct / leader));
}

async fn listing(name: &str, client: &Client, headers_only: bool, subject: impl AsyncFn()) {
    let (mut reference_ns, mut subject_ns) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // Whoever comes second may pay for what the server tidies up after the first.
        for side in [round % 2, (round + 1) % 2] {
            let start = Instant::now();
            if side == 0 {
                raw(client, headers_only).await;
                reference_ns.push(start.elapsed());
            } else {
                subject().await;
                subject_ns.push(start.elapsed());
            }
        }
    }
    let (reference, subject) = (fastest_quarter(reference_ns), fastest_quarter(subject_ns));
    let rate = |time: Duration| KEYS as f64 / time.as_secs_f64();
    figure(&format!("{name}-raw"), rate(reference), "keys/s", None);
    figure(name, rate(subject), "keys/s", Some(rate(subject) / rate(reference)));
}

async fn raw(client: &Client, headers_only: bool) {
    let inbox = client.new_inbox();
    let mut messages = client.subscribe(inbox.clone()).await.expect("subscribe");
    let config = consumer::push::Config {
        deliver_subject: inbox,
        deliver_policy: consumer::DeliverPolicy::LastPerSubject,
        ack_policy: consumer::AckPolicy::None,
        filter_subject: "$KV.bench.>".into(),
        headers_only,
        memory_storage: true,
        num_replicas: 1,
        ..Default::default()
    };
    let jetstream = jetstream::new(client.clone());
    let consumer = jetstream.create_consumer_on_stream(config, "KV_bench").await.expect("consumer");
    for _ in 0..KEYS {
        messages.next().await.expect("a message");
    }
    let name = consumer.cached_info().name.clone();
    jetstream.delete_consumer_from_stream(name, "KV_bench").await.expect("delete");
}

fn fastest_quarter(mut samples: Vec<Duration>) -> Duration {
    samples.sort();
    let quarter = &samples[..samples.len() / 4];
    quarter.iter().sum::<Duration>() / quarter.len() as u32
}
