//! What money costs: runs whose calls are charged and settled, and the same runs for nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use windlass_engine::money::Price;
use windlass_runtime::Runtime;

use super::Plan;
use super::bed::Bed;
use super::remote::processor;
use super::report::Figure;

/// Accounts that the runs are paid from, in turn: charges of one are made one after the other.
const ACCOUNTS: usize = 16;
/// More than any bench spends.
const DEPOSIT: i64 = 1 << 50;
/// Turns of a round.
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
    let price = Price { unit_price: 2, min_unit: 1, units: json!(1), actual_units: None };
    runtime.set_price("paid", price).await?;
    for nth in 0..ACCOUNTS {
        runtime.open_account(&account(nth), None).await?;
        runtime.deposit(&account(nth), DEPOSIT, "bench").await?;
    }
    Ok(())
}

/// What runs of one kind came to: commits per second, and the processor time of one in microseconds.
#[derive(Default)]
struct Came {
    rates: Vec<f64>,
    costs: Vec<f64>,
}

impl Came {
    fn add(&mut self, spent: &Spent) {
        self.rates.push(spent.n_commits / spent.took.as_secs_f64());
        self.costs.push(spent.processor_ms * 1_000.0 / spent.n_commits);
    }
}

/// What the turns of one round came to.
#[derive(Default)]
struct Spent {
    n_commits: f64,
    took: Duration,
    processor_ms: f64,
}

impl Spent {
    async fn turn(&mut self, bed: &Arc<Bed>, plan: &Plan) -> Result<()> {
        let (begun, before) = (Instant::now(), processor(std::process::id())?);
        let rate = bed.many(plan.at_once, plan.round / TURNS).await?;
        let took = begun.elapsed();
        self.processor_ms += processor(std::process::id())? - before;
        self.n_commits += rate * COMMITS * took.as_secs_f64();
        self.took += took;
        Ok(())
    }
}

/// Commits of runs that are paid for and of runs that are free, in turns on one store: how many a second, what
/// processor time each takes, and the ratios.
pub(super) async fn billing(plan: &Plan) -> Result<[Figure; 6]> {
    let place = plan.ground.place("billing").await?;
    let free = Bed::make(plan, &place, "free", &three("step")).await?;
    open(free.runtime()).await?;
    let paid = free.beside("paid", &three("paid")).await?.paid_by((0..ACCOUNTS).map(account).collect());
    let (free, paid) = (Arc::new(free), Arc::new(paid));
    for bed in [&free, &paid] {
        bed.many(plan.at_once, plan.round / 4).await?;
    }
    let (mut off, mut on) = (Came::default(), Came::default());
    for _ in 0..plan.rounds {
        let (mut without, mut with) = (Spent::default(), Spent::default());
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
        Figure::new(format!("{nothing}, {} at once", plan.at_once), "commits/s", off.rates),
        Figure::new(format!("{money}, {} at once", plan.at_once), "commits/s", on.rates),
        Figure::new(format!("{ratio}, time"), "×", time),
        Figure::new(format!("{nothing}, processor time of a commit"), "µs", off.costs),
        Figure::new(format!("{money}, processor time of a commit"), "µs", on.costs),
        Figure::new(format!("{ratio}, processor time"), "×", cost),
    ])
}
