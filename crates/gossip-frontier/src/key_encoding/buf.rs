//! The caller's buffer for one key.

use gossip_contracts::coordination::MAX_KEY_SIZE;
use gossip_stdx::FixedBuf;

/// A reusable buffer that holds one key: the longest, and one byte more.
pub type KeyBuf = FixedBuf<{ MAX_KEY_SIZE + 1 }>;
