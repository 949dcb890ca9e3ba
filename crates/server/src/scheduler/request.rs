//! The fields of a request's query and body; their names match regardless of case and underscores.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::{FromRequest, Query, Request};
use axum::http::Method;
use serde_json::{Map, Value};
use windlass_engine::json::check_json;

use super::failure::Failure;
use crate::guard::RequestMemory;

/// Bytes of an id, a name, a service: as much as the engine takes.
pub(super) const NAME_MAX: usize = windlass_engine::limits::NAME_BYTES;
/// Items of a list in a request.
const LIST_MAX: usize = 1_000;
/// Pages are numbered up to here: further ones are found by asking for less.
const PAGE_LAST: u64 = 1_000_000;

/// One request. A field of the body wins over one of the query.
#[derive(Debug, Default)]
pub(super) struct RequestFields {
    /// By the name without case and underscores: how the client spelled it, and the value.
    fields: BTreeMap<String, (String, Value)>,
    memory: RequestMemory,
}

impl<S: Send + Sync> FromRequest<S> for RequestFields {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri())
            .map_err(|error| Failure::bad(format!("the query cannot be read: {}", error.body_text())))?;
        let mut ask = RequestFields::default();
        for (key, value) in query.0 {
            add(&mut ask.fields, key, Value::String(value))?;
        }
        if *request.method() == Method::GET {
            return Ok(ask);
        }
        ask.memory = request.extensions().get().cloned().unwrap_or_default();
        let body = Bytes::from_request(request, state)
            .await
            .map_err(|error| Failure::new(error.status(), error.body_text().to_lowercase()))?;
        ask.take_body(&body)?;
        Ok(ask)
    }
}

impl RequestFields {
    fn take_body(&mut self, body: &[u8]) -> Result<(), Failure> {
        if body.trim_ascii().is_empty() {
            return Ok(());
        }
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| Failure::bad(format!("the body is not JSON: {error}")))?;
        let Value::Object(fields) = value else {
            return Err(Failure::bad(format!("the body must be a JSON object, not {}", a_kind(&value))));
        };
        let mut own: BTreeMap<String, (String, Value)> = BTreeMap::new();
        for (key, value) in fields {
            add(&mut own, key, value)?;
        }
        self.fields.extend(own);
        Ok(())
    }

    /// The memory that the request holds for its body.
    pub(super) fn memory(&self) -> &RequestMemory {
        &self.memory
    }

    /// A field as it is; null is as good as absent.
    fn find(&self, name: &str) -> Option<&(String, Value)> {
        self.fields.get(&plain(name)).filter(|(_, value)| !value.is_null())
    }

    /// A field of any type, null where there is none.
    pub(super) fn value(&self, name: &str) -> Value {
        self.find(name).map_or(Value::Null, |(_, value)| value.clone())
    }

    /// A text; empty is as good as absent.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        match self.find(name) {
            None => Ok(None),
            Some((_, Value::String(text))) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some((key, value)) => Err(wrong(key, "text", value)),
        }
    }

    /// A text that has to be there.
    pub(super) fn required(&self, name: &str) -> Result<&str, Failure> {
        self.name(name)?.ok_or_else(|| Failure::bad(format!("`{name}` is missing")))
    }

    /// A short text without control characters; empty is as good as absent.
    pub(super) fn name(&self, name: &str) -> Result<Option<&str>, Failure> {
        let text = self.text(name)?;
        text.map_or(Ok(()), |text| check_name(name, text))?;
        Ok(text)
    }

    /// A whole number, also one that a query spells.
    pub(super) fn whole(&self, name: &str) -> Result<Option<i64>, Failure> {
        let Some((key, value)) = self.find(name) else { return Ok(None) };
        match value {
            Value::Number(number) if number.is_i64() => Ok(number.as_i64()),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) => text.parse().map(Some).map_err(|_| wrong(key, "a whole number", value)),
            _ => Err(wrong(key, "a whole number", value)),
        }
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, Failure> {
        match self.find(name) {
            None => Ok(false),
            Some((_, Value::Bool(flag))) => Ok(*flag),
            Some((key, value)) => match value.as_str() {
                Some("true" | "1") => Ok(true),
                Some("false" | "0" | "") => Ok(false),
                _ => Err(wrong(key, "true or false", value)),
            },
        }
    }

    /// Texts; `None` where there is no such field.
    pub(super) fn texts(&self, name: &str) -> Result<Option<Vec<String>>, Failure> {
        let Some((key, value)) = self.find(name) else { return Ok(None) };
        let Value::Array(items) = value else { return Err(wrong(key, "an array of texts", value)) };
        if items.len() > LIST_MAX {
            return Err(Failure::bad(format!("`{}` has more than {LIST_MAX} items", cut(key))));
        }
        let text = |item: &Value| match item {
            Value::String(text) if text.is_empty() => {
                Err(Failure::bad(format!("`{}` must hold texts of 1 to {NAME_MAX} bytes", cut(key))))
            }
            Value::String(text) => check_name(&cut(key), text).map(|()| text.clone()),
            other => Err(wrong(key, "an array of texts", other)),
        };
        items.iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// An object: as such, or as the JSON text that old clients send.
    pub(super) fn object(&self, name: &str) -> Result<Map<String, Value>, Failure> {
        let Some((key, value)) = self.find(name) else { return Ok(Map::new()) };
        let parsed = match value {
            Value::String(text) if text.trim().is_empty() => return Ok(Map::new()),
            Value::String(text) => {
                check_json(text.as_bytes())
                    .map_err(|flaw| Failure::bad(format!("`{}` cannot be taken: {flaw}", cut(key))))?;
                serde_json::from_str(text)
                    .map_err(|error| Failure::bad(format!("`{}` is not JSON: {error}", cut(key))))?
            }
            other => other.clone(),
        };
        match parsed {
            Value::Object(fields) => Ok(fields),
            // Clients without parameters send these.
            Value::Null => Ok(Map::new()),
            other => Err(wrong(key, "a JSON object", &other)),
        }
    }

    /// The number of the page, from 1, and its size.
    pub(super) fn page(&self, size_default: usize) -> Result<(usize, usize), Failure> {
        let positive = |number: i64| u64::try_from(number).ok().filter(|number| *number > 0);
        let page = self.whole("page")?.and_then(positive).unwrap_or(1);
        if page > PAGE_LAST {
            return Err(Failure::bad(format!("`page` goes up to {PAGE_LAST}: narrow the filter")));
        }
        let size = self.whole("page_size")?.and_then(positive).map_or(size_default, clamped);
        Ok((clamped(page), size.min(windlass_store::page::PAGE_MAX)))
    }
}

