//! What stood in the place of an item before, where a run is of what is new: a secret that is in both is
//! not new. It is read once something was found in the item, so that a run without findings reads nothing
//! twice.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use gossip_contracts::connector::ConnectorError;
use gossip_contracts::identity::{RuleFingerprint, SecretHash};
use gossip_engine::{Finding, Scratch};

use crate::item::{CHUNK, ItemContext};

/// The secrets of what stood there, by the rule that found them.
pub(crate) struct BaseSecrets(HashSet<(RuleFingerprint, SecretHash)>);

impl BaseSecrets {
    /// None if nothing stood there. What cannot be read has none: what is found in the item is reported
    /// then.
    pub(crate) fn read(context: &ItemContext<'_>, key: &[u8], path: &[u8]) -> Self {
        let mut secrets = HashSet::new();
        if let Err(error) = find(context, key, path, &mut secrets) {
            tracing::warn!(%error, "what an item was before could not be read");
            secrets.clear();
        }
        Self(secrets)
    }

    pub(crate) fn has(&self, rule: RuleFingerprint, secret: SecretHash) -> bool {
        self.0.contains(&(rule, secret))
    }
}

fn find(
    context: &ItemContext<'_>,
    key: &[u8],
    path: &[u8],
    secrets: &mut HashSet<(RuleFingerprint, SecretHash)>,
) -> Result<(), ConnectorError> {
    let Some(mut reader) = context.source.open_base(key)? else { return Ok(()) };
    let mut add = |found: Finding<'_>| {
        // What was allowed there and is not any more is new.
        if found.silenced().is_some() {
            return;
        }
        let secret = SecretHash::derive(context.tenant_key, found.secret().expose());
        secrets.insert((found.rule().fingerprint(), secret));
    };
    let mut scratch = Scratch::default();
    let mut stream = context.engine.stream(&mut scratch, Some(path));
    let mut offset = 0;
    loop {
        // Whoever waits for the scan to stop does not wait for all of a large file.
        if context.stop.load(Ordering::Relaxed) {
            let message = "the scan stops".to_owned();
            return Err(ConnectorError::Retryable { operation: "read", message });
        }
        let read = stream.read(CHUNK, |room| reader.read_at(offset, room), &mut add)?;
        if read == 0 {
            break;
        }
        offset += read as u64;
    }
    stream.finish(&mut add);
    Ok(())
}
