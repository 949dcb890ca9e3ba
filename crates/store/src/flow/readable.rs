//! Parts of a definition that SQL can read: the same texts for every database, so that they can be carried from one to
//! another.

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::reference::Seg;

use super::Publication;
use crate::projection::{PathPart, Write, writes};

/// Bytes that are kept of the writes of one version.
const WRITES_MAX: usize = 1 << 20;

/// Columns beside a definition for readers of the tables.
#[derive(Default)]
pub(crate) struct Readable {
    /// The definition as JSON, if it is not JSON itself.
    pub(crate) json: Option<String>,
    /// Which results are written to which shared keys: `[{node | like + depth, key, path}]`.
    pub(crate) writes: String,
}

impl Readable {
    pub(crate) fn of(publication: &Publication) -> Readable {
        let Some(draft) = &publication.version else { return Readable::default() };
        let is_json = serde_json::from_str::<IgnoredAny>(&draft.definition).is_ok();
        let is_complete = is_json && draft.plan.is_some();
        let compiled = (!is_complete).then(|| compile(&draft.definition, Strictness::Lenient));
        let plan = draft.plan.as_ref().or(compiled.as_ref().and_then(|compiled| compiled.plan.as_ref()));
        let writes = plan.map(|plan| writes(plan)).unwrap_or_default();
        let json = compiled.filter(|_| !is_json).map(|compiled| compiled.definition.to_string());
        Readable { json, writes: listed(&writes) }
    }
}

/// All writes as one text; empty if it would be larger than any readable definition.
fn listed(writes: &[Write]) -> String {
    let mut text = "[".to_owned();
    for write in writes {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&shown(write).to_string());
        if text.len() > WRITES_MAX {
            return "[]".to_owned();
        }
    }
    text.push(']');
    text
}

/// A write with its paths as they are, or as a pattern of `GLOB`, and with its path as a list: no character of a key
/// is ever taken for syntax.
fn shown(write: &Write) -> Value {
    let keys: Vec<&str> = write.node.iter().filter_map(PathPart::key).collect();
    let mut shown = if keys.len() == write.node.len() {
        json!({ "node": keys.join("/") })
    } else {
        let parts = write.node.iter().map(|part| part.key().map_or_else(|| "*".to_owned(), taken_literally));
        json!({ "like": parts.collect::<Vec<_>>().join("/"), "depth": write.node.len() - 1 })
    };
    shown["key"] = write.key.clone().into();
    shown["path"] = write
        .path
        .iter()
        .map(|seg| match seg {
            Seg::Key(key) => json!(key),
            Seg::Index(index) => json!(index),
        })
        .collect();
    shown
}

/// A text of which no character means something else in a pattern.
fn taken_literally(text: &str) -> String {
    text.chars().fold(String::new(), |mut done, c| {
        match c {
            '*' | '?' | '[' => done.extend(['[', c, ']']),
            c => done.push(c),
        }
        done
    })
}