/// Adds a field, unless it is there in this or another spelling.
fn add(fields: &mut BTreeMap<String, (String, Value)>, key: String, value: Value) -> Result<(), Failure> {
    if let Some((other, _)) = fields.get(&plain(&key)) {
        let text = format!("`{}` and `{}` are the same field: give one", cut(other), cut(&key));
        return Err(Failure::bad(text));
    }
    fields.insert(plain(&key), (key, value));
    Ok(())
}

fn check_name(name: &str, text: &str) -> Result<(), Failure> {
    if text.len() > NAME_MAX {
        return Err(Failure::bad(format!("`{name}` is longer than {NAME_MAX} bytes")));
    }
    if text.contains(char::is_control) {
        return Err(Failure::bad(format!("`{name}` has control characters: leave them out")));
    }
    Ok(())
}

fn clamped(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A name without case and underscores, which clients spell differently.
fn plain(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

fn wrong(key: &str, expected: &str, found: &Value) -> Failure {
    Failure::bad(format!("`{}` must be {expected}, not {}", cut(key), a_kind(found)))
}

fn cut(key: &str) -> String {
    key.chars().take(40).collect()
}

fn a_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(body: &str) -> Result<RequestFields, Failure> {
        let mut ask = RequestFields::default();
        ask.take_body(body.as_bytes())?;
        Ok(ask)
    }

    fn text_of(failure: impl std::fmt::Debug) -> String {
        format!("{failure:?}")
    }

    #[test]
    fn names_are_matched_in_any_case_and_with_or_without_underscores() {
        for body in [r#"{"FlowID": "x"}"#, r#"{"flow_id": "x"}"#, r#"{"flowid": "x"}"#, r#"{"flowId": "x"}"#]
        {
            assert_eq!(ask(body).unwrap().text("flow_id").unwrap(), Some("x"), "{body}");
        }
    }

    #[test]
    fn a_field_that_is_there_twice_is_refused() {
        let failure = ask(r#"{"FlowID": "x", "flow_id": "y"}"#).unwrap_err();
        assert!(text_of(failure).contains("same field"));
    }

    #[test]
    fn values_other_than_objects_are_refused() {
        for body in ["[1]", "3", "\"x\"", "{", "{\"a\":}", "nonsense", &"[".repeat(5_000)] {
            ask(body).unwrap_err();
        }
        assert!(ask("  ").unwrap().fields.is_empty());
    }

    #[test]
    fn wrong_types_name_the_field_and_what_was_found() {
        let ask =
            ask(r#"{"Version": "x", "Name": 3, "Services": "s", "Manual": 4, "ParamsJSON": "[1]"}"#).unwrap();
        assert!(
            text_of(ask.whole("version").unwrap_err())
                .contains("`Version` must be a whole number, not a text")
        );
        assert!(text_of(ask.text("name").unwrap_err()).contains("`Name` must be text, not a number"));
        assert!(text_of(ask.texts("services").unwrap_err()).contains("`Services` must be an array of texts"));
        assert!(text_of(ask.flag("manual").unwrap_err()).contains("true or false"));
        assert!(text_of(ask.object("params_json").unwrap_err()).contains("a JSON object, not an array"));
    }

    #[test]
    fn names_with_control_characters_are_refused() {
        let ask = ask(r#"{"id": "w\u001b[2J", "services": ["ok", "a\nb"], "worker_id": "a\u0000"}"#).unwrap();
        for refused in
            [ask.required("id").map(drop), ask.texts("services").map(drop), ask.name("worker_id").map(drop)]
        {
            assert!(text_of(refused.unwrap_err()).contains("has control characters: leave them out"));
        }
    }

    #[test]
    fn an_object_may_come_as_text() {
        let ask = ask(r#"{"a": "{\"x\": 1}", "b": {"x": 1}, "c": "", "d": null, "e": "{"}"#).unwrap();
        assert_eq!(ask.object("a").unwrap(), ask.object("b").unwrap());
        assert!(ask.object("c").unwrap().is_empty() && ask.object("d").unwrap().is_empty());
        assert!(text_of(ask.object("e").unwrap_err()).contains("`e` is not JSON"));
    }

    #[test]
    fn pages_are_bounded() {
        let page = |body: &str| ask(body).unwrap().page(10);
        assert_eq!(page("{}").unwrap(), (1, 10));
        assert_eq!(page(r#"{"page": 3, "page_size": 7}"#).unwrap(), (3, 7));
        assert_eq!(page(r#"{"page": -3, "page_size": 0}"#).unwrap(), (1, 10));
        assert_eq!(page(r#"{"page_size": 9223372036854775807}"#).unwrap(), (1, 1_000));
        page(r#"{"page": 9223372036854775807}"#).unwrap_err();
        page(r#"{"page": "many"}"#).unwrap_err();
    }
}
