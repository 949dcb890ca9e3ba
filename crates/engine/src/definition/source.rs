//! Text to value: JSON or YAML, told apart by looking. A key given twice is an error in both, because silently
//! keeping one of two nodes of the same name would run a flow that its author did not write.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::reader::shown;
use crate::json::JsonFlawKind;
use crate::limits;
use crate::problem::{Problem, Severity};

/// Levels of nesting in the text; serde_json stops at the same depth.
pub(super) const NESTING: usize = 128;
/// Digits of the shortest integer that 64 bits may not hold.
const DIGITS_MIN: usize = 19;

/// Reads a definition's text. JSON that is slightly off (a comment, a trailing comma) may still be YAML.
pub(super) fn parse(text: &str) -> Result<Value, Problem> {
    if text.len() > limits::DEFINITION_BYTES {
        let reason = format!(
            "the definition has {} bytes; at most {} are allowed",
            text.len(),
            limits::DEFINITION_BYTES
        );
        return Err(problem("$".to_owned(), reason));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(problem("$".to_owned(), "the definition is empty".to_owned()));
    }
    let value = if text.trim_start().starts_with(['{', '[']) {
        match serde_json::from_str::<Unique>(text) {
            Ok(value) => value.0,
            Err(error) => parse_yaml(text).map_err(|_| json_problem(&error))?,
        }
    } else {
        parse_yaml(text)?
    };
    match large_integer(&value, &large_integers(text), "$") {
        None => Ok(value),
        Some(path) => Err(problem(path, JsonFlawKind::LargeInteger.to_string())),
    }
}

/// Integers of a text that no 64 bits hold, as the floats that parsers make of them.
fn large_integers(text: &str) -> Vec<f64> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_')));
    let is_integer = |word: &&str| {
        let digits = word.trim_start_matches(['-', '+']);
        digits.len() >= DIGITS_MIN && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    let is_large = |word: &String| word.parse::<i64>().is_err() && word.parse::<u64>().is_err();
    let plain = words.filter(is_integer).map(|word| word.replace('_', ""));
    plain.filter(is_large).filter_map(|word| word.parse().ok()).collect()
}

/// The place of the first of these in a value.
fn large_integer(value: &Value, large: &[f64], path: &str) -> Option<String> {
    if large.is_empty() {
        return None;
    }
    match value {
        Value::Number(number) if number.is_f64() => {
            let is_one = |one: &f64| number.as_f64().is_some_and(|float| float.to_bits() == one.to_bits());
            large.iter().any(is_one).then(|| path.to_owned())
        }
        Value::Array(items) => {
            items.iter().zip(0..).find_map(|(item, n)| large_integer(item, large, &format!("{path}[{n}]")))
        }
        Value::Object(fields) => {
            fields.iter().find_map(|(key, field)| large_integer(field, large, &format!("{path}.{key}")))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn parse_yaml(text: &str) -> Result<Value, Problem> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        // `no` is a country and `on` a field name before they are booleans.
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: NESTING,
            flow_nesting_limit: NESTING,
            max_documents: 1,
            max_aliases: 1_000,
            max_anchors: 1_000,
            // Counts repetitions through aliases, so a value is never much larger than its text could have been.
            max_total_scalar_bytes: 2 * limits::DEFINITION_BYTES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
            max_replay_stack_depth: 16,
        },
    };
    let read = serde_saphyr::from_str_with_options::<Unique>(text, options);
    read.map(|value| value.0).map_err(|error| {
        let place = match error.location() {
            Some(at) => format!("line {} column {}", at.line(), at.column()),
            None => "$".to_owned(),
        };
        let words = error.without_snippet().to_string();
        let cause = words.split(" at line ").next().unwrap_or_default();
        let reason = match cause {
            deep if deep.contains("Depth {") => format!("nested deeper than {NESTING} levels"),
            large if large.starts_with("budget breached") => "too many values, anchors or aliases".to_owned(),
            other => format!("not valid YAML: {}", first_line(other)),
        };
        problem(place, reason)
    })
}

fn json_problem(error: &serde_json::Error) -> Problem {
    let words = error.to_string();
    let reason = if words.starts_with("recursion limit exceeded") {
        format!("nested deeper than {NESTING} levels")
    } else {
        let cause = words.split(" at line ").next().unwrap_or_default();
        format!("not valid JSON: {}", first_line(cause))
    };
    problem(format!("line {} column {}", error.line(), error.column()), reason)
}

fn first_line(words: &str) -> String {
    shown(words.lines().next().unwrap_or_default().trim().trim_end_matches('.'))
}

fn problem(path: String, reason: String) -> Problem {
    Problem { path, reason, hint: None, severity: Severity::Error }
}

