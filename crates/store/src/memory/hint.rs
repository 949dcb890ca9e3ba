//! Hints of writes, for listeners.

use crate::commit::Commit;
use crate::hint::Hint;
use crate::job::due_at;

pub(super) fn of_commit(commit: &Commit) -> Hint {
    let claimable = commit.jobs.iter().filter(|change| due_at(&change.job).is_some());
    let mut hint = Hint::default();
    hint.merge(Hint {
        runs: commit.run.iter().map(|change| change.run).collect(),
        queues: claimable.map(|change| change.job.spec.queue.clone()).collect(),
        outbox: !commit.messages.is_empty(),
        schedules: !commit.schedules.is_empty(),
        ..Hint::default()
    });
    hint
}
