//! Server-sent events, with resumption.
//!
//! The stream of one run is its journal: the id of an event is the number of its entry, and a client that reconnects
//! with `Last-Event-ID` gets the missed entries from the store. The stream of all runs only names changed runs; its ids
//! are times, and a client that reconnects gets each run that changed since then, once, or an event `resync`. Both
//! streams read the store, so a slow client misses nothing.

mod frames;
mod topics;

use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use windlass_engine::counter::Seq;
use windlass_engine::id::RunId;
use windlass_engine::time::Timestamp;
use windlass_runtime::feed::RunUpdates;
use windlass_sdk::contract::{ChangeEvent, EndEvent, EventsQuery, JournalEntry};
use windlass_store::page::{Order, PAGE_MAX, Part};
use windlass_store::run::{RunQuery, RunRow, Since};

use crate::app::{App, run_id};
use crate::extract::{PathParams, QueryParams};
use crate::live::Topic;
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

use frames::{ClientGone, EventSender, stream};

/// The interval of keep-alive comments: proxies cut connections that are silent for half a minute.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How far before the moment that a watcher saw last the changes that it may have missed begin. Moments are taken
/// before a change is durable, by whichever server made it: one that is told later may be of an earlier moment.
const LOOK_BACK_MS: i64 = 10_000;
/// Entries read at once: they stay in memory until they are sent.
const ENTRIES: usize = 100;

/// Streams the journal of a run: one event `entry` for each entry, with its number as its id, and `end` when the run
/// has ended. `Last-Event-ID` goes on after that entry.
#[utoipa::path(get, path = "/api/v1/runs/{id}/events", operation_id = "watch_run", tag = "events",
    params(("id" = String, Path, description = "The id of the run"),
        ("Last-Event-ID" = Option<u64>, Header, description = "The number of the last entry that was seen")),
    responses((status = 200, description = "Events `entry` (a JournalEntry) and `end` (an EndEvent)",
        body = JournalEntry, content_type = "text/event-stream")))]
pub(crate) async fn run_events(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let run = run_id(&id)?;
    let after = Seq(last_seen(&headers)?.unwrap_or(0));
    // The subscription begins before the read, so that a commit between the two is in one of them.
    let changes = app.runtime.runs().changes();
    app.row(run).await?;
    let closing = app.closing.clone();
    Ok(stream(closing, async move |to| tell_run(&app, run, after, changes, &to).await))
}

async fn tell_run(
    app: &App,
    run: RunId,
    mut after: Seq,
    mut changes: RunUpdates,
    to: &EventSender,
) -> Result<(), ClientGone> {
    let mut beat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        loop {
            let part = app
                .store()
                .journal(app.project(), run, Since::Entry(after), ENTRIES)
                .await
                .map_err(|_| ClientGone)?;
            for (seq, entry) in &part.entries {
                to.say("entry", &seq.to_string(), &shape::entry(*seq, entry)).await?;
                after = *seq;
            }
            if part.entries.len() < ENTRIES {
                break;
            }
        }
        let row = app.row(run).await.map_err(|_| ClientGone)?;
        if row.len <= after && !row.projection.status.is_open() {
            let end = EndEvent { run: run.to_string(), status: shape::status(row.projection.status) };
            return to.say("end", &after.to_string(), &end).await;
        }
        if row.len > after {
            continue;
        }
        // Another server may have written: every heartbeat looks into the store too.
        tokio::select! {
            () = concerns(&mut changes, run, after) => {}
            _ = beat.tick() => to.beat().await?,
        }
    }
}

