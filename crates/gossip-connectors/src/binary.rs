//! A source whose binary content is scanned like text.
//!
//! The engine judges bytes and does not mind what is between them: what is printable in a program or a
//! database is found at its offset. Archives are unpacked as ever.

use gossip_contracts::connector::{Classifier, Connector, ContentKind, Wrapper};
use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher};

/// Another source, all of whose content is called text.
pub struct WithBinaries(pub Box<dyn Connector>);

/// Calls everything text.
struct AllText;

impl Classifier for AllText {
    fn kind(&self, _key: &[u8], _head: &[u8]) -> ContentKind {
        ContentKind::Text
    }
}

impl CanonicalBytes for AllText {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value("all content is text");
    }
}

impl Wrapper for WithBinaries {
    fn inner(&self) -> &dyn Connector {
        &*self.0
    }

    fn classifier(&self) -> &dyn Classifier {
        &AllText
    }
}
