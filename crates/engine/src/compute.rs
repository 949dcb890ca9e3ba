//! Built-in operations of the dag and steps forms: pure functions of a node's resolved parameters.

use serde_json::{Map, Value, json};

use crate::input::Given;
use crate::plan::Compute;
use crate::reference::{Facts, Seg, Template, parse_path};
use crate::text::{plain, type_name};

/// The output of the operation; `Err` says which parameter is wrong.
pub fn evaluate(compute: &Compute, input: &Value, facts: &dyn Facts, given: &Given) -> Result<Value, String> {
    match compute {
        Compute::Set(entries) | Compute::Outputs(entries) => Ok(fields(entries, facts)),
        Compute::Define { .. } | Compute::Assign { .. } => Ok(json!({ "value": parameter(input, "value") })),
        Compute::TextJoin => text_join(input),
        Compute::TextSplit => text_split(input),
        Compute::JsonGet => json_get(input),
        Compute::JsonSet => json_set(input),
        Compute::TimeNow => Ok(json!({ "timestamp": given.now.0, "iso": given.now.to_rfc3339() })),
        Compute::Test(condition) => condition.holds(facts, &given.meter).map(Value::Bool),
    }
}

fn fields(entries: &[(String, Template)], facts: &dyn Facts) -> Value {
    Value::Object(entries.iter().map(|(name, template)| (name.clone(), template.resolve(facts))).collect())
}

fn parameter<'a>(input: &'a Value, name: &str) -> &'a Value {
    input.get(name).unwrap_or(&Value::Null)
}

/// The first of several names a parameter goes by.
fn named<'a>(input: &'a Value, names: &[&str]) -> &'a Value {
    names.iter().map(|name| parameter(input, name)).find(|value| !value.is_null()).unwrap_or(&Value::Null)
}

fn separator(input: &Value) -> String {
    match parameter(input, "separator") {
        Value::Null => String::new(),
        other => plain(other).into_owned(),
    }
}

fn text_join(input: &Value) -> Result<Value, String> {
    match named(input, &["texts", "list", "array"]) {
        Value::Array(items) => {
            let texts: Vec<_> = items.iter().map(plain).collect();
            let separator = separator(input);
            let bytes = texts.iter().map(|text| text.len()).sum::<usize>();
            let bytes = separator.len().saturating_mul(texts.len()).saturating_add(bytes);
            if bytes > crate::limits::SHARED_BYTES {
                return Err(format!("the joined text would have {bytes} bytes: too many"));
            }
            Ok(json!({ "text": texts.join(&separator) }))
        }
        other => Err(format!("`texts` must be an array, not {}", type_name(other))),
    }
}

fn text_split(input: &Value) -> Result<Value, String> {
    let text = match parameter(input, "text") {
        value @ (Value::Array(_) | Value::Object(_)) => {
            return Err(format!("`text` must be a string, not {}", type_name(value)));
        }
        value => plain(value).into_owned(),
    };
    let separator = separator(input);
    let parts: Vec<Value> = if separator.is_empty() {
        text.chars().map(|c| Value::String(c.into())).collect()
    } else {
        text.split(separator.as_str()).map(|part| Value::String(part.to_owned())).collect()
    };
    Ok(json!({ "list": parts }))
}

/// JSON that may also be given as its text.
fn document(input: &Value) -> Result<Value, String> {
    match parameter(input, "json") {
        Value::String(text) => {
            serde_json::from_str(text).map_err(|error| format!("`json` is not JSON: {error}"))
        }
        other => Ok(other.clone()),
    }
}

fn place(input: &Value) -> Result<Vec<Seg>, String> {
    match named(input, &["key", "path"]) {
        Value::String(text) if !text.is_empty() => parse_path(text),
        other => Err(format!("`key` must name a field, such as `a.b[0]`, not {}", type_name(other))),
    }
}

fn json_get(input: &Value) -> Result<Value, String> {
    let document = document(input)?;
    let found = crate::reference::dig(&document, &place(input)?);
    Ok(json!({ "value": found.cloned().unwrap_or(Value::Null) }))
}

fn json_set(input: &Value) -> Result<Value, String> {
    let mut document = document(input)?;
    let mut at = &mut document;
    for seg in place(input)? {
        at = match seg {
            Seg::Key(key) => {
                if at.is_null() {
                    *at = Value::Object(Map::new());
                }
                let found = type_name(at);
                let Value::Object(fields) = at else { return Err(format!("`{key}` is no field of {found}")) };
                fields.entry(key).or_insert(Value::Null)
            }
            Seg::Index(index) => {
                let found = type_name(at);
                let Value::Array(items) = at else { return Err(format!("[{index}] is no item of {found}")) };
                let n = items.len();
                items
                    .get_mut(index)
                    .ok_or_else(|| format!("[{index}] is past the end: there are {n} items"))?
            }
        };
    }
    *at = parameter(input, "value").clone();
    Ok(json!({ "json": document }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use std::borrow::Cow;

    struct Nothing;

    impl Facts for Nothing {
        fn root(&self, _: &crate::reference::Root) -> Option<Cow<'_, Value>> {
            None
        }

        fn field(&self, _: &crate::reference::Root, _: &str) -> Option<Cow<'_, Value>> {
            None
        }
    }

    fn run(compute: &Compute, input: Value) -> Result<Value, String> {
        evaluate(compute, &input, &Nothing, &Given::at(Timestamp(1_000)))
    }

    #[test]
    fn texts_are_joined_and_split() {
        let joined = run(&Compute::TextJoin, json!({"texts": ["a", 1, null], "separator": "-"}));
        assert_eq!(joined, Ok(json!({"text": "a-1-"})));
        assert_eq!(
            run(&Compute::TextSplit, json!({"text": "a,b", "separator": ","})),
            Ok(json!({"list": ["a", "b"]}))
        );
        assert_eq!(run(&Compute::TextSplit, json!({"text": "ab"})), Ok(json!({"list": ["a", "b"]})));
        assert!(run(&Compute::TextJoin, json!({"texts": "a"})).unwrap_err().contains("must be an array"));
    }

    #[test]
    fn json_is_read_and_written_by_path() {
        let input = json!({"json": {"a": [{"b": 7}]}, "key": "a[0].b"});
        assert_eq!(run(&Compute::JsonGet, input), Ok(json!({"value": 7})));
        let input = json!({"json": "{\"a\": 1}", "key": "b.c", "value": 2});
        assert_eq!(run(&Compute::JsonSet, input), Ok(json!({"json": {"a": 1, "b": {"c": 2}}})));
        let input = json!({"json": {"a": [1]}, "key": "a[3]", "value": 2});
        assert!(run(&Compute::JsonSet, input).unwrap_err().contains("past the end"));
        let input = json!({"json": "{", "key": "a"});
        assert!(run(&Compute::JsonGet, input).unwrap_err().contains("not JSON"));
    }

    #[test]
    fn the_time_is_the_argument() {
        let now = run(&Compute::TimeNow, json!({})).unwrap();
        assert_eq!(now, json!({"timestamp": 1000, "iso": "1970-01-01T00:00:01Z"}));
    }
}
