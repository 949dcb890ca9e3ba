//! One run of a bulk action: the input that it gets, and the outcome.

use std::time::Duration;

use serde_json::{Map, Value};
use windlass_engine::id::BulkId;
use windlass_engine::input::{Input, Refusal};
use windlass_engine::path::NodePath;
use windlass_store::bulk::{BulkSpec, BulkTarget};
use windlass_store::run::{RunRef, RunStatus};

use super::Bulks;
use crate::part::RuntimePart;
use crate::{RuntimeError, SubmitError};

/// The pause before an input is submitted again that found too much work.
const BUSY_DELAY: Duration = Duration::from_millis(200);

/// The input of a bulk action.
#[derive(Debug, Clone, PartialEq)]
pub enum BulkInput {
    Cancel { reason: Option<String>, by: Option<String> },
    Retry,
    Rerun { from: NodePath, shared: Option<Map<String, Value>> },
    Pause,
    Resume,
    Signal { key: String, value: Value },
}

/// The outcome of the input for one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Failed { code: String, message: String },
}

impl BulkInput {
    /// Reads the request of a bulk action.
    pub fn of(spec: &BulkSpec) -> Result<BulkInput, String> {
        let text = |key: &str| spec.args.get(key).and_then(Value::as_str).map(str::to_owned);
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        match spec.action.as_str() {
            "cancel" => Ok(BulkInput::Cancel { reason: given(&spec.reason), by: given(&spec.actor) }),
            "retry" => Ok(BulkInput::Retry),
            "rerun" => {
                let from =
                    text("from").ok_or("`args.from` is missing: name the node from which runs start")?;
                let shared = match spec.args.get("shared") {
                    None | Some(Value::Null) => None,
                    Some(Value::Object(shared)) => Some(shared.clone()),
                    Some(_) => return Err("`args.shared` is no object".to_owned()),
                };
                Ok(BulkInput::Rerun { from: NodePath::from(from.as_str()), shared })
            }
            "pause" => Ok(BulkInput::Pause),
            "resume" => Ok(BulkInput::Resume),
            "signal" => {
                let key = text("key").ok_or("`args.key` is missing: name the signal")?;
                let value = spec.args.get("value").cloned().unwrap_or_default();
                Ok(BulkInput::Signal { key, value })
            }
            other => Err(format!("`{other}` is no action")),
        }
    }

    /// Whether a run with this status would take it.
    pub fn fits(&self, status: RunStatus) -> bool {
        match self {
            BulkInput::Cancel { .. } => status.is_open() && status != RunStatus::Canceling,
            BulkInput::Retry => matches!(status, RunStatus::Failed | RunStatus::Canceled),
            BulkInput::Rerun { .. } => !status.is_open(),
            BulkInput::Pause => {
                status.is_open() && !matches!(status, RunStatus::Canceling | RunStatus::Paused)
            }
            BulkInput::Resume => status == RunStatus::Paused,
            BulkInput::Signal { .. } => status.is_open(),
        }
    }

    fn input(&self, bulk: BulkId) -> Input {
        match self.clone() {
            BulkInput::Cancel { reason, by } => Input::Cancel { reason, by },
            BulkInput::Retry => Input::Retry,
            BulkInput::Rerun { from, shared } => Input::Rerun { from, shared },
            BulkInput::Pause => Input::Pause,
            BulkInput::Resume => Input::Resume,
            // A signal with an id that the run has seen is a no-op.
            BulkInput::Signal { key, value } => {
                Input::Signal { id: Some(bulk.to_string()), key, value, by: None }
            }
        }
    }

    fn opens_a_round(&self) -> bool {
        matches!(self, BulkInput::Retry | BulkInput::Rerun { .. })
    }
}

impl Bulks {
    /// Submits the input to one run.
    pub(super) async fn submit(
        &self,
        bulk: BulkId,
        target: BulkTarget,
        input: BulkInput,
    ) -> Result<Outcome, RuntimeError> {
        if input.opens_a_round() {
            let row = self.store().run(self.project(), RunRef::Id(target.run)).await?;
            if row.is_some_and(|row| row.projection.round > target.round) {
                return Ok(Outcome::Done);
            }
        }
        loop {
            match self.runs().submit(target.run, input.input(bulk)).await {
                Ok(_) => return Ok(Outcome::Done),
                Err(SubmitError::Runtime(RuntimeError::Busy { .. } | RuntimeError::OpenRunsFull { .. })) => {
                    tokio::time::sleep(BUSY_DELAY).await;
                }
                Err(SubmitError::Refused(refusal)) => return Ok(refused(&input, &refusal)),
                Err(SubmitError::Runtime(error)) if error.is_of_one_run() => {
                    return Ok(Outcome::Failed { code: "internal".to_owned(), message: error.to_string() });
                }
                Err(SubmitError::Runtime(error)) => return Err(error),
                Err(error @ SubmitError::UnknownRun(_)) => {
                    return Ok(Outcome::Failed {
                        code: "unknown_run".to_owned(),
                        message: error.to_string(),
                    });
                }
                Err(error @ SubmitError::Outdated) => {
                    return Ok(Outcome::Failed { code: "outdated".to_owned(), message: error.to_string() });
                }
            }
        }
    }
}

fn refused(input: &BulkInput, refusal: &Refusal) -> Outcome {
    // The input of a batch that was submitted before a crash.
    let is_canceled = matches!(input, BulkInput::Cancel { .. })
        && (*refusal == Refusal::Canceling || *refusal == Refusal::Ended { status: "canceled" });
    if is_canceled {
        return Outcome::Done;
    }
    Outcome::Failed { code: refusal.code().to_owned(), message: refusal.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(action: &str, args: Value) -> BulkSpec {
        BulkSpec { action: action.to_owned(), args, query: None, reason: String::new(), actor: String::new() }
    }

    #[test]
    fn an_action_without_its_arguments_is_refused() {
        for (action, args) in [
            ("rerun", json!({})),
            ("rerun", json!({"from": "a", "shared": 1})),
            ("signal", json!({})),
            ("x", json!({})),
        ] {
            assert!(BulkInput::of(&spec(action, args)).is_err(), "{action}");
        }
        for (action, args) in [("cancel", json!(null)), ("retry", json!({})), ("signal", json!({"key": "k"}))]
        {
            assert!(BulkInput::of(&spec(action, args)).is_ok(), "{action}");
        }
    }

    #[test]
    fn a_run_that_is_canceled_already_counts_as_canceled() {
        let cancel = BulkInput::of(&spec("cancel", json!({}))).unwrap();
        assert_eq!(refused(&cancel, &Refusal::Ended { status: "canceled" }), Outcome::Done);
        assert!(matches!(refused(&cancel, &Refusal::Ended { status: "failed" }), Outcome::Failed { .. }));
        assert!(matches!(refused(&BulkInput::Retry, &Refusal::Canceling), Outcome::Failed { .. }));
    }
}
