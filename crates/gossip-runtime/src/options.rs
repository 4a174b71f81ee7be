//! How a scan goes about its work.

/// How a scan goes about its work. None of it changes what is found.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    /// Workers, each a thread with its own connection and buffers.
    pub threads: usize,
    /// What a killed worker reads again, at most. Below about 700 KiB, what the engine looks at at
    /// once is the bound.
    pub checkpoint_bytes: u64,
    /// Items between checkpoints.
    pub checkpoint_items: usize,
    /// Milliseconds between checkpoints.
    pub checkpoint_ms: u64,
    /// How long a lease lasts without renewal, in milliseconds.
    pub lease_ms: u64,
    /// How often a shard may be tried without progress before it is parked. Every kill is a try, so
    /// it takes some patience to tell an input that kills from a user who does.
    pub max_shard_retries: u32,
    /// Start over, and read everything, whatever earlier scans of the same target stored.
    pub fresh: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(2, usize::from),
            checkpoint_bytes: 8 << 20,
            checkpoint_items: 512,
            checkpoint_ms: 1_000,
            lease_ms: 30_000,
            max_shard_retries: 20,
            fresh: false,
        }
    }
}
