//! What money costs: runs whose calls are charged and settled, and the same runs for nothing.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use windlass_engine::money::Price;
use windlass_runtime::Runtime;

use super::Plan;
use super::report::Figure;
use super::steps::Bed;

/// Accounts that the runs are paid from, in turn: charges of one are made one after the other.
const ACCOUNTS: usize = 16;
/// More than any bench spends.
const DEPOSIT: i64 = 1 << 50;
/// Commits of a run of three calls: its start, and the end of each.
const COMMITS: f64 = 4.0;

/// Three calls in a row, of a service that asks something or of one that does not.
fn three(service: &str) -> Value {
    let node = |id: &str, input: &str| json!({"id": id, "type": service, "exec_type": "local_func", "config": {"x": input}});
    json!({
        "nodes": [node("a", "$var.x"), node("b", "$node.a.output.x"), node("c", "$node.b.output.x")],
        "edges": [{"source": "a", "target": "b"}, {"source": "b", "target": "c"}],
    })
}

fn account(nth: usize) -> String {
    format!("payer-{nth}")
}

/// Opens the accounts and sets the price.
async fn open(runtime: &Runtime) -> Result<()> {
    // Estimated as one unit and settled as one, so that a call is a charge and a settlement.
    let price = Price { unit_price: 2, min_unit: 1, units: json!(1), actual_units: None };
    runtime.set_price("paid", price).await?;
    for nth in 0..ACCOUNTS {
        runtime.open_account(&account(nth), None).await?;
        runtime.deposit(&account(nth), DEPOSIT, "bench").await?;
    }
    Ok(())
}

/// Commits per second of runs that are paid for and of runs that are free, in turns on one store, and the ratio.
pub(super) async fn billing(plan: &Plan) -> Result<[Figure; 3]> {
    let free = Bed::make(plan, &plan.dir.join("billing.db"), "free", &three("step")).await?;
    open(free.runtime()).await?;
    let paid = free.beside("paid", &three("paid")).await?.paid_by((0..ACCOUNTS).map(account).collect());
    let (free, paid) = (Arc::new(free), Arc::new(paid));
    for bed in [&free, &paid] {
        bed.many(plan.at_once, plan.round / 4).await?;
    }
    let (mut without, mut with, mut ratio) = (Vec::new(), Vec::new(), Vec::new());
    // In turns, so that both meet the same machine.
    for _ in 0..plan.rounds {
        let off = bed_rate(&free, plan).await?;
        let on = bed_rate(&paid, plan).await?;
        without.push(off);
        with.push(on);
        ratio.push(off / on);
    }
    free.close().await;
    Ok([
        Figure::new(format!("runs of 3 calls for nothing, {} at once", plan.at_once), "commits/s", without),
        Figure::new(format!("runs of 3 calls charged to {ACCOUNTS} accounts"), "commits/s", with),
        Figure::new("cost of a commit with money against one without", "×", ratio),
    ])
}

async fn bed_rate(bed: &Arc<Bed>, plan: &Plan) -> Result<f64> {
    Ok(bed.many(plan.at_once, plan.round).await? * COMMITS)
}
