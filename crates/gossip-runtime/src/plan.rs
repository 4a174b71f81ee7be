//! The shards with which a scan begins, and the one way in which it cuts them further.

use gossip_contracts::connector::{Connector, ConnectorError};
use gossip_contracts::coordination::{
    CursorUpdate, InitialShardInput, ShardArena, ShardSpec, ShardSpecRef, SplitResidualPlan,
    SplitValidationError, plan_split_residual,
};
use gossip_frontier::{
    HintPropagationError, MetadataBuf, PreallocShardBuilder, ShardHint, ShardMetadata,
    decode_metadata, propagate_hint_on_split,
};

/// No path starts with a NUL, so every key lies behind this.
pub(crate) const FIRST_KEY: &[u8] = b"\0";
/// A name has at most 255 bytes, so every key lies before this.
pub(crate) const END_KEY: &[u8] = &[0xff; 256];

/// Shards for each worker: enough that none waits long for another's last one.
const SHARDS_PER_WORKER: usize = 4;
const SHARDS_MAX: usize = 256;

/// Plans the shards of a run and hands them to `register`.
pub(crate) fn with_initial_shards<R>(
    source: &dyn Connector,
    threads: usize,
    register: impl FnOnce(&[InitialShardInput<'_>]) -> R,
) -> Result<R, ConnectorError> {
    let everything = ShardSpecRef::new(FIRST_KEY, END_KEY, b"");
    let want = (threads * SHARDS_PER_WORKER).clamp(1, SHARDS_MAX) - 1;
    let points = source.split_points(everything, CursorUpdate::initial(), want)?;
    let points: Vec<&[u8]> = points.iter().map(|point| &**point).collect();

    let mut arena = ShardArena::with_capacity(SHARDS_MAX, SHARDS_MAX * (2 * 4096 + 64));
    let mut builder =
        Box::new(PreallocShardBuilder::<SHARDS_MAX>::new(&mut arena, SHARDS_MAX).expect("limits"));
    builder
        .split_range_by_boundaries(FIRST_KEY, &points, END_KEY, b"")
        .expect("a source's split points ascend inside the range");
    Ok(register(&builder.build_inputs().expect("parts of one range make a manifest")))
}

/// A residual split with the hints of both parts narrowed to what they cover. Everything that
/// splits a shard here goes through this: coordination does not see hints and so cannot.
pub(crate) struct ResidualSplit {
    kept: ShardSpec,
    residual: ShardSpec,
}

/// Why a shard is not split there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SplitPlanError {
    #[error("{0}")]
    Split(#[from] SplitValidationError),
    #[error("{0}")]
    Hint(#[from] HintPropagationError),
    #[error("the shard's metadata is damaged")]
    Metadata,
}

impl ResidualSplit {
    pub(crate) fn at(parent: ShardSpecRef<'_>, point: &[u8]) -> Result<Self, SplitPlanError> {
        let metadata = decode_metadata(parent).map_err(|_| SplitPlanError::Metadata)?;
        let part = |start: &[u8], end: &[u8]| -> Result<ShardSpec, SplitPlanError> {
            let hint = propagate_hint_on_split(metadata.hint, start, end)?;
            let mut buf = Box::new(MetadataBuf::new());
            let bytes = encode(parent, hint, metadata.connector_extra, &mut buf)?;
            ShardSpec::new(ShardSpecRef::new(start, end, bytes))
                .map_err(|source| SplitValidationError::ChildInvalid { index: 0, source }.into())
        };
        let kept = part(parent.start(), point)?;
        let residual = part(point, parent.end())?;
        plan_split_residual(parent, kept.as_ref(), residual.as_ref())?;
        Ok(Self { kept, residual })
    }

    pub(crate) fn plan(&self) -> SplitResidualPlan<'_> {
        SplitResidualPlan::new(self.kept.as_ref(), self.residual.as_ref())
    }

    pub(crate) fn into_kept(self) -> ShardSpec {
        self.kept
    }
}

/// Metadata that was absent stays so.
fn encode<'b>(
    parent: ShardSpecRef<'_>,
    hint: ShardHint<'_>,
    extra: &[u8],
    buf: &'b mut MetadataBuf,
) -> Result<&'b [u8], SplitPlanError> {
    if parent.metadata().is_empty() {
        return Ok(&[]);
    }
    ShardMetadata::new(hint, extra).encode_into(buf).map_err(|_| SplitPlanError::Metadata)
}
