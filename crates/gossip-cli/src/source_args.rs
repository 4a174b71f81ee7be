//! What to scan, as the user types it.

use std::path::PathBuf;

use crate::git_args::GitArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// What to scan: directories, files and buckets (s3://, gs:// or az://BUCKET/PREFIX), all in one
    /// run; - for standard input [default: the current directory]
    #[arg(value_name = "PATH", default_value = ".", hide_default_value = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Scans what is printable in programs, images and other binary files, too
    #[arg(long)]
    pub(crate) binary: bool,

    /// Requests to a bucket's store that may be under way at once [default: 32]
    #[arg(long, value_name = "N", hide_short_help = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) requests: Option<u16>,

    #[command(flatten)]
    pub(crate) git: GitArgs,
}
