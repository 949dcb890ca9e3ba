//! The worker of `windlass dev`: it answers calls as the script of the example says, else with the built-in functions.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use windlass_sdk::worker::{HandlerOutcome, ServiceCall};

use super::example::{ExampleAnswer, ExampleAnswers};
use crate::worker::built_in;

/// The answers of the current example, and how many of each were given.
#[derive(Default)]
pub(super) struct ScriptedAnswers(Mutex<AnswerScript>);

#[derive(Default)]
struct AnswerScript {
    answers: BTreeMap<String, ExampleAnswers>,
    n_given: BTreeMap<String, usize>,
}

impl ScriptedAnswers {
    /// Takes the answers of the next example.
    pub(super) fn begin(&self, answers: BTreeMap<String, ExampleAnswers>) {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *script = AnswerScript { answers, n_given: BTreeMap::new() };
    }

    pub(super) async fn answer(&self, call: ServiceCall) -> HandlerOutcome {
        match self.scripted(&call) {
            Some(ExampleAnswer::Done(value)) => HandlerOutcome::Done(value),
            Some(ExampleAnswer::Fail(message)) => HandlerOutcome::failed(message),
            Some(ExampleAnswer::Refuse(message)) => HandlerOutcome::refused(message),
            Some(ExampleAnswer::Suspend { recheck_ms, memo }) => {
                HandlerOutcome::Suspended { memo, recheck: Some(Duration::from_millis(recheck_ms)) }
            }
            Some(ExampleAnswer::Silence {}) => {
                call.cancel.cancelled().await;
                HandlerOutcome::failed("the call was canceled")
            }
            None => built_in(&call).unwrap_or_else(|| {
                let service = &call.service;
                HandlerOutcome::refused(format!(
                    "no worker serves `{service}`: it is not built in, and `answers` does not name it"
                ))
            }),
        }
    }

    /// The answer to a call: by the path of its node, or else by its service.
    fn scripted(&self, call: &ServiceCall) -> Option<ExampleAnswer> {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let script = &mut *script;
        let node = call.node.as_deref().unwrap_or_default();
        let (key, answers) =
            script.answers.get_key_value(node).or_else(|| script.answers.get_key_value(&call.service))?;
        let n_given = script.n_given.entry(key.clone()).or_default();
        let answer = answers.at(*n_given)?.clone();
        *n_given += 1;
        Some(answer)
    }
}
