//! A batch that was decided: how far it went on the thread of its actor, and the rest of the way to its commit.

use tokio::runtime::Handle;
use windlass_engine::input::{Given, Refusal};
use windlass_engine::limits::SLICE_STEPS;
use windlass_engine::meter::Meter;
use windlass_engine::run::RunStep;
use windlass_engine::time::Timestamp;
use windlass_store::commit::Unmoved;

use super::draft::{CommitDraft, CommitEffects, WriteOutcome};
use super::withdraw::withdraw_unclaimed;
use crate::long_work::{LongPermit, aside};
use crate::part::RuntimePart;
use crate::runs::Runs;
use crate::runs::cached_run::CachedRun;
use crate::runs::mailbox::{Envelope, Mailbox};
use crate::runs::own_inputs::OwnInputs;

/// Steps of a batch on the thread of its actor: about a millisecond. A batch that takes more goes on elsewhere.
const INLINE_STEPS: u64 = 10_000;

/// A decided batch.
pub(super) struct Decided {
    pub(super) cached: Box<CachedRun>,
    pub(super) envelopes: Vec<Envelope>,
    pub(super) refusals: Vec<Option<Refusal>>,
    pub(super) step: RunStep,
    pub(super) unmoved: Option<Unmoved>,
    pub(super) at: Timestamp,
}

/// A batch after its commit, whatever the outcome.
pub(super) struct WrittenBatch {
    pub(super) cached: Box<CachedRun>,
    pub(super) envelopes: Vec<Envelope>,
    pub(super) refusals: Vec<Option<Refusal>>,
    pub(super) after: CommitEffects,
    pub(super) outcome: WriteOutcome,
}

/// The budget of a batch on the thread of its actor. The open agenda of an earlier decision is no short work.
pub(super) fn inline_meter(cached: &CachedRun) -> Meter {
    Meter::strict(if cached.run.is_unfinished() { 0 } else { INLINE_STEPS })
}

/// Writes a decision that is whole.
pub(super) async fn write_decided(runs: &Runs, decided: Decided, given: Given) -> WrittenBatch {
    let Decided { mut cached, envelopes, refusals, mut step, unmoved, at } = decided;
    let draft = match withdraw_unclaimed(runs, &mut cached, &mut step, given).await {
        Ok(()) => runs.draft(&mut cached, step, &envelopes, &refusals, at).await,
        Err(error) => Err(error),
    };
    let (after, outcome) = match draft {
        Ok(CommitDraft { mut commit, after }) => {
            commit.unmoved.extend(unmoved);
            (after, runs.write(commit).await)
        }
        Err(error) => (CommitEffects::default(), WriteOutcome::No(error)),
    };
    WrittenBatch { cached, envelopes, refusals, after, outcome }
}

/// Whether the actor goes on with an open agenda. A server that drains leaves the rest to the next one, which finds
/// the run due.
pub(super) fn goes_on(runs: &Runs, cached: &CachedRun) -> bool {
    cached.run.is_unfinished() && !runs.is_draining()
}

/// Waits for a place for the next slice, if that is all the actor has to do. An envelope that comes meanwhile is
/// decided first: no cancel waits behind the slices of other runs.
pub(super) async fn next_slice(runs: &Runs, mailbox: &Mailbox, own: &OwnInputs) -> Option<LongPermit> {
    if !own.is_only_agenda() {
        return None;
    }
    tokio::select! {
        biased;
        () = mailbox.has_envelope() => None,
        permit = runs.ctx().long_work.decision() => Some(permit),
    }
}

/// Follows the agenda for one slice and writes the decision, all of it on a thread for long work. `None` = the
/// server stops.
pub(super) async fn write_long(
    runs: &Runs,
    mut decided: Decided,
    given: Given,
    permit: &mut Option<LongPermit>,
) -> Option<WrittenBatch> {
    if permit.is_none() {
        *permit = Some(runs.ctx().long_work.decision().await);
    }
    let (runs, here) = (runs.clone(), Handle::current());
    aside(move || {
        let given = Given { meter: Meter::of(SLICE_STEPS), ..given };
        let more = decided.cached.run.resume_agenda(&decided.cached.plan, &given);
        decided.step.events.extend(more.events);
        decided.step.effects.extend(more.effects);
        here.block_on(write_decided(&runs, decided, given))
    })
    .await
}
