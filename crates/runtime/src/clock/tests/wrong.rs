//! Servers under a wall clock that jumps: time-driven work goes on, and the clock is reported.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;
use windlass_engine::definition::Strictness;
use windlass_engine::event::Start;
use windlass_engine::id::{RunId, ScheduleId};
use windlass_engine::input::CallOutcome;
use windlass_engine::job::{JobBackoff, JobSpec};
use windlass_engine::retry::{Backoff, Fault, FaultKind};
use windlass_engine::schedule::{Catchup, Dst, Overlap};
use windlass_store::Store;
use windlass_store::flow::VersionStatus;
use windlass_store::run::RunStatus;
use windlass_store::sqlite::{Durability, Sqlite};

use super::*;
use crate::calls::log::Log;
use crate::doctor::set_back_at_rest;
use crate::jobs::{ClaimRequest, JobEnd, LeasedJob};
use crate::runs::RunSpec;
use crate::runs::flow::{FlowSpec, VersionSpec};
use crate::runtime::start_with;
use crate::schedules::{FiringTarget, ScheduleDraft};
use crate::{Runtime, Settings};

/// Later than twice its time a wake-up comes only because the machine is loaded, never by so much.
const SLACK: Duration = Duration::from_secs(4);
/// Times are whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(2);
/// Longer than anything takes that is waited for, and much shorter than the jumps.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server under a wall clock that its test sets.
struct ClockServer(Runtime);

impl std::ops::Deref for ClockServer {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.0
    }
}

async fn server(store: &Arc<dyn Store>, wall: &ManualWall) -> ClockServer {
    ClockServer(start_with(store.clone(), Settings::default(), wall.clock()).await.unwrap())
}

fn on_disk() -> Arc<dyn Store> {
    Arc::new(Sqlite::temporary(Durability::Fast).unwrap())
}

fn timer(params: Value) -> Value {
    json!({"start": "t", "nodes": {"t": {"kind": "timer", "params": params}}})
}

fn claim(lease: Duration) -> ClaimRequest {
    let (worker, queues) = ("w".to_owned(), vec!["q".to_owned()]);
    ClaimRequest { worker, queues, services: Vec::new(), max: 1, wait: PATIENCE, lease }
}

impl ClockServer {
    fn warnings(&self) -> Vec<String> {
        self.clock().skew_warning().into_iter().collect()
    }

    async fn start_flow(&self, definition: Value) -> RunId {
        let flow = FlowSpec { name: Uuid::now_v7().to_string(), ..FlowSpec::default() };
        let version = VersionSpec {
            definition: definition.to_string(),
            strictness: Strictness::Strict,
            number: None,
            status: VersionStatus::Published,
            note: String::new(),
        };
        let made = self.runs().publish_flow(flow, Some(version)).await.unwrap().published;
        let run = RunSpec {
            flow: made.flow,
            version: made.version.unwrap().0,
            request: None,
            labels: BTreeMap::new(),
            schedule: None,
            start: Start::default(),
        };
        self.runs().start(run).await.unwrap().run
    }

    async fn completes(&self, run: RunId) {
        let ended = self.runs().wait_ended(run, PATIENCE).await.unwrap();
        assert_eq!(ended, Some(RunStatus::Completed), "the wake-up did not come");
    }

    async fn claim_soon(&self, lease: Duration) -> LeasedJob {
        let mut claimed = self.jobs().claim(claim(lease)).await.unwrap();
        claimed.pop().expect("no job became ready")
    }

    /// A job for each of its slots, every second.
    async fn schedule_every_second(&self) -> ScheduleId {
        let draft = ScheduleDraft {
            name: "tick".to_owned(),
            cron_expr: "* * * * * *".to_owned(),
            timezone: "UTC".to_owned(),
            dst: Dst::Shift,
            enabled: true,
            overlap: Overlap::Allow,
            catchup: Catchup::None,
            window_ms: 0,
            target: FiringTarget::Job(Box::new(JobSpec::new("tick", "ticks"))),
        };
        self.schedules().create_schedule(draft).await.unwrap().row.id()
    }

