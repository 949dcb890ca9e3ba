//! Flags that describe a job, for `job create`, `queue push` and `schedule create`.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Map, Value};
use windlass_sdk::contract::{BackoffKind, NewJob, NewTask};

use crate::json::read_json;
use crate::session::{duration, in_ms};

/// The queue of a job that names none.
const DEFAULT_QUEUE: &str = "default";

#[derive(Debug, Clone, PartialEq, Default, Args)]
pub(crate) struct JobSpecArgs {
    /// The queue [default: default].
    #[arg(long, value_name = "NAME")]
    pub(super) queue: Option<String>,
    /// Jobs with a higher priority start first [default: 0].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// The payload for the worker: JSON, or plain text.
    #[arg(long, value_name = "JSON", value_parser = payload)]
    payload: Option<Value>,
    /// A deduplication key: while a job of the queue with this key is open, creating another one returns that job.
    #[arg(long, alias = "idempotency-key", value_name = "KEY")]
    dedup_key: Option<String>,
    /// Keep the key taken for this time after the creation, even if the job ends before: 10m, 1d.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    unique_for: Option<Duration>,
    /// Jobs with the same key share the queue's limits per key, and keys take turns.
    #[arg(long, value_name = "KEY")]
    limit_key: Option<String>,
    /// Extra tries after the first attempt [default: 2].
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// The time limit of one attempt: 30s, 5m.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    attempt_timeout: Option<Duration>,
    /// The growth of the delay between attempts [default: exponential].
    #[arg(long, value_name = "fixed|exponential", value_parser = backoff)]
    backoff: Option<BackoffKind>,
    /// The first delay between attempts [default: 5s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    backoff_base: Option<Duration>,
    /// The longest delay between attempts [default: 1h].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    backoff_cap: Option<Duration>,
    /// Do not randomize the delays.
    #[arg(long)]
    no_jitter: bool,
    /// The account that pays.
    #[arg(long)]
    pub(crate) account: Option<String>,
}

impl JobSpecArgs {
    /// Whether no flag is given.
    pub(crate) fn is_empty(&self) -> bool {
        *self == JobSpecArgs::default()
    }

    /// Whether at most the account is given, which runs have too.
    pub(crate) fn has_only_account(&self) -> bool {
        *self == JobSpecArgs { account: self.account.clone(), ..JobSpecArgs::default() }
    }

    fn has_retry(&self) -> bool {
        let has_backoff = self.backoff.is_some() || self.backoff_base.is_some() || self.backoff_cap.is_some();
        self.retries.is_some() || has_backoff || self.no_jitter
    }

    /// Overwrites the fields of a job that have a flag.
    pub(crate) fn apply_to(self, job: &mut NewJob) {
        if self.has_retry() {
            let retry = job.retry.get_or_insert_default();
            retry.max = self.retries.or(retry.max);
            retry.backoff = self.backoff.or(retry.backoff);
            retry.delay_ms = self.backoff_base.map(in_ms).or(retry.delay_ms);
            retry.cap_ms = self.backoff_cap.map(in_ms).or(retry.cap_ms);
            retry.jitter = self.no_jitter.then_some(false).or(retry.jitter);
        }
        job.queue = self.queue.unwrap_or(std::mem::take(&mut job.queue));
        job.priority = self.priority.unwrap_or(job.priority);
        job.payload = self.payload.unwrap_or(job.payload.take());
        job.dedup_key = self.dedup_key.unwrap_or(std::mem::take(&mut job.dedup_key));
        job.unique_for_ms = self.unique_for.map(in_ms).or(job.unique_for_ms);
        job.limit_key = self.limit_key.unwrap_or(std::mem::take(&mut job.limit_key));
        job.timeout_ms = self.attempt_timeout.map(in_ms).or(job.timeout_ms);
        job.account = self.account.or(job.account.take());
    }

    /// Overwrites the fields of a schedule's task that have a flag. The queue platform API counts the first attempt.
    pub(crate) fn apply_to_task(self, task: &mut NewTask) {
        if self.backoff.is_some()
            || self.backoff_base.is_some()
            || self.backoff_cap.is_some()
            || self.no_jitter
        {
            let backoff = task.backoff.get_or_insert_default();
            backoff.kind = self.backoff.or(backoff.kind);
            backoff.base_ms = self.backoff_base.map(in_ms).or(backoff.base_ms);
            backoff.cap_ms = self.backoff_cap.map(in_ms).or(backoff.cap_ms);
            backoff.jitter = self.no_jitter.then_some(false).or(backoff.jitter);
        }
        task.queue_name = self.queue.unwrap_or(std::mem::take(&mut task.queue_name));
        task.priority = self.priority.unwrap_or(task.priority);
        task.payload = self.payload.unwrap_or(task.payload.take());
        task.dedup_key = self.dedup_key.unwrap_or(std::mem::take(&mut task.dedup_key));
        task.unique_for_ms = self.unique_for.map(in_ms).or(task.unique_for_ms);
        task.limit_key = self.limit_key.unwrap_or(std::mem::take(&mut task.limit_key));
        task.max_retries = self.retries.map(|extra| extra.saturating_add(1)).or(task.max_retries);
        task.timeout_ms = self.attempt_timeout.map(in_ms).or(task.timeout_ms);
        task.account = self.account.or(task.account.take());
    }
}

