//! Benchmarks of Windlass on this machine, behind `windlass bench`.
//!
//! The crate measures every row three times and reports the median and the range, next to the rate at which the disk
//! syncs, which bounds most rows. `steps`, `dag`, `billing`, `topics`, `lists` and `tls` measure a server in this process
//! (`embedded`); `processes`, `speedup`, `jobs` and `cluster` measure server and worker processes over HTTP; `history`
//! compares an empty store with a full one. `store_factory` creates the stores and `report` renders the results.

mod billing;
mod cluster;
mod connection;
mod cpu_quota;
mod dag;
mod disk;
mod embedded;
mod history;
mod jobs;
mod lists;
mod processes;
mod report;
mod speedup;
mod steps;
mod store_factory;
mod tls;
mod topics;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use windlass_store::Durability;

pub use report::BenchReport;
use report::Measurement;
use store_factory::StoreFactory;

/// One group of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchRow {
    /// Parallel runs of three durable steps, with functions in the server's process.
    Steps,
    /// The same, one at a time.
    Latency,
    /// One run of forty steps.
    Long,
    /// Foreach over many items, and over half as many.
    Foreach,
    /// Bytes on disk per finished run of three steps.
    Bytes,
    /// One dag of a thousand nodes: in a row, side by side, in layers.
    #[value(name = "dag-1000")]
    Dag,
    /// Three branches of worker calls against the same calls in a row.
    #[value(name = "speed-up-3")]
    SpeedUpThree,
    /// A hundred branches of worker calls against the same calls in a row.
    #[value(name = "speed-up-100")]
    SpeedUpHundred,
    /// Commits with money and without.
    Billing,
    /// Runs beside an event stream that follows a hundred runs, and without one.
    Topics,
    /// Runs started and awaited over HTTP, with TLS and without.
    Tls,
    /// Runs of three steps made by a pull worker in another process, over HTTP.
    Worker,
    /// Jobs created over HTTP, one a call.
    Enqueue,
    /// Jobs created over HTTP, many a call.
    Bulk,
    /// Jobs claimed, worked on and finished over HTTP, with limits off and on, and one at a time.
    Process,
    /// From the creation of a job to its end, without other load.
    JobLatency,
    /// Claims from a short queue and from a very long one.
    Backlog,
    /// Memory of a server, idle and under load.
    Memory,
    /// How long a server takes to be ready, with an empty store and with a history.
    Startup,
    /// Runs and jobs by one, two and three servers on one database.
    Cluster,
    /// Runs and jobs on an empty store and on one with a long history.
    History,
    /// The list of runs over a long history, over HTTP.
    Lists,
}

/// The arguments of `windlass bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Only these rows.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<BenchRow>,
    /// The stores: `sqlite` (files in a directory), or `postgres://…` (databases that are created beside this one and
    /// deleted afterwards).
    #[arg(long, default_value = "sqlite", value_name = "ADDRESS", value_parser = store)]
    store: BenchStoreUrl,
    /// Measure only these running servers; the flows and jobs of the benchmark stay there.
    #[arg(long, value_name = "URL", value_delimiter = ',', conflicts_with_all = ["only", "store", "dir", "durability", "server_share"])]
    servers: Vec<String>,
    /// Hundredths of a processor that every server process may use, as if it had a small machine of its own; otherwise
    /// all that there is. Linux, as root.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(10..=10_000))]
    server_share: Option<u32>,
    /// The durability of a commit: strict or fast.
    #[arg(long, default_value = "strict", value_parser = durability)]
    durability: Durability,
    /// The directory of the stores; deleted afterwards.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Parallel runs.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    at_once: u32,
    /// Finished runs in the store of the rows `startup`, `history` and `lists`.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    history: u32,
    /// Jobs in the long queue.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(400_000..=20_000_000))]
    backlog: u32,
    /// Measure everything once with little work: a check that the benchmark works.
    #[arg(long)]
    short: bool,
    /// Print the figures as JSON in every output format.
    #[arg(long)]
    pub json: bool,
    /// Print the figures as a table in Markdown.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

/// The URL of a store, which is not printed: it may hold a password.
#[derive(Clone)]
struct BenchStoreUrl(String);

impl fmt::Debug for BenchStoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://…")
    }
}

fn store(word: &str) -> Result<BenchStoreUrl, String> {
    if word == "sqlite" || word.starts_with("postgres://") || word.starts_with("postgresql://") {
        return Ok(BenchStoreUrl(word.to_owned()));
    }
    Err("not a store: write sqlite, or postgres://user@host/database".to_owned())
}

fn durability(word: &str) -> Result<Durability, String> {
    Durability::from_word(word).ok_or_else(|| format!("`{word}` is no level of durability: strict or fast"))
}

/// The amount of work of every row.
#[derive(Debug, Clone)]
pub(crate) struct BenchPlan {
    pub(crate) durability: Durability,
    pub(crate) stores: StoreFactory,
    /// Hundredths of a processor for a server process, if it is not to have all.
    pub(crate) server_share: Option<u32>,
    pub(crate) at_once: usize,
    pub(crate) rounds: usize,
    /// How long one round of throughput takes.
    pub(crate) round: Duration,
    pub(crate) n_singles: usize,
    pub(crate) n_items: usize,
    /// Nodes of the dag.
    pub(crate) n_nodes: usize,
    /// How long a call takes where branches are compared.
    pub(crate) call: Duration,
    pub(crate) n_history: usize,
    /// Jobs of one round, and in the long queue.
    pub(crate) n_jobs: usize,
    pub(crate) n_backlog: usize,
}

