//! Effects of a durable commit. The actor of a run calls this after each commit; calls begin, timers are set, jobs reach
//! the dispatcher and messages the outbox only here, so nothing happens before its cause is durable.

use std::collections::BTreeSet;

use windlass_engine::counter::Fence;
use windlass_engine::effect::Effect;
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::money::Amount;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_store::job::CallRef;
use windlass_store::run::RunStatus;
use windlass_store::schedule::Started;

use crate::feed::RunUpdate;
use crate::jobs::unclaimed;
use crate::part::RuntimePart;
use crate::runs::Runs;
use crate::runs::cached_run::CachedRun;
use crate::runs::mailbox::Envelope;
use crate::runs::outbox::OutboxDelivery;
use crate::runs::own_inputs::OwnInputs;
use crate::runs::submit::CommitEffects;

impl Runs {
    /// Carries out the effects of a commit; returns the inputs that follow from them at once.
    pub(crate) fn carry_out(&self, cached: &CachedRun, after: CommitEffects) -> OwnInputs {
        let CommitEffects { effects, projection, jobs, messages, metric_events } = after;
        let run = cached.run.id;
        let mut own = OwnInputs::default();
        if let Some(projection) = projection {
            own.extend(unclaimed(&jobs).filter_map(|call| end_of_unclaimed(cached, call, projection.status)));
            self.stats().record_run(cached, &metric_events, &jobs, projection.updated_at);
            // The actor itself goes on with an agenda that is still open.
            let wake_at = projection.wake_at.filter(|_| !cached.run.is_unfinished());
            self.state().timers.set(run, wake_at, self.clock().now());
            let starts_children = messages.iter().any(|message| message.note.tree().is_some());
            OutboxDelivery::of(&self.inner).follow_tree(cached, projection.status, starts_children);
            self.feed().tell(|| RunUpdate {
                run,
                flow: cached.flow,
                seq: cached.len,
                at: projection.updated_at,
                status: projection.status,
                node: projection.node.clone(),
            });
            if let (Some(_), Some(account)) = (projection.needs, &cached.run.start.account) {
                self.money().on_waiter(account);
            }
            if !projection.status.is_open() {
                self.feed().ended(run, projection.status);
                self.schedules().on_ended(Started::Run(run));
            }
        }
        if !jobs.is_empty() {
            self.jobs().committed_jobs(&jobs);
        }
        messages.into_iter().for_each(|message| self.deliver_soon(message));
        // A call that is made and canceled in one commit is not made at all.
        let stopped: BTreeSet<Fence> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Cancel { fence, .. } => Some(*fence),
                Effect::Call(_)
                | Effect::Withdraw { .. }
                | Effect::Move { .. }
                | Effect::Tell { .. }
                | Effect::Bill { .. }
                | Effect::Raise { .. } => None,
            })
            .collect();
        for effect in effects {
            match effect {
                Effect::Call(spec) if stopped.contains(&spec.fence) => {}
                Effect::Call(spec) => own.call(&self.calls(), *spec),
                Effect::Cancel { fence, .. } => self.calls().cancel(run, fence),
                Effect::Withdraw { fence, .. } => self.calls().withdraw(run, fence),
                // A row of the commit; other runs may wait for the credit.
                Effect::Move { account, movement } if movement.amount > Amount::ZERO => {
                    self.money().on_credit(&account)
                }
                // These were rows of the commit.
                Effect::Move { .. } | Effect::Tell { .. } | Effect::Bill { .. } | Effect::Raise { .. } => {}
            }
        }
        own
    }
}

/// The end of a call whose job was canceled before a worker claimed it. A run that is canceled, or whose call is out of
/// time, waits for it, and no worker would tell it.
fn end_of_unclaimed(cached: &CachedRun, call: &CallRef, status: RunStatus) -> Option<Envelope> {
    let CallRef { node, fence, .. } = call.clone();
    let outcome = if status == RunStatus::Canceling {
        CallOutcome::Canceled
    } else if cached.run.is_expiring(&cached.plan, &node) {
        CallOutcome::Failed(Fault::new(FaultKind::NoWorker, "no worker had claimed it"))
    } else {
        return None;
    };
    Some(Envelope::of(Input::CallEnded { node, fence, outcome, worker: None }))
}
