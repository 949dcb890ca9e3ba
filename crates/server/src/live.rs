//! Live topics: one hub per server follows the durable changes and sends each event once to all streams that follow its
//! topic. A change wakes the hub; the store is read once per change, not once per stream.
//!
//! `topic` names the topics, `outlet` is the sending end of a stream, `dispatch` follows the changes of all runs and jobs,
//! `run_topic` follows one run.

mod dispatch;
mod outlet;
mod run_topic;
mod topic;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use serde::Serialize;
use tokio::sync::{Notify, watch};
use windlass_engine::id::RunId;

use crate::app::App;
use crate::problem::{ApiError, ApiResult, Code};

use outlet::{Outlet, outlet};
pub(crate) use outlet::{Received, Subscription};
pub(crate) use topic::{ListTopic, Topic};

/// Runs that are followed at once, by all streams together.
const FOLLOWED_MAX: usize = 5_000;
/// How long a stream waits until its runs are followed.
const READY_TIMEOUT: Duration = Duration::from_secs(20);

/// The live topics of one server. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct EventHub(Arc<HubState>);

#[derive(Default)]
struct HubState {
    topics: Mutex<Topics>,
    /// The id of the last event.
    last_id: AtomicI64,
}

#[derive(Default)]
struct Topics {
    outlets: HashMap<Topic, Vec<Outlet>>,
    runs: HashMap<RunId, FollowedRun>,
    /// Lists that changed since streams were told last.
    dirty: Vec<ListTopic>,
    is_dispatching: bool,
}

/// The task that follows a run.
#[derive(Clone)]
struct FollowedRun {
    wake: Arc<Notify>,
    /// Whether it has read the run: every later change is sent.
    is_ready: watch::Receiver<bool>,
}

impl EventHub {
    fn topics(&self) -> std::sync::MutexGuard<'_, Topics> {
        self.0.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows topics. When this returns, every later change is sent.
    pub(crate) async fn subscribe(&self, app: &App, topics: &[Topic]) -> ApiResult<Subscription> {
        let (outlet, subscription) = outlet();
        let mut followed = Vec::new();
        {
            let mut state = self.topics();
            let runs = topics.iter().filter(|topic| matches!(topic, Topic::Run(_))).count();
            if state.runs.len() + runs > FOLLOWED_MAX {
                let detail = format!("{FOLLOWED_MAX} runs are followed, as many as may be");
                return Err(ApiError::new(Code::Busy, detail).retry_after(Duration::from_secs(5)));
            }
            for topic in topics {
                state.outlets.entry(topic.clone()).or_default().push(outlet.clone());
                if let Topic::Run(run) = topic {
                    followed.push(self.follow(app, &mut state, *run));
                }
            }
            if !std::mem::replace(&mut state.is_dispatching, true) {
                tokio::spawn(dispatch::dispatch(app.clone(), self.clone()));
            }
        }
        for mut followed in followed {
            let ready = followed.is_ready.wait_for(|is_ready| *is_ready);
            // A run that cannot be read has no events: its page tells why.
            drop(tokio::time::timeout(READY_TIMEOUT, ready).await);
        }
        Ok(subscription)
    }

    fn follow(&self, app: &App, state: &mut Topics, run: RunId) -> FollowedRun {
        if let Some(followed) = state.runs.get(&run) {
            return followed.clone();
        }
        let (ready, is_ready) = watch::channel(false);
        let followed = FollowedRun { wake: Arc::default(), is_ready };
        state.runs.insert(run, followed.clone());
        tokio::spawn(run_topic::follow(app.clone(), self.clone(), run, followed.wake.clone(), ready));
        followed
    }

    /// Something of this list has changed.
    pub(crate) fn mark(&self, list: ListTopic) {
        let mut state = self.topics();
        if state.outlets.contains_key(&Topic::List(list)) && !state.dirty.contains(&list) {
            state.dirty.push(list);
        }
    }

    /// Something was changed by a request, which the audit calls this.
    pub(crate) fn on_change(&self, what: &str) {
        let list = match what.split('.').next().unwrap_or_default() {
            "flow" => ListTopic::Flows,
            "schedule" => ListTopic::Schedules,
            "queue" | "job" => ListTopic::Queues,
            "dlq" => ListTopic::DeadLetters,
            "worker" | "service" => ListTopic::Workers,
            _ => return,
        };
        self.mark(list);
    }

    fn take_dirty(&self) -> Vec<ListTopic> {
        std::mem::take(&mut self.topics().dirty)
    }

    /// Whether a stream follows the topic.
    fn has(&self, topic: &Topic) -> bool {
        let mut state = self.topics();
        let Some(outlets) = state.outlets.get_mut(topic) else { return false };
        outlets.retain(|outlet| !outlet.is_closed());
        if outlets.is_empty() {
            state.outlets.remove(topic);
            return false;
        }
        true
    }

    /// The bulk actions that streams follow.
    fn followed_topics(&self) -> Vec<Topic> {
        let mut state = self.topics();
        state.outlets.retain(|_, outlets| {
            outlets.retain(|outlet| !outlet.is_closed());
            !outlets.is_empty()
        });
        state.outlets.keys().cloned().collect()
    }

    /// Wakes the task that follows a run; returns whether a stream follows all runs.
    fn wake(&self, run: RunId) -> bool {
        let state = self.topics();
        if let Some(followed) = state.runs.get(&run) {
            followed.wake.notify_one();
        }
        state.outlets.contains_key(&Topic::Runs)
    }

    fn wake_all(&self) {
        self.topics().runs.values().for_each(|followed| followed.wake.notify_one());
    }

    /// Ends the task of a run that no stream follows any more; `false` = one does.
    fn release(&self, run: RunId) -> bool {
        let mut state = self.topics();
        let topic = Topic::Run(run);
        let outlets = state.outlets.entry(topic.clone()).or_default();
        outlets.retain(|outlet| !outlet.is_closed());
        if !outlets.is_empty() {
            return false;
        }
        state.outlets.remove(&topic);
        state.runs.remove(&run);
        true
    }

    /// Ends the dispatch if no stream follows anything; `false` = one does.
    fn rest(&self) -> bool {
        if !self.followed_topics().is_empty() {
            return false;
        }
        let mut state = self.topics();
        let is_over = state.outlets.is_empty();
        state.is_dispatching = !is_over;
        is_over
    }

    /// Sends an event to all streams that follow the topic.
    fn send(&self, app: &App, topic: &Topic, event: &str, data: &impl Serialize) {
        let frame = self.frame(app, event, data);
        let state = self.topics();
        state.outlets.get(topic).into_iter().flatten().for_each(|outlet| outlet.send(frame.clone()));
    }

    /// The text of an event, with the next id. Ids are moments, and each is larger than the one before.
    pub(crate) fn frame(&self, app: &App, event: &str, data: &impl Serialize) -> Bytes {
        let now = app.runtime.clock().now().0;
        let next = |last: i64| Some(now.max(last + 1));
        let last =
            self.0.last_id.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_default();
        let id = now.max(last + 1);
        let data = serde_json::to_string(data).unwrap_or_default();
        format!("event: {event}\nid: {id}\ndata: {data}\n\n").into()
    }
}
