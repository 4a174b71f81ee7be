//! How a coordinator uses its cluster, checked before it connects.

use core::fmt;
use core::time::Duration;

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use gossip_coordination::{RunConfig, ShardLimits};

use crate::error::ConfigError;
use crate::keyspace::Keyspace;
use crate::limits::{SPLIT_BYTES_MAX, SPLIT_CHILDREN_MAX, TXN_OPS_MIN, largest_split};

/// etcd's own minimum with its default election timeout of one second.
const OWNER_LEASE_SECS_MIN: u64 = 2;
/// Longer ones make takeover wait for nothing.
const OWNER_LEASE_SECS_MAX: u64 = 3_600;
const ATTEMPTS_MAX: u32 = 1_000;
/// etcd's `--grpc-keepalive-min-time` is 5 s, and a ping that is early by its jitter counts.
const PING_INTERVAL: Duration = Duration::from_secs(6);

/// How a coordinator uses its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdConfig {
    /// Members of the cluster, as URLs: `http://10.0.0.1:2379`. Any of them will do; with several,
    /// one may be down.
    pub endpoints: Vec<String>,
    /// What all of its keys begin with. Coordinators of different namespaces never see each
    /// other's runs.
    pub namespace: String,
    /// As whom, where the cluster asks for that.
    pub credentials: Option<Credentials>,
    /// With which certificates, for `https` endpoints.
    pub tls: Option<Tls>,
    /// How long connecting to a member may take.
    pub connect_timeout: Duration,
    /// How long one request may take. Whoever gives up does not know whether it was carried out.
    /// Shorter than `owner_lease_ttl`: a lease must not end before the answer that grants it.
    pub request_timeout: Duration,
    /// How long one operation may take with all of its requests and backoffs; of a registration, a
    /// deletion or a listing, each step or page. It decides by the time that the caller gave it, so
    /// that this is also by how much a new deadline may be nearer than a whole lease.
    pub operation_timeout: Duration,
    /// How long this process may be silent before others may take its shards, in whole seconds.
    pub owner_lease_ttl: Duration,
    /// By how much clocks of different machines may differ. A shard whose owner is alive may be
    /// taken this long after its deadline.
    pub skew_allowance: Duration,
    /// How often one operation is tried while others change the same records, or the cluster does
    /// not answer, within `operation_timeout`.
    pub attempts: u32,
    /// The backoff before the second try. Each further one is up to twice as long, half of it at
    /// random.
    pub backoff_min: Duration,
    /// The longest backoff between tries.
    pub backoff_max: Duration,
    /// Ceilings on the number of shards. Every coordinator of a namespace should have the same.
    pub limits: ShardLimits,
    /// Most children of one split. At most what fits into a transaction of `txn_ops_max`.
    pub max_split_children: usize,
    /// Most bytes of keys and metadata in the ranges of one split.
    pub max_split_bytes: usize,
    /// The cluster's `--max-txn-ops`. Registrations and deletions use no more than 128.
    pub txn_ops_max: usize,
    /// How long a worker whose claim found nothing must wait before it claims again.
    pub claim_cooldown: Duration,
}

/// A user of the cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user as etcd knows it.
    pub user: String,
    /// The user's password; never printed.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// Certificates, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Tls {
    /// Of the authority that signed the servers'.
    pub ca: Vec<u8>,
    /// This client's own, with its key, where the cluster asks for that.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The name in the servers' certificates, where it is not the endpoints'.
    pub domain: Option<String>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("domain", &self.domain).finish_non_exhaustive()
    }
}

