//! Runs in this process: the engine, the runtime and the store, without a network between them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::bed::{Bed, chain, function};
use super::report::Figure;
use super::{Plan, rounds};

/// Runs of three steps, many at once.
pub(super) async fn throughput(plan: &Plan) -> Result<Figure> {
    let place = plan.ground.place("steps").await?;
    let bed = Arc::new(Bed::make(plan, &place, "bench", &chain(3, function)).await?);
    bed.many(plan.at_once, plan.round / 4).await?;
    let what = format!("runs of 3 steps, {} at once", plan.at_once);
    let figure = rounds(plan, &what, "runs/s", |_| bed.many(plan.at_once, plan.round)).await;
    bed.close().await;
    figure
}

/// Runs of three steps, one at a time.
pub(super) async fn latency(plan: &Plan) -> Result<[Figure; 2]> {
    let place = plan.ground.place("latency").await?;
    let bed = Arc::new(Bed::make(plan, &place, "bench", &chain(3, function)).await?);
    bed.many(1, plan.round / 8).await?;
    let (mut half, mut most) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let mut took = Vec::with_capacity(plan.n_singles);
        for _ in 0..plan.n_singles {
            took.push(bed.one(json!({"x": 1})).await?);
        }
        let (middle, late) = percentiles(took);
        half.push(middle);
        most.push(late);
    }
    bed.close().await;
    let figure = |part, values| Figure::new(format!("run of 3 steps, one at a time, {part}"), "ms", values);
    Ok([figure("p50", half), figure("p99", most)])
}

/// One run of forty steps.
pub(super) async fn forty(plan: &Plan) -> Result<Figure> {
    let place = plan.ground.place("forty").await?;
    let bed = Bed::make(plan, &place, "bench", &chain(40, function)).await?;
    bed.one(json!({"x": 1})).await?;
    let once = |_| async { Ok(milliseconds(bed.one(json!({"x": 1})).await?)) };
    let figure = rounds(plan, "one run of 40 steps", "ms", once).await;
    Arc::new(bed).close().await;
    figure
}

/// Foreach over many items and over half as many: what is linear takes twice as long.
pub(super) async fn foreach(plan: &Plan) -> Result<Vec<Figure>> {
    let definition = json!({"start": "each", "nodes": {"each": {
        "kind": "foreach", "exec_type": "local_func", "func": "step",
        "prep": {"input_key": "$params.items"}, "post": {"output_key": "out"},
        "parallel_mode": "concurrent", "max_parallel": 256,
    }}});
    let (mut whole, mut half, mut grows) = (Vec::new(), Vec::new(), Vec::new());
    for nth in 0..plan.rounds {
        let (mut took, mut bytes) = ([0.0; 2], [0.0; 2]);
        for (at, n) in [plan.n_items / 2, plan.n_items].into_iter().enumerate() {
            let place = plan.ground.place(&format!("foreach-{nth}-{n}")).await?;
            let bed = Bed::make(plan, &place, "bench", &definition).await?;
            let before = place.size().await?;
            let items: Vec<usize> = (0..n).collect();
            took[at] = bed.one(json!({"items": items})).await?.as_secs_f64();
            Arc::new(bed).close().await;
            place.settled().await?;
            bytes[at] = place.size().await? - before;
        }
        half.push(took[0]);
        whole.push(took[1]);
        grows.push((took[1] / took[0], bytes[1] / bytes[0]));
    }
    let items = |n: usize| format!("foreach over {n} items");
    let twice = format!("{} against half as many", items(plan.n_items));
    Ok(vec![
        Figure::new(items(plan.n_items / 2), "s", half),
        Figure::new(items(plan.n_items), "s", whole),
        Figure::new(format!("{twice}, time"), "×", grows.iter().map(|(time, _)| *time).collect()),
        Figure::new(format!("{twice}, bytes"), "×", grows.iter().map(|(_, bytes)| *bytes).collect()),
    ])
}

/// Bytes on disk per finished run of three steps.
pub(super) async fn bytes(plan: &Plan) -> Result<Figure> {
    let n = plan.n_singles * 20;
    rounds(plan, "bytes on disk per finished run of 3 steps", "bytes", |nth| async move {
        let place = plan.ground.place(&format!("bytes-{nth}")).await?;
        let bed = Arc::new(Bed::make(plan, &place, "bench", &chain(3, function)).await?);
        let before = place.size().await?;
        bed.fill(n, plan.at_once).await?;
        bed.close().await;
        place.settled().await?;
        Ok((place.size().await? - before) / n as f64)
    })
    .await
}

/// The middle of what things took, and what one of a hundred took longer than; in milliseconds.
pub(super) fn percentiles(mut took: Vec<Duration>) -> (f64, f64) {
    took.sort();
    let at = |nth: usize| took.get(nth).copied().map_or(0.0, milliseconds);
    (at(took.len() / 2), at(took.len() * 99 / 100))
}

fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}
