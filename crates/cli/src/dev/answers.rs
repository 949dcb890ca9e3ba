//! Answers calls as an example says, and by the built-in functions otherwise.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use windlass_sdk::worker::{Call, Outcome};

use super::example::{Answer, Answers};
use crate::worker::built_in;

/// The answers of the example that is played now, and how many of each were given.
#[derive(Default)]
pub(super) struct Desk(Mutex<Script>);

#[derive(Default)]
struct Script {
    answers: BTreeMap<String, Answers>,
    n_given: BTreeMap<String, usize>,
}

impl Desk {
    /// The next example: what was scripted for the one before counts no longer.
    pub(super) fn begin(&self, answers: BTreeMap<String, Answers>) {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *script = Script { answers, n_given: BTreeMap::new() };
    }

    pub(super) async fn answer(&self, call: Call) -> Outcome {
        match self.scripted(&call) {
            Some(Answer::Done(value)) => Outcome::Done(value),
            Some(Answer::Fail(message)) => Outcome::failed(message),
            Some(Answer::Refuse(message)) => Outcome::refused(message),
            Some(Answer::Suspend { recheck_ms, memo }) => {
                Outcome::Suspended { memo, recheck: Some(Duration::from_millis(recheck_ms)) }
            }
            Some(Answer::Silence {}) => {
                call.cancel.cancelled().await;
                Outcome::failed("nobody listens any more")
            }
            None => built_in(&call).unwrap_or_else(|| {
                let service = &call.service;
                Outcome::refused(format!(
                    "nobody serves `{service}`: it is not built in, and `answers` does not name it"
                ))
            }),
        }
    }

    /// The answer to a call: by the path of its node, or else by its service.
    fn scripted(&self, call: &Call) -> Option<Answer> {
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
