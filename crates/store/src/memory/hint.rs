//! What is told of a write to whoever listens.

use crate::commit::Commit;
use crate::hint::Hint;
use crate::job::due_at;
use crate::record::Record;

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

/// Nothing, of what everybody writes all the time.
pub(super) fn of_record(record: &Record) -> Hint {
    let settings = match record {
        Record::Worker(_)
        | Record::WorkerDrain { .. }
        | Record::Price(_)
        | Record::PriceGone { .. }
        | Record::Service(_)
        | Record::Queue(_) => true,
        Record::Server(_)
        | Record::ServersGone { .. }
        | Record::WorkerBeat(_)
        | Record::WorkersGone { .. }
        | Record::Account { .. }
        | Record::Spent { .. } => false,
    };
    Hint { settings, ..Hint::default() }
}
