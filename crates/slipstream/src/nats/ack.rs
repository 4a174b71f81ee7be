//! What the reply subject of a delivered message says.

/// Position of a message, in the log and among those sent to its consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ack {
    pub(super) stream_sequence: u64,
    pub(super) consumer_sequence: u64,
    /// When the message was stored, in Unix nanoseconds.
    pub(super) stored_at_ns: u64,
    /// Messages that the consumer had not sent yet.
    pub(super) pending: u64,
}

/// Reads the reply subjects of one consumer, in either layout, without allocating but for the first:
///
/// ```text
/// $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>
/// $JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>[.<token>]
/// ```
///
/// Nothing is delivered twice without acknowledgements, so that all of them begin alike: what a
/// subject has before its numbers is looked at once, which halves the cost of the others.
#[derive(Debug, Default)]
pub(super) struct AckReader {
    /// All before the numbers, of the subject read last.
    head: String,
    layout: Layout,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Layout {
    /// Nothing follows the numbers.
    #[default]
    Legacy,
    /// One more token may.
    Modern,
}

impl AckReader {
    pub(super) fn read(&mut self, subject: &str) -> Option<Ack> {
        let after_head = |head: &str| subject.strip_prefix(head).map(str::as_bytes);
        if !self.head.is_empty()
            && let Some(ack) = after_head(&self.head).and_then(|tail| numbers(tail, self.layout))
        {
            return Some(ack);
        }
        let (head_len, layout) = head(subject)?;
        subject[..head_len].clone_into(&mut self.head);
        self.layout = layout;
        numbers(&subject.as_bytes()[head_len..], layout)
    }
}

/// How long the part before the numbers is; the number of tokens tells the layouts apart.
fn head(subject: &str) -> Option<(usize, Layout)> {
    let (before, layout) = match subject.strip_prefix("$JS.ACK.")?.split('.').count() {
        7 => (5, Layout::Legacy),
        9 | 10 => (7, Layout::Modern),
        _ => return None,
    };
    let (last_dot, _) = subject.match_indices('.').nth(before - 1)?;
    Some((last_dot + 1, layout))
}

fn numbers(mut tail: &[u8], layout: Layout) -> Option<Ack> {
    let mut next = || {
        let number = take_number(&mut tail)?;
        let separated = tail.split_off_first().copied();
        matches!(separated, None | Some(b'.')).then_some((number, separated.is_some()))
    };
    let ((stream_sequence, true), (consumer_sequence, true), (stored_at_ns, true)) =
        (next()?, next()?, next()?)
    else {
        return None;
    };
    let (pending, more) = next()?;
    let ends_well = !more || (layout == Layout::Modern && !tail.contains(&b'.'));
    ends_well.then_some(Ack { stream_sequence, consumer_sequence, stored_at_ns, pending })
}

/// Decimal digits only; `str::parse` would also take a sign.
fn take_number(tail: &mut &[u8]) -> Option<u64> {
    /// So many cannot exceed a `u64`.
    const SAFE_DIGITS: usize = 19;
    let (mut number, mut count) = (0u64, 0);
    while let Some(&byte) = tail.get(count) {
        let digit = u64::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            break;
        }
        number = match count < SAFE_DIGITS {
            true => number * 10 + digit,
            false => number.checked_mul(10)?.checked_add(digit)?,
        };
        count += 1;
    }
    *tail = &tail[count..];
    (count > 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use gossip_testalloc::count_allocations;
    use proptest::prelude::*;

    use super::*;

    fn parse(subject: &str) -> Option<Ack> {
        AckReader::default().read(subject)
    }

    const EXPECTED: Ack =
        Ack { stream_sequence: 42, consumer_sequence: 7, stored_at_ns: 1_700_000_000, pending: 3 };

    #[test]
    fn both_layouts_are_read() {
        let legacy = "$JS.ACK.KV_b.c.1.42.7.1700000000.3";
        let modern = "$JS.ACK.hub.ACC.KV_b.c.1.42.7.1700000000.3";
        let token = "$JS.ACK._.ACC.KV_b.c.1.42.7.1700000000.3.rnd";
        for subject in [legacy, modern, token] {
            assert_eq!(parse(subject), Some(EXPECTED), "{subject}");
        }
    }

    #[test]
    fn reading_allocates_nothing_but_for_the_first() {
        let mut reader = AckReader::default();
        reader.read("$JS.ACK._.ACC.KV_b.c.1.41.6.1600000000.4.rnd").unwrap();
        let subject = "$JS.ACK._.ACC.KV_b.c.1.42.7.1700000000.3.rnd";
        let (ack, count) = count_allocations(|| reader.read(subject));
        assert_eq!(ack, Some(EXPECTED));
        assert!(count.is_zero(), "{count:?}");
    }

    #[test]
    fn anything_else_is_refused() {
        for subject in [
            "",
            "$JS.ACK",
            "$JS.ACK.KV_b.c.1.42.7.1700000000",
            "$JS.ACK.KV_b.c.1.42.7.1700000000.",
            "$JS.ACK.KV_b.c.1.42.7.1700000000.3.",
            "$JS.ACK.KV_b.c.1.42.7.1700000000.3.rnd",
            "$JS.ACK.KV_b.c.1.42.7.1700000000.3x",
            "$JS.ACK.x.KV_b.c.1.42.7.1700000000.3",
            "$JS.ACK._.ACC.KV_b.c.1.42.7.1700000000.3.rnd.more",
            "$JS.ACK.KV_b.c.1.-2.7.1700000000.3",
            "$JS.ACK.KV_b.c.1.+2.7.1700000000.3",
            "$JS.ACK.KV_b.c.1..7.1700000000.3",
            "$JS.ACK.KV_b.c.1.18446744073709551616.7.1700000000.3",
            "_INBOX.KV_b.c.1.42.7.1700000000.3",
        ] {
            assert_eq!(parse(subject), None, "{subject}");
            for before in ["$JS.ACK.KV_b.c.1.1.1.1.1", "$JS.ACK._.ACC.KV_b.c.1.1.1.1.1.rnd"] {
                let mut reader = AckReader::default();
                reader.read(before).unwrap();
                assert_eq!(reader.read(subject), None, "{subject} after {before}");
            }
        }
    }

    /// One that is delivered again, or comes from elsewhere, begins differently.
    #[test]
    fn subjects_that_begin_differently_are_read_one_after_the_other() {
        let mut reader = AckReader::default();
        for subject in [
            "$JS.ACK.KV_b.c.1.42.7.1700000000.3",
            "$JS.ACK.KV_b.c.12.42.7.1700000000.3",
            "$JS.ACK._.ACC.KV_b.c.1.42.7.1700000000.3.rnd",
            "$JS.ACK.KV_b.c.1.42.7.1700000000.3",
        ] {
            assert_eq!(reader.read(subject), Some(EXPECTED), "{subject}");
        }
    }

    proptest! {
        #[test]
        fn what_was_read_before_changes_nothing(
            before in "\\$JS\\.ACK\\.[a-z0-9.]{0,30}",
            subject in "(\\$JS\\.ACK\\.)?[a-z0-9.]{0,60}",
        ) {
            let mut reader = AckReader::default();
            reader.read(&before);
            prop_assert_eq!(reader.read(&subject), parse(&subject));
        }

        #[test]
        fn numbers_survive(sequences: [u64; 4]) {
            let [stream_sequence, consumer_sequence, stored_at_ns, pending] = sequences;
            let numbers = sequences.map(|number| number.to_string()).join(".");
            let ack = Ack { stream_sequence, consumer_sequence, stored_at_ns, pending };
            prop_assert_eq!(parse(&format!("$JS.ACK.s.c.1.{numbers}")), Some(ack));
            prop_assert_eq!(parse(&format!("$JS.ACK._.a.s.c.1.{numbers}.t")), Some(ack));
        }
    }
}
