//! How JSON values read as text: in messages, in templates, in comparisons of strings.

use std::borrow::Cow;

use serde_json::Value;

/// Names the type of a value as messages do.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Names the type of a value with its article: `a string`, `an array`, `null`.
pub fn a_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Writes a value as text: strings as they are, null as nothing, all else as compact JSON.
pub fn plain(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(s) => Cow::Borrowed(s),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Cow::Owned(value.to_string())
        }
    }
}

/// Shortens a user's text so that it fits into a message.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    const CHARS: usize = 60;
    match text.char_indices().nth(CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_read_as_people_write_them() {
        assert_eq!(plain(&json!(null)), "");
        assert_eq!(plain(&json!("a \"b\"")), "a \"b\"");
        assert_eq!(plain(&json!(7)), "7");
        assert_eq!(plain(&json!(7.5)), "7.5");
        assert_eq!(plain(&json!({"a": [1, "x"]})), r#"{"a":[1,"x"]}"#);
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(excerpt("short"), "short");
        assert_eq!(excerpt(&"é".repeat(61)), format!("{}…", "é".repeat(60)));
        assert_eq!(excerpt(&"é".repeat(60)), "é".repeat(60));
    }
}
