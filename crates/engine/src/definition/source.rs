//! Text to value: JSON or YAML, told apart by looking. A key given twice is an error in both, because silently
//! keeping one of two nodes of the same name would run a flow that its author did not write. Values are counted while
//! they are built: text whose values would take many times its bytes is refused.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::reader::shown;
use crate::json::{BLOCK_BYTES, FIELD_BYTES, JsonFlawKind, OBJECT_BYTES, VALUE_BYTES, check_meaning};
use crate::limits;
use crate::problem::{Problem, Severity};

/// Levels of nesting in the text; serde_json stops at the same depth.
pub(super) const NESTING: usize = 128;
/// Digits of the shortest integer that 64 bits may not hold.
const DIGITS_MIN: usize = 19;
/// The values of a short text take at most this many times its bytes, however densely it is written ...
const SHORT_TREE_TIMES: usize = 200;
/// ... or this many bytes, because aliases repeat values.
const SHORT_TREE_BYTES: usize = 1 << 20;
/// Values and keys of a YAML text, aliases repeated: more than the largest definition has.
const YAML_NODES: usize = 250_000;

/// The bytes that the values of a text may take. A plan takes as much again, so long texts may not be as dense as bodies.
pub(super) fn tree_bytes(text: &str) -> usize {
    dense_bytes(text.len()).max(SHORT_TREE_BYTES)
}

/// The bytes that the values of a text of this length may take without aliases.
pub(super) fn dense_bytes(text_bytes: usize) -> usize {
    limits::TREE_BYTES.min(text_bytes.saturating_mul(SHORT_TREE_TIMES))
}

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
        let meter = TreeMeter::new(tree_bytes(text));
        match parse_json(text, &meter) {
            Ok(value) => value,
            Err(_) if meter.is_exceeded() => return Err(meter.problem()),
            Err(error) => {
                let meter = TreeMeter::new(tree_bytes(text));
                let read = parse_yaml(text, &meter);
                read.map_err(|other| if meter.is_exceeded() { other } else { json_problem(text, &error) })?
            }
        }
    } else {
        parse_yaml(text, &TreeMeter::new(tree_bytes(text)))?
    };
    let large = large_integers(text);
    if large.is_empty() {
        return Ok(value);
    }
    match path_of(&value, &mut |float| large.contains(&float.to_bits())) {
        None => Ok(value),
        Some(path) => Err(problem(format!("${path}"), JsonFlawKind::LargeInteger.to_string())),
    }
}

/// Integers of a text that no 64 bits hold, as the bits of the floats that parsers make of them.
fn large_integers(text: &str) -> BTreeSet<u64> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_')));
    let is_integer = |word: &&str| {
        let digits = word.trim_start_matches(['-', '+']);
        digits.len() >= DIGITS_MIN && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    let is_large = |word: &String| word.parse::<i64>().is_err() && word.parse::<u64>().is_err();
    let plain = words.filter(is_integer).map(|word| word.replace('_', ""));
    plain.filter(is_large).filter_map(|word| word.parse().ok()).map(f64::to_bits).collect()
}

