//! Reasons why a run waits, in words: the same answer for the console, the command line and the API.

use serde::Serialize;

use super::Run;
use super::state::{Activity, FanState, Nest, NodeState, Phase, ScopeState, Slot, Stage, Status, Work};
use crate::id::RunId;
use crate::money::Amount;
use crate::path::NodePath;
use crate::plan::{Body, Call, Exec, Fan, Node, NodeKind, Plan, Scope};
use crate::reference::{Ref, Root, Seg};
use crate::time::Timestamp;

/// One thing that keeps a run from going on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Where; the empty path is the run itself.
    pub node: NodePath,
    #[serde(flatten)]
    pub cause: Cause,
    /// The command that would clear it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// The obstacle that keeps a run from going on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "waits_for", rename_all = "snake_case")]
pub enum Cause {
    /// It was not started.
    Start,
    /// A client paused it.
    Resume,
    /// It is advanced by hand.
    Step,
    /// It has more to decide than one commit may hold, and goes on by itself.
    Turn,
    /// It has ended.
    Nothing {
        status: &'static str,
    },
    /// Calls are confirming a cancel.
    CancelConfirmation {
        n_calls: usize,
    },
    /// A worker, script or function has the call.
    Answer {
        service: String,
        by: &'static str,
        attempt: u32,
        deadline: Option<Timestamp>,
    },
    /// The next attempt.
    Retry {
        at: Timestamp,
        after: Option<String>,
    },
    /// A suspended call is asked again, or reported.
    Report {
        again_at: Option<Timestamp>,
    },
    Timer {
        until: Timestamp,
    },
    Signal {
        key: String,
        until: Option<Timestamp>,
    },
    Approval {
        by: Vec<String>,
        until: Option<Timestamp>,
    },
    Balance {
        amount: Amount,
    },
    Budget {
        amount: Amount,
        /// The amount of it that open child runs may still spend.
        #[serde(skip_serializing_if = "is_zero")]
        held: Amount,
    },
}

impl Run {
    /// Everything that the run waits for, outermost first.
    pub fn why(&self, plan: &Plan) -> Vec<Reason> {
        let about = |cause, command: Option<String>| vec![Reason { node: NodePath::root(), cause, command }];
        let id = self.id;
        let reasons = match self.status {
            Status::Pending => return about(Cause::Start, None),
            Status::Completed => return about(Cause::Nothing { status: self.status.word() }, None),
            Status::Failed | Status::Canceled => {
                let command = Some(match self.paying_parent() {
                    Some(parent) => format!("windlass run rerun {} --from {}", parent.run, parent.node),
                    None => format!("windlass run retry {id}"),
                });
                return about(Cause::Nothing { status: self.status.word() }, command);
            }
            Status::Canceling => return about(Cause::CancelConfirmation { n_calls: self.n_granted }, None),
            Status::Paused => about(Cause::Resume, Some(format!("windlass run resume {id}"))),
            Status::Running if self.start.manual && self.is_held() => {
                about(Cause::Step, Some(format!("windlass run step {id}")))
            }
            Status::Running if self.is_unfinished() => about(Cause::Turn, None),
            Status::Running => Vec::new(),
        };
        let mut walk = ReasonWalk { run: self, reasons };
        walk.scope(&plan.root, &self.root, &NodePath::root());
        walk.reasons
    }
}

/// Walk through the open nodes of a run. It lists the reasons why each of them waits.
struct ReasonWalk<'a> {
    run: &'a Run,
    reasons: Vec<Reason>,
}

