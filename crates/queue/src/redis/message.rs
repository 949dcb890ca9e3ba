//! Jobs as Redis shows them: the messages of the queue platform, in JSON.
//!
//! The server reads only the id of the task from a message, and the job from the store: a forged message changes nothing.
//! The ids and the priority stand before the payload, so that scripts find them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, State, attempt_id};
use windlass_engine::raw_json::RawJson;
use windlass_engine::retry::Fault;
use windlass_store::job::OUTLINE_PAYLOAD_MAX;

/// Bytes of a payload in a message.
pub const PAYLOAD_MAX: usize = OUTLINE_PAYLOAD_MAX;

/// A job in a list or set of its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobMessage {
    pub queue: String,
    pub text: String,
}

/// A job that was popped: no other server gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoppedJob {
    pub job: JobId,
    pub message: JobMessage,
}

#[derive(Serialize)]
struct MessageFields<'m> {
    task_run_id: Uuid,
    task_id: Uuid,
    attempt: u32,
    priority: i32,
    queue_name: &'m str,
    max_retries: u32,
    payload: MessagePayload<'m>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    payload_cut: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'m Fault>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum MessagePayload<'m> {
    Whole(&'m RawJson),
    Beginning(&'m str),
}

/// The parts of a message that the program reads.
#[derive(Deserialize)]
pub(super) struct MessageIds {
    pub(super) task_run_id: String,
    pub(super) task_id: Uuid,
    pub(super) priority: i64,
}

impl JobMessage {
    /// The message of a job.
    pub fn of(job: &Job) -> JobMessage {
        let payload = &job.spec.payload;
        match payload.as_str().len() > PAYLOAD_MAX {
            true => Self::with(job, MessagePayload::Beginning(beginning(payload.as_str()))),
            false => Self::with(job, MessagePayload::Whole(payload)),
        }
    }

    /// The message of a job whose payload is a text: the beginning of a larger one.
    pub fn of_cut(job: &Job) -> JobMessage {
        let payload: String = job.spec.payload.read().unwrap_or_default();
        Self::with(job, MessagePayload::Beginning(beginning(&payload)))
    }

    fn with(job: &Job, payload: MessagePayload<'_>) -> JobMessage {
        let attempt = job.latest().number;
        let fields = MessageFields {
            task_run_id: attempt_id(job.id, attempt),
            task_id: job.id.uuid(),
            attempt,
            priority: job.spec.priority,
            queue_name: &job.spec.queue,
            max_retries: job.spec.max_retries,
            payload_cut: matches!(payload, MessagePayload::Beginning(_)),
            payload,
            error: match &job.state {
                State::Failed { reason, .. } => Some(reason),
                State::Pending { .. }
                | State::Queued { .. }
                | State::Running { .. }
                | State::Suspended { .. }
                | State::Retrying { .. }
                | State::Succeeded
                | State::Canceled => None,
            },
        };
        let text = serde_json::to_string(&fields).expect("the fields are plain data");
        JobMessage { queue: job.spec.queue.clone(), text }
    }
}

/// Reads a message; `None` if another program wrote it.
pub(super) fn read(text: &[u8]) -> Option<MessageIds> {
    serde_json::from_slice(text).ok()
}

/// As much of a text as a message holds.
fn beginning(text: &str) -> &str {
    let mut end = text.len().min(PAYLOAD_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use windlass_engine::job::JobSpec;
    use windlass_engine::time::Timestamp;

    use super::*;

    fn job(payload: Value) -> Job {
        let spec =
            JobSpec { payload: payload.into(), priority: -3, max_retries: 2, ..JobSpec::new("name", "q") };
        Job::create(JobId::new(Uuid::from_u128(7)), spec, Timestamp(0)).unwrap().0
    }

    #[test]
    fn a_message_has_the_documented_fields() {
        let message = JobMessage::of(&job(json!({"priority": 99})));
        let expected = json!({
            "task_run_id": "00000000-0000-0000-0000-000000000001",
            "task_id": "00000000-0000-0000-0000-000000000007",
            "attempt": 1, "payload": {"priority": 99}, "priority": -3, "queue_name": "q", "max_retries": 2,
        });
        assert_eq!(serde_json::from_str::<Value>(&message.text).unwrap(), expected);
        assert!(message.text.find("-3").unwrap() < message.text.find("99").unwrap());
        let ids = read(message.text.as_bytes()).unwrap();
        assert_eq!((ids.task_id, ids.priority), (Uuid::from_u128(7), -3));
    }

    #[test]
    fn a_large_payload_is_cut_between_two_characters_wherever_the_message_is_made() {
        let large = job(json!("é".repeat(3_000)));
        let message: Value = serde_json::from_str(&JobMessage::of(&large).text).unwrap();
        let beginning = message["payload"].as_str().unwrap();
        assert_eq!((message["payload_cut"].as_bool(), beginning.len()), (Some(true), PAYLOAD_MAX - 1));
        // A reader of the store gets more characters than fit.
        let text = large.spec.payload.as_str();
        let stored: String = text.chars().take(PAYLOAD_MAX).collect();
        assert_eq!(JobMessage::of_cut(&job(Value::String(stored))).text, JobMessage::of(&large).text);
    }
}
