//! The specification of a job, and its validation.

use serde::{Deserialize, Serialize};

use crate::id::RunId;
use crate::limits;
use crate::money::Price;
use crate::problem::{Problem, Problems};
use crate::raw_json::RawJson;
use crate::retry::{Backoff, CAP_MS_DEFAULT, Policy};
use crate::time::{LATEST, Timestamp};

/// Attempts of a round unless the job says otherwise.
pub const MAX_RETRIES_DEFAULT: u32 = 3;
/// Attempts of a round at most: more is a loop, not a retry.
pub const MAX_RETRIES_MAX: u32 = 1_000;
/// The first delay between attempts unless the job says otherwise.
pub const BASE_MS_DEFAULT: u64 = 5_000;
/// The longest any single time of a job may be: a year. Longer waits are schedules.
pub const SPAN_MS_MAX: u64 = 366 * 86_400_000;

/// The specification of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    pub name: String,
    pub queue: String,
    /// Higher goes first.
    #[serde(default)]
    pub priority: i32,
    #[serde(default)]
    pub payload: RawJson,
    /// Among open jobs of a queue there is one with this key; empty = no matter.
    #[serde(default)]
    pub dedup_key: String,
    /// How long after its creation the key stays taken, even if the job ends before; 0 = until it ends.
    #[serde(default)]
    pub unique_for_ms: u64,
    /// Jobs of a queue with the same key share the limits that the queue sets per key, and keys take turns; empty =
    /// no matter.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub limit_key: String,
    /// All attempts of a round, the first included; 0 counts as 1.
    #[serde(default = "max_retries_default")]
    pub max_retries: u32,
    /// Not before this moment.
    #[serde(default)]
    pub run_at: Option<Timestamp>,
    /// Time limit of one attempt, from its claim; 0 = none.
    #[serde(default)]
    pub timeout_ms: u64,
    #[serde(default)]
    pub backoff: JobBackoff,
    /// The account that pays.
    #[serde(default)]
    pub account: Option<String>,
    /// The charge of a round: the price of the service when the job was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The run whose call this job carries. Such a job is one attempt of a node: the run alone decides about
    /// another, so it has no second attempt and is never a dead letter.
    #[serde(default)]
    pub run: Option<RunId>,
}

fn max_retries_default() -> u32 {
    MAX_RETRIES_DEFAULT
}

/// How long a job waits between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobBackoff {
    pub kind: Backoff,
    pub base_ms: u64,
    pub cap_ms: u64,
    pub jitter: bool,
}

impl Default for JobBackoff {
    fn default() -> Self {
        Self { kind: Backoff::Exponential, base_ms: BASE_MS_DEFAULT, cap_ms: CAP_MS_DEFAULT, jitter: true }
    }
}

/// The moment of a job that never comes: the job is a template for schedules.
pub const TEMPLATE_RUN_AT: Timestamp = LATEST;

impl JobSpec {
    /// Whether the job only waits to be copied by schedules.
    pub fn is_template(&self) -> bool {
        self.run_at == Some(TEMPLATE_RUN_AT)
    }

    /// A job with nothing but a name and a queue.
    pub fn new(name: impl Into<String>, queue: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            queue: queue.into(),
            priority: 0,
            payload: RawJson::default(),
            dedup_key: String::new(),
            unique_for_ms: 0,
            limit_key: String::new(),
            max_retries: MAX_RETRIES_DEFAULT,
            run_at: None,
            timeout_ms: 0,
            backoff: JobBackoff::default(),
            account: None,
            price: None,
            run: None,
        }
    }

    /// Every error in it, each with the field as clients spell it and the allowed values.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        text(&mut problems, "$.name", &self.name, true);
        text(&mut problems, "$.queue_name", &self.queue, true);
        if self.queue.contains(char::is_whitespace) {
            problems.error("$.queue_name", "the name of a queue has no spaces in it; use `-` or `_`");
        }
        // They separate the parts of a key in Redis.
        if self.queue.contains([':', '{', '}']) {
            problems.error(
                "$.queue_name",
                "the name of a queue has no `:`, `{` or `}` in it; use `-`, `_` or `.`",
            );
        }
        text(&mut problems, "$.dedup_key", &self.dedup_key, false);
        text(&mut problems, "$.limit_key", &self.limit_key, false);
        if let Some(account) = &self.account {
            text(&mut problems, "$.account", account, true);
        }
        if self.max_retries > MAX_RETRIES_MAX {
            let reason = format!("{} attempts are too many, {MAX_RETRIES_MAX} are allowed", self.max_retries);
            problems.error("$.max_retries", reason);
        }
        for (path, ms) in [
            ("$.timeout_ms", self.timeout_ms),
            ("$.unique_for_ms", self.unique_for_ms),
            ("$.backoff.base_ms", self.backoff.base_ms),
            ("$.backoff.cap_ms", self.backoff.cap_ms),
        ] {
            if ms > SPAN_MS_MAX {
                problems.error(path, format!("{ms} is too long, {SPAN_MS_MAX} (one year) is allowed"));
            }
        }
        if self.unique_for_ms > 0 && self.dedup_key.is_empty() {
            problems.error("$.unique_for_ms", "there is nothing to be unique by; set `dedup_key` as well");
        }
        // A worker reads it inside a response, and JSON readers have limits. Calls of runs were weighed by the run.
        if self.run.is_none()
            && let Err(excess) = self.payload.weigh()
        {
            problems.error("$.payload", format!("it {excess}; send a reference to it"));
        }
        if let Err(fault) = super::charge::estimate(self) {
            problems.error("$.payload", format!("what it costs cannot be told: {fault}"));
        }
        if self.run_at.is_some_and(|at| at > LATEST || at.0 < -LATEST.0) {
            problems
                .error("$.run_at", "the moment is outside the calendar, the years up to 9999 are allowed");
        }
        problems.into_list()
    }

    /// How many attempts a round may have.
    pub fn attempts_max(&self) -> u32 {
        if self.run.is_some() { 1 } else { self.max_retries.max(1) }
    }

    /// The delays between its attempts.
    pub(super) fn policy(&self) -> Policy {
        let JobBackoff { kind, base_ms, cap_ms, jitter } = self.backoff;
        Policy { max: self.attempts_max() - 1, delay_ms: base_ms, backoff: kind, cap_ms, jitter }
    }
}

