//! Splits: cutting one range into several that cover it exactly.
//!
//! - P1: the parts of a split, in order, cover the parent's range with no gap and no overlap.
//! - P2: a split has at least two parts and at most [`MAX_SPLIT_CHILDREN`].
//! - P3: a residual split leaves the parent's cursor inside the range that the parent keeps.
//!
//! Planning is here; carrying a plan out, and the ids of the parts, belong to the protocol. Parts
//! cut by points carry the parent's metadata: whoever knows what the metadata means (a hint that
//! names rows, say) plans the parts itself and brings metadata that fits each.

use gossip_stdx::InlineVec;

use super::cursor::CursorUpdate;
use super::limits::MAX_SPLIT_CHILDREN;
use super::shard_spec::{IntoShardSpecRef, ShardSpec, ShardSpecInputError, ShardSpecRef};
use crate::identity::{CanonicalBytes, CanonicalHasher, ShardId};

/// Parts of a plan that fit without touching the heap.
const INLINE_PARTS: usize = 16;

/// Replaces a shard by two or more children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitReplacePlan<'a> {
    children: InlineVec<ShardSpecRef<'a>, INLINE_PARTS>,
}

impl<'a> SplitReplacePlan<'a> {
    /// A plan with these children, unchecked; whoever executes it checks it against the parent.
    #[must_use]
    pub fn new(children: impl IntoIterator<Item = ShardSpecRef<'a>>) -> Self {
        Self { children: children.into_iter().collect() }
    }

    /// The children in key order.
    #[must_use]
    pub fn children(&self) -> &[ShardSpecRef<'a>] {
        &self.children
    }
}

impl CanonicalBytes for SplitReplacePlan<'_> {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        let count =
            u32::try_from(self.children.len()).expect("a plan has fewer than 2^32 children");
        hasher.value(&count);
        for child in self.children() {
            hasher.value(child);
        }
    }
}

/// Shrinks a shard to the front of its range and gives the rest to a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitResidualPlan<'a> {
    /// What the parent keeps.
    pub parent: ShardSpecRef<'a>,
    /// What the new shard gets.
    pub residual: ShardSpecRef<'a>,
}

impl<'a> SplitResidualPlan<'a> {
    /// A plan of these two ranges, unchecked.
    #[must_use]
    pub const fn new(parent: ShardSpecRef<'a>, residual: ShardSpecRef<'a>) -> Self {
        Self { parent, residual }
    }
}

impl CanonicalBytes for SplitResidualPlan<'_> {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(&self.parent).value(&self.residual);
    }
}

/// Plans to replace `parent` by `children`.
pub fn plan_split_replace<'a>(
    parent: impl IntoShardSpecRef<'a>,
    children: impl IntoIterator<Item = ShardSpecRef<'a>>,
) -> Result<SplitReplacePlan<'a>, SplitValidationError> {
    let plan = SplitReplacePlan::new(children);
    validate_split_coverage(parent.into_shard_spec_ref(), plan.children())?;
    Ok(plan)
}

/// Plans to cut `parent` at each of `points`, which lie strictly inside it in ascending order.
pub fn plan_split_replace_at_points<'a>(
    parent: impl IntoShardSpecRef<'a>,
    points: &[&'a [u8]],
) -> Result<SplitReplacePlan<'a>, SplitValidationError> {
    let parent = parent.into_shard_spec_ref();
    check_count(points.len() + 1)?;
    let starts = std::iter::once(parent.start()).chain(points.iter().copied());
    let ends = points.iter().copied().chain(std::iter::once(parent.end()));
    let children =
        starts.zip(ends).map(|(start, end)| ShardSpecRef::new(start, end, parent.metadata()));
    // An empty point would read as an open end, not as a key.
    if let Some(index) = points.iter().position(|point| point.is_empty()) {
        return Err(SplitValidationError::EmptyPoint { index });
    }
    plan_split_replace(parent, children)
}

/// As [`plan_split_replace_at_points`], with every point behind `cursor`, so that only the first
/// child holds keys that were handled already.
pub fn plan_split_replace_from_cursor<'a>(
    parent: impl IntoShardSpecRef<'a>,
    cursor: CursorUpdate<'_>,
    points: &[&'a [u8]],
) -> Result<SplitReplacePlan<'a>, SplitValidationError> {
    let plan = plan_split_replace_at_points(parent, points)?;
    validate_cursor_kept(cursor, plan.children()[0])?;
    Ok(plan)
}

/// Plans to shrink `parent` to `kept` and give `residual` away.
pub fn plan_split_residual<'a>(
    parent: impl IntoShardSpecRef<'a>,
    kept: ShardSpecRef<'a>,
    residual: ShardSpecRef<'a>,
) -> Result<SplitResidualPlan<'a>, SplitValidationError> {
    let plan = SplitResidualPlan::new(kept, residual);
    validate_residual_split_bounds(parent.into_shard_spec_ref(), &plan)?;
    Ok(plan)
}

/// Plans to keep everything before `point` and give away the rest.
pub fn plan_split_residual_at_point<'a>(
    parent: impl IntoShardSpecRef<'a>,
    point: &'a [u8],
) -> Result<SplitResidualPlan<'a>, SplitValidationError> {
    let parent = parent.into_shard_spec_ref();
    if point.is_empty() {
        return Err(SplitValidationError::EmptyPoint { index: 0 });
    }
    plan_split_residual(
        parent,
        ShardSpecRef::new(parent.start(), point, parent.metadata()),
        ShardSpecRef::new(point, parent.end(), parent.metadata()),
    )
}

