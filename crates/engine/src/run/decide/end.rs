//! Ends of nodes: the event with which a node or branch ends, and the edge that catches its failure.

use std::sync::Arc;

use serde_json::Value;

use super::action_text;
use crate::counter::Fence;
use crate::event::Event;
use crate::path::NodePath;
use crate::plan::{NodeKind, Post, Routing, Strategy, When};
use crate::reference::{Seg, dig};
use crate::retry::{Fault, FaultKind};
use crate::run::apply::collected;
use crate::run::state::{Nest, ScopeState, Shared};
use crate::run::view::NodeRef;
use crate::weight::{Excess, weigh};

impl NodeRef<'_, '_> {
    /// A node that ends by itself with this output; its action comes from the definition unless given.
    pub(super) fn done(&self, path: &NodePath, output: Arc<Value>, action: Option<String>) -> Event {
        if let Err(excess) = self.fits(&output) {
            return self.excessive(path, Fence::ZERO, "the output", excess, None);
        }
        let action = action.or_else(|| self.action(&output));
        Event::Done {
            node: path.clone(),
            fence: Fence(0),
            output: Some(output),
            action,
            actual: None,
            worker: None,
        }
    }

    /// The failure of a node or branch, with the edge that catches it if there is one.
    pub(super) fn failed(
        &self,
        path: &NodePath,
        fence: Fence,
        fault: Fault,
        worker: Option<String>,
    ) -> Event {
        let route = self.catching_edge(fault.kind);
        Event::Failed { node: path.clone(), fence, fault, route, worker }
    }

    /// The action of the edge that catches a failure: `timeout` (for time-outs), `error`, `default`, in this order. A
    /// fan that failed with its branches, and a subflow that failed inside, follow their own action first, but not if
    /// they could not begin or took too long themselves; a wait that was too long follows its own action before
    /// `default`. An edge that ends the scope catches a failure only if it is for `error` or `timeout`.
    fn catching_edge(&self, kind: FaultKind) -> Option<String> {
        if self.branch.is_some() || kind == FaultKind::Limit {
            return None;
        }
        if !matches!(self.level.scope.routing, Routing::Action { .. }) {
            return None;
        }
        let timed_out = matches!(kind, FaultKind::Timeout | FaultKind::Watchdog);
        let wait = matches!(self.node.kind, NodeKind::Wait(_) | NodeKind::Approval(_));
        let inner = self.action_of_failed_inside();
        let candidates = [
            inner.as_deref(),
            timed_out.then_some("timeout"),
            Some("error"),
            self.node.post.action_static.as_deref().filter(|_| wait && timed_out),
            Some("default"),
        ];
        let edge_of = |action: &str| {
            self.node.out.iter().find(|edge| matches!(&edge.when, When::Action(a) if a == action))
        };
        let found = candidates.into_iter().flatten().find_map(|action| Some((action, edge_of(action)?)));
        let (action, edge) = found?;
        let catches = edge.to.is_some() || matches!(action, "error" | "timeout");
        catches.then(|| action.to_owned())
    }

    /// The own action of a fan of which branches failed, or of a subflow that failed inside.
    fn action_of_failed_inside(&self) -> Option<String> {
        match (&self.node.kind, self.state.nest.as_deref()) {
            (NodeKind::Fan(fan), Some(Nest::Fan(arms))) if arms.n_failed > 0 => match arms.strategy(fan) {
                Strategy::All | Strategy::FailFast => self.action(&collected(self)),
                Strategy::CollectErrors | Strategy::IgnoreErrors | Strategy::Continue => None,
            },
            (NodeKind::Sub(_), Some(Nest::Scope(inner))) if inner.fault.is_some() => {
                self.node.post.action_static.clone()
            }
            _ => None,
        }
    }

    pub(super) fn bad_input(&self, path: &NodePath, message: String) -> Event {
        self.failed(path, Fence::ZERO, Fault::new(FaultKind::Input, message).permanent(), None)
    }

    /// A value that cannot be kept ends its node: another attempt would bring it again.
    pub(super) fn excessive(
        &self,
        path: &NodePath,
        fence: Fence,
        what: &str,
        excess: Excess,
        worker: Option<String>,
    ) -> Event {
        let fault = Fault::new(FaultKind::Limit, format!("{what} {excess}")).permanent();
        self.failed(path, fence, fault, worker)
    }

    /// Whether an output is small enough by itself, and together with its flow's shared state if it is written there.
    pub(super) fn fits(&self, output: &Value) -> Result<(), Excess> {
        let bytes = weigh(output)?;
        let held = self.chain.iter().rev().find(|level| level.state.shared.is_some());
        let held = held.map_or(0, |level| level.state.shared_bytes);
        let is_large = self.writes_shared() && held.saturating_add(bytes) > crate::limits::SHARED_BYTES;
        if is_large { Err(Excess::Large) } else { Ok(()) }
    }

    /// The action of a subflow: fixed, or taken from its shared state, its result or the shared state around it.
    pub(super) fn sub_action(&self, inner: &ScopeState) -> Option<String> {
        let post = &self.node.post;
        let inside = || {
            let value = field_of(inner.shared.as_ref()?, post.action_key.as_deref()?)?;
            action_text(value)
        };
        post.action_static.clone().or_else(inside).or_else(|| {
            post.action_key.as_ref()?;
            self.action(&collected(self))
        })
    }

    /// The action that a result leads to: fixed, in the result, or in the shared state with the result written to it.
    pub(super) fn action(&self, output: &Value) -> Option<String> {
        let post = self.branch.map_or(&self.node.post, |arm| &arm.branch.post);
        if post.action_static.is_some() {
            return post.action_static.clone();
        }
        let key = post.action_key.as_deref()?;
        let in_result = dig(output, key).and_then(action_text);
        in_result
            .or_else(|| written(post, output, key).and_then(action_text))
            .or_else(|| self.shared_value(key).and_then(action_text))
    }

    /// A value of the shared state that the node sees.
    fn shared_value(&self, path: &[Seg]) -> Option<&Value> {
        let shared = self.chain.iter().rev().find_map(|level| level.state.shared.as_ref());
        shared.and_then(|shared| field_of(shared, path)).or_else(|| field_of(self.signals?, path))
    }
}

fn field_of<'v>(shared: &'v Shared, path: &[Seg]) -> Option<&'v Value> {
    let (Seg::Key(key), rest) = path.split_first()? else { return None };
    dig(shared.get(key)?, rest)
}

/// The part of a result that will stand at this path of the shared state.
fn written<'v>(post: &Post, output: &'v Value, path: &[Seg]) -> Option<&'v Value> {
    let (Seg::Key(key), rest) = path.split_first()? else { return None };
    if post.output_key.as_ref() == Some(key) {
        return dig(output, rest);
    }
    let from = post.output_map.get(key).filter(|_| output.is_object())?;
    dig(dig(output, from)?, rest)
}
