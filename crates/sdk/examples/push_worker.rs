//! A worker that is called over HTTP: `cargo run -p windlass-sdk --example push_worker`.
//!
//! It serves `render`, which takes its time: it answers "ask me again" and remembers the job by its memo.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_sdk::worker::{HandlerOutcome, ServiceCall, bind};
use windlass_sdk::{Client, Worker};

async fn render(call: ServiceCall) -> HandlerOutcome {
    match call.memo {
        // The key is the same for every attempt, so a provider that knows it starts nothing twice.
        None => HandlerOutcome::Suspended {
            memo: json!({ "provider_job": call.key }),
            recheck: Some(Duration::from_secs(1)),
        },
        Some(memo) => HandlerOutcome::Done(json!({ "urls": ["asset://film.mp4"], "made_by": memo })),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = std::env::var("WINDLASS_SERVER").unwrap_or_else(|_| "http://127.0.0.1:8070".to_owned());
    let here = std::env::var("WORKER_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".to_owned());
    let (listener, url) = bind(&here).await?;
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    Worker::new(Client::new(&server)?, "renderer")
        .push_only()
        .listen(listener, url)
        .service("render", render)
        .run(shutdown)
        .await?;
    Ok(())
}
