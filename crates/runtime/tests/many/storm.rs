//! Three servers under full load: nothing is done twice, and normal operation logs no warning.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use windlass_engine::counter::Seq;
use windlass_engine::id::{RunId, ScheduleId};
use windlass_engine::project::Project;
use windlass_engine::schedule::{Catchup, Dst, Overlap};
use windlass_runtime::schedules::{FiringTarget, ScheduleDraft};
use windlass_store::Memory;
use windlass_store::job::JobQuery;
use windlass_store::run::{RunQuery, RunStatus, Since};

use crate::cluster::{Cluster, claim, done, end, go, publish, spec, start, timer, waits};

/// Collects the warnings of this test's thread.
struct Warnings(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!("{}={value:?} ", field.name()));
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A schedule that fires every second.
fn every_second() -> ScheduleDraft {
    ScheduleDraft {
        name: "tick".to_owned(),
        cron_expr: "* * * * * *".to_owned(),
        timezone: String::new(),
        dst: Dst::default(),
        enabled: true,
        overlap: Overlap::Allow,
        catchup: Catchup::All,
        window_ms: 0,
        target: FiringTarget::Job(Box::new(spec("ticks"))),
    }
}

/// The schedule makes one job for each of its slots, no matter which server fires it.
async fn each_slot_once(cluster: &Cluster, schedule: ScheduleId) {
    let row = |store: &Memory| store.schedule_now(&Project::DEFAULT, schedule).unwrap();
    let fired = |store: &Memory| row(store).unwrap().row.history.n_fired;
    cluster.until("three slots are fired", |store| fired(store) >= 3).await;
    for server in &cluster.servers {
        server
            .schedules()
            .change_schedule(schedule, |draft| ScheduleDraft { enabled: false, ..draft })
            .await
            .unwrap();
    }
    let query = JobQuery { queue: Some("ticks".to_owned()), ..JobQuery::default() };
    let ticks = cluster.store.jobs_now(&Project::DEFAULT, query).unwrap().items.len();
    assert_eq!(ticks as u64, fired(&cluster.store), "every slot made one job");
}

#[tokio::test]
async fn three_servers_do_everything_once_and_without_a_warning() {
    static WARNINGS: OnceLock<Arc<Mutex<Vec<String>>>> = OnceLock::new();
    let warnings = WARNINGS.get_or_init(Arc::default).clone();
    let _guard = tracing::subscriber::set_default(Warnings(warnings.clone()));
    let cluster = Cluster::of(3).await;
    let at = |n: usize| &cluster.servers[n % 3];
    publish(at(0), "inner", timer(200)).await;
    let outer = json!({"start": "call", "nodes": {
        "call": {"kind": "flow_ref", "flow": "inner", "post": {"output_key": "got"}},
    }});
    let kinds = [
        publish(at(0), "outer", outer).await,
        publish(at(1), "timer", timer(700)).await,
        publish(at(2), "waits", waits()).await,
    ];
    let schedule = at(0).schedules().create_schedule(every_second()).await.unwrap().row.id();
    // All servers have polled once, and know of the others.
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    let mut runs: Vec<(usize, RunId)> = Vec::new();
    for n in 0..30 {
        runs.push((n, start(at(n), kinds[n % 3], json!({})).await));
        at(n + 1).jobs().create_jobs(vec![spec("q"), spec("q")]).await.unwrap();
    }
    let mut claimed: BTreeMap<_, usize> = BTreeMap::new();
    let left = Arc::new(AtomicUsize::new(60));
    let workers: Vec<_> = (0..3)
        .map(|n| {
            let (server, left) = (at(n).clone(), left.clone());
            tokio::spawn(async move {
                let mut had = Vec::new();
                while left.load(Ordering::SeqCst) > 0 {
                    let jobs = server.jobs().claim(claim("q", 3, Duration::from_millis(400))).await.unwrap();
                    left.fetch_sub(jobs.len(), Ordering::SeqCst);
                    for answer in
                        server.jobs().finish(jobs.iter().map(|job| done(job, json!(1))).collect()).await
                    {
                        answer.unwrap();
                    }
                    had.extend(jobs.into_iter().map(|job| job.job));
                }
                had
            })
        })
        .collect();
    for worker in workers {
        for job in worker.await.unwrap() {
            *claimed.entry(job).or_default() += 1;
        }
    }
    assert_eq!((claimed.len(), claimed.values().max()), (60, Some(&1)), "every job had one worker");
    for (n, run) in runs.iter().filter(|(n, _)| n % 3 == 2) {
        at(n + 1).runs().submit(*run, go()).await.unwrap();
    }
    for (n, run) in &runs {
        assert_eq!(end(at(n + 2), *run).await, RunStatus::Completed, "{run}");
    }
    let all = cluster.store.runs_now(&Project::DEFAULT, RunQuery::default()).unwrap().items;
    assert_eq!(all.len(), 40, "ten have a child each");
    for row in all {
        let journal =
            cluster.store.journal_now(&Project::DEFAULT, row.id, Since::Entry(Seq::ZERO), 1_000).unwrap();
        assert_eq!(journal.entries.len() as u64, row.len.0);
    }
    each_slot_once(&cluster, schedule).await;
    assert_eq!(*warnings.lock().unwrap(), Vec::<String>::new());
}
