//! The bytes of one file.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use gossip_contracts::connector::{ConnectorError, ItemReader};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use super::error::FsError;
use super::version::{self, Version};

pub(super) struct FsReader {
    file: File,
    size: u64,
    version: Version,
}

impl FsReader {
    /// Takes what was opened, which may not be a file.
    pub(super) fn new(opened: Result<OwnedFd, Errno>) -> Result<Self, ConnectorError> {
        let to_error = |errno| match errno {
            // What a socket answers.
            Errno::NXIO | Errno::OPNOTSUPP => not_a_file(),
            _ => FsError::from(errno).into_error("open"),
        };
        let fd = opened.map_err(to_error)?;
        let stat = fstat(&fd).map_err(to_error)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(not_a_file());
        }
        Ok(Self { file: fd.into(), size: version::size(&stat), version: Version::of(&stat) })
    }
}

impl ItemReader for FsReader {
    fn size(&self) -> u64 {
        self.size
    }

    fn version(&self) -> &[u8] {
        self.version.as_bytes()
    }

    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, ConnectorError> {
        // Behind what the system can address there is nothing, and it calls asking an error.
        let offset_max = i64::MAX as u64 - buf.len() as u64;
        if offset > offset_max {
            return Ok(0);
        }
        loop {
            match self.file.read_at(buf, offset) {
                Ok(len) => return Ok(len),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                    return Err(FsError::from(errno).into_error("read"));
                }
            }
        }
    }

    /// Of the open file, not of its path: what was read came from the open file, and a file that
    /// took its place has a version of its own, which the next listing shows.
    fn version_now(&self) -> Result<Vec<u8>, ConnectorError> {
        let stat = fstat(&self.file).map_err(|errno| FsError::from(errno).into_error("read"))?;
        Ok(Version::of(&stat).as_bytes().to_vec())
    }
}

fn not_a_file() -> ConnectorError {
    ConnectorError::Permanent { operation: "open", message: "it is not a regular file".to_owned() }
}
