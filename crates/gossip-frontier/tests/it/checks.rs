//! What holds for every input, whoever made it up: the property tests and the libFuzzer targets
//! (`fuzz/`, which includes this file) both call these.

use gossip_contracts::coordination::{MAX_KEY_SIZE, MAX_METADATA_SIZE};
use gossip_frontier::{
    KeyBuf, MetadataBuf, ShardHint, ShardMetadata, byte_midpoint, key_successor, prefix_successor,
};

/// Decoding never panics, looks at the frame only, and gives back what encodes to the same bytes.
pub(crate) fn check_hint_decode(data: &[u8]) {
    let Ok((hint, consumed)) = ShardHint::decode(data) else { return };
    let frame = &data[..consumed];
    let mut buf = MetadataBuf::new();
    assert_eq!(hint.encode_into(&mut buf), Ok(frame));
    assert_eq!(hint.encoded_len(), Ok(consumed));
    assert_eq!(ShardHint::decode(frame), Ok((hint, consumed)));
    if let Some(cut) = consumed.checked_sub(1) {
        assert!(ShardHint::decode(&frame[..cut]).is_err(), "a cut frame decodes");
    }
}

/// As for hints, over the whole input; only empty metadata encodes to something else, which then
/// means the same.
pub(crate) fn check_metadata_decode(data: &[u8]) {
    let Ok(metadata) = ShardMetadata::decode(data) else { return };
    assert!(data.len() <= MAX_METADATA_SIZE);
    let mut buf = MetadataBuf::new();
    let encoded = metadata.encode_into(&mut buf).expect("what decodes, encodes");
    if data.is_empty() {
        assert_eq!(encoded, [0, 0, 0, 1, 0]);
        assert_eq!(ShardMetadata::decode(encoded), Ok(metadata));
    } else {
        assert_eq!(encoded, data);
    }
    assert_eq!(metadata.encoded_len(), Ok(encoded.len()));
}

/// The three functions against their definitions, written the long way.
pub(crate) fn check_key_arithmetic(a: &[u8], b: &[u8]) {
    let mut buf = KeyBuf::new();
    for key in [a, b] {
        assert_eq!(prefix_successor(key, &mut buf), naive_prefix_successor(key).as_deref());
        assert_eq!(key_successor(key, &mut buf), naive_key_successor(key).as_deref());
    }
    for (a, b) in [(a, b), (b, a)] {
        let middle = byte_midpoint(a, b, &mut buf);
        // Compared as options of bytes, so that a failure names lengths before it shows bytes.
        assert_eq!(middle.map(<[u8]>::len), naive_midpoint(a, b, false).as_ref().map(Vec::len));
        assert_eq!(middle, naive_midpoint(a, b, false).as_deref());
        assert_eq!(middle, naive_midpoint(a, b, true).as_deref());
    }
}

/// Two keys out of fuzzer bytes: some related, some as long as keys get, some longer.
pub(crate) fn two_keys(data: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let Some((&[mode, filler, high, low], rest)) = data.split_first_chunk() else {
        return (Vec::new(), data.to_vec());
    };
    let cut = usize::from(u16::from_be_bytes([high, low])) % (rest.len() + 1);
    let (mut a, mut b) = (rest[..cut].to_vec(), rest[cut..].to_vec());
    let longest = MAX_KEY_SIZE + usize::from(mode >> 7);
    if mode & 1 != 0 {
        let shared = longest.saturating_sub(a.len().max(b.len()));
        for key in [&mut a, &mut b] {
            key.splice(..0, std::iter::repeat_n(filler, shared));
        }
    }
    if mode & 2 != 0 {
        a.resize(longest, filler);
    }
    if mode & 4 != 0 {
        b.resize(longest, filler);
    }
    (a, b)
}

fn naive_prefix_successor(prefix: &[u8]) -> Option<Vec<u8>> {
    if prefix.len() > MAX_KEY_SIZE {
        return None;
    }
    let mut key = prefix.to_vec();
    while let Some(last) = key.pop() {
        if last != 0xff {
            key.push(last + 1);
            return Some(key);
        }
    }
    None
}

fn naive_key_successor(key: &[u8]) -> Option<Vec<u8>> {
    if key.len() < MAX_KEY_SIZE { Some([key, &[0]].concat()) } else { naive_prefix_successor(key) }
}

/// The five phases of the requirement, one digit at a time.
///
/// It can be read in two ways: the sum gets a leading digit on overflow only, or always
/// (`always_expand`). Both come to the same keys.
fn naive_midpoint(a: &[u8], b: &[u8], always_expand: bool) -> Option<Vec<u8>> {
    if a >= b || a.len() > MAX_KEY_SIZE || b.len() > MAX_KEY_SIZE {
        return None;
    }
    let is_between = |key: &[u8]| key.len() <= MAX_KEY_SIZE && a < key && key < b;
    let len = a.len().max(b.len());
    let digit = |key: &[u8], at: usize| u16::from(*key.get(at).unwrap_or(&0));

    // 1: pad and add, last digit first.
    let mut quotient = vec![0; len];
    let mut carry = 0;
    for at in (0..len).rev() {
        let sum = digit(a, at) + digit(b, at) + carry;
        quotient[at] = sum as u8;
        carry = sum >> 8;
    }
    if always_expand || carry > 0 {
        quotient.insert(0, carry as u8);
    }
    // 2: divide by two, first digit first.
    let mut remainder = 0;
    for digit in &mut quotient {
        let dividend = (remainder << 8) | u16::from(*digit);
        *digit = (dividend / 2) as u8;
        remainder = dividend % 2;
    }
    // 3: without the leading digit of an overflow.
    if quotient.len() == len + 1 && quotient[0] == 0 && is_between(&quotient[1..]) {
        return Some(quotient[1..].to_vec());
    }
    // 4: as it is.
    if is_between(&quotient) {
        return Some(quotient);
    }
    // 5: the next key.
    naive_key_successor(a).filter(|next| next.as_slice() < b)
}
