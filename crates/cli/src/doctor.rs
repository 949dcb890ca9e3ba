//! `windlass doctor`: checks of the connection to the server, and of the server's state.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use windlass_engine::server_time::SKEW_SHOWN_MS;
use windlass_runtime::doctor::{SetBackReport, set_back_at_rest};
use windlass_sdk::Client;
use windlass_sdk::contract::{self, RunStatus, RunsQuery, WorkerInfo};
use windlass_store::copy;
use windlass_store::store::SetBack;

use crate::exit::Exit;
use crate::output;
use crate::session::{GlobalArgs, in_words, now_ms};
use crate::{stats, store};

/// Milliseconds by which two clocks may differ.
const SKEW_MS_MAX: i64 = 2_000;
/// Open runs that are checked.
const RUNS_MAX: usize = 1_000;
/// Runs whose reasons to wait are read.
const REASONS_MAX: usize = 50;

/// The name of the check that the server answers.
const REACHABLE: &str = "reachable";

/// The outcome of one check.
#[derive(Debug, Serialize)]
struct DoctorCheck {
    check: &'static str,
    /// `ok`, `warning` or `error`.
    status: &'static str,
    detail: String,
    /// The command that repairs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

impl DoctorCheck {
    fn ok(check: &'static str, detail: String) -> Self {
        DoctorCheck { check, status: "ok", detail, command: None }
    }

    fn warning(check: &'static str, detail: String, command: &str) -> Self {
        DoctorCheck { check, status: "warning", detail, command: Some(command.to_owned()) }
    }

    fn error(check: &'static str, detail: String, command: &str) -> Self {
        DoctorCheck { check, status: "error", detail, command: Some(command.to_owned()) }
    }
}

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Wake runs that nothing else would wake; with --store, set times back that are ahead of the clock.
    #[arg(long)]
    repair: bool,
    /// Repair this store, which no server may use, after a clock that was wrong: sqlite:PATH or
    /// postgres://USER@HOST/DATABASE.
    #[arg(long, requires = "repair", env = "WINDLASS_REPAIR_STORE", hide_env_values = true)]
    store: Option<String>,
}

/// Rows of one kind whose times were set back.
#[derive(Debug, Serialize)]
struct SetBackRow {
    rows: &'static str,
    set_back: usize,
}

pub(crate) async fn run(flags: &DoctorArgs, options: &GlobalArgs) -> Result<Exit> {
    if let Some(address) = &flags.store {
        return repair_store(address, options).await;
    }
    let session = options.session()?;
    let findings = examine(&session.client, flags.repair).await;
    session.out.list(
        ["check", "status", "detail"],
        &findings,
        |finding| finding.check.to_owned(),
        |finding| [finding.check.to_owned(), finding.status.to_owned(), finding.detail.clone()],
    )?;
    for finding in &findings {
        if let Some(command) = &finding.command {
            output::message(&format!("{}: try\n  {command}", finding.check));
        }
    }
    let failed = |check: &DoctorCheck| check.status == "error";
    Ok(match findings.iter().find(|check| failed(check)) {
        Some(check) if check.check == REACHABLE => Exit::Unreachable,
        Some(_) => Exit::Failed,
        None => Exit::Done,
    })
}

/// Sets the times of a stopped store back that are ahead of the clock, and says which.
async fn repair_store(address: &str, options: &GlobalArgs) -> Result<Exit> {
    let place = store::end(address)?;
    let mut is_told = false;
    let mut tell = |_| {
        if !std::mem::replace(&mut is_told, true) {
            output::message("a server was alive a moment ago: waiting until it is gone");
        }
    };
    let stopped = copy::open_stopped(&place, &mut tell).await.map_err(store::explained)?;
    let SetBackReport { now, n_open_jobs, rows } = set_back_at_rest(stopped.store.clone()).await?;
    let SetBack { n_servers, n_workers, n_runs, n_jobs, n_schedules, n_messages, n_rates, n_commands } = rows;
    let rows = [
        ("servers", n_servers),
        ("workers", n_workers),
        ("runs", n_runs),
        ("open jobs", n_open_jobs),
        ("jobs", n_jobs),
        ("schedules", n_schedules),
        ("messages between runs", n_messages),
        ("rates of queues", n_rates),
        ("commands", n_commands),
    ]
    .map(|(rows, set_back)| SetBackRow { rows, set_back });
    options.print().list(
        ["rows", "set back"],
        &rows,
        |row| row.rows.to_owned(),
        |row| [row.rows.to_owned(), row.set_back.to_string()],
    )?;
    output::message(&format!("times of {place} that were ahead of {now} are set back to it"));
    output::message("journals, the ledger, the audit and logs keep the times that they recorded");
    Ok(Exit::Done)
}

