//! The connection to NATS servers.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::api::{Link, timed};
use super::bucket::Bucket;
use crate::kv::KvError;
use crate::stores::{Connection, ConnectionCapabilities, KvStore, StoreConfig};
use crate::validate;

/// Messages that a subscription holds before the client library drops some. A consumer's window is
/// 32 MiB and a message counts at least 64 bytes of it, so none is ever dropped.
const SUBSCRIPTION_CAPACITY: usize = 512 * 1024;

/// A wire that has gone silent is given up after three of these; the library's own minutes are long
/// for a watch that could go on elsewhere.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// How to connect. Of credentials, the first of `creds`, `creds_file` and the URL's counts.
#[derive(Clone, Default)]
pub struct NatsConnectionConfig {
    /// `nats://` or `tls://`, several separated by commas; may carry `user:password@`, in which what
    /// a URL cannot hold is written as `%` and two digits.
    pub url: String,
    /// The text of a `.creds` file in base64, where no file can be mounted.
    pub creds: Option<String>,
    /// Path of a `.creds` file.
    pub creds_file: Option<PathBuf>,
    /// A file of PEM certificates that servers may be signed by, besides those of the system. With
    /// it, a connection without TLS is refused.
    pub ca_file: Option<PathBuf>,
    /// Files of the PEM certificate and key that this client shows to servers.
    pub client_cert: Option<ClientCert>,
}

/// What a client shows to servers that ask for it.
#[derive(Clone, Debug)]
pub struct ClientCert {
    /// The certificate, as PEM.
    pub cert_file: PathBuf,
    /// Its private key, as PEM.
    pub key_file: PathBuf,
}

impl fmt::Debug for NatsConnectionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may carry a password.
        f.debug_struct("NatsConnectionConfig")
            .field("creds", &self.creds.is_some())
            .field("creds_file", &self.creds_file)
            .field("ca_file", &self.ca_file)
            .field("client_cert", &self.client_cert)
            .finish_non_exhaustive()
    }
}

impl NatsConnectionConfig {
    /// No credentials but those in the URL.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    fn servers(&self) -> Result<Vec<ServerAddr>, KvError> {
        let parse = |url: &str| match url.trim() {
            "" => None,
            url => url.parse::<ServerAddr>().ok(),
        };
        // The parser's own error may repeat the URL.
        let refused = || KvError::Config("the URL is not one of a NATS server".into());
        self.url.split(',').map(parse).collect::<Option<_>>().ok_or_else(refused)
    }

    async fn options(&self, servers: &[ServerAddr]) -> Result<ConnectOptions, KvError> {
        let mut options = ConnectOptions::new()
            .name("slipstream")
            .ping_interval(PING_INTERVAL)
            .subscription_capacity(SUBSCRIPTION_CAPACITY);
        if let Some(file) = &self.ca_file {
            readable(file)?;
            options = options.add_root_certificates(file.clone()).require_tls(true);
        }
        if let Some(ClientCert { cert_file, key_file }) = &self.client_cert {
            [cert_file, key_file].into_iter().try_for_each(readable)?;
            options = options.add_client_certificate(cert_file.clone(), key_file.clone());
        }
        if let Some(creds) = &self.creds {
            let text =
                STANDARD.decode(creds.trim()).ok().and_then(|text| String::from_utf8(text).ok());
            let text = text.ok_or_else(|| KvError::Config("`creds` is not base64 text".into()))?;
            let refused = |_| KvError::Config("`creds` are not credentials".into());
            return options.credentials(&text).map_err(refused);
        }
        if let Some(path) = &self.creds_file {
            let refused = |error: std::io::Error| {
                let (path, kind) = (path.display(), error.kind());
                KvError::Config(format!("no credentials in {path}: {kind}"))
            };
            return options.credentials_file(path).await.map_err(refused);
        }
        let user = servers.iter().find_map(|server| Some((server.username()?, server.password()?)));
        let Some((user, password)) = user else { return Ok(options) };
        let both = decoded(user).zip(decoded(password));
        let (user, password) =
            both.ok_or_else(|| KvError::Config("the URL's credentials are not text".into()))?;
        Ok(options.user_and_password(user, password))
    }
}

