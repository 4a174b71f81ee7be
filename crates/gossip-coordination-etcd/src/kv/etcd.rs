//! etcd itself.

use core::fmt;
use core::future::Future;
use core::time::Duration;

use etcd_client::{
    Client, Compare as EtcdCompare, CompareOp, DeleteOptions, Error, GetOptions, GetResponse,
    KeyValue, KvClient, LeaseGrantOptions, PutOptions, SortOrder, SortTarget, Txn as EtcdTxn,
    TxnOp, TxnOpResponse,
};
use tonic::{Code, Status};

use super::{Entry, Found, Kv, KvError, LeaseId, Op, Read, Txn, TxnAnswer, Wanted};
use crate::config::EtcdConfig;
use crate::error::ConnectError;

/// The largest answer taken: a page of the largest records, several times over.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A connection to a cluster. Clones share it.
#[derive(Clone)]
pub struct EtcdKv {
    client: Client,
    kv: KvClient,
    request_timeout: Duration,
}

impl EtcdKv {
    /// Connects, and asks the cluster one question to know that it answers.
    pub async fn connect(config: &EtcdConfig) -> Result<Self, ConnectError> {
        config.validate()?;
        let unreachable = |mut message: String| {
            // A member that wants another certificate may merely close the connection.
            if config.tls.is_some() {
                message.push_str(
                    " (tls.ca must have signed the members' certificates, and tls.identity be one that they accept)",
                );
            }
            ConnectError::Unreachable { endpoints: config.endpoints.join(", "), message }
        };
        let connecting = Client::connect(&config.endpoints, Some(config.connect_options()));
        let client = match tokio::time::timeout(config.request_timeout, connecting).await {
            Ok(connected) => connected.map_err(|error| match classify(&error) {
                KvError::Denied(message) => ConnectError::Denied { message },
                other => unreachable(other.to_string()),
            })?,
            Err(_) => return Err(unreachable(no_answer_within(config.request_timeout))),
        };
        let kv = client.kv_client().max_decoding_message_size(ANSWER_BYTES_MAX);
        let connected = Self { client, kv, request_timeout: config.request_timeout };
        let probe = Read::count(super::KeyRange::one(&config.keyspace().shard_total()));
        match connected.txn(Txn::reads([probe])).await {
            Ok(_) => Ok(connected),
            Err(KvError::Denied(message)) => Err(ConnectError::Denied { message }),
            Err(other) => Err(unreachable(other.to_string())),
        }
    }

    /// The client, for tests that ask etcd itself.
    #[doc(hidden)]
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Makes a request; once more if the user's token was too old, which the server says before it
    /// does anything.
    async fn request<T, F>(&self, make: impl Fn() -> F) -> Result<T, KvError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        match self.within_timeout(make()).await {
            Err(Error::GRpcStatus(status)) if is_stale_token(&status) => {
                self.within_timeout(self.client.refresh_token())
                    .await
                    .map_err(|error| classify(&error))?;
                self.within_timeout(make()).await.map_err(|error| classify(&error))
            }
            answer => answer.map_err(|error| classify(&error)),
        }
    }

    async fn within_timeout<T>(
        &self,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let timeout = self.request_timeout;
        tokio::time::timeout(timeout, request).await.unwrap_or_else(|_| {
            Err(Error::GRpcStatus(Status::deadline_exceeded(no_answer_within(timeout))))
        })
    }
}

fn no_answer_within(timeout: Duration) -> String {
    format!("nothing within {timeout:?}")
}

