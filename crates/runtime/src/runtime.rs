//! One server: everything it holds, and how it starts and stops.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_engine::recovery::DEAD_MS;
use windlass_store::Store;
use windlass_store::hint::Hints;
use windlass_store::run::Owner;

use crate::account::Needy;
use crate::call::Caller;
use crate::clock::Clock;
use crate::effect::Calls;
use crate::feed::Feed;
use crate::flow::Plans;
use crate::job::Jobs;
use crate::mailbox::Mailboxes;
use crate::outbox::Outbox;
use crate::peers::Peers;
use crate::price::Prices;
use crate::recovery::Life;
use crate::schedule::Calendar;
use crate::stats::Stats;
use crate::timer::Timers;
use crate::worker::Registry;
use crate::{RuntimeError, Settings};

/// How often memory is tidied up.
const TIDY: Duration = Duration::from_secs(1);

/// How long what is being written may take when the server stops.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Asks the store what time it is; whether it says so.
async fn agree_on_time(clock: &Clock, store: &dyn Store) -> Result<bool, RuntimeError> {
    let begun = Instant::now();
    let told = store.now().await?;
    if let Some(told) = told {
        clock.agree(told, begun.elapsed());
    }
    Ok(told.is_some())
}

/// A running server. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    store: Arc<dyn Store>,
    settings: Settings,
    clock: Clock,
    life: Life,
    peers: Peers,
    feed: Feed,
    plans: Plans,
    rechecks: RwLock<Arc<BTreeMap<String, u64>>>,
    prices: Prices,
    needy: Needy,
    mailboxes: Mailboxes,
    timers: Timers,
    outbox: Outbox,
    calls: Calls,
    /// Handlers at work.
    handling: AtomicUsize,
    jobs: Jobs,
    calendar: Calendar,
    registry: Registry,
    stats: Stats,
    caller: Caller,
    tasks: TaskTracker,
    stop: CancellationToken,
    is_draining: AtomicBool,
}

impl Runtime {
    /// Starts a server on a store: takes over what was left behind, and wakes what is due.
    pub async fn start_up(store: Arc<dyn Store>, settings: Settings) -> Result<Runtime, RuntimeError> {
        let clock = Clock::default();
        // Before anything is read, so that nothing is missed that is written meanwhile.
        let hints = if settings.is_alone { None } else { store.hints() };
        if !agree_on_time(&clock, &*store).await? {
            for row in store.servers().await? {
                // What is stored may come from a clock that ran ahead.
                clock.not_before(row.beat_at);
            }
        }
        let life = Life::begin(&*store, &settings.name, settings.is_alone, clock.now()).await?;
        let runtime = Runtime::put_together(store, settings, clock, life);
        runtime.load_prices().await?;
        runtime.load_services().await?;
        runtime.load_jobs().await?;
        runtime.begin_loops(hints);
        Ok(runtime)
    }

    /// One that only looks: it has no life of its own, writes nothing, and does nothing by itself.
    pub(crate) async fn at_rest(store: Arc<dyn Store>) -> Result<Runtime, RuntimeError> {
        let (clock, settings) = (Clock::default(), Settings::default());
        agree_on_time(&clock, &*store).await?;
        let life = Life::of_nobody(clock.now());
        Ok(Runtime::put_together(store, settings, clock, life))
    }

    fn put_together(store: Arc<dyn Store>, settings: Settings, clock: Clock, life: Life) -> Runtime {
        let inner = Inner {
            stats: Stats::new(clock.now()),
            store,
            clock,
            peers: Peers::new(life.row.owner.epoch),
            life,
            feed: Feed::new(settings.is_alone),
            plans: Plans::default(),
            rechecks: RwLock::default(),
            prices: Prices::default(),
            needy: Needy::default(),
            mailboxes: Mailboxes::new(),
            timers: Timers::default(),
            outbox: Outbox::default(),
            calls: Calls::default(),
            handling: AtomicUsize::new(0),
            jobs: Jobs::new(&settings),
            calendar: Calendar::default(),
            registry: Registry::new(&settings),
            caller: Caller::new(&settings),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            is_draining: AtomicBool::new(false),
            settings,
        };
        Runtime { inner: Arc::new(inner) }
    }

    fn begin_loops(&self, hints: Option<Hints>) {
        if !self.is_alone() {
            self.tasks().spawn(self.clone().listen(hints));
        }
        self.tasks().spawn(self.clone().stay_alive());
        self.tasks().spawn(self.clone().keep_time());
        self.tasks().spawn(self.clone().look_ahead());
        self.tasks().spawn(self.clone().keep_jobs());
        self.tasks().spawn(self.clone().keep_redis());
        self.tasks().spawn(self.clone().keep_schedules());
        self.tasks().spawn(self.clone().look_for_messages());
        self.tasks().spawn(self.clone().tidy_up());
        self.tasks().spawn(self.clone().look_at_workers());
        self.tasks().spawn(self.clone().serve_handlers());
        self.tasks().spawn(self.clone().forget_now_and_then());
        let runtime = self.clone();
        // What the server before left behind; the new one is ready meanwhile.
        self.tasks().spawn(async move {
            while let Err(error) = runtime.recover().await {
                tracing::warn!(%error, "what was left behind could not be read yet");
                tokio::select! {
                    () = tokio::time::sleep(TIDY) => {}
                    () = runtime.stopped() => return,
                }
            }
        });
    }

