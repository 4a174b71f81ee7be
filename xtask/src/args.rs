//! The command line, taken apart by hand: flags, `--name value` or `--name=value`, and the rest.

use crate::failure::{Failure, Result};

/// What is left of the command line.
pub(crate) struct Args {
    left: Vec<String>,
    /// What followed `--`: for the program that the command runs.
    passed_on: Vec<String>,
}

impl Args {
    pub(crate) fn from_env() -> Self {
        Self::new(std::env::args().skip(1).collect())
    }

    fn new(mut left: Vec<String>) -> Self {
        let passed_on = match left.iter().position(|arg| arg == "--") {
            Some(at) => {
                let tail = left.split_off(at + 1);
                left.pop();
                tail
            }
            None => Vec::new(),
        };
        Self { left, passed_on }
    }

    /// Takes the first argument.
    pub(crate) fn command(&mut self) -> Option<String> {
        (!self.left.is_empty()).then(|| self.left.remove(0))
    }

    pub(crate) fn wants_help(&self) -> bool {
        self.left.iter().any(|arg| arg == "--help" || arg == "-h")
    }

    /// Takes `--name`, if it is there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.left.len();
        self.left.retain(|arg| arg != name);
        self.left.len() < before
    }

    /// Takes the value of the first `--name`, if it is there.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>> {
        let joined = format!("{name}=");
        for at in 0..self.left.len() {
            if let Some(value) = self.left[at].strip_prefix(&joined) {
                let value = value.to_owned();
                self.left.remove(at);
                return Ok(Some(value));
            }
            if self.left[at] == name {
                if at + 1 == self.left.len() {
                    return Err(Failure::usage(format!("{name} needs a value")));
                }
                self.left.remove(at);
                return Ok(Some(self.left.remove(at)));
            }
        }
        Ok(None)
    }

    /// The value of `--name` as a number that is not zero.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<u64>> {
        let Some(text) = self.value(name)? else { return Ok(None) };
        match text.parse() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(Failure::usage(format!("{name} needs a positive number, not `{text}`"))),
        }
    }

    /// Takes what followed `--`.
    pub(crate) fn passed_on(&mut self) -> Vec<String> {
        std::mem::take(&mut self.passed_on)
    }

    /// The names that are left; refuses unknown flags.
    pub(crate) fn names(self) -> Result<Vec<String>> {
        if let Some(unknown) = self.left.iter().find(|arg| arg.starts_with('-')) {
            return Err(Failure::usage(format!("there is no option `{unknown}`; see --help")));
        }
        if !self.passed_on.is_empty() {
            return Err(Failure::usage("this command passes nothing on, so `--` has no use"));
        }
        Ok(self.left)
    }

    /// The one name that is left, if any; refuses a second.
    pub(crate) fn at_most_one_name(self) -> Result<Option<String>> {
        let mut names = self.names()?;
        if names.len() > 1 {
            return Err(Failure::usage(format!("one name at a time, not {}", names.len())));
        }
        Ok(names.pop())
    }

    /// Refuses whatever is left.
    pub(crate) fn nothing_left(self) -> Result<()> {
        match self.names()?.first() {
            Some(name) => Err(Failure::usage(format!("`{name}` has no meaning here; see --help"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        Args::new(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn values_come_joined_or_apart_and_names_are_what_is_left() {
        let mut line = args("a --seconds 5 b --only=fmt --list -- --x y");
        assert_eq!(line.number("--seconds").unwrap(), Some(5));
        assert_eq!(line.value("--only").unwrap().as_deref(), Some("fmt"));
        assert_eq!(line.value("--only").unwrap(), None);
        assert!(line.flag("--list") && !line.flag("--list"));
        assert_eq!(line.passed_on(), ["--x", "y"]);
        assert_eq!(line.names().unwrap(), ["a", "b"]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert!(args("--seconds").number("--seconds").is_err());
        assert!(args("--seconds 0").number("--seconds").is_err());
        assert!(args("--seconds ten").number("--seconds").is_err());
        assert!(args("--nope").names().is_err());
        assert!(args("a b").at_most_one_name().is_err());
        assert!(args("a").nothing_left().is_err());
        assert!(args("-- a").nothing_left().is_err());
    }
}
