//! From an address to a store.

use std::sync::Arc;
use std::time::Duration;

use gossip_contracts::connector::ConnectorError;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::list::PaginatedListOptions;
use object_store::{BackoffConfig, ClientOptions, Error, RetryConfig};
use tokio::sync::Semaphore;

use crate::ahead::Ahead;
use crate::error::{OpenError, connector_error};
use crate::{Client, ObjectOptions, ObjectSource, Store};

/// Threads that drive requests; what is fetched is scanned elsewhere.
const THREADS: usize = 2;
/// How long one request is tried again.
const RETRY_FOR: Duration = Duration::from_secs(4);
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(8);
/// A worker looks at its lease before a read, and renews it when half of its 30 seconds are over. So a
/// read, with its last try and the wait before that, ends well before the lease does.
const HALF_LEASE: Duration = Duration::from_secs(15);
const _: () = assert!(
    RETRY_FOR.as_millis() + BACKOFF_MAX.as_millis() + TIMEOUT.as_millis() < HALF_LEASE.as_millis()
);

/// No name begins with a NUL.
const FIRST_KEY: &[u8] = b"\0";
/// No name, which is UTF-8, has this byte.
const END: u8 = 0xff;

impl ObjectSource {
    /// Opens `s3://bucket/prefix`, or `gs://`, or `az://`. Credentials, regions and endpoints are
    /// taken from the environment, by the names that each vendor's own tools use.
    pub fn open(url: &str, options: &ObjectOptions) -> Result<Self, OpenError> {
        if let Some(scheme) = scheme_before_credentials(url) {
            return Err(OpenError::Credentials { scheme: scheme.to_owned() });
        }
        let (scheme, bucket, prefix) = parse(url).ok_or_else(|| not_a_bucket(url))?;
        let config_error =
            |error: Error| OpenError::Config { url: url.to_owned(), message: error.to_string() };
        // Fails if somebody else has chosen: then theirs is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = build(scheme, bucket, &options.settings).map_err(config_error)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("object-store")
            .enable_all()
            .build()
            .map_err(|error| OpenError::Config {
                url: url.to_owned(),
                message: error.to_string(),
            })?;
        let permits = Arc::new(Semaphore::new(options.requests.max(1)));
        let client = Client { store, permits };
        // What is wrong with all of it is said once, and before a run begins.
        let one = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
        let asked = runtime.block_on(client.store.list_paginated(prefix_of(prefix), one));
        match asked {
            // A name that cannot be listed is a shard's matter.
            Ok(_) | Err(Error::InvalidPath { .. }) => {}
            Err(error) => {
                let reason = reason(&error);
                return Err(OpenError::Store { url: url.to_owned(), reason });
            }
        }
        let start = if prefix.is_empty() { FIRST_KEY } else { prefix.as_bytes() };
        Ok(Self {
            client,
            runtime,
            root: format!("{scheme}://{bucket}/"),
            prefix: prefix.to_owned(),
            start: start.to_vec(),
            end: [prefix.as_bytes(), &[END]].concat(),
            ahead: Ahead::new(options.requests),
        })
    }

    /// Whether a word is an address that [`open`](Self::open) knows.
    #[must_use]
    pub fn is_address(word: &str) -> bool {
        ["s3://", "gs://", "az://"].iter().any(|scheme| word.starts_with(scheme))
    }
}

/// The scheme of an address with a user or a password in it. No bucket has these signs in its name.
fn scheme_before_credentials(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let bucket = rest.split('/').next().unwrap_or_default();
    bucket.contains([':', '@']).then_some(scheme)
}

/// Scheme, bucket and prefix.
fn parse(url: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let is_known = ["s3", "gs", "az"].contains(&scheme);
    (is_known && !bucket.is_empty()).then_some((scheme, bucket, prefix))
}

fn not_a_bucket(url: &str) -> OpenError {
    OpenError::NotABucket { url: url.to_owned() }
}

pub(crate) fn prefix_of(prefix: &str) -> Option<&str> {
    (!prefix.is_empty()).then_some(prefix)
}

fn build(
    scheme: &str,
    bucket: &str,
    settings: &[(String, String)],
) -> Result<Arc<dyn Store>, Error> {
    let retry = RetryConfig {
        backoff: BackoffConfig { init_backoff: BACKOFF_MIN, max_backoff: BACKOFF_MAX, base: 2. },
        max_retries: usize::MAX,
        retry_timeout: RETRY_FOR,
    };
    // A store at an address without TLS is one that somebody named so.
    let client = ClientOptions::new().with_allow_http(true).with_timeout(TIMEOUT);
    Ok(match scheme {
        "s3" => {
            let mut builder = AmazonS3Builder::from_env();
            for (name, value) in settings {
                builder = builder.with_config(name.parse()?, value);
            }
            let builder = builder.with_bucket_name(bucket);
            Arc::new(builder.with_retry(retry).with_client_options(client).build()?)
        }
        "gs" => {
            let mut builder = GoogleCloudStorageBuilder::from_env();
            for (name, value) in settings {
                builder = builder.with_config(name.parse()?, value);
            }
            let builder = builder.with_bucket_name(bucket);
            Arc::new(builder.with_retry(retry).with_client_options(client).build()?)
        }
        _ => {
            let mut builder = MicrosoftAzureBuilder::from_env();
            for (name, value) in settings {
                builder = builder.with_config(name.parse()?, value);
            }
            let builder = builder.with_container_name(bucket);
            Arc::new(builder.with_retry(retry).with_client_options(client).build()?)
        }
    })
}

/// In words for whoever typed the address.
fn reason(error: &Error) -> String {
    match connector_error("list", error) {
        ConnectorError::NotFound { .. } => "there is no such bucket".to_owned(),
        ConnectorError::PermissionDenied { .. } => {
            "the store refuses access; see that the credentials in the environment are right"
                .to_owned()
        }
        ConnectorError::Retryable { .. } => {
            "the store does not answer; see that its endpoint and region are right".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_an_address_are_refused_and_not_repeated() {
        for url in ["s3://alice:hush@bucket", "gs://hush@b/x", "az://alice:hu/sh@c", "s3://a:hush"]
        {
            let Err(error) = ObjectSource::open(url, &ObjectOptions::default()) else {
                panic!("{url} was opened");
            };
            assert!(matches!(error, OpenError::Credentials { .. }), "{error}");
            let said = format!("{error} {error:?}");
            assert!(!said.contains("hu") && !said.contains("alice"), "{said}");
        }
    }

    #[test]
    fn addresses_are_taken_apart() {
        assert_eq!(parse("s3://b/a/b.env"), Some(("s3", "b", "a/b.env")));
        assert_eq!(parse("gs://b"), Some(("gs", "b", "")));
        assert_eq!(parse("az://c/"), Some(("az", "c", "")));
        for word in ["s3:/b", "s3:///x", "http://b/x", "b/x", "s3://"] {
            assert_eq!(parse(word), None, "{word}");
        }
    }
}
