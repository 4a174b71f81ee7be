//! Keys that their owner put into its own public sources: samples and tests that everybody copies.
//! Nothing in them says so, so they are known by their CRC-32, from which no key can be made.

use super::Verdict;
use super::crc32::crc32;

const GOOGLE_LEN: usize = 39;

/// Keys of Google in firebase-android-sdk, firebase-js-sdk, flutterfire, flutter/plugins and iosched,
/// sorted.
#[rustfmt::skip]
const GOOGLE: &[u32] = &[
    0x0839_4327, 0x0BA5_9ABA, 0x100E_C1EB, 0x1F35_8CBE, 0x3627_AA84, 0x4B6F_5481, 0x5C29_8136,
    0x6159_AC90, 0x6632_78F5, 0x6A4F_7820, 0x6B66_E8A8, 0x6B94_63F8, 0x87B2_0DA6, 0x8E90_E2C4,
    0x94BB_94F9, 0xAFE8_FF3E, 0xC719_339B, 0xFBC4_7221, 0xFFDD_D189,
];

pub(super) fn verify_google(secret: &[u8]) -> Verdict {
    if is_google(secret) { Verdict::Impossible } else { Verdict::Unknown }
}

/// Whether this is a key that Google publishes.
pub(crate) fn is_google(value: &[u8]) -> bool {
    value.len() == GOOGLE_LEN
        && value.starts_with(b"AIza")
        && GOOGLE.binary_search(&crc32(value)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_key_is_none_and_its_neighbour_may_be_one() {
        assert!(GOOGLE.windows(2).all(|pair| pair[0] < pair[1]), "sorted");
        // The one that Google's tests made of the alphabet.
        let mut key: Vec<u8> = b"AIzaSy".iter().copied().chain(b'a'..=b'z').collect();
        key.extend(b"1234567");
        assert_eq!(verify_google(&key), Verdict::Impossible);
        key[20] = b'0';
        assert_eq!(verify_google(&key), Verdict::Unknown);
        assert_eq!(verify_google(b"AIza"), Verdict::Unknown);
    }
}
