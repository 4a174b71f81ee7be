//! From a message of the log to an entry or an update.

use async_nats::{HeaderMap, Message};
use bytes::{Buf, Bytes};

use crate::kv::{Key, KvEntry, KvUpdate, VersionToken};

pub(super) const OPERATION: &str = "KV-Operation";
pub(super) const DELETE: &str = "DEL";
pub(super) const PURGE: &str = "PURGE";
/// Why the server itself wrote a message in place of one that it removed.
const MARKER_REASON: &str = "Nats-Marker-Reason";
/// Length of the value that a message without it stands for.
const MESSAGE_SIZE: &str = "Nats-Msg-Size";

/// What a message does to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Put,
    Delete,
    Purge,
}

/// What the headers say about a message.
struct Headers {
    operation: Operation,
    /// Length of the value that was left out.
    value_len: Option<usize>,
}

impl Headers {
    /// One pass over all of them: a look-up by name makes a name first, and that is dear.
    fn read(headers: Option<&HeaderMap>) -> Self {
        let mut read = Self { operation: Operation::Put, value_len: None };
        for (name, values) in headers.into_iter().flat_map(HeaderMap::iter) {
            let value = values.first().map_or("", |value| value.as_str());
            match name.as_ref() {
                // An operation that we do not know is none that sets a value.
                OPERATION => {
                    read.operation = match value {
                        "PUT" => Operation::Put,
                        PURGE => Operation::Purge,
                        _ => Operation::Delete,
                    };
                }
                MARKER_REASON => {
                    read.operation = match value {
                        "MaxAge" | "Purge" => Operation::Purge,
                        _ => Operation::Delete,
                    };
                }
                MESSAGE_SIZE => read.value_len = value.parse().ok(),
                _ => {}
            }
        }
        read
    }
}

/// What a message with these headers does.
pub(super) fn operation(headers: Option<&HeaderMap>) -> Operation {
    Headers::read(headers).operation
}

/// The key of a subject, in the subject's own buffer.
pub(super) fn key(subject: async_nats::Subject, prefix_len: usize) -> Key {
    debug_assert!(subject.is_char_boundary(prefix_len), "the prefix of a bucket ends with a dot");
    // Neither conversion copies: the subject owns its buffer alone.
    let mut bytes = Bytes::from(subject.into_string());
    bytes.advance(prefix_len);
    Key::of_text(bytes)
}

/// An update, from a message whose subject begins with the bucket's prefix.
pub(super) fn update(message: Message, prefix_len: usize, revision: u64) -> KvUpdate {
    let operation = operation(message.headers.as_ref());
    let key = key(message.subject, prefix_len);
    let version = VersionToken::from_u64(revision);
    match operation {
        Operation::Put if !message.payload.is_empty() => {
            KvUpdate::Put(KvEntry { key, value: message.payload, version })
        }
        Operation::Put | Operation::Delete => KvUpdate::Delete { key, version },
        Operation::Purge => KvUpdate::Purge { key, version },
    }
}

/// Whether a message gives its key a value; of one that came without its payload, too.
pub(super) fn is_value(message: &Message, headers_only: bool) -> bool {
    let headers = Headers::read(message.headers.as_ref());
    let value_len = if headers_only { headers.value_len } else { Some(message.payload.len()) };
    headers.operation == Operation::Put && value_len != Some(0)
}

#[cfg(test)]
mod tests {
    use async_nats::Subject;
    use gossip_testalloc::count_allocations;

    use super::*;

    fn message(headers: &[(&str, &str)], payload: &'static str) -> Message {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), (*value).into()));
        let headers: HeaderMap = headers.collect();
        Message {
            subject: Subject::from("$KV.b.a.key"),
            reply: None,
            payload: payload.into(),
            headers: (!headers.is_empty()).then_some(headers),
            status: None,
            description: None,
            length: 0,
        }
    }

    fn check(headers: &[(&str, &str)], payload: &'static str, expected: Operation) {
        let update = update(message(headers, payload), "$KV.b.".len(), 7);
        assert_eq!(update.key(), &"a.key");
        assert_eq!(update.version().as_u64(), Some(7));
        let actual = match update {
            KvUpdate::Put(_) => Operation::Put,
            KvUpdate::Delete { .. } => Operation::Delete,
            KvUpdate::Purge { .. } => Operation::Purge,
        };
        assert_eq!(actual, expected, "{headers:?}");
    }

    #[test]
    fn headers_say_what_a_message_does() {
        check(&[], "v", Operation::Put);
        check(&[("X-Other", "1")], "v", Operation::Put);
        check(&[("KV-Operation", "PUT")], "v", Operation::Put);
        check(&[("KV-Operation", "DEL")], "", Operation::Delete);
        check(&[("KV-Operation", "PURGE")], "", Operation::Purge);
        check(&[("KV-Operation", "SOMETHING")], "v", Operation::Delete);
        check(&[("Nats-Marker-Reason", "MaxAge")], "", Operation::Purge);
        check(&[("Nats-Marker-Reason", "Remove")], "", Operation::Delete);
    }

    /// As the client makes it: the subject in a buffer of its own, the value in a shared one.
    #[test]
    fn an_update_takes_over_the_buffers_of_its_message() {
        let message = message(&[], "value");
        let (update, count) = count_allocations(|| update(message, "$KV.b.".len(), 7));
        assert_eq!(update.key(), &"a.key");
        assert!(count.is_zero(), "{count:?}");
    }

    #[test]
    fn an_empty_value_is_a_delete() {
        check(&[], "", Operation::Delete);
        assert!(!is_value(&message(&[], ""), false));
        assert!(!is_value(&message(&[("Nats-Msg-Size", "0")], ""), true));
        assert!(is_value(&message(&[("Nats-Msg-Size", "5")], ""), true));
        assert!(!is_value(&message(&[("KV-Operation", "DEL"), ("Nats-Msg-Size", "5")], ""), true));
    }
}
