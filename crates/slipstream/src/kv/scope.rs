//! Which keys a watch is about.

/// What a watch watches. A union of prefixes costs one consumer, like the others.
///
/// A prefix is a prefix of the text. One that ends with `.` (or is empty) is selected by the server;
/// of any other, the server sends all keys under its last `.` and the client drops the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchScope {
    /// Every key.
    All,
    /// Keys that begin with the text; with an empty one, every key.
    Prefix(String),
    /// Keys that begin with any of the texts. At least one.
    Prefixes(Vec<String>),
}

impl WatchScope {
    /// Whether the key belongs to the scope.
    #[must_use]
    pub fn covers(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Prefix(prefix) => key.starts_with(prefix.as_str()),
            Self::Prefixes(prefixes) => {
                prefixes.iter().any(|prefix| key.starts_with(prefix.as_str()))
            }
        }
    }

    /// Whether every key belongs to the scope, so that every message of the log is delivered.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.covers("")
    }

    /// The prefixes of the scope, none of which begins with another of them: their keys are
    /// disjoint. The prefix of everything is the empty text.
    #[must_use]
    pub fn prefixes(&self) -> Vec<&str> {
        let mut prefixes: Vec<&str> = match self {
            Self::All => vec![""],
            Self::Prefix(prefix) => vec![prefix],
            Self::Prefixes(prefixes) => prefixes.iter().map(String::as_str).collect(),
        };
        prefixes.sort_unstable();
        // What begins with a prefix follows it directly in byte order.
        prefixes.dedup_by(|next, kept| next.starts_with(*kept));
        prefixes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_prefix_is_everything() {
        assert!(WatchScope::Prefix(String::new()).is_all());
        assert!(WatchScope::Prefixes(vec!["a.".into(), String::new()]).is_all());
        assert!(!WatchScope::Prefix("a.".into()).is_all());
        assert!(!WatchScope::Prefixes(Vec::new()).is_all());
    }

    proptest! {
        #[test]
        fn disjoint_prefixes_cover_the_same_keys(
            prefixes in prop::collection::vec("[ab.]{0,3}", 1..5),
            key in "[ab.]{0,5}",
        ) {
            let scope = WatchScope::Prefixes(prefixes);
            let disjoint = scope.prefixes();
            let covering = disjoint.iter().filter(|prefix| key.starts_with(**prefix)).count();
            prop_assert_eq!(covering, usize::from(scope.covers(&key)));
        }
    }
}
