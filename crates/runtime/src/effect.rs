//! What is done in the world because something has become durable.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use windlass_engine::effect::{Effect, Order};
use windlass_engine::id::RunId;
use windlass_engine::input::{Input, Outcome};
use windlass_engine::plan::Exec;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_store::run::RunStatus;
use windlass_store::schedule::Started;

use crate::Runtime;
use crate::call::Reported;
use crate::feed::Change;
use crate::function::{Function, FunctionCall};
use crate::hot::Hot;
use crate::job::unclaimed;
use crate::log::Wrote;
use crate::mailbox::Letter;
use crate::submit::After;

/// Calls that this server makes at the moment, each with the means to stop it.
#[derive(Default)]
pub(crate) struct Calls {
    open: Mutex<BTreeMap<(RunId, u64), CancellationToken>>,
}

impl Calls {
    fn open(&self) -> MutexGuard<'_, BTreeMap<(RunId, u64), CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, run: RunId, fence: u64) -> CancellationToken {
        let token = CancellationToken::new();
        self.open().insert((run, fence), token.clone());
        token
    }

    fn end(&self, run: RunId, fence: u64) {
        self.open().remove(&(run, fence));
    }

    /// Nobody wants this one any more.
    pub(crate) fn cancel(&self, run: RunId, fence: u64) {
        if let Some(token) = self.open().get(&(run, fence)) {
            token.cancel();
        }
    }

    /// Whether this one is being made.
    pub(crate) fn holds(&self, run: RunId, fence: u64) -> bool {
        self.open().contains_key(&(run, fence))
    }

    /// The fences of those of this run.
    pub(crate) fn fences(&self, run: RunId) -> Vec<u64> {
        self.open().range((run, 0)..=(run, u64::MAX)).map(|((_, fence), _)| *fence).collect()
    }

    /// The runs of which some are being made.
    pub(crate) fn runs(&self) -> BTreeSet<RunId> {
        self.open().keys().map(|(run, _)| *run).collect()
    }

    /// How many are being made.
    pub(crate) fn len(&self) -> usize {
        self.open().len()
    }
}

impl Runtime {
    /// Does what follows from a commit; answers with what quick functions said.
    pub(crate) fn carry_out(&self, hot: &Hot, after: After) -> Vec<Letter> {
        let After { effects, standing, jobs, messages, moments } = after;
        let run = hot.run.id;
        let mut own = Vec::new();
        if let Some(standing) = standing {
            if standing.status == RunStatus::Canceling {
                own.extend(unclaimed(&jobs));
            }
            self.stats().follow(hot, &moments, &jobs, standing.updated_at);
            self.timers().set(run, standing.wake_at, self.clock().now());
            self.feed().tell(|| Change {
                run,
                flow: hot.flow,
                seq: hot.len,
                at: standing.updated_at,
                status: standing.status,
                node: standing.node.clone(),
            });
            if let (Some(_), Some(account)) = (standing.needs, &hot.run.start.account) {
                self.in_need(account);
            }
            if !standing.status.is_open() {
                self.feed().ended(run, standing.status);
                self.calendar().ended(Started::Run(run));
            }
        }
        if !jobs.is_empty() {
            self.committed_jobs(&jobs);
        }
        messages.into_iter().for_each(|message| self.deliver_soon(message));
        // What was asked for and taken back in one commit is not done at all.
        let stopped: BTreeSet<u64> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Cancel { fence, .. } => Some(*fence),
                Effect::Call(_)
                | Effect::Move { .. }
                | Effect::Tell { .. }
                | Effect::Bill { .. }
                | Effect::Raise { .. } => None,
            })
            .collect();
        for effect in effects {
            match effect {
                Effect::Call(order) if stopped.contains(&order.fence) => {}
                Effect::Call(order) => own.extend(self.make(*order)),
                Effect::Cancel { fence, .. } => self.calls().cancel(run, fence),
                // A row of the commit; others may wait for what came back.
                Effect::Move { account, movement } if movement.amount > 0 => self.credited(&account),
                // These were rows of the commit.
                Effect::Move { .. } | Effect::Tell { .. } | Effect::Bill { .. } | Effect::Raise { .. } => {}
            }
        }
        own
    }

    /// Makes a call; what a quick function said comes back at once.
    fn make(&self, order: Order) -> Option<Letter> {
        if self.is_draining() {
            // Left to the next server, which finds it granted by one that is gone.
            return None;
        }
        if !self.may_call() {
            // Others may be about to make it: nobody knows, so it counts as lost.
            return Some(ended(&order, Reported::of(Outcome::ServerLost)));
        }
        match &order.exec {
            // Rows of the commit: a job, or a message that starts a child run.
            Exec::Queue | Exec::Flow { .. } => None,
            Exec::Func { name } => match self.settings().functions.find(name) {
                Some(Function::Quick(function)) => {
                    let call = FunctionCall::of(&order);
                    let outcome = catch_unwind(AssertUnwindSafe(|| function(&call)));
                    let outcome = outcome.unwrap_or_else(|_| panicked(name));
                    Some(ended(&order, Reported { log: call.logger.take(), ..Reported::of(outcome) }))
                }
                Some(Function::Slow(_)) => {
                    self.make_later(order);
                    None
                }
                None => Some(ended(&order, Reported::of(self.settings().functions.unknown(name)))),
            },
            Exec::Http | Exec::Script(_) => {
                self.make_later(order);
                None
            }
        }
    }

    fn make_later(&self, order: Order) {
        let (runtime, token) = (self.clone(), self.calls().begin(order.run, order.fence));
        self.tasks().spawn(async move {
            let making = runtime.clone();
            let its = order.clone();
            // A task of its own, so that a panic is an answer like any other.
            let mut call = tokio::spawn(async move { making.perform(&its, &token).await });
            let made = tokio::select! {
                made = &mut call => made,
                // Nobody takes the answer any more; the next server makes the call again.
                () = runtime.stopped() => return call.abort(),
            };
            let made = made.unwrap_or_else(|_| Reported::of(panicked(&order.service)));
            runtime.calls().end(order.run, order.fence);
            runtime.post(order.run, ended(&order, made));
        });
    }

    async fn perform(&self, order: &Order, cancel: &CancellationToken) -> Reported {
        let Exec::Func { name } = &order.exec else { return self.call(order, cancel).await };
        let Some(Function::Slow(function)) = self.settings().functions.find(name) else {
            return Reported::of(self.settings().functions.unknown(name));
        };
        let limit = order.deadline.map(|at| self.clock().until(at));
        let late = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let call = FunctionCall::of(order);
        let logger = call.logger.clone();
        let outcome = tokio::select! {
            outcome = function(call) => outcome,
            () = cancel.cancelled() => Outcome::Canceled,
            () = late => Outcome::Failed(Fault::new(FaultKind::Timeout, format!("`{name}` took too long"))),
        };
        Reported { log: logger.take(), ..Reported::of(outcome) }
    }
}

fn ended(order: &Order, reported: Reported) -> Letter {
    let Reported { outcome, worker, log } = reported;
    let (node, fence) = (order.node.clone(), order.fence);
    let mut letter = Letter::of(Input::CallEnded { node: node.clone(), fence, outcome, worker });
    letter.along.log = Some(Wrote { node, fence, log });
    letter
}

fn panicked(name: &str) -> Outcome {
    Outcome::Failed(Fault::new(FaultKind::Error, format!("`{name}` panicked; see the server's log")))
}
