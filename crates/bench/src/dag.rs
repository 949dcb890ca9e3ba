//! One dag of a thousand nodes, in three shapes, by functions that take no time: all that it takes is ours.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};

use super::embedded::EmbeddedServer;
use super::report::Measurement;
use super::{BenchPlan, rounds};

/// Nodes side by side in a layer of the shape between the two others.
const LAYER: usize = 25;

/// A dag of layers; every node waits for its neighbours in the layer before.
fn layers(n: usize, width: usize) -> Value {
    let (mut nodes, mut edges) = (Vec::with_capacity(n), Vec::new());
    for at in 0..n {
        let input = match at.checked_sub(width) {
            None => json!("$var.x"),
            Some(before) => json!(format!("$node.n{before}.output.x")),
        };
        nodes.push(node(&format!("n{at}"), &input));
        let Some(before) = at.checked_sub(width) else { continue };
        edges.push(json!({"source": format!("n{before}"), "target": format!("n{at}")}));
        if !at.is_multiple_of(width) {
            edges.push(json!({"source": format!("n{}", before - 1), "target": format!("n{at}")}));
        }
    }
    json!({"nodes": nodes, "edges": edges})
}

/// All nodes but two side by side, between one that all wait for and one that waits for all.
fn wide(n: usize) -> Value {
    let middle: Vec<String> = (0..n.saturating_sub(2)).map(|at| format!("n{at}")).collect();
    let mut nodes = vec![node("first", &json!("$var.x"))];
    nodes.extend(middle.iter().map(|id| node(id, &json!("$node.first.output.x"))));
    nodes.push(node("last", &json!("$var.x")));
    let edges = middle
        .iter()
        .flat_map(|id| [json!({"source": "first", "target": id}), json!({"source": id, "target": "last"})]);
    json!({"nodes": nodes, "edges": edges.collect::<Vec<_>>()})
}

fn node(id: &str, input: &Value) -> Value {
    json!({"id": id, "type": "step", "exec_type": "local_func", "config": {"x": input}})
}

/// The time per node of a dag, from the start of the run to its end.
pub(crate) async fn overhead(plan: &BenchPlan) -> Result<Vec<Measurement>> {
    let n = plan.n_nodes;
    let mut figures = Vec::new();
    let shapes = [("in a row", layers(n, 1)), ("side by side", wide(n)), ("in layers", layers(n, LAYER))];
    for (shape, definition) in shapes {
        let store = plan.stores.new_store(&format!("dag-{}", figures.len())).await?;
        let server = EmbeddedServer::make(plan, &store, "bench", &definition).await?;
        server.one(json!({"x": 1})).await?;
        let once = |_| async { Ok(server.one(json!({"x": 1})).await?.as_secs_f64() * 1_000.0 / n as f64) };
        let what = format!("dag of {n} nodes {shape}, per node");
        figures.push(rounds(plan, &what, "ms", once).await?);
        Arc::new(server).close().await;
    }
    Ok(figures)
}
