//! Reading values field by field, so that every problem is found and each names its place.
//!
//! `Reader` collects problems and counts what is limited; `Fields` takes known fields out of one object and
//! reports what is left over. A null field counts as absent, because many writers spell absence that way.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Strictness;
use crate::limits;
use crate::problem::{Problems, did_you_mean};

/// Names compared for suggestions in one definition; a suggestion is a courtesy, not worth a slow refusal.
const SUGGESTION_BUDGET: usize = 20_000;

/// Bytes of parameters that branches have from their nodes, in one definition.
const COPIED_BYTES: usize = 64 << 20;

/// Characters of somebody's text that are repeated in a message or a path.
const SHOWN_CHARS: usize = 80;

/// The state of reading one definition.
pub(super) struct Reader {
    pub(super) problems: Problems,
    pub(super) n_nodes: usize,
    n_edges: usize,
    n_branches: usize,
    copied_bytes: usize,
    n_problems: usize,
    suggestions_left: usize,
    strictness: Strictness,
    /// Node names of the scopes around the place being read, outermost first: what a reference may name.
    pub(super) scopes: Vec<BTreeSet<String>>,
    /// The keys that the shared state of the scope being read begins with; `None` = nobody can tell.
    pub(super) begins_with: Option<BTreeSet<String>>,
}

impl Reader {
    pub(super) fn new(strictness: Strictness) -> Reader {
        Reader {
            problems: Problems::default(),
            n_nodes: 0,
            n_edges: 0,
            n_branches: 0,
            copied_bytes: 0,
            n_problems: 0,
            suggestions_left: SUGGESTION_BUDGET,
            strictness,
            scopes: Vec::new(),
            begins_with: Some(BTreeSet::new()),
        }
    }

    pub(super) fn error(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        self.n_problems += 1;
        self.problems.error(path, reason);
    }

    pub(super) fn warning(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        self.n_problems += 1;
        self.problems.warning(path, reason, None);
    }

