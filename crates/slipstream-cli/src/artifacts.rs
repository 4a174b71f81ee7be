//! Artifacts of a fleet: `export`, `import`, `pointer` and `prune`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use indicatif::{HumanDuration, ProgressBar, ProgressFinish, ProgressStyle};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::{ClientConfigKey, ObjectStore};
use slipstream::artifact::{self, Compression, ExportManifest};
use slipstream::transport::{
    ArtifactTransport, ExportRound, PublishOutcome, RoundError, RoundOutcome, import_remote,
    run_export_round,
};
use slipstream::{
    AppendLogSnapshot, Ended, ExportError, ExportLease, FoldConfig, FoldHandle, KvError, KvStore,
    KvWatcher, LeaseRecord, Restore, WatchScope, fold_control, watch_applied,
};
use slipstream_object_store::ObjectStoreTransport;

use crate::args::{Args, Remote};
use crate::failure::Failure;
use crate::{FOLD, follow, position, print};

/// Where an artifact is made before it is uploaded, in the directory of the fold.
const ARTIFACT: &str = "artifact";

/// How long an interrupted upload may take to remove what it has sent.
const CLEAN_UP: Duration = Duration::from_secs(10);

/// Artifacts of one name in a store.
pub(crate) struct Place {
    transport: ObjectStoreTransport,
    url: String,
    name: String,
    /// A clone is in each transfer that goes on.
    transfers: Arc<()>,
}

impl Place {
    pub(crate) fn open(args: &Args, remote: &Remote) -> Result<Self, Failure> {
        let mut place = Self::at(args, &remote.store, remote.artifact.as_deref())?;
        if let Some(limit) = remote.bytes_per_second {
            place.transport = place.transport.with_bandwidth_limit(limit);
        }
        Ok(place)
    }

    fn at(args: &Args, url: &str, name: Option<&str>) -> Result<Self, Failure> {
        if let Some(scheme) = scheme_before_credentials(url) {
            let why = "it names credentials, which are read from the environment".to_owned();
            return Err(Failure::Url { url: format!("{scheme}://…"), why });
        }
        let wrong = |why: String| Failure::Url { url: url.to_owned(), why };
        let (store, prefix) = open(url).map_err(wrong)?;
        let transport = ObjectStoreTransport::new(store, &prefix);
        let name = name.unwrap_or(&args.bucket).to_owned();
        Ok(Self { transport, url: url.to_owned(), name, transfers: Arc::new(()) })
    }

    pub(crate) fn with(mut self, zstd: bool, non_atomic: bool) -> Self {
        if zstd {
            self.transport = self.transport.with_compression(Compression::Zstd);
        }
        if non_atomic {
            self.transport = self.transport.with_non_atomic_pointer_fallback();
        }
        self
    }

    /// Shows how far a payload is, on a terminal.
    fn shown(&self, doing: &'static str) -> ObjectStoreTransport {
        let bar =
            ProgressBar::no_length().with_message(doing).with_finish(ProgressFinish::AndClear);
        let (transport, transfer) = (self.transport.clone(), Arc::clone(&self.transfers));
        transport.with_progress(Arc::new(move |done, of| {
            let _is_going_on = &transfer;
            if let Some(of) = of {
                bar.set_length(of);
                bar.set_style(style(
                    "{msg} [{bar:40}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
                ));
            } else {
                bar.set_style(style("{msg} {bytes} {bytes_per_sec}"));
            }
            bar.set_position(done);
            if of == Some(done) {
                bar.finish_and_clear();
            }
        }))
    }

