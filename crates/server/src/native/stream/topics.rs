//! The stream of chosen topics, which the console follows.

use axum::response::Response;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use windlass_sdk::contract::RunChanges;
use windlass_store::run::RunRef;

use super::frames::{ClientGone, EventSender, stream};
use super::{HEARTBEAT, look_back, missed, projection};
use crate::app::App;
use crate::live::{Received, Subscription, Topic};
use crate::problem::ApiResult;

/// A stream of these topics; with the id of the last event that its client has seen, it begins with what was missed.
pub(super) async fn events(app: App, topics: Vec<Topic>, since: Option<u64>) -> ApiResult<Response> {
    let subscription = app.hub.subscribe(&app, &topics).await?;
    let closing = app.closing.clone();
    Ok(stream(closing, async move |to| {
        let names: Vec<String> = topics.iter().map(ToString::to_string).collect();
        to.pass(app.hub.frame(&app, "hello", &json!({ "topics": names }))).await?;
        if let Some(since) = since {
            resume(&app, &topics, since, &to).await?;
        }
        tell(&app, subscription, &to).await
    }))
}

async fn tell(app: &App, mut subscription: Subscription, to: &EventSender) -> Result<(), ClientGone> {
    let mut beat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            received = subscription.recv() => match received {
                Some(Received::Frame(frame)) => to.pass(frame).await?,
                Some(Received::Lost) => to.pass(app.hub.frame(app, "resync", &json!({}))).await?,
                None => return Ok(()),
            },
            _ = beat.tick() => to.beat().await?,
        }
    }
}

/// Tells what may have been missed since an event.
async fn resume(app: &App, topics: &[Topic], since: u64, to: &EventSender) -> Result<(), ClientGone> {
    for topic in topics {
        let (event, data) = match topic {
            Topic::Run(run) => {
                let row = app.store().run(app.project(), RunRef::Id(*run)).await;
                let is_same = matches!(&row, Ok(Some(row)) if row.projection.updated_at < look_back(since));
                if is_same {
                    continue;
                }
                ("resync", json!({ "topic": topic.to_string() }))
            }
            Topic::Runs => match missed(app, since).await {
                Ok(Some(rows)) if rows.is_empty() => continue,
                Ok(Some(rows)) => {
                    let changes = RunChanges { changes: rows.iter().map(projection).collect(), more: false };
                    ("runs", serde_json::to_value(changes).unwrap_or_default())
                }
                Ok(None) | Err(_) => ("resync", json!({ "topic": "runs" })),
            },
            Topic::List(_) => ("changed", json!({ "topic": topic.to_string() })),
            // They come by themselves.
            Topic::Overview | Topic::Bulk(_) => continue,
        };
        to.pass(app.hub.frame(app, event, &data)).await?;
    }
    Ok(())
}
