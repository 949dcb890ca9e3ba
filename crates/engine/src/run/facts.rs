//! Finding values in a run: from a reference to its value at a node.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Run;
use super::state::{LoopState, Nest, NodeState};
use super::view::ScopeLevel;
use crate::params::Params;
use crate::plan::{Compute, Node, NodeKind};
use crate::reference::{Facts, Root};

/// Where the references of a node find their values.
pub(crate) struct View<'a> {
    pub(crate) run: &'a Run,
    pub(crate) chain: &'a [ScopeLevel<'a, 'a>],
    pub(crate) params: Params,
    /// The params of a call whose whole configuration is resolved, instead of those.
    pub(crate) own_params: Option<&'a Value>,
    pub(crate) input: &'a Value,
    pub(crate) result: Option<&'a Value>,
}

impl<'a> View<'a> {
    fn shared(&self) -> Option<&'a super::state::Shared> {
        self.chain.iter().rev().find_map(|level| level.state.shared.as_ref())
    }

    /// A node by key, in this scope or the nearest around it that has one.
    fn find(&self, key: &str) -> Option<(&'a Node, &'a NodeState)> {
        self.chain.iter().rev().find_map(|level| {
            let (ix, node) = level.scope.node(key)?;
            Some((node, level.state.node(ix)))
        })
    }

    fn open_turn(&self, key: &str) -> Option<Map<String, Value>> {
        let (_, state) = self.find(key)?;
        match state.nest.as_deref() {
            Some(Nest::Loop(turns)) => Some(turn_fact(turns, &state.input)),
            Some(Nest::Scope(_) | Nest::Fan(_)) | None => None,
        }
    }

    fn output(&self, key: &str) -> Option<Cow<'a, Value>> {
        let (node, state) = self.find(key)?;
        match (&node.kind, state.nest.as_deref()) {
            (NodeKind::Loop(plan), Some(Nest::Loop(turns))) => {
                let keys = plan.outputs.iter().map(|(key, _)| key.as_str());
                Some(Cow::Owned(loop_fact(keys, turns, &state.input)))
            }
            (NodeKind::Compute(Compute::Define { variable }), _) => {
                let value = self.shared()?.get(variable)?;
                Some(Cow::Owned(serde_json::json!({ "value": **value })))
            }
            _ => state.output.as_deref().map(Cow::Borrowed),
        }
    }
}

/// A loop as references see it: the index and value of the open iteration, and the outputs so far.
pub(crate) fn loop_fact<'k>(keys: impl Iterator<Item = &'k str>, turns: &LoopState, input: &Value) -> Value {
    let mut fact = turn_fact(turns, input);
    let column =
        |at: usize| turns.outputs.iter().map(|row| row.get(at).cloned().unwrap_or(Value::Null)).collect();
    let outputs = keys.enumerate().map(|(at, key)| (key.to_owned(), Value::Array(column(at)))).collect();
    fact.insert("outputs".to_owned(), Value::Object(outputs));
    Value::Object(fact)
}

/// The index and the value of the open turn; nothing when all are over.
fn turn_fact(turns: &LoopState, input: &Value) -> Map<String, Value> {
    let mut fact = Map::new();
    if turns.index < turns.n {
        fact.insert("index".to_owned(), turns.index.into());
        let value = input.as_array().and_then(|items| items.get(turns.index)).cloned();
        fact.insert("value".to_owned(), value.unwrap_or_else(|| turns.index.into()));
    }
    fact
}

impl Facts for View<'_> {
    fn root(&self, root: &Root) -> Option<Cow<'_, Value>> {
        match root {
            Root::Params => Some(match self.own_params {
                Some(own) if own.is_object() => Cow::Borrowed(own),
                Some(_) => Cow::Owned(Value::Object(Map::new())),
                None => Cow::Owned(Value::Object(self.params.to_map())),
            }),
            Root::Shared => {
                let mut all: Map<String, Value> =
                    self.run.signals.iter().map(|(k, v)| (k.clone(), (**v).clone())).collect();
                all.extend(self.shared()?.iter().map(|(k, v)| (k.clone(), (**v).clone())));
                Some(Cow::Owned(Value::Object(all)))
            }
            Root::Input | Root::Anywhere => Some(Cow::Borrowed(self.input)),
            Root::Result => self.result.map(Cow::Borrowed),
            Root::Output(key) => self.output(key),
            Root::Error(key) => {
                let (_, state) = self.find(key)?;
                state.fault.as_ref().map(|fault| Cow::Owned(Value::String(fault.message.clone())))
            }
            Root::Status(key) => {
                let (_, state) = self.find(key)?;
                Some(Cow::Owned(Value::String(state.phase.word().to_owned())))
            }
        }
    }

    fn field(&self, root: &Root, key: &str) -> Option<Cow<'_, Value>> {
        match root {
            Root::Params => match self.own_params {
                Some(own) => own.get(key).map(Cow::Borrowed),
                None => self.params.get(key).map(Cow::Borrowed),
            },
            Root::Shared => {
                let own = self.shared().and_then(|shared| shared.get(key));
                own.or_else(|| self.run.signals.get(key)).map(|v| Cow::Borrowed(&**v))
            }
            Root::Input => self.input.get(key).map(Cow::Borrowed),
            Root::Result => self.result.and_then(|v| v.get(key)).map(Cow::Borrowed),
            Root::Output(node) => match (self.open_turn(node), key) {
                // Every iteration asks for these; the outputs so far need not be copied for it.
                (Some(mut turn), "index" | "value") => turn.remove(key).map(Cow::Owned),
                (Some(_) | None, _) => match self.output(node)? {
                    Cow::Borrowed(value) => value.get(key).map(Cow::Borrowed),
                    Cow::Owned(value) => value.get(key).cloned().map(Cow::Owned),
                },
            },
            Root::Error(_) | Root::Status(_) => None,
            Root::Anywhere => [Root::Shared, Root::Params, Root::Input]
                .iter()
                .find_map(|root| self.field(root, key).filter(|v| !v.is_null())),
        }
    }
}