impl BenchArgs {
    fn plan(&self, stores: StoreFactory) -> BenchPlan {
        let at_once = self.at_once as usize;
        let (durability, n_history) = (self.durability, self.history as usize);
        let server_share = self.server_share;
        if self.short {
            let round = Duration::from_millis(300);
            let (n_singles, n_items, n_history) = (20, 200, 200);
            let (n_jobs, n_backlog) = (1_000, 5_000);
            let (n_nodes, call) = (100, Duration::from_millis(5));
            return BenchPlan {
                durability,
                stores,
                server_share,
                at_once: at_once.min(16),
                rounds: 1,
                round,
                n_singles,
                n_items,
                n_nodes,
                call,
                n_history,
                n_jobs,
                n_backlog,
            };
        }
        let round = Duration::from_secs(4);
        let (n_singles, n_items) = (500, 100_000);
        let (n_jobs, n_backlog) = (100_000, self.backlog as usize);
        let (n_nodes, call) = (1_000, Duration::from_millis(100));
        BenchPlan {
            durability,
            stores,
            server_share,
            at_once,
            rounds: 3,
            round,
            n_singles,
            n_items,
            n_nodes,
            call,
            n_history,
            n_jobs,
            n_backlog,
        }
    }

    fn wants(&self, row: BenchRow) -> bool {
        self.only.is_empty() || self.only.contains(&row)
    }
}

/// Measures the requested rows. `progress` receives a line before each row.
pub async fn run(args: &BenchArgs, progress: &dyn Fn(&str)) -> Result<BenchReport> {
    if cfg!(debug_assertions) && !args.short {
        bail!("a debug build says nothing about speed: cargo run --release -- bench, or add --short");
    }
    let parent = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let dir = parent.join(format!("windlass-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let database = (args.store.0 != "sqlite").then(|| args.store.0.clone());
    let stores = StoreFactory::new(dir, database);
    let plan = args.plan(stores.clone());
    let measured = measure(args, &plan, progress).await;
    stores.clear().await;
    measured
}

async fn measure(args: &BenchArgs, plan: &BenchPlan, progress: &dyn Fn(&str)) -> Result<BenchReport> {
    let syncs = disk::syncs_per_second(plan.stores.dir())?;
    let mut report = BenchReport::new(plan.stores.word(), plan.durability.word(), syncs);
    if !args.servers.is_empty() {
        report.extend(cluster::running(plan, &args.servers).await?);
        report.close(disk::syncs_per_second(plan.stores.dir())?);
        return Ok(report);
    }
    for row in BenchRow::value_variants().iter().filter(|row| args.wants(**row)) {
        progress(&format!("measuring {}", name(*row)));
        report.extend(figures(plan, *row).await?);
    }
    report.close(disk::syncs_per_second(plan.stores.dir())?);
    Ok(report)
}

async fn figures(plan: &BenchPlan, row: BenchRow) -> Result<Vec<Measurement>> {
    Ok(match row {
        BenchRow::Steps => vec![steps::throughput(plan).await?],
        BenchRow::Latency => steps::latency(plan).await?.into(),
        BenchRow::Long => vec![steps::forty(plan).await?],
        BenchRow::Foreach => steps::foreach(plan).await?,
        BenchRow::Bytes => vec![steps::bytes(plan).await?],
        BenchRow::Dag => dag::overhead(plan).await?,
        BenchRow::SpeedUpThree => speedup::speed_up(plan, 3).await?.into(),
        BenchRow::SpeedUpHundred => speedup::speed_up(plan, 100).await?.into(),
        BenchRow::Billing => billing::billing(plan).await?.into(),
        BenchRow::Topics => topics::topics(plan).await?.into(),
        BenchRow::Tls => tls::tls(plan).await?.into(),
        BenchRow::Worker => vec![processes::worker(plan).await?],
        BenchRow::Enqueue => vec![jobs::enqueue(plan).await?],
        BenchRow::Bulk => vec![jobs::bulk(plan).await?],
        BenchRow::Process => jobs::process(plan).await?.into(),
        BenchRow::JobLatency => jobs::latency(plan).await?.into(),
        BenchRow::Backlog => jobs::backlog(plan).await?.into(),
        BenchRow::Memory => processes::memory(plan).await?.into(),
        BenchRow::Startup => processes::startup(plan).await?.into(),
        BenchRow::Cluster => cluster::cluster(plan).await?,
        BenchRow::History => history::history(plan).await?,
        BenchRow::Lists => lists::lists(plan).await?,
    })
}

fn name(row: BenchRow) -> String {
    row.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Repeats a measurement for all rounds.
async fn rounds<F, R>(plan: &BenchPlan, what: &str, unit: &'static str, mut once: F) -> Result<Measurement>
where
    F: FnMut(usize) -> R,
    R: Future<Output = Result<f64>>,
{
    let mut values = Vec::with_capacity(plan.rounds);
    for nth in 0..plan.rounds {
        values.push(once(nth).await?);
    }
    Ok(Measurement::new(what, unit, values))
}
