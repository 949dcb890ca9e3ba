//! Limits of texts and numbers in requests: each refusal names the place.

use std::collections::BTreeMap;

use windlass_engine::limits::NAME_BYTES;

use crate::audit;
use crate::problem::{ApiError, ApiResult, Code};

/// Bytes of a text for people: descriptions and notes, not documents.
const TEXT_BYTES: usize = 64 << 10;
/// Labels of one thing.
const LABELS: usize = 64;

/// A name: there, and not too long.
pub(crate) fn name(path: &str, text: &str) -> ApiResult<()> {
    let reason = match text {
        "" => "it is empty: give a name".to_owned(),
        text if text.len() > NAME_BYTES => format!("it is longer than {NAME_BYTES} bytes: shorten it"),
        text if text.chars().any(char::is_control) => "it has control characters: leave them out".to_owned(),
        _ => return Ok(()),
    };
    Err(ApiError::field(Code::InvalidBody, path, reason))
}

/// A name that people compare with others: it hides no characters.
pub(crate) fn visible_name(path: &str, text: &str) -> ApiResult<()> {
    name(path, text)?;
    if text.trim() != text || text.chars().any(audit::is_hidden) {
        let reason = "it has spaces around it or invisible characters: leave them out";
        return Err(ApiError::field(Code::InvalidBody, path, reason));
    }
    Ok(())
}

/// A name that may be absent.
pub(crate) fn name_if_given(path: &str, text: Option<&str>) -> ApiResult<()> {
    text.map_or(Ok(()), |text| name(path, text))
}

/// A text for people.
pub(crate) fn text(path: &str, text: &str) -> ApiResult<()> {
    if text.len() > TEXT_BYTES {
        return Err(ApiError::field(
            Code::InvalidBody,
            path,
            format!("it is longer than {TEXT_BYTES} bytes: shorten it"),
        ));
    }
    Ok(())
}

/// Labels: few, and short.
pub(crate) fn labels(labels: &BTreeMap<String, String>) -> ApiResult<()> {
    if labels.len() > LABELS {
        return Err(ApiError::field(
            Code::InvalidBody,
            "labels",
            format!("there are more than {LABELS}: give fewer"),
        ));
    }
    for (key, value) in labels {
        name("labels", key)?;
        if value.len() > NAME_BYTES {
            let path = format!("labels.{key}");
            return Err(ApiError::field(
                Code::InvalidBody,
                path,
                format!("it is longer than {NAME_BYTES} bytes: shorten it"),
            ));
        }
    }
    Ok(())
}

/// Words for a worker whose id another one has now.
pub(crate) fn taken_id(worker: &str) -> String {
    let worker: String = worker.chars().take(80).collect();
    format!("another worker registered `{worker}` from another address: give each worker an id of its own")
}

/// A number that must be within a range.
pub(crate) fn within<N: PartialOrd + std::fmt::Display + Copy>(
    path: &str,
    given: N,
    from: N,
    to: N,
) -> ApiResult<N> {
    if given < from || given > to {
        return Err(ApiError::field(
            Code::InvalidBody,
            path,
            format!("{given} is not within {from} to {to}"),
        ));
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_there_and_short_and_plain() {
        assert!(name("name", "größe 🚀").is_ok());
        for bad in ["", "a\nb", "a\0", &"x".repeat(256)] {
            assert_eq!(name("name", bad).unwrap_err().code(), Code::InvalidBody, "{bad:?}");
        }
    }

    #[test]
    fn labels_are_few_and_short() {
        let many = (0..=LABELS).map(|n| (n.to_string(), String::new())).collect();
        assert!(labels(&many).is_err());
        assert!(labels(&BTreeMap::from([(String::new(), "a".to_owned())])).is_err());
        assert!(labels(&BTreeMap::from([("a".to_owned(), "x".repeat(256))])).is_err());
        assert!(labels(&BTreeMap::from([("a".to_owned(), String::new())])).is_ok());
    }

    #[test]
    fn a_number_outside_its_range_is_named() {
        assert_eq!(within("max", 1_000, 1, 1_000).unwrap(), 1_000);
        assert_eq!(within("max", 0, 1, 1_000).unwrap_err().problem().errors[0].path, "max");
    }
}