    /// Reports an error about `word`, which should have been one of `known`.
    pub(super) fn error_near<'a>(
        &mut self,
        path: impl Into<String>,
        reason: impl Into<String>,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) {
        let hint = self.suggestion(word, known);
        self.n_problems += 1;
        self.problems.error_hint(path, reason, hint);
    }

    /// The nearest of `known` to `word`, within a budget over the whole definition.
    pub(super) fn suggestion<'a>(
        &mut self,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        if self.n_problems >= limits::PROBLEMS || self.suggestions_left == 0 {
            return None;
        }
        let slack = word.len() / 3 + 1;
        let candidates: Vec<&str> = known
            .into_iter()
            .filter(|k| k.len().abs_diff(word.len()) <= 4 * slack)
            .take(self.suggestions_left)
            .collect();
        self.suggestions_left = self.suggestions_left.saturating_sub(candidates.len());
        did_you_mean(word, candidates)
    }

    pub(super) fn hint_error(&mut self, path: String, reason: String, hint: &str) {
        self.n_problems += 1;
        self.problems.error_hint(path, reason, Some(hint.to_owned()));
    }

    pub(super) fn hint_warning(&mut self, path: String, reason: String, hint: Option<String>) {
        self.n_problems += 1;
        self.problems.warning(path, reason, hint);
    }

    /// Counts `n` nodes in; false, with one problem, when there are too many of them.
    pub(super) fn admit_nodes(&mut self, n: usize, path: &str) -> bool {
        let before = self.n_nodes;
        self.n_nodes = self.n_nodes.saturating_add(n);
        let fits = self.n_nodes <= limits::NODES;
        if !fits && before <= limits::NODES {
            self.error(path, format!("more than {} nodes; split the flow into several", limits::NODES));
        }
        fits
    }

    /// Counts `n` edges in; false, with one problem, when there are too many of them.
    pub(super) fn admit_edges(&mut self, n: usize, path: &str) -> bool {
        let before = self.n_edges;
        self.n_edges = self.n_edges.saturating_add(n);
        let fits = self.n_edges <= limits::EDGES;
        if !fits && before <= limits::EDGES {
            self.error(path, format!("more than {} edges; split the flow into several", limits::EDGES));
        }
        fits
    }

    /// Counts `n` branches in, each with a copy of its node's parameters; false, with a problem, when they would
    /// become too many or too large.
    pub(super) fn admit_branches(&mut self, n: usize, params: &Map<String, Value>, path: &str) -> bool {
        self.n_branches = self.n_branches.saturating_add(n);
        let bytes: usize = params.iter().map(|(key, value)| key.len() + bytes_of(value)).sum();
        self.copied_bytes = self.copied_bytes.saturating_add(bytes.saturating_mul(n));
        if self.n_branches > limits::FAN_BRANCHES {
            self.error(path, format!("more than {} branches", limits::FAN_BRANCHES));
        } else if self.copied_bytes > COPIED_BYTES {
            self.error(
                path,
                "the params of this node are too large to be given to every branch; pass them as input",
            );
        } else {
            return true;
        }
        false
    }

    /// Whether a scope may stand `depth` scopes deep; a problem if not.
    pub(super) fn admit_depth(&mut self, depth: usize, path: &str) -> bool {
        if depth > limits::DEPTH {
            self.error(path, format!("scopes are nested deeper than {} levels", limits::DEPTH));
        }
        depth <= limits::DEPTH
    }

    /// Checks a name that becomes part of paths: a node key, a node id, a step id.
    pub(super) fn check_key(&mut self, key: &str, path: &str) -> bool {
        if key.is_empty() {
            self.error(path, "a node needs a name");
        } else if key.contains('/') {
            self.error(path, format!("the name `{}` must not contain `/`", shown(key)));
        } else {
            return self.check_name(key, path);
        }
        false
    }

    pub(super) fn check_name(&mut self, name: &str, path: &str) -> bool {
        if name.len() > limits::NAME_BYTES {
            let reason = format!("`{}` is longer than {} bytes", shown(name), limits::NAME_BYTES);
            self.error(path, reason);
        }
        name.len() <= limits::NAME_BYTES
    }

    /// Checks a key that is written to the shared state.
    pub(super) fn check_shared_key(&mut self, key: &str, path: &str) {
        if key.is_empty() {
            self.error(path, "a shared key must not be empty");
        } else if is_reserved(key) {
            self.error(path, format!("`{}` is reserved; choose another key", shown(key)));
        } else {
            self.check_name(key, path);
        }
    }

    fn unknown_field(&mut self, path: String, key: &str, known: &[&'static str]) {
        let hint = self.suggestion(key, known.iter().copied());
        let reason = format!("unknown field `{}`", shown(key));
        self.n_problems += 1;
        match self.strictness {
            Strictness::Strict => self.problems.error_hint(path, reason, hint),
            Strictness::Lenient => self.problems.warning(path, format!("{reason} is ignored"), hint),
        }
    }
}

/// Whether only the server writes this shared key.
pub(super) fn is_reserved(key: &str) -> bool {
    key == "_error" || key == "_rt" || key.starts_with("_rt.")
}

/// Somebody's text, cut to a length that fits a message, without line breaks.
pub(super) fn shown(text: &str) -> String {
    let mut cut: String =
        text.chars().take(SHOWN_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        cut.push('…');
    }
    cut
}

/// The path of field `key` in the object at `path`.
pub(super) fn at_key(path: &str, key: &str) -> String {
    let plain = !key.is_empty()
        && key.chars().count() <= SHOWN_CHARS
        && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    if plain { format!("{path}.{key}") } else { format!("{path}[\"{}\"]", shown(key)) }
}

/// The path of item `i` of the array at `path`.
pub(super) fn at_index(path: &str, i: usize) -> String {
    format!("{path}[{i}]")
}

/// What kind of value this is, with its article, for messages.
pub(super) fn a_kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The fields of one object, taken one by one.
pub(super) struct Fields<'v> {
    pub(super) map: &'v Map<String, Value>,
    pub(super) path: String,
    known: Vec<&'static str>,
}