impl Kv for EtcdKv {
    async fn txn(&self, txn: Txn) -> Result<TxnAnswer, KvError> {
        let compares: Vec<_> = txn.compares.into_iter().map(to_compare).collect();
        let reads_then = txn.then.iter().filter(|op| matches!(op, Op::Read(_))).count();
        let reads_otherwise = txn.otherwise.len();
        let then: Vec<_> = txn.then.into_iter().map(to_op).collect();
        let otherwise: Vec<_> = txn.otherwise.into_iter().map(to_get).collect();
        let txn = EtcdTxn::new().when(compares).and_then(then).or_else(otherwise);
        let answer = self.request(|| {
            let (mut kv, txn) = (self.kv.clone(), txn.clone());
            async move { kv.txn(txn).await }
        });
        let answer = answer.await?;
        let revision = answer.header().map_or(0, |header| header.revision());
        let succeeded = answer.succeeded();
        let reads = answer.op_responses().into_iter().filter_map(|response| match response {
            TxnOpResponse::Get(get) => Some(to_found(get)),
            _ => None,
        });
        let found: Vec<_> = reads.collect();
        // A gateway may cut an answer short, and callers take every read to be answered.
        if found.len() != if succeeded { reads_then } else { reads_otherwise } {
            return Err(KvError::Unanswered("reads are missing in the answer".into()));
        }
        Ok(TxnAnswer { revision, succeeded, found })
    }

