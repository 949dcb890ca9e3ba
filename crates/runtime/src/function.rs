//! Functions that run in this process: the built-in ones, and those of programs that embed Windlass.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use windlass_engine::effect::Order;
use windlass_engine::function::{self, Outcome as Built};
use windlass_engine::id::RunId;
use windlass_engine::input::Outcome;
use windlass_engine::params::Params;
use windlass_engine::path::NodePath;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::time::Timestamp;

/// What a function is called with.
#[derive(Debug, Clone)]
pub struct FunctionCall {
    pub run: RunId,
    pub node: NodePath,
    pub attempt: u32,
    /// The same for every attempt: what the world is asked to do once is filed under it.
    pub key: String,
    pub input: Arc<Value>,
    pub params: Params,
    /// What it left when it was suspended.
    pub memo: Option<Arc<Value>>,
    pub deadline: Option<Timestamp>,
}

impl FunctionCall {
    pub(crate) fn of(order: &Order) -> Self {
        FunctionCall {
            run: order.run,
            node: order.node.clone(),
            attempt: order.attempt,
            key: order.key.clone(),
            input: order.input.clone(),
            params: order.params.clone(),
            memo: order.memo.clone(),
            deadline: order.deadline,
        }
    }
}

type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A registered function.
#[derive(Clone)]
pub(crate) enum Function {
    /// Answers at once.
    Quick(Arc<dyn Fn(&FunctionCall) -> Outcome + Send + Sync>),
    /// Takes its time.
    Slow(Arc<dyn Fn(FunctionCall) -> Running + Send + Sync>),
}

/// Functions by name.
#[derive(Clone, Default)]
pub struct Functions {
    named: Arc<BTreeMap<String, Function>>,
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
        function: impl Fn(&FunctionCall) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        self.with(name.into(), Function::Quick(Arc::new(function)))
    }

    /// Adds a function that takes its time. One of the same name is replaced.
    #[must_use]
    pub fn with_async<F, R>(self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(FunctionCall) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        self.with(name.into(), Function::Slow(Arc::new(move |call| Box::pin(function(call)))))
    }

    fn with(mut self, name: String, function: Function) -> Self {
        Arc::make_mut(&mut self.named).insert(name, function);
        self
    }

    /// The names that can be called.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Function> {
        self.named.get(name)
    }

    /// What a flow is told that calls a function nobody registered.
    pub(crate) fn unknown(&self, name: &str) -> Outcome {
        let known = self.named.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let message = format!("there is no function `{name}` in this server; it has {known}");
        Outcome::Failed(Fault::new(FaultKind::Error, message).permanent())
    }
}

fn built_in(name: &str, call: &FunctionCall) -> Outcome {
    match function::call(name, &call.input, &call.params.merged(), call.memo.as_deref()) {
        Some(Built::Done(value)) => Outcome::Done(Arc::new(value)),
        Some(Built::Suspended { memo, recheck_ms }) => {
            Outcome::Suspended { memo, recheck_ms: Some(recheck_ms) }
        }
        Some(Built::Failed { message, retryable }) => {
            let fault = Fault::new(FaultKind::Error, message);
            Outcome::Failed(if retryable { fault } else { fault.permanent() })
        }
        None => Outcome::Failed(Fault::new(FaultKind::Error, format!("no function `{name}`")).permanent()),
    }
}
