//! Waiting for a lock that another thread or process holds: short at first, never in step with the
//! others, never longer than the bound.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// About as long as a transaction takes.
const FIRST: Duration = Duration::from_micros(50);
/// A waiter must not sleep through many chances: whoever works without a pause would starve it.
const LONGEST: Duration = Duration::from_millis(4);

/// One wait for one lock.
pub(crate) struct Backoff {
    bound: Duration,
    started: Instant,
    next: Duration,
    random: u64,
}

impl Backoff {
    pub(crate) fn new(bound: Duration) -> Self {
        // A hasher's keys are the randomness that std offers.
        let random = RandomState::new().hash_one(std::process::id()) | 1;
        Self { bound, started: Instant::now(), next: FIRST, random }
    }

    fn restart(&mut self) {
        self.started = Instant::now();
        self.next = FIRST;
    }

    /// Sleeps a while, or returns false when the bound is used up.
    pub(crate) fn wait(&mut self) -> bool {
        let Some(left) = self.bound.checked_sub(self.started.elapsed()).filter(|d| !d.is_zero())
        else {
            return false;
        };
        let half = self.next / 2;
        std::thread::sleep((half + half.mul_f64(self.fraction())).min(left));
        self.next = (self.next * 2).min(LONGEST);
        true
    }

    /// From 0 to 1, by xorshift.
    fn fraction(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What SQLite calls while a lock is taken; the argument counts the calls for one lock.
pub(crate) fn handler(bound: Duration) -> impl FnMut(i32) -> bool + Send + 'static {
    let mut backoff = Backoff::new(bound);
    move |calls| {
        if calls == 0 {
            backoff.restart();
        }
        backoff.wait()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_at_its_bound_and_starts_afresh_for_the_next_lock() {
        let bound = Duration::from_millis(20);
        let mut handler = handler(bound);
        for _ in 0..2 {
            let start = Instant::now();
            let calls = (0..).take_while(|&calls| handler(calls)).count();
            assert!(start.elapsed() >= bound, "gave up after {:?}", start.elapsed());
            assert!(calls > 4, "{calls} calls");
        }
    }

    #[test]
    fn two_waiters_do_not_keep_step() {
        let mut waits = [Backoff::new(FIRST), Backoff::new(FIRST)];
        let [a, b] = waits.each_mut().map(|wait| (wait.fraction(), wait.fraction()));
        assert_ne!(a, b);
        assert!((0.0..1.0).contains(&a.0) && (0.0..1.0).contains(&b.1));
    }
}
