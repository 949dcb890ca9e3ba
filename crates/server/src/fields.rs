//! A reader of body fields that collects all problems, so that one response names every mistake. Null counts as
//! absent.

use axum::body::Bytes;
use serde_json::{Map, Value};
use windlass_engine::problem::{Problem, Problems, did_you_mean};
use windlass_engine::time::Timestamp;
use windlass_sdk::contract::BackoffKind;

use crate::extract;
use crate::ignored::IgnoredFields;
use crate::problem::{ApiError, ApiResult, Code};

/// Characters of a wrong value that a message repeats.
const SHOWN_CHARS: usize = 60;
/// How the reason of a problem begins that is about a field which the body does not have.
pub(crate) const UNKNOWN_FIELD: &str = "unknown field";
/// Words for the growth of delays.
pub(crate) const BACKOFF_WORDS: [(&str, BackoffKind); 2] =
    [("exponential", BackoffKind::Exponential), ("fixed", BackoffKind::Fixed)];
/// A moment as it should be written.
const MOMENT: &str = "2026-11-15T09:00:00Z";

/// The fields of one object that have not been read yet.
pub(crate) struct BodyFields {
    /// Where the object stands: `$`, `$[3]`, `$.task`.
    place: String,
    left: Map<String, Value>,
    known: Vec<&'static str>,
}

