//! How this project measures: a subject beside its reference, in one run.
//!
//! The machines are noisy, so a time by itself says little. Subject and reference take turns in
//! short batches, each is judged by its fastest quarter, and what is printed is the ratio:
//! one line per figure, `name value unit ratio-to-reference` (`-` where there is none).
//!
//! ```
//! let source = vec![7u8; 4096];
//! let mut copy = vec![0u8; 4096];
//! let mut sum = 0u64;
//! let ratio = gossip_bench::compare(
//!     "sum-4096",
//!     || copy.copy_from_slice(std::hint::black_box(&source)),
//!     || sum += std::hint::black_box(&source).iter().map(|&b| u64::from(b)).sum::<u64>(),
//! );
//! assert!(ratio > 0.0);
//! ```

pub mod corpus;

use std::time::{Duration, Instant};

/// Long enough that reading the clock does not count, short enough to fall between disturbances.
const BATCH: Duration = Duration::from_micros(500);
const ROUNDS: usize = 200;

/// Measures both, prints the subject's time per call and its ratio to the reference, and returns
/// the ratio.
pub fn compare(name: &str, mut reference: impl FnMut(), mut subject: impl FnMut()) -> f64 {
    let reference_calls = calls_per_batch(&mut reference);
    let subject_calls = calls_per_batch(&mut subject);
    let mut reference_ns = Vec::with_capacity(ROUNDS);
    let mut subject_ns = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        reference_ns.push(batch_ns_per_call(&mut reference, reference_calls));
        subject_ns.push(batch_ns_per_call(&mut subject, subject_calls));
    }
    let subject_ns = fastest_quarter(subject_ns);
    let ratio = subject_ns / fastest_quarter(reference_ns);
    figure(name, subject_ns, "ns", Some(ratio));
    ratio
}

/// Nanoseconds per call of `subject`, by its fastest quarter of batches.
pub fn ns_per_call(mut subject: impl FnMut()) -> f64 {
    let calls = calls_per_batch(&mut subject);
    fastest_quarter((0..ROUNDS).map(|_| batch_ns_per_call(&mut subject, calls)).collect())
}

/// Prints one figure.
pub fn figure(name: &str, value: f64, unit: &str, ratio: Option<f64>) {
    match ratio {
        Some(ratio) => println!("{name} {value:.2} {unit} {ratio:.3}"),
        None => println!("{name} {value:.2} {unit} -"),
    }
}

fn calls_per_batch(f: &mut impl FnMut()) -> u32 {
    let mut calls = 1u32;
    loop {
        let start = Instant::now();
        (0..calls).for_each(|_| f());
        if start.elapsed() >= BATCH || calls >= 1 << 24 {
            return calls;
        }
        calls *= 2;
    }
}

fn batch_ns_per_call(f: &mut impl FnMut(), calls: u32) -> f64 {
    let start = Instant::now();
    (0..calls).for_each(|_| f());
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn fastest_quarter(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    let quarter = &samples[..samples.len() / 4];
    quarter.iter().sum::<f64>() / quarter.len() as f64
}
