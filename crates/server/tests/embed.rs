//! The example of a program with Windlass inside works as described.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(unreachable_pub, unused, reason = "the example is a program of its own")]
#[path = "../examples/embed.rs"]
mod embed;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_sdk::Client;
use windlass_sdk::contract::{LogsQuery, RunStatus};

#[tokio::test]
async fn a_node_type_of_a_handler_runs_in_the_server() {
    let stop = CancellationToken::new();
    let (url, runtime) = embed::serve(stop.clone()).await.unwrap();
    let run = embed::run_once(&url, "a harbour").await.unwrap();
    assert_eq!(run.summary.status, RunStatus::Completed);
    assert_eq!(run.result, Some(json!({ "picture": "asset://pictures/3.png" })));
    let node = &run.node_states["img_gen"];
    assert_eq!((node.attempts, node.error.clone()), (1, None));
    // Suspended once when the picture was ordered, and twice while it was made.
    let client = Client::new(&url).unwrap();
    let lines = client.runs().logs(&run.summary.id, &LogsQuery::default()).await.unwrap().items;
    let count = |word: &str| lines.iter().filter(|line| line.message == word).count();
    assert_eq!((count("suspended, asked again later"), count("asked again")), (3, 3));
    let service = client.services().show("image_generation").await.unwrap();
    assert_eq!(service.n_workers, 1);
    let refused = embed::run_once(&url, "").await.unwrap();
    assert_eq!(refused.summary.status, RunStatus::Failed);
    let message = refused.summary.error.unwrap().message;
    assert!(message.contains("give a prompt"), "{message}");
    assert_eq!(refused.result.unwrap_or(Value::Null), Value::Null);
    runtime.shut_down(std::time::Duration::from_secs(5)).await;
    stop.cancel();
}