impl BodyFields {
    /// The fields of a body, which must be an object; an empty body is `{}`.
    pub(crate) fn of_body(bytes: &Bytes) -> ApiResult<BodyFields> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(BodyFields::of("$", Map::new()));
        }
        match extract::parse(bytes)? {
            Value::Object(fields) => Ok(BodyFields::of("$", fields)),
            other => {
                let reason = format!("it is {}: put it into `{{` and `}}`", named(&other));
                Err(ApiError::field(Code::InvalidFields, "$", reason))
            }
        }
    }

    pub(crate) fn of(place: impl Into<String>, left: Map<String, Value>) -> BodyFields {
        BodyFields { place: place.into(), left, known: Vec::new() }
    }

    /// Where the object stands.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Where a field stands.
    pub(crate) fn at(&self, name: &str) -> String {
        format!("{}.{name}", self.place)
    }

    /// These fields may be present, even if the handler does not read them.
    pub(crate) fn knows(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// Whether the field is named, though perhaps as null.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.left.contains_key(name)
    }

    /// Whether the field is there and has not been read.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.left.get(name).is_some_and(|value| !value.is_null())
    }

    /// A field of any type.
    pub(crate) fn value(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.left.remove(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&mut self, name: &'static str, problems: &mut Problems) -> Option<String> {
        match self.value(name)? {
            Value::String(text) => Some(text),
            other => self.wrong(name, &other, "text", problems),
        }
    }

    /// A text that must be there.
    pub(crate) fn required(&mut self, name: &'static str, problems: &mut Problems) -> Option<String> {
        if !self.has(name) {
            self.known.push(name);
            self.left.remove(name);
            problems.error(self.at(name), "it is required and missing");
            return None;
        }
        self.text(name, problems)
    }

    pub(crate) fn flag(&mut self, name: &'static str, problems: &mut Problems) -> Option<bool> {
        match self.value(name)? {
            Value::Bool(flag) => Some(flag),
            other => self.wrong(name, &other, "`true` or `false`", problems),
        }
    }

    /// A whole number within a range.
    pub(crate) fn whole<N>(
        &mut self,
        name: &'static str,
        from: N,
        to: N,
        problems: &mut Problems,
    ) -> Option<N>
    where
        N: TryFrom<i128> + Into<i128> + Copy,
    {
        let value = self.value(name)?;
        let (low, high): (i128, i128) = (from.into(), to.into());
        let allowed = format!("a whole number from {low} to {high}");
        let Value::Number(number) = &value else { return self.wrong(name, &value, &allowed, problems) };
        let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        let within = whole.filter(|n| (low..=high).contains(n)).and_then(|n| N::try_from(n).ok());
        within.or_else(|| self.wrong(name, &value, &allowed, problems))
    }

    /// One of these words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
        problems: &mut Problems,
    ) -> Option<T> {
        let value = self.value(name)?;
        let given = value.as_str();
        if let Some((_, meant)) = words.iter().find(|(word, _)| Some(*word) == given) {
            return Some(*meant);
        }
        let allowed: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        let hint = given.and_then(|given| did_you_mean(given, words.iter().map(|(word, _)| *word)));
        let reason = format!("{} is not allowed: give {}", shown(&value), allowed.join(" or "));
        problems.error_hint(self.at(name), reason, hint);
        None
    }

    /// A moment in RFC 3339.
    pub(crate) fn moment(&mut self, name: &'static str, problems: &mut Problems) -> Option<Timestamp> {
        let value = self.value(name)?;
        if let Some(at) = value.as_str().and_then(Timestamp::parse_rfc3339) {
            return Some(at);
        }
        let hint = value.as_i64().map(|n| {
            // Small numbers are seconds: no job is due in 1970.
            let ms = if n.unsigned_abs() < 100_000_000_000 { n.saturating_mul(1_000) } else { n };
            format!("did you mean \"{}\"?", Timestamp(ms))
        });
        let reason = format!("{} is no moment: give RFC 3339 text such as \"{MOMENT}\"", shown(&value));
        problems.error_hint(self.at(name), reason, hint);
        None
    }

    /// Texts in an array.
    pub(crate) fn texts(&mut self, name: &'static str, problems: &mut Problems) -> Option<Vec<String>> {
        let items = match self.value(name)? {
            Value::Array(items) => items,
            other => return self.wrong(name, &other, "an array of texts", problems),
        };
        let mut texts = Vec::with_capacity(items.len());
        for (n, item) in items.into_iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text),
                other => {
                    let place = format!("{}[{n}]", self.at(name));
                    problems.error(place, format!("{} is no text", shown(&other)));
                }
            }
        }
        Some(texts)
    }

    /// An object, as it is.
    pub(crate) fn object(
        &mut self,
        name: &'static str,
        problems: &mut Problems,
    ) -> Option<Map<String, Value>> {
        match self.value(name)? {
            Value::Object(fields) => Some(fields),
            other => self.wrong(name, &other, "an object", problems),
        }
    }

    /// The fields of an object within.
    pub(crate) fn within(&mut self, name: &'static str, problems: &mut Problems) -> Option<BodyFields> {
        let place = self.at(name);
        self.object(name, problems).map(|fields| BodyFields::of(place, fields))
    }

    /// Reports the remaining fields as unknown; on the surface that ignores them they are noted for a warning.
    pub(crate) fn done(self, problems: &mut Problems) {
        if let Some(ignored) = IgnoredFields::current() {
            return self.left.keys().for_each(|name| ignored.note(&self.at(name)));
        }
        let allowed = match self.known.join("`, `") {
            none if none.is_empty() => "leave it out, nothing is to be said here".to_owned(),
            known => format!("allowed are `{known}`"),
        };
        for name in self.left.keys() {
            let hint = did_you_mean(name, self.known.iter().copied());
            let name: String = name.chars().take(SHOWN_CHARS).collect();
            problems.error_hint(self.at(&name), format!("{UNKNOWN_FIELD}: {allowed}"), hint);
        }
    }

    fn wrong<T>(&self, name: &str, value: &Value, allowed: &str, problems: &mut Problems) -> Option<T> {
        problems.error(self.at(name), format!("{} is not allowed: give {allowed}", shown(value)));
        None
    }
}

/// Reads the body of an action that has nothing to be told.
pub(crate) fn nothing(bytes: &Bytes) -> ApiResult<()> {
    let mut problems = Problems::default();
    BodyFields::of_body(bytes)?.done(&mut problems);
    settled(problems)
}

