//! A worker that asks for jobs: `cargo run -p windlass-sdk --example pull_worker`.
//!
//! It serves `greet`; start a run of a flow that calls it, and see.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_sdk::worker::ServiceCall;
use windlass_sdk::{Client, Worker};

async fn greet(call: ServiceCall) -> Result<Value, &'static str> {
    let name = call.input["name"].as_str().ok_or("greet needs a name")?;
    Ok(json!({ "greeting": format!("hello, {name}"), "attempt": call.attempt }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = std::env::var("WINDLASS_SERVER").unwrap_or_else(|_| "http://127.0.0.1:8070".to_owned());
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    Worker::new(Client::new(&server)?, "greeter").service("greet", greet).run(shutdown).await?;
    Ok(())
}
