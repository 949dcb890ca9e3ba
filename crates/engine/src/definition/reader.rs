//! Reading values field by field, so that every problem is found and each names its place.
//!
//! `Reader` collects problems and counts limited resources; `Fields` takes known fields out of one object and
//! reports the unknown ones. A null field counts as absent, because many writers spell absence that way.

mod fields;
mod hint;

use std::collections::BTreeSet;

use serde_json::Value;

use super::Strictness;
use super::graph::calls::Doer;
use super::join::EarlyRead;
use super::refs::Outward;
use crate::limits;
use crate::params::Params;
use crate::problem::{Problems, did_you_mean};
pub(super) use fields::Fields;

/// Names compared for suggestions in one definition; a suggestion is a courtesy, not worth a slow refusal.
const SUGGESTION_BUDGET: usize = 20_000;

/// Bytes of parameters that branches have from their nodes, in one definition.
const COPIED_BYTES: usize = 64 << 20;

/// Characters of a user's text that a message or a path repeats.
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
    /// Node names of the enclosing scopes, outermost first: references may name them.
    pub(super) scopes: Vec<BTreeSet<String>>,
    /// Reads of nodes of the enclosing scopes that those scopes have not checked yet.
    pub(super) outward: Vec<Outward>,
    /// Keys that the shared state of the scope begins with; `None` = unknown.
    pub(super) begins_with: Option<BTreeSet<String>>,
    /// Fields that `subflow_execs` of the enclosing node gives to the node that is read next.
    pub(super) doer: Option<Doer>,
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
            outward: Vec::new(),
            begins_with: Some(BTreeSet::new()),
            doer: None,
        }
    }

    /// Whether old clients wrote the definition, which write a zero for a value that is absent.
    pub(super) fn is_lenient(&self) -> bool {
        self.strictness == Strictness::Lenient
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

    /// Reports a value that is read before it exists.
    pub(super) fn out_of_order(
        &mut self,
        path: String,
        reason: String,
        hint: Option<String>,
        early: EarlyRead,
    ) {
        match early {
            EarlyRead::Refused => self.strict_error(path, reason, hint),
            EarlyRead::Warned => self.hint_warning(path, reason, hint),
        }
    }

    /// Reports an error that earlier releases did not report: a version that was published then is read leniently and
    /// gets a warning.
    pub(super) fn strict_error(&mut self, path: String, reason: String, hint: Option<String>) {
        self.n_problems += 1;
        match self.strictness {
            Strictness::Strict => self.problems.error_hint(path, reason, hint),
            Strictness::Lenient => self.problems.warning(path, reason, hint),
        }
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

    /// Counts `n` branches in, each with its node's parameters; false, with a problem, when they would
    /// become too many or too large.
    pub(super) fn admit_branches(&mut self, n: usize, params: &Params, path: &str) -> bool {
        self.n_branches = self.n_branches.saturating_add(n);
        let bytes: usize = params.fields().iter().map(|(key, value)| key.len() + bytes_of(value)).sum();
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
            return false;
        }
        // A name is printed in terminals and logs.
        if name.contains(char::is_control) {
            self.error(path, format!("`{}` has control characters: leave them out", shown(name)));
            return false;
        }
        true
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
        let hint = hint::of_field(key, known).or_else(|| self.suggestion(key, known.iter().copied()));
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

/// A user's text, cut to a length that fits a message, without line breaks.
pub(super) fn shown(text: &str) -> String {
    let mut cut: String =
        text.chars().take(SHOWN_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        cut.push('…');
    }
    cut
}

/// The path of field `key` in the object at `path`.
pub(crate) fn at_key(path: &str, key: &str) -> String {
    let plain = !key.is_empty()
        && key.chars().count() <= SHOWN_CHARS
        && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    if plain { format!("{path}.{key}") } else { format!("{path}[\"{}\"]", shown(key)) }
}

/// The path of item `i` of the array at `path`.
pub(crate) fn at_index(path: &str, i: usize) -> String {
    format!("{path}[{i}]")
}

/// The kind of a value with its article, for messages.
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

/// Whether a writer that always writes every field would have written this for an absent one.
pub(super) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_blank),
    }
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
                "$.max: error: must be a whole number from 1 to 10 s, not 11",
                "$.mode: error: unknown mode `tow`; it must be one of one, two (did you mean `two`?)",
                "$.servise: error: unknown field `servise` (did you mean `service`?)",
                "$.wait_ms: error: must be a whole number from 0, not -1",
                "$[\"a b\"]: error: unknown field `a b`",
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
