//! Buckets on NATS JetStream.
