//! `windlass store`: moving everything from one store to another.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde::Serialize;
use windlass_runtime::doctor::{Examination, Finding, examine_at_rest};
use windlass_store::copy::{self, Compared, CopyError, Progress, Stage};
use windlass_store::error::StoreError;

use crate::help::help;
use crate::output::{self, Format};
use crate::serve::config::{Address, Place, place};
use crate::session::Options;

/// Between two words about how far it is.
const OFTEN: Duration = Duration::from_secs(2);
/// Findings that are told one by one.
const FINDINGS: usize = 20;

const COPIES: &str = "Exit codes:\n  0  everything is there, and the same\n  \
     1  nothing was copied, something differs, or something is not as it must be";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Copies everything from one store to another that is empty: open runs and jobs, history, accounts, settings.
    ///
    /// No server may use either. Afterwards everything is read back and compared, and looked at as by `windlass doctor`.
    /// A copy that is cut short leaves a target that no server starts on; the same command begins anew.
    #[command(after_help = help!(
        "  windlass store copy sqlite:windlass.db postgres://windlass@db.example/windlass\n  \
           windlass store copy postgres://windlass@db.example/windlass sqlite:back.db --json",
        COPIES
    ))]
    Copy(Copy),
}

#[derive(Args)]
pub(crate) struct Copy {
    /// What is copied, written as in --store: sqlite:PATH or postgres://USER@HOST/DATABASE.
    #[arg(env = "WINDLASS_COPY_FROM", hide_env_values = true)]
    from: String,
    /// Where to: a file that is not there yet, or a database in which nothing was kept.
    #[arg(env = "WINDLASS_COPY_TO", hide_env_values = true)]
    to: String,
    /// Print what came of it as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(command: Command, options: &Options) -> Result<ExitCode> {
    match command {
        Command::Copy(copy) => self::copy(&copy, options).await,
    }
}

/// What came of a table.
#[derive(Debug, Serialize)]
struct Told {
    table: &'static str,
    from: u64,
    to: u64,
    same: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    from: String,
    to: String,
    rows: u64,
    took_ms: u64,
    same: bool,
    tables: Vec<Told>,
    /// What was looked at in the target, and what is not as it must be.
    doctor: Examination,
}

async fn copy(flags: &Copy, options: &Options) -> Result<ExitCode> {
    let (from, to) = (end(&flags.from).context("FROM")?, end(&flags.to).context("TO")?);
    let (begun, mut progress) = (Instant::now(), Teller::new(options));
    let copied = copy::copy(&from, &to, &mut |at| progress.tell(at)).await.map_err(told)?;
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let doctor = examine_at_rest(copied.store).await.context("the target could not be examined")?;
    let tables: Vec<Told> = copied.tables.iter().map(of_table).collect();
    let report = Report {
        from: from.to_string(),
        to: to.to_string(),
        rows: tables.iter().map(|table| table.to).sum(),
        took_ms,
        same: tables.iter().all(|table| table.same),
        tables,
        doctor,
    };
    print(&report, flags.json, options)?;
    let is_well = report.same && report.doctor.findings.is_empty();
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn end(text: &str) -> Result<copy::Place> {
    match place(text)? {
        Place::File(path) => Ok(copy::Place::File(path)),
        Place::Database(Address(address)) => Ok(copy::Place::Database(address)),
        Place::Temporary => bail!("a store in a temporary directory is gone when its server is"),
    }
}

/// What is behind an error says what to do about it.
fn told(error: CopyError) -> anyhow::Error {
    match error {
        CopyError::Store { place, source } => unavailable(source).context(format!("cannot use {place}")),
        CopyError::Table { place, table, source } => unavailable(source)
            .context(format!("table `{table}` of {place}"))
            .context("the copy was cut short, and its target is no store yet: the same command begins anew"),
        CopyError::Missing(_)
        | CopyError::Same(_)
        | CopyError::Unfinished { .. }
        | CopyError::NotEmpty { .. }
        | CopyError::InUse { .. }
        | CopyError::Moved(_) => error.into(),
    }
}

fn unavailable(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::Unavailable(reason) => anyhow::anyhow!("{reason}"),
        other => other.into(),
    }
}

fn of_table(table: &Compared) -> Told {
    let Compared { table, n_from, n_to, is_same } = *table;
    Told { table, from: n_from, to: n_to, same: is_same }
}

fn print(report: &Report, json: bool, options: &Options) -> Result<()> {
    let out = options.print();
    if json || out.format() != Format::Table {
        output::json(&serde_json::to_value(report)?)?;
    } else {
        let word = |same| if same { "the same" } else { "different" };
        let row = |table: &Told| {
            [
                table.table.to_owned(),
                table.from.to_string(),
                table.to.to_string(),
                word(table.same).to_owned(),
            ]
        };
        let rows: Vec<_> = report.tables.iter().map(row).collect();
        out.table(["table", "from", "to", "rows are"], &rows)?;
    }
    if report.same {
        output::message(&format!(
            "{} rows from {} are in {} ({} ms)",
            report.rows, report.from, report.to, report.took_ms
        ));
    } else {
        output::message("error: the target differs, and is no store: the same command begins anew");
    }
    let Examination { n_runs, n_accounts, findings } = &report.doctor;
    if findings.is_empty() {
        output::message(&format!("{n_runs} open runs and {n_accounts} accounts are as they must be"));
    }
    for Finding { subject, node, what, .. } in findings.iter().take(FINDINGS) {
        let node = node.as_ref().map(|node| format!(" {node}")).unwrap_or_default();
        output::message(&format!("error: {subject}{node}: {what}; so it is in {} too", report.from));
    }
    Ok(())
}

/// Says how far it is, now and then.
struct Teller {
    is_wanted: bool,
    last: Instant,
}

impl Teller {
    fn new(options: &Options) -> Self {
        let is_wanted = !options.print().quiet;
        Teller { is_wanted, last: Instant::now() }
    }

    fn tell(&mut self, at: Progress) {
        if !self.is_wanted || self.last.elapsed() < OFTEN {
            return;
        }
        self.last = Instant::now();
        let Progress { stage, table, n_done, n_rows } = at;
        let doing = match stage {
            Stage::Copying => "copying",
            Stage::Comparing => "comparing",
            Stage::Waiting => {
                return output::message("a server was heard of a moment ago: waiting until it is gone");
            }
        };
        let of = n_rows.map(|n| format!(" of {n}")).unwrap_or_default();
        output::message(&format!("{doing} {table}: {n_done}{of}"));
    }
}