    /// Waits for an upload that was given up to remove its parts: a store charges for those.
    async fn until_idle(&self) {
        let idle = async {
            while Arc::strong_count(&self.transfers) > 1 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(CLEAN_UP, idle).await.is_err() {
            follow::say(&format!("{}: parts of the upload may be left there", self.url));
        }
    }

    fn restoring(&self, dir: &Path) -> Restore {
        let transport = Arc::new(self.shown("restoring"));
        Restore { transport, key: self.name.clone(), dir: dir.to_owned() }
    }

    fn failed<E: Into<slipstream::transport::TransportError>>(
        &self,
    ) -> impl FnOnce(E) -> Failure + use<E> {
        let url = self.url.clone();
        move |source| Failure::Transport { url, source: source.into() }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a valid template")
}

/// The scheme of a URL that has more than a name before its path: it is not to be printed.
fn scheme_before_credentials(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let bucket = rest.split('/').next().unwrap_or_default();
    bucket.contains([':', '@']).then_some(scheme)
}

/// The store of a URL, and the prefix in it.
fn open(url: &str) -> Result<(Arc<dyn ObjectStore>, String), String> {
    let said = |error: object_store::Error| error.to_string();
    let Some((scheme, rest)) = url.split_once("://") else {
        let store = LocalFileSystem::new_with_prefix(url);
        let what = |error| format!("{}; make the directory first, or give a URL", said(error));
        return Ok((Arc::new(store.map_err(what)?), String::new()));
    };
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    // A store at an address without TLS is one that somebody named so.
    let store: Arc<dyn ObjectStore> = match scheme {
        "s3" => {
            let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
            Arc::new(builder.with_allow_http(true).build().map_err(said)?)
        }
        "gs" => {
            let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
            let allow_http = GoogleConfigKey::Client(ClientConfigKey::AllowHttp);
            Arc::new(builder.with_config(allow_http, "true").build().map_err(said)?)
        }
        "az" => {
            let builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket);
            Arc::new(builder.with_allow_http(true).build().map_err(said)?)
        }
        _ => return Err("no store that is known; s3://, gs://, az:// or a directory".into()),
    };
    Ok((store, prefix.trim_end_matches('/').to_owned()))
}

/// Where `fold` is restored from.
pub(crate) fn restore(
    args: &Args,
    url: &str,
    name: Option<&str>,
    dir: &Path,
) -> Result<Restore, Failure> {
    Ok(Place::at(args, url, name)?.restoring(dir))
}

/// The rounds of a fleet that an export takes part in.
pub(crate) struct Round {
    lease: ExportLease,
    bucket: String,
    ttl: Duration,
}

impl Round {
    /// The lease is the key of the artifact's name.
    pub(crate) fn new(
        leases: &dyn KvStore,
        bucket: &str,
        place: &Place,
        ttl: Duration,
    ) -> Result<Self, Failure> {
        let host = rustix::system::uname();
        let holder = format!("{}:{}", host.nodename().to_string_lossy(), std::process::id());
        let lease = ExportLease::new(leases, &place.name, &holder);
        let lease = lease.ok_or(KvError::Unsupported("writing"))?;
        Ok(Self { lease, bucket: bucket.to_owned(), ttl })
    }

    fn failed(&self, source: RoundError) -> Failure {
        Failure::Lease { bucket: self.bucket.clone(), source }
    }

    /// Who has the lease, and for how long.
    async fn holder(&self) -> Result<String, Failure> {
        let record =
            self.lease.record().await.map_err(|error| self.failed(RoundError::Lease(error)))?;
        let Some(LeaseRecord { holder_id, expires_at_unix, .. }) = record else {
            return Ok("somebody has the lease".to_owned());
        };
        let ends_at = SystemTime::UNIX_EPOCH + Duration::from_secs(expires_at_unix);
        let left = ends_at.duration_since(SystemTime::now()).unwrap_or_default();
        Ok(format!("{holder_id} has the lease for another {} s", left.as_secs()))
    }
}

/// A fold that is exported, and where to.
struct Exporter<'a> {
    place: &'a Place,
    watcher: &'a dyn KvWatcher,
    fold: &'a FoldHandle,
    /// Where the artifact is made.
    made: PathBuf,
}

