//! Trying again, a bounded number of times and for a bounded time, after backoffs that grow and differ.
//!
//! All requests of one operation, and the backoffs between them, end within
//! [`operation_timeout`](EtcdConfig::operation_timeout); of one in steps or pages, those of each.

use core::future::Future;
use core::time::Duration;

use gossip_coordination::InfraError;
use tokio::time::Instant;

use crate::config::EtcdConfig;
use crate::error::infra;
use crate::kv::KvError;

/// The tries and the time that one operation has left.
#[derive(Debug)]
pub(crate) struct Attempts {
    left: u32,
    backoff: Duration,
    backoff_max: Duration,
    ends_at: Instant,
}

impl Attempts {
    pub(crate) fn new(config: &EtcdConfig) -> Self {
        Self {
            left: config.attempts,
            backoff: config.backoff_min,
            backoff_max: config.backoff_max,
            ends_at: Instant::now() + config.operation_timeout,
        }
    }

    /// All tries again, in the time that is left: for the next of several records of which one does.
    pub(crate) fn renewed(&self, config: &EtcdConfig) -> Self {
        Self { ends_at: self.ends_at, ..Self::new(config) }
    }

    /// The whole time again, for the tries that are left: a step of several is done.
    pub(crate) fn extend(&mut self, config: &EtcdConfig) {
        self.ends_at = Instant::now() + config.operation_timeout;
    }

    /// Waits for the answer to a request, for as long as there is time.
    pub(crate) async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, KvError>>,
    ) -> Result<T, KvError> {
        tokio::time::timeout_at(self.ends_at, request).await.unwrap_or_else(|_| {
            Err(KvError::Unanswered("nothing within the operation_timeout".into()))
        })
    }

    /// Waits before another try, or says that there is none left. `why` is the last failure, if it
    /// was not that other writers were faster.
    pub(crate) async fn next(
        &mut self,
        step: &'static str,
        why: Option<&KvError>,
    ) -> Result<(), InfraError> {
        self.left = self.left.saturating_sub(1);
        let backoff = jittered(self.backoff);
        if self.left == 0 || Instant::now() + backoff >= self.ends_at {
            return Err(match why {
                Some(error) => infra(step, error),
                None => InfraError::transient(step, "other writers were faster every time"),
            });
        }
        // The timer has no shorter ticks, and would wait for one.
        if backoff >= Duration::from_millis(1) {
            tokio::time::sleep(backoff).await;
        }
        self.backoff = (self.backoff * 2).min(self.backoff_max);
        Ok(())
    }
}

/// Between half of `backoff` and all of it, so that whoever collided does not collide again.
pub(crate) fn jittered(backoff: Duration) -> Duration {
    let part = u32::from(random_byte()) + 256;
    backoff * part / 511
}

fn random_byte() -> u8 {
    let mut byte = [0];
    // Without randomness backoffs are merely all the same.
    let _ = getrandom::fill(&mut byte);
    byte[0]
}

/// Whether the same request may work another time.
pub(crate) fn may_pass(error: &KvError) -> bool {
    matches!(error, KvError::Unanswered(_) | KvError::Unavailable(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jittered_backoff_is_between_half_and_all_of_it() {
        let backoff = Duration::from_millis(100);
        for _ in 0..1_000 {
            let jittered = jittered(backoff);
            assert!(jittered >= backoff / 2 && jittered <= backoff, "{jittered:?}");
        }
    }

    #[tokio::test]
    async fn tries_end_and_the_error_names_the_step_and_the_last_failure() {
        let mut config = EtcdConfig::new(["http://a:1"]);
        config.attempts = 3;
        config.backoff_min = Duration::from_micros(1);
        let mut attempts = Attempts::new(&config);
        assert_eq!(attempts.next("renew.txn", None).await, Ok(()));
        assert_eq!(attempts.next("renew.txn", None).await, Ok(()));
        let error = attempts.next("renew.txn", Some(&KvError::LeaseNotFound)).await.unwrap_err();
        assert!(error.is_retryable());
        let said = error.to_string();
        assert!(said.starts_with("renew.txn:") && said.contains("has ended"), "{said}");
        let mut attempts = Attempts { left: 1, ..attempts };
        let said = attempts.next("renew.txn", None).await.unwrap_err().to_string();
        assert!(said.contains("other writers"), "{said}");
    }

    #[tokio::test(start_paused = true)]
    async fn tries_end_with_the_operations_time_however_many_are_left() {
        let mut config = EtcdConfig::new(["http://a:1"]);
        config.attempts = 1_000;
        let (started, mut attempts) = (Instant::now(), Attempts::new(&config));
        while attempts.next("renew.txn", None).await.is_ok() {}
        assert!(started.elapsed() <= config.operation_timeout);
        let renewed = attempts.renewed(&config);
        assert_eq!(renewed.left, 1_000);
        let never = core::future::pending::<Result<(), KvError>>();
        assert!(matches!(renewed.within(never).await, Err(KvError::Unanswered(_))));
        assert_eq!(started.elapsed(), config.operation_timeout);
    }
}
