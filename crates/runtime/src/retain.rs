//! Forgetting: what ended long ago, and workers that never came back.

use std::time::Duration;

use windlass_engine::time::Timestamp;
use windlass_store::StoreError;
use windlass_store::record::Record;
use windlass_store::store::Retained;

use crate::Runtime;

/// When it is done first: a server that starts has more urgent things to do.
const FIRST: Duration = Duration::from_secs(60);
/// How often it is done.
const OFTEN: Duration = Duration::from_secs(3_600);
/// When to try again what the store could not do.
const AGAIN: Duration = Duration::from_secs(60);
/// Runs, and as many jobs, that are deleted at once.
const BATCH: usize = 1_000;
/// Between two batches others can write.
const PAUSE: Duration = Duration::from_millis(100);
/// The shortest time that anything is kept: whoever waits for an end, or asks again whether a command was taken, has
/// long done so.
const RETAIN_MIN: Duration = Duration::from_secs(3_600);
/// How long a server that is not heard of is remembered: long after others have taken over what it did.
const SERVER_RETAIN: Duration = Duration::from_secs(24 * 3_600);
/// How long a worker that is not heard of is remembered, at least.
const WORKER_RETAIN: Duration = Duration::from_secs(24 * 3_600);

impl Runtime {
    /// Forgets what is old, now and then.
    pub(crate) async fn forget_now_and_then(self) {
        let mut wait = FIRST;
        loop {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.stopped() => return,
            }
            wait = match self.forget_old().await {
                Ok(()) => OFTEN,
                Err(error) => {
                    tracing::warn!(%error, "what is old could not be deleted; it is tried again");
                    AGAIN
                }
            };
        }
    }

    /// Forgets everything that is old, a part at a time.
    async fn forget_old(&self) -> Result<(), StoreError> {
        let before = self.ago(WORKER_RETAIN.max(self.settings().worker_ttl));
        self.store().save(Record::WorkersGone { before }).await?;
        self.store().save(Record::ServersGone { before: self.ago(SERVER_RETAIN) }).await?;
        let Some(retain_for) = self.settings().retain_for else { return Ok(()) };
        let before = self.ago(retain_for.max(RETAIN_MIN));
        loop {
            let retained = self.store().retain(before, BATCH).await?;
            let Retained { n_runs, n_jobs, n_commands } = retained;
            if retained != Retained::default() {
                tracing::info!(n_runs, n_jobs, n_commands, "deleted what ended long ago");
            }
            // A part may be small because what is in it is large.
            if retained == Retained::default() {
                return Ok(());
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = self.stopped() => return Ok(()),
            }
        }
    }

    fn ago(&self, time: Duration) -> Timestamp {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Timestamp(self.clock().now().0.saturating_sub_unsigned(ms))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use uuid::Uuid;
    use windlass_engine::id::{CommandId, JobId};
    use windlass_engine::job::{Job, JobInput, JobSpec};
    use windlass_store::commit::{Commit, JobChange};
    use windlass_store::worker::{WorkerQuery, WorkerRow};
    use windlass_store::{Memory, Store};

    use super::*;
    use crate::Settings;

    const DAY: Duration = Duration::from_secs(24 * 3_600);

    /// Jobs that ended then.
    async fn ended(store: &dyn Store, n: usize, at: Timestamp) -> Vec<JobId> {
        let make = |_| {
            let (mut job, _) = Job::create(JobId::new(Uuid::now_v7()), JobSpec::new("a", "q"), at).unwrap();
            let events = job.decide(JobInput::Cancel, at).unwrap();
            events.iter().for_each(|event| job.apply(event, at));
            JobChange { expected_rev: 0, job, origin: Default::default() }
        };
        let jobs: Vec<JobChange> = (0..n).map(make).collect();
        let ids = jobs.iter().map(|change| change.job.id).collect();
        let commit = Commit { jobs, ..Commit::new(CommandId::new(Uuid::now_v7()), at) };
        store.commit_one(commit).await.unwrap();
        ids
    }

    async fn n_left(store: &dyn Store, ids: &[JobId]) -> usize {
        let mut n = 0;
        for id in ids {
            n += usize::from(store.job(*id).await.unwrap().is_some());
        }
        n
    }

    async fn server(store: &Arc<Memory>, retain_for: Option<Duration>) -> Runtime {
        let settings = Settings { retain_for, ..Settings::default() };
        Runtime::start_up(store.clone(), settings).await.unwrap()
    }

    #[tokio::test]
    async fn what_ended_long_ago_is_forgotten_however_much_it_is() {
        let store = Arc::new(Memory::new());
        let runtime = server(&store, Some(30 * DAY)).await;
        let old = ended(&*store, 2 * BATCH + 1, runtime.ago(31 * DAY)).await;
        let new = ended(&*store, 1, runtime.ago(29 * DAY)).await;
        runtime.forget_old().await.unwrap();
        assert_eq!((n_left(&*store, &old).await, n_left(&*store, &new).await), (0, 1));
    }

    #[tokio::test]
    async fn what_is_kept_for_ever_is_kept_and_nothing_is_forgotten_at_once() {
        let store = Arc::new(Memory::new());
        let runtime = server(&store, None).await;
        let old = ended(&*store, 1, runtime.ago(3_000 * DAY)).await;
        runtime.forget_old().await.unwrap();
        assert_eq!(n_left(&*store, &old).await, 1);
        let strict = server(&store, Some(Duration::ZERO)).await;
        let new = ended(&*store, 1, strict.clock().now()).await;
        strict.forget_old().await.unwrap();
        assert_eq!((n_left(&*store, &old).await, n_left(&*store, &new).await), (0, 1));
    }

    #[tokio::test]
    async fn servers_that_never_came_back_are_forgotten() {
        let store = Arc::new(Memory::new());
        for (n, days) in [(1, 3), (2, 2)] {
            let server = windlass_engine::id::ServerId::new(Uuid::from_u128(n));
            let at = Timestamp(0).after(days);
            let row = windlass_store::server::ServerRow {
                owner: windlass_store::run::Owner { server, epoch: u64::try_from(n).unwrap() },
                name: String::new(),
                version: String::new(),
                started_at: at,
                beat_at: at,
            };
            store.save(Record::Server(row)).await.unwrap();
        }
        let settings = Settings { is_alone: false, ..Settings::default() };
        let runtime = Runtime::start_up(store.clone(), settings).await.unwrap();
        runtime.forget_old().await.unwrap();
        let left = runtime.store().servers().await.unwrap();
        assert_eq!(left.iter().map(|row| row.owner).collect::<Vec<_>>(), [runtime.owner()]);
    }

    #[tokio::test]
    async fn workers_that_never_came_back_are_forgotten() {
        let store = Arc::new(Memory::new());
        let runtime = server(&store, None).await;
        for (id, beat_at) in [("gone", runtime.ago(2 * DAY)), ("asleep", runtime.ago(DAY / 2))] {
            let row = WorkerRow {
                id: id.to_owned(),
                name: String::new(),
                url: String::new(),
                kind: "async".to_owned(),
                services: Vec::new(),
                queues: Vec::new(),
                load: 0,
                capacity: 0,
                is_draining: false,
                registered_at: beat_at,
                beat_at,
            };
            store.save(Record::Worker(row)).await.unwrap();
        }
        runtime.forget_old().await.unwrap();
        let left = runtime.workers(WorkerQuery::default()).await.unwrap();
        assert_eq!(left.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["asleep"]);
    }
}