/// The library would say no more than that TLS failed.
fn readable(file: &PathBuf) -> Result<(), KvError> {
    let refused = |error: std::io::Error| {
        KvError::Config(format!("no certificate in {}: {}", file.display(), error.kind()))
    };
    std::fs::File::open(file).map(|_| ()).map_err(refused)
}

/// The address alone. The library writes its addresses into its log, credentials and all.
fn without_credentials(server: ServerAddr) -> Option<ServerAddr> {
    let mut url = server.into_inner();
    url.set_password(None).ok()?;
    url.set_username("").ok()?;
    ServerAddr::from_url(url).ok()
}

/// Text of a URL as it was before it was escaped.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, more)) = rest.split_first() {
        let escaped = more.get(..2).filter(|_| byte == b'%');
        let escaped = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                bytes.push(value);
                rest = &more[2..];
            }
            None => {
                bytes.push(byte);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// A connection to NATS. Lost connections are made again in the background for as long as it lives.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), slipstream::KvError> {
/// use slipstream::{Connection, NatsConnection, NatsConnectionConfig};
///
/// let mut config = NatsConnectionConfig::new("nats://a.example:4222,nats://b.example:4222");
/// config.creds_file = Some("service.creds".into());
/// let nats = NatsConnection::new(config);
/// nats.connect().await?;
/// let bucket = nats.open("rules").await?;
/// for key in bucket.reader().keys("aws.").await? {
///     println!("{}", key.as_str());
/// }
/// # Ok(()) }
/// ```
pub struct NatsConnection {
    /// `None` for a client that was given.
    config: Option<NatsConnectionConfig>,
    link: Mutex<Option<Arc<Link>>>,
    /// One caller dials at a time.
    dialing: tokio::sync::Mutex<()>,
}

impl fmt::Debug for NatsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsConnection")
            .field("healthy", &self.is_healthy())
            .finish_non_exhaustive()
    }
}

impl NatsConnection {
    /// Not connected yet.
    #[must_use]
    pub fn new(config: NatsConnectionConfig) -> Self {
        let (link, dialing) = (Mutex::new(None), tokio::sync::Mutex::new(()));
        Self { config: Some(config), link, dialing }
    }

    /// Over a client that is connected already. After `shutdown` it cannot connect again.
    ///
    /// A client whose subscriptions hold fewer messages than a consumer's window (the library's
    /// default does, for values of less than about 500 bytes) drops some when its caller is slow. A
    /// watch notices and ends with an error.
    #[must_use]
    pub fn from_client(client: Client) -> Self {
        let link = Some(Arc::new(Link::new(client)));
        Self { config: None, link: Mutex::new(link), dialing: tokio::sync::Mutex::new(()) }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Link>>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn link(&self) -> Result<Arc<Link>, KvError> {
        self.slot().clone().ok_or(KvError::NotConnected)
    }

    /// Whether there is a client of which something holds. Asks nobody.
    fn client_is(&self, test: impl Fn(&Client) -> bool) -> bool {
        self.slot().as_ref().and_then(|link| link.client().ok().map(&test)).unwrap_or(false)
    }
}

#[async_trait]
impl Connection for NatsConnection {
    async fn connect(&self) -> Result<(), KvError> {
        let _dialing = self.dialing.lock().await;
        if self.slot().is_some() {
            return Ok(());
        }
        let config = self.config.as_ref().ok_or(KvError::NotConnected)?;
        let servers = config.servers()?;
        let options = config.options(&servers).await?;
        let servers: Option<Vec<_>> = servers.into_iter().map(without_credentials).collect();
        let servers = servers.ok_or_else(|| KvError::Config("the URL has no host".into()))?;
        let connected = timed("connect", options.connect(&servers[..])).await?;
        let client = connected.map_err(|error| connect_error(&error, &servers))?;
        *self.slot() = Some(Arc::new(Link::new(client)));
        Ok(())
    }

    async fn shutdown(&self) -> Result<(), KvError> {
        let link = self.slot().take();
        match link {
            Some(link) => link.close().await,
            None => Ok(()),
        }
    }

    fn is_healthy(&self) -> bool {
        self.client_is(|client| client.connection_state() == State::Connected)
    }