/// Brings the directory up to date, and publishes it.
pub(crate) async fn export(
    place: Place,
    watcher: Arc<dyn KvWatcher>,
    dir: &Path,
    scope: WatchScope,
    round: Option<Round>,
) -> Result<ExitCode, Failure> {
    let (path, _, fold) = follow::load(dir)?;
    let (handle, control) = fold_control();
    let restore = Some(place.restoring(dir));
    let config = FoldConfig { scope, restore, ..FoldConfig::new(Arc::clone(&watcher)) };
    let folding = tokio::spawn(watch_applied(config, fold, (), control));
    let made = dir.join(ARTIFACT);
    let exporter =
        Exporter { place: &place, watcher: &*watcher, fold: &handle, made: made.clone() };
    let ended = tokio::select! {
        ended = exporter.run(round.as_ref()) => ended,
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    };
    handle.shutdown();
    // Its tables are those of the fold.
    let removed = artifact::remove(&made).map_err(Failure::path(&made));
    let Ended { result, .. } = folding.await.expect("the fold does not panic");
    place.until_idle().await;
    // Why the fold has ended is why it was not exported.
    result.map_err(|source| Failure::Fold { path, source })?;
    let ended = ended?;
    removed?;
    report(&place, ended, round).await
}

impl Exporter<'_> {
    async fn run(&self, round: Option<&Round>) -> Result<RoundOutcome, Failure> {
        follow::announce(self.fold, &self.place.url, |_| true).await;
        let transport = self.place.shown("uploading");
        match round {
            Some(round) => self.take_part(round, &transport).await,
            None => self.publish(&transport).await,
        }
    }

    async fn take_part(
        &self,
        round: &Round,
        transport: &dyn ArtifactTransport,
    ) -> Result<RoundOutcome, Failure> {
        let (fold, watcher, key) = (self.fold, self.watcher, &*self.place.name);
        let (lease, ttl, artifact) = (&round.lease, round.ttl, self.made.clone());
        let of = ExportRound { fold, watcher, lease, ttl, transport, key, artifact };
        run_export_round(&of).await.map_err(|error| match error {
            RoundError::Leftover(source) => Failure::path(&self.made)(source),
            RoundError::Export(source) => self.failed(source),
            RoundError::Transport(source) => self.place.failed()(source),
            error => round.failed(error),
        })
    }

    async fn publish(&self, transport: &dyn ArtifactTransport) -> Result<RoundOutcome, Failure> {
        // What an export that was killed has left.
        artifact::remove(&self.made).map_err(Failure::path(&self.made))?;
        let exported = self.fold.export(self.made.clone()).await;
        exported.map_err(|source| self.failed(source))?;
        let uploaded = transport.upload(&self.place.name, &self.made, self.watcher).await;
        Ok(match uploaded.map_err(self.place.failed())? {
            (manifest, PublishOutcome::Published) => RoundOutcome::Published(manifest),
            (manifest, PublishOutcome::AlreadyThere) => RoundOutcome::AlreadyThere(manifest),
            (_, outcome) => RoundOutcome::GivenUp(outcome),
        })
    }

    fn failed(&self, source: ExportError) -> Failure {
        Failure::Export { path: self.made.clone(), source }
    }
}