    async fn tidy_up(self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(TIDY) => {}
                () = self.stopped() => return,
            }
            let settings = self.settings();
            let is_full = self.inner.mailboxes.len() > settings.hot_runs_max;
            self.inner.mailboxes.passivate(if is_full { Duration::ZERO } else { settings.hot_run_idle });
            self.tidy_stats();
        }
    }

    /// Reads what somebody may have set through another server.
    async fn refresh_settings(&self) -> Result<(), RuntimeError> {
        self.load_services().await?;
        self.load_queue_settings().await?;
        Ok(())
    }

    /// Looks at who lives, again and again.
    async fn look_at_workers(self) {
        loop {
            self.refresh_workers().await;
            if !self.is_alone()
                && let Err(error) = self.refresh_settings().await
            {
                tracing::warn!(%error, "what was set at other servers could not be read, will try again");
            }
            tokio::select! {
                () = tokio::time::sleep(self.settings().worker_refresh) => {}
                () = self.registry().look.notified() => {}
                () = self.stopped() => return,
            }
        }
    }

    /// What is remembered.
    pub fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    /// Goes by the clock of the store, if it has one.
    pub(crate) async fn agree_on_time(&self) -> Result<(), RuntimeError> {
        agree_on_time(self.clock(), self.store()).await.map(drop)
    }

    /// What whoever started the server decided.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// The time of this server.
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Who this server is.
    pub fn owner(&self) -> Owner {
        self.inner.life.row.owner
    }

    pub(crate) fn life(&self) -> u64 {
        self.owner().epoch
    }

    pub(crate) fn peers(&self) -> &Peers {
        &self.inner.peers
    }

    pub(crate) fn life_row(&self) -> &Life {
        &self.inner.life
    }

    /// Whether nobody else uses the store.
    pub(crate) fn is_alone(&self) -> bool {
        self.inner.settings.is_alone
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.inner.feed
    }

    pub(crate) fn plans(&self) -> &Plans {
        &self.inner.plans
    }

    pub(crate) fn prices(&self) -> &Prices {
        &self.inner.prices
    }

    pub(crate) fn rechecks(&self) -> &RwLock<Arc<BTreeMap<String, u64>>> {
        &self.inner.rechecks
    }

    pub(crate) fn handling(&self) -> &AtomicUsize {
        &self.inner.handling
    }

    pub(crate) fn needy(&self) -> &Needy {
        &self.inner.needy
    }

    pub(crate) fn mailboxes(&self) -> &Mailboxes {
        &self.inner.mailboxes
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.inner.timers
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.inner.outbox
    }

    pub(crate) fn calls(&self) -> &Calls {
        &self.inner.calls
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.inner.caller
    }

    pub(crate) fn stats(&self) -> &Stats {
        &self.inner.stats
    }

    pub(crate) fn jobs(&self) -> &Jobs {
        &self.inner.jobs
    }

    pub(crate) fn calendar(&self) -> &Calendar {
        &self.inner.calendar
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.inner.tasks
    }

    /// Does it to its end, whether or not whoever asked is still there, and also if the server stops meanwhile.
    pub async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RuntimeError> {
        self.tasks().spawn(work).await.map_err(|_| RuntimeError::Broken)
    }

    /// Refuses what comes from outside while there is too much, or while the server shuts down.
    pub(crate) fn admit(&self) -> Result<(), RuntimeError> {
        if self.inner.is_draining.load(Ordering::Relaxed) {
            return Err(RuntimeError::Draining);
        }
        if self.inner.mailboxes.n_waiting() >= self.inner.settings.inputs_max {
            return Err(RuntimeError::Busy { retry_after: Duration::from_secs(1) });
        }
        Ok(())
    }

    /// What keeps the server from taking work, for readiness; empty = nothing.
    pub fn troubles(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        if self.inner.is_draining.load(Ordering::Relaxed) {
            troubles.push("the server is shutting down".to_owned());
        }
        let silent = self.inner.clock.now().since(self.inner.life.last_beat());
        if silent > DEAD_MS / 2 {
            troubles.push(format!("the store has taken nothing for {} s", silent / 1_000));
        }
        troubles
    }

    /// Whether the server shuts down: what is new goes elsewhere.
    pub fn is_draining(&self) -> bool {
        self.inner.is_draining.load(Ordering::Relaxed)
    }

    /// Takes no more work, lets calls end for so long, and stops. What is still open then is taken up again by the
    /// next server.
    pub async fn shut_down(&self, grace: Duration) {
        self.inner.is_draining.store(true, Ordering::Relaxed);
        self.inner.jobs.close();
        let begun = tokio::time::Instant::now();
        let works = || self.inner.calls.len() > 0 || self.inner.handling.load(Ordering::Relaxed) > 0;
        while begun.elapsed() < grace && (works() || self.inner.mailboxes.n_waiting() > 0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.stop();
        self.inner.tasks.close();
        // What is being written is written to its end.
        drop(tokio::time::timeout(LAST_WORDS, self.inner.tasks.wait()).await);
        if !self.is_alone() {
            self.say_farewell().await;
        }
    }

    pub(crate) fn stop(&self) {
        self.inner.stop.cancel();
    }

    /// Waits until the server stops.
    pub async fn stopped(&self) {
        self.inner.stop.cancelled().await;
    }
}
