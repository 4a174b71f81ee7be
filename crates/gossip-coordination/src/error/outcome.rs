//! Whether an idempotent operation was carried out now or had been before.

/// The result of an operation that may be retried under its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdempotentOutcome<T> {
    /// Carried out by this call.
    Executed(T),
    /// Carried out by an earlier call with the same id and parameters; this one changed nothing.
    Replayed(T),
}

impl<T> IdempotentOutcome<T> {
    /// The result, however it came about.
    pub fn into_inner(self) -> T {
        match self {
            Self::Executed(value) | Self::Replayed(value) => value,
        }
    }

    /// Whether an earlier call had carried it out.
    pub const fn is_replay(&self) -> bool {
        matches!(self, Self::Replayed(_))
    }

    /// Whether this call carried it out.
    pub const fn is_executed(&self) -> bool {
        matches!(self, Self::Executed(_))
    }

    /// Changes the result and keeps how it came about.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> IdempotentOutcome<U> {
        match self {
            Self::Executed(value) => IdempotentOutcome::Executed(f(value)),
            Self::Replayed(value) => IdempotentOutcome::Replayed(f(value)),
        }
    }

    /// The same outcome, with its result borrowed.
    pub const fn as_ref(&self) -> IdempotentOutcome<&T> {
        match self {
            Self::Executed(value) => IdempotentOutcome::Executed(value),
            Self::Replayed(value) => IdempotentOutcome::Replayed(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_the_same_and_the_origin_is_kept() {
        let (executed, replayed) = (IdempotentOutcome::Executed(2), IdempotentOutcome::Replayed(2));
        assert!(executed.is_executed() && !executed.is_replay());
        assert!(replayed.is_replay() && !replayed.is_executed());
        assert_eq!(executed.map(|n| n + 1), IdempotentOutcome::Executed(3));
        assert_eq!(replayed.map(|n| n + 1), IdempotentOutcome::Replayed(3));
        assert_eq!((executed.into_inner(), replayed.into_inner()), (2, 2));
        assert_eq!(executed.as_ref().into_inner(), &2);
        assert!(replayed.as_ref().is_replay());
    }
}
