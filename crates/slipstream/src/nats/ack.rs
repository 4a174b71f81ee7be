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

/// Reads either layout, by its number of tokens, without allocating:
///
/// ```text
/// $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>
/// $JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>[.<token>]
/// ```
pub(super) fn parse(subject: &str) -> Option<Ack> {
    let tail = subject.strip_prefix("$JS.ACK.")?;
    let mut tokens: [&str; MAX_TOKENS] = [""; MAX_TOKENS];
    let mut count = 0;
    for token in tail.split('.') {
        *tokens.get_mut(count)? = token;
        count += 1;
    }
    let numbers = match count {
        7 => &tokens[3..7],
        9 | 10 => &tokens[5..9],
        _ => return None,
    };
    Some(Ack {
        stream_sequence: number(numbers[0])?,
        consumer_sequence: number(numbers[1])?,
        stored_at_ns: number(numbers[2])?,
        pending: number(numbers[3])?,
    })
}

/// Tokens after `$JS.ACK`, at most.
const MAX_TOKENS: usize = 10;

/// Decimal digits only; `str::parse` would also take a sign.
fn number(token: &str) -> Option<u64> {
    if token.is_empty() {
        return None;
    }
    token.bytes().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use gossip_testalloc::count_allocations;
    use proptest::prelude::*;

    use super::*;

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
    fn reading_allocates_nothing() {
        let subject = "$JS.ACK._.ACC.KV_b.c.1.42.7.1700000000.3.rnd";
        let (ack, count) = count_allocations(|| parse(subject));
        assert_eq!(ack, Some(EXPECTED));
        assert!(count.is_zero(), "{count:?}");
    }

    #[test]
    fn anything_else_is_refused() {
        for subject in [
            "",
            "$JS.ACK",
            "$JS.ACK.KV_b.c.1.42.7.1700000000",
            "$JS.ACK.x.KV_b.c.1.42.7.1700000000.3",
            "$JS.ACK._.ACC.KV_b.c.1.42.7.1700000000.3.rnd.more",
            "$JS.ACK.KV_b.c.1.-2.7.1700000000.3",
            "$JS.ACK.KV_b.c.1.+2.7.1700000000.3",
            "$JS.ACK.KV_b.c.1..7.1700000000.3",
            "$JS.ACK.KV_b.c.1.18446744073709551616.7.1700000000.3",
            "_INBOX.KV_b.c.1.42.7.1700000000.3",
        ] {
            assert_eq!(parse(subject), None, "{subject}");
        }
    }

    proptest! {
        #[test]
        fn no_subject_panics(subject in "(\\$JS\\.ACK\\.)?[a-z0-9.]{0,60}") {
            let _ = parse(&subject);
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
