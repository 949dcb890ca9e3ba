//! The spelling of responses: objects are made in snake_case, and the first era spells some of their fields in its own
//! way.

use axum::Json;
use serde_json::{Map, Value, json};

/// Which of the two spellings a client was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// The first one: no prefix.
    First,
    /// The later one: under `/api`.
    Prefixed,
}

/// The objects that both eras know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noun {
    Worker,
    Flow,
    Version,
    Task,
    Attempt,
}

const WORKER: [&str; 6] = ["id", "url", "services", "load", "last_heartbeat", "status"];
const FLOW: [&str; 4] = ["id", "name", "description", "created_at"];
const VERSION: [&str; 5] = ["id", "flow_id", "version", "definition_json", "status"];
const TASK: [&str; 14] = [
    "id",
    "flow_version_id",
    "status",
    "params_json",
    "shared_json",
    "current_node_key",
    "last_action",
    "step_count",
    "retry_state_json",
    "lease_owner",
    "lease_expiry",
    "request_id",
    "created_at",
    "updated_at",
];
const ATTEMPT: [&str; 14] = [
    "id",
    "task_id",
    "node_key",
    "attempt_no",
    "status",
    "prep_json",
    "exec_input_json",
    "exec_output_json",
    "error_text",
    "action",
    "started_at",
    "finished_at",
    "worker_id",
    "worker_url",
];

impl Noun {
    /// The fields that the first era knows.
    fn first_fields(self) -> &'static [&'static str] {
        match self {
            Noun::Worker => &WORKER,
            Noun::Flow => &FLOW,
            Noun::Version => &VERSION,
            Noun::Task => &TASK,
            Noun::Attempt => &ATTEMPT,
        }
    }
}

impl Era {
    /// Whether every value of an `input_map` without a `$` is a path of the shared state.
    pub(super) fn has_bare_paths(self) -> bool {
        self == Era::First
    }

    /// An object, spelled as this era does.
    pub(super) fn object(self, noun: Noun, mut fields: Map<String, Value>) -> Value {
        let spelled = match self {
            Era::Prefixed => return Value::Object(fields),
            Era::First if noun == Noun::Attempt => camel,
            Era::First => pascal,
        };
        let known = noun.first_fields().iter();
        Value::Object(known.filter_map(|name| Some((spelled(name), fields.remove(*name)?))).collect())
    }

    /// A page of a list: the first era has bare arrays.
    pub(super) fn page(self, data: Vec<Value>, total: Option<u64>, page: usize, size: usize) -> Json<Value> {
        Json(match self {
            Era::First => Value::Array(data),
            Era::Prefixed => json!({"data": data, "total": total, "page": page, "size": size}),
        })
    }

    /// Items of a page when the client does not say: who gets a bare array cannot tell that there is more.
    pub(super) fn page_size(self) -> usize {
        match self {
            Era::First => 100,
            Era::Prefixed => 10,
        }
    }
}

fn pascal(name: &str) -> String {
    name.split('_').map(|word| if is_acronym(word) { word.to_uppercase() } else { capital(word) }).collect()
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default();
    std::iter::once(first.to_owned()).chain(words.map(capital)).collect()
}

/// Words that the first era writes in capitals.
fn is_acronym(word: &str) -> bool {
    matches!(word, "id" | "url" | "json")
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_era_spells_fields_as_its_document_does() {
        assert_eq!(pascal("flow_version_id"), "FlowVersionID");
        assert_eq!(pascal("retry_state_json"), "RetryStateJSON");
        assert_eq!(pascal("url"), "URL");
        assert_eq!(pascal("last_heartbeat"), "LastHeartbeat");
        assert_eq!(camel("exec_input_json"), "execInputJson");
        assert_eq!(camel("worker_url"), "workerUrl");
        assert_eq!(camel("id"), "id");
    }

    #[test]
    fn the_first_era_leaves_out_what_it_does_not_know() {
        let fields = json!({"id": "w", "type": "http", "load": 2}).as_object().cloned().unwrap();
        assert_eq!(Era::First.object(Noun::Worker, fields.clone()), json!({"ID": "w", "Load": 2}));
        assert_eq!(Era::Prefixed.object(Noun::Worker, fields.clone()), Value::Object(fields));
    }
}
