//! What reads bytes of others, for the targets of `fuzz/`.

use crate::shard_token::ShardToken;

/// Reads a shard's token; whether it is one. What is one is written as something that reads the same.
#[must_use]
pub fn shard_token(bytes: &[u8]) -> bool {
    let Some(token) = ShardToken::from_bytes(bytes) else { return false };
    assert!(ShardToken::from_bytes(&token.to_bytes()) == Some(token));
    true
}
