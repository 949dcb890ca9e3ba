//! Inputs from outside to nodes that wait: signals, decisions, results of suspended work, money.

use std::sync::Arc;

use serde_json::Value;

use super::{Decider, action_text};
use crate::event::Event;
use crate::input::Refusal;
use crate::money::{Amount, Reserve};
use crate::path::NodePath;
use crate::plan::NodeKind;
use crate::run::state::{Activity, Phase, Stage};
use crate::run::view::NodeRef;
use crate::weight::weigh;

/// Shared keys that belong to the engine.
pub fn is_reserved(key: &str) -> bool {
    let head = key.split(['.', '[']).next().unwrap_or(key);
    head == "_rt" || head == "_error"
}

impl Decider<'_> {
    pub(super) fn signal(
        &self,
        id: Option<&str>,
        key: &str,
        value: &Value,
        by: Option<&str>,
    ) -> Result<Vec<Event>, Refusal> {
        if is_reserved(key) {
            return Err(Refusal::Reserved(key.to_owned()));
        }
        weigh(value).map_err(|excess| bad("$.value", excess.to_string()))?;
        if key.is_empty() || key.len() > crate::limits::NAME_BYTES {
            return Err(bad("$.key", format!("a signal's key has 1 to {} bytes", crate::limits::NAME_BYTES)));
        }
        if key.contains(char::is_control) {
            return Err(bad("$.key", "it has control characters: leave them out".to_owned()));
        }
        // A signal that was taken is taken, also when the run has ended since.
        if id.is_some_and(|id| self.run.signal_ids.iter().any(|seen| seen == id)) {
            return Ok(Vec::new());
        }
        self.run.status.require_open()?;
        Ok(vec![Event::Signaled {
            id: id.map(str::to_owned),
            key: key.to_owned(),
            value: Arc::new(value.clone()),
            by: by.map(str::to_owned),
        }])
    }

    /// The end of a wait whose signal or decision has come.
    pub(super) fn arrived(&self, path: &NodePath) -> Option<Event> {
        let spot = self.run.spot(self.plan, path)?;
        // An ended node does not end again, even if its name is still in an index.
        let waits = matches!(spot.phase(), Phase::Open(Activity::Signal { .. } | Activity::Approval { .. }));
        waits.then(|| self.arrival(&spot, path)).flatten()
    }

    pub(super) fn arrival(&self, spot: &NodeRef<'_, '_>, path: &NodePath) -> Option<Event> {
        let view = spot.view(self.run, &spot.state.input);
        match &spot.node.kind {
            NodeKind::Wait(wait) => {
                let value = wait.key.resolve(&view).into_owned();
                let set = !matches!(&value, Value::Null | Value::Bool(false))
                    && value != Value::String(String::new());
                set.then(|| wait_done(spot, path, value))
            }
            // Where people are named, only one of them decides, and by name.
            NodeKind::Approval(approval) if !approval.assignees.is_empty() => None,
            NodeKind::Approval(approval) => {
                let value = approval.key.as_ref()?.resolve(&view).into_owned();
                let action = decision_action(&value)?;
                Some(spot.done(path, Arc::new(value), Some(action)))
            }
            _ => None,
        }
    }

    pub(super) fn decision(
        &self,
        node: Option<&NodePath>,
        decision: &Value,
        by: Option<&str>,
        comment: Option<&str>,
    ) -> Result<Vec<Event>, Refusal> {
        self.run.status.require_open()?;
        let path = match node {
            Some(path) => path.clone(),
            None => self.only_approval()?,
        };
        let spot = self.run.spot(self.plan, &path).ok_or_else(|| Refusal::UnknownNode(path.clone()))?;
        let (NodeKind::Approval(approval), Phase::Open(Activity::Approval { .. })) =
            (&spot.node.kind, spot.phase())
        else {
            return Err(Refusal::NotWaiting { node: path, state: spot.phase().word() });
        };
        let allowed = |by: &str| approval.assignees.is_empty() || approval.assignees.iter().any(|a| a == by);
        if !allowed(by.unwrap_or_default()) {
            return Err(Refusal::NotAssigned {
                node: path,
                by: by.unwrap_or_default().to_owned(),
                allowed: approval.assignees.join(", "),
            });
        }
        weigh(decision).map_err(|excess| bad("$.decision", excess.to_string()))?;
        let Some(action) = decision_action(decision) else {
            return Err(bad(
                "$.decision",
                "a decision is true, false or a word such as `approved`".to_owned(),
            ));
        };
        Ok(vec![
            Event::Decided {
                node: path.clone(),
                decision: decision.clone(),
                by: by.map(str::to_owned),
                comment: comment.map(str::to_owned),
            },
            spot.done(&path, Arc::new(decision.clone()), Some(action)),
        ])
    }

    fn only_approval(&self) -> Result<NodePath, Refusal> {
        let open: Vec<&NodePath> = self
            .run
            .waits
            .paths()
            .filter(|path| {
                let spot = self.run.spot(self.plan, path);
                spot.is_some_and(|spot| matches!(spot.node.kind, NodeKind::Approval(_)))
            })
            .collect();
        match open.as_slice() {
            [] => Err(Refusal::NoApproval),
            [one] => Ok((*one).clone()),
            many => {
                let names: Vec<&str> = many.iter().map(|path| path.as_str()).collect();
                Err(Refusal::WhichApproval(names.join(", ")))
            }
        }
    }

    /// Ends a suspended or waiting node with a result from outside.
    pub(super) fn continue_node(&self, path: &NodePath, value: &Value) -> Result<Vec<Event>, Refusal> {
        self.run.status.require_open()?;
        weigh(value).map_err(|excess| bad("$.value", excess.to_string()))?;
        let spot = self.run.spot(self.plan, path).ok_or_else(|| Refusal::UnknownNode(path.clone()))?;
        let value = Arc::new(value.clone());
        Ok(match spot.phase() {
            Phase::Open(Activity::Call(work)) => match work.stage {
                Stage::Suspended { .. } | Stage::Backoff { .. } | Stage::Parked { .. } => {
                    vec![self.call(&spot, path).done(work, &value, None)]
                }
                Stage::Granted { .. } => {
                    return Err(Refusal::NotWaiting { node: path.clone(), state: spot.phase().word() });
                }
            },
            Phase::Open(Activity::Signal { .. }) => vec![wait_done(&spot, path, (*value).clone())],
            Phase::Open(Activity::Timer { .. }) => vec![spot.done(path, value, None)],
            Phase::Open(Activity::Approval { .. }) => return self.decision(Some(path), &value, None, None),
            Phase::Open(Activity::Beginning | Activity::Nest | Activity::Restart { .. })
            | Phase::Pending
            | Phase::Done
            | Phase::Failed
            | Phase::Skipped
            | Phase::Canceled => {
                return Err(Refusal::NotWaiting { node: path.clone(), state: spot.phase().word() });
            }
        })
    }

    pub(super) fn balance_changed(
        &self,
        budget: Option<Amount>,
        balance: Option<Amount>,
    ) -> Result<Vec<Event>, Refusal> {
        if let Some(budget) = budget {
            return self.budget_set(budget);
        }
        self.run.status.require_open()?;
        let nodes = self.run.funded_by(balance);
        if nodes.is_empty() {
            return Ok(Vec::new());
        }
        let nodes = if balance.is_some() { nodes } else { Vec::new() };
        Ok(vec![Event::Funded { budget: None, nodes, child: None }])
    }

    /// A client sets the budget of the run. After the run has ended, it holds for the next round.
    fn budget_set(&self, budget: Amount) -> Result<Vec<Event>, Refusal> {
        if !self.run.status.is_ended() {
            self.run.status.require_open()?;
        }
        if budget < Amount::ZERO {
            return Err(bad("$.budget", "must not be negative".to_owned()));
        }
        match self.run.paying_parent() {
            Some(parent) => Err(Refusal::BudgetOfParent { parent: parent.run }),
            None => Ok(vec![self.funded(budget)]),
        }
    }

    /// The parent run passes on an amount it was given. A late or repeated input is a no-op.
    pub(super) fn reserve_raised(&self, budget: Amount) -> Vec<Event> {
        let is_more = self.run.budget.is_some_and(|before| budget > before);
        if is_more && self.run.status.require_open().is_ok() { vec![self.funded(budget)] } else { Vec::new() }
    }

    /// All waiting calls are looked at. The raise goes to the child that holds the rest of the budget: that
    /// one may wait for it, and nothing else of the run can spend it before the child has ended.
    fn funded(&self, budget: Amount) -> Event {
        let more = self.run.budget.map_or(Amount::ZERO, |before| budget.saturating_sub(before));
        let child = self.run.reserves.largest().filter(|_| more > Amount::ZERO);
        let child = child.map(|Reserve { fence, amount }| Reserve {
            fence,
            amount: amount.saturating_add(Amount(more.0)),
        });
        Event::Funded { budget: Some(budget), nodes: Vec::new(), child }
    }
}

/// A wait ends with the signal's value; the action may be fixed, in the value, or the value itself.
fn wait_done(spot: &NodeRef<'_, '_>, path: &NodePath, value: Value) -> Event {
    let post = &spot.node.post;
    let keyed = || post.action_key.as_ref().and_then(|_| action_text(&value));
    let action = spot.action(&value).or_else(keyed);
    spot.done(path, Arc::new(value), action)
}

/// True and "approved" approve, false and "rejected" reject, other words are the action themselves.
fn decision_action(value: &Value) -> Option<String> {
    match value {
        Value::Bool(true) => Some("approved".to_owned()),
        Value::Bool(false) => Some("rejected".to_owned()),
        other => action_text(other),
    }
}

pub(super) fn bad(path: &str, reason: String) -> Refusal {
    let severity = crate::problem::Severity::Error;
    Refusal::Bad(vec![crate::problem::Problem { path: path.to_owned(), reason, hint: None, severity }])
}