impl ReasonWalk<'_> {
    fn scope(&mut self, scope: &Scope, state: &ScopeState, path: &NodePath) {
        for (ix, node) in state.nodes.iter().filter(|(_, node)| node.phase.is_open()) {
            let plan = &scope.nodes[*ix];
            let here = path.child(&plan.key);
            // A subflow that waits to start again still has its old inner nodes.
            let inside = node.nest.as_deref().filter(|_| node.phase == Phase::Open(Activity::Nest));
            match (&plan.kind, inside) {
                (NodeKind::Sub(sub), Some(Nest::Scope(inner))) => self.scope(&sub.scope, inner, &here),
                (NodeKind::Loop(body), Some(Nest::Loop(turns))) => {
                    if let Some(turn) = turns.turns.get(turns.index) {
                        self.scope(&body.body, turn, &here.at(turns.index));
                    }
                }
                (NodeKind::Fan(fan), Some(Nest::Fan(arms))) => {
                    for (at, slot) in arms.slots.iter().enumerate().filter(|(_, slot)| slot.phase.is_open()) {
                        self.branch(fan, arms, at, slot, here.at(at));
                    }
                }
                _ => self.node(plan, node, here),
            }
        }
    }

    fn branch(&mut self, fan: &Fan, arms: &FanState, at: usize, slot: &Slot, here: NodePath) {
        match (fan.branch(at).map(|branch| &branch.body), slot.scope.as_deref()) {
            (Some(Body::Call(call)), _) => {
                let Some(work) = slot.phase.work() else { return };
                let service = arms.names.get(at).unwrap_or(&call.service);
                let fault = slot.fault.as_deref().map(|fault| fault.message.clone());
                self.call(call, service, work, here, fault);
            }
            (Some(Body::Scope(scope)), Some(inner)) => self.scope(scope, inner, &here),
            (Some(Body::Scope(_)) | None, _) => {}
        }
    }

    fn node(&mut self, plan: &Node, node: &NodeState, here: NodePath) {
        let Phase::Open(activity) = &node.phase else { return };
        let id = self.run.id;
        let (cause, command) = match activity {
            Activity::Call(work) => {
                let NodeKind::Call(call) = &plan.kind else { return };
                let fault = node.fault.as_ref().map(|fault| fault.message.clone());
                return self.call(call, &call.service, work, here, fault);
            }
            Activity::Timer { until, wall } => (
                Cause::Timer { until: wall.unwrap_or(*until) },
                Some(format!("windlass run continue {id} {here}")),
            ),
            Activity::Signal { until } => {
                let NodeKind::Wait(wait) = &plan.kind else { return };
                let key = spelled(&wait.key);
                let command = signal_key(&wait.key).map(|key| format!("windlass run signal {id} {key} true"));
                (Cause::Signal { key, until: *until }, command)
            }
            Activity::Approval { until } => {
                let NodeKind::Approval(approval) = &plan.kind else { return };
                let command = format!("windlass approvals approve {id}/{here}");
                (Cause::Approval { by: approval.assignees.clone(), until: *until }, Some(command))
            }
            Activity::Restart { until } => {
                let after = node.fault.as_ref().map(|fault| fault.message.clone());
                (Cause::Retry { at: *until, after }, None)
            }
            Activity::Beginning | Activity::Nest => return,
        };
        self.reasons.push(Reason { node: here, cause, command });
    }

    fn call(&mut self, call: &Call, service: &str, work: &Work, here: NodePath, fault: Option<String>) {
        let run = self.run;
        let id = run.id;
        let (cause, command) = match &work.stage {
            Stage::Granted { fence, .. } => {
                let by = performer(&call.exec);
                let (service, attempt) = (service.to_owned(), work.attempt);
                let child = matches!(call.exec, Exec::Flow { .. }).then(|| RunId::of_call(id, *fence));
                let command = child.map(|child| format!("windlass run why {child}"));
                (Cause::Answer { service, by, attempt, deadline: work.deadline }, command)
            }
            Stage::Backoff { until } => (Cause::Retry { at: *until, after: fault }, None),
            Stage::Suspended { until, .. } => {
                let command = format!("windlass run continue {id} {here} RESULT");
                (Cause::Report { again_at: *until }, Some(command))
            }
            Stage::Parked { amount, over_budget } => {
                let account = run.start.account.as_deref().unwrap_or_default();
                if *over_budget {
                    let held = run.reserves.total();
                    let whose = run.paying_parent().map_or(id, |parent| parent.run);
                    (
                        Cause::Budget { amount: *amount, held },
                        Some(format!("windlass run budget {whose} AMOUNT")),
                    )
                } else {
                    let command = format!("windlass account deposit {account} {amount}");
                    (Cause::Balance { amount: *amount }, Some(command))
                }
            }
        };
        self.reasons.push(Reason { node: here, cause, command });
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &Amount) -> bool {
    *value == Amount::ZERO
}

pub(super) fn performer(exec: &Exec) -> &'static str {
    match exec {
        Exec::Http => "push worker",
        Exec::Queue => "pull worker",
        Exec::Func { .. } => "local function",
        Exec::Script(_) => "script",
        Exec::Flow { .. } => "child run",
    }
}

/// The key of the signal that a wait looks for, if a signal can set it.
fn signal_key(reference: &Ref) -> Option<&str> {
    match (&reference.root, reference.path.first()) {
        (Root::Shared | Root::Anywhere, Some(Seg::Key(key))) => Some(key),
        _ => None,
    }
}

fn spelled(reference: &Ref) -> String {
    let path: Vec<String> = reference
        .path
        .iter()
        .map(|seg| match seg {
            Seg::Key(key) => key.clone(),
            Seg::Index(index) => format!("[{index}]"),
        })
        .collect();
    path.join(".").replace(".[", "[")
}