/// The weight of a value that was not read from text, if it is within the limits of a text.
pub(super) fn weigh(value: &Value) -> Result<(), Problem> {
    let mut bytes = 0_usize;
    let mut todo = vec![(value, 1_usize)];
    while let Some((value, depth)) = todo.pop() {
        if depth > NESTING {
            return Err(problem("$".to_owned(), format!("nested deeper than {NESTING} levels")));
        }
        bytes = bytes.saturating_add(match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 4,
            Value::String(text) => text.len().saturating_add(2),
            Value::Array(items) => {
                todo.extend(items.iter().map(|item| (item, depth + 1)));
                2
            }
            Value::Object(fields) => {
                todo.extend(fields.values().map(|field| (field, depth + 1)));
                fields.keys().map(|key| key.len().saturating_add(3)).sum::<usize>().saturating_add(2)
            }
        });
        if bytes > limits::DEFINITION_BYTES {
            let reason = format!("the definition has more than {} bytes", limits::DEFINITION_BYTES);
            return Err(problem("$".to_owned(), reason));
        }
    }
    Ok(())
}

/// A value in which no object has a key twice.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Unique)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::from(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(Value::from(v))
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<Value, E> {
        Number::from_f64(v).map(Value::Number).ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::String(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(Value::String(v))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{}` is given twice", shown(&key))));
            }
            let Unique(value) = fields.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_and_yaml_give_the_same_value() {
        let yaml = "form: dag\nnodes:\n  - id: a\n    type: start\n    config: {n: 3, no: no}\n";
        let json = r#"{"form":"dag","nodes":[{"id":"a","type":"start","config":{"n":3,"no":"no"}}]}"#;
        assert_eq!(parse(yaml).unwrap(), parse(json).unwrap());
    }

    #[test]
    fn a_key_given_twice_is_an_error_in_both() {
        let json = parse("{\n  \"a\": 1,\n  \"a\": 2\n}").unwrap_err();
        assert!(json.reason.contains("`a` is given twice"), "{json}");
        assert!(json.path.starts_with("line 3 "), "{json}");
        let yaml = parse("a: 1\nb: 2\na: 3\n").unwrap_err();
        assert!(yaml.path.starts_with("line 3"), "{yaml}");
    }

    #[test]
    fn an_integer_that_no_64_bits_hold_is_an_error_in_both() {
        for text in [
            r#"{"a": [{"b": 123456789012345678901234}]}"#,
            "a:\n  - b: 123456789012345678901234\n",
            "a: [{b: -9223372036854775809}]",
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.path, "$.a[0].b", "{text}: {error}");
            assert!(error.reason.contains("does not fit into 64 bits"), "{error}");
        }
        for text in [
            r#"{"a": 18446744073709551615, "b": -9223372036854775808, "c": 1.5e300}"#,
            "a: 18446744073709551615\nb: '123456789012345678901234'\nc: 1.5e+300\n",
        ] {
            parse(text).unwrap();
        }
    }

    #[test]
    fn broken_text_names_line_and_column() {
        let json = parse("{\"a\": [1, 2}").unwrap_err();
        assert!(json.path.starts_with("line 1 column"), "{json}");
        let yaml = parse("a:\n  - b\n c: d\n").unwrap_err();
        assert!(yaml.path.starts_with("line "), "{yaml}");
    }

    #[test]
    fn deep_text_is_refused_without_recursion_trouble() {
        let json = parse(&("[".repeat(100_000))).unwrap_err();
        assert_eq!(json.reason, "nested deeper than 128 levels");
        let block: String = (0..2_000).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
        assert_eq!(parse(&block).unwrap_err().reason, "nested deeper than 128 levels");
    }

    #[test]
    fn alias_bombs_are_refused_quickly() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..12 {
            let last = format!("*a{}, ", i - 1).repeat(9);
            text.push_str(&format!("a{i}: &a{i} [{}]\n", last.trim_end_matches(", ")));
        }
        assert!(parse(&text).is_err());
        assert!(parse("a: &a [*a]\n").is_err());
        let large = format!("a: &a {}\nb: [{}*a]\n", "x".repeat(1 << 20), "*a, ".repeat(500));
        assert!(parse(&large).unwrap_err().reason.contains("aliases"));
    }

    #[test]
    fn large_text_is_refused_before_it_is_parsed() {
        let problem = parse(&"x".repeat(limits::DEFINITION_BYTES + 1)).unwrap_err();
        assert!(problem.reason.contains("at most"), "{problem}");
        assert!(parse("  \n").unwrap_err().reason.contains("empty"));
    }

    #[test]
    fn values_are_weighed_like_text() {
        let mut deep = json!(1);
        for _ in 0..200 {
            deep = json!([deep]);
        }
        assert!(weigh(&deep).unwrap_err().reason.contains("128"));
        assert!(weigh(&json!({"a": [1, {"b": "c"}]})).is_ok());
        assert!(weigh(&Value::String("x".repeat(limits::DEFINITION_BYTES))).is_err());
    }
}
