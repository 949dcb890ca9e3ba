//! Templates: how each form writes values with references in them, and how they become values again.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::parse::{known_root, parse_dollar, parse_variable};
use super::{Facts, Piece, Ref, Template};
use crate::text::{excerpt, plain};

/// Depth of arrays and objects in a template: the limit of JSON readers.
const DEPTH: usize = 128;

impl Template {
    /// Reads a value of an `input_map`: a string that starts with `$` is a reference, all else stands for itself.
    pub fn from_input_map(value: &Value) -> Result<Template, String> {
        match value.as_str().and_then(parse_dollar) {
            Some(reference) => reference.map(Template::Ref),
            None => Ok(literal(value)),
        }
    }

    /// Reads a value of the dag form, at any depth: a string that is a reference as a whole is one. Other strings
    /// that start with `$`, such as prices, stand for themselves.
    pub fn from_dag(value: &Value) -> Result<Template, String> {
        Ok(read(value, &dag_text, &mut Vec::new())?.unwrap_or_else(|| literal(value)))
    }

    /// Reads a value of the steps form, at any depth: `{{ … }}` inside strings are references.
    pub fn from_steps(value: &Value) -> Result<Template, String> {
        Ok(read(value, &steps_text, &mut Vec::new())?.unwrap_or_else(|| literal(value)))
    }

    /// Makes the value: references become the values they point at, missing ones null (empty, inside text).
    pub fn resolve(&self, facts: &dyn Facts) -> Value {
        match self {
            Template::Literal(value) => value.clone(),
            Template::Ref(reference) => reference.resolve(facts).into_owned(),
            Template::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Text(part) => text.push_str(part),
                        Piece::Ref(reference) => text.push_str(&plain(&reference.resolve(facts))),
                    }
                }
                Value::String(text)
            }
            Template::Array(items) => Value::Array(items.iter().map(|item| item.resolve(facts)).collect()),
            Template::Object(fields) => Value::Object(
                fields.iter().map(|(key, field)| (key.clone(), field.resolve(facts))).collect::<Map<_, _>>(),
            ),
        }
    }

    /// As `resolve`, but borrows values that need not be made.
    pub fn look<'a>(&'a self, facts: &'a dyn Facts) -> Cow<'a, Value> {
        match self {
            Template::Literal(value) => Cow::Borrowed(value),
            Template::Ref(reference) => reference.resolve(facts),
            Template::Text(_) | Template::Array(_) | Template::Object(_) => Cow::Owned(self.resolve(facts)),
        }
    }

    /// Every reference in it, in the order in which they stand.
    pub fn refs(&self) -> Vec<&Ref> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found
    }

    /// Whether it is the same value for all facts.
    pub fn is_literal(&self) -> bool {
        match self {
            Template::Literal(_) => true,
            Template::Ref(_) => false,
            Template::Text(pieces) => pieces.iter().all(|piece| matches!(piece, Piece::Text(_))),
            Template::Array(items) => items.iter().all(Template::is_literal),
            Template::Object(fields) => fields.values().all(Template::is_literal),
        }
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a Ref>) {
        match self {
            Template::Literal(_) => {}
            Template::Ref(reference) => found.push(reference),
            Template::Text(pieces) => found.extend(pieces.iter().filter_map(|piece| match piece {
                Piece::Text(_) => None,
                Piece::Ref(reference) => Some(reference),
            })),
            Template::Array(items) => items.iter().for_each(|item| item.collect(found)),
            Template::Object(fields) => fields.values().for_each(|field| field.collect(found)),
        }
    }
}

/// Reads one string; `None` if it stands for itself.
type ReadText = dyn Fn(&str) -> Result<Option<Template>, String>;

