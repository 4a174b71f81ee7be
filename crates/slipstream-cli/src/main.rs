//! `slipstream`: look at a bucket, and keep a durable copy of it.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: 0 done, 1 the key
//! has no value, the store no artifact or an export was not published, 2 something went wrong. An
//! export that leaves the round to another node is done.

mod args;
mod artifacts;
mod failure;
mod follow;

use std::io::{Read, Write};
use std::ops::Bound;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use slipstream::{
    ClientCert, Connection, FoldConfig, KvError, KvStore, KvWatcher, LogCursor, NatsConnection,
    NatsConnectionConfig, Snapshot, StoreConfig, WatchCursor,
};

use args::{Args, Command};
use artifacts::{Place, Round};
use failure::{Failure, io};

/// The fold's file in its directory.
const FOLD: &str = "fold.log";

fn main() -> ExitCode {
    let args = Args::parse();
    // Several could be linked; object stores have none of their own.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if args.verbose {
        let logs = tracing_subscriber::fmt().with_writer(std::io::stderr);
        logs.with_max_level(tracing::Level::DEBUG).init();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = runtime.map_err(io("starting")).and_then(|runtime| runtime.block_on(run(args)));
    match outcome {
        Ok(code) => code,
        // Whoever reads our output has had enough.
        Err(Failure::Io { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::from(2)
        }
        Err(failure) => {
            eprintln!("slipstream: {failure}");
            ExitCode::from(2)
        }
    }
}

async fn run(args: Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Put { key, value } => put(&args, key, value).await?,
        Command::Get { key } => return get(&args, key).await,
        Command::Delete { key } => delete(&args, key).await?,
        Command::Keys { prefix } => keys(&args, prefix).await?,
        Command::Buckets => print_lines(connect(&args).await?.buckets().await?)?,
        Command::Watch { prefix } => follow::watch(open(&args).await?, prefix).await?,
        Command::Fold { dir, prefixes, once, drop_evicted, store, artifact } => {
            let watcher = watcher(&args).await?;
            let restore = match store {
                Some(url) if !drop_evicted => {
                    Some(artifacts::restore(&args, url, artifact.as_deref(), dir)?)
                }
                _ => None,
            };
            let (scope, keep_evicted) = (follow::scope(prefixes), !drop_evicted);
            let config = FoldConfig { scope, keep_evicted, restore, ..FoldConfig::new(watcher) };
            follow::fold(config, dir, *once, store.as_deref().unwrap_or_default()).await?;
        }
        Command::Export {
            dir,
            prefixes,
            remote,
            zstd,
            non_atomic,
            lease_bucket,
            lease_seconds,
        } => {
            let place = Place::open(&args, remote)?.with(*zstd, *non_atomic);
            let (watcher, scope) = (watcher(&args).await?, follow::scope(prefixes));
            let round = match lease_bucket {
                Some(bucket) => {
                    let config = StoreConfig::default();
                    let leases = connect(&args).await?.store(bucket, &config).await?;
                    let ttl = Duration::from_secs(*lease_seconds);
                    Some(Round::new(&*leases, bucket, &place, ttl)?)
                }
                None => None,
            };
            return artifacts::export(place, watcher, dir, scope, round).await;
        }
        Command::Import { dir, prefixes, remote } => {
            let place = Place::open(&args, remote)?;
            let (watcher, scope) = (watcher(&args).await?, follow::scope(prefixes));
            return artifacts::import(place, watcher, dir, scope).await;
        }
        Command::Pointer { remote } => {
            return artifacts::pointer(Place::open(&args, remote)?).await;
        }
        Command::Prune { remote, grace } => {
            artifacts::prune(Place::open(&args, remote)?, Duration::from_secs(*grace)).await?;
        }
        Command::Range { dir, prefix } => range(dir, prefix)?,
        Command::Status { dir } => status(dir)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn connect(args: &Args) -> Result<NatsConnection, Failure> {
    let mut config = NatsConnectionConfig::new(args.server.as_str());
    config.creds_file.clone_from(&args.creds);
    config.ca_file.clone_from(&args.ca);
    let cert = args.cert.clone().zip(args.key_file.clone());
    config.client_cert = cert.map(|(cert_file, key_file)| ClientCert { cert_file, key_file });
    let connection = NatsConnection::new(config);
    connection.connect().await?;
    Ok(connection)
}

async fn open(args: &Args) -> Result<Arc<dyn KvStore>, Failure> {
    Ok(connect(args).await?.open(&args.bucket).await?)
}

async fn watcher(args: &Args) -> Result<Arc<dyn KvWatcher>, Failure> {
    Ok(open(args).await?.watcher().ok_or(KvError::Unsupported("watching"))?)
}

async fn put(args: &Args, key: &str, value: &str) -> Result<(), Failure> {
    let mut bytes = value.as_bytes().to_vec();
    if value == "-" {
        bytes.clear();
        std::io::stdin().read_to_end(&mut bytes).map_err(io("reading standard input"))?;
    }
    let store = connect(args).await?.store(&args.bucket, &StoreConfig::default()).await?;
    let writer = store.writer().ok_or(KvError::Unsupported("writing"))?;
    let version = writer.put(key, bytes.into()).await?;
    print(&format!("{}\n", version.as_u64().unwrap_or_default()))
}

async fn get(args: &Args, key: &str) -> Result<ExitCode, Failure> {
    let Some(entry) = open(args).await?.reader().get(key).await? else {
        return Ok(ExitCode::from(1));
    };
    let mut out = std::io::stdout().lock();
    let written = out.write_all(&entry.value).and_then(|()| out.write_all(b"\n"));
    written.map_err(io("writing"))?;
    Ok(ExitCode::SUCCESS)
}

async fn delete(args: &Args, key: &str) -> Result<(), Failure> {
    let store = open(args).await?;
    store.writer().ok_or(KvError::Unsupported("writing"))?.delete(key).await?;
    Ok(())
}

async fn keys(args: &Args, prefix: &str) -> Result<(), Failure> {
    let mut keys = open(args).await?.reader().keys(prefix).await?;
    keys.sort_unstable();
    print_lines(keys.iter().map(|key| key.as_str().to_owned()))
}

fn print_lines(lines: impl IntoIterator<Item = String>) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in lines {
        writeln!(out, "{line}").map_err(io("writing"))?;
    }
    out.flush().map_err(io("writing"))
}

/// What the directory holds, running fold or not.
fn load(dir: &Path) -> Result<Snapshot, Failure> {
    let file = dir.join(FOLD);
    match std::fs::metadata(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Failure::NoFold(dir.display().to_string()));
        }
        found => found.map_err(Failure::path(&file))?,
    };
    Snapshot::load(&file).map_err(Failure::store(&file))
}

fn range(dir: &Path, prefix: &str) -> Result<(), Failure> {
    let fold = load(dir)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let from = (Bound::Included(prefix), Bound::Unbounded);
    for (key, entry) in fold.entries.range::<str, _>(from) {
        if !key.as_str().starts_with(prefix) {
            break;
        }
        let value = String::from_utf8_lossy(&entry.value);
        writeln!(out, "{}\t{value}", key.as_str()).map_err(io("writing"))?;
    }
    out.flush().map_err(io("writing"))
}

fn status(dir: &Path) -> Result<(), Failure> {
    let fold = load(dir)?;
    let in_repair = LogCursor::decode(&fold.cursor).is_ok_and(|cursor| cursor.in_repair);
    let state = if in_repair { " in-repair" } else { "" };
    print(&format!("{} keys={}{state}\n", position(&fold.cursor), fold.entries.len()))
}

fn position(cursor: &WatchCursor) -> String {
    format!("revision={}", cursor.revision().unwrap_or_default())
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(io("writing"))
}
