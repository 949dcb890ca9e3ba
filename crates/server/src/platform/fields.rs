//! Reads the fields of a body one by one and collects everything that is wrong: whoever made five mistakes hears of
//! five. Null counts as absent.

use axum::body::Bytes;
use serde_json::{Map, Value};
use windlass_engine::problem::{Problem, Problems, did_you_mean};
use windlass_engine::time::Timestamp;

use crate::extract;
use crate::problem::{Answer, ApiError, Code};

/// What is shown of a value that is wrong.
const SHOWN_CHARS: usize = 60;
/// A moment as it should be written.
const MOMENT: &str = "2026-11-15T09:00:00Z";

/// The fields of one object that have not been read yet.
pub(super) struct Fields {
    /// Where the object stands: `$`, `$[3]`, `$.task`.
    place: String,
    left: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Fields {
    /// The fields of a body, which must be an object; an empty body is `{}`.
    pub(super) fn of_body(bytes: &Bytes) -> Answer<Fields> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Fields::of("$", Map::new()));
        }
        match extract::parse(bytes)? {
            Value::Object(fields) => Ok(Fields::of("$", fields)),
            other => {
                let reason = format!("it is {}: put it into `{{` and `}}`", named(&other));
                Err(ApiError::field(Code::InvalidFields, "$", reason))
            }
        }
    }

    pub(super) fn of(place: impl Into<String>, left: Map<String, Value>) -> Fields {
        Fields { place: place.into(), left, known: Vec::new() }
    }

    /// Where the object stands.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Where a field stands.
    pub(super) fn at(&self, name: &str) -> String {
        format!("{}.{name}", self.place)
    }

    /// These may be there, whether or not anybody reads them.
    pub(super) fn knows(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// Whether the field is named, though perhaps as null.
    pub(super) fn names(&self, name: &str) -> bool {
        self.left.contains_key(name)
    }

    /// Whether the field is there and has not been read.
    pub(super) fn has(&self, name: &str) -> bool {
        self.left.get(name).is_some_and(|value| !value.is_null())
    }

    /// A field, whatever it holds.
    pub(super) fn value(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.left.remove(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, name: &'static str, problems: &mut Problems) -> Option<String> {
        match self.value(name)? {
            Value::String(text) => Some(text),
            other => self.wrong(name, &other, "text", problems),
        }
    }

    /// A text that must be there.
    pub(super) fn required(&mut self, name: &'static str, problems: &mut Problems) -> Option<String> {
        if !self.has(name) {
            self.known.push(name);
            self.left.remove(name);
            problems.error(self.at(name), "it is required and missing");
            return None;
        }
        self.text(name, problems)
    }

    pub(super) fn flag(&mut self, name: &'static str, problems: &mut Problems) -> Option<bool> {
        match self.value(name)? {
            Value::Bool(flag) => Some(flag),
            other => self.wrong(name, &other, "`true` or `false`", problems),
        }
    }

    /// A whole number within a range.
    pub(super) fn whole<N>(
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
    pub(super) fn word<T: Copy>(
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
    pub(super) fn moment(&mut self, name: &'static str, problems: &mut Problems) -> Option<Timestamp> {
        let value = self.value(name)?;
        if let Some(at) = value.as_str().and_then(Timestamp::parse_rfc3339) {
            return Some(at);
        }
        let hint = value.as_i64().map(|n| {
            // Nobody plans for 1970: so few are seconds.
            let ms = if n.unsigned_abs() < 100_000_000_000 { n.saturating_mul(1_000) } else { n };
            format!("did you mean \"{}\"?", Timestamp(ms))
        });
        let reason = format!("{} is no moment: give RFC 3339 text such as \"{MOMENT}\"", shown(&value));
        problems.error_hint(self.at(name), reason, hint);
        None
    }

    /// Texts in an array.
    pub(super) fn texts(&mut self, name: &'static str, problems: &mut Problems) -> Option<Vec<String>> {
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
    pub(super) fn object(
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
    pub(super) fn within(&mut self, name: &'static str, problems: &mut Problems) -> Option<Fields> {
        let place = self.at(name);
        self.object(name, problems).map(|fields| Fields::of(place, fields))
    }

    /// Names what is left: nobody knows it.
    pub(super) fn done(self, problems: &mut Problems) {
        let allowed = match self.known.join("`, `") {
            none if none.is_empty() => "leave it out, nothing is to be said here".to_owned(),
            known => format!("allowed are `{known}`"),
        };
        for name in self.left.keys() {
            let hint = did_you_mean(name, self.known.iter().copied());
            let name: String = name.chars().take(SHOWN_CHARS).collect();
            problems.error_hint(self.at(&name), format!("nobody knows this field: {allowed}"), hint);
        }
    }

    fn wrong<T>(&self, name: &str, value: &Value, allowed: &str, problems: &mut Problems) -> Option<T> {
        problems.error(self.at(name), format!("{} is not allowed: give {allowed}", shown(value)));
        None
    }
}

/// Reads the body of an action that has nothing to be told.
pub(super) fn nothing(bytes: &Bytes) -> Answer<()> {
    let mut problems = Problems::default();
    Fields::of_body(bytes)?.done(&mut problems);
    settled(problems)
}

/// Nothing, or everything that is wrong.
pub(super) fn settled(problems: Problems) -> Answer<()> {
    if problems.has_errors() { Err(refused(problems.into_list())) } else { Ok(()) }
}

/// Everything that is wrong with a body.
pub(super) fn refused(problems: Vec<Problem>) -> ApiError {
    ApiError::problems(Code::InvalidFields, problems)
}

/// A value in a sentence, cut to what can be read.
fn shown(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        Value::String(text) if text.chars().count() <= SHOWN_CHARS => format!("`{text}`"),
        Value::String(text) => format!("`{}…`", text.chars().take(SHOWN_CHARS).collect::<String>()),
        Value::Array(_) | Value::Object(_) => named(value).to_owned(),
    }
}

/// What kind of value it is, in a sentence.
pub(super) fn named(value: &Value) -> &'static str {
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

    fn fields(value: Value) -> Fields {
        let Value::Object(fields) = value else { panic!("no object") };
        Fields::of("$", fields)
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
                "$.name: error: `5` is not allowed: give text",
                "$.priority: error: `3000000000` is not allowed: give a whole number from -2147483648 to 2147483647",
                "$.type: error: `imediate` is not allowed: give `immediate` or `scheduled` (did you mean `immediate`?)",
                "$.paused: error: `yes` is not allowed: give `true` or `false`",
                "$.ids[1]: error: `1` is no text",
                "$.run_at: error: `1794790340` is no moment: give RFC 3339 text such as \"2026-11-15T09:00:00Z\" \
                 (did you mean \"2026-11-16T00:52:20Z\"?)",
                "$.limits: error: an array is not allowed: give an object",
                "$.queue: error: it is required and missing",
                "$.qeue: error: nobody knows this field: allowed are `name`, `priority`, `type`, `paused`, `ids`, \
                 `run_at`, `limits`, `queue`, `gone` (did you mean `queue`?)",
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
        assert!(Fields::of_body(&Bytes::from_static(b" \n")).is_ok());
        for bad in [&b"[]"[..], b"5", b"null", b"\"a\"", b"{", b"\xff"] {
            assert!(Fields::of_body(&Bytes::from_static(bad)).is_err(), "{bad:?}");
        }
    }
}