impl EtcdConfig {
    /// These endpoints, in the namespace `gossip`, with limits that suit a default cluster.
    #[must_use]
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            namespace: "gossip".into(),
            credentials: None,
            tls: None,
            connect_timeout: Duration::from_secs(3),
            request_timeout: Duration::from_secs(5),
            operation_timeout: Duration::from_secs(10),
            owner_lease_ttl: Duration::from_secs(10),
            skew_allowance: Duration::from_secs(2),
            attempts: 16,
            backoff_min: Duration::from_millis(5),
            backoff_max: Duration::from_millis(500),
            limits: ShardLimits { per_tenant: 100_000, global: 1_000_000 },
            max_split_children: 8,
            max_split_bytes: SPLIT_BYTES_MAX,
            txn_ops_max: 128,
            claim_cooldown: Duration::ZERO,
        }
    }

    /// Whether it can work at all.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.endpoints.is_empty() {
            return Err(ConfigError::NoEndpoints);
        }
        for endpoint in &self.endpoints {
            let is_tls = match endpoint.split_once("://") {
                Some(("http", rest)) if !rest.is_empty() => false,
                Some(("https", rest)) if !rest.is_empty() => true,
                _ => return Err(ConfigError::BadEndpoint { endpoint: endpoint.clone() }),
            };
            if is_tls != self.tls.is_some() {
                return Err(ConfigError::TlsMismatch { endpoint: endpoint.clone() });
            }
        }
        Keyspace::new(&self.namespace)?;
        self.validate_times()?;
        if self.attempts == 0 || self.attempts > ATTEMPTS_MAX {
            return Err(ConfigError::Attempts { given: self.attempts, max: ATTEMPTS_MAX });
        }
        if self.limits.per_tenant == 0 || self.limits.global == 0 {
            return Err(ConfigError::ZeroCeiling);
        }
        if self.txn_ops_max < TXN_OPS_MIN {
            return Err(ConfigError::TxnOps { given: self.txn_ops_max, min: TXN_OPS_MIN });
        }
        let max = largest_split(self.txn_ops_max).min(SPLIT_CHILDREN_MAX);
        if !(2..=max).contains(&self.max_split_children) {
            let given = self.max_split_children;
            return Err(ConfigError::SplitChildren { given, max });
        }
        if self.max_split_bytes == 0 || self.max_split_bytes > SPLIT_BYTES_MAX {
            let given = self.max_split_bytes;
            return Err(ConfigError::SplitBytes { given, max: SPLIT_BYTES_MAX });
        }
        Ok(())
    }

    fn validate_times(&self) -> Result<(), ConfigError> {
        let ttl = self.owner_lease_ttl;
        let is_whole = ttl.subsec_nanos() == 0;
        if !is_whole || !(OWNER_LEASE_SECS_MIN..=OWNER_LEASE_SECS_MAX).contains(&ttl.as_secs()) {
            let (min, max) = (OWNER_LEASE_SECS_MIN, OWNER_LEASE_SECS_MAX);
            return Err(ConfigError::OwnerLease { given: ttl, min, max });
        }
        for (setting, given) in [
            ("connect_timeout", self.connect_timeout),
            ("request_timeout", self.request_timeout),
            ("operation_timeout", self.operation_timeout),
            ("backoff_min", self.backoff_min),
        ] {
            if given.is_zero() {
                return Err(ConfigError::ZeroTime { setting });
            }
        }
        for (setting, max) in
            [("owner_lease_ttl", ttl), ("operation_timeout", self.operation_timeout)]
        {
            let given = self.request_timeout;
            if given >= max {
                return Err(ConfigError::RequestTimeout { given, setting, max });
            }
        }
        if self.backoff_min > self.backoff_max {
            return Err(ConfigError::Backoff { min: self.backoff_min, max: self.backoff_max });
        }
        Ok(())
    }

    /// Whether a run's leases fit this process's: one that ends before others may know that its
    /// process is gone makes owner keys useless, and one that an operation may outlast is over when
    /// it is granted. Runs are created, and get their shards, only where they fit.
    pub fn validate_run(&self, run: &RunConfig) -> Result<(), ConfigError> {
        let lease = Duration::from_millis(run.lease_duration);
        let (ttl, timeout) = (self.owner_lease_ttl, self.operation_timeout);
        if lease < ttl {
            return Err(ConfigError::LeaseDuration { lease, ttl });
        }
        if lease < timeout {
            return Err(ConfigError::LeaseWithinOperation { lease, timeout });
        }
        Ok(())
    }

    pub(crate) fn keyspace(&self) -> Keyspace {
        Keyspace::new(&self.namespace).expect("the configuration was validated")
    }

    pub(crate) fn skew_allowance_ms(&self) -> u64 {
        u64::try_from(self.skew_allowance.as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn claim_cooldown_ms(&self) -> u64 {
        u64::try_from(self.claim_cooldown.as_millis()).unwrap_or(u64::MAX)
    }

    /// How often a member that owes an answer is pinged, and how long it may take: one that was paused
    /// or cut off is noticed while there is time left for a keep-alive through another.
    fn pings(&self) -> (Duration, Duration) {
        let timeout = self.request_timeout.min(self.owner_lease_ttl / 2) / 2;
        (PING_INTERVAL.min(self.owner_lease_ttl * 3 / 5), timeout)
    }

    pub(crate) fn connect_options(&self) -> ConnectOptions {
        let (interval, timeout) = self.pings();
        let mut options = ConnectOptions::new()
            .with_connect_timeout(self.connect_timeout)
            .with_keep_alive(interval, timeout);
        if let Some(Credentials { user, password }) = &self.credentials {
            options = options.with_user(user, password);
        }
        if let Some(Tls { ca, identity, domain }) = &self.tls {
            let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(ca));
            if let Some((certificate, key)) = identity {
                tls = tls.identity(Identity::from_pem(certificate, key));
            }
            if let Some(domain) = domain {
                tls = tls.domain_name(domain);
            }
            options = options.with_tls(tls);
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gossip_contracts::coordination::CursorSemantics;

    fn config() -> EtcdConfig {
        EtcdConfig::new(["http://127.0.0.1:2379"])
    }

    fn refused(change: impl FnOnce(&mut EtcdConfig)) -> ConfigError {
        let mut config = config();
        change(&mut config);
        config.validate().expect_err("it must be refused")
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(config().validate(), Ok(()));
    }

    #[test]
    fn each_setting_is_checked_and_the_error_names_it() {
        let secs = Duration::from_secs;
        let cases: [(ConfigError, &str); 19] = [
            (refused(|c| c.endpoints.clear()), "endpoints"),
            (refused(|c| c.endpoints = vec!["10.0.0.1:2379".into()]), "10.0.0.1:2379"),
            (refused(|c| c.endpoints = vec!["https://a:1".into()]), "tls"),
            (refused(|c| c.namespace = "a/b".into()), "namespace"),
            (refused(|c| c.owner_lease_ttl = secs(1)), "owner_lease_ttl"),
            (refused(|c| c.owner_lease_ttl = secs(3_601)), "owner_lease_ttl"),
            (refused(|c| c.owner_lease_ttl = Duration::from_millis(2_500)), "owner_lease_ttl"),
            (refused(|c| c.request_timeout = Duration::ZERO), "request_timeout"),
            (refused(|c| c.request_timeout = c.owner_lease_ttl), "owner_lease_ttl"),
            (refused(|c| c.operation_timeout = Duration::ZERO), "operation_timeout"),
            (refused(|c| c.operation_timeout = c.request_timeout), "operation_timeout"),
            (refused(|c| c.backoff_min = secs(1)), "backoff_min"),
            (refused(|c| c.attempts = 0), "attempts"),
            (refused(|c| c.limits.global = 0), "limits"),
            (refused(|c| c.max_split_children = 1), "max_split_children"),
            (refused(|c| c.max_split_children = 200), "max_split_children"),
            (refused(|c| c.txn_ops_max = 63), "txn_ops_max: 63"),
            (refused(|c| (c.txn_ops_max, c.max_split_children) = (64, 29)), "max_split_children"),
            (refused(|c| c.max_split_bytes += 1), "max_split_bytes"),
        ];
        for (error, setting) in cases {
            assert!(error.to_string().contains(setting), "{error}");
        }
    }

    #[test]
    fn a_run_whose_leases_are_shorter_than_the_owners_is_refused() {
        let run = |lease_duration| RunConfig {
            cursor_semantics: CursorSemantics::Completed,
            lease_duration,
            max_shard_retries: 1,
        };
        assert_eq!(config().validate_run(&run(10_000)), Ok(()));
        let error = config().validate_run(&run(9_999)).unwrap_err().to_string();
        assert!(error.contains("owner_lease_ttl"), "{error}");
        let patient = EtcdConfig { operation_timeout: Duration::from_secs(20), ..config() };
        let error = patient.validate_run(&run(19_999)).unwrap_err().to_string();
        assert!(error.contains("operation_timeout"), "{error}");
    }

    /// etcd ends a connection on which pings come more often than every 5 seconds while it has
    /// nothing to say, as where there is no quorum.
    #[test]
    fn pings_come_no_more_often_than_etcd_allows_and_soon_enough_for_the_lease() {
        for (ttl_secs, timeout_ms) in [(10, 5_000), (10, 500), (60, 5_000), (3_600, 50_000)] {
            let mut config = config();
            config.owner_lease_ttl = Duration::from_secs(ttl_secs);
            config.request_timeout = Duration::from_millis(timeout_ms);
            let (interval, timeout) = config.pings();
            assert!(interval > Duration::from_secs(5), "{interval:?}");
            assert!(interval + timeout < config.owner_lease_ttl, "{interval:?} {timeout:?}");
        }
        let hasty = EtcdConfig { owner_lease_ttl: Duration::from_secs(2), ..config() };
        let (interval, timeout) = hasty.pings();
        assert!(interval + timeout < hasty.owner_lease_ttl, "{interval:?} {timeout:?}");
    }

    #[test]
    fn debug_shows_neither_password_nor_certificate() {
        let credentials = Credentials { user: "someone".into(), password: "hush".into() };
        let tls = Tls { ca: b"hush".to_vec(), identity: None, domain: None };
        let config = EtcdConfig { credentials: Some(credentials), tls: Some(tls), ..config() };
        let shown = format!("{config:?}");
        assert!(!shown.contains("hush") && !shown.contains("104, 117"), "{shown}");
    }
}
