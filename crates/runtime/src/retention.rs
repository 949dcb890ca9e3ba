//! Retention: deletion of runs and jobs that ended long ago, and of workers and servers that never came back.

use std::time::Duration;

use windlass_engine::time::Timestamp;
use windlass_store::StoreError;
use windlass_store::store::Retained;

use crate::part::{RuntimePart, part};

/// When it is done first: a server that starts has more urgent things to do.
const FIRST_DELAY: Duration = Duration::from_secs(60);
/// How often it is done.
const INTERVAL: Duration = Duration::from_secs(3_600);
/// The delay before a failed deletion is retried.
const RETRY_DELAY: Duration = Duration::from_secs(60);
/// Runs, and as many jobs, that are deleted at once.
const BATCH_MAX: usize = 1_000;
/// Between two batches others can write.
const PAUSE: Duration = Duration::from_millis(100);
/// The shortest retention: by then every caller that waits for an end, or looks up a command, has its answer.
const RETAIN_MIN: Duration = Duration::from_secs(3_600);
/// How long a server without heartbeats is kept: long after others have taken over its calls.
const SERVER_RETAIN: Duration = Duration::from_secs(24 * 3_600);
/// The shortest retention of a worker without heartbeats.
const WORKER_RETAIN: Duration = Duration::from_secs(24 * 3_600);

part! {
    /// Deletion of old rows. It keeps no state.
    pub(crate) Retention
}

impl Retention {
    /// Deletes old rows every hour.
    pub(crate) async fn retention_loop(self) {
        let mut wait = FIRST_DELAY;
        loop {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.stopped() => return,
            }
            wait = match self.forget_old().await {
                Ok(()) => INTERVAL,
                Err(error) => {
                    tracing::warn!(%error, "old rows could not be deleted; it is retried");
                    RETRY_DELAY
                }
            };
        }
    }

    /// Forgets everything that is old, a part at a time.
    async fn forget_old(&self) -> Result<(), StoreError> {
        let before = self.ago(WORKER_RETAIN.max(self.settings().worker_ttl));
        self.store().delete_workers(before).await?;
        self.store().delete_servers(self.ago(SERVER_RETAIN)).await?;
        let Some(retain_for) = self.settings().retain_for else { return Ok(()) };
        let before = self.ago(retain_for.max(RETAIN_MIN));
        loop {
            let retained = self.store().retain(before, BATCH_MAX).await?;
            let Retained { n_runs, n_jobs, n_commands } = retained;
            if retained != Retained::default() {
                tracing::info!(n_runs, n_jobs, n_commands, "deleted runs and jobs that ended long ago");
            }
            // A part may be small because its rows are large.
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
    use windlass_engine::project::Project;
    use windlass_store::commit::{Commit, JobChange};
    use windlass_store::worker::{WorkerQuery, WorkerRow};
    use windlass_store::{Memory, Store};

    use super::*;
    use crate::{Runtime, Settings};
    use windlass_engine::counter::Revision;

    const DAY: Duration = Duration::from_secs(24 * 3_600);

    /// Jobs that ended then.
    async fn ended(store: &dyn Store, n: usize, at: Timestamp) -> Vec<JobId> {
        let make = |_| {
            let (mut job, _) = Job::create(JobId::new(Uuid::now_v7()), JobSpec::new("a", "q"), at).unwrap();
            let events = job.decide(JobInput::Cancel, at).unwrap();
            events.iter().for_each(|event| job.apply(event, at));
            JobChange { expected_rev: Revision(0), job, origin: Default::default() }
        };
        let jobs: Vec<JobChange> = (0..n).map(make).collect();
        let ids = jobs.iter().map(|change| change.job.id).collect();
        let commit = Commit { jobs, ..Commit::new(&Project::DEFAULT, CommandId::new(Uuid::now_v7()), at) };
        store.commit_one(commit).await.unwrap();
        ids
    }

    async fn n_left(store: &dyn Store, ids: &[JobId]) -> usize {
        let mut n = 0;
        for id in ids {
            n += usize::from(store.job(&Project::DEFAULT, *id).await.unwrap().is_some());
        }
        n
    }

    async fn server(store: &Arc<Memory>, retain_for: Option<Duration>) -> Runtime {
        let settings = Settings { retain_for, ..Settings::default() };
        Runtime::start_up(store.clone(), settings).await.unwrap()
    }

    #[tokio::test]
    async fn all_jobs_that_ended_long_ago_are_deleted() {
        let store = Arc::new(Memory::new());
        let runtime = server(&store, Some(30 * DAY)).await;
        let old = ended(&*store, 2 * BATCH_MAX + 1, runtime.retention().ago(31 * DAY)).await;
        let new = ended(&*store, 1, runtime.retention().ago(29 * DAY)).await;
        runtime.retention().forget_old().await.unwrap();
        assert_eq!((n_left(&*store, &old).await, n_left(&*store, &new).await), (0, 1));
    }

    #[tokio::test]
    async fn unlimited_retention_keeps_everything_and_the_shortest_is_an_hour() {
        let store = Arc::new(Memory::new());
        let runtime = server(&store, None).await;
        let old = ended(&*store, 1, runtime.retention().ago(3_000 * DAY)).await;
        runtime.retention().forget_old().await.unwrap();
        assert_eq!(n_left(&*store, &old).await, 1);
        let strict = server(&store, Some(Duration::ZERO)).await;
        let new = ended(&*store, 1, strict.clock().now()).await;
        strict.retention().forget_old().await.unwrap();
        assert_eq!((n_left(&*store, &old).await, n_left(&*store, &new).await), (0, 1));
    }

    #[tokio::test]
    async fn servers_that_never_came_back_are_forgotten() {
        let store = Arc::new(Memory::shared());
        for (n, days) in [(1, 3), (2, 2)] {
            let server = windlass_engine::id::ServerId::new(Uuid::from_u128(n));
            let at = Timestamp(0).after(days);
            let row = windlass_store::server::ServerRow {
                owner: windlass_store::run::Owner {
                    server,
                    epoch: windlass_engine::counter::Epoch(u64::try_from(n).unwrap()),
                },
                name: String::new(),
                version: String::new(),
                started_at: at,
                beat_at: at,
            };
            store.save_server(row).await.unwrap();
        }
        let settings = Settings::default();
        let runtime = Runtime::start_up(store.clone(), settings).await.unwrap();
        runtime.retention().forget_old().await.unwrap();
        let left = runtime.store().servers().await.unwrap();
        assert_eq!(left.iter().map(|row| row.owner).collect::<Vec<_>>(), [runtime.owner()]);
    }

    #[tokio::test]
    async fn workers_that_never_came_back_are_forgotten() {
        let store = Arc::new(Memory::new());
        let runtime = server(&store, None).await;
        for (id, beat_at) in
            [("gone", runtime.retention().ago(2 * DAY)), ("asleep", runtime.retention().ago(DAY / 2))]
        {
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
            store.save_worker(&Project::DEFAULT, row).await.unwrap();
        }
        runtime.retention().forget_old().await.unwrap();
        let left = runtime.workers().list(WorkerQuery::default()).await.unwrap();
        assert_eq!(left.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["asleep"]);
    }
}
