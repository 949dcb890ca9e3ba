//! Retention: deletion of runs and jobs that ended long ago, of workers and servers that never came back, and of empty
//! queues. Every server does it; a row that another server deletes at the same time is skipped.

use std::ops::ControlFlow;
use std::time::Duration;

use windlass_engine::counter::Seq;
use windlass_engine::time::Timestamp;
use windlass_store::StoreError;
use windlass_store::audit::AuditHead;
use windlass_store::store::Retained;

use crate::part::{RuntimePart, part};
use crate::stats::SAMPLES_KEPT;

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

/// How long bulk actions are kept after their end.
const BULK_RETAIN: Duration = Duration::from_secs(7 * 86_400);
/// Bulk actions that are deleted at once: each may have many targets.
const BULKS_MAX: usize = 10;

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
            wait = match self.forget_unless_jumped().await {
                Ok(wait) => wait,
                Err(error) => {
                    tracing::warn!(%error, "old rows could not be deleted; it is retried");
                    RETRY_DELAY
                }
            };
        }
    }

    /// Forgets everything that is old, and returns the time until the next deletion. After a jump of the clock ahead
    /// nothing is old for one interval: an operator has this time to set a wrong clock back.
    async fn forget_unless_jumped(&self) -> Result<Duration, StoreError> {
        let wait = self.clock().left_after_jump(INTERVAL);
        if wait.is_zero() {
            return self.forget_old().await.map(|()| INTERVAL);
        }
        tracing::info!(wait_s = wait.as_secs(), "the clock jumped ahead: old rows are kept for a while");
        Ok(wait)
    }

    /// Forgets everything that is old, a part at a time.
    async fn forget_old(&self) -> Result<(), StoreError> {
        self.log_audit_head().await?;
        self.forget_workers().await?;
        self.forget_queues().await?;
        self.forget_samples_and_bulks().await?;
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
            if retained == Retained::default() || self.pause().await.is_break() {
                return Ok(());
            }
        }
    }

    /// Writes the head of the audit to the log, which is often kept in another place: it proves later that no line up to
    /// it was changed.
    async fn log_audit_head(&self) -> Result<(), StoreError> {
        let AuditHead { seq, hash } = self.store().audit_head(self.project()).await?;
        if seq > Seq::ZERO {
            tracing::info!(head = %format_args!("{seq}:{hash}"), "the audit has these lines");
        }
        Ok(())
    }

    /// Forgets workers without heartbeats; never a live one.
    async fn forget_workers(&self) -> Result<(), StoreError> {
        let settings = self.settings();
        let Some(retain_for) = settings.worker_retain_for else { return Ok(()) };
        let before = self.ago(retain_for.max(settings.worker_ttl));
        loop {
            let n_workers = self.store().delete_workers(before, BATCH_MAX).await?;
            if n_workers > 0 {
                tracing::info!(n_workers, "deleted workers without heartbeats");
            }
            if n_workers < BATCH_MAX || self.pause().await.is_break() {
                return Ok(());
            }
        }
    }

    /// Forgets samples of charts, and bulk actions that ended.
    async fn forget_samples_and_bulks(&self) -> Result<(), StoreError> {
        while self.store().delete_samples(self.ago(SAMPLES_KEPT), BATCH_MAX).await? == BATCH_MAX {
            if self.pause().await.is_break() {
                return Ok(());
            }
        }
        while self.store().delete_bulks(self.ago(BULK_RETAIN), BULKS_MAX).await? == BULKS_MAX {
            if self.pause().await.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Forgets queues that have neither settings nor jobs.
    async fn forget_queues(&self) -> Result<(), StoreError> {
        let Some(retain_for) = self.settings().empty_queue_retain_for else { return Ok(()) };
        let before = self.ago(retain_for);
        loop {
            let n_queues = self.store().delete_queues(before, BATCH_MAX).await?;
            if n_queues > 0 {
                tracing::info!(n_queues, "deleted queues without settings and jobs");
            }
            if n_queues < BATCH_MAX || self.pause().await.is_break() {
                return Ok(());
            }
        }
    }

    /// Waits between two batches; a break if the server stops meanwhile.
    async fn pause(&self) -> ControlFlow<()> {
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => ControlFlow::Continue(()),
            () = self.stopped() => ControlFlow::Break(()),
        }
    }

    fn ago(&self, time: Duration) -> Timestamp {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        // Server time may be ahead of a clock that was set right.
        let (now, wall) = self.clock().both();
        Timestamp(now.min(wall).0.saturating_sub_unsigned(ms))
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
    use windlass_store::page::NameRange;
    use windlass_store::queue::{QueueLimits, QueueSettings};
    use windlass_store::worker::{WorkerQuery, WorkerRow};
    use windlass_store::{Memory, Store};

    use super::*;
    use crate::clock::ManualWall;
    use crate::runtime::start_with;
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
    async fn a_clock_that_jumps_ahead_deletes_nothing_for_an_interval() {
        let (store, wall) = (Arc::new(Memory::new()), ManualWall::default());
        let settings = Settings { retain_for: Some(30 * DAY), ..Settings::default() };
        let runtime = start_with(store.clone(), settings.clone(), wall.clock()).await.unwrap();
        let jobs = ended(&*store, 1, runtime.clock().now()).await;
        let ahead = i64::try_from((31 * DAY).as_millis()).unwrap();
        wall.set(ahead);
        let wait = runtime.retention().forget_unless_jumped().await.unwrap();
        assert!(wait > INTERVAL / 2 && wait <= INTERVAL, "{wait:?}");
        assert_eq!(n_left(&*store, &jobs).await, 1);
        // Server time is still ahead of the clock that was set right.
        wall.set(0);
        runtime.retention().forget_old().await.unwrap();
        assert_eq!(n_left(&*store, &jobs).await, 1);
        runtime.shut_down(Duration::ZERO).await;
        // A server that starts after the jump does not know whether the clock is right, either.
        wall.set(ahead);
        let next = start_with(store.clone(), settings, wall.clock()).await.unwrap();
        assert!(next.retention().forget_unless_jumped().await.unwrap() > INTERVAL / 2);
        assert_eq!(n_left(&*store, &jobs).await, 1);
        // A clock that stays there is right.
        next.retention().forget_old().await.unwrap();
        assert_eq!(n_left(&*store, &jobs).await, 0);
    }

    #[tokio::test]
    async fn without_a_jump_old_rows_are_deleted_at_once() {
        let store = Arc::new(Memory::new());
        let runtime = server(&store, Some(30 * DAY)).await;
        let old = ended(&*store, 1, runtime.retention().ago(31 * DAY)).await;
        assert_eq!(runtime.retention().forget_unless_jumped().await.unwrap(), INTERVAL);
        assert_eq!(n_left(&*store, &old).await, 0);
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
        let now = crate::clock::Clock::default().now();
        for (n, at) in [(1, Timestamp(3)), (2, Timestamp(2)), (3, now)] {
            let server = windlass_engine::id::ServerId::new(Uuid::from_u128(n));
            let row = windlass_store::server::ServerRow {
                owner: windlass_store::run::Owner {
                    server,
                    epoch: windlass_engine::counter::Epoch(u64::try_from(n).unwrap()),
                },
                name: String::new(),
                version: String::new(),
                started_at: at,
                beat_at: at,
                worker_ttl_ms: 15_000,
            };
            store.save_server(row).await.unwrap();
        }
        let settings = Settings::default();
        let runtime = Runtime::start_up(store.clone(), settings).await.unwrap();
        runtime.retention().forget_old().await.unwrap();
        let left = runtime.store().servers().await.unwrap();
        let left: Vec<u64> = left.iter().map(|row| row.owner.epoch.0).collect();
        assert_eq!(left, [3, runtime.owner().epoch.0]);
    }

    fn worker(id: String, beat_at: Timestamp) -> WorkerRow {
        WorkerRow {
            id,
            name: String::new(),
            url: String::new(),
            kind: "async".to_owned(),
            services: Vec::new(),
            queues: Vec::new(),
            load: 0,
            capacity: 0,
            is_draining: false,
            peer: String::new(),
            replaced: Vec::new(),
            secret: None,
            registered_at: beat_at,
            beat_at,
        }
    }

    async fn workers_left(runtime: &Runtime) -> Vec<String> {
        let left = runtime.workers().list(WorkerQuery::default()).await.unwrap();
        left.into_iter().map(|row| row.id).collect()
    }

    #[tokio::test]
    async fn workers_that_never_came_back_are_forgotten() {
        let store = Arc::new(Memory::new());
        let runtime = server(&store, None).await;
        let save =
            |id: String, ago| store.save_worker(&Project::DEFAULT, worker(id, runtime.retention().ago(ago)));
        save("asleep".to_owned(), DAY / 2).await.unwrap();
        // More than one batch.
        for n in 0..=BATCH_MAX {
            save(format!("gone-{n}"), 2 * DAY).await.unwrap();
        }
        runtime.retention().forget_old().await.unwrap();
        assert_eq!(workers_left(&runtime).await, ["asleep"]);
    }

    #[tokio::test]
    async fn the_setting_says_how_long_a_worker_is_remembered_and_a_live_one_stays() {
        let store = Arc::new(Memory::new());
        let (ttl, hour) = (Duration::from_secs(7_200), Duration::from_secs(3_600));
        let mut settings = Settings { worker_ttl: ttl, worker_retain_for: Some(hour), ..Settings::default() };
        let runtime = Runtime::start_up(store.clone(), settings.clone()).await.unwrap();
        for (id, ago) in [("live", 3 * hour / 2), ("gone", 3 * hour)] {
            let row = worker(id.to_owned(), runtime.retention().ago(ago));
            store.save_worker(&Project::DEFAULT, row).await.unwrap();
        }
        settings.worker_retain_for = None;
        let keeping = Runtime::start_up(store.clone(), settings).await.unwrap();
        keeping.retention().forget_old().await.unwrap();
        assert_eq!(workers_left(&keeping).await, ["gone", "live"]);
        runtime.retention().forget_old().await.unwrap();
        assert_eq!(workers_left(&runtime).await, ["live"]);
    }

    #[tokio::test]
    async fn queues_without_settings_and_jobs_are_forgotten() {
        let store = Arc::new(Memory::new());
        let runtime = server(&store, None).await;
        for (name, is_paused, ago) in
            [("gone", false, 8 * DAY), ("used", false, 6 * DAY), ("set", true, 8 * DAY)]
        {
            let (limits, updated_at) = (QueueLimits::default(), runtime.retention().ago(ago));
            let settings = QueueSettings { name: name.to_owned(), is_paused, limits, updated_at };
            store.save_queue(&Project::DEFAULT, settings).await.unwrap();
        }
        let left = async || {
            let queues = runtime.jobs().queues(NameRange::All).await.unwrap();
            queues.into_iter().map(|queue| queue.depth.name).collect::<Vec<_>>()
        };
        let settings = Settings { empty_queue_retain_for: None, ..Settings::default() };
        let keeping = Runtime::start_up(store.clone(), settings).await.unwrap();
        keeping.retention().forget_old().await.unwrap();
        assert_eq!(left().await, ["gone", "set", "used"]);
        runtime.retention().forget_old().await.unwrap();
        assert_eq!(left().await, ["set", "used"]);
    }
}