/// Reads a value with `text` for its strings; `None` if it stands for itself, so that a value without references is
/// copied once, as one literal, however large. `place` is where it stands inside the outermost value.
fn read(value: &Value, text: &ReadText, place: &mut Vec<String>) -> Result<Option<Template>, String> {
    if place.len() > DEPTH {
        return Err(format!("values nest deeper than {DEPTH}: flatten the value"));
    }
    match value {
        Value::String(s) => text(s).map_err(|reason| match place.is_empty() {
            true => reason,
            false => format!("at `{}`: {reason}", place.concat().trim_start_matches('.')),
        }),
        Value::Array(items) => {
            let mut found = BTreeMap::new();
            for (index, item) in items.iter().enumerate() {
                place.push(format!("[{index}]"));
                if let Some(template) = read(item, text, place)? {
                    found.insert(index, template);
                }
                place.pop();
            }
            if found.is_empty() {
                return Ok(None);
            }
            let read_item = |(index, item)| found.remove(&index).unwrap_or_else(|| literal(item));
            Ok(Some(Template::Array(items.iter().enumerate().map(read_item).collect())))
        }
        Value::Object(fields) => {
            let mut found = BTreeMap::new();
            for (key, field) in fields {
                place.push(format!(".{}", excerpt(key)));
                if let Some(template) = read(field, text, place)? {
                    found.insert(key.clone(), template);
                }
                place.pop();
            }
            if found.is_empty() {
                return Ok(None);
            }
            for (key, field) in fields {
                found.entry(key.clone()).or_insert_with(|| literal(field));
            }
            Ok(Some(Template::Object(found)))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(None),
    }
}

fn literal(value: &Value) -> Template {
    Template::Literal(value.clone())
}

fn dag_text(text: &str) -> Result<Option<Template>, String> {
    match known_root(text).and_then(|_| parse_dollar(text)) {
        Some(reference) => reference.map(|reference| Some(Template::Ref(reference))),
        None => Ok(None),
    }
}

fn steps_text(text: &str) -> Result<Option<Template>, String> {
    let mut pieces = Vec::new();
    let mut plain_text = String::new();
    let mut at = 0;
    while let Some(open) = text[at..].find("{{") {
        let open = at + open;
        plain_text.push_str(&text[at..open]);
        let (mark, close) = match text[open..].starts_with("{{{") {
            true => ("{{{", "}}}"),
            false => ("{{", "}}"),
        };
        let start = open + mark.len();
        let fault = |reason: &str| {
            let place = text[..open].chars().count() + 1;
            format!("{reason} at character {place} of `{}`", excerpt(text))
        };
        let Some(length) = text[start..].find(close) else {
            return Err(fault(&format!("`{mark}` has no `{close}`")));
        };
        let inside = &text[start..start + length];
        at = start + length + close.len();
        if mark == "{{{" {
            plain_text.push_str("{{");
            plain_text.push_str(inside);
            plain_text.push_str("}}");
            continue;
        }
        if inside.trim().is_empty() {
            return Err(fault("nothing stands between `{{` and `}}`"));
        }
        let reference = parse_variable(inside.trim()).map_err(|reason| fault(&format!("{reason},")))?;
        if !plain_text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain_text)));
        }
        pieces.push(Piece::Ref(reference));
    }
    if at == 0 {
        return Ok(None);
    }
    plain_text.push_str(&text[at..]);
    if !plain_text.is_empty() {
        pieces.push(Piece::Text(plain_text));
    }
    Ok(Some(match pieces.as_slice() {
        [Piece::Ref(reference)] => Template::Ref(reference.clone()),
        [Piece::Text(escaped)] => Template::Literal(Value::String(escaped.clone())),
        _ => Template::Text(pieces),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::TestFacts;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn world() -> TestFacts {
        TestFacts(json!({
            "params": {"n": 7, "list": [1, 2]},
            "shared": {"name": "Ada", "yes": true},
            "node": {"3-1": {"output": {"id": 12, "tags": ["a"]}}},
        }))
    }

    #[track_caller]
    fn check_steps(value: Value, expected: Value) {
        assert_eq!(Template::from_steps(&value).unwrap().resolve(&world()), expected, "{value}");
    }

    #[test]
    fn an_input_map_refers_with_dollars_only_at_the_top() {
        let resolve =
            |value: Value| Template::from_input_map(&value).map(|template| template.resolve(&world()));
        assert_eq!(resolve(json!("$params.n")), Ok(json!(7)));
        assert_eq!(resolve(json!("plain")), Ok(json!("plain")));
        assert_eq!(resolve(json!(["$params.n"])), Ok(json!(["$params.n"])));
        assert!(resolve(json!("$5.00")).is_err());
    }

    #[test]
    fn the_dag_form_refers_at_any_depth() {
        let value = json!({"a": ["$var.name", "$5.00", {"b": "$node.3-1.output.id"}], "c": "Hi $var.name", "d": null});
        let template = Template::from_dag(&value).unwrap();
        let made = json!({"a": ["Ada", "$5.00", {"b": 12}], "c": "Hi $var.name", "d": null});
        assert_eq!(template.resolve(&world()), made);
        assert_eq!(template.refs().len(), 2);
        assert!(!template.is_literal());
    }

    #[test]
    fn mistakes_name_the_place() {
        let value = json!({"a": [{"b": "$node.x.ouput"}]});
        let reason = Template::from_dag(&value).unwrap_err();
        assert!(reason.starts_with("at `a[0].b`: a node has no `ouput`"), "{reason}");
        let reason = Template::from_steps(&json!(["ok", "x {{__a"])).unwrap_err();
        assert_eq!(reason, "at `[1]`: `{{` has no `}}` at character 3 of `x {{__a`");
    }

    #[test]
    fn a_template_without_references_stays_one_literal() {
        let value = json!({"a": [1, "b", {"c": "$5"}]});
        assert_eq!(Template::from_dag(&value), Ok(Template::Literal(value.clone())));
        assert_eq!(Template::from_steps(&value), Ok(Template::Literal(value)));
    }

    #[test]
    fn one_variable_alone_keeps_its_type() {
        check_steps(json!("{{__3-1.id}}"), json!(12));
        check_steps(json!("{{ $params.list }}"), json!([1, 2]));
        check_steps(json!("{{$var.missing}}"), Value::Null);
    }

    #[test]
    fn mixed_text_is_joined() {
        check_steps(json!("no {{__3-1.id}}!"), json!("no 12!"));
        check_steps(json!("{{$var.name}}{{$var.missing}}{{$params.list}}"), json!("Ada[1,2]"));
        check_steps(json!({"k": ["{{$var.yes}}", "{{$var.yes}} "]}), json!({"k": [true, "true "]}));
        check_steps(json!(r#"{"a":{"b":{{__3-1.id}}}}"#), json!(r#"{"a":{"b":12}}"#));
    }

    #[test]
    fn three_braces_stand_for_two() {
        check_steps(json!("{{{literal}}}"), json!("{{literal}}"));
        check_steps(json!("{{{a}}} and {{$var.name}}"), json!("{{a}} and Ada"));
        assert!(Template::from_steps(&json!("{{{x}}}")).unwrap().is_literal());
    }

    #[test]
    fn malformed_variables_are_refused_with_their_place() {
        for (text, part) in [
            ("a {{b", "`{{` has no `}}` at character 3"),
            ("{{}}", "nothing stands between `{{` and `}}` at character 1"),
            ("é {{  }}", "nothing stands between `{{` and `}}` at character 3"),
            ("{{{x}}", "`{{{` has no `}}}` at character 1"),
            ("{{name}}", "`name` is no variable"),
            ("{{__a..b}}", "a key is missing"),
        ] {
            let reason = Template::from_steps(&json!(text)).unwrap_err();
            assert!(reason.contains(part), "{text}: {reason}");
        }
    }

    #[test]
    fn values_that_nest_too_deep_are_refused() {
        let mut value = json!("{{$var.x}}");
        for _ in 0..200 {
            value = json!([value]);
        }
        assert!(Template::from_steps(&value).unwrap_err().contains("deeper than 128"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in r"[{}_$a. é\[\]]{0,20}|\PC{0,20}") {
            for template in [Template::from_steps, Template::from_dag, Template::from_input_map] {
                if let Ok(template) = template(&json!([{ "k": text }])) {
                    template.resolve(&world());
                }
            }
        }

        #[test]
        fn text_without_braces_stands_for_itself(text in r"[^{}]{0,30}") {
            prop_assert_eq!(Template::from_steps(&json!(text)), Ok(Template::Literal(json!(text))));
        }
    }
}
