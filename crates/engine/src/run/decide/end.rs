//! Ends of nodes: the event with which a node or branch ends, and the edge that catches its failure.

use std::sync::Arc;

use serde_json::Value;

use super::action_text;
use super::node::action_of;
use crate::counter::Fence;
use crate::event::Event;
use crate::path::NodePath;
use crate::plan::{NodeKind, Routing, Strategy, When};
use crate::reference::{Seg, dig};
use crate::retry::{Fault, FaultKind};
use crate::run::state::{Nest, ScopeState};
use crate::run::view::NodeRef;
use crate::weight::{Excess, weigh};

impl NodeRef<'_, '_> {
    /// A node that ends by itself with this output; its action comes from the definition unless given.
    pub(super) fn done(&self, path: &NodePath, output: Arc<Value>, action: Option<String>) -> Event {
        if let Err(excess) = self.fits(&output) {
            return self.excessive(path, Fence::ZERO, "the output", excess, None);
        }
        let action = action.or_else(|| action_of(&self.node.post, &output));
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

    /// `timeout` (for time-outs), `error`, `default`, in this order. A fan that gave up follows its own action
    /// first, but not one that could not begin or took too long itself; a wait that was too long follows its own
    /// action before `default`.
    fn catching_edge(&self, kind: FaultKind) -> Option<String> {
        if self.branch.is_some() || kind == FaultKind::Limit {
            return None;
        }
        if !matches!(self.level.scope.routing, Routing::Action { .. }) {
            return None;
        }
        let own = self.node.post.action_static.as_deref();
        let timed_out = matches!(kind, FaultKind::Timeout | FaultKind::Watchdog);
        let gave_up = match (&self.node.kind, self.state.nest.as_deref()) {
            (NodeKind::Fan(fan), Some(Nest::Fan(arms))) => {
                fan.strategy == Strategy::FailFast && arms.n_failed > 0
            }
            _ => false,
        };
        let wait = matches!(self.node.kind, NodeKind::Wait(_) | NodeKind::Approval(_));
        let candidates = [
            own.filter(|_| gave_up),
            timed_out.then_some("timeout"),
            Some("error"),
            own.filter(|_| wait && timed_out),
            Some("default"),
        ];
        let has_edge = |action: &&str| {
            self.node.out.iter().any(|edge| matches!(&edge.when, When::Action(a) if a == action))
        };
        candidates.into_iter().flatten().find(has_edge).map(str::to_owned)
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

    /// The action of a subflow: fixed, or taken from its shared state.
    pub(super) fn sub_action(&self, inner: &ScopeState) -> Option<String> {
        let post = &self.node.post;
        let from_shared = || {
            let (first, rest) = post.action_key.as_deref()?.split_first()?;
            let Seg::Key(key) = first else { return None };
            let value = inner.shared.as_ref()?.get(key)?;
            dig(value, rest).and_then(action_text)
        };
        post.action_static.clone().or_else(from_shared)
    }
}
