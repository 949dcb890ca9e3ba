//! The speed-up of branches: the same worker calls in parallel and in sequence.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_sdk::Worker;
use windlass_sdk::contract::{RunRequest, RunStatus};
use windlass_sdk::worker::ServiceCall;

use super::BenchPlan;
use super::processes::ServerProcess;
use super::report::Measurement;

/// How long one run may take.
const TIMEOUT: Duration = Duration::from_secs(120);

fn step(nth: usize) -> Value {
    json!({"id": format!("s{nth}"), "operator": "work", "parameters": {"nth": nth}})
}

/// `n` steps, each in a branch of its own.
fn side_by_side(n: usize) -> Value {
    let branches: Vec<Value> = (0..n).map(|nth| json!({"steps": [step(nth)]})).collect();
    json!({"title": "side by side", "steps": [
        {"id": "all", "operator": "@control/flow/parallel", "branches": branches},
    ]})
}

fn in_a_row(n: usize) -> Value {
    json!({"title": "in a row", "steps": (0..n).map(step).collect::<Vec<_>>()})
}

/// The speed-up of `n` parallel calls over the same calls in sequence, with the time of each kind and the processor time
/// of the server.
pub(crate) async fn speed_up(plan: &BenchPlan, n: usize) -> Result<[Measurement; 5]> {
    let store = plan.stores.new_store(&format!("speed-up-{n}")).await?;
    let (server, takes) = (ServerProcess::start(plan, &store).await?, plan.call);
    server.publish_as("parallel", &side_by_side(n)).await?;
    server.publish_as("serial", &in_a_row(n)).await?;
    let stop = CancellationToken::new();
    let worker = Worker::new(server.client.clone(), "bench").slots(n).service(
        "work",
        move |call: ServiceCall| async move {
            tokio::time::sleep(takes).await;
            call.input
        },
    );
    let working = tokio::spawn(worker.run(stop.clone()));
    // The worker has come for jobs when this is over.
    once(&server, "parallel").await?;
    let (mut parallel, mut serial, mut ratio) = (Vec::new(), Vec::new(), Vec::new());
    let (mut processor, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let (_, before) = server.usage()?;
        let beside = once(&server, "parallel").await?;
        let (most, now) = server.usage()?;
        let after = once(&server, "serial").await?;
        processor.push(now - before);
        memory.push(most);
        parallel.push(beside.as_secs_f64() * 1_000.0);
        serial.push(after.as_secs_f64() * 1_000.0);
        ratio.push(after.as_secs_f64() / beside.as_secs_f64());
    }
    stop.cancel();
    working.await??;
    let calls = format!("{n} calls of {} ms", takes.as_millis());
    Ok([
        Measurement::new(format!("{calls} in a row"), "ms", serial),
        Measurement::new(format!("{calls} side by side"), "ms", parallel),
        Measurement::new(format!("{calls}, side by side against in a row"), "×", ratio),
        Measurement::new(format!("{calls} side by side, processor time of the server"), "ms", processor),
        Measurement::new(format!("{calls} side by side, memory of the server at most"), "MB", memory),
    ])
}

async fn once(server: &ServerProcess, flow: &str) -> Result<Duration> {
    let begun = Instant::now();
    let ended = server.client.runs().start_and_wait(flow, &RunRequest::default(), TIMEOUT).await?;
    ensure!(ended.status == RunStatus::Completed, "{} is {}", ended.id, ended.status.word());
    Ok(begun.elapsed())
}
