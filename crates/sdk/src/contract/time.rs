//! Times on the wire: RFC 3339 in UTC, to the millisecond.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::ToSchema;

/// A moment, in milliseconds since 1970-01-01T00:00:00Z; RFC 3339 text on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, ToSchema)]
#[schema(value_type = String, format = DateTime, example = "2026-11-15T09:00:00.250Z")]
pub struct Time(pub i64);

/// The text was no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no RFC 3339 moment such as 2026-11-15T09:00:00Z")]
pub struct TimeError(String);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extreme = if self.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        let moment = jiff::Timestamp::from_millisecond(self.0).unwrap_or(extreme);
        write!(f, "{moment:.3}")
    }
}

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let moment = text.trim().parse::<jiff::Timestamp>();
        moment
            .map(|moment| Time(moment.as_millisecond()))
            .map_err(|_| TimeError(text.chars().take(80).collect()))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_text_to_the_millisecond() {
        let at: Time = "2026-11-15T09:00:00.25+08:00".parse().unwrap();
        assert_eq!(serde_json::to_string(&at).unwrap(), r#""2026-11-15T01:00:00.250Z""#);
        assert_eq!(at.to_string().parse(), Ok(at));
        assert!("tomorrow".parse::<Time>().is_err());
        assert!(serde_json::from_str::<Time>("5").is_err());
    }

    #[test]
    fn no_number_is_too_large_to_be_written() {
        assert!(Time(i64::MAX).to_string().starts_with("9999-"));
        assert!(Time(i64::MIN).to_string().starts_with("-009999-"));
        assert_eq!(Time(0).to_string(), "1970-01-01T00:00:00.000Z");
    }
}
