//! Handlers of services: their calls and their results.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::contract::{LogLevel, WorkerLogLine};

/// Log lines kept per call: as many as a server accepts, and one more, so that the server notes the cut.
const LINES_MAX: usize = 1_000;

/// One call to a service.
#[derive(Debug, Clone)]
pub struct ServiceCall {
    pub service: String,
    /// The queue it waited in, if it was pulled.
    pub queue: Option<String>,
    /// The run it belongs to; a plain job has none.
    pub run: Option<String>,
    /// The node of that run.
    pub node: Option<String>,
    /// The id under which [`Client::report`](crate::Client::report) ends this call when it is suspended
    /// without a recheck; a plain job has none.
    pub call: Option<String>,
    pub input: Value,
    /// Parameters of the node and of the run, together.
    pub params: Value,
    /// The value that this service left when it was suspended.
    pub memo: Option<Value>,
    /// The idempotency key: the same for every attempt.
    pub key: String,
    /// From 1.
    pub attempt: u32,
    /// How urgent the job is, if it was pulled.
    pub priority: i32,
    /// An answer after this moment is too late.
    pub deadline: Option<SystemTime>,
    /// Canceled when the call was canceled or its lease was lost. Stop then; the result is ignored.
    pub cancel: CancellationToken,
    /// The log of the call; its lines are sent with the result.
    pub logger: CallLogger,
}

/// Collects log lines of a call. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct CallLogger(Arc<Mutex<Vec<WorkerLogLine>>>);

impl CallLogger {
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

    /// A line with fields. Lines beyond the server's limit are dropped.
    pub fn say(&self, level: LogLevel, message: impl Into<String>, data: Value) {
        let mut lines = self.lines();
        if lines.len() <= LINES_MAX {
            lines.push(WorkerLogLine { level, message: message.into(), data });
        }
    }

    /// The lines so far.
    pub(crate) fn take(&self) -> Vec<WorkerLogLine> {
        std::mem::take(&mut *self.lines())
    }

    fn lines(&self) -> MutexGuard<'_, Vec<WorkerLogLine>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a call ends.
#[derive(Debug, Clone, PartialEq)]
pub enum HandlerOutcome {
    Done(Value),
    /// Not finished: called again with `memo` after `recheck`, or ended by a report if there is no `recheck`.
    Suspended {
        memo: Value,
        recheck: Option<Duration>,
    },
    Failed {
        message: String,
        /// Whether trying again can help.
        retryable: bool,
        /// A network error, a time-out or a busy service: a node of the dag form is tried again within a second, then
        /// suspended and asked again.
        temporary: bool,
    },
}

impl HandlerOutcome {
    /// A failure that trying again may mend.
    pub fn failed(message: impl Into<String>) -> Self {
        HandlerOutcome::Failed { message: message.into(), retryable: true, temporary: false }
    }

    /// A network error or a busy service: the same call may succeed a moment later.
    pub fn temporary(message: impl Into<String>) -> Self {
        HandlerOutcome::Failed { message: message.into(), retryable: true, temporary: true }
    }

    /// A failure that comes again however often it is tried.
    pub fn refused(message: impl Into<String>) -> Self {
        HandlerOutcome::Failed { message: message.into(), retryable: false, temporary: false }
    }
}

impl From<Value> for HandlerOutcome {
    fn from(value: Value) -> Self {
        HandlerOutcome::Done(value)
    }
}

impl<E: Display> From<Result<Value, E>> for HandlerOutcome {
    fn from(result: Result<Value, E>) -> Self {
        match result {
            Ok(value) => HandlerOutcome::Done(value),
            Err(error) => HandlerOutcome::failed(error.to_string()),
        }
    }
}

type HandlerFuture = Pin<Box<dyn Future<Output = HandlerOutcome> + Send>>;

/// A function that answers the calls of a service.
#[derive(Clone)]
pub(crate) struct Handler(Arc<dyn Fn(ServiceCall) -> HandlerFuture + Send + Sync>);

impl Handler {
    pub(crate) fn new<F, R>(function: F) -> Self
    where
        F: Fn(ServiceCall) -> R + Send + Sync + 'static,
        R: Future + Send + 'static,
        R::Output: Into<HandlerOutcome>,
    {
        Handler(Arc::new(move |call| {
            let answer = function(call);
            Box::pin(async move { answer.await.into() })
        }))
    }

    /// Lets it answer on a task of its own, so that a panic ends no more than this call.
    pub(crate) async fn answer(&self, call: ServiceCall) -> HandlerOutcome {
        let service = call.service.clone();
        let handler = self.clone();
        let running = tokio::spawn(async move { (handler.0)(call).await });
        running.await.unwrap_or_else(|error| {
            tracing::error!(%service, %error, "a handler did not come to its end");
            HandlerOutcome::failed(format!("the handler of `{service}` did not come to its end"))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call() -> ServiceCall {
        ServiceCall {
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
            logger: CallLogger::default(),
        }
    }

    #[tokio::test]
    async fn values_and_results_are_outcomes() {
        let plain = Handler::new(|_| async { json!(1) });
        assert_eq!(plain.answer(call()).await, HandlerOutcome::Done(json!(1)));
        let failing = Handler::new(|_| async { Err::<Value, _>("no paper") });
        assert_eq!(failing.answer(call()).await, HandlerOutcome::failed("no paper"));
    }

    #[tokio::test]
    async fn a_panic_is_a_failure_of_its_call_only() {
        let handler = Handler::new(|call: ServiceCall| async move {
            assert!(call.attempt > 1, "too early");
            json!("ok")
        });
        assert!(matches!(handler.answer(call()).await, HandlerOutcome::Failed { retryable: true, .. }));
        assert_eq!(
            handler.answer(ServiceCall { attempt: 2, ..call() }).await,
            HandlerOutcome::Done(json!("ok"))
        );
    }
}
