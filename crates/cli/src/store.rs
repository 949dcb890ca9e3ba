//! `windlass store copy`: copies one store to another, compares both and examines the copy.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde::Serialize;
use windlass_runtime::doctor::{DoctorFinding, DoctorReport, examine_at_rest};
use windlass_store::copy::{self, Compared, CopyError, Progress, Stage};
use windlass_store::error::StoreError;

use crate::exit::{Exit, usage};
use crate::help::help;
use crate::output::{self, OutputFormat};
use crate::serve::config::{DatabaseUrl, StoreLocation};
use crate::session::GlobalArgs;

/// The pause between two messages about the progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);
/// Findings that are printed at most.
const FINDINGS_MAX: usize = 20;

const COPIES: &str = "Exit codes:\n  0  both stores hold the same\n  \
     1  not copied, the stores differ, or the doctor found an error\n  2  an address is wrong";

#[derive(Subcommand)]
pub(crate) enum StoreCommand {
    /// Copies everything to an empty store: open runs and jobs, history, accounts, settings.
    ///
    /// No server may use either store. Afterwards the command compares both and examines the copy as `windlass doctor`
    /// does. No server starts on an unfinished copy; run the same command again to repeat it.
    #[command(after_help = help!(
        "  windlass store copy sqlite:windlass.db postgres://windlass@db.example/windlass\n  \
           windlass store copy postgres://windlass@db.example/windlass sqlite:back.db --json",
        COPIES
    ))]
    Copy(StoreCopyArgs),
}

#[derive(Args)]
pub(crate) struct StoreCopyArgs {
    /// The source, written as in --store: sqlite:PATH or postgres://USER@HOST/DATABASE.
    #[arg(env = "WINDLASS_COPY_FROM", hide_env_values = true)]
    from: String,
    /// The target: a file that does not exist yet, or an empty database.
    #[arg(env = "WINDLASS_COPY_TO", hide_env_values = true)]
    to: String,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(command: StoreCommand, options: &GlobalArgs) -> Result<Exit> {
    match command {
        StoreCommand::Copy(copy) => self::copy(&copy, options).await,
    }
}

/// The result for one table.
#[derive(Debug, Serialize)]
struct CopiedTable {
    table: &'static str,
    from: u64,
    to: u64,
    same: bool,
}

#[derive(Debug, Serialize)]
struct StoreCopyReport {
    from: String,
    to: String,
    rows: u64,
    took_ms: u64,
    same: bool,
    tables: Vec<CopiedTable>,
    /// The findings of the doctor in the target.
    doctor: DoctorReport,
}

async fn copy(flags: &StoreCopyArgs, options: &GlobalArgs) -> Result<Exit> {
    let (from, to) = (end(&flags.from).context("FROM")?, end(&flags.to).context("TO")?);
    let (begun, mut progress) = (Instant::now(), CopyProgress::new(options));
    let copied = copy::copy(&from, &to, &mut |at| progress.report(at)).await.map_err(explained)?;
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let doctor = examine_at_rest(copied.store).await.context("the target could not be examined")?;
    let tables: Vec<CopiedTable> = copied.tables.iter().map(of_table).collect();
    let report = StoreCopyReport {
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
    Ok(if is_well { Exit::Done } else { Exit::Failed })
}

/// The store at this address, written as in --store.
pub(crate) fn end(text: &str) -> Result<copy::StoreAddress> {
    match StoreLocation::parse(text).map_err(usage)? {
        StoreLocation::File(path) => Ok(copy::StoreAddress::File(path)),
        StoreLocation::Database(DatabaseUrl(address)) => Ok(copy::StoreAddress::Database(address)),
        StoreLocation::Temporary => bail!("a temporary store ends with its server"),
    }
}

/// An error of the copy with its cause, which names the remedy.
pub(crate) fn explained(error: CopyError) -> anyhow::Error {
    match error {
        CopyError::Store { place, source } => unavailable(source).context(format!("cannot use {place}")),
        CopyError::Table { place, table, source } => unavailable(source)
            .context(format!("table `{table}` of {place}"))
            .context("the copy was cut short, and its target is no store yet: run the same command again"),
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

fn of_table(table: &Compared) -> CopiedTable {
    let Compared { table, n_from, n_to, is_same } = *table;
    CopiedTable { table, from: n_from, to: n_to, same: is_same }
}

fn print(report: &StoreCopyReport, json: bool, options: &GlobalArgs) -> Result<()> {
    let out = options.print();
    if json || out.format() != OutputFormat::Table {
        output::json(&serde_json::to_value(report)?)?;
    } else {
        let word = |same| if same { "the same" } else { "different" };
        let row = |table: &CopiedTable| {
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
        output::message("error: the target differs, and is no store: run the same command again");
    }
    let DoctorReport { n_runs, n_accounts, findings, pages: _ } = &report.doctor;
    if findings.is_empty() {
        output::message(&format!("{n_runs} open runs and {n_accounts} accounts are sound"));
    }
    for DoctorFinding { subject, node, what, .. } in findings.iter().take(FINDINGS_MAX) {
        let node = node.as_ref().map(|node| format!(" {node}")).unwrap_or_default();
        output::message(&format!("error: {subject}{node}: {what}; so it is in {} too", report.from));
    }
    Ok(())
}

/// Prints the progress now and then.
struct CopyProgress {
    is_wanted: bool,
    last: Instant,
}

impl CopyProgress {
    fn new(options: &GlobalArgs) -> Self {
        let is_wanted = !options.print().quiet;
        CopyProgress { is_wanted, last: Instant::now() }
    }

    fn report(&mut self, at: Progress) {
        if !self.is_wanted || self.last.elapsed() < PROGRESS_INTERVAL {
            return;
        }
        self.last = Instant::now();
        let Progress { stage, table, n_done, n_rows } = at;
        let doing = match stage {
            Stage::Copying => "copying",
            Stage::Comparing => "comparing",
            Stage::Waiting => {
                return output::message("a server was alive a moment ago: waiting until it is gone");
            }
        };
        let of = n_rows.map(|n| format!(" of {n}")).unwrap_or_default();
        output::message(&format!("{doing} {table}: {n_done}{of}"));
    }
}
