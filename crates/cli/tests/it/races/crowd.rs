//! Sixty-four workers, each with a connection of its own, finish nodes of one run at the same moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::{claim, finish};
use crate::http::{ends, get, journal, start};
use crate::server::{Server, publish};

const WORKERS: usize = 64;
/// Nodes of each layer; together 200.
const LAYERS: [usize; 5] = [WORKERS, WORKERS, WORKERS, 7, 1];

/// Layers of calls; every node waits for two of the layer before, and the last one for all of it.
fn layered() -> Value {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    let id = |layer: usize, nth: usize| format!("n{layer}-{nth}");
    for (layer, n) in LAYERS.into_iter().enumerate() {
        for nth in 0..n {
            nodes.push(json!({"id": id(layer, nth), "type": "s", "config": {"nth": nth}}));
            let Some(before) = layer.checked_sub(1) else { continue };
            let width = LAYERS[before];
            let all: BTreeSet<usize> = (0..width).collect();
            let sources = if n == 1 { all } else { [nth % width, (nth + 1) % width].into() };
            let edge = |source| json!({"source": id(before, source), "target": id(layer, nth)});
            edges.extend(sources.into_iter().map(edge));
        }
    }
    json!({"nodes": nodes, "edges": edges})
}

/// One layer: each worker claims a node, and when all have one, each finishes its own, twice at the same time.
async fn finish_a_layer(server: &Server, n: usize) -> BTreeMap<String, Value> {
    let gate = Arc::new(Barrier::new(n));
    let mut workers = JoinSet::new();
    for nth in 0..n {
        let (client, gate) = (server.client(), gate.clone());
        workers.spawn(async move {
            let worker = format!("w{nth}");
            let job = claim(&client, &worker, 60_000).await;
            gate.wait().await;
            let result = json!({"by": worker, "nth": job["params"]["nth"]});
            let (first, second) =
                tokio::join!(finish(&client, &job, result.clone()), finish(&client, &job, result.clone()));
            // The same end sent again is a no-op, however close the two requests are.
            assert_eq!((first.as_str(), second.as_str()), ("ok", "ok"), "{job}");
            assert_eq!(finish(&client, &job, json!("late")).await, "lost");
            (job["node"].as_str().unwrap().to_owned(), result)
        });
    }
    let finished = workers.join_all().await;
    let by_node: BTreeMap<String, Value> = finished.into_iter().collect();
    assert_eq!(by_node.len(), n, "a node was handed out twice");
    by_node
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_ends_at_once_lose_nothing_of_a_dag_of_two_hundred_nodes() {
    let server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "crowd", layered()).await;
    let run = start(&client, "crowd", json!({})).await;
    let mut outputs = BTreeMap::new();
    for n in LAYERS {
        outputs.extend(finish_a_layer(&server, n).await);
    }
    let ended = ends(&client, &run, "completed").await;
    let states = ended["node_states"].as_object().unwrap();
    assert_eq!((states.len(), outputs.len()), (200, 200));
    for (node, state) in states {
        assert_eq!(state["status"], "completed", "{node}");
        assert_eq!(state["output"], outputs[node], "{node}");
    }
    let events = journal(&client, &run).await;
    let of = |word: &str| events.iter().filter(|event| event["e"] == word).count();
    assert_eq!((of("granted"), of("done"), of("ended")), (200, 200, 1));
    let attempts = get(&client, &format!("/api/v1/runs/{run}/attempts?limit=1000")).await;
    let attempts = attempts["items"].as_array().unwrap();
    assert_eq!(attempts.len(), 200);
    assert!(attempts.iter().all(|attempt| attempt["attempt"] == 1 && attempt["status"] == "ok"));
}
