//! What a service is asked, and what it may answer.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

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
    },
}

impl Outcome {
    /// A failure that trying again may mend.
    pub fn failed(message: impl Into<String>) -> Self {
        Outcome::Failed { message: message.into(), retryable: true }
    }

    /// A failure that comes again however often it is tried.
    pub fn refused(message: impl Into<String>) -> Self {
        Outcome::Failed { message: message.into(), retryable: false }
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
