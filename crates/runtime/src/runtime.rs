//! One server: construction, start, drain and stop. Its state belongs to the owners (`runs`, `calls`, `jobs`, `workers`,
//! `schedules`, `money`, `cluster`, `stats`, `access`), which callers reach through the accessors here.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use windlass_engine::project::Project;
use windlass_engine::recovery::DEAD_MS;
use windlass_store::Store;
use windlass_store::hint::Hints;
use windlass_store::run::Owner;

use crate::access::{Access, AccessState};
use crate::body_budget::BodyBudget;
use crate::bulks::{Bulks, BulksState};
use crate::calls::{Calls, CallsState};
use crate::clock::Clock;
use crate::cluster::{Cluster, ClusterState, Membership};
use crate::ctx::{Ctx, sync_clock};
use crate::doctor::{Doctor, StoreWatch};
use crate::grant::{self, GrantSigner};
use crate::jobs::relay::RedisRelay;
use crate::jobs::{Jobs, JobsState, Reaper};
use crate::money::{Money, MoneyState};
use crate::part::{Inner, RuntimePart};
use crate::retention::Retention;
use crate::runs::outbox::OutboxDelivery;
use crate::runs::{Runs, RunsState};
use crate::schedules::{Schedules, SchedulesState};
use crate::stats::{Activity, Sampler, Stats};
use crate::workers::{Workers, WorkersState, ttl_ms};
use crate::{RuntimeError, Settings};

/// How often doubtful figures are dropped, and how long recovery waits before it is tried again.
const TICK: Duration = Duration::from_secs(1);

/// How long pending writes may take when the server stops.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// How often a draining server looks whether its calls have ended.
const DRAIN_POLL: Duration = Duration::from_millis(20);

/// A running server. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    owners: Arc<Owners>,
}

/// One handle of each owner, so that the accessors can lend them.
struct Owners {
    inner: Arc<Inner>,
    runs: Runs,
    bulks: Bulks,
    calls: Calls,
    jobs: Jobs,
    workers: Workers,
    schedules: Schedules,
    money: Money,
    cluster: Cluster,
    doctor: Doctor,
    access: Access,
}

impl RuntimePart for Runtime {
    fn inner(&self) -> &Arc<Inner> {
        &self.owners.inner
    }
}

/// Starts a server that tells the time by this clock.
pub(crate) async fn start_with(
    store: Arc<dyn Store>,
    settings: Settings,
    clock: Clock,
) -> Result<Runtime, RuntimeError> {
    // Before the first read, so that no commit in between is missed.
    let hints = if store.is_shared() { store.hints() } else { None };
    sync_clock(&clock, &*store).await?;
    if let Some(beat_at) = store.servers().await?.iter().map(|row| row.beat_at).max() {
        // Stored times may come from a clock that ran ahead, or this one may.
        clock.not_before(beat_at);
        clock.resume_after(beat_at);
    }
    let grants = GrantSigner::new(&store.store_key(grant::KEY_NAME, grant::fresh_key()).await?);
    let membership = Membership::begin(&*store, &settings.name, ttl_ms(&settings), clock.now()).await?;
    let runtime = Runtime::assemble(store, settings, clock, grants, membership);
    runtime.money().load_prices().await?;
    runtime.access().load().await?;
    runtime.calls().load_services().await?;
    runtime.jobs().load_jobs().await?;
    runtime.spawn_loops(hints);
    Ok(runtime)
}

impl Runtime {
    /// Starts a server on a store: it takes over the work of earlier servers and wakes due runs.
    pub async fn start_up(store: Arc<dyn Store>, settings: Settings) -> Result<Runtime, RuntimeError> {
        start_with(store, settings, Clock::default()).await
    }

    /// A server that only reads: it does not register, writes nothing and runs no loops.
    pub(crate) async fn at_rest(store: Arc<dyn Store>) -> Result<Runtime, RuntimeError> {
        let (clock, settings) = (Clock::default(), Settings::default());
        sync_clock(&clock, &*store).await?;
        let membership = Membership::none(clock.now());
        // It grants nothing, so the key of the store is not needed.
        let grants = GrantSigner::new(&grant::fresh_key());
        Ok(Runtime::assemble(store, settings, clock, grants, membership))
    }

