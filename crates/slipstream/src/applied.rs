//! The fold: updates in, applied state and its cursor out.
