//! What a source is told when a run begins.

use super::ConnectorError;
use crate::identity::RunId;

/// Calls back with the key and the version of every item that earlier runs have settled.
pub type EachSettled<'s> = dyn Fn(&mut dyn FnMut(&[u8], &[u8])) -> Result<(), ConnectorError> + 's;

/// A run as sources know it.
///
/// Numbers begin again in a new database, and are given again after an older copy of one was put back; what
/// a source kept for a run of the same number may be of another. The nonce tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunName {
    /// Its number, as the coordinator gave it.
    pub number: RunId,
    /// Random, and the same as long as the run is remembered.
    pub nonce: [u8; 16],
}

/// A run that begins.
#[derive(Clone, Copy)]
pub struct NewRun<'r> {
    /// The run.
    pub run: RunName,
    /// The newest run before it, of the same target under the same policy, that has ended.
    pub last: Option<RunName>,
    /// What need not be read again.
    pub settled: &'r EachSettled<'r>,
    /// Which path-dependent rules hold of a path: in two paths of one class, the same bytes have the
    /// same findings.
    pub path_class: &'r dyn Fn(&[u8]) -> Vec<u8>,
    /// Whether whoever scans leaves a path out. It is one as [`Connector::path_of`] gives it: relative
    /// to the target. What has other paths, too, is read under those.
    ///
    /// [`Connector::path_of`]: super::Connector::path_of
    pub is_left_out: &'r dyn Fn(&[u8]) -> bool,
}

/// Keys from the first up to, but not with, the second.
pub type KeyRange = (Vec<u8>, Vec<u8>);