/// The job that an object describes. The queue may be left out.
pub(super) fn job_of(value: Value, name: Option<&str>) -> Result<NewJob> {
    let mut fields = object(value, name)?;
    set_default(&mut fields, "queue", DEFAULT_QUEUE);
    Ok(serde_json::from_value(Value::Object(fields))?)
}

/// The task of a schedule that an object describes. The queue may be left out, and the type where `run_at` implies it.
pub(crate) fn task_of(value: Value, name: Option<&str>) -> Result<NewTask> {
    let mut fields = object(value, name)?;
    let is_immediate = fields.get("run_at").is_none_or(Value::is_null);
    set_default(&mut fields, "type", if is_immediate { "immediate" } else { "scheduled" });
    set_default(&mut fields, "queue_name", DEFAULT_QUEUE);
    Ok(serde_json::from_value(Value::Object(fields))?)
}

fn object(value: Value, name: Option<&str>) -> Result<Map<String, Value>> {
    let Value::Object(mut fields) = value else {
        bail!("a job is a JSON object such as {{\"name\": \"thumbnail\", \"payload\": {{}}}}")
    };
    if let Some(name) = name {
        fields.insert("name".to_owned(), Value::from(name));
    }
    Ok(fields)
}

fn set_default(fields: &mut Map<String, Value>, name: &str, value: &str) {
    fields.entry(name).or_insert_with(|| Value::from(value));
}

/// Reads JSON or plain text. A text that begins like JSON and is not valid is a slip.
fn payload(text: &str) -> Result<Value, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(_) => read_json(text.as_bytes()).map_err(|flaw| flaw.to_string()),
        Err(error) if text.trim_start().starts_with(['{', '[', '"']) => {
            Err(format!("not valid JSON: {error}"))
        }
        Err(_plain) => Ok(Value::String(text.to_owned())),
    }
}

fn backoff(text: &str) -> Result<BackoffKind, String> {
    serde_json::from_value(Value::from(text)).map_err(|_| "write fixed or exponential".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_sdk::contract::{JobRetry, TaskType};

    use super::*;

    #[test]
    fn the_queue_of_a_job_may_be_left_out() {
        let job = job_of(json!({"payload": 1}), Some("a")).unwrap();
        assert_eq!((job.name.as_str(), job.queue.as_str()), ("a", DEFAULT_QUEUE));
        assert!(job_of(json!([]), None).is_err());
        let error = job_of(json!({"name": "a", "queue_name": "b"}), None).unwrap_err().to_string();
        assert!(error.contains("unknown field `queue_name`") && error.contains("`queue`"), "{error}");
        let task = task_of(json!({"name": "a", "run_at": "2030-01-01T00:00:00Z"}), None).unwrap();
        assert_eq!((task.queue_name.as_str(), task.kind), (DEFAULT_QUEUE, Some(TaskType::Scheduled)));
    }

    #[test]
    fn flags_win_over_the_file() {
        let file = json!({"name": "a", "priority": 1, "payload": 1, "retry": {"delay_ms": 7, "cap_ms": 9}});
        let mut job = job_of(file, None).unwrap();
        let flags = JobSpecArgs {
            priority: Some(2),
            retries: Some(4),
            backoff_base: Some(Duration::from_secs(1)),
            no_jitter: true,
            ..JobSpecArgs::default()
        };
        flags.clone().apply_to(&mut job);
        assert_eq!((job.priority, job.payload.clone()), (2, json!(1)));
        let retry = JobRetry {
            max: Some(4),
            delay_ms: Some(1_000),
            backoff: None,
            cap_ms: Some(9),
            jitter: Some(false),
        };
        assert_eq!(job.retry, Some(retry));
        let mut task = task_of(json!({"name": "a"}), None).unwrap();
        flags.apply_to_task(&mut task);
        assert_eq!(task.max_retries, Some(5));
    }

    #[test]
    fn a_payload_that_is_nearly_json_is_refused() {
        assert_eq!(payload("7"), Ok(json!(7)));
        assert_eq!(payload("cat.png"), Ok(json!("cat.png")));
        assert!(payload("{file: 1}").is_err());
    }
}
