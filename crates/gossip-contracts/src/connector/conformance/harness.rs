//! What a connector brings to be tested.

use crate::connector::Connector;

/// An item to be put into a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The key that the connector must list it by.
    pub key: Vec<u8>,
    /// What the connector must read from it.
    pub content: Vec<u8>,
}

/// A target that a case fills and changes. It goes away with its value.
pub trait Harness: Sized {
    /// What is tested.
    type Connector: Connector;

    /// Whether the source lists items that have no bytes: there is nothing to scan in them.
    const EMPTY_ITEMS: bool = true;

    /// Whether a connector lists what there was when it was made, and keys are places in that list: then
    /// nothing appears, changes or goes away under a key.
    const IS_FIXED: bool = false;

    /// A target that holds exactly these items, whose keys are among [`Harness::keys`].
    fn build(items: &[Item]) -> Self;

    /// A connector to the target as it is. Asked for several times, it gives equal ones.
    fn connect(&self) -> Self::Connector;

    /// Sets the content of an item, new or not. A version taken before must differ from one taken
    /// after: wait here if the source's clock is slow.
    fn put(&mut self, key: &[u8], content: &[u8]);

    /// Removes an item.
    fn remove(&mut self, key: &[u8]);

    /// Takes the right to read an item away from the connector. False if that cannot be arranged
    /// here; then nothing has changed.
    fn deny(&mut self, _key: &[u8]) -> bool {
        false
    }

    /// Puts ways out of the target into it (links, mounts, redirects) behind which `secret` lies,
    /// and returns keys under which it might be found. None if there is no such thing.
    fn entice(&mut self, _secret: &[u8]) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// At least eight keys that such a target can hold all at once, the harder to order the better.
    #[must_use]
    fn keys() -> Vec<Vec<u8>> {
        sample_paths()
    }
}

/// Keys that are text and could be paths: none is a directory of another.
#[must_use]
pub fn sample_paths() -> Vec<Vec<u8>> {
    let paths = [
        "-",
        ".hidden",
        "0/0",
        "A",
        "a-",
        "a.txt",
        "a/-",
        "a/.x",
        "a/b-",
        "a/b.",
        "a/b/c",
        "a/b/c-",
        "a/b/d/e",
        "a/b/d/f",
        "a/b0",
        "a/bb",
        "a/\u{e9}",
        "a0",
        "ab",
        "b",
        "b c",
        "z/y/x/w/v",
        "\u{fffd}",
        "\u{10ffff}/\u{7f}",
    ];
    paths.map(|path| path.as_bytes().to_vec()).to_vec()
}
