//! The arguments.

use std::path::PathBuf;

use clap::{Args as Arguments, Parser, Subcommand};

const EXAMPLES: &str = "\
Try it:
  nats-server -js -sd ./server > server.log 2>&1 &
  slipstream put rules.aws 'AKIA[0-9A-Z]{16}'
  slipstream fold ./copy --once        # ./copy now holds the bucket
  slipstream put rules.gcp 'AIza.{35}'
  slipstream fold ./copy --once        # reads one update, not two
  slipstream range ./copy rules.

A fleet, whose bucket forgets what its nodes have folded:
  slipstream export ./copy --store s3://bucket/folds     # on a node that has everything
  slipstream import ./new --store s3://bucket/folds      # on a new one: reads only what is newer
  slipstream fold ./new --store s3://bucket/folds        # restores itself when it was away too long

Kill `fold` whenever you like: it goes on where its disk says it was. While the server is away,
`fold` and `watch` say so on standard error, and wait.

Exit codes: 0 done, 1 the key has no value, the store no artifact or an export was not published, 2
something went wrong.";

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
        /// The key to read, such as `rules.aws`.
        key: String,
    },
    /// Delete a key, which need not exist.
    Delete {
        /// The key to delete, such as `rules.aws`.
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
        /// Nothing is restored then.
        #[arg(long)]
        drop_evicted: bool,
        /// Where artifacts are (see `export`): if the bucket has evicted what the directory lacks, it is
        /// restored from the newest one, and only then from what the bucket has left.
        #[arg(long, value_name = "URL", env = "SLIPSTREAM_STORE", hide_env_values = true)]
        store: Option<String>,
        /// Which artifacts of the store; the bucket's name, if nothing is said.
        #[arg(long, value_name = "NAME", requires = "store")]
        artifact: Option<String>,
    },
    /// Publish a folded directory as the newest artifact of a store.
    ///
    /// An artifact is a copy of the fold, with the position in the log that it stands for. Another node
    /// begins with it (`import`), and reads from the bucket only what is newer: also what a bucket with
    /// limits has long evicted. The directory is brought up to date first, as `fold --once --store` does.
    /// An artifact that is older than the newest one is not published, nor is one that may lack keys if
    /// the newest one does not.
    #[command(verbatim_doc_comment)]
    Export {
        /// Made if there is none. No `fold` may be running in it.
        dir: PathBuf,
        /// Only keys that begin with this; may be repeated.
        #[arg(long = "prefix", value_name = "PREFIX")]
        prefixes: Vec<String>,
        #[command(flatten)]
        remote: Remote,
        /// Compress what is uploaded.
        #[arg(long)]
        zstd: bool,
        /// Replace the pointer to the newest artifact also where the store, like a directory, cannot do
        /// so on a condition. Of two who publish at the same time, the slower one then wins.
        #[arg(long)]
        non_atomic: bool,
    },
    /// Make a folded directory of the newest artifact of a store.
    ///
    /// Only if the bucket can be read on from there: `fold` then reads what is newer, and nothing else.
    #[command(verbatim_doc_comment)]
    Import {
        /// Made; there must be no fold in it.
        dir: PathBuf,
        /// The prefixes that the artifact was made with; may be repeated.
        #[arg(long = "prefix", value_name = "PREFIX")]
        prefixes: Vec<String>,
        #[command(flatten)]
        remote: Remote,
    },
    /// Print which artifact is the newest of a store, and how old it is, without any server.
    ///
    /// `age` is the time since it was published. `behind` is the time since the last update in it was
    /// written, if the exporter knew that.
    #[command(verbatim_doc_comment)]
    Pointer {
        #[command(flatten)]
        remote: Remote,
    },
    /// Delete the artifacts of a store that are older than the newest one, without any server.
    Prune {
        #[command(flatten)]
        remote: Remote,
        /// Only those that were uploaded longer ago than this, in seconds: somebody may still read one
        /// that was the newest a moment ago.
        #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
        grace: u64,
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

/// Where artifacts are.
#[derive(Debug, Arguments)]
pub(crate) struct Remote {
    /// `s3://bucket/prefix`, `gs://…`, `az://container/prefix`, or a directory. Credentials and endpoints
    /// are read from the environment, by the names that the store's own tools use (`AWS_ACCESS_KEY_ID`,
    /// `AWS_ENDPOINT_URL`, …).
    #[arg(
        long,
        value_name = "URL",
        env = "SLIPSTREAM_STORE",
        hide_env_values = true,
        verbatim_doc_comment
    )]
    pub(crate) store: String,
    /// Which artifacts of the store; the bucket's name, if nothing is said.
    #[arg(long, value_name = "NAME")]
    pub(crate) artifact: Option<String>,
    /// Send and receive no faster than this.
    #[arg(long, value_name = "BYTES")]
    pub(crate) bytes_per_second: Option<u64>,
}
