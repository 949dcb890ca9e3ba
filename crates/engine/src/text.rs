//! How JSON values read as text: in messages, in templates, in comparisons of strings.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde_json::Value;

/// Characters of a user's text that a message shows.
const EXCERPT_CHARS: usize = 60;

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
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Writes a value as JSON, shortened so that it fits into a message. Looks at no more of a large value than it shows.
pub fn json_excerpt(value: &Value) -> String {
    /// Takes so many bytes, and then ends the writing.
    struct JsonHead(String);
    impl fmt::Write for JsonHead {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            // A character has at most four bytes.
            const BYTES: usize = 4 * (EXCERPT_CHARS + 1);
            let room = BYTES.saturating_sub(self.0.len());
            self.0.push_str(&part[..part.floor_char_boundary(room)]);
            if part.len() > room { Err(fmt::Error) } else { Ok(()) }
        }
    }
    let mut head = JsonHead(String::new());
    // The error says that the head is full.
    let _ = match value {
        Value::String(text) => {
            let start =
                text.char_indices().nth(EXCERPT_CHARS + 1).map_or(text.as_str(), |(end, _)| &text[..end]);
            write!(head, "{}", Value::from(start))
        }
        other => write!(head, "{other}"),
    };
    excerpt(&head.0).into_owned()
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
    fn an_excerpt_of_json_begins_as_the_whole_does() {
        for value in [
            json!(null),
            json!(-7.5),
            json!("short \"quoted\""),
            json!("é".repeat(57)),
            json!("é".repeat(58)),
            json!("é".repeat(59)),
            json!("\n".repeat(1_000)),
            json!({"text": "é".repeat(1_000), "list": [1, 2]}),
            json!((0..1_000).collect::<Vec<_>>()),
        ] {
            assert_eq!(json_excerpt(&value), excerpt(&value.to_string()), "{value}");
        }
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(excerpt("short"), "short");
        assert_eq!(excerpt(&"é".repeat(61)), format!("{}…", "é".repeat(60)));
        assert_eq!(excerpt(&"é".repeat(60)), "é".repeat(60));
    }
}
