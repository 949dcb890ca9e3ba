//! Log lines of a journal, for people: one for every event that is worth one.
//!
//! Lines are read off the journal on request, so that following a run costs nothing while it runs.
//! The view `workflow_logs` says the same in SQL: a change of a line here needs the same change there.

use serde_json::{Map, Value};

use crate::counter::Fence;
use crate::event::{Ending, Event, Level, Next, Waiting};
use crate::path::NodePath;

/// Fields that are long or shown elsewhere: the line has the kind and the path, attempts show inputs and outputs.
const LEFT_OUT: [&str; 13] = [
    "e", "node", "params", "prices", "services", "input", "output", "outputs", "memo", "result", "shared",
    "value", "names",
];

/// Something worth reading about a run.
#[derive(Debug, Clone, PartialEq)]
pub struct EventLine {
    pub level: Level,
    /// The node it is about; absent = the run.
    pub node: Option<NodePath>,
    pub message: String,
    /// The remaining fields, without long ones.
    pub data: Map<String, Value>,
}

/// The line of an event; `None` = it has none.
pub fn line(event: &Event) -> Option<EventLine> {
    let (level, message) = said(event)?;
    let node = match event {
        Event::Logged { node, .. } => node.clone(),
        Event::Entered { node, .. }
        | Event::Granted { node, .. }
        | Event::Suspended { node, .. }
        | Event::Deferred { node, .. }
        | Event::Expiring { node, .. }
        | Event::Done { node, .. }
        | Event::Failed { node, .. }
        | Event::Skipped { node }
        | Event::Dropped { node }
        | Event::Judged { node, .. }
        | Event::Opened { node, .. }
        | Event::Draining { node }
        | Event::Turned { node, .. }
        | Event::Waiting { node, .. }
        | Event::Billed { node, .. }
        | Event::Decided { node, .. } => Some(node.clone()),
        Event::Started(_)
        | Event::Signaled { .. }
        | Event::Canceling { .. }
        | Event::Paused
        | Event::Resumed
        | Event::Stepped
        | Event::SetBack { .. }
        | Event::Retried { .. }
        | Event::Rerun { .. }
        | Event::Funded { .. }
        | Event::Ended { .. } => None,
    };
    Some(EventLine { level, node, message, data: data(event) })
}

/// The attempt that an event is the end of.
pub fn ended(event: &Event) -> Option<Fence> {
    if let Event::Suspended { fence, .. }
    | Event::Deferred { fence, .. }
    | Event::Done { fence, .. }
    | Event::Failed { fence, .. } = event
    {
        return Some(*fence);
    }
    None
}

fn said(event: &Event) -> Option<(Level, String)> {
    let info = |text: &str| Some((Level::Info, text.to_owned()));
    let warn = |text: &str| Some((Level::Warn, text.to_owned()));
    match event {
        Event::Started(_) => info("the run started"),
        Event::Entered { .. } => info("entered"),
        Event::Granted { again: true, .. } => info("asked again"),
        Event::Granted { attempt, .. } => Some((Level::Info, format!("called, attempt {attempt}"))),
        Event::Suspended { until: Some(_), .. } => info("suspended, asked again later"),
        Event::Suspended { until: None, .. } => info("suspended until it is reported"),
        Event::Deferred { fault, next, .. } => {
            Some((Level::Warn, format!("{}: {}", put_off(*next), fault.message)))
        }
        Event::Expiring { .. } => warn("took too long and was told to stop"),
        Event::Done { .. } => info("done"),
        Event::Failed { fault, route: Some(_), .. } => {
            Some((Level::Warn, format!("failed, and an edge catches it: {}", fault.message)))
        }
        Event::Failed { fault, route: None, .. } => {
            Some((Level::Error, format!("failed: {}", fault.message)))
        }
        Event::Skipped { .. } => info("skipped"),
        Event::Dropped { .. } => warn("canceled"),
        Event::Judged { dead, .. } if dead.is_empty() => None,
        Event::Judged { dead, .. } => Some((Level::Info, format!("edges not taken: {}", dead.len()))),
        Event::Opened { .. } => info("opened"),
        Event::Draining { .. } => warn("failed inside: calls in hand may end, nothing more begins"),
        Event::Turned { index, .. } => Some((Level::Info, format!("turn {index} ended"))),
        Event::Waiting { wait, .. } => Some(awaited(wait)),
        Event::Signaled { key, .. } => Some((Level::Info, format!("signal: {key}"))),
        Event::Decided { .. } => info("decided"),
        Event::Canceling { .. } => warn("cancel was asked for"),
        Event::Paused => info("paused"),
        Event::Resumed => info("resumed"),
        Event::Stepped => info("one step was asked for"),
        Event::SetBack { .. } => warn("its times were set back after a clock that was wrong"),
        Event::Retried { round } => Some((Level::Info, format!("retried, round {round}"))),
        Event::Rerun { round, from, .. } => {
            Some((Level::Info, format!("run again from {from}, round {round}")))
        }
        Event::Funded { .. } => info("money or a larger budget came"),
        Event::Billed { .. } => info("the child run said what it cost"),
        Event::Logged { level, message, .. } => Some((*level, message.clone())),
        Event::Ended { status: Ending::Completed, .. } => info("the run completed"),
        Event::Ended { status: Ending::Failed, error, .. } => {
            let why = error.as_ref().map(|error| error.fault.message.as_str()).unwrap_or_default();
            Some((Level::Error, format!("the run failed: {why}")))
        }
        Event::Ended { status: Ending::Canceled, .. } => warn("the run was canceled"),
    }
}

