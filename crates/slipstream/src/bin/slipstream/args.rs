//! The arguments.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Try it:
  nats-server -js -sd ./server > server.log 2>&1 &
  slipstream put rules.aws 'AKIA[0-9A-Z]{16}'
  slipstream fold ./copy --once        # ./copy now holds the bucket
  slipstream put rules.gcp 'AIza.{35}'
  slipstream fold ./copy --once        # reads one update, not two
  slipstream range ./copy rules.

Kill `fold` whenever you like: it goes on where its disk says it was. While the server is away,
`fold` and `watch` say so on standard error, and wait.

Exit codes: 0 done, 1 the key has no value, 2 something went wrong.";

/// A durable local copy of a NATS KV bucket.
#[derive(Debug, Parser)]
#[command(name = "slipstream", version, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where the servers are; several separated by commas. A URL may carry `user:password@`.
    #[arg(
        long,
        global = true,
        env = "NATS_URL",
        hide_env_values = true,
        default_value = "nats://127.0.0.1:4222"
    )]
    pub(crate) server: String,

    /// A `.creds` file to connect with.
    #[arg(long, global = true, env = "NATS_CREDS", value_name = "FILE")]
    pub(crate) creds: Option<PathBuf>,

    /// Certificates (PEM) that the servers may be signed by; TLS is then required.
    #[arg(long, global = true, env = "NATS_CA", value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// A certificate (PEM) to show to the servers.
    #[arg(long, global = true, env = "NATS_CERT", value_name = "FILE", requires = "key_file")]
    pub(crate) cert: Option<PathBuf>,

    /// The key of that certificate.
    #[arg(long = "key", global = true, env = "NATS_KEY", value_name = "FILE", requires = "cert")]
    pub(crate) key_file: Option<PathBuf>,

    /// The bucket. `put` makes it if there is none.
    #[arg(
        long,
        short,
        global = true,
        env = "SLIPSTREAM_BUCKET",
        value_name = "NAME",
        default_value = "slipstream"
    )]
    pub(crate) bucket: String,

    /// Say on standard error what happens inside.
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set the value of a key, and print its revision.
    Put {
        /// Tokens joined by dots, such as `rules.aws`.
        key: String,
        /// The value; `-` reads it from standard input.
        value: String,
    },
    /// Print the value of a key, from the server.
    Get {
        /// The key.
        key: String,
    },
    /// Delete a key, which need not exist.
    Delete {
        /// The key.
        key: String,
    },
    /// Print the keys that have a value, in order, from the server.
    Keys {
        /// Only keys that begin with this.
        #[arg(default_value = "")]
        prefix: String,
    },
    /// Print the names of the server's buckets, in order.
    Buckets,
    /// Print every key as it is and as it changes, from the server, until interrupted.
    Watch {
        /// Only keys that begin with this.
        #[arg(default_value = "")]
        prefix: String,
    },
    /// Keep a directory equal to the bucket, until interrupted.
    Fold {
        /// Made if there is none. One process at a time.
        dir: PathBuf,
        /// Only keys that begin with this; may be repeated.
        #[arg(long = "prefix", value_name = "PREFIX")]
        prefixes: Vec<String>,
        /// End when the directory has all that the bucket has now.
        #[arg(long)]
        once: bool,
        /// Drop keys that the limits of the bucket have evicted, instead of keeping them.
        #[arg(long)]
        drop_evicted: bool,
    },
    /// Print the entries of a folded directory, in order, without any server.
    Range {
        /// The directory.
        dir: PathBuf,
        /// Only keys that begin with this.
        #[arg(default_value = "")]
        prefix: String,
    },
    /// Print how far a folded directory is, without any server.
    Status {
        /// The directory.
        dir: PathBuf,
    },
}
