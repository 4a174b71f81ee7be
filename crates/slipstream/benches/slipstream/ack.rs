//! The positions of delivered messages, beside a reader that collects the tokens of each subject: what
//! a watch does once per message before anything else.

use std::hint::black_box;

use gossip_bench::{figure, ns_per_call};

#[path = "../../src/nats/ack.rs"]
#[allow(dead_code, unused_imports, reason = "the crate reads more of it, and has its tests")]
mod reader;

const SUBJECTS: usize = 10_000;

pub(crate) fn run(wanted: &dyn Fn(&str) -> bool) {
    if !wanted("ack-read") {
        return;
    }
    let layouts = [
        ("ack-read-legacy", "$JS.ACK.KV_bench.consumer"),
        ("ack-read-modern", "$JS.ACK.hub.ACCOUNT.KV_bench.consumer"),
    ];
    for (name, head) in layouts {
        let time = 1_700_000_000_000_000_000u64;
        let subjects: Vec<_> = (1..=SUBJECTS)
            .map(|at| format!("{head}.1.{}.{at}.{}.{}", at + 500, time + at as u64, SUBJECTS - at))
            .collect();
        let mut reader = reader::AckReader::default();
        let read = subjects.iter().map(|subject| reader.read(subject).expect("a position"));
        assert!(read.map(|ack| ack.stream_sequence).eq(subjects.iter().map(collected)));
        // In turns, because the machine is not the same from one second to the next.
        let (mut collecting_ns, mut reading_ns) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..3 {
            collecting_ns = collecting_ns.min(ns_per_call(|| {
                let revisions = black_box(&subjects).iter().map(collected);
                black_box(revisions.sum::<u64>());
            }));
            reading_ns = reading_ns.min(ns_per_call(|| {
                let acks = black_box(&subjects).iter().filter_map(|subject| reader.read(subject));
                black_box(acks.map(|ack| ack.stream_sequence).sum::<u64>());
            }));
        }
        figure(&format!("{name}-10k-collecting"), collecting_ns / 1e6, "ms", None);
        let ratio = reading_ns / collecting_ns;
        figure(&format!("{name}-10k-cost"), reading_ns / 1e6, "ms", Some(ratio));
    }
}

/// The revision, by way of all tokens.
fn collected(subject: impl AsRef<str>) -> u64 {
    let tokens: Vec<&str> = subject.as_ref().split('.').collect();
    let revision = if tokens.len() == 9 { tokens[5] } else { tokens[7] };
    revision.parse().expect("a number")
}
