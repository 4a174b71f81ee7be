//! Trying again, a bounded number of times, after pauses that grow and differ.

use core::time::Duration;

use gossip_coordination::InfraError;

use crate::config::EtcdConfig;
use crate::error::infra;
use crate::kv::KvError;

/// The tries that one operation has left.
#[derive(Debug)]
pub(crate) struct Attempts {
    left: u32,
    pause: Duration,
    pause_max: Duration,
}

impl Attempts {
    pub(crate) fn new(config: &EtcdConfig) -> Self {
        Self { left: config.attempts, pause: config.backoff_min, pause_max: config.backoff_max }
    }

    /// Pauses before another try, or says that there is none left. `why` is the last failure, if it
    /// was not that other writers were faster.
    pub(crate) async fn next(
        &mut self,
        step: &'static str,
        why: Option<&KvError>,
    ) -> Result<(), InfraError> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return Err(match why {
                Some(error) => infra(step, error),
                None => InfraError::transient(step, "other writers were faster every time"),
            });
        }
        let pause = jittered(self.pause);
        // The timer has no shorter ticks, and would wait for one.
        if pause >= Duration::from_millis(1) {
            tokio::time::sleep(pause).await;
        }
        self.pause = (self.pause * 2).min(self.pause_max);
        Ok(())
    }
}

/// Between half of `pause` and all of it, so that whoever collided does not collide again.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let part = u32::from(random_byte()) + 256;
    pause * part / 511
}

fn random_byte() -> u8 {
    let mut byte = [0];
    // Without randomness pauses are merely all the same.
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
    fn a_jittered_pause_is_between_half_and_all_of_it() {
        let pause = Duration::from_millis(100);
        for _ in 0..1_000 {
            let jittered = jittered(pause);
            assert!(jittered >= pause / 2 && jittered <= pause, "{jittered:?}");
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
        let error = attempts.next("renew.txn", Some(&KvError::NoSpace)).await.unwrap_err();
        assert!(error.is_retryable());
        let said = error.to_string();
        assert!(said.starts_with("renew.txn:") && said.contains("NOSPACE"), "{said}");
        let mut attempts = Attempts { left: 1, ..attempts };
        let said = attempts.next("renew.txn", None).await.unwrap_err().to_string();
        assert!(said.contains("other writers"), "{said}");
    }
}