    async fn n_fired(&self, schedule: ScheduleId) -> u64 {
        self.schedules().show(schedule).await.unwrap().unwrap().row.history.n_fired
    }

    async fn fires_again(&self, schedule: ScheduleId) {
        let before = self.n_fired(schedule).await;
        let begun = Instant::now();
        while self.n_fired(schedule).await == before {
            assert!(begun.elapsed() < PATIENCE, "the schedule did not fire");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A timer, a lease and a retry come after their time, and at most twice that.
    async fn goes_on(&self) {
        let (now, begun) = (self.clock().now(), Instant::now());
        let (delay, lease, backoff) =
            (Duration::from_millis(300), Duration::from_millis(100), Duration::from_millis(200));
        let run = self.start_flow(timer(json!({"delay_ms": 300}))).await;
        let started = Instant::now();
        self.completes(run).await;
        assert!(begun.elapsed() + ROUNDING >= delay, "the timer was early");
        assert!(started.elapsed() <= 2 * delay + SLACK, "the timer was late: {:?}", started.elapsed());
        self.job_goes_on(lease, backoff).await;
        // Server time passes at half pace at least, also on a loaded machine.
        let passed = begun.elapsed();
        let paced = Duration::from_millis(self.clock().now().since(now));
        assert!(paced + ROUNDING >= passed / 2, "{paced:?} of server time in {passed:?}");
    }

    /// A job whose lease runs out is handed out again, and once more after it failed.
    async fn job_goes_on(&self, lease: Duration, wait: Duration) {
        let backoff = JobBackoff { kind: Backoff::Fixed, base_ms: 200, cap_ms: 200, jitter: false };
        self.jobs().create_job(JobSpec { backoff, ..JobSpec::new("work", "q") }).await.unwrap();
        let begun = Instant::now();
        let lost = self.claim_soon(lease).await;
        let leased = Instant::now();
        let failing = self.claim_soon(PATIENCE).await;
        assert!(begun.elapsed() + ROUNDING >= lease, "the lease ended early");
        assert!(leased.elapsed() <= 2 * lease + SLACK, "the lease was long: {:?}", leased.elapsed());
        assert_eq!((failing.job, failing.attempt), (lost.job, lost.attempt + 1));
        let fault = Fault::new(FaultKind::Transport, "no");
        let end = JobEnd {
            job: failing.job,
            fence: failing.fence,
            outcome: CallOutcome::Failed(fault),
            worker: None,
            log: Log::default(),
            retry_after_ms: None,
        };
        let begun = Instant::now();
        self.jobs().finish(vec![end]).await.pop().unwrap().unwrap();
        let failed = Instant::now();
        let again = self.claim_soon(PATIENCE).await;
        assert!(again.attempt > failing.attempt);
        assert!(begun.elapsed() + ROUNDING >= wait, "the retry was early");
        assert!(failed.elapsed() <= 2 * wait + SLACK, "the retry was late: {:?}", failed.elapsed());
        self.jobs().cancel_job(again.job).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_goes_on_after_an_hour_ahead_and_back_and_after_a_restart() {
    let (store, wall) = (on_disk(), ManualWall::default());
    let before = server(&store, &wall).await;
    let schedule = before.schedule_every_second().await;
    wall.set(HOUR);
    before.fires_again(schedule).await;
    before.goes_on().await;
    // Long enough that a heartbeat is stored.
    before.fires_again(schedule).await;
    assert!(before.warnings().is_empty(), "a clock ahead is followed");
    wall.set(0);
    before.goes_on().await;
    before.fires_again(schedule).await;
    assert!(before.troubles().is_empty() && !before.warnings().is_empty());
    before.shut_down(Duration::ZERO).await;
    let after = server(&store, &wall).await;
    assert!(after.clock().skew_ms() > 3_000_000, "server time went back over the restart");
    after.goes_on().await;
    after.fires_again(schedule).await;
    assert!(after.troubles().is_empty() && !after.warnings().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_jump_ahead_fires_at_once() {
    let (store, wall) = (on_disk(), ManualWall::default());
    let server = server(&store, &wall).await;
    // One within the minute that the timers hold in memory, and one beyond it.
    let soon = server.start_flow(timer(json!({"delay_ms": 50_000}))).await;
    let later = server.start_flow(timer(json!({"delay_ms": 1_800_000}))).await;
    let until = server.clock().wall().after(1_800_000).to_rfc3339();
    let named = server.start_flow(timer(json!({"until": until}))).await;
    let run_at = Some(server.clock().now().after(1_800_000));
    server.jobs().create_job(JobSpec { run_at, ..JobSpec::new("work", "q") }).await.unwrap();
    wall.set(HOUR);
    let begun = Instant::now();
    for run in [soon, later, named] {
        server.completes(run).await;
    }
    server.claim_soon(PATIENCE).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moment_is_awaited_by_the_wall_clock() {
    let (store, wall) = (on_disk(), ManualWall::default());
    let server = server(&store, &wall).await;
    wall.set(HOUR);
    server.clock().now();
    wall.set(0);
    let moment = server.clock().wall().after(700);
    let run = server.start_flow(timer(json!({"until": moment.to_rfc3339()}))).await;
    server.completes(run).await;
    assert!(server.clock().wall() >= moment, "it was early by the wall clock");
    // The clock goes back after the wait has begun.
    let moment = server.clock().wall().after(300);
    let run = server.start_flow(timer(json!({"until": moment.to_rfc3339()}))).await;
    wall.set(-1_000);
    server.completes(run).await;
    assert!(server.clock().wall() >= moment, "it was early by the wall clock");
}

#[tokio::test]
async fn a_clock_that_is_a_day_behind_makes_the_server_unready() {
    let (store, wall) = (on_disk(), ManualWall::default());
    wall.set(25 * HOUR);
    let before = server(&store, &wall).await;
    assert!(before.troubles().is_empty());
    wall.set(0);
    let [trouble] = &before.troubles()[..] else { panic!("it is ready") };
    assert!(trouble.contains("25 h behind") && trouble.contains("doctor --repair"), "{trouble}");
    before.shut_down(Duration::ZERO).await;
    assert_eq!(server(&store, &wall).await.troubles().len(), 1, "also after a restart");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_the_year_2081_is_repaired() {
    let (store, wall) =
        (on_disk(), ManualWall::at(Timestamp::parse_rfc3339("2081-05-05T05:05:05Z").unwrap()));
    let before = server(&store, &wall).await;
    let schedule = before.schedule_every_second().await;
    let run = before.start_flow(timer(json!({"delay_ms": 2_500}))).await;
    let run_at = Some(before.clock().now().after(2_500));
    before.jobs().create_job(JobSpec::new("work", "q")).await.unwrap();
    before.jobs().create_job(JobSpec { run_at, ..JobSpec::new("work", "q") }).await.unwrap();
    before.shut_down(Duration::ZERO).await;
    wall.set(0);
    let unready = server(&store, &wall).await;
    assert_eq!(unready.troubles().len(), 1);
    unready.shut_down(Duration::ZERO).await;
    let report = set_back_at_rest(store.clone()).await.unwrap();
    assert_eq!((report.n_open_jobs, report.rows.n_servers, report.rows.n_runs), (2, 1, 1));
    let after = server(&store, &wall).await;
    assert!(after.troubles().is_empty() && after.warnings().is_empty());
    after.completes(run).await;
    for _ in 0..2 {
        after.claim_soon(PATIENCE).await;
    }
    after.fires_again(schedule).await;
    assert_eq!(after.doctor().examine(false).await.unwrap().findings, []);
}
