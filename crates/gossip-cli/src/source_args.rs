//! What to scan, as the user types it.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// What to scan: directories and files, all in one run; - for standard input
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
}
