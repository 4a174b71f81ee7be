//! A server that takes signed credentials only, and which credentials count.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use nkeys::KeyPair;
use slipstream::{Connection, KvError, NatsConnection, NatsConnectionConfig, StoreConfig};

use crate::cli::{Cli, text};
use crate::server::NatsServer;

/// A claim about `subject`, signed by `issuer`.
fn signed(issuer: &KeyPair, subject: &KeyPair, claims: &str) -> String {
    let (iss, sub) = (issuer.public_key(), subject.public_key());
    let body =
        format!(r#"{{"jti":"x","iat":1,"iss":"{iss}","name":"x","sub":"{sub}","nats":{claims}}}"#);
    let [head, body] =
        [r#"{"typ":"JWT","alg":"ed25519-nkey"}"#, &body].map(|part| URL_SAFE_NO_PAD.encode(part));
    let text = format!("{head}.{body}");
    let signature = URL_SAFE_NO_PAD.encode(issuer.sign(text.as_bytes()).unwrap());
    format!("{text}.{signature}")
}

/// The text of a `.creds` file.
fn credentials(account: &KeyPair) -> String {
    let user = KeyPair::new_user();
    let claims = r#"{"subs":-1,"data":-1,"payload":-1,"type":"user","version":2}"#;
    let (jwt, seed) = (signed(account, &user, claims), user.seed().unwrap());
    format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}

/// A server with one account, and credentials of it.
fn server() -> (NatsServer, String) {
    let (operator, system, account) =
        (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_account());
    let limits = |storage: i32| {
        format!(
            r#"{{"limits":{{"subs":-1,"data":-1,"payload":-1,"imports":-1,"exports":-1,
            "wildcards":true,"conn":-1,"leaf":-1,"mem_storage":{storage},
            "disk_storage":{storage},"streams":{storage},"consumer":{storage}}},
            "type":"account","version":2}}"#
        )
    };
    let config = format!(
        "operator: {}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{ {}: {}, {}: {} }}\n",
        signed(&operator, &operator, r#"{"type":"operator","version":2}"#),
        system.public_key(),
        system.public_key(),
        signed(&operator, &system, &limits(0)),
        account.public_key(),
        signed(&operator, &account, &limits(-1)),
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server.conf");
    fs::write(&file, config).unwrap();
    (NatsServer::start_with(&["-c", text(&file)]), credentials(&account))
}

#[test]
fn a_file_of_credentials_opens_the_server() {
    let (server, right) = server();
    let dir = tempfile::tempdir().unwrap();
    let (good, bad) = (dir.path().join("good.creds"), dir.path().join("bad.creds"));
    fs::write(&good, right).unwrap();
    fs::write(&bad, credentials(&KeyPair::new_account())).unwrap();
    let cli = Cli { server: &server };
    assert_eq!(cli.ok(&["--creds", text(&good), "put", "k", "v"]), "1\n");
    let mut named = cli.command(&["get", "k"]);
    assert_eq!(named.env("NATS_CREDS", &good).output().unwrap().stdout, b"v\n");
    for args in [&["get", "k"][..], &["--creds", text(&bad), "get", "k"]] {
        let (code, error) = cli.fails(args);
        assert!(code == Some(2) && error.starts_with("slipstream: refused by"), "{error}");
        assert!(error.contains("--creds") && error.lines().count() == 1, "{error}");
    }
}

#[tokio::test]
async fn credentials_given_count_before_those_of_the_file_and_these_before_the_url() {
    let (server, right) = server();
    let wrong = credentials(&KeyPair::new_account());
    let dir = tempfile::tempdir().unwrap();
    let (good, bad) = (dir.path().join("good.creds"), dir.path().join("bad.creds"));
    fs::write(&good, &right).unwrap();
    fs::write(&bad, &wrong).unwrap();
    let [right, wrong] = [right, wrong].map(|text| STANDARD.encode(text));
    let user = server.url().replace("nats://", "nats://me:secret@");
    let connect = async |creds: Option<&String>, creds_file, url: &String| {
        let creds = creds.cloned();
        let config =
            NatsConnectionConfig { creds, creds_file, ..NatsConnectionConfig::new(url.as_str()) };
        let connection = NatsConnection::new(config);
        connection.connect().await?;
        connection.store("b", &StoreConfig::default()).await.map(|_| ())
    };
    let plain = server.url();
    let refused = |outcome: Result<(), KvError>| {
        assert!(matches!(outcome, Err(KvError::Unauthorized(_))), "{outcome:?}");
    };
    assert_eq!(connect(Some(&right), None, &plain).await, Ok(()));
    assert_eq!(connect(Some(&right), Some(bad.clone()), &user).await, Ok(()));
    refused(connect(Some(&wrong), Some(good.clone()), &plain).await);
    assert_eq!(connect(None, Some(good.clone()), &user).await, Ok(()));
    refused(connect(None, Some(bad), &plain).await);
    refused(connect(None, None, &user).await);
}
