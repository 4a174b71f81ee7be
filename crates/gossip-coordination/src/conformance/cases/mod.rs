//! The cases, grouped by what they are about. Each is a function over any harness; the list in
//! `list.rs` names them all.

pub(super) mod leased;
