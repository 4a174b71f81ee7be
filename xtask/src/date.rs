//! Dates for records that people read, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, as `2031-02-03 04:05 UTC`.
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    show(since.as_secs())
}

fn show(unix_seconds: u64) -> String {
    let (year, month, day) = civil(unix_seconds / 86_400);
    let minutes = unix_seconds / 60 % 1440;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// The Gregorian date of a day counted from 1970-01-01.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(show(0), "1970-01-01 00:00 UTC");
        assert_eq!(show(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(show(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(show(1_735_689_599), "2024-12-31 23:59 UTC");
        assert_eq!(show(4_107_542_400), "2100-03-01 00:00 UTC");
    }
}
