//! Functions that run in this process: the built-in ones, and those of programs that embed Windlass.
//!
//! A function that is only *added* is called by nodes that name it (`exec_type: local_func`). A handler that is
//! *registered* is more: it also serves the service of its name, as a worker that lives in the server does, so that a
//! node type of that name runs here without saying so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use windlass_engine::effect::CallSpec;
use windlass_engine::function::{self, FunctionOutcome as Built};
use windlass_engine::id::RunId;
use windlass_engine::input::CallOutcome;
use windlass_engine::params::Params;
use windlass_engine::path::NodePath;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::time::Timestamp;

use crate::calls::log::Logger;

/// The arguments of a function.
#[derive(Debug, Clone)]
pub struct FunctionCall {
    /// The name it was called by.
    pub service: String,
    /// The run it belongs to; a plain job has none.
    pub run: Option<RunId>,
    /// The node of that run.
    pub node: Option<NodePath>,
    /// From 1.
    pub attempt: u32,
    /// The same for every attempt: an idempotency key for other systems.
    pub key: String,
    pub input: Arc<Value>,
    pub params: Params,
    /// The memo of its last suspension.
    pub memo: Option<Arc<Value>>,
    /// An answer after this moment is too late.
    pub deadline: Option<Timestamp>,
    /// Log lines for people who follow the run; stored with the answer.
    pub logger: Logger,
}

/// How a handler answers: it is done, it will be asked again, or it failed.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionAnswer {
    Done(Value),
    /// Not finished: called again with `memo` after `recheck`. Without `recheck`, the node or the service decides when,
    /// or a report comes first.
    Suspended {
        memo: Value,
        recheck: Option<Duration>,
    },
    Failed(Fault),
}

impl FunctionAnswer {
    /// A failure that trying again may mend, as often as the node says.
    pub fn failed(message: impl Into<String>) -> Self {
        FunctionAnswer::Failed(Fault::new(FaultKind::Error, message))
    }

    /// A failure that comes again however often it is tried.
    pub fn refused(message: impl Into<String>) -> Self {
        FunctionAnswer::Failed(Fault::new(FaultKind::Error, message).permanent())
    }

    /// A fault of the network or of a busy system. A node of the dag form is retried within a second, then suspended
    /// and called again.
    pub fn temporary(message: impl Into<String>) -> Self {
        FunctionAnswer::Failed(Fault::new(FaultKind::Transport, message))
    }
}

impl From<Value> for FunctionAnswer {
    fn from(value: Value) -> Self {
        FunctionAnswer::Done(value)
    }
}

impl<E: fmt::Display> From<Result<Value, E>> for FunctionAnswer {
    fn from(result: Result<Value, E>) -> Self {
        match result {
            Ok(value) => FunctionAnswer::Done(value),
            Err(error) => FunctionAnswer::failed(error.to_string()),
        }
    }
}

impl From<FunctionAnswer> for CallOutcome {
    fn from(answer: FunctionAnswer) -> Self {
        match answer {
            FunctionAnswer::Done(value) => CallOutcome::Done(Arc::new(value)),
            FunctionAnswer::Suspended { memo, recheck } => {
                let recheck_ms = recheck.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                CallOutcome::Suspended { memo, recheck_ms }
            }
            FunctionAnswer::Failed(fault) => CallOutcome::Failed(fault),
        }
    }
}

impl FunctionCall {
    pub(crate) fn of(spec: &CallSpec) -> Self {
        FunctionCall {
            service: spec.service.clone(),
            run: Some(spec.run),
            node: Some(spec.node.clone()),
            attempt: spec.attempt,
            key: spec.key.clone(),
            input: spec.input.clone(),
            params: spec.params.clone(),
            memo: spec.memo.clone(),
            deadline: spec.deadline,
            logger: Logger::default(),
        }
    }
}

/// A function that answers at once.
pub(crate) type QuickFunction = Arc<dyn Fn(&FunctionCall) -> CallOutcome + Send + Sync>;
type Running = Pin<Box<dyn Future<Output = CallOutcome> + Send>>;

/// A registered function.
#[derive(Clone)]
pub(crate) enum Function {
    /// Answers at once.
    Quick(QuickFunction),
    /// Takes its time.
    Slow(Arc<dyn Fn(FunctionCall) -> Running + Send + Sync>),
}

/// Functions by name.
#[derive(Clone, Default)]
pub struct Functions {
    named: Arc<BTreeMap<String, Function>>,
    /// Those that serve the service of their name.
    services: Arc<BTreeSet<String>>,
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.named.keys()).finish()
    }
}

impl Functions {
    /// The functions every server has.
    pub fn built_in() -> Self {
        function::NAMES.into_iter().fold(Functions::default(), |functions, name| {
            functions.with_quick(name, move |call| built_in(name, call))
        })
    }

    /// Adds a function that answers at once: it must not block. One of the same name is replaced.
    #[must_use]
    pub fn with_quick(
        self,
        name: impl Into<String>,
        function: impl Fn(&FunctionCall) -> CallOutcome + Send + Sync + 'static,
    ) -> Self {
        self.with(name.into(), Function::Quick(Arc::new(function)))
    }

    /// Adds a function that takes its time. One of the same name is replaced.
    #[must_use]
    pub fn with_async<F, R>(self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(FunctionCall) -> R + Send + Sync + 'static,
        R: Future<Output = CallOutcome> + Send + 'static,
    {
        self.with(name.into(), Function::Slow(Arc::new(move |call| Box::pin(function(call)))))
    }

    /// Adds a handler that serves the service `name`: nodes of that type, steps with that operator and plain jobs of
    /// that name run in this process, beside the workers that serve it. Nodes can name it as a function, too. It
    /// replaces a handler of the same name.
    #[must_use]
    pub fn register<F, R>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(FunctionCall) -> R + Send + Sync + 'static,
        R: Future + Send + 'static,
        R::Output: Into<FunctionAnswer>,
    {
        let name = name.into();
        Arc::make_mut(&mut self.services).insert(name.clone());
        self.with_async(name, move |call| {
            let answer = handler(call);
            async move { answer.await.into().into() }
        })
    }

    fn with(mut self, name: String, function: Function) -> Self {
        Arc::make_mut(&mut self.named).insert(name, function);
        self
    }

    /// The names that can be called.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// The services that handlers serve.
    pub fn services(&self) -> impl Iterator<Item = &str> {
        self.services.iter().map(String::as_str)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Function> {
        self.named.get(name)
    }

    /// The outcome of a call to a function that is not registered.
    pub(crate) fn unknown(&self, name: &str) -> CallOutcome {
        let known = self.named.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let message = format!("there is no function `{name}` in this server; it has {known}");
        CallOutcome::Failed(Fault::new(FaultKind::Error, message).permanent())
    }
}

fn built_in(name: &str, call: &FunctionCall) -> CallOutcome {
    match function::call(name, &call.input, &call.params, call.memo.as_deref()) {
        Some(Built::Done(value)) => CallOutcome::Done(Arc::new(value)),
        Some(Built::Suspended { memo, recheck_ms }) => {
            CallOutcome::Suspended { memo, recheck_ms: Some(recheck_ms) }
        }
        Some(Built::Failed { message, retryable }) => {
            let fault = Fault::new(FaultKind::Error, message);
            CallOutcome::Failed(if retryable { fault } else { fault.permanent() })
        }
        None => {
            CallOutcome::Failed(Fault::new(FaultKind::Error, format!("no function `{name}`")).permanent())
        }
    }
}