async fn examine(client: &Client, repair: bool) -> Vec<DoctorCheck> {
    let health = match client.health().await {
        Ok(health) => health,
        Err(error) => {
            let start = "windlass serve        (or name another one with --server)";
            return vec![DoctorCheck::error(REACHABLE, error.to_string(), start)];
        }
    };
    let mut findings = vec![DoctorCheck::ok(REACHABLE, client.base().to_owned())];
    findings.push(version(&health.version));
    findings.extend(ready(client).await);
    findings.extend(workers(client).await);
    findings.extend(refused_workers(client).await);
    findings.extend(runs(client).await);
    findings.extend(state(client, repair).await);
    findings
}

/// Problems that the server finds in its own state.
async fn state(client: &Client, repair: bool) -> Vec<DoctorCheck> {
    let found = match client.examine(repair).await {
        Ok(found) => found,
        Err(error) => {
            return vec![DoctorCheck::error("state", error.to_string(), "read the log of the server")];
        }
    };
    let pages = pages(&found.pages);
    let state = if found.findings.is_empty() {
        let detail =
            format!("{} open runs and {} accounts are as they must be", found.n_runs, found.n_accounts);
        vec![DoctorCheck::ok("state", detail)]
    } else {
        found.findings.into_iter().map(of_state).collect()
    };
    state.into_iter().chain(pages).collect()
}

/// The tables of a file whose pages were checked; damage is told as state.
fn pages(found: &contract::PageCheck) -> Option<DoctorCheck> {
    let contract::PageCheck { n_checked, n_tables, failures } = found;
    let checked = format!("checked {n_checked} of {n_tables} tables");
    if let Some(first) = failures.first() {
        let detail = if *n_tables == 0 { first.clone() } else { format!("{checked}: {first}") };
        return Some(DoctorCheck::warning("pages", detail, "windlass doctor        (again)"));
    }
    let detail = match (*n_tables, n_checked >= n_tables) {
        (0, _) => return None,
        (_, true) => checked,
        (_, false) => format!("{checked} in ten seconds; the next check goes on with the others"),
    };
    Some(DoctorCheck::ok("pages", detail))
}

fn of_state(found: contract::DoctorFinding) -> DoctorCheck {
    let node = found.node.map(|node| format!(" {node}")).unwrap_or_default();
    let detail = format!("{}{node}: {}", found.subject, found.what);
    match found.repaired {
        true => DoctorCheck::ok("state", format!("{detail} (repaired)")),
        false => {
            let remedy = found.remedy.as_deref().unwrap_or("windlass doctor --repair");
            DoctorCheck::error("state", detail, remedy)
        }
    }
}

fn version(theirs: &str) -> DoctorCheck {
    let ours = env!("CARGO_PKG_VERSION");
    match theirs {
        "" => DoctorCheck::warning(
            "version",
            "the server does not report its version".to_owned(),
            "windlass --version",
        ),
        same if same == ours => DoctorCheck::ok("version", format!("{ours}, like this program")),
        other => DoctorCheck::warning(
            "version",
            format!("the server is {other}, this program {ours}"),
            "use the program that came with the server",
        ),
    }
}

/// Whether the server is ready, and whether its clock agrees with this one.
async fn ready(client: &Client) -> Vec<DoctorCheck> {
    let asked = now_ms();
    let readiness = match client.readiness().await {
        Ok(readiness) => readiness,
        Err(error) => {
            return vec![DoctorCheck::error("ready", error.to_string(), "read the log of the server")];
        }
    };
    let answered = now_ms();
    let ready = match readiness.ready {
        true if !readiness.warnings.is_empty() => {
            let what = readiness.warnings.join("; ");
            DoctorCheck::warning(
                "ready",
                format!("it accepts requests, but {what}"),
                "read the log of the server",
            )
        }
        true => DoctorCheck::ok("ready", "it accepts requests".to_owned()),
        false => DoctorCheck::error("ready", readiness.troubles.join("; "), "read the log of the server"),
    };
    // The server read its clock between these two moments.
    let skew = (asked - readiness.timestamp.0).max(readiness.timestamp.0 - answered).max(0);
    let clock = if readiness.clock_skew_ms > SKEW_SHOWN_MS {
        let behind = in_words(i64::try_from(readiness.clock_skew_ms).unwrap_or(i64::MAX));
        let detail = format!("the wall clock of the server is {behind} behind the time of the server");
        DoctorCheck::warning("clock", detail, "set the clock of the server by NTP, or wait until both meet")
    } else if skew > SKEW_MS_MAX {
        DoctorCheck::warning("clock", format!("{} apart", in_words(skew)), "set both clocks by NTP")
    } else {
        DoctorCheck::ok("clock", "both clocks agree".to_owned())
    };
    let redis = readiness.redis.map(|redis| match redis.up {
        true => DoctorCheck::ok("redis", stats::redis(&redis)),
        false => {
            DoctorCheck::warning("redis", stats::redis(&redis), "check Redis, and read the log of the server")
        }
    });
    [ready, clock].into_iter().chain(redis).collect()
}