/// The place of the first float that is one of those looked for. Each float is looked up once, and only the place that
/// is found is written.
fn path_of(value: &Value, is_one: &mut impl FnMut(f64) -> bool) -> Option<String> {
    match value {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().filter(|float| is_one(*float)).map(|_| String::new())
        }
        Value::Array(items) => {
            let found = items.iter().enumerate().find_map(|(n, item)| Some((n, path_of(item, is_one)?)));
            found.map(|(n, path)| format!("[{n}]{path}"))
        }
        Value::Object(fields) => {
            let found = fields.iter().find_map(|(key, field)| Some((key, path_of(field, is_one)?)));
            found.map(|(key, path)| format!(".{key}{path}"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn parse_json(text: &str, meter: &TreeMeter) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = UniqueSeed(meter).deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

fn parse_yaml(text: &str, meter: &TreeMeter) -> Result<Value, Problem> {
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
            max_nodes: YAML_NODES,
            // Counts repetitions through aliases, so a value is never much larger than its text could have been.
            max_total_scalar_bytes: 2 * limits::DEFINITION_BYTES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
            max_replay_stack_depth: 16,
        },
    };
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| {
        UniqueSeed(meter).deserialize(reader)
    });
    read.map_err(|error| {
        if meter.is_exceeded() {
            return meter.problem();
        }
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

fn json_problem(text: &str, error: &serde_json::Error) -> Problem {
    let words = error.to_string();
    let reason = if words.starts_with("recursion limit exceeded") {
        // The check stops at the same depth, and knows where it is.
        let flaw = check_meaning(text.as_bytes()).err();
        let place = flaw.map(|flaw| format!(" at {}{}", flaw.path, flaw.remedy()));
        format!("nested deeper than {NESTING} levels{}", place.unwrap_or_default())
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

/// The bytes that values may still take, counted like [`crate::json::check_json`] counts them.
struct TreeMeter {
    most: usize,
    n_bytes: Cell<usize>,
}

impl TreeMeter {
    fn new(most: usize) -> Self {
        TreeMeter { most, n_bytes: Cell::new(0) }
    }

    fn add<E: Error>(&self, n_bytes: usize) -> Result<(), E> {
        self.n_bytes.set(self.n_bytes.get().saturating_add(n_bytes));
        if self.is_exceeded() { Err(E::custom(JsonFlawKind::Heavy(self.most))) } else { Ok(()) }
    }

    fn is_exceeded(&self) -> bool {
        self.n_bytes.get() > self.most
    }

    fn problem(&self) -> Problem {
        problem("$".to_owned(), JsonFlawKind::Heavy(self.most).to_string())
    }
}

/// Reads a value in which no object has a key twice, within the bytes of the meter.
#[derive(Clone, Copy)]
struct UniqueSeed<'m>(&'m TreeMeter);

impl<'de> DeserializeSeed<'de> for UniqueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, v: bool) -> Result<Value, E> {
        self.0.add(VALUE_BYTES)?;
        Ok(Value::Bool(v))
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<Value, E> {
        self.0.add(VALUE_BYTES)?;
        Ok(Value::from(v))
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<Value, E> {
        self.0.add(VALUE_BYTES)?;
        Ok(Value::from(v))
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<Value, E> {
        self.0.add(VALUE_BYTES)?;
        Number::from_f64(v).map(Value::Number).ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<Value, E> {
        self.visit_string(v.to_owned())
    }

    fn visit_string<E: Error>(self, v: String) -> Result<Value, E> {
        self.0.add(VALUE_BYTES + BLOCK_BYTES + v.len())?;
        Ok(Value::String(v))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.0.add(VALUE_BYTES)?;
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.0.add(VALUE_BYTES + BLOCK_BYTES)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        self.0.add(VALUE_BYTES + BLOCK_BYTES)?;
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{}` is given twice", shown(&key))));
            }
            let object_bytes = if map.is_empty() { OBJECT_BYTES } else { 0 };
            // The value of the field adds its own bytes.
            self.0.add(object_bytes + FIELD_BYTES - VALUE_BYTES + BLOCK_BYTES + key.len())?;
            let value = fields.next_value_seed(self)?;
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
    fn each_float_is_looked_up_once_however_many_large_integers_there_are() {
        let floats: Vec<Value> = (0..10_000).map(|n| json!({ "f": f64::from(n) + 0.5, "n": n })).collect();
        let mut n_looks = 0;
        let found = path_of(&json!({ "list": floats }), &mut |float| {
            n_looks += 1;
            float == 8_000.5
        });
        assert_eq!((found.as_deref(), n_looks), (Some(".list[8000].f"), 8_001));
        let text: String = (0..10_000_u64)
            .map(|n| format!("'{}' ", u128::from(u64::MAX) + 1 + u128::from(n % 10)))
            .collect();
        assert_eq!(large_integers(&text).len(), 1, "integers that become the same float are one");
    }

    #[test]
    fn text_whose_values_take_many_times_its_bytes_is_refused() {
        let filled = |begin: &str, item: &str, end: &str| {
            format!("{begin}{}{end}", item.repeat((3 << 20) / item.len()))
        };
        for text in [
            filled("[", "{\"a\":0},", "0]"),
            filled("{\"form\":[", "[],", "0]}"),
            filled("[", "{a: 0},", "0]"),
            filled("- 0\n", "- a:\n", ""),
            filled("", "- 0\n", ""),
        ] {
            let problem = parse(&text).unwrap_err();
            let is_bounded =
                problem.reason.contains("bytes of memory") || problem.reason.contains("too many values");
            assert!(is_bounded, "{}: {problem}", &text[..20]);
        }
        assert!(
            parse(&filled(
                "[",
                "\"a text of many more letters than a value has bytes, by far and away\",",
                "0]"
            ))
            .is_ok()
        );
        assert!(parse(&format!("[{}0]", "{a: 0},".repeat(2_000))).is_ok(), "short texts may be dense");
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
        assert!(json.reason.starts_with("nested deeper than 128 levels at [0][0]"), "{}", json.reason);
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