    async fn lease_grant(&self, id: LeaseId, ttl_secs: u64) -> Result<u64, KvError> {
        let ttl = i64::try_from(ttl_secs).unwrap_or(i64::MAX);
        let granted = self.request(|| {
            let mut lease = self.client.lease_client();
            async move { lease.grant(ttl, Some(LeaseGrantOptions::new().with_id(id.0))).await }
        });
        match granted.await {
            Ok(granted) => Ok(u64::try_from(granted.ttl()).unwrap_or(0)),
            // An earlier try did it, its answer was lost, and some of its time is over.
            Err(KvError::Invalid(message)) if message.contains("lease already exists") => {
                match self.lease_keep_alive(id).await {
                    Ok(()) => Ok(ttl_secs),
                    Err(KvError::LeaseNotFound) => {
                        Err(KvError::Unavailable("the lease ended before it was used".into()))
                    }
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn lease_keep_alive(&self, id: LeaseId) -> Result<(), KvError> {
        let asked = self.request(|| {
            let mut lease = self.client.lease_client();
            async move { lease.keep_alive(id.0).await }
        });
        asked.await.map(drop)
    }

    async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
        let revoked = self.request(|| {
            let mut lease = self.client.lease_client();
            async move { lease.revoke(id.0).await }
        });
        revoked.await.map(drop)
    }
}

fn to_compare(compare: super::Compare) -> EtcdCompare {
    EtcdCompare::mod_revision(compare.key.into_bytes(), CompareOp::Equal, compare.mod_revision)
}

fn to_op(op: Op) -> TxnOp {
    match op {
        Op::Put { key, value, lease } => {
            let options = PutOptions::new().with_lease(lease.map_or(0, |lease| lease.0));
            TxnOp::put(key.into_bytes(), value, Some(options))
        }
        Op::Delete(key) => TxnOp::delete(key.into_bytes(), None),
        Op::DeleteRange(range) => {
            let options = range.end().map(|end| DeleteOptions::new().with_range(end.as_bytes()));
            TxnOp::delete(range.start().as_bytes(), options)
        }
        Op::Read(read) => to_get(read),
    }
}

fn to_get(read: Read) -> TxnOp {
    let limit = i64::try_from(read.limit).unwrap_or(i64::MAX);
    let mut options = GetOptions::new().with_limit(limit).with_revision(read.revision);
    if let Some(end) = read.range.end() {
        options = options.with_range(end.as_bytes());
    }
    options = match read.wanted {
        Wanted::Entries => options,
        Wanted::Keys => options.with_keys_only(),
        Wanted::Count => options.with_count_only(),
    };
    if read.by_value {
        options = options.with_sort(SortTarget::Value, SortOrder::Ascend);
    }
    TxnOp::get(read.range.start().as_bytes(), Some(options))
}

fn to_found(mut get: GetResponse) -> Found {
    let (all, has_more) = (u64::try_from(get.count()).unwrap_or(0), get.more());
    let entries: Vec<_> = get.take_kvs().into_iter().map(to_entry).collect();
    // The server counts whatever the limit, but only an answer without entries is asked for that.
    let count = if entries.is_empty() { all } else { entries.len() as u64 };
    Found { entries, count, has_more }
}

fn to_entry(entry: KeyValue) -> Entry {
    let (create_revision, mod_revision) = (entry.create_revision(), entry.mod_revision());
    let (version, lease) = (entry.version(), entry.lease());
    let (key, value) = entry.into_key_value();
    let lease = (lease != 0).then_some(LeaseId(lease));
    Entry { key, value, create_revision, mod_revision, version, lease }
}

/// Tokens end after some minutes, and with every change of users and roles.
fn is_stale_token(status: &Status) -> bool {
    let message = status.message();
    message.contains("invalid auth token") || message.contains("revision of auth store is old")
}

/// What an error means for whoever made the request. What is not known to have done nothing may
/// have been carried out.
fn classify(error: &Error) -> KvError {
    match error {
        Error::GRpcStatus(status) => classify_status(status),
        Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => {
            KvError::Invalid(error.to_string())
        }
        // What the client calls an answer that the lease is gone.
        Error::LeaseKeepAliveError(message) if message.contains("not found") => {
            KvError::LeaseNotFound
        }
        other => KvError::Unanswered(with_causes(&other.to_string(), other)),
    }
}

/// A message and what lies behind it. What the transport says of itself helps nobody.
fn with_causes(message: &str, error: &dyn core::error::Error) -> String {
    const EMPTY: &str = "transport error";
    let mut said = message.to_owned();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if said == EMPTY {
            said = text;
        } else if text != EMPTY && !said.contains(&text) {
            said = format!("{said}: {text}");
        }
        cause = error.source();
    }
    said
}

fn classify_status(status: &Status) -> KvError {
    let message = status.message();
    match status.code() {
        Code::NotFound if message.contains("lease not found") => KvError::LeaseNotFound,
        Code::OutOfRange if message.contains("compacted") => KvError::Compacted,
        Code::ResourceExhausted if message.contains("space exceeded") => KvError::NoSpace,
        Code::ResourceExhausted if message.contains("too many requests") => {
            KvError::Unavailable(message.into())
        }
        Code::PermissionDenied | Code::Unauthenticated => KvError::Denied(message.into()),
        Code::InvalidArgument
            if message.contains("authentication") || message.contains("user name is empty") =>
        {
            KvError::Denied(message.into())
        }
        Code::InvalidArgument
        | Code::NotFound
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented => KvError::Invalid(message.into()),
        _ => KvError::Unanswered(with_causes(message, status)),
    }
}

impl fmt::Debug for EtcdKv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdKv").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_surely_did_nothing_is_not_called_unanswered() {
        let status = |code, message: &str| classify_status(&Status::new(code, message));
        for (code, message, expected) in [
            (Code::NotFound, "etcdserver: requested lease not found", KvError::LeaseNotFound),
            (
                Code::OutOfRange,
                "etcdserver: mvcc: required revision has been compacted",
                KvError::Compacted,
            ),
            (
                Code::ResourceExhausted,
                "etcdserver: mvcc: database space exceeded",
                KvError::NoSpace,
            ),
        ] {
            assert_eq!(status(code, message), expected);
        }
        assert!(matches!(status(Code::PermissionDenied, "x"), KvError::Denied(_)));
        assert!(matches!(
            status(Code::InvalidArgument, "etcdserver: authentication failed, invalid user ID"),
            KvError::Denied(_)
        ));
        assert!(matches!(
            status(Code::InvalidArgument, "etcdserver: too many operations in txn request"),
            KvError::Invalid(_)
        ));
        for code in [
            Code::Unavailable,
            Code::DeadlineExceeded,
            Code::Cancelled,
            Code::Unknown,
            Code::Internal,
            Code::Aborted,
        ] {
            assert!(matches!(status(code, "etcdserver: leader changed"), KvError::Unanswered(_)));
        }
    }
}
