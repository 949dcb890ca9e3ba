//! Time as the engine sees it: an argument, in whole milliseconds since 1970, UTC.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A moment, in milliseconds since 1970-01-01T00:00:00Z. Truncated where the clock is read, never here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// The latest moment that can be written as RFC 3339 (the end of the year 9999): waits are clamped to it.
pub const LATEST: Timestamp = Timestamp(253_402_207_200_999);

impl Timestamp {
    /// The moment `ms` later; never past [`LATEST`].
    #[must_use]
    pub fn after(self, ms: u64) -> Timestamp {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_add(ms)).min(LATEST)
    }

    /// The moment `ms` earlier.
    #[must_use]
    pub fn before(self, ms: u64) -> Timestamp {
        Timestamp(self.0.saturating_sub_unsigned(ms))
    }

    /// Milliseconds from `earlier` to this moment; zero when it is not earlier.
    pub fn since(self, earlier: Timestamp) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// Reads RFC 3339 text such as `2026-11-15T09:00:00+08:00`.
    pub fn parse_rfc3339(text: &str) -> Option<Timestamp> {
        text.trim().parse::<jiff::Timestamp>().ok().map(|t| Timestamp(t.as_millisecond()))
    }

    /// Reads the date of an HTTP header: `Sun, 06 Nov 1994 08:49:37 GMT`.
    pub fn parse_http_date(text: &str) -> Option<Timestamp> {
        let read = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
        Some(Timestamp(read.as_millisecond()))
    }

    /// Writes RFC 3339 in UTC.
    pub fn to_rfc3339(self) -> String {
        self.to_jiff().to_string()
    }

    pub(crate) fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0.clamp(-LATEST.0, LATEST.0)).unwrap_or(jiff::Timestamp::MAX)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_rfc3339())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_moment_agree() {
        let at = Timestamp::parse_rfc3339("2026-11-15T09:00:00.250+08:00").unwrap();
        assert_eq!(at.to_rfc3339(), "2026-11-15T01:00:00.25Z");
        assert_eq!(Timestamp::parse_rfc3339(&at.to_rfc3339()), Some(at));
        assert_eq!(Timestamp::parse_rfc3339("tomorrow"), None);
    }

    #[test]
    fn dates_of_headers_are_read() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(Timestamp::parse_http_date(date), Some(Timestamp(784_111_777_000)));
        assert_eq!(Timestamp::parse_http_date("soon"), None);
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp(5).after(10), Timestamp(15));
        assert_eq!(Timestamp(5).after(u64::MAX), LATEST);
        assert_eq!(Timestamp(5).since(Timestamp(9)), 0);
        assert_eq!(Timestamp(i64::MAX).to_rfc3339(), LATEST.to_rfc3339());
    }
}
