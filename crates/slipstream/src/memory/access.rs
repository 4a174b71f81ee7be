//! Reads and writes of a bucket in memory.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::log::{Append, Log, Operation};
use super::{Bucket, MAX_VALUE_LEN};
use crate::kv::{Key, KvEntry, KvError, KvReader, KvTtl, KvWriter, VersionToken};
use crate::validate;

#[async_trait]
impl KvReader for Bucket {
    async fn get(&self, key: &str) -> Result<Option<KvEntry>, KvError> {
        validate::check_key(key)?;
        let state = self.lock()?;
        let last = state.log.last_of(key).filter(|(_, message)| message.is_value());
        Ok(last.map(|(revision, message)| message.entry(revision)))
    }

    async fn entry(&self, key: &str) -> Result<Option<KvEntry>, KvError> {
        validate::check_key(key)?;
        let state = self.lock()?;
        Ok(state.log.last_of(key).map(|(revision, message)| message.entry(revision)))
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<Key>, KvError> {
        validate::check_prefix(prefix)?;
        let state = self.lock()?;
        let last = state.log.last_of_each(|key| key.starts_with(prefix));
        let values = last.filter(|(_, message)| message.is_value());
        Ok(values.map(|(_, message)| message.key.clone()).collect())
    }

    async fn scan(&self, prefix: &str) -> Result<Vec<KvEntry>, KvError> {
        validate::check_prefix(prefix)?;
        let state = self.lock()?;
        let last = state.log.last_of_each(|key| key.starts_with(prefix));
        let values = last.filter(|(_, message)| message.is_value());
        Ok(values.map(|(revision, message)| message.entry(revision)).collect())
    }
}

/// What must be true of a key before it is written.
enum Expect {
    Anything,
    NoValue,
    Version(VersionToken),
}

impl Expect {
    fn check(&self, log: &Log, key: &str) -> Result<(), KvError> {
        let last = log.last_of(key);
        match self {
            Self::Anything => Ok(()),
            Self::NoValue if last.is_some_and(|(_, message)| message.is_value()) => {
                Err(KvError::AlreadyExists)
            }
            Self::NoValue => Ok(()),
            Self::Version(version) => {
                let expected = version.as_u64().ok_or(KvError::InvalidVersion)?;
                let actual = last.map_or(0, |(revision, _)| revision);
                if actual == expected { Ok(()) } else { Err(KvError::RevisionMismatch) }
            }
        }
    }
}

impl Bucket {
    fn write(&self, append: Append<'_>, expect: &Expect) -> Result<VersionToken, KvError> {
        validate::check_key(append.key)?;
        let mut state = self.lock()?;
        expect.check(&state.log, append.key)?;
        let revision = state.log.append(append, self.now_ns())?;
        drop(state);
        self.shared.changed.send_replace(());
        Ok(VersionToken::from_u64(revision))
    }

    fn write_value(
        &self,
        key: &str,
        value: Bytes,
        expect: &Expect,
        ttl: Option<Duration>,
    ) -> Result<VersionToken, KvError> {
        validate::check_value(&value, MAX_VALUE_LEN)?;
        self.write(Append { key, value, operation: Operation::Put, ttl }, expect)
    }
}

#[async_trait]
impl KvWriter for Bucket {
    async fn put(&self, key: &str, value: Bytes) -> Result<VersionToken, KvError> {
        self.write_value(key, value, &Expect::Anything, None)
    }

    async fn delete(&self, key: &str) -> Result<bool, KvError> {
        let operation = Operation::Delete;
        let append = Append { key, value: Bytes::new(), operation, ttl: None };
        self.write(append, &Expect::Anything).map(|_| true)
    }

    async fn purge(&self, key: &str) -> Result<(), KvError> {
        let operation = Operation::Purge;
        let append = Append { key, value: Bytes::new(), operation, ttl: None };
        self.write(append, &Expect::Anything).map(|_| ())
    }

    async fn create(&self, key: &str, value: Bytes) -> Result<VersionToken, KvError> {
        self.write_value(key, value, &Expect::NoValue, None)
    }

    async fn update(
        &self,
        key: &str,
        value: Bytes,
        version: VersionToken,
    ) -> Result<VersionToken, KvError> {
        self.write_value(key, value, &Expect::Version(version), None)
    }

    async fn delete_with_version(&self, key: &str, version: VersionToken) -> Result<bool, KvError> {
        let append = Append { key, value: Bytes::new(), operation: Operation::Put, ttl: None };
        self.write(append, &Expect::Version(version)).map(|_| true)
    }
}

#[async_trait]
impl KvTtl for Bucket {
    async fn put_with_ttl(
        &self,
        key: &str,
        value: Bytes,
        ttl: Duration,
    ) -> Result<VersionToken, KvError> {
        validate::check_ttl(ttl)?;
        self.write_value(key, value, &Expect::Anything, Some(ttl))
    }

    async fn create_with_ttl(
        &self,
        key: &str,
        value: Bytes,
        ttl: Duration,
    ) -> Result<VersionToken, KvError> {
        validate::check_ttl(ttl)?;
        self.write_value(key, value, &Expect::NoValue, Some(ttl))
    }
}