    async fn store(&self, bucket: &str, config: &StoreConfig) -> Result<Arc<dyn KvStore>, KvError> {
        validate::check_bucket(bucket)?;
        validate::check_config(config)?;
        Ok(Arc::new(Bucket::create(self.link()?, bucket, config).await?))
    }

    async fn open(&self, bucket: &str) -> Result<Arc<dyn KvStore>, KvError> {
        validate::check_bucket(bucket)?;
        Ok(Arc::new(Bucket::open(self.link()?, bucket).await?))
    }

    async fn buckets(&self) -> Result<Vec<String>, KvError> {
        super::bucket::names(&*self.link()?).await
    }

    fn capabilities(&self) -> ConnectionCapabilities {
        let since = |minor| self.client_is(|client| client.is_server_compatible(2, minor, 0));
        ConnectionCapabilities {
            cas: true,
            streaming_watch: true,
            resumable_watch: true,
            multi_prefix_watch: since(10),
            ttl: since(11),
            direct_reads: since(9),
        }
    }
}

/// Without the library's own text, which may repeat the URL. The servers are those without
/// credentials.
fn connect_error(error: &async_nats::ConnectError, servers: &[ServerAddr]) -> KvError {
    use std::error::Error;
    let address = |server: &ServerAddr| match (server.host(), server.port()) {
        (host, port) if host.contains(':') => format!("[{host}]:{port}"),
        (host, port) => format!("{host}:{port}"),
    };
    let servers = servers.iter().map(address).collect::<Vec<_>>().join(", ");
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            KvError::Unauthorized(error.kind().to_string())
        }
        ConnectErrorKind::Io => {
            let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
            let kind = source.map_or_else(String::new, |source| format!(": {}", source.kind()));
            KvError::Connect(format!("{servers}: {}{kind}", error.kind()))
        }
        kind => KvError::Connect(format!("{servers}: {kind}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_password() {
        let config = NatsConnectionConfig {
            creds: Some("c2VjcmV0".into()),
            ..NatsConnectionConfig::new("nats://user:hunter2@127.0.0.1")
        };
        let shown = format!("{config:?} {:?}", NatsConnection::new(config.clone()));
        assert!(!shown.contains("hunter2") && !shown.contains("c2VjcmV0"), "{shown}");
    }

    #[test]
    fn addresses_are_given_away_without_credentials() {
        for (url, address) in [
            ("nats://user:hunter2@host:4223", "nats://host:4223"),
            ("token@host", "nats://host"),
            ("tls://host", "tls://host"),
        ] {
            let server = without_credentials(url.parse().unwrap()).unwrap();
            assert_eq!(server.as_url_str(), address);
        }
    }

    #[test]
    fn credentials_of_a_url_are_what_was_escaped() {
        for (escaped, text) in
            [("p%40ss%3aw", Some("p@ss:w")), ("100%", Some("100%")), ("%zz%4", Some("%zz%4"))]
        {
            assert_eq!(decoded(escaped).as_deref(), text);
        }
        assert_eq!(decoded("%ff"), None);
    }

    #[tokio::test]
    async fn a_bad_url_is_refused_without_its_password() {
        for url in ["nats://user:hunter2@[", "ftp://user:hunter2@host", ""] {
            let connection = NatsConnection::new(NatsConnectionConfig::new(url));
            let error = connection.connect().await.unwrap_err();
            assert!(matches!(error, KvError::Config(_)), "{url}: {error:?}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }

    #[tokio::test]
    async fn bad_credentials_are_refused_before_anything_is_dialed() {
        let url = "nats://127.0.0.1:1";
        let creds = Some("not base64".to_owned());
        let config = NatsConnectionConfig { creds, ..NatsConnectionConfig::new(url) };
        let error = NatsConnection::new(config).connect().await.unwrap_err();
        assert!(matches!(error, KvError::Config(_)), "{error:?}");
        let creds_file = Some("/nonexistent/file.creds".into());
        let config = NatsConnectionConfig { creds_file, ..NatsConnectionConfig::new(url) };
        let error = NatsConnection::new(config).connect().await.unwrap_err();
        assert!(matches!(error, KvError::Config(_)), "{error:?}");
    }
}
