//! What goes wrong, in one line that says what to do.

use std::path::{Path, PathBuf};

use slipstream::artifact::{ArtifactError, ArtifactInvalid};
use slipstream::transport::{RoundError, TransportError};
use slipstream::{CursorExpiry, ExportError, FoldError, KvError, SnapshotError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}{hint}", hint = bucket_hint(.0))]
    Bucket(#[from] KvError),
    #[error("{path}: {source}{hint}", path = .path.display(), hint = fold_hint(.source))]
    Fold { path: PathBuf, source: FoldError },
    #[error("{path}: {source}{hint}", path = .path.display(), hint = store_hint(.source))]
    Store { path: PathBuf, source: SnapshotError },
    #[error("{url}: {why}", why = .why.trim())]
    Url { url: String, why: String },
    #[error("{url}: {source}{hint}", hint = transport_hint(.source))]
    Transport { url: String, source: TransportError },
    #[error("{path}: {source}{hint}", path = .path.display(), hint = export_hint(.source))]
    Export { path: PathBuf, source: ExportError },
    #[error("{bucket}: {source}{hint}", hint = round_hint(.source))]
    Lease { bucket: String, source: RoundError },
    #[error("interrupted; nothing was published")]
    Interrupted,
    #[error("{0} holds no fold; `slipstream fold` makes one")]
    NoFold(String),
    #[error("{path}: {source}", path = .path.display())]
    Path { path: PathBuf, source: std::io::Error },
    #[error("{doing}: {source}")]
    Io { doing: &'static str, source: std::io::Error },
}

impl Failure {
    pub(crate) fn path(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        |source| Self::Path { path: path.to_owned(), source }
    }

    pub(crate) fn store(path: &Path) -> impl FnOnce(SnapshotError) -> Self {
        |source| Self::Store { path: path.to_owned(), source }
    }
}

pub(crate) fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> Failure {
    move |source| Failure::Io { doing, source }
}

fn bucket_hint(error: &KvError) -> &'static str {
    match error {
        KvError::BucketNotFound { .. } => {
            "; `slipstream put` makes it, and --bucket names another one"
        }
        KvError::Connect(_) => "; --server says where the servers are",
        KvError::Unauthorized(_) => "; see --creds, or put `user:password@` into --server",
        _ => "",
    }
}

fn fold_hint(error: &FoldError) -> &'static str {
    match error {
        FoldError::Watch(KvError::CursorExpired(CursorExpiry::OtherScope)) => {
            "; give the --prefix that it was made with, or another directory"
        }
        FoldError::Watch(error) => bucket_hint(error),
        FoldError::Store { source, .. } | FoldError::Read(source) => store_hint(source),
        _ => "",
    }
}

fn store_hint(error: &SnapshotError) -> &'static str {
    match error {
        SnapshotError::Corrupted(_) => {
            "; it is a copy: delete it, and `slipstream fold` makes it again"
        }
        SnapshotError::InvalidFormat(_) => "; it was left as it is, use another directory",
        SnapshotError::InUse => "; one `slipstream fold` at a time",
        _ => "",
    }
}

fn transport_hint(error: &TransportError) -> &'static str {
    match error {
        TransportError::NotAtomic => {
            "; if nobody else publishes there, --non-atomic replaces the pointer anyway"
        }
        TransportError::Artifact(error) => artifact_hint(error),
        TransportError::Log(error) => bucket_hint(error),
        _ => "",
    }
}

fn round_hint(error: &RoundError) -> &'static str {
    match error {
        RoundError::Lease(error) => bucket_hint(error),
        _ => "",
    }
}

fn export_hint(error: &ExportError) -> &'static str {
    match error {
        ExportError::Artifact(error) => artifact_hint(error),
        _ => "",
    }
}

fn artifact_hint(error: &ArtifactError) -> &'static str {
    match error {
        ArtifactError::Exists => "; it was left as it is",
        ArtifactError::Invalid(ArtifactInvalid::Scope) => {
            "; give the --prefix that it was made with"
        }
        ArtifactError::Invalid(ArtifactInvalid::Bucket { .. }) => {
            "; --bucket names the bucket, and --artifact other artifacts of the store"
        }
        ArtifactError::Invalid(_) => "; `slipstream export` publishes a new one",
        _ => "",
    }
}