/// As [`plan_split_residual_at_point`], with the point behind `cursor` (P3).
pub fn plan_split_residual_from_cursor<'a>(
    parent: impl IntoShardSpecRef<'a>,
    cursor: CursorUpdate<'_>,
    point: &'a [u8],
) -> Result<SplitResidualPlan<'a>, SplitValidationError> {
    let plan = plan_split_residual_at_point(parent, point)?;
    validate_cursor_kept(cursor, plan.parent)?;
    Ok(plan)
}

/// P1 and P2. Reports the first fault in this order: number of children, a child that is no valid
/// range, the start, then gap or overlap from left to right, the end.
pub fn validate_split_coverage(
    parent: ShardSpecRef<'_>,
    children: &[ShardSpecRef<'_>],
) -> Result<(), SplitValidationError> {
    check_count(children.len())?;
    for (index, &child) in children.iter().enumerate() {
        ShardSpec::validate_ref(child)
            .map_err(|source| SplitValidationError::ChildInvalid { index, source })?;
    }
    if children[0].start() != parent.start() {
        return Err(SplitValidationError::StartMismatch);
    }
    for (index, pair) in children.windows(2).enumerate() {
        let (end, start) = (pair[0].end(), pair[1].start());
        // An open end reaches over everything behind it.
        if end.is_empty() || end > start {
            return Err(SplitValidationError::Overlap { index });
        }
        if end < start {
            return Err(SplitValidationError::Gap { index });
        }
    }
    if children[children.len() - 1].end() != parent.end() {
        return Err(SplitValidationError::EndMismatch);
    }
    Ok(())
}

/// P2.
fn check_count(count: usize) -> Result<(), SplitValidationError> {
    if count < 2 {
        return Err(SplitValidationError::TooFewChildren { count });
    }
    if count > MAX_SPLIT_CHILDREN {
        return Err(SplitValidationError::TooManyChildren { count, max: MAX_SPLIT_CHILDREN });
    }
    Ok(())
}

/// P1 for a residual split: the two ranges cover the parent's.
pub fn validate_residual_split_bounds(
    parent: ShardSpecRef<'_>,
    plan: &SplitResidualPlan<'_>,
) -> Result<(), SplitValidationError> {
    validate_split_coverage(parent, &[plan.parent, plan.residual])
}

/// P1 and P3 for a residual split of a shard that stands at `cursor`.
pub fn validate_residual_split(
    parent: ShardSpecRef<'_>,
    cursor: CursorUpdate<'_>,
    plan: &SplitResidualPlan<'_>,
) -> Result<(), SplitValidationError> {
    validate_residual_split_bounds(parent, plan)?;
    validate_cursor_kept(cursor, plan.parent)
}

fn validate_cursor_kept(
    cursor: CursorUpdate<'_>,
    kept: ShardSpecRef<'_>,
) -> Result<(), SplitValidationError> {
    if cursor.is_within(kept) { Ok(()) } else { Err(SplitValidationError::CursorNotKept) }
}

/// Which ceiling on the number of shards was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardLimitScope {
    /// The shards of one tenant.
    Tenant,
    /// The shards of all tenants together.
    Global,
}

/// Why a split was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum SplitValidationError {
    /// A split needs two parts.
    #[error("the split has {count} parts; it needs at least 2")]
    TooFewChildren {
        /// Parts given.
        count: usize,
    },
    /// There are more parts than one split may have.
    #[error("the split has {count} parts; at most {max} are allowed")]
    TooManyChildren {
        /// Parts given.
        count: usize,
        /// Parts allowed.
        max: usize,
    },
    /// The parts' keys and metadata are more than one split may bring.
    #[error("the parts of the split have {size} bytes; at most {max} are allowed")]
    PartsTooLarge {
        /// Bytes given.
        size: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// A split point is the empty string, which is no key.
    #[error("split point {index} is empty")]
    EmptyPoint {
        /// Its position, from 0.
        index: usize,
    },
    /// A part is no valid range.
    #[error("part {index}: {source}")]
    ChildInvalid {
        /// Its position, from 0.
        index: usize,
        /// What is wrong with it.
        source: ShardSpecInputError,
    },
    /// The first part does not start where the parent does.
    #[error("the first part does not start where the parent does")]
    StartMismatch,
    /// Keys between a part and the next belong to neither.
    #[error("there is a gap between part {index} and the next")]
    Gap {
        /// Position of the part before the gap, from 0.
        index: usize,
    },
    /// Keys belong to a part and to the next.
    #[error("part {index} and the next overlap")]
    Overlap {
        /// Position of the first of the two, from 0.
        index: usize,
    },
    /// The last part does not end where the parent does.
    #[error("the last part does not end where the parent does")]
    EndMismatch,
    /// The parent's cursor would fall outside the range that it keeps.
    #[error("the cursor lies outside the range that the parent would keep")]
    CursorNotKept,
    /// The shard has spawned as many shards as it may.
    #[error(
        "the shard has spawned {current} shards and may spawn {max}; {additional} more were asked for"
    )]
    SpawnLimitExceeded {
        /// Spawned so far.
        current: usize,
        /// Asked for.
        additional: usize,
        /// Allowed.
        max: usize,
    },
    /// A ceiling on the number of shards would be passed.
    #[error(
        "the {scope:?} ceiling of {max} shards leaves no room: {current} exist, {additional} more were asked for"
    )]
    ShardLimitExceeded {
        /// Existing shards under that ceiling.
        current: usize,
        /// Asked for.
        additional: usize,
        max: usize,
        /// Whether the tenant or the run is full.
        scope: ShardLimitScope,
    },
    /// A derived id is taken by another shard of the run. Retry under a new operation id.
    #[error("the derived shard id {shard} is taken")]
    DerivedIdCollision { shard: ShardId },
}

#[cfg(test)]
mod tests;