    fn assemble(
        store: Arc<dyn Store>,
        settings: Settings,
        clock: Clock,
        grants: GrantSigner,
        membership: Membership,
    ) -> Runtime {
        let inner = Inner {
            runs: RunsState::default(),
            bulks: BulksState::default(),
            calls: CallsState::new(&settings),
            jobs: JobsState::new(&settings, store.is_shared()),
            workers: WorkersState::new(&settings),
            schedules: SchedulesState::default(),
            money: MoneyState::default(),
            access: AccessState::new(store.is_shared()),
            stats: Stats::new(clock.now()),
            ctx: Ctx::new(store, settings, clock, grants, membership.row().clone()),
            cluster: ClusterState::new(membership),
        };
        let inner = Arc::new(inner);
        let owners = Owners {
            runs: Runs::of(&inner),
            bulks: Bulks::of(&inner),
            calls: Calls::of(&inner),
            jobs: Jobs::of(&inner),
            workers: Workers::of(&inner),
            schedules: Schedules::of(&inner),
            money: Money::of(&inner),
            cluster: Cluster::of(&inner),
            doctor: Doctor::of(&inner),
            access: Access::of(&inner),
            inner,
        };
        Runtime { owners: Arc::new(owners) }
    }

    fn spawn_loops(&self, hints: Option<Hints>) {
        let (tasks, inner) = (self.tasks(), self.inner());
        if self.is_shared() {
            tasks.spawn(self.cluster().clone().listen(hints));
        }
        tasks.spawn(self.cluster().clone().heartbeat_loop());
        tasks.spawn(self.runs().clone().run_timers());
        tasks.spawn(self.bulks().clone().work_loop());
        tasks.spawn(Sampler::of(inner).sample_loop());
        tasks.spawn(self.runs().clone().poll_due());
        tasks.spawn(OutboxDelivery::of(inner).poll_outbox());
        tasks.spawn(self.runs().clone().evict_idle_runs());
        tasks.spawn(Reaper::of(inner).reap_loop());
        tasks.spawn(RedisRelay::of(inner).relay_loop());
        tasks.spawn(self.schedules().clone().schedule_loop());
        tasks.spawn(self.workers().clone().refresh_loop());
        tasks.spawn(self.calls().clone().serve_handlers());
        tasks.spawn(self.calls().clone().remove_script_leftovers());
        tasks.spawn(Retention::of(inner).retention_loop());
        tasks.spawn(self.clone().expire_stats());
        tasks.spawn(self.access().clone().access_loop());
        tasks.spawn(StoreWatch::of(inner).watch_loop());
        tasks.spawn(self.clone().recover_at_start());
    }

    /// Takes over the calls of earlier servers; the new one serves requests meanwhile.
    async fn recover_at_start(self) {
        while let Err(error) = self.cluster().recover().await {
            tracing::warn!(%error, "the calls of earlier servers could not be read yet, will try again");
            tokio::select! {
                () = tokio::time::sleep(TICK) => {}
                () = self.stopped() => return,
            }
        }
    }

