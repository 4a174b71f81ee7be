//! Sources of things to scan.
//!
//! - [`fs`]: a directory tree, or one file.
//! - [`binary`]: another source, with what is in its binary content.
//! - [`bytes`]: what came through a pipe.
//! - [`many`]: several sources as one.
//! - [`content`]: what the beginning of an item shows that it is.
//!
//! Each source implements [`Connector`](gossip_contracts::connector::Connector): its keys in byte order,
//! from any cursor, and their bytes. Finding anything in
//! them is the engine's.
//!
//! ```
//! use gossip_connectors::fs::{FsOptions, FsSource};
//! use gossip_contracts::connector::{Connector, Page};
//! use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
//!
//! let dir = tempfile::tempdir()?;
//! std::fs::create_dir(dir.path().join("src"))?;
//! std::fs::write(dir.path().join("src/main.rs"), "fn main() {}")?;
//! std::fs::write(dir.path().join("src.txt"), "sorts before what is in src/")?;
//!
//! let source = FsSource::open(dir.path(), FsOptions::default())?;
//! let everything = ShardSpecRef::new(b"", b"", b"");
//! let mut page = Page::new();
//! source.list(everything, CursorUpdate::initial(), 100, &mut page)?;
//! assert!(page.iter().map(|entry| entry.key).eq([&b"src.txt"[..], b"src/main.rs"]));
//!
//! let mut reader = source.open(b"src/main.rs")?;
//! let mut bytes = [0; 2];
//! assert_eq!(reader.read_at(0, &mut bytes)?, 2);
//! assert_eq!(&bytes, b"fn");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod binary;
pub mod bytes;
pub mod content;
pub mod fs;
pub mod many;
