//! Git repositories as a source: every object that is reachable, once.
//!
//! A run is planned first: what is reachable from the repository's references is walked, and what is
//! to be read is written to a manifest, each object with the path and the commit that brought it in.
//! Rows of the manifest are the keys of the run; they are in the order in which packs are read
//! quickest.
//!
//! ```
//! use std::process::Command;
//!
//! use gossip_contracts::connector::{Connector, NewRun, Page, RunName};
//! use gossip_contracts::coordination::CursorUpdate;
//! use gossip_contracts::identity::RunId;
//! use gossip_git::{GitOptions, GitSource};
//!
//! # let place = tempfile::tempdir()?;
//! let (repository, manifests) = (place.path().join("repository"), place.path().join("state"));
//! assert!(Command::new("git").args(["init", "-q"]).arg(&repository).status()?.success());
//! let source = GitSource::open(&repository, GitOptions::default(), manifests)?;
//! source.begin(NewRun {
//!     run: RunName { number: RunId::from_raw(1), nonce: [1; 16] },
//!     last: None,
//!     settled: &|_| Ok(()),
//!     path_class: &|_| Vec::new(),
//!     is_left_out: &|_| false,
//! })?;
//! let mut page = Page::new();
//! source.list(source.key_range(), CursorUpdate::initial(), 100, &mut page)?;
//! assert!(page.is_last() && page.iter().count() == 0, "nothing was committed yet");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is a secret, and which paths rules tell apart, is for others to say.

#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod manifest;
mod objects;
mod plan;
mod repository;
mod select;
mod source;

pub use manifest::{Manifest, ManifestError, RowKind};
pub use repository::OpenError;
pub use select::Selection;
pub use source::{GitOptions, GitSource, Origin, object_of};