    async fn expire_stats(self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(TICK) => self.activity().tidy(),
                () = self.stopped() => return,
            }
        }
    }

    /// The owner of runs and flows.
    pub fn runs(&self) -> &Runs {
        &self.owners.runs
    }

    /// The owner of bulk actions.
    pub fn bulks(&self) -> &Bulks {
        &self.owners.bulks
    }

    /// The owner of calls, functions and services.
    pub fn calls(&self) -> &Calls {
        &self.owners.calls
    }

    /// The owner of jobs and queues.
    pub fn jobs(&self) -> &Jobs {
        &self.owners.jobs
    }

    /// The owner of workers.
    pub fn workers(&self) -> &Workers {
        &self.owners.workers
    }

    /// The owner of schedules.
    pub fn schedules(&self) -> &Schedules {
        &self.owners.schedules
    }

    /// The owner of accounts and prices.
    pub fn money(&self) -> &Money {
        &self.owners.money
    }

    /// Figures of this server.
    pub fn activity(&self) -> Activity {
        Activity::of(self.inner())
    }

    /// Time series for charts.
    pub fn sampler(&self) -> Sampler {
        Sampler::of(self.inner())
    }

    /// The owner of this server's place among others.
    pub fn cluster(&self) -> &Cluster {
        &self.owners.cluster
    }

    /// Checks of everything that is stored.
    pub fn doctor(&self) -> &Doctor {
        &self.owners.doctor
    }

    /// The owner of API keys.
    pub fn access(&self) -> &Access {
        &self.owners.access
    }

    /// The store that the server works on.
    pub fn store(&self) -> &dyn Store {
        &*self.ctx().store
    }

    /// The project that the server works for.
    pub fn project(&self) -> &Project {
        &self.ctx().settings.project
    }

    /// The settings that the server was started with.
    pub fn settings(&self) -> &Settings {
        &self.ctx().settings
    }

    /// The time of this server.
    pub fn clock(&self) -> &Clock {
        &self.ctx().clock
    }

    /// Signs and checks leases of jobs and ids of calls.
    pub fn grants(&self) -> &GrantSigner {
        &self.ctx().grants
    }

    /// The memory of bodies of requests and of answers of workers.
    pub fn bodies(&self) -> &BodyBudget {
        &self.ctx().bodies
    }

    /// The identity of this server: its id and its epoch.
    pub fn owner(&self) -> Owner {
        self.ctx().server.owner
    }

    /// Runs the work on a task of its own, so that it completes even when the caller goes away or the server stops.
    pub async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RuntimeError> {
        self.ctx().to_the_end(work).await
    }

    /// Reasons why the server takes no work, for readiness checks; empty = it does.
    pub fn troubles(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        if self.is_draining() {
            troubles.push("the server is shutting down".to_owned());
        }
        let silent = self.cluster().since_last_beat();
        if silent > Duration::from_millis(DEAD_MS / 2) {
            troubles.push(format!("the store has taken nothing for {} s", silent.as_secs()));
        }
        troubles.extend(self.clock().skew_trouble());
        troubles.extend(self.store().condition().troubles);
        troubles
    }

    /// Things that an operator should know although the server takes work.
    pub fn warnings(&self) -> Vec<String> {
        self.clock().skew_warning().into_iter().chain(StoreWatch::of(self.inner()).warning()).collect()
    }

    /// Whether the server shuts down and refuses new work.
    pub fn is_draining(&self) -> bool {
        self.ctx().is_draining()
    }

    /// Refuses new work, waits up to `grace` for calls to end, and stops. The next server takes over open calls.
    pub async fn shut_down(&self, grace: Duration) {
        let ctx = self.ctx();
        ctx.is_draining.store(true, Ordering::Relaxed);
        self.jobs().close();
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < grace && (self.calls().is_busy() || self.runs().n_waiting() > 0) {
            tokio::time::sleep(DRAIN_POLL).await;
        }
        ctx.shutdown.cancel();
        ctx.tasks.close();
        // Pending writes complete.
        drop(tokio::time::timeout(STOP_GRACE, ctx.tasks.wait()).await);
        if ctx.store.is_shared() {
            self.cluster().deregister().await;
        }
    }

    /// Waits until the server stops.
    pub async fn stopped(&self) {
        self.ctx().shutdown.cancelled().await;
    }

    /// Stops the server at once, without draining: for tests of crashes.
    #[cfg(test)]
    pub(crate) fn stop(&self) {
        self.ctx().shutdown.cancel();
    }

    /// The retention task, for its tests.
    #[cfg(test)]
    pub(crate) fn retention(&self) -> Retention {
        Retention::of(self.inner())
    }
}
