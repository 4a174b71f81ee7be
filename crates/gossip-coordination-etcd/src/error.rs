//! What can be wrong with a configuration or a cluster, and where failures of etcd end up.

use core::time::Duration;

use gossip_coordination::InfraError;
use gossip_coordination::codec::CodecError;

use crate::keyspace::{InvalidNamespace, Key};
use crate::kv::KvError;

/// Why a configuration cannot work. Names the setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum ConfigError {
    /// There is no member to connect to.
    #[error("endpoints: name at least one member of the cluster")]
    NoEndpoints,
    /// It is no URL.
    #[error("endpoints: {endpoint} does not begin with http:// or https:// and a host")]
    BadEndpoint { endpoint: String },
    /// `https` needs certificates, and `http` has no use for them.
    #[error(
        "endpoints: {endpoint} and the setting tls do not fit: https goes with tls, http without"
    )]
    TlsMismatch { endpoint: String },
    /// It would not keep keys apart.
    #[error("namespace: {0}")]
    Namespace(#[from] InvalidNamespace),
    /// etcd would not grant it.
    #[error("owner_lease_ttl: {given:?} is not between {min} and {max} whole seconds")]
    OwnerLease { given: Duration, min: u64, max: u64 },
    /// A run's leases end before the owner's.
    #[error(
        "the run's leases last {lease:?}, less than the {ttl:?} of owner_lease_ttl: choose longer leases, or a shorter owner_lease_ttl"
    )]
    LeaseDuration { lease: Duration, ttl: Duration },
    /// A call may outlast the lease that it is about.
    #[error(
        "the run's leases last {lease:?}, less than the {timeout:?} of operation_timeout: choose longer leases, or a shorter operation_timeout"
    )]
    LeaseWithinOperation { lease: Duration, timeout: Duration },
    /// One request may outlast the process's lease, or the operation that it is for.
    #[error("request_timeout: {given:?} is not shorter than {setting}, {max:?}")]
    RequestTimeout { given: Duration, setting: &'static str, max: Duration },
    /// Nothing happens in no time.
    #[error("{setting}: it must not be zero")]
    ZeroTime { setting: &'static str },
    /// The backoff does not grow.
    #[error("backoff_min: {min:?} is longer than backoff_max, {max:?}")]
    Backoff { min: Duration, max: Duration },
    /// Not at all, or for ever.
    #[error("attempts: {given} is not between 1 and {max}")]
    Attempts { given: u32, max: u32 },
    /// Reads of a page would be refused.
    #[error("txn_ops_max: {given} is less than {min}, the operations of a page's transaction")]
    TxnOps { given: usize, min: usize },
    /// No shard could ever be registered.
    #[error("limits: a ceiling of zero shards leaves no room for any")]
    ZeroCeiling,
    /// It does not fit into a transaction.
    #[error(
        "max_split_children: {given} is not between 2 and {max}, the most that a transaction of txn_ops_max takes"
    )]
    SplitChildren { given: usize, max: usize },
    /// The server does not take such a request.
    #[error("max_split_bytes: {given} is not between 1 and {max}, the most that a request takes")]
    SplitBytes { given: usize, max: usize },
}

/// Why a coordinator did not connect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum ConnectError {
    /// The configuration cannot work.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// No member answers.
    #[error("no member of the cluster answers at {endpoints}: {message}")]
    Unreachable { endpoints: String, message: String },
    /// The user or password is wrong, or the user's role lacks rights on the namespace.
    #[error("etcd refuses the credentials: {message}")]
    Denied { message: String },
    /// The sync coordinator has a runtime of its own, which cannot run inside another.
    #[error("called inside an async runtime: use AsyncEtcdCoordinator there")]
    InsideRuntime,
    /// The system has no threads to give.
    #[error("the coordinator's runtime does not start: {message}")]
    Runtime { message: String },
}

/// The steps of an operation, for errors to name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    /// Reading what the decision needs.
    pub(crate) load: &'static str,
    /// Storing the decision.
    pub(crate) txn: &'static str,
    /// Getting a lease to put the owner's key under.
    pub(crate) lease: &'static str,
}

macro_rules! steps {
    ($operation:literal) => {
        $crate::error::Steps {
            load: concat!($operation, ".load"),
            txn: concat!($operation, ".txn"),
            lease: concat!($operation, ".lease"),
        }
    };
}
pub(crate) use steps;

/// A failure of etcd that the operation could not get over, and whether another call may.
pub(crate) fn infra(step: &'static str, error: &KvError) -> InfraError {
    match error {
        KvError::Denied(_) | KvError::Invalid(_) | KvError::NoSpace => {
            InfraError::refused(step, error.to_string())
        }
        KvError::Unanswered(_)
        | KvError::Unavailable(_)
        | KvError::LeaseNotFound
        | KvError::Compacted => InfraError::transient(step, error.to_string()),
    }
}

/// Stored bytes that are no record. The key is named, what it holds is not.
pub(crate) fn damaged(step: &'static str, key: &Key, error: &CodecError) -> InfraError {
    InfraError::corruption(step, format!("{key}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_retryable_where_trying_again_may_help_and_nowhere_else() {
        let text = || "said etcd".to_owned();
        for (error, helps) in [
            (KvError::Unanswered(text()), true),
            (KvError::Unavailable(text()), true),
            (KvError::LeaseNotFound, true),
            (KvError::Compacted, true),
            (KvError::NoSpace, false),
            (KvError::Denied(text()), false),
            (KvError::Invalid(text()), false),
        ] {
            let told = infra("renew.txn", &error);
            assert_eq!(told.is_retryable(), helps, "{error:?}");
            assert!(told.to_string().starts_with("renew.txn: "), "{told}");
        }
    }
}