/// Nothing, or everything that is wrong.
pub(crate) fn settled(problems: Problems) -> ApiResult<()> {
    if problems.has_errors() { Err(refused(problems.into_list())) } else { Ok(()) }
}

/// Everything that is wrong with a body.
pub(crate) fn refused(problems: Vec<Problem>) -> ApiError {
    ApiError::problems(Code::InvalidFields, problems)
}

/// A value in a sentence, cut to a readable length.
fn shown(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        Value::String(text) if text.chars().count() <= SHOWN_CHARS => format!("`{text}`"),
        Value::String(text) => format!("`{}…`", text.chars().take(SHOWN_CHARS).collect::<String>()),
        Value::Array(_) | Value::Object(_) => named(value).to_owned(),
    }
}

/// The type of a value, in a sentence.
pub(crate) fn named(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> BodyFields {
        let Value::Object(fields) = value else { panic!("no object") };
        BodyFields::of("$", fields)
    }

    #[test]
    fn everything_that_is_wrong_is_told_with_what_is_allowed() {
        let mut problems = Problems::default();
        let mut body = fields(json!({
            "name": 5, "priority": 3_000_000_000_i64, "type": "imediate", "paused": "yes", "ids": ["a", 1],
            "run_at": 1_794_790_340, "limits": [], "qeue": 1, "gone": null,
        }));
        assert_eq!(body.text("name", &mut problems), None);
        assert_eq!(body.whole("priority", i32::MIN, i32::MAX, &mut problems), None);
        assert_eq!(body.word("type", &[("immediate", 1), ("scheduled", 2)], &mut problems), None);
        assert_eq!(body.flag("paused", &mut problems), None);
        assert_eq!(body.texts("ids", &mut problems), Some(vec!["a".to_owned()]));
        assert_eq!(body.moment("run_at", &mut problems), None);
        assert!(body.within("limits", &mut problems).is_none());
        assert_eq!(body.required("queue", &mut problems), None);
        assert_eq!(body.text("gone", &mut problems), None);
        body.done(&mut problems);
        let told: Vec<String> = problems.into_list().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "$.ids[1]: error: `1` is no text",
                "$.limits: error: an array is not allowed: give an object",
                "$.name: error: `5` is not allowed: give text",
                "$.paused: error: `yes` is not allowed: give `true` or `false`",
                "$.priority: error: `3000000000` is not allowed: give a whole number from -2147483648 to 2147483647",
                "$.qeue: error: unknown field: allowed are `name`, `priority`, `type`, `paused`, `ids`, \
                 `run_at`, `limits`, `queue`, `gone` (did you mean `queue`?)",
                "$.queue: error: it is required and missing",
                "$.run_at: error: `1794790340` is no moment: give RFC 3339 text such as \"2026-11-15T09:00:00Z\" \
                 (did you mean \"2026-11-16T00:52:20Z\"?)",
                "$.type: error: `imediate` is not allowed: give `immediate` or `scheduled` (did you mean `immediate`?)",
            ]
        );
    }

    #[test]
    fn fractions_and_numbers_beyond_reason_are_no_whole_numbers() {
        for bad in [json!(1.5), json!(1e300), json!(u64::MAX), json!("7"), json!(-1)] {
            let mut problems = Problems::default();
            let mut body = fields(json!({ "n": bad }));
            assert_eq!(body.whole("n", 0u32, u32::MAX, &mut problems), None, "{bad}");
            assert!(problems.has_errors());
        }
        let mut body = fields(json!({ "n": u64::MAX }));
        assert_eq!(body.whole("n", 0u64, u64::MAX, &mut Problems::default()), Some(u64::MAX));
    }

    #[test]
    fn a_body_is_an_object_and_an_empty_one_is_too() {
        assert!(BodyFields::of_body(&Bytes::from_static(b" \n")).is_ok());
        for bad in [&b"[]"[..], b"5", b"null", b"\"a\"", b"{", b"\xff"] {
            assert!(BodyFields::of_body(&Bytes::from_static(bad)).is_err(), "{bad:?}");
        }
    }
}
