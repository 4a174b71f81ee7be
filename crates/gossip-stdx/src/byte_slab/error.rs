//! Why a slab refused.

/// The slab has no room for the record. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room for {requested} bytes: the longest record that fits has {available}")]
pub struct SlabFull {
    /// Length of the refused record.
    pub requested: usize,
    /// Length of the longest record that would have been accepted; 0 when the slots ran out.
    pub available: usize,
}

/// The slot was freed, replaced or cleared, or belongs to another slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the slot names no live record of this slab")]
pub struct StaleSlot;

/// Why a record was not replaced. The old slot and its bytes are as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplaceError {
    /// The new bytes do not fit beside the old ones.
    #[error(transparent)]
    Full(#[from] SlabFull),
    /// There is no such record.
    #[error(transparent)]
    Stale(#[from] StaleSlot),
}
