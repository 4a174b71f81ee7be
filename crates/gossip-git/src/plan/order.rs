//! The order in which objects are read: each behind what it is built on.
//!
//! Deltas of a pack make trees. Read root first, then down each branch, an object's base was decoded
//! a moment ago.

use crate::objects::{DELTA_HEAD_MAX, Form, Inflater, Pack, delta_head};

/// An entry of a pack, as the order needs it.
struct Entry {
    offset: u64,
    /// None if it is stored whole.
    base: Option<u64>,
    size: u64,
    is_wanted: bool,
}

/// The objects at `offsets`, in the order in which to read them, with their sizes.
pub(crate) fn reading_order(pack: &Pack, mut offsets: Vec<u64>) -> Vec<(u64, u64)> {
    offsets.sort_unstable();
    offsets.dedup();
    let entries = with_bases(pack, offsets);
    // For each base, what is built on it: sorted, so that one look finds all.
    let mut children: Vec<(u64, usize)> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        children.extend(entry.base.map(|base| (base, at)));
    }
    children.sort_unstable();
    let mut order = Vec::with_capacity(entries.len());
    let mut is_done = vec![false; entries.len()];
    let mut stack = Vec::new();
    let roots = (0..entries.len()).filter(|&at| entries[at].base.is_none());
    // In a damaged pack a chain may have no root; what is on it comes last, and fails when read.
    for root in roots.chain(0..entries.len()) {
        stack.push(root);
        while let Some(at) = stack.pop() {
            if std::mem::replace(&mut is_done[at], true) {
                continue;
            }
            let entry = &entries[at];
            if entry.is_wanted {
                order.push((entry.offset, entry.size));
            }
            let first = children.partition_point(|&(base, _)| base < entry.offset);
            let of_this = children[first..].iter().take_while(|(base, _)| *base == entry.offset);
            let before = stack.len();
            stack.extend(of_this.map(|&(_, child)| child));
            stack[before..].reverse();
        }
    }
    order
}

/// The entries at `offsets`, and all that they are built on, by offset.
fn with_bases(pack: &Pack, offsets: Vec<u64>) -> Vec<Entry> {
    let mut inflater = Inflater::default();
    let mut entries: Vec<Entry> = Vec::with_capacity(offsets.len());
    let mut new = offsets;
    let mut is_wanted = true;
    while !new.is_empty() {
        entries
            .extend(new.iter().map(|&offset| read_entry(pack, offset, is_wanted, &mut inflater)));
        entries.sort_unstable_by_key(|entry| entry.offset);
        let is_known =
            |offset: &u64| entries.binary_search_by_key(offset, |entry| entry.offset).is_ok();
        new =
            entries.iter().filter_map(|entry| entry.base).filter(|base| !is_known(base)).collect();
        new.sort_unstable();
        new.dedup();
        is_wanted = false;
    }
    entries
}

/// One that cannot be read has no base and no size; whoever reads the object hears of it.
fn read_entry(pack: &Pack, offset: u64, is_wanted: bool, inflater: &mut Inflater) -> Entry {
    let Ok(entry) = pack.entry(offset) else {
        return Entry { offset, base: None, size: 0, is_wanted };
    };
    match entry.form {
        Form::Whole(_) => Entry { offset, base: None, size: entry.len, is_wanted },
        Form::Delta { base } => {
            let mut head = [0; DELTA_HEAD_MAX];
            let size = pack
                .compressed(entry.data)
                .and_then(|input| inflater.head(input, &mut head))
                .and_then(|len| delta_head(&head[..len]))
                .map_or(0, |head| head.result_len);
            Entry { offset, base: Some(base), size, is_wanted }
        }
    }
}
