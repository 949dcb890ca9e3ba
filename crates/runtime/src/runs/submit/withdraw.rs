//! Calls of jobs that should not begin any more. They end in the commit that lets their place drain: a server that dies
//! after it leaves no call without an end.

use windlass_engine::effect::Effect;
use windlass_engine::id::JobId;
use windlass_engine::input::{CallOutcome, Given, Input};
use windlass_engine::job::State;
use windlass_engine::plan::Exec;
use windlass_engine::run::RunStep;
use windlass_store::StoreError;

use crate::part::RuntimePart;
use crate::runs::Runs;
use crate::runs::cached_run::CachedRun;

/// Ends the withdrawn calls whose jobs no worker has claimed; their jobs are canceled by the same commit. A job that
/// a worker claims meanwhile is a conflict, and the batch is decided again.
pub(super) async fn withdraw_unclaimed(
    runs: &Runs,
    cached: &mut CachedRun,
    step: &mut RunStep,
    given: Given,
) -> Result<(), StoreError> {
    let mut n_seen = 0;
    while let Some(effect) = step.effects.get(n_seen).cloned() {
        n_seen += 1;
        let Effect::Withdraw { node, fence, exec: Exec::Queue } = effect else { continue };
        let job = match runs.store().job(runs.project(), JobId::of_call(cached.run.id, fence)).await {
            Ok(row) => row.map(|row| row.job),
            // A job that cannot be read is never handed out.
            Err(StoreError::Corrupt(_)) => None,
            Err(error) => return Err(error),
        };
        // Without a row, this commit creates it.
        if job.is_some_and(|job| matches!(job.state, State::Running { .. })) {
            continue;
        }
        let ended = Input::CallEnded { node, fence, outcome: CallOutcome::Canceled, worker: None };
        // A call that is over already is refused.
        if let Ok(more) = cached.run.submit(&cached.plan, &ended, &given) {
            step.events.extend(more.events);
            step.effects.extend(more.effects);
        }
    }
    Ok(())
}