impl<'v> Fields<'v> {
    pub(super) fn of(value: &'v Value, path: String, reader: &mut Reader) -> Option<Fields<'v>> {
        match value {
            Value::Object(map) => Some(Fields { map, path, known: Vec::new() }),
            other => {
                reader.error(path, format!("must be an object, not {}", a_kind_of(other)));
                None
            }
        }
    }

    pub(super) fn at(&self, name: &str) -> String {
        at_key(&self.path, name)
    }

    /// The field as it stands; null is absent.
    pub(super) fn value(&mut self, name: &'static str) -> Option<&'v Value> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        self.map.get(name).filter(|v| !v.is_null())
    }

    /// A text; an empty one counts as absent.
    pub(super) fn text(&mut self, name: &'static str, reader: &mut Reader) -> Option<&'v str> {
        match self.value(name)? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text),
            other => {
                reader.error(self.at(name), format!("must be a string, not {}", a_kind_of(other)));
                None
            }
        }
    }

    /// The id of a node; a whole number will do, because that is what YAML makes of `id: 1`.
    pub(super) fn id(&mut self, name: &'static str, reader: &mut Reader) -> Option<Cow<'v, str>> {
        match self.value(name)? {
            Value::Number(n) if n.is_u64() => Some(Cow::Owned(n.to_string())),
            _ => self.text(name, reader).map(Cow::Borrowed),
        }
    }

    /// A text of bounded length that names something.
    pub(super) fn name(&mut self, name: &'static str, reader: &mut Reader) -> Option<&'v str> {
        let text = self.text(name, reader)?;
        reader.check_name(text, &self.at(name)).then_some(text)
    }

    /// A whole number from 0.
    pub(super) fn whole(&mut self, name: &'static str, reader: &mut Reader) -> Option<u64> {
        let value = self.value(name)?;
        let whole = as_whole(value);
        if whole.is_none() {
            reader.error(self.at(name), format!("must be a whole number from 0, not {}", brief(value)));
        }
        whole
    }

    /// A whole number between two bounds, both allowed.
    pub(super) fn between(
        &mut self,
        name: &'static str,
        (low, high): (u64, u64),
        unit: &str,
        reader: &mut Reader,
    ) -> Option<u64> {
        let value = self.value(name)?;
        let found = as_whole(value).filter(|n| (low..=high).contains(n));
        if found.is_none() {
            let reason = format!("must be a whole number from {low} to {high}{unit}, not {}", brief(value));
            reader.error(self.at(name), reason);
        }
        found
    }

    pub(super) fn flag(&mut self, name: &'static str, reader: &mut Reader) -> Option<bool> {
        match self.value(name)? {
            Value::Bool(flag) => Some(*flag),
            other => {
                reader.error(self.at(name), format!("must be true or false, not {}", brief(other)));
                None
            }
        }
    }

    pub(super) fn list(&mut self, name: &'static str, reader: &mut Reader) -> Option<&'v [Value]> {
        match self.value(name)? {
            Value::Array(items) => Some(items),
            other => {
                reader.error(self.at(name), format!("must be an array, not {}", a_kind_of(other)));
                None
            }
        }
    }

    pub(super) fn map(&mut self, name: &'static str, reader: &mut Reader) -> Option<&'v Map<String, Value>> {
        match self.value(name)? {
            Value::Object(map) => Some(map),
            other => {
                reader.error(self.at(name), format!("must be an object, not {}", a_kind_of(other)));
                None
            }
        }
    }

    /// The fields of the object in field `name`.
    pub(super) fn inner(&mut self, name: &'static str, reader: &mut Reader) -> Option<Fields<'v>> {
        let value = self.value(name)?;
        Fields::of(value, self.at(name), reader)
    }

    /// Texts in an array; a single text is an array of one.
    pub(super) fn texts(&mut self, name: &'static str, reader: &mut Reader) -> Option<Vec<String>> {
        if let Some(Value::String(one)) = self.map.get(name) {
            self.value(name);
            return Some(vec![one.clone()]);
        }
        let items = self.list(name, reader)?;
        let mut texts = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text.clone()),
                other => {
                    let path = at_index(&self.at(name), i);
                    reader.error(path, format!("must be a string, not {}", a_kind_of(other)));
                }
            }
        }
        Some(texts)
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
        reader: &mut Reader,
    ) -> Option<T> {
        let text = self.text(name, reader)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let reason = format!("unknown {name} `{}`; it must be one of {}", shown(text), known.join(", "));
            reader.error_near(self.at(name), reason, text, known);
        }
        found
    }

    /// Whether the field has been asked for.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.known.contains(&name)
    }

