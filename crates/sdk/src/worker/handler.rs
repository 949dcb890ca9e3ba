//! What a service is asked, and what it may answer.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::types::{LogLevel, Said};

/// Lines kept of one call: what a server takes, and one more, so that it says that there were more.
const LINES_MAX: usize = 1_000;

/// One call to a service.
#[derive(Debug, Clone)]
pub struct Call {
    pub service: String,
    /// The queue it waited in, if it was pulled.
    pub queue: Option<String>,
    /// The run it belongs to; a plain job has none.
    pub run: Option<String>,
    /// The node of that run.
    pub node: Option<String>,
    /// What the end of this call is reported under by [`Client::report`](crate::Client::report) when it is suspended
    /// without a recheck; a plain job has none.
    pub call: Option<String>,
    pub input: Value,
    /// Parameters of the node and of the run, together.
    pub params: Value,
    /// What this service left when it was suspended.
    pub memo: Option<Value>,
    /// The same for every attempt: file under it what the world is asked to do once.
    pub key: String,
    /// From 1.
    pub attempt: u32,
    /// How urgent the job is, if it was pulled.
    pub priority: i32,
    /// An answer after this moment is too late.
    pub deadline: Option<SystemTime>,
    /// Cancelled when nobody wants the answer any more. Stop then; what is answered is not looked at.
    pub cancel: CancellationToken,
    /// Lines for whoever follows the run; handed in with the answer.
    pub logger: Logger,
}

/// Collects lines for whoever follows a run. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Logger(Arc<Mutex<Vec<Said>>>);

impl Logger {
    /// Something to know.
    pub fn info(&self, message: impl Into<String>) {
        self.say(LogLevel::Info, message, Value::Null);
    }

    /// Something to look at.
    pub fn warn(&self, message: impl Into<String>) {
        self.say(LogLevel::Warn, message, Value::Null);
    }

    /// Something that went wrong.
    pub fn error(&self, message: impl Into<String>) {
        self.say(LogLevel::Error, message, Value::Null);
    }

    /// A line with what belongs to it. What is more than a server keeps is left out.
    pub fn say(&self, level: LogLevel, message: impl Into<String>, data: Value) {
        let mut lines = self.lines();
        if lines.len() <= LINES_MAX {
            lines.push(Said { level, message: message.into(), data });
        }
    }

    /// What was said so far.
    pub(crate) fn take(&self) -> Vec<Said> {
        std::mem::take(&mut *self.lines())
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Said>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a call ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Done(Value),
    /// Not finished: called again with `memo` after `recheck`, or reported by somebody else if there is none.
    Suspended {
        memo: Value,
        recheck: Option<Duration>,
    },
    Failed {
        message: String,
        /// Whether trying again can help.
        retryable: bool,
        /// The network, a time-out, somebody who is busy: a node of the dag form is tried again within a second, then
        /// suspended and asked again.
        temporary: bool,
    },
}

impl Outcome {
    /// A failure that trying again may mend.
    pub fn failed(message: impl Into<String>) -> Self {
        Outcome::Failed { message: message.into(), retryable: true, temporary: false }
    }

    /// A fault of the network or of somebody who is busy: the same may well succeed a moment later.
    pub fn temporary(message: impl Into<String>) -> Self {
        Outcome::Failed { message: message.into(), retryable: true, temporary: true }
    }

    /// A failure that comes again however often it is tried.
    pub fn refused(message: impl Into<String>) -> Self {
        Outcome::Failed { message: message.into(), retryable: false, temporary: false }
    }
}

impl From<Value> for Outcome {
    fn from(value: Value) -> Self {
        Outcome::Done(value)
    }
}

impl<E: Display> From<Result<Value, E>> for Outcome {
    fn from(result: Result<Value, E>) -> Self {
        match result {
            Ok(value) => Outcome::Done(value),
            Err(error) => Outcome::failed(error.to_string()),
        }
    }
}

type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Whoever answers calls.
#[derive(Clone)]
pub(crate) struct Handler(Arc<dyn Fn(Call) -> Running + Send + Sync>);

impl Handler {
    pub(crate) fn new<F, R>(function: F) -> Self
    where
        F: Fn(Call) -> R + Send + Sync + 'static,
        R: Future + Send + 'static,
        R::Output: Into<Outcome>,
    {
        Handler(Arc::new(move |call| {
            let answer = function(call);
            Box::pin(async move { answer.await.into() })
        }))
    }

    /// Lets it answer on a task of its own, so that a panic ends no more than this call.
    pub(crate) async fn answer(&self, call: Call) -> Outcome {
        let service = call.service.clone();
        let handler = self.clone();
        let running = tokio::spawn(async move { (handler.0)(call).await });
        running.await.unwrap_or_else(|error| {
            tracing::error!(%service, %error, "a handler did not come to its end");
            Outcome::failed(format!("the handler of `{service}` did not come to its end"))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call() -> Call {
        Call {
            service: "s".to_owned(),
            queue: None,
            run: None,
            node: None,
            call: None,
            input: Value::Null,
            params: Value::Null,
            memo: None,
            key: String::new(),
            attempt: 1,
            priority: 0,
            deadline: None,
            cancel: CancellationToken::new(),
            logger: Logger::default(),
        }
    }

    #[tokio::test]
    async fn values_and_results_are_outcomes() {
        let plain = Handler::new(|_| async { json!(1) });
        assert_eq!(plain.answer(call()).await, Outcome::Done(json!(1)));
        let failing = Handler::new(|_| async { Err::<Value, _>("no paper") });
        assert_eq!(failing.answer(call()).await, Outcome::failed("no paper"));
    }

    #[tokio::test]
    async fn a_panic_is_a_failure_of_its_call_only() {
        let handler = Handler::new(|call: Call| async move {
            assert!(call.attempt > 1, "too early");
            json!("ok")
        });
        assert!(matches!(handler.answer(call()).await, Outcome::Failed { retryable: true, .. }));
        assert_eq!(handler.answer(Call { attempt: 2, ..call() }).await, Outcome::Done(json!("ok")));
    }
}
