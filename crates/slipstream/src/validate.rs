//! What every backend asks of names and values before it does anything.

use std::time::Duration;

use bytes::Bytes;

use crate::kv::KvError;
use crate::stores::StoreConfig;

/// Longest key in bytes: with the bucket's name it must fit a protocol line of the server (4096).
pub const MAX_KEY_LEN: usize = 2048;

/// Longest name of a bucket in bytes: that of its stream, three more, names a file of the server.
pub const MAX_BUCKET_NAME_LEN: usize = 200;

/// A key is a sequence of non-empty tokens joined by `.`.
pub(crate) fn check_key(key: &str) -> Result<(), KvError> {
    check_text(key)?;
    if key.is_empty() {
        return Err(KvError::InvalidKey("it is empty"));
    }
    if key.ends_with('.') {
        return Err(KvError::InvalidKey("it ends with a dot"));
    }
    Ok(())
}

/// A prefix is the beginning of a key.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), KvError> {
    check_text(prefix)
}

fn check_text(text: &str) -> Result<(), KvError> {
    if text.len() > MAX_KEY_LEN {
        return Err(KvError::InvalidKey("it is longer than 2048 bytes"));
    }
    if text.starts_with('.') || text.contains("..") {
        return Err(KvError::InvalidKey("it has an empty token"));
    }
    // Wildcards of the server, and what would end its protocol line.
    if text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '*' || c == '>') {
        return Err(KvError::InvalidKey("it has a wildcard, white space or a control character"));
    }
    Ok(())
}

pub(crate) fn check_bucket(name: &str) -> Result<(), KvError> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if name.is_empty() || name.len() > MAX_BUCKET_NAME_LEN || !name.bytes().all(legal) {
        return Err(KvError::InvalidBucketName);
    }
    Ok(())
}

/// A value that may be put. `max` is the server's.
pub(crate) fn check_value(value: &Bytes, max: usize) -> Result<(), KvError> {
    if value.is_empty() {
        return Err(KvError::EmptyValue);
    }
    if value.len() > max {
        return Err(KvError::ValueTooLarge { len: value.len(), max });
    }
    Ok(())
}

/// What a bucket may be made with.
pub(crate) fn check_config(config: &StoreConfig) -> Result<(), KvError> {
    if !(1..=64).contains(&config.max_history) {
        return Err(KvError::Config("max_history is 1 to 64".into()));
    }
    if !(1..=5).contains(&config.num_replicas) {
        return Err(KvError::Config("num_replicas is 1 to 5".into()));
    }
    if config.ttl && config.max_history > 1 {
        let why = "a value that expires would uncover the one before it: ttl needs max_history 1";
        return Err(KvError::Config(why.into()));
    }
    if config.max_bytes == Some(0) || config.max_age == Some(Duration::ZERO) {
        return Err(KvError::Config("a limit of zero keeps nothing".into()));
    }
    Ok(())
}

/// Servers expire by whole seconds.
pub(crate) fn check_ttl(ttl: Duration) -> Result<(), KvError> {
    if ttl.as_secs() == 0 || ttl.subsec_nanos() != 0 {
        return Err(KvError::Config("an expiry is whole seconds, at least one".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_tokens_joined_by_dots() {
        for good in ["a", "a.b", "a-b_c/d=e", "ключ.1", "$x"] {
            assert_eq!(check_key(good), Ok(()), "{good}");
        }
        for bad in ["", ".", ".a", "a.", "a..b", "a b", "a\tb", "a\r\nb", "a.*", ">", "a\0"] {
            assert!(matches!(check_key(bad), Err(KvError::InvalidKey(_))), "{bad:?}");
        }
        assert_eq!(check_key(&"k".repeat(MAX_KEY_LEN)), Ok(()));
        assert!(check_key(&"k".repeat(MAX_KEY_LEN + 1)).is_err());
    }

    #[test]
    fn prefixes_may_be_empty_or_end_with_a_dot() {
        for good in ["", "a", "a.", "a.b"] {
            assert_eq!(check_prefix(good), Ok(()), "{good}");
        }
        for bad in [".", "a..", "a.>", "*"] {
            assert!(check_prefix(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn buckets_have_plain_names() {
        let longest = "b".repeat(MAX_BUCKET_NAME_LEN);
        for good in ["rules_2-a", &longest] {
            assert_eq!(check_bucket(good), Ok(()), "{good}");
        }
        for bad in ["", "a.b", "a b", "ä", "a/b", &format!("{longest}b")] {
            assert_eq!(check_bucket(bad), Err(KvError::InvalidBucketName), "{bad:?}");
        }
    }

    #[test]
    fn values_are_neither_empty_nor_over_the_limit() {
        assert_eq!(check_value(&Bytes::new(), 3), Err(KvError::EmptyValue));
        assert_eq!(check_value(&Bytes::from_static(b"abc"), 3), Ok(()));
        let too_large = KvError::ValueTooLarge { len: 4, max: 3 };
        assert_eq!(check_value(&Bytes::from_static(b"abcd"), 3), Err(too_large));
    }
}