    /// Makes a field known that is not read here.
    pub(super) fn allow(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// Reports the fields nobody asked for.
    pub(super) fn finish(self, reader: &mut Reader) {
        for key in self.map.keys() {
            if !self.known.contains(&key.as_str()) {
                reader.unknown_field(at_key(&self.path, key), key, &self.known);
            }
        }
    }
}

fn as_whole(value: &Value) -> Option<u64> {
    let whole = |f: f64| f >= 0.0 && f.fract() == 0.0 && f <= 9e15;
    // 3.0 is a whole number too: some writers know only one kind of number. The cast is exact below 2^53.
    value.as_u64().or_else(|| value.as_f64().filter(|f| whole(*f)).map(|f| f as u64))
}

/// About how many bytes a value takes; values here are nested 128 levels deep at most.
fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 16,
        Value::String(text) => text.len() + 16,
        Value::Array(items) => items.iter().map(bytes_of).sum::<usize>() + 16,
        Value::Object(map) => {
            map.iter().map(|(key, field)| key.len() + 16 + bytes_of(field)).sum::<usize>() + 16
        }
    }
}

fn brief(value: &Value) -> String {
    match value {
        Value::Number(n) => n.to_string(),
        Value::String(text) => format!("`{}`", shown(text)),
        Value::Bool(flag) => flag.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => a_kind_of(value).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(strictness: Strictness, value: &Value) -> Vec<String> {
        let mut reader = Reader::new(strictness);
        let mut fields = Fields::of(value, "$".to_owned(), &mut reader).unwrap();
        fields.text("service", &mut reader);
        fields.whole("wait_ms", &mut reader);
        fields.between("max", (1, 10), " s", &mut reader);
        fields.word("mode", &[("one", 1), ("two", 2)], &mut reader);
        fields.finish(&mut reader);
        reader.problems.into_list().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_wrong_field_is_reported_at_its_place() {
        let found = problems(
            Strictness::Strict,
            &json!({"servise": "x", "wait_ms": -1, "max": 11, "mode": "tow", "a b": 1}),
        );
        assert_eq!(
            found,
            [
                "$.wait_ms: error: must be a whole number from 0, not -1",
                "$.max: error: must be a whole number from 1 to 10 s, not 11",
                "$.mode: error: unknown mode `tow`; it must be one of one, two (did you mean `two`?)",
                "$[\"a b\"]: error: unknown field `a b`",
                "$.servise: error: unknown field `servise` (did you mean `service`?)",
            ]
        );
    }

    #[test]
    fn unknown_fields_are_warnings_where_clients_are_old() {
        let found = problems(Strictness::Lenient, &json!({"servise": "x", "wait_ms": 3.0, "mode": null}));
        assert_eq!(
            found,
            ["$.servise: warning: unknown field `servise` is ignored (did you mean `service`?)"]
        );
    }

    #[test]
    fn reserved_keys_cannot_be_written() {
        let mut reader = Reader::new(Strictness::Strict);
        for key in ["_rt", "_rt.pl:a", "_error", ""] {
            reader.check_shared_key(key, "$");
        }
        reader.check_shared_key("_rtx", "$");
        assert_eq!(reader.problems.into_list().len(), 4);
    }
}
