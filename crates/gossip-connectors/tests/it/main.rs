//! What users of the crate can rely on, seen from outside.

mod hostile;
mod ignore;
mod order;
mod split;
mod support;
