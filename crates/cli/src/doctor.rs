//! `windlass doctor`: what may be wrong between this program and the server, and with what the server does.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use windlass_sdk::Client;
use windlass_sdk::types::{self, RunStatus, RunsQuery, Worker};

use crate::output;
use crate::session::{Options, in_words, now_ms};
use crate::stats;

/// How far two clocks may be apart before somebody should look.
const SKEW_MS: i64 = 2_000;
/// Open runs that are looked at.
const RUNS: usize = 1_000;
/// Runs that are asked what they wait for.
const ASKED: usize = 50;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    /// `ok`, `warning` or `error`.
    status: &'static str,
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, detail: String) -> Self {
        Finding { check, status: "ok", detail, command: None }
    }

    fn warning(check: &'static str, detail: String, command: &str) -> Self {
        Finding { check, status: "warning", detail, command: Some(command.to_owned()) }
    }

    fn error(check: &'static str, detail: String, command: &str) -> Self {
        Finding { check, status: "error", detail, command: Some(command.to_owned()) }
    }
}

#[derive(Args)]
pub(crate) struct Flags {
    /// Wake what would sleep for ever.
    #[arg(long)]
    repair: bool,
}

pub(crate) async fn run(flags: &Flags, options: &Options) -> Result<ExitCode> {
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
    let is_bad = findings.iter().any(|finding| finding.status == "error");
    Ok(if is_bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn examine(client: &Client, repair: bool) -> Vec<Finding> {
    let health = match client.health().await {
        Ok(health) => health,
        Err(error) => {
            let start = "windlass serve        (or name another one with --server)";
            return vec![Finding::error("reachable", error.to_string(), start)];
        }
    };
    let mut findings = vec![Finding::ok("reachable", client.base().to_owned())];
    findings.push(version(&health.version));
    findings.extend(ready(client).await);
    findings.extend(workers(client).await);
    findings.extend(runs(client).await);
    findings.extend(state(client, repair).await);
    findings
}

/// What the server finds when it looks at everything it has.
async fn state(client: &Client, repair: bool) -> Vec<Finding> {
    let found = match client.examine(repair).await {
        Ok(found) => found,
        Err(error) => {
            return vec![Finding::error("state", error.to_string(), "look into the log of the server")];
        }
    };
    if found.findings.is_empty() {
        let detail =
            format!("{} open runs and {} accounts are as they must be", found.n_runs, found.n_accounts);
        return vec![Finding::ok("state", detail)];
    }
    found.findings.into_iter().map(of_state).collect()
}

fn of_state(found: types::Finding) -> Finding {
    let node = found.node.map(|node| format!(" {node}")).unwrap_or_default();
    let detail = format!("{}{node}: {}", found.subject, found.what);
    match found.repaired {
        true => Finding::ok("state", format!("{detail} (repaired)")),
        false => Finding::error("state", detail, "windlass doctor --repair"),
    }
}

fn version(theirs: &str) -> Finding {
    let ours = env!("CARGO_PKG_VERSION");
    match theirs {
        "" => Finding::warning(
            "version",
            "the server does not say its version".to_owned(),
            "windlass --version",
        ),
        same if same == ours => Finding::ok("version", format!("{ours}, like this program")),
        other => Finding::warning(
            "version",
            format!("the server is {other}, this program {ours}"),
            "use the program that came with the server",
        ),
    }
}

/// Whether the server takes work, and whether its clock and this one agree.
async fn ready(client: &Client) -> Vec<Finding> {
    let asked = now_ms();
    let readiness = match client.readiness().await {
        Ok(readiness) => readiness,
        Err(error) => {
            return vec![Finding::error("ready", error.to_string(), "look into the log of the server")];
        }
    };
    let answered = now_ms();
    let ready = match readiness.ready {
        true => Finding::ok("ready", "it takes work".to_owned()),
        false => Finding::error("ready", readiness.troubles.join("; "), "look into the log of the server"),
    };
    // The answer was made somewhere between the question and its arrival.
    let skew = (asked - readiness.timestamp.0).max(readiness.timestamp.0 - answered).max(0);
    let clock = if skew > SKEW_MS {
        Finding::warning("clock", format!("{} apart", in_words(skew)), "set both clocks by NTP")
    } else {
        Finding::ok("clock", "the two clocks agree".to_owned())
    };
    let redis = readiness.redis.map(|redis| match redis.up {
        true => Finding::ok("redis", stats::redis(&redis)),
        false => {
            Finding::warning("redis", stats::redis(&redis), "look at Redis, and into the log of the server")
        }
    });
    [ready, clock].into_iter().chain(redis).collect()
}

async fn workers(client: &Client) -> Vec<Finding> {
    let workers = match client.workers().await {
        Ok(workers) => workers.workers,
        Err(error) => {
            return vec![Finding::error("workers", error.to_string(), "windlass api GET /api/v1/workers")];
        }
    };
    let is_live = |worker: &&Worker| worker.status == "online";
    let n_live = workers.iter().filter(is_live).count();
    if n_live == 0 {
        let detail = format!("none is alive ({} were seen)", workers.len());
        return vec![Finding::warning("workers", detail, "windlass worker")];
    }
    let mut services: Vec<&str> = workers
        .iter()
        .filter(is_live)
        .flat_map(|worker| worker.services.iter().map(String::as_str))
        .collect();
    services.sort_unstable();
    services.dedup();
    vec![Finding::ok("workers", format!("{n_live} alive, for {}", services.join(", ")))]
}

/// Open runs whose nodes wait for a worker that is not there.
async fn runs(client: &Client) -> Vec<Finding> {
    let query = RunsQuery {
        status: Some("pending,running,waiting,canceling".to_owned()),
        limit: Some(RUNS),
        ..RunsQuery::default()
    };
    let open = match client.runs(&query).await {
        Ok(open) => open.items,
        Err(error) => return vec![Finding::error("runs", error.to_string(), "windlass run list")],
    };
    let asleep = open.iter().filter(|run| run.wake_at.is_none() && run.status != RunStatus::Running);
    let mut unserved = Vec::new();
    for run in asleep.take(ASKED) {
        let Ok(why) = client.why(&run.id).await else { continue };
        unserved.extend(why.reasons.into_iter().filter(|reason| reason.waits_for == "worker"));
    }
    match unserved.first() {
        Some(first) => {
            let detail = format!("{} nodes wait for a worker: {}", unserved.len(), first.text);
            let command = first.command.clone().unwrap_or_else(|| "windlass worker".to_owned());
            vec![Finding::warning("runs", detail, &command)]
        }
        None => vec![Finding::ok("runs", format!("{} open, none waits for a worker", open.len()))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_repaired_is_well() {
        let found = |repaired| types::Finding {
            subject: "run_1".to_owned(),
            node: Some("a".to_owned()),
            what: "nothing wakes it".to_owned(),
            repaired,
        };
        assert_eq!(of_state(found(true)).status, "ok");
        let left = of_state(found(false));
        assert_eq!((left.status, left.detail.as_str()), ("error", "run_1 a: nothing wakes it"));
    }
}
