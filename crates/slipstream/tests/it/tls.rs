//! Servers that want TLS, with a certificate authority of our own.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use slipstream::{ClientCert, Connection, KvError, NatsConnection, NatsConnectionConfig};

use crate::server::NatsServer;

/// A certificate authority, and a certificate of it for this machine.
struct Certificates {
    dir: tempfile::TempDir,
}

impl Certificates {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_cert = ca.self_signed(&ca_key).unwrap();
        let issuer = Issuer::new(ca, ca_key);
        let key = KeyPair::generate().unwrap();
        let cert = CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
        let cert = cert.signed_by(&key, &issuer).unwrap();
        fs::write(dir.path().join("ca.pem"), ca_cert.pem()).unwrap();
        fs::write(dir.path().join("cert.pem"), cert.pem()).unwrap();
        fs::write(dir.path().join("key.pem"), key.serialize_pem()).unwrap();
        Self { dir }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn server(&self) -> NatsServer {
        let [cert, key, ca] = ["cert.pem", "key.pem", "ca.pem"].map(|name| self.file(name));
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let arguments = [
            "--tls".to_owned(),
            format!("--tlscert={}", text(&cert)),
            format!("--tlskey={}", text(&key)),
            format!("--tlscacert={}", text(&ca)),
            "--tlsverify".to_owned(),
        ];
        NatsServer::start_with(&arguments.each_ref().map(String::as_str))
    }

    fn config(&self, server: &NatsServer) -> NatsConnectionConfig {
        let (cert_file, key_file) = (self.file("cert.pem"), self.file("key.pem"));
        NatsConnectionConfig {
            ca_file: Some(self.file("ca.pem")),
            client_cert: Some(ClientCert { cert_file, key_file }),
            ..NatsConnectionConfig::new(server.url())
        }
    }
}

#[tokio::test]
async fn a_server_is_believed_by_its_authority_and_shown_a_certificate() {
    let certificates = Certificates::new();
    let server = certificates.server();
    let config = certificates.config(&server);
    let connection = NatsConnection::new(config.clone());
    connection.connect().await.unwrap();
    assert_eq!(connection.buckets().await.unwrap(), [""; 0]);
    let without_cert = NatsConnectionConfig { client_cert: None, ..config.clone() };
    let of_another = Certificates::new();
    let other_ca = Some(of_another.file("ca.pem"));
    let other_ca = NatsConnectionConfig { ca_file: other_ca, ..config };
    for refused in [without_cert, other_ca] {
        let error = NatsConnection::new(refused).connect().await.unwrap_err();
        assert!(matches!(error, KvError::Connect(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_an_authority_is_given() {
    let certificates = Certificates::new();
    let server = NatsServer::start();
    let config = NatsConnectionConfig { client_cert: None, ..certificates.config(&server) };
    let error = NatsConnection::new(config).connect().await.unwrap_err();
    assert!(matches!(error, KvError::Connect(_)), "{error:?}");
}

#[tokio::test]
async fn a_certificate_that_is_not_there_is_named() {
    let ca_file = Some(PathBuf::from("/nonexistent/ca.pem"));
    let config =
        NatsConnectionConfig { ca_file, ..NatsConnectionConfig::new("nats://127.0.0.1:1") };
    let error = NatsConnection::new(config).connect().await.unwrap_err();
    assert!(matches!(&error, KvError::Config(text) if text.contains("ca.pem")), "{error:?}");
}
