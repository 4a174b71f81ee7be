//! A server that is reached over TLS and asks its clients for certificates, all of an authority that the
//! test makes.

use std::fs;
use std::time::Duration;

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use gossip_contracts::identity::WorkerId;
use gossip_coordination::{AcquireScratch, RunManagement, ShardClaiming};
use gossip_coordination_etcd::{ConnectError, EtcdConfig, EtcdCoordinator, Tls};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::server::{EtcdServer, config};
use crate::world::*;

/// As PEM: an authority, and a certificate of it for this machine with its key.
struct Certificates {
    /// Where a server has them as files, which it reads for every connection.
    dir: TempDir,
    ca: String,
    certificate: String,
    key: String,
}

impl Certificates {
    fn new() -> Self {
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_certificate = ca.self_signed(&ca_key).unwrap();
        let issuer = Issuer::new(ca, ca_key);
        let key = KeyPair::generate().unwrap();
        let names = vec!["127.0.0.1".into(), "members.example".into()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        let (certificate, key) = (certificate.pem(), key.serialize_pem());
        Self { dir: tempfile::tempdir().unwrap(), ca: ca_certificate.pem(), certificate, key }
    }

    fn server(&self) -> EtcdServer {
        let file = |name: &str, pem: &str| {
            let path = self.dir.path().join(name);
            fs::write(&path, pem).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (ca, certificate, key) =
            (file("ca", &self.ca), file("certificate", &self.certificate), file("key", &self.key));
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(&self.ca))
            .identity(Identity::from_pem(&self.certificate, &self.key));
        EtcdServer::start_tls(
            ConnectOptions::new().with_tls(tls),
            &[
                "--client-cert-auth",
                "--trusted-ca-file",
                &ca,
                "--cert-file",
                &certificate,
                "--key-file",
                &key,
            ],
        )
    }

    fn client(&self) -> Tls {
        let identity = (self.certificate.clone().into_bytes(), self.key.clone().into_bytes());
        Tls { ca: self.ca.clone().into_bytes(), identity: Some(identity), domain: None }
    }
}

fn over(server: &EtcdServer, tls: Tls) -> EtcdConfig {
    let mut config = config([server.url()]);
    config.request_timeout = Duration::from_secs(9);
    config.tls = Some(tls);
    config
}

fn refused(config: EtcdConfig) -> String {
    let (error, url) =
        (EtcdCoordinator::connect(config.clone()).unwrap_err(), &config.endpoints[0]);
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains(url), "{said}");
    said
}

#[test]
fn a_client_shows_its_certificate_and_believes_its_authority_alone() {
    let certificates = Certificates::new();
    let server = certificates.server();
    for domain in [None, Some("members.example".to_owned())] {
        let tls = Tls { domain, ..certificates.client() };
        let mut coordinator = EtcdCoordinator::connect(over(&server, tls)).unwrap();
        begin(&mut coordinator, 2, 10).unwrap();
        let mut scratch = Box::new(AcquireScratch::new());
        let worker = WorkerId::from_raw(1);
        coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch).unwrap();
        assert_eq!(coordinator.get_run_progress(TENANT, RUN).unwrap().active, 2);
    }

    let other_ca = Tls { ca: Certificates::new().ca.into_bytes(), ..certificates.client() };
    let said = refused(over(&server, other_ca));
    assert!(said.contains("invalid peer certificate"), "{said}");

    let other_name = Tls { domain: Some("elsewhere.example".into()), ..certificates.client() };
    let said = refused(over(&server, other_name));
    assert!(said.contains("not valid for name"), "{said}");

    let without = Tls { identity: None, ..certificates.client() };
    let stranger = Tls { ca: certificates.ca.clone().into_bytes(), ..Certificates::new().client() };
    let garbage = Tls { ca: b"-----BEGIN".to_vec(), identity: None, domain: None };
    for tls in [without, stranger, garbage] {
        let said = refused(over(&server, tls));
        assert!(said.contains("tls.identity"), "{said}");
    }
}
