//! Knobs for tests: `GOSSIP_TUNE="checkpoint_bytes=65536 lease_ms=3600000"`. None changes what is
//! found, so none is worth an option.

use gossip_runtime::ScanOptions;

use crate::failure::Failure;

pub(crate) const VARIABLE: &str = "GOSSIP_TUNE";

/// The defaults, as tuned.
pub(crate) fn options() -> Result<ScanOptions, Failure> {
    let text = std::env::var_os(VARIABLE).unwrap_or_default();
    tuned(&text.to_string_lossy())
        .ok_or_else(|| Failure::new(format!("{VARIABLE} is not understood")))
}

fn tuned(text: &str) -> Option<ScanOptions> {
    let mut options = ScanOptions::default();
    for knob in text.split_whitespace() {
        let (name, value) = knob.split_once('=')?;
        match name {
            "checkpoint_bytes" => options.checkpoint_bytes = value.parse().ok()?,
            "checkpoint_items" => options.checkpoint_items = value.parse().ok()?,
            "checkpoint_ms" => options.checkpoint_ms = value.parse().ok()?,
            "lease_ms" => options.lease_ms = value.parse().ok()?,
            "max_shard_retries" => options.max_shard_retries = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_are_turned_and_nonsense_is_refused() {
        let options = tuned("checkpoint_bytes=7 lease_ms=9").unwrap();
        assert_eq!((options.checkpoint_bytes, options.lease_ms), (7, 9));
        for nonsense in ["lease_ms", "lease_ms=", "lease_ms=-1", "leese_ms=1"] {
            assert!(tuned(nonsense).is_none(), "{nonsense}");
        }
    }
}
