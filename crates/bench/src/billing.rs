//! The cost of money: runs whose calls are charged and settled, and the same runs without a price.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use windlass_engine::money::{Amount, Price};
use windlass_runtime::Runtime;

use super::BenchPlan;
use super::embedded::EmbeddedServer;
use super::processes::processor;
use super::report::Measurement;

/// Accounts that the runs are paid from, in turn: charges of one are made one after the other.
const ACCOUNTS: usize = 16;
/// More than any bench spends.
const DEPOSIT: Amount = Amount(1 << 50);
/// Turns of one round.
const TURNS: u32 = 10;
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
    let price = Price { unit_price: Amount(2), min_unit: 1, units: json!(1), actual_units: None };
    runtime.money().set_price("paid", price).await?;
    for nth in 0..ACCOUNTS {
        runtime.money().open_account(&account(nth), None).await?;
        runtime.money().deposit(&account(nth), DEPOSIT, "bench").await?;
    }
    Ok(())
}

/// Samples of one kind of runs: commits per second, and processor time of a commit in microseconds.
#[derive(Default)]
struct BillingSamples {
    rates: Vec<f64>,
    costs: Vec<f64>,
}

impl BillingSamples {
    fn add(&mut self, spent: &CommitCost) {
        self.rates.push(spent.n_commits / spent.took.as_secs_f64());
        self.costs.push(spent.processor_ms * 1_000.0 / spent.n_commits);
    }
}

/// The commits, time and processor time of one round.
#[derive(Default)]
struct CommitCost {
    n_commits: f64,
    took: Duration,
    processor_ms: f64,
}

impl CommitCost {
    async fn turn(&mut self, server: &Arc<EmbeddedServer>, plan: &BenchPlan) -> Result<()> {
        let (begun, before) = (Instant::now(), processor(std::process::id())?);
        let rate = server.many(plan.at_once, plan.round / TURNS).await?;
        let took = begun.elapsed();
        self.processor_ms += processor(std::process::id())? - before;
        self.n_commits += rate * COMMITS * took.as_secs_f64();
        self.took += took;
        Ok(())
    }
}

/// Commits of charged and of free runs, in turns on one store: rates, processor times and their ratios.
pub(crate) async fn billing(plan: &BenchPlan) -> Result<[Measurement; 6]> {
    let store = plan.stores.new_store("billing").await?;
    let free = EmbeddedServer::make(plan, &store, "free", &three("step")).await?;
    open(free.runtime()).await?;
    let paid = free.beside("paid", &three("paid")).await?.paid_by((0..ACCOUNTS).map(account).collect());
    let (free, paid) = (Arc::new(free), Arc::new(paid));
    for server in [&free, &paid] {
        server.many(plan.at_once, plan.round / 4).await?;
    }
    let (mut off, mut on) = (BillingSamples::default(), BillingSamples::default());
    for _ in 0..plan.rounds {
        let (mut without, mut with) = (CommitCost::default(), CommitCost::default());
        // In short turns, so that both meet the same machine, which is another one from second to second.
        for _ in 0..TURNS {
            without.turn(&free, plan).await?;
            with.turn(&paid, plan).await?;
        }
        off.add(&without);
        on.add(&with);
    }
    free.close().await;
    let over = |above: &[f64], below: &[f64]| above.iter().zip(below).map(|(a, b)| a / b).collect();
    let (time, cost) = (over(&off.rates, &on.rates), over(&on.costs, &off.costs));
    let (nothing, money) =
        ("runs of 3 calls for nothing", format!("runs of 3 calls charged to {ACCOUNTS} accounts"));
    let ratio = "a commit with money against one without";
    Ok([
        Measurement::new(format!("{nothing}, {} at once", plan.at_once), "commits/s", off.rates),
        Measurement::new(format!("{money}, {} at once", plan.at_once), "commits/s", on.rates),
        Measurement::new(format!("{ratio}, time"), "×", time),
        Measurement::new(format!("{nothing}, processor time of a commit"), "µs", off.costs),
        Measurement::new(format!("{money}, processor time of a commit"), "µs", on.costs),
        Measurement::new(format!("{ratio}, processor time"), "×", cost),
    ])
}
