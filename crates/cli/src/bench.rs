//! `windlass bench`: how fast this is, here and now. Every figure is measured three times, next to the rate at which
//! this disk makes things durable, because nothing else decides as much.
//!
//! `steps`, `dag` and `billing` measure runs in this process (`bed`), `remote` runs and workers in processes of their
//! own, `speedup` branches, `jobs` jobs, `cluster` several servers on one store, `history` what the past costs; `place`
//! is where the stores are, and `report` counts.

mod bed;
mod billing;
mod cluster;
mod dag;
mod disk;
mod history;
mod jobs;
mod place;
mod remote;
mod report;
mod share;
mod speedup;
mod steps;
mod wire;

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use windlass_store::Durability;

use crate::output::{self, Format, Output};
use place::Ground;
use report::{Figure, Report};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Row {
    /// Runs of three durable steps, many at once, functions in the server's process.
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
    /// Runs of three steps made by a pull worker in another process, over HTTP.
    Worker,
    /// Jobs created over HTTP, one a call.
    Enqueue,
    /// Jobs created over HTTP, many a call.
    Bulk,
    /// Jobs claimed, worked on and finished over HTTP, with limits off and on, and one at a time.
    Process,
    /// From the creation of a job to its end, while nothing else happens.
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
}

/// What `windlass bench` can be told.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Only these rows.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Row>,
    /// What the stores are: `sqlite`, files in a directory, or `postgres://…`: databases that are made beside this one,
    /// and deleted afterwards.
    #[arg(long, default_value = "sqlite", value_name = "ADDRESS", value_parser = store)]
    store: Secret,
    /// Servers that run already: only what several servers do is measured there, and what is made there stays.
    #[arg(long, value_name = "URL", value_delimiter = ',', conflicts_with_all = ["only", "store", "dir", "durability", "server_share"])]
    servers: Vec<String>,
    /// Hundredths of a processor that every server process may use, as if it had a small machine of its own; otherwise
    /// all that there is. Linux, as root.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(10..=10_000))]
    server_share: Option<u32>,
    /// What is promised when a caller is answered: strict or fast.
    #[arg(long, default_value = "strict", value_parser = durability)]
    durability: Durability,
    /// Where the stores are made; deleted afterwards.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Runs at once.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    at_once: u32,
    /// Finished runs in the store before its start, or what a history costs, is measured.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    history: u32,
    /// Jobs in the long queue.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(400_000..=20_000_000))]
    backlog: u32,
    /// Everything small and once: to see that it works, not how fast.
    #[arg(long)]
    short: bool,
    /// The figures as JSON, whatever the output is.
    #[arg(long)]
    json: bool,
    /// The figures as a table in Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// An address that may hold a password: it is not shown.
#[derive(Clone)]
struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://…")
    }
}

fn store(word: &str) -> Result<Secret, String> {
    if word == "sqlite" || word.starts_with("postgres://") || word.starts_with("postgresql://") {
        return Ok(Secret(word.to_owned()));
    }
    Err("not a kind of store: say sqlite, or postgres://user@host/database".to_owned())
}

fn durability(word: &str) -> Result<Durability, String> {
    Durability::from_word(word).ok_or_else(|| format!("`{word}` is no level of durability: strict or fast"))
}

/// How much is done of everything.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) durability: Durability,
    pub(crate) ground: Ground,
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
    fn plan(&self, ground: Ground) -> Plan {
        let at_once = self.at_once as usize;
        let (durability, n_history) = (self.durability, self.history as usize);
        let server_share = self.server_share;
        if self.short {
            let round = Duration::from_millis(300);
            let (n_singles, n_items, n_history) = (20, 200, 200);
            let (n_jobs, n_backlog) = (1_000, 5_000);
            let (n_nodes, call) = (100, Duration::from_millis(5));
            return Plan {
                durability,
                ground,
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
        Plan {
            durability,
            ground,
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

    fn wants(&self, row: Row) -> bool {
        self.only.is_empty() || self.only.contains(&row)
    }
}

/// Measures what was asked for and prints it.
pub(crate) async fn run(args: &BenchArgs, output: &Output) -> Result<ExitCode> {
    if cfg!(debug_assertions) && !args.short {
        bail!("a debug build says nothing about speed: cargo run --release -- bench, or add --short");
    }
    let parent = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let dir = parent.join(format!("windlass-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    let database = (args.store.0 != "sqlite").then(|| args.store.0.clone());
    let ground = Ground::new(dir, database);
    let plan = args.plan(ground.clone());
    let measured = measure(args, &plan).await;
    ground.clear().await;
    let report = measured?;
    if args.markdown {
        output::line(&report.markdown())?;
    } else if args.json || output.format() != Format::Table {
        output::json(&report.to_json())?;
    } else {
        output.table(["what", "median", "spread", "unit"], &report.rows())?;
        output::message(&report.footing());
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure(args: &BenchArgs, plan: &Plan) -> Result<Report> {
    let syncs = disk::syncs_per_second(plan.ground.dir())?;
    let mut report = Report::new(plan.ground.word(), plan.durability.word(), syncs);
    if !args.servers.is_empty() {
        report.extend(cluster::running(plan, &args.servers).await?);
        report.close(disk::syncs_per_second(plan.ground.dir())?);
        return Ok(report);
    }
    for row in Row::value_variants().iter().filter(|row| args.wants(**row)) {
        output::message(&format!("measuring {}", name(*row)));
        report.extend(figures(plan, *row).await?);
    }
    report.close(disk::syncs_per_second(plan.ground.dir())?);
    Ok(report)
}

async fn figures(plan: &Plan, row: Row) -> Result<Vec<Figure>> {
    Ok(match row {
        Row::Steps => vec![steps::throughput(plan).await?],
        Row::Latency => steps::latency(plan).await?.into(),
        Row::Long => vec![steps::forty(plan).await?],
        Row::Foreach => steps::foreach(plan).await?,
        Row::Bytes => vec![steps::bytes(plan).await?],
        Row::Dag => dag::overhead(plan).await?,
        Row::SpeedUpThree => speedup::speed_up(plan, 3).await?.into(),
        Row::SpeedUpHundred => speedup::speed_up(plan, 100).await?.into(),
        Row::Billing => billing::billing(plan).await?.into(),
        Row::Worker => vec![remote::worker(plan).await?],
        Row::Enqueue => vec![jobs::enqueue(plan).await?],
        Row::Bulk => vec![jobs::bulk(plan).await?],
        Row::Process => jobs::process(plan).await?.into(),
        Row::JobLatency => jobs::latency(plan).await?.into(),
        Row::Backlog => jobs::backlog(plan).await?.into(),
        Row::Memory => remote::memory(plan).await?.into(),
        Row::Startup => remote::startup(plan).await?.into(),
        Row::Cluster => cluster::cluster(plan).await?,
        Row::History => history::history(plan).await?,
    })
}

fn name(row: Row) -> String {
    row.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Measures something as often as planned.
async fn rounds<F, R>(plan: &Plan, what: &str, unit: &'static str, mut once: F) -> Result<Figure>
where
    F: FnMut(usize) -> R,
    R: Future<Output = Result<f64>>,
{
    let mut values = Vec::with_capacity(plan.rounds);
    for nth in 0..plan.rounds {
        values.push(once(nth).await?);
    }
    Ok(Figure::new(what, unit, values))
}