/// The consequence of a failed attempt for its call.
fn put_off(next: Next) -> &'static str {
    match next {
        Next::Retry => "failed, tried again",
        Next::Failover => "failed, another worker is asked",
        Next::Quick => "temporary fault, tried again at once",
        Next::Recheck => "temporary faults go on, suspended and asked again later",
        Next::Lost => "lost, given to another worker",
        Next::Recovered => "lost with its server, called again",
        Next::Restart => "failed, started again from its beginning",
    }
}

fn awaited(wait: &Waiting) -> (Level, String) {
    let (level, text) = match wait {
        Waiting::Timer { .. } => (Level::Info, "waits for a time"),
        Waiting::Signal { .. } => (Level::Info, "waits for a signal"),
        Waiting::Approval { .. } => (Level::Info, "waits for a decision"),
        Waiting::Balance { .. } => (Level::Warn, "waits for money"),
        Waiting::Budget { .. } => (Level::Warn, "waits for a larger budget"),
    };
    (level, text.to_owned())
}

/// The fields of an event without those that are left out.
fn data(event: &Event) -> Map<String, Value> {
    if matches!(event, Event::Logged { .. }) {
        return Map::new();
    }
    let Ok(Value::Object(mut fields)) = serde_json::to_value(event) else { return Map::new() };
    fields.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    if matches!(event, Event::Granted { .. }) {
        // In a grant it is the epoch of a server, which says nothing to people; elsewhere it is a person.
        fields.remove("by");
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::money::Amount;
    use crate::retry::{Fault, FaultKind};
    use crate::time::Timestamp;

    #[test]
    fn a_line_has_what_is_known_and_nothing_long() {
        let done = Event::Done {
            node: "a/b".into(),
            fence: Fence(3),
            output: Some(Arc::new(json!(["x".repeat(100)]))),
            action: Some("ok".to_owned()),
            actual: Some(Amount(7)),
            worker: Some("w".to_owned()),
        };
        let line = line(&done).unwrap();
        assert_eq!((line.level, line.message.as_str()), (Level::Info, "done"));
        assert_eq!(line.node, Some("a/b".into()));
        assert_eq!(Value::Object(line.data), json!({"fence": 3, "action": "ok", "actual": 7, "worker": "w"}));
    }

    #[test]
    fn worse_failures_have_higher_levels() {
        let fault = Fault::new(FaultKind::Transport, "no answer");
        let node: NodePath = "a".into();
        let later = Event::Deferred {
            node: node.clone(),
            fence: Fence(1),
            fault: fault.clone(),
            until: Timestamp(9),
            next: Next::Recheck,
            worker: None,
        };
        let caught = |route: Option<&str>| Event::Failed {
            node: node.clone(),
            fence: Fence(1),
            fault: fault.clone(),
            route: route.map(str::to_owned),
            worker: None,
        };
        let told = |event: &Event| line(event).map(|line| (line.level, line.message)).unwrap();
        let (level, message) = told(&later);
        assert_eq!(level, Level::Warn);
        assert!(message.ends_with("asked again later: no answer"), "{message}");
        assert_eq!(told(&caught(Some("error"))).0, Level::Warn);
        assert_eq!(told(&caught(None)), (Level::Error, "failed: no answer".to_owned()));
    }

    #[test]
    fn edges_that_are_all_taken_are_no_news() {
        let judged = |dead: Vec<String>| Event::Judged { node: "a".into(), dead };
        assert_eq!(line(&judged(Vec::new())), None);
        assert_eq!(line(&judged(vec!["b".to_owned()])).unwrap().message, "edges not taken: 1");
    }
}
