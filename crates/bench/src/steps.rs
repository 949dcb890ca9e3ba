//! Runs in this process: the engine, the runtime and the store, without a network between them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::embedded::{EmbeddedServer, chain, function};
use super::report::Measurement;
use super::{BenchPlan, rounds};

/// Parallel runs of three steps.
pub(crate) async fn throughput(plan: &BenchPlan) -> Result<Measurement> {
    let store = plan.stores.new_store("steps").await?;
    let server = Arc::new(EmbeddedServer::make(plan, &store, "bench", &chain(3, function)).await?);
    server.many(plan.at_once, plan.round / 4).await?;
    let what = format!("runs of 3 steps, {} at once", plan.at_once);
    let figure = rounds(plan, &what, "runs/s", |_| server.many(plan.at_once, plan.round)).await;
    server.close().await;
    figure
}

/// Runs of three steps, one at a time.
pub(crate) async fn latency(plan: &BenchPlan) -> Result<[Measurement; 2]> {
    let store = plan.stores.new_store("latency").await?;
    let server = Arc::new(EmbeddedServer::make(plan, &store, "bench", &chain(3, function)).await?);
    server.many(1, plan.round / 8).await?;
    let (mut half, mut most) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let mut took = Vec::with_capacity(plan.n_singles);
        for _ in 0..plan.n_singles {
            took.push(server.one(json!({"x": 1})).await?);
        }
        let (middle, late) = percentiles(took);
        half.push(middle);
        most.push(late);
    }
    server.close().await;
    let figure =
        |part, values| Measurement::new(format!("run of 3 steps, one at a time, {part}"), "ms", values);
    Ok([figure("p50", half), figure("p99", most)])
}

/// One run of forty steps.
pub(crate) async fn forty(plan: &BenchPlan) -> Result<Measurement> {
    let store = plan.stores.new_store("forty").await?;
    let server = EmbeddedServer::make(plan, &store, "bench", &chain(40, function)).await?;
    server.one(json!({"x": 1})).await?;
    let once = |_| async { Ok(milliseconds(server.one(json!({"x": 1})).await?)) };
    let figure = rounds(plan, "one run of 40 steps", "ms", once).await;
    Arc::new(server).close().await;
    figure
}

/// Foreach over many items and over half as many: a linear cost doubles.
pub(crate) async fn foreach(plan: &BenchPlan) -> Result<Vec<Measurement>> {
    let definition = json!({"start": "each", "nodes": {"each": {
        "kind": "foreach", "exec_type": "local_func", "func": "step",
        "prep": {"input_key": "$params.items"}, "post": {"output_key": "out"},
        "parallel_mode": "concurrent", "max_parallel": 256,
    }}});
    let (mut whole, mut half, mut grows) = (Vec::new(), Vec::new(), Vec::new());
    for nth in 0..plan.rounds {
        let (mut took, mut bytes) = ([0.0; 2], [0.0; 2]);
        for (at, n) in [plan.n_items / 2, plan.n_items].into_iter().enumerate() {
            let store = plan.stores.new_store(&format!("foreach-{nth}-{n}")).await?;
            let server = EmbeddedServer::make(plan, &store, "bench", &definition).await?;
            let before = store.size().await?;
            let items: Vec<usize> = (0..n).collect();
            took[at] = server.one(json!({"items": items})).await?.as_secs_f64();
            Arc::new(server).close().await;
            store.settled().await?;
            bytes[at] = store.size().await? - before;
        }
        half.push(took[0]);
        whole.push(took[1]);
        grows.push((took[1] / took[0], bytes[1] / bytes[0]));
    }
    let items = |n: usize| format!("foreach over {n} items");
    let twice = format!("{} against half as many", items(plan.n_items));
    Ok(vec![
        Measurement::new(items(plan.n_items / 2), "s", half),
        Measurement::new(items(plan.n_items), "s", whole),
        Measurement::new(format!("{twice}, time"), "×", grows.iter().map(|(time, _)| *time).collect()),
        Measurement::new(format!("{twice}, bytes"), "×", grows.iter().map(|(_, bytes)| *bytes).collect()),
    ])
}

/// Bytes on disk per finished run of three steps.
pub(crate) async fn bytes(plan: &BenchPlan) -> Result<Measurement> {
    let n = plan.n_singles * 20;
    rounds(plan, "bytes on disk per finished run of 3 steps", "bytes", |nth| async move {
        let store = plan.stores.new_store(&format!("bytes-{nth}")).await?;
        let server = Arc::new(EmbeddedServer::make(plan, &store, "bench", &chain(3, function)).await?);
        let before = store.size().await?;
        server.fill(n, plan.at_once).await?;
        server.close().await;
        store.settled().await?;
        Ok((store.size().await? - before) / n as f64)
    })
    .await
}

/// p50 and p99 in milliseconds.
pub(crate) fn percentiles(mut took: Vec<Duration>) -> (f64, f64) {
    took.sort();
    let at = |nth: usize| took.get(nth).copied().map_or(0.0, milliseconds);
    (at(took.len() / 2), at(took.len() * 99 / 100))
}

fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}
