//! What is done in the world because something has become durable.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use windlass_engine::effect::{Effect, Order};
use windlass_engine::id::RunId;
use windlass_engine::input::{Input, Outcome};
use windlass_engine::plan::Exec;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_store::log::LogRow;
use windlass_store::record::Record;
use windlass_store::run::RunStatus;
use windlass_store::schedule::Started;

use crate::Runtime;
use crate::call::Reported;
use crate::feed::Change;
use crate::function::{Function, FunctionCall};
use crate::hot::Hot;
use crate::job::unclaimed;
use crate::log::Log;
use crate::mailbox::Letter;
use crate::submit::After;

/// Calls that this server makes at the moment, each with the means to stop it.
#[derive(Default)]
pub(crate) struct Calls {
    open: Mutex<HashMap<(RunId, u64), CancellationToken>>,
}

impl Calls {
    fn open(&self) -> MutexGuard<'_, HashMap<(RunId, u64), CancellationToken>> {
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

    fn cancel(&self, run: RunId, fence: u64) {
        if let Some(token) = self.open().get(&(run, fence)) {
            token.cancel();
        }
    }

    /// Whether this one is being made.
    pub(crate) fn holds(&self, run: RunId, fence: u64) -> bool {
        self.open().contains_key(&(run, fence))
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
                Effect::Call(_) | Effect::Move { .. } | Effect::Tell { .. } | Effect::Bill { .. } => None,
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
                Effect::Move { .. } | Effect::Tell { .. } | Effect::Bill { .. } => {}
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
            return Some(ended(&order, Outcome::ServerLost, None));
        }
        match &order.exec {
            // Rows of the commit: a job, or a message that starts a child run.
            Exec::Queue | Exec::Flow { .. } => None,
            Exec::Func { name } => match self.settings().functions.find(name) {
                Some(Function::Quick(function)) => {
                    let call = FunctionCall::of(&order);
                    let outcome = catch_unwind(AssertUnwindSafe(|| function(&call)));
                    Some(ended(&order, outcome.unwrap_or_else(|_| panicked(name)), None))
                }
                Some(Function::Slow(_)) => {
                    self.make_later(order);
                    None
                }
                None => Some(ended(&order, self.settings().functions.unknown(name), None)),
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
            let Reported { outcome, worker, log } = made.unwrap_or_else(|_| Reported {
                outcome: panicked(&order.service),
                worker: None,
                log: Log::default(),
            });
            runtime.save_log(order.run, order.fence, log).await;
            runtime.calls().end(order.run, order.fence);
            runtime.post(order.run, ended(&order, outcome, worker));
        });
    }

    async fn perform(&self, order: &Order, cancel: &CancellationToken) -> Reported {
        let Exec::Func { name } = &order.exec else { return self.call(order, cancel).await };
        let Some(Function::Slow(function)) = self.settings().functions.find(name) else {
            return Reported {
                outcome: self.settings().functions.unknown(name),
                worker: None,
                log: Log::default(),
            };
        };
        let limit = order.deadline.map(|at| self.clock().until(at));
        let late = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let outcome = tokio::select! {
            outcome = function(FunctionCall::of(order)) => outcome,
            () = cancel.cancelled() => Outcome::Canceled,
            () = late => Outcome::Failed(Fault::new(FaultKind::Timeout, format!("`{name}` took too long"))),
        };
        Reported { outcome, worker: None, log: Log::default() }
    }

    /// Adds to what a call wrote, whoever says it: a call that was suspended may be reported by somebody else.
    pub async fn add_to_log(&self, run: RunId, fence: u64, log: Log) {
        if log.is_empty() {
            return;
        }
        let before = self.store().logs(run, Some(fence)).await.unwrap_or_default().pop();
        let Some(LogRow { text, lines, .. }) = before else {
            return self.save_log(run, fence, log).await;
        };
        let all = Log::of_lines(lines.into_iter().chain(log.lines));
        self.save_log(run, fence, Log { text: text + &log.text, ..all }).await;
    }

    /// Keeps what a call wrote beside its result. It is for reading: losing it loses no work.
    pub(crate) async fn save_log(&self, run: RunId, fence: u64, log: Log) {
        if log.is_empty() {
            return;
        }
        let Log { text, lines } = log;
        let row = LogRow { run, fence, at: self.clock().now(), text, lines };
        if let Err(error) = self.store().save(Record::Log(row)).await {
            tracing::warn!(%run, fence, %error, "the log of a call could not be kept");
        }
    }
}

fn ended(order: &Order, outcome: Outcome, worker: Option<String>) -> Letter {
    Letter::of(Input::CallEnded { node: order.node.clone(), fence: order.fence, outcome, worker })
}

fn panicked(name: &str) -> Outcome {
    Outcome::Failed(Fault::new(FaultKind::Error, format!("`{name}` panicked; see the server's log")))
}