/// Waits until the run may have changed.
async fn concerns(changes: &mut RunUpdates, run: RunId, after: Seq) {
    loop {
        match changes.recv().await {
            Ok(change) if change.run == run && change.seq > after => return,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return,
            // The server is going: the heartbeat is all that is left to wait for.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Streams the changes of all runs: events `change`, with a moment (milliseconds since 1970) as the id. With
/// `Last-Event-ID`, the stream first names every run that changed since ten seconds before that time, once, with its
/// current status. Changes come in the order in which they became durable, and their times may go back a little: hence
/// the ten seconds, and hence a change may come again, with the same `seq` or a later one. With more than 1,000 changes,
/// or if the stream fell behind, an event `resync` says to read the lists again.
///
/// With `topics` the stream follows these topics instead, at most 200: `run:ID` (events `patch`, a RunPatch), `runs`
/// (events `runs`, a RunChanges), `overview` (the overview, every five seconds), `bulk:ID` (its progress), and `queues`,
/// `approvals`, `workers`, `schedules`, `dead_letters` and `flows` (events `changed`: the list is to be read again). The
/// event `hello` says that every later change is sent: snapshots that are read after it miss nothing. After an interruption
/// `resync` names the topics that may have missed something.
#[utoipa::path(get, path = "/api/v1/events", operation_id = "watch_runs", tag = "events",
    params(EventsQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "The id of the last event that was seen")),
    responses((status = 200, description = "Events `change` (a ChangeEvent) and `resync`; with `topics`, those of the topics",
        body = ChangeEvent, content_type = "text/event-stream")))]
pub(crate) async fn events(
    State(app): State<App>,
    headers: HeaderMap,
    QueryParams(asked): QueryParams<EventsQuery>,
) -> ApiResult<Response> {
    let since = last_seen(&headers)?.or(asked.last_event_id);
    if let Some(topics) = asked.topics {
        return topics::events(app, Topic::list(&topics)?, since).await;
    }
    let changes = app.runtime.runs().changes();
    let missed = match since {
        Some(since) => missed(&app, since).await?,
        None => Some(Vec::new()),
    };
    let now = app.runtime.clock().now();
    let closing = app.closing.clone();
    Ok(stream(closing, async move |to| {
        match missed {
            Some(rows) => {
                for row in rows {
                    to.say("change", &row.projection.updated_at.0.to_string(), &projection(&row)).await?;
                }
            }
            None => to.say("resync", &now.0.to_string(), &serde_json::json!({})).await?,
        }
        tell_all(changes, &to).await
    }))
}

async fn tell_all(mut changes: RunUpdates, to: &EventSender) -> Result<(), ClientGone> {
    let mut beat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut latest = Timestamp(0);
    loop {
        tokio::select! {
            change = changes.recv() => match change {
                Ok(change) => {
                    latest = latest.max(change.at);
                    to.say("change", &change.at.0.to_string(), &shape::run_change(&change)).await?;
                }
                Err(RecvError::Lagged(_)) => to.say("resync", &latest.0.to_string(), &serde_json::json!({})).await?,
                Err(RecvError::Closed) => return Ok(()),
            },
            _ = beat.tick() => to.beat().await?,
        }
    }
}

/// The moment from which on a client with this id may have missed something.
fn look_back(since: u64) -> Timestamp {
    Timestamp(i64::try_from(since).unwrap_or(i64::MAX).saturating_sub(LOOK_BACK_MS))
}

/// Runs that changed since, the earliest change first; `None` = too many to tell.
async fn missed(app: &App, since: u64) -> ApiResult<Option<Vec<RunRow>>> {
    let since = look_back(since);
    let part = Part { order: Order::LatestChange, limit: PAGE_MAX, ..Part::default() };
    let page = app.store().runs(app.project(), RunQuery { part, ..RunQuery::default() }).await?;
    let is_whole = page.next.is_none() || page.items.iter().any(|row| row.projection.updated_at < since);
    let mut rows = page.items;
    rows.retain(|row| row.projection.updated_at >= since);
    rows.reverse();
    Ok(is_whole.then_some(rows))
}

fn projection(row: &RunRow) -> ChangeEvent {
    ChangeEvent {
        run: row.id.to_string(),
        flow_id: row.origin.flow.to_string(),
        seq: row.len.0,
        at: shape::time(row.projection.updated_at),
        status: shape::status(row.projection.status),
        node: row.projection.node.as_ref().map(ToString::to_string),
    }
}

/// The id of the last event that a client has seen.
fn last_seen(headers: &HeaderMap) -> ApiResult<Option<u64>> {
    let Some(value) = headers.get("last-event-id").filter(|value| !value.is_empty()) else { return Ok(None) };
    let read = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let wrong =
        || ApiError::field(Code::BadQuery, "Last-Event-ID", "it is no id of this stream: leave it out");
    read.map(Some).ok_or_else(wrong)
}
