//! The shards with which a scan begins, and the one way in which it cuts them further.

use gossip_contracts::connector::{Connector, ConnectorError};
use gossip_contracts::coordination::{
    CursorUpdate, InitialShardInput, ShardArena, ShardSpec, ShardSpecRef, SplitResidualPlan,
    SplitValidationError, plan_split_residual,
};
use gossip_frontier::{
    HintPropagationError, MetadataBuf, PreallocShardBuilder, PreallocShardBuilderError, ShardHint,
    ShardMetadata, decode_manifest_row_key, decode_metadata, propagate_hint_on_split,
};

/// Shards for each worker: enough that none waits long for another's last one.
const SHARDS_PER_WORKER: usize = 4;
const SHARDS_MAX: usize = 256;

/// Plans the shards of a run and hands them to `register`.
pub(crate) fn with_initial_shards<R>(
    source: &dyn Connector,
    threads: usize,
    register: impl FnOnce(&[InitialShardInput<'_>]) -> R,
) -> Result<R, ConnectorError> {
    let everything = source.key_range();
    let want = (threads * SHARDS_PER_WORKER).clamp(1, SHARDS_MAX) - 1;
    let points = source.split_points(everything, CursorUpdate::initial(), want)?;
    let points: Vec<&[u8]> = points.iter().map(|point| &**point).collect();

    let mut arena = ShardArena::with_capacity(SHARDS_MAX, SHARDS_MAX * (2 * 4096 + 64));
    let mut builder =
        Box::new(PreallocShardBuilder::<SHARDS_MAX>::new(&mut arena, SHARDS_MAX).expect("limits"));
    stage(&mut builder, everything, &points)
        .expect("a source's split points ascend inside the range");
    Ok(register(&builder.build_inputs().expect("parts of one range make a manifest")))
}

/// Stages the parts of a range, each with its share of the range's hint.
fn stage(
    builder: &mut PreallocShardBuilder<'_, SHARDS_MAX>,
    range: ShardSpecRef<'_>,
    points: &[&[u8]],
) -> Result<(), PreallocShardBuilderError> {
    let metadata = decode_metadata(range).expect("a source's metadata is well-formed");
    let ShardHint::Manifest { manifest_id, start_row, end_row } = metadata.hint else {
        let extra = metadata.connector_extra;
        return builder
            .split_range_by_boundaries(range.start(), points, range.end(), extra)
            .map(drop);
    };
    let row = |point: &&[u8]| decode_manifest_row_key(point).expect("a row key").row();
    let mut start = start_row;
    for end in points.iter().map(row).chain([end_row]) {
        builder.add_manifest(manifest_id, start, end, metadata.connector_extra)?;
        start = end;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use gossip_frontier::{ShardSpecScratch, manifest_shard_ref};

    use super::*;

    fn row_key(manifest: u64, row: u64) -> Vec<u8> {
        [manifest.to_be_bytes(), row.to_be_bytes()].concat()
    }

    #[test]
    fn no_child_of_a_manifest_shard_carries_a_stale_hint() {
        let mut scratch = ShardSpecScratch::new();
        let parent = manifest_shard_ref(7, 10, 100, b"mine", &mut scratch).unwrap();
        for row in [11, 40, 99] {
            let point = row_key(7, row);
            let split = ResidualSplit::at(parent, &point).unwrap();
            for (child, start_row, end_row) in
                [(split.kept.as_ref(), 10, row), (split.residual.as_ref(), row, 100)]
            {
                let metadata = decode_metadata(child).unwrap();
                let expected = ShardHint::Manifest { manifest_id: 7, start_row, end_row };
                assert_eq!(metadata.hint, expected);
                assert_eq!(metadata.connector_extra, b"mine");
            }
            assert_eq!(split.plan().parent.end(), point);
        }
    }

    #[test]
    fn a_manifest_shard_is_not_split_where_no_hint_would_fit() {
        let mut scratch = ShardSpecScratch::new();
        let parent = manifest_shard_ref(7, 10, 100, b"", &mut scratch).unwrap();
        for point in [row_key(7, 10), row_key(7, 100), row_key(8, 50), b"no row".to_vec()] {
            assert!(ResidualSplit::at(parent, &point).is_err());
        }
    }

    #[test]
    fn shards_without_metadata_split_into_shards_without() {
        let parent = ShardSpecRef::new(b"a", b"z", b"");
        let split = ResidualSplit::at(parent, b"m").unwrap();
        assert_eq!(split.kept.as_ref(), ShardSpecRef::new(b"a", b"m", b""));
        assert_eq!(split.residual.as_ref(), ShardSpecRef::new(b"m", b"z", b""));
    }
}
