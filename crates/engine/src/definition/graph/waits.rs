//! Nodes that wait: for time, for a signal, for a person.

use serde_json::Value;

use super::node::reference;
use crate::definition::reader::{Fields, Reader};
use crate::plan::{Approval, Node, Timer, Wait};
use crate::reference::{Root, Template};
use crate::time::Timestamp;

/// The fields of `params`, or of the node itself if it has none of that name: both spellings are in use.
struct WaitFields<'v> {
    params: Option<Fields<'v>>,
}

impl<'v> WaitFields<'v> {
    fn of(fields: &mut Fields<'v>, reader: &mut Reader) -> WaitFields<'v> {
        WaitFields { params: fields.inner("params", reader) }
    }

    fn within<'a>(&'a mut self, own: &'a mut Fields<'v>, name: &'static str) -> &'a mut Fields<'v> {
        own.value(name);
        match &mut self.params {
            Some(params) if params.map.get(name).is_some_and(|value| !value.is_null()) => params,
            Some(_) | None => own,
        }
    }
}

pub(super) fn timer(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<Timer> {
    let mut given = WaitFields::of(fields, reader);
    let from = given.within(fields, "delay_ms");
    let delay = from.value("delay_ms").map(|value| (value, from.at("delay_ms")));
    let from = given.within(fields, "until");
    let until = from.value("until").map(|value| (value, from.at("until")));
    match (delay, until) {
        (Some((value, path)), None) => {
            let template = moment(value, &path, reader)?;
            match &template {
                Template::Literal(n) if crate::number::Num::duration_ms(n, 1).is_none() => {
                    reader.error(path, "a delay is a number of milliseconds from 0");
                    None
                }
                Template::Literal(_) | Template::Ref(_) | Template::Text(_) => Some(Timer::Delay(template)),
                Template::Array(_) | Template::Object(_) => None,
            }
        }
        (None, Some((value, path))) => {
            let template = moment(value, &path, reader)?;
            match &template {
                Template::Literal(text) if text.as_str().and_then(Timestamp::parse_rfc3339).is_none() => {
                    reader.error(path, "a moment is written like `2026-11-15T09:00:00Z`");
                    None
                }
                Template::Literal(_) | Template::Ref(_) | Template::Text(_) => Some(Timer::Until(template)),
                Template::Array(_) | Template::Object(_) => None,
            }
        }
        (Some((_, path)), Some(_)) => {
            reader.error(path, "a timer has `delay_ms` or `until`, not both");
            None
        }
        (None, None) => {
            reader.error(fields.at("params"), "a timer needs `delay_ms` or `until`");
            None
        }
    }
}

fn moment(value: &Value, path: &str, reader: &mut Reader) -> Option<Template> {
    Template::from_input_map(value).map_err(|reason| reader.error(path, reason)).ok()
}

pub(super) fn wait(node: &mut Node, fields: &mut Fields<'_>, reader: &mut Reader) -> Option<Wait> {
    let mut given = WaitFields::of(fields, reader);
    wait_timeout(node, &mut given, fields, reader);
    let from = given.within(fields, "signal_key");
    let path = from.at("signal_key");
    let Some(key) = from.text("signal_key", reader) else {
        reader.error(path, "the signal to wait for is missing: name its key");
        return None;
    };
    Some(Wait { key: reference(key, Root::Anywhere, &path, reader)? })
}

fn wait_timeout(node: &mut Node, given: &mut WaitFields<'_>, fields: &mut Fields<'_>, reader: &mut Reader) {
    if let Some(params) = &mut given.params
        && let Some(ms) = params.whole("timeout_ms", reader)
    {
        node.timeout_ms = ms;
    }
    fields.value("timeout_ms");
}

pub(super) fn approval(node: &mut Node, fields: &mut Fields<'_>, reader: &mut Reader) -> Approval {
    let mut given = WaitFields::of(fields, reader);
    wait_timeout(node, &mut given, fields, reader);
    let from = given.within(fields, "approval_key");
    let path = from.at("approval_key");
    let key = from.text("approval_key", reader).and_then(|key| reference(key, Root::Anywhere, &path, reader));
    let assignees = given.within(fields, "assignees").texts("assignees", reader).unwrap_or_default();
    let from = given.within(fields, "form");
    let form = from.map("form", reader).cloned().map(Value::Object);
    Approval { key, assignees, form }
}
