//! Archives of every format, whole, nested, broken and malicious.

mod broken;
mod formats;
mod limits;
mod support;
