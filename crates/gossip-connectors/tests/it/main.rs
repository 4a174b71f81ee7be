//! What users of the crate can rely on, seen from outside.

mod conformance;
mod hostile;
mod ignore;
mod many;
mod order;
mod scale;
mod split;
mod support;
