//! The parts of a request that the audit log keeps: the actor and a few fields of the body. The rest of a body is never
//! kept: it may hold secrets.

use std::fmt;
use std::sync::{Arc, OnceLock};

use axum::http::HeaderMap;
use axum::http::header::HeaderName;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::problem::{ApiError, ApiResult, Code};

/// The header that names the actor. A claim, not a proof.
pub(crate) const ACTOR: HeaderName = HeaderName::from_static("x-windlass-actor");
/// Characters of a name: an address with room to spare.
const ACTOR_CHARS: usize = 200;

/// The actor, if the request names one.
pub(super) fn actor(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let mut given = headers.get_all(ACTOR).iter();
    let Some(value) = given.next() else { return Ok(None) };
    let wrong = |reason: &str| Err(ApiError::field(Code::BadHeader, "X-Windlass-Actor", reason));
    if given.next().is_some() {
        return wrong("it is there more than once: give one");
    }
    let Ok(text) = std::str::from_utf8(value.as_bytes()) else {
        return wrong("it is not UTF-8: give a name of visible characters");
    };
    match name(text) {
        Some(name) => Ok(Some(name)),
        None => wrong("it is empty, longer than 200 characters, or has invisible ones: shorten it"),
    }
}

/// A name without invisible characters, which could make it look like another name.
fn name(text: &str) -> Option<String> {
    let text = text.trim();
    let is_fit = !text.is_empty() && text.chars().count() <= ACTOR_CHARS && !text.chars().any(is_hidden);
    is_fit.then(|| text.to_owned())
}

/// Whether a character does something to a line instead of being seen in it.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Text of a request as it stands in an audit line: cut, without hidden characters. A refused request may have any text.
pub(super) fn line(text: &str, most: usize) -> String {
    let seen = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if is_hidden(c) => '\u{fffd}',
        c => c,
    };
    text.chars().take(most).map(seen).collect()
}

/// The fields of a body that the audit log keeps.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BodyNotes {
    /// The field that names the subject of the change.
    pub(super) subject: Option<String>,
    pub(super) by: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) repairs: bool,
    pub(super) is_dry_run: bool,
}

/// A slot for the kept fields: filled where the body is read, and read after the response.
#[derive(Debug, Clone)]
pub(crate) struct NotesSlot {
    /// The field that names the subject of the change.
    subject: Option<&'static str>,
    notes: Arc<OnceLock<BodyNotes>>,
}

impl NotesSlot {
    pub(super) fn new(subject: Option<&'static str>) -> Self {
        NotesSlot { subject, notes: Arc::default() }
    }

    /// Reads the kept fields of a body. The handler reports problems of the body, not this function.
    pub(crate) fn read(&self, body: &[u8]) {
        let Ok(KeptFields(fields)) = serde_json::from_slice(body) else { return };
        let mut notes = BodyNotes::default();
        for (key, value) in fields {
            match value {
                Value::String(text) if Some(key.as_str()) == self.subject => notes.subject = Some(text),
                Value::String(text) if key == "by" => notes.by = name(&text),
                Value::String(text) if key == "reason" => notes.reason = Some(text),
                Value::Bool(repairs) if key == "repair" => notes.repairs = repairs,
                Value::Bool(is_dry_run) if key == "dryrun" => notes.is_dry_run = is_dry_run,
                _ => {}
            }
        }
        // A request has one body.
        drop(self.notes.set(notes));
    }

    pub(super) fn notes(&self) -> &BodyNotes {
        static NOTHING: BodyNotes =
            BodyNotes { subject: None, by: None, reason: None, repairs: false, is_dry_run: false };
        self.notes.get().unwrap_or(&NOTHING)
    }
}

/// The name of a field as the scheduler surface reads it; elsewhere names have neither.
pub(super) fn plain(key: &str) -> String {
    key.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

/// Fields that may be kept.
const KEPT: [&str; 8] = ["name", "id", "taskid", "flowid", "by", "reason", "repair", "dryrun"];

/// The kept fields of an object; the values of other fields are skipped and not built.
struct KeptFields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for KeptFields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct KeptFieldsVisitor;
        impl<'de> Visitor<'de> for KeptFieldsVisitor {
            type Value = KeptFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KeptFields, A::Error> {
                let mut fields = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    let key = plain(&key);
                    if KEPT.contains(&key.as_str()) {
                        fields.push((key, map.next_value()?));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(KeptFields(fields))
            }
        }
        from.deserialize_map(KeptFieldsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn actor_of(values: &[&[u8]]) -> ApiResult<Option<String>> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACTOR, HeaderValue::from_bytes(value).unwrap());
        }
        actor(&headers)
    }

    #[test]
    fn the_actor_is_one_short_visible_text() {
        assert_eq!(actor_of(&[]).unwrap(), None);
        assert_eq!(actor_of(&[b" ann@example.org "]).unwrap().as_deref(), Some("ann@example.org"));
        assert_eq!(actor_of(&["Jürgen 漢字".as_bytes()]).unwrap().as_deref(), Some("Jürgen 漢字"));
        assert!(actor_of(&["é".repeat(200).as_bytes()]).is_ok());
        let long = "é".repeat(201);
        let bad: [&[&[u8]]; 6] =
            [&[b""], &[b"  "], &[long.as_bytes()], &[b"\xff"], &["a\u{202e}b".as_bytes()], &[b"a", b"b"]];
        for bad in bad {
            let error = actor_of(bad).unwrap_err();
            assert_eq!(
                (error.code(), error.problem().errors[0].path.as_str()),
                (Code::BadHeader, "X-Windlass-Actor")
            );
        }
    }

    #[test]
    fn a_line_stays_one_and_hides_nothing() {
        assert_eq!(line("größe\nb\u{1b}[2J\u{202e}c", 9), "größe b\u{fffd}[");
        assert_eq!(line("a\u{202e}", 9), "a\u{fffd}");
    }

    #[test]
    fn an_excerpt_of_a_body_is_kept() {
        let slot = NotesSlot::new(Some("taskid"));
        slot.read(
            br#"{"Task_ID": "t", "key": {"by": "x"}, "by": "ann", "reason": "old", "value": "secret"}"#,
        );
        let kept = |text: &str| Some(text.to_owned());
        let notes = BodyNotes {
            subject: kept("t"),
            by: kept("ann"),
            reason: kept("old"),
            repairs: false,
            is_dry_run: false,
        };
        assert_eq!(slot.notes(), &notes);
        for odd in ["", "[]", "{", "5", r#"{"task_id": 5, "by": "a\u0000", "reason": {}, "repair": "yes"}"#] {
            let slot = NotesSlot::new(Some("taskid"));
            slot.read(odd.as_bytes());
            assert_eq!(slot.notes(), &BodyNotes::default(), "{odd}");
        }
    }
}