async fn workers(client: &Client) -> Vec<DoctorCheck> {
    let workers = match client.workers().all().await {
        Ok(workers) => workers,
        Err(error) => {
            return vec![DoctorCheck::error(
                "workers",
                error.to_string(),
                "windlass api GET /api/v1/workers",
            )];
        }
    };
    let is_live = |worker: &&WorkerInfo| worker.status == "online";
    let n_live = workers.iter().filter(is_live).count();
    if n_live == 0 {
        let detail = format!("none is alive ({} were seen)", workers.len());
        return vec![DoctorCheck::warning("workers", detail, "windlass worker")];
    }
    let mut services: Vec<&str> = workers
        .iter()
        .filter(is_live)
        .flat_map(|worker| worker.services.iter().map(String::as_str))
        .collect();
    services.sort_unstable();
    services.dedup();
    vec![DoctorCheck::ok("workers", format!("{n_live} alive, for {}", services.join(", ")))]
}

/// Workers that the server refused because of their addresses.
async fn refused_workers(client: &Client) -> Option<DoctorCheck> {
    let refused = client.workers().refused().await.ok()?;
    let first = refused.first()?;
    let detail = format!("{} refused; `{}`: {}", refused.len(), first.id, first.reason);
    Some(DoctorCheck::warning("refused workers", detail, "windlass worker list"))
}

/// Open runs whose nodes wait for a worker that is not there.
async fn runs(client: &Client) -> Vec<DoctorCheck> {
    let query = RunsQuery {
        status: Some("pending,running,waiting,canceling".to_owned()),
        limit: Some(RUNS_MAX),
        ..RunsQuery::default()
    };
    let open = match client.runs().list(&query).await {
        Ok(open) => open.items,
        Err(error) => return vec![DoctorCheck::error("runs", error.to_string(), "windlass run list")],
    };
    let asleep = open.iter().filter(|run| run.wake_at.is_none() && run.status != RunStatus::Running);
    let mut unserved = Vec::new();
    for run in asleep.take(REASONS_MAX) {
        let Ok(why) = client.runs().why(&run.id).await else { continue };
        unserved.extend(why.reasons.into_iter().filter(|reason| reason.waits_for == "worker"));
    }
    match unserved.first() {
        Some(first) => {
            let detail = format!("{} nodes wait for a worker: {}", unserved.len(), first.text);
            let command = first.command.clone().unwrap_or_else(|| "windlass worker".to_owned());
            vec![DoctorCheck::warning("runs", detail, &command)]
        }
        None => vec![DoctorCheck::ok("runs", format!("{} open, none waits for a worker", open.len()))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_were_not_checked_are_named() {
        let found = |n_checked, failures| contract::PageCheck { n_checked, n_tables: 9, failures };
        let told = |found| pages(&found).map(|check| (check.status, check.detail));
        assert_eq!(told(contract::PageCheck::default()), None);
        assert_eq!(told(found(9, Vec::new())), Some(("ok", "checked 9 of 9 tables".to_owned())));
        let (status, detail) = told(found(4, Vec::new())).unwrap();
        assert!(status == "ok" && detail.starts_with("checked 4 of 9 tables in ten seconds"), "{detail}");
        let (status, detail) = told(found(8, vec!["table `jobs` cannot be checked".to_owned()])).unwrap();
        assert!(status == "warning" && detail.contains("`jobs`"), "{detail}");
    }

    #[test]
    fn only_a_repaired_finding_is_ok() {
        let found = |repaired| contract::DoctorFinding {
            subject: "run_1".to_owned(),
            node: Some("a".to_owned()),
            what: "nothing wakes it".to_owned(),
            repaired,
            remedy: None,
        };
        assert_eq!(of_state(found(true)).status, "ok");
        let left = of_state(found(false));
        assert_eq!((left.status, left.detail.as_str()), ("error", "run_1 a: nothing wakes it"));
    }
}
