//! What is scanned and what is found, whoever scans.

use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

/// One file.
pub(crate) struct Case {
    pub(crate) path: String,
    pub(crate) text: Vec<u8>,
}

/// A finding of some scanner, by lines counted from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) rule: String,
    pub(crate) first_line: u64,
    pub(crate) last_line: u64,
}

impl Hit {
    pub(crate) fn touches(&self, line: u64) -> bool {
        (self.first_line..=self.last_line).contains(&line)
    }
}

/// Which half of a set something belongs to: fixed by the name alone, so that what nothing was tuned
/// on stays so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Half {
    Tuning,
    HeldOut,
}

impl Half {
    pub(crate) const BOTH: [Self; 2] = [Self::Tuning, Self::HeldOut];

    pub(crate) fn of(name: &str) -> Self {
        if fnv1a(name).count_ones().is_multiple_of(2) { Self::Tuning } else { Self::HeldOut }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tuning => "tuning",
            Self::HeldOut => "held out",
        }
    }
}

/// FNV-1a: the same on every machine.
pub(crate) fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The objects of a compressed file, one a line.
pub(crate) fn read_objects(path: &Path) -> Result<Vec<Value>, String> {
    let file = std::fs::File::open(path).map_err(|error| {
        format!(
            "{}: {error}\n  to do: put the corpora there, or say where they are with --corpora",
            path.display()
        )
    })?;
    let lines = BufReader::new(flate2::read::GzDecoder::new(file)).lines();
    lines
        .map(|line| {
            let line = line.map_err(|error| format!("{}: {error}", path.display()))?;
            serde_json::from_str(&line).map_err(|error| format!("{}: {error}", path.display()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_halves() {
        let tuning = (0..1000).filter(|at| Half::of(&at.to_string()) == Half::Tuning).count();
        assert!((400..600).contains(&tuning), "{tuning}");
    }
}
