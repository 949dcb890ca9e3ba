//! JSON that a person gives: in a file, by stdin or as an argument. Text is refused that two readers could understand
//! differently, or whose numbers would change before the server sees them.

use anyhow::{Result, anyhow};
use serde_json::Value;
use windlass_engine::json::check_meaning;

/// Reads JSON in which no key is given twice and no integer changes.
pub(crate) fn read_json(text: &[u8]) -> Result<Value> {
    let value = serde_json::from_slice(text)?;
    check_meaning(text).map_err(|flaw| anyhow!("{flaw}"))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_would_change_is_refused_with_its_place() {
        let refused = |text: &str| read_json(text.as_bytes()).expect_err(text).to_string();
        assert!(refused(r#"{"a": {"b": 123456789012345678901234}}"#).contains("a.b: the integer"));
        assert!(refused(r#"{"a": 1, "a": 2}"#).contains("twice"));
        assert!(read_json(br#"{"a": 18446744073709551615}"#).is_ok());
    }
}