/// Says how an export ended.
async fn report(
    place: &Place,
    ended: RoundOutcome,
    round: Option<Round>,
) -> Result<ExitCode, Failure> {
    let in_round = round.is_some();
    let (said, hint, is_done) = match (ended, round) {
        (RoundOutcome::Published(manifest) | RoundOutcome::AlreadyThere(manifest), _) => {
            print(&format!("published {}\n", figures(&manifest)))?;
            return Ok(ExitCode::SUCCESS);
        }
        (RoundOutcome::NotElected, Some(round)) => ("lease-held", round.holder().await?, true),
        (RoundOutcome::NotElected, None) => unreachable!("nobody is elected without a lease"),
        (RoundOutcome::GivenUp(outcome), _) => {
            let (said, hint) = why_given_up(outcome);
            let is_done = in_round && outcome == PublishOutcome::SupersededByNewer;
            (said, hint.to_owned(), is_done)
        }
    };
    print(&format!("not-published {said}\n"))?;
    follow::say(&format!("{}: not published: {hint}", place.url));
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// In a word, and for somebody who wonders what to do.
fn why_given_up(outcome: PublishOutcome) -> (&'static str, &'static str) {
    match outcome {
        PublishOutcome::Published | PublishOutcome::AlreadyThere => {
            unreachable!("it was not given up")
        }
        PublishOutcome::SupersededByNewer => {
            ("superseded-by-newer", "there is a newer artifact, so that nothing has to be done")
        }
        PublishOutcome::OfNoUse => (
            "the-bucket-has-gone-on",
            "the bucket could not be read on from it any more; run it again, and more often",
        ),
        PublishOutcome::LessComplete => (
            "less-complete",
            "the newest artifact lacks nothing, and this fold may lack evicted keys; export one that has \
             them, or from a new directory, which is restored first",
        ),
    }
}

/// Makes a fold of the newest artifact.
pub(crate) async fn import(
    place: Place,
    watcher: Arc<dyn KvWatcher>,
    dir: &Path,
    scope: WatchScope,
) -> Result<ExitCode, Failure> {
    std::fs::create_dir_all(dir).map_err(Failure::path(dir))?;
    let (transport, path) = (place.shown("downloading"), dir.join(FOLD));
    let imported =
        import_remote::<AppendLogSnapshot>(&transport, &place.name, &*watcher, &path, &scope);
    match imported.await.map_err(place.failed())? {
        Some(manifest) => {
            print(&format!("imported {}\n", figures(&manifest)))?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            let (url, name) = (&place.url, &place.name);
            let what =
                "no artifact that the bucket can be read on from; `slipstream fold` lists it";
            eprintln!("slipstream: {url}: {name:?} has {what}");
            Ok(ExitCode::from(1))
        }
    }
}

pub(crate) async fn pointer(place: Place) -> Result<ExitCode, Failure> {
    let pointer = place.transport.pointer(&place.name).await.map_err(place.failed())?;
    let Some(pointer) = pointer else {
        eprintln!("slipstream: {}: {:?} has no artifact", place.url, place.name);
        return Ok(ExitCode::from(1));
    };
    let now = SystemTime::now();
    let age = now.duration_since(pointer.published_at).unwrap_or_default();
    let manifest = &pointer.manifest;
    let mut text = format!("{} age={}", figures(manifest), words(age));
    if let Some(at_ms) = manifest.cursor_time_ms {
        let written_at = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
        let behind = now.duration_since(written_at).unwrap_or_default();
        text += &format!(" behind={}", words(behind));
    }
    let bucket = manifest.bucket.as_deref().unwrap_or("?");
    let prefixes = manifest.prefixes.join(",");
    text += &format!(" bucket={bucket} backend={} prefixes={prefixes:?}\n", manifest.backend);
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn prune(place: Place, grace: Duration) -> Result<(), Failure> {
    let deleted = place.transport.prune(&place.name, grace).await.map_err(place.failed())?;
    print(&format!("deleted={deleted}\n"))
}

fn figures(manifest: &ExportManifest) -> String {
    let incomplete = manifest.log_cursor().is_ok_and(|cursor| cursor.incomplete);
    let may_lack = if incomplete { " may-lack-evicted-keys" } else { "" };
    let (at, bytes, epoch) = (position(&manifest.cursor), manifest.total_size(), manifest.epoch);
    format!("{at} bytes={bytes} epoch={epoch}{may_lack}")
}

/// A time as one word.
fn words(time: Duration) -> String {
    HumanDuration(time).to_string().replace(' ', "-")
}
