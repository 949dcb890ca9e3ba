//! What a job is to be, said by flags.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Map, Value};
use windlass_sdk::types::{BackoffKind, NewTask};

use crate::session::{duration, in_ms};

/// The queue of a job that names none.
const QUEUE: &str = "default";

#[derive(Debug, Clone, PartialEq, Default, Args)]
pub(crate) struct Spec {
    /// The queue; `default` unless named.
    #[arg(long, value_name = "NAME")]
    pub(super) queue: Option<String>,
    /// Higher goes first; 0 unless given.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// What the worker is given: JSON, or text where it is none.
    #[arg(long, value_name = "JSON", value_parser = payload)]
    payload: Option<Value>,
    /// While a job of the queue with this key is open, creating another answers with that one.
    #[arg(long, alias = "idempotency-key", value_name = "KEY")]
    dedup_key: Option<String>,
    /// Keep the key taken for so long after the creation, even if the job ends before: 10m, 1d.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    unique_for: Option<Duration>,
    /// Jobs with the same key share what the queue limits per key, and keys take turns.
    #[arg(long, value_name = "KEY")]
    limit_key: Option<String>,
    /// Attempts, the first included; 3 unless given.
    #[arg(long, value_name = "N")]
    max_retries: Option<u32>,
    /// The time limit of one attempt: 30s, 5m.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    attempt_timeout: Option<Duration>,
    /// How delays between attempts grow; exponential unless given.
    #[arg(long, value_name = "fixed|exponential", value_parser = kind)]
    backoff: Option<BackoffKind>,
    /// The first delay between attempts; 5s unless given.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    backoff_base: Option<Duration>,
    /// The longest delay between attempts; an hour unless given.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    backoff_cap: Option<Duration>,
    /// Do not spread the delays.
    #[arg(long)]
    no_jitter: bool,
    /// Who pays.
    #[arg(long)]
    pub(crate) account: Option<String>,
}

impl Spec {
    /// Whether nothing was said.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Spec::default()
    }

    /// Whether nothing was said that only jobs have.
    pub(crate) fn says_only_who_pays(&self) -> bool {
        *self == Spec { account: self.account.clone(), ..Spec::default() }
    }

    /// Lays what was said over a job.
    pub(crate) fn lay_over(self, task: &mut NewTask) {
        self.lay_backoff_over(task);
        let ms = |length: Option<Duration>| length.map(in_ms);
        task.queue_name = self.queue.unwrap_or(std::mem::take(&mut task.queue_name));
        task.priority = self.priority.unwrap_or(task.priority);
        task.payload = self.payload.unwrap_or(task.payload.take());
        task.dedup_key = self.dedup_key.unwrap_or(std::mem::take(&mut task.dedup_key));
        task.unique_for_ms = ms(self.unique_for).or(task.unique_for_ms);
        task.limit_key = self.limit_key.unwrap_or(std::mem::take(&mut task.limit_key));
        task.max_retries = self.max_retries.or(task.max_retries);
        task.timeout_ms = ms(self.attempt_timeout).or(task.timeout_ms);
        task.account = self.account.or(task.account.take());
    }

    fn lay_backoff_over(&self, task: &mut NewTask) {
        let is_said = self.backoff.is_some() || self.backoff_base.is_some() || self.backoff_cap.is_some();
        if !is_said && !self.no_jitter {
            return;
        }
        let backoff = task.backoff.get_or_insert_default();
        backoff.kind = self.backoff.or(backoff.kind);
        backoff.base_ms = self.backoff_base.map(in_ms).or(backoff.base_ms);
        backoff.cap_ms = self.backoff_cap.map(in_ms).or(backoff.cap_ms);
        backoff.jitter = self.no_jitter.then_some(false).or(backoff.jitter);
    }
}

/// The job that an object describes. What every job must say and most say alike may be left out: the queue, and the type
/// where `run_at` tells it.
pub(crate) fn task_of(value: Value, name: Option<&str>) -> Result<NewTask> {
    let mut fields = match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            bail!("a job is a JSON object such as {{\"name\": \"thumbnail\", \"payload\": {{}}}}")
        }
    };
    if let Some(name) = name {
        fields.insert("name".to_owned(), Value::from(name));
    }
    let is_at_once = fields.get("run_at").is_none_or(Value::is_null);
    absent(&mut fields, "type", if is_at_once { "immediate" } else { "scheduled" });
    absent(&mut fields, "queue_name", QUEUE);
    Ok(serde_json::from_value(Value::Object(fields))?)
}

fn absent(fields: &mut Map<String, Value>, name: &str, value: &str) {
    fields.entry(name).or_insert_with(|| Value::from(value));
}

/// JSON, or text where it is none; what begins as JSON and is none was meant otherwise.
fn payload(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) if text.trim_start().starts_with(['{', '[', '"']) => {
            Err(format!("it is no JSON: {error}"))
        }
        Err(_plain) => Ok(Value::String(text.to_owned())),
    }
}

fn kind(text: &str) -> Result<BackoffKind, String> {
    serde_json::from_value(Value::from(text)).map_err(|_| "it must be fixed or exponential".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_sdk::types::{TaskBackoff, TaskType};

    use super::*;

    #[test]
    fn what_jobs_have_in_common_may_be_left_out() {
        let task = task_of(json!({"payload": 1}), Some("a")).unwrap();
        assert_eq!((task.name.as_str(), task.queue_name.as_str()), ("a", QUEUE));
        assert_eq!(task.kind, Some(TaskType::Immediate));
        let task = task_of(json!({"name": "a", "run_at": "2030-01-01T00:00:00Z"}), None).unwrap();
        assert_eq!(task.kind, Some(TaskType::Scheduled));
        assert!(task_of(json!([]), None).is_err());
        let error = task_of(json!({"name": "a", "queue": "b"}), None).unwrap_err().to_string();
        assert!(error.contains("unknown field `queue`") && error.contains("queue_name"), "{error}");
    }

    #[test]
    fn flags_win_over_the_file() {
        let file = json!({"name": "a", "priority": 1, "payload": 1, "backoff": {"base_ms": 7, "cap_ms": 9}});
        let mut task = task_of(file, None).unwrap();
        let said = Spec {
            priority: Some(2),
            backoff_base: Some(Duration::from_secs(1)),
            no_jitter: true,
            ..Spec::default()
        };
        said.lay_over(&mut task);
        assert_eq!((task.priority, task.payload.clone()), (2, json!(1)));
        let backoff = TaskBackoff { kind: None, base_ms: Some(1_000), cap_ms: Some(9), jitter: Some(false) };
        assert_eq!(task.backoff, Some(backoff));
    }

    #[test]
    fn a_payload_that_is_nearly_json_is_refused() {
        assert_eq!(payload("7"), Ok(json!(7)));
        assert_eq!(payload("cat.png"), Ok(json!("cat.png")));
        assert!(payload("{file: 1}").is_err());
    }
}
