//! `slipstream`: look at a bucket, and keep a durable copy of it.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: 0 done, 1 the key
//! has no value, 2 something went wrong.

mod args;

use std::io::{Read, Write};
use std::ops::Bound;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use slipstream::{
    AppendLogSnapshot, Connection, FoldConfig, FoldError, KvError, KvStore, KvUpdate,
    NatsConnection, NatsConnectionConfig, Snapshot, SnapshotError, SnapshotStore, StoreConfig,
    WatchCursor, WatchScope, fold_control, watch_applied,
};

use args::{Args, Command};

/// The fold's file in its directory.
const FOLD: &str = "fold.log";

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Bucket(#[from] KvError),
    #[error("{0}")]
    Fold(#[from] FoldError),
    #[error("the directory's fold: {0}")]
    Store(#[from] SnapshotError),
    #[error("{0} holds no fold; `slipstream fold` makes one")]
    NoFold(String),
    #[error("{doing}: {source}")]
    Io { doing: &'static str, source: std::io::Error },
}

fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> Failure {
    move |source| Failure::Io { doing, source }
}

fn main() -> ExitCode {
    let args = Args::parse();
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
        Command::Watch { prefix } => watch(&args, prefix).await?,
        Command::Fold { dir, prefixes, once } => fold(&args, dir, prefixes, *once).await?,
        Command::Range { dir, prefix } => range(dir, prefix)?,
        Command::Status { dir } => status(dir)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn connect(args: &Args) -> Result<NatsConnection, Failure> {
    let mut config = NatsConnectionConfig::new(args.server.as_str());
    config.creds_file.clone_from(&args.creds);
    let connection = NatsConnection::new(config);
    connection.connect().await?;
    Ok(connection)
}

async fn open(args: &Args) -> Result<Arc<dyn KvStore>, Failure> {
    Ok(connect(args).await?.open(&args.bucket).await?)
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

async fn watch(args: &Args, prefix: &str) -> Result<(), Failure> {
    let store = open(args).await?;
    let watcher = store.watcher().ok_or(KvError::Unsupported("watching"))?;
    let scope = WatchScope::Prefix(prefix.to_owned());
    let mut watch = watcher.watch(&scope, &WatchCursor::none()).await?;
    let mut updates = Vec::new();
    loop {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => return interrupted.map_err(io("waiting")),
            event = watch.next(&mut updates, 100) => event?,
        };
        let mut text = String::new();
        for update in updates.drain(..) {
            let revision = update.version().as_u64().unwrap_or_default();
            let key = update.key().as_str();
            text += &match &update {
                KvUpdate::Put(entry) => {
                    format!("{revision}\tput\t{key}\t{}\n", String::from_utf8_lossy(&entry.value))
                }
                KvUpdate::Delete { .. } => format!("{revision}\tdelete\t{key}\n"),
                KvUpdate::Purge { .. } => format!("{revision}\tpurge\t{key}\n"),
            };
        }
        print(&text)?;
    }
}

async fn fold(args: &Args, dir: &Path, prefixes: &[String], once: bool) -> Result<(), Failure> {
    let store = open(args).await?;
    std::fs::create_dir_all(dir).map_err(io("making the directory"))?;
    let (cursor, fold) = AppendLogSnapshot::load(&dir.join(FOLD))?;
    print(&format!("loaded {}\n", position(&cursor)))?;
    let watcher = store.watcher().ok_or(KvError::Unsupported("watching"))?;
    let mut config = FoldConfig::new(watcher, Some(store.reader()));
    if !prefixes.is_empty() {
        config.scope = WatchScope::Prefixes(prefixes.to_vec());
    }
    let (handle, control) = fold_control();
    let folding = tokio::spawn(watch_applied(config, fold, (), control));
    let (steer, status) = (handle.clone(), handle.status());
    let steering = tokio::spawn(async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = announce(steer.clone(), once) => {}
        }
        steer.shutdown();
    });
    let ended = folding.await.expect("the fold does not panic");
    steering.abort();
    ended.result?;
    let status = status.borrow().clone();
    print(&format!(
        "stopped {} updates={} repairs={} comparisons={}\n",
        position(&ended.cursor),
        status.updates,
        status.repairs,
        status.comparisons
    ))
}

/// Says when the fold has caught up, each time; returns after the first if that is all.
async fn announce(handle: slipstream::FoldHandle, once: bool) {
    let mut status = handle.status();
    loop {
        let text = match status.wait_for(|status| status.synced).await {
            Ok(now) => format!("synced revision={} updates={}\n", now.applied, now.updates),
            Err(_) => return,
        };
        if print(&text).is_err() || once {
            return;
        }
        // A repair takes it back.
        if status.wait_for(|status| !status.synced).await.is_err() {
            return;
        }
    }
}

/// What the directory holds, running fold or not.
fn load(dir: &Path) -> Result<Snapshot, Failure> {
    let file = dir.join(FOLD);
    if !file.is_file() {
        return Err(Failure::NoFold(dir.display().to_string()));
    }
    Ok(Snapshot::load(&file)?)
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
    print(&format!("{} keys={}\n", position(&fold.cursor), fold.entries.len()))
}

fn position(cursor: &WatchCursor) -> String {
    format!("revision={}", cursor.revision().unwrap_or_default())
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(io("writing"))
}
