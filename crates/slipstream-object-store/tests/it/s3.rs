//! A bucket of a real store.

use std::sync::Arc;

use object_store::aws::AmazonS3Builder;
use object_store::{ClientOptions, ObjectStore};

use crate::weed::Weed;

/// Made, of a store that was just started.
pub(crate) fn s3(weed: &Weed) -> Arc<dyn ObjectStore> {
    weed.put("fleet", "made", b"the bucket").unwrap();
    s3_at(weed.endpoint())
}

pub(crate) fn s3_at(endpoint: String) -> Arc<dyn ObjectStore> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let store = AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_access_key_id("tests")
        .with_secret_access_key("of the tests")
        .with_region("us-east-1")
        .with_bucket_name("fleet")
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .build()
        .unwrap();
    Arc::new(store)
}
