//! Writes: one message each, compared by the server where a version is given.

use std::time::Duration;

use async_nats::HeaderMap;
use async_trait::async_trait;
use bytes::Bytes;

use super::api;
use super::bucket::Bucket;
use super::message::{DELETE, OPERATION, PURGE};
use crate::kv::{KvError, KvReader, KvTtl, KvWriter, VersionToken};
use crate::validate;

const EXPECTED_LAST: &str = "Nats-Expected-Last-Subject-Sequence";
const ROLLUP: &str = "Nats-Rollup";
const TTL: &str = "Nats-TTL";

/// How often `create` tries again when the key changes while it looks.
const CREATE_ATTEMPTS_MAX: u32 = 8;

impl Bucket {
    async fn write(
        &self,
        operation: &'static str,
        key: &str,
        value: Bytes,
        headers: HeaderMap,
    ) -> Result<VersionToken, KvError> {
        let subject = self.subject(key);
        let revision = api::publish(self.link(), operation, subject, headers, value).await?;
        Ok(VersionToken::from_u64(revision))
    }

    fn check(&self, key: &str, value: &Bytes) -> Result<(), KvError> {
        validate::check_key(key)?;
        validate::check_value(value, self.value_len_max())
    }

    /// Sets the value of a key that has none, whatever the log has of it.
    async fn create_maybe_expiring(
        &self,
        key: &str,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<VersionToken, KvError> {
        self.check(key, &value)?;
        let mut expected = 0;
        for _ in 0..CREATE_ATTEMPTS_MAX {
            let mut headers = expecting(expected);
            expire(&mut headers, ttl);
            match self.write("create", key, value.clone(), headers).await {
                Err(KvError::RevisionMismatch) => {}
                written => return written,
            }
            expected = match self.entry(key).await? {
                Some(entry) if !entry.value.is_empty() => return Err(KvError::AlreadyExists),
                Some(deleted) => deleted.version.as_u64().expect("versions here are revisions"),
                None => 0,
            };
        }
        Err(KvError::RevisionMismatch)
    }
}

fn expecting(revision: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(EXPECTED_LAST, revision.to_string());
    headers
}

fn expire(headers: &mut HeaderMap, ttl: Option<Duration>) {
    if let Some(ttl) = ttl {
        headers.insert(TTL, format!("{}s", ttl.as_secs()));
    }
}

fn revision_of(version: VersionToken) -> Result<u64, KvError> {
    version.as_u64().ok_or(KvError::InvalidVersion)
}

#[async_trait]
impl KvWriter for Bucket {
    async fn put(&self, key: &str, value: Bytes) -> Result<VersionToken, KvError> {
        self.check(key, &value)?;
        self.write("put", key, value, HeaderMap::new()).await
    }

    async fn delete(&self, key: &str) -> Result<bool, KvError> {
        validate::check_key(key)?;
        let mut headers = HeaderMap::new();
        headers.insert(OPERATION, DELETE);
        self.write("delete", key, Bytes::new(), headers).await.map(|_| true)
    }

    async fn purge(&self, key: &str) -> Result<(), KvError> {
        validate::check_key(key)?;
        let mut headers = HeaderMap::new();
        headers.insert(OPERATION, PURGE);
        headers.insert(ROLLUP, "sub");
        self.write("purge", key, Bytes::new(), headers).await.map(|_| ())
    }

    async fn create(&self, key: &str, value: Bytes) -> Result<VersionToken, KvError> {
        self.create_maybe_expiring(key, value, None).await
    }

    async fn update(
        &self,
        key: &str,
        value: Bytes,
        version: VersionToken,
    ) -> Result<VersionToken, KvError> {
        self.check(key, &value)?;
        self.write("update", key, value, expecting(revision_of(version)?)).await
    }

    async fn delete_with_version(&self, key: &str, version: VersionToken) -> Result<bool, KvError> {
        validate::check_key(key)?;
        let headers = expecting(revision_of(version)?);
        self.write("delete", key, Bytes::new(), headers).await.map(|_| true)
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
        self.check(key, &value)?;
        validate::check_ttl(ttl)?;
        let mut headers = HeaderMap::new();
        expire(&mut headers, Some(ttl));
        self.write("put", key, value, headers).await
    }

    async fn create_with_ttl(
        &self,
        key: &str,
        value: Bytes,
        ttl: Duration,
    ) -> Result<VersionToken, KvError> {
        validate::check_ttl(ttl)?;
        self.create_maybe_expiring(key, value, Some(ttl)).await
    }
}