fn text(problems: &mut Problems, path: &str, value: &str, required: bool) {
    if required && value.trim().is_empty() {
        problems.error(path, "it is required and must not be empty");
    }
    if value.len() > limits::NAME_BYTES {
        let reason = format!("it has {} bytes, at most {} are allowed", value.len(), limits::NAME_BYTES);
        problems.error(path, reason);
    }
    if value.contains(char::is_control) {
        problems.error(path, "control characters are not allowed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_job_is_fine_and_has_the_documented_defaults() {
        let spec: JobSpec = serde_json::from_str(r#"{"name": "demo", "queue": "default"}"#).unwrap();
        assert_eq!(spec, JobSpec::new("demo", "default"));
        assert_eq!(spec.problems(), []);
        assert_eq!(spec.attempts_max(), 3);
        assert_eq!(spec.policy().delay_ms, 5_000);
    }

    #[test]
    fn the_name_of_a_queue_has_no_characters_that_separate_keys_of_redis() {
        for name in ["a:b", "{a", "a}"] {
            let problems = JobSpec::new("demo", name).problems();
            assert_eq!(problems.len(), 1, "{name}: {problems:?}");
            assert!(problems[0].path == "$.queue_name" && problems[0].reason.contains("`:`"), "{problems:?}");
        }
        assert_eq!(JobSpec::new("@http/get:v1", "a.b_c-d/e").problems(), []);
    }

    #[test]
    fn every_bad_field_is_named_at_once() {
        let spec = JobSpec {
            name: " ".to_owned(),
            queue: "two words".to_owned(),
            dedup_key: "k\n".to_owned(),
            account: Some("a".repeat(256)),
            max_retries: 1_001,
            timeout_ms: u64::MAX,
            run_at: Some(Timestamp(i64::MAX)),
            backoff: JobBackoff { base_ms: u64::MAX, ..JobBackoff::default() },
            ..JobSpec::new("", "")
        };
        let paths: Vec<String> = spec.problems().into_iter().map(|problem| problem.path).collect();
        let expected = [
            "$.account",
            "$.backoff.base_ms",
            "$.dedup_key",
            "$.max_retries",
            "$.name",
            "$.queue_name",
            "$.run_at",
            "$.timeout_ms",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_payload_that_no_worker_could_read_is_refused() {
        let deep = |n| (0..n).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
        let spec = |n| JobSpec { payload: deep(n).into(), ..JobSpec::new("a", "b") };
        assert_eq!(spec(63).problems(), []);
        assert_eq!(spec(64).problems()[0].path, "$.payload");
    }

    #[test]
    fn uniqueness_needs_a_key() {
        let spec = JobSpec { unique_for_ms: 5, ..JobSpec::new("a", "b") };
        assert_eq!(spec.problems()[0].path, "$.unique_for_ms");
    }

    #[test]
    fn no_retries_still_means_one_attempt() {
        assert_eq!(JobSpec { max_retries: 0, ..JobSpec::new("a", "b") }.attempts_max(), 1);
        let run = Some(RunId::new(uuid::Uuid::from_u128(1)));
        assert_eq!(JobSpec { run, ..JobSpec::new("a", "b") }.attempts_max(), 1);
    }
}
