//! Publishes a flow, runs it and prints its output: `cargo run -p windlass-sdk --example start_and_wait`.
//!
//! It needs a server (`windlass serve`) and no worker: the flow only calls functions of the server itself.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_sdk::Client;
use windlass_sdk::contract::{FlowRequest, RunRequest};

fn definition() -> Value {
    json!({
        "start": "shout",
        "nodes": {"shout": {
            "kind": "local", "func": "upper",
            "prep": {"input_key": "$params.name"}, "post": {"output_key": "name"}
        }},
        "edges": []
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = std::env::var("WINDLASS_SERVER").unwrap_or_else(|_| "http://127.0.0.1:8070".to_owned());
    let client = Client::new(&server)?;
    let flow = FlowRequest {
        name: "sdk-example".to_owned(),
        definition: Some(definition()),
        ..FlowRequest::default()
    };
    match client.flows().create(&flow).await {
        Ok(published) => eprintln!("published {} version {}", published.name, published.version),
        Err(error) if error.status == Some(409) => eprintln!("{} is there already", flow.name),
        Err(error) => return Err(error.into()),
    }
    let params = json!({"name": "Ada"}).as_object().cloned();
    let started = client
        .runs()
        .start_and_wait(&flow.name, &RunRequest { params, ..RunRequest::default() }, Duration::from_secs(10))
        .await?;
    let run =
        client.runs().wait(&started.id, Some(Duration::from_secs(30))).await?.ok_or("it takes too long")?;
    eprintln!("{} {}: {}", run.summary.id, run.summary.status.word(), Value::Object(run.shared));
    Ok(())
}
