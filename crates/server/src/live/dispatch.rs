//! The task that follows the changes of all runs and jobs while a stream follows any topic.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use windlass_engine::id::RunId;
use windlass_runtime::feed::RunUpdate;
use windlass_sdk::contract::{ChangeEvent, RunChanges};
use windlass_store::run::RunStatus;

use super::{EventHub, ListTopic, Topic};
use crate::app::App;
use crate::native::{bulk, overview};
use crate::shape;

/// How often streams are told which runs changed, at most.
const RUNS_INTERVAL: Duration = Duration::from_millis(500);
/// How often streams are told that a list changed, at most.
const LISTS_INTERVAL: Duration = Duration::from_secs(1);
/// How often things are looked at that no event of this server tells: heartbeats, and writes of other servers.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// Runs in one event.
const CHANGES_MAX: usize = 500;
/// Runs that are remembered, so that the end of a wait is noticed.
const SEEN_MAX: usize = 10_000;

/// Changes since streams were told last.
#[derive(Default)]
struct Pending {
    runs: BTreeMap<RunId, ChangeEvent>,
    is_more: bool,
    /// Whether each run waited when it was seen last.
    waiting: HashMap<RunId, bool>,
}

/// Follows changes until no stream follows a topic.
pub(super) async fn dispatch(app: App, hub: EventHub) {
    let (mut runs, mut work) = (app.runtime.runs().changes(), app.runtime.jobs().changes());
    let mut bulks = app.runtime.bulks().changes();
    let [mut tell_runs, mut tell_lists, mut look] = [RUNS_INTERVAL, LISTS_INTERVAL, LOOK_INTERVAL].map(ticks);
    let mut pending = Pending::default();
    loop {
        tokio::select! {
            change = runs.recv() => match change {
                Ok(change) => pending.note(&hub, &change),
                Err(RecvError::Lagged(_)) => {
                    pending.is_more = true;
                    hub.mark(ListTopic::Approvals);
                    hub.wake_all();
                }
                Err(RecvError::Closed) => return,
            },
            change = work.recv() => match change {
                Ok(change) => {
                    hub.mark(ListTopic::Queues);
                    if change.has_dead_letters {
                        hub.mark(ListTopic::DeadLetters);
                    }
                    for run in &change.runs {
                        hub.wake(*run);
                    }
                }
                Err(RecvError::Lagged(_)) => {
                    hub.mark(ListTopic::Queues);
                    hub.mark(ListTopic::DeadLetters);
                    hub.wake_all();
                }
                Err(RecvError::Closed) => return,
            },
            // Progress that is missed here is told with the next look.
            Ok(bulk) = bulks.recv() => tell_bulk(&app, &hub, &Topic::Bulk(bulk)).await,
            _ = tell_runs.tick() => pending.tell(&app, &hub),
            _ = tell_lists.tick() => {
                for list in hub.take_dirty() {
                    hub.send(&app, &Topic::List(list), "changed", &json!({ "topic": list.word() }));
                }
            }
            _ = look.tick() => {
                if hub.rest() {
                    return;
                }
                look_around(&app, &hub).await;
            }
            () = app.closing.cancelled() => return,
        }
    }
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

impl Pending {
    fn note(&mut self, hub: &EventHub, change: &RunUpdate) {
        let is_followed = hub.wake(change.run);
        let is_waiting = change.status == RunStatus::Waiting;
        if self.waiting.len() >= SEEN_MAX {
            self.waiting.clear();
        }
        // A run that was not seen before may have waited for a person.
        let was_waiting = self.waiting.insert(change.run, is_waiting).unwrap_or(true);
        if is_waiting || was_waiting {
            hub.mark(ListTopic::Approvals);
        }
        if !is_followed {
            return;
        }
        if self.runs.len() < CHANGES_MAX || self.runs.contains_key(&change.run) {
            self.runs.insert(change.run, shape::run_change(change));
        } else {
            self.is_more = true;
        }
    }

    fn tell(&mut self, app: &App, hub: &EventHub) {
        if self.runs.is_empty() && !self.is_more {
            return;
        }
        let changes = std::mem::take(&mut self.runs).into_values().collect();
        let more = std::mem::take(&mut self.is_more);
        hub.send(app, &Topic::Runs, "runs", &RunChanges { changes, more });
    }
}

/// Tells what no event of this server tells.
async fn look_around(app: &App, hub: &EventHub) {
    hub.mark(ListTopic::Workers);
    hub.mark(ListTopic::Schedules);
    if app.store().is_shared() {
        ListTopic::ALL.into_iter().for_each(|list| hub.mark(list));
    }
    for topic in hub.followed_topics() {
        match topic {
            Topic::Bulk(_) => tell_bulk(app, hub, &topic).await,
            Topic::Overview => match overview::figures(app).await {
                Ok(overview) => hub.send(app, &topic, "overview", &overview),
                Err(error) => tracing::warn!(code = error.code().word(), "the overview could not be read"),
            },
            Topic::Run(_) | Topic::Runs | Topic::List(_) => {}
        }
    }
}

async fn tell_bulk(app: &App, hub: &EventHub, topic: &Topic) {
    let Topic::Bulk(id) = topic else { return };
    if hub.has(topic)
        && let Ok(bulk) = bulk::info(app, *id).await
    {
        hub.send(app, topic, "bulk", &bulk);
    }
}
