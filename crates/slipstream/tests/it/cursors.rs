//! Cursors out of arbitrary bytes.

mod checks;

use proptest::prelude::*;

proptest! {
    #[test]
    fn any_bytes_are_refused_or_lead_into_the_log(
        format in prop::sample::select(vec![2u8, 0, 1, 255]),
        revision in 0..8u64,
        rest in prop::collection::vec(any::<u8>(), 0..240),
    ) {
        let mut data = vec![format];
        data.extend([0; 8]);
        data.extend(revision.to_le_bytes());
        data.extend(rest);
        checks::check_cursor(&data);
    }

    #[test]
    fn short_bytes_are_refused(data in prop::collection::vec(any::<u8>(), 0..20)) {
        checks::check_cursor(&data);
    }
}
