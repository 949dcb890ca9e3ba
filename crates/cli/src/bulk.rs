//! `windlass bulk`: one action on many runs, which a query or their ids name.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::Value;
use windlass_sdk::contract::{
    BulkAction, BulkArgs, BulkDryRun, BulkInfo, BulkKind, BulkRequest, BulkStatus, PageQuery,
};

use crate::exit::{Exit, invalid};
use crate::help::{CHANGE_EXITS, SHOW_EXITS, help};
use crate::output;
use crate::run::json_or_text;
use crate::session::{GlobalArgs, Session, in_words, now_ms};

/// The pause between two looks at the progress.
const LOOK: Duration = Duration::from_millis(200);
/// Failures that are printed.
const FAILURES_SHOWN: usize = 20;

const ACT_EXITS: &str = "Exit codes:
  0  every run took the action, or nothing was changed
  1  a run refused it, or the server refused the request
  3  the server cannot be reached";

#[derive(Subcommand)]
pub(crate) enum BulkCommand {
    /// Cancels runs.
    #[command(after_help = help!(
        "  windlass bulk cancel -q 'flow:orders status:waiting'\n  \
           windlass bulk cancel -q 'flow:orders status:waiting' --reason 'the shop is closed' --yes", ACT_EXITS
    ))]
    Cancel(BulkRunsArgs),
    /// Tries the failed and canceled nodes of ended runs again.
    #[command(after_help = help!("  windlass bulk retry -q 'status:failed error~\"time out\" after:1d' --yes", ACT_EXITS))]
    Retry(BulkRunsArgs),
    /// Runs ended runs again from a node on.
    #[command(after_help = help!("  windlass bulk rerun --from ship -q 'flow:orders status:failed' --yes", ACT_EXITS))]
    Rerun {
        #[command(flatten)]
        runs: BulkRunsArgs,
        /// The node from which the runs start.
        #[arg(long, value_name = "NODE")]
        from: String,
        /// The shared state with which they start, a JSON object.
        #[arg(long, value_name = "JSON", value_parser = json_or_text)]
        shared: Option<Value>,
    },
    /// Pauses runs.
    #[command(after_help = help!("  windlass bulk pause -q 'flow:orders' --yes", ACT_EXITS))]
    Pause(BulkRunsArgs),
    /// Resumes paused runs.
    #[command(after_help = help!("  windlass bulk resume -q 'flow:orders status:paused' --yes", ACT_EXITS))]
    Resume(BulkRunsArgs),
    /// Sends a signal to runs.
    #[command(after_help = help!("  windlass bulk signal -q 'flow:orders' --key go --value yes --yes", ACT_EXITS))]
    Signal {
        #[command(flatten)]
        runs: BulkRunsArgs,
        /// The key of the signal.
        #[arg(long)]
        key: String,
        /// The value: JSON, or plain text.
        #[arg(long, value_parser = json_or_text, default_value = "null")]
        value: Value,
    },
    /// Lists bulk actions, newest first.
    #[command(after_help = help!("  windlass bulk list", SHOW_EXITS))]
    List {
        /// The number of bulk actions at most.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Shows a bulk action with its progress and its failures.
    #[command(after_help = help!("  windlass bulk show bulk_0190a1b2c3d47000800000000000000b", SHOW_EXITS))]
    Show {
        /// The id of the bulk action.
        bulk: String,
    },
    /// Ends a bulk action: no further run takes it.
    #[command(after_help = help!("  windlass bulk stop bulk_0190a1b2c3d47000800000000000000b", CHANGE_EXITS))]
    Stop {
        /// The id of the bulk action.
        bulk: String,
    },
}

/// The runs of a bulk action.
#[derive(Args)]
pub(crate) struct BulkRunsArgs {
    /// The runs, by their ids.
    #[arg(value_name = "RUN", conflicts_with = "query", required_unless_present = "query")]
    runs: Vec<String>,
    /// The runs, by a query such as `status:failed flow:orders after:1d`; empty = all.
    #[arg(short, long)]
    query: Option<String>,
    /// The reason, for the audit.
    #[arg(long)]
    reason: Option<String>,
    /// Change the runs; without it the command only counts them.
    #[arg(long)]
    yes: bool,
    /// Do not wait for the end.
    #[arg(long, requires = "yes")]
    detach: bool,
}

pub(crate) async fn run(command: BulkCommand, options: &GlobalArgs) -> Result<Exit> {
    let session = options.session()?;
    let none = BulkArgs::default;
    match command {
        BulkCommand::Cancel(runs) => act(BulkAction::Cancel, none(), runs, &session).await,
        BulkCommand::Retry(runs) => act(BulkAction::Retry, none(), runs, &session).await,
        BulkCommand::Pause(runs) => act(BulkAction::Pause, none(), runs, &session).await,
        BulkCommand::Resume(runs) => act(BulkAction::Resume, none(), runs, &session).await,
        BulkCommand::Rerun { runs, from, shared } => {
            let shared = match shared {
                None => None,
                Some(Value::Object(shared)) => Some(shared),
                Some(_) => return Err(invalid("--shared: give a JSON object".to_owned())),
            };
            act(BulkAction::Rerun, BulkArgs { from: Some(from), shared, ..none() }, runs, &session).await
        }
        BulkCommand::Signal { runs, key, value } => {
            let args = BulkArgs { key: Some(key), value: Some(value), ..none() };
            act(BulkAction::Signal, args, runs, &session).await
        }
        BulkCommand::List { limit } => list(limit, &session).await,
        BulkCommand::Show { bulk } => {
            let bulk = session.client.bulks().show(&bulk).await?;
            session.out.value(&bulk, &bulk.id, || text(&bulk))?;
            Ok(Exit::Done)
        }
        BulkCommand::Stop { bulk } => {
            let bulk = session.client.bulks().cancel(&bulk).await?;
            session.out.value(&bulk, &bulk.id, || text(&bulk))?;
            Ok(Exit::Done)
        }
    }
}

async fn act(action: BulkAction, args: BulkArgs, runs: BulkRunsArgs, session: &Session) -> Result<Exit> {
    let mut ids = Vec::new();
    for run in &runs.runs {
        ids.push(session.run_id(run).await?);
    }
    let bulk = BulkRequest {
        kind: BulkKind::Runs,
        ids: (!ids.is_empty()).then_some(ids),
        query: runs.query,
        action,
        args,
        reason: runs.reason.unwrap_or_default(),
        dry_run: false,
    };
    if !runs.yes {
        let dry_run = session.client.bulks().dry_run(&bulk).await?;
        session.out.value(&dry_run, "", || dry_run_text(action, &dry_run))?;
        output::message("nothing was changed: add --yes to change the runs");
        return Ok(Exit::Done);
    }
    let accepted = session.client.bulks().create(&bulk).await?;
    let mut shown = session.client.bulks().show(&accepted.id).await?;
    while !runs.detach && shown.status == BulkStatus::Running {
        tokio::time::sleep(LOOK).await;
        shown = session.client.bulks().show(&accepted.id).await?;
    }
    session.out.value(&shown, &shown.id, || text(&shown))?;
    Ok(if shown.failed == 0 { Exit::Done } else { Exit::Failed })
}

async fn list(limit: u32, session: &Session) -> Result<Exit> {
    let page = PageQuery { cursor: None, limit: Some(limit as usize) };
    let bulks = session.client.bulks().list(&page).await?.items;
    let now = now_ms();
    session.out.list(
        ["id", "action", "status", "done", "failed", "started", "query"],
        &bulks,
        |bulk| bulk.id.clone(),
        |bulk| {
            [
                bulk.id.clone(),
                bulk.action.word().to_owned(),
                status(bulk.status).to_owned(),
                format!("{}/{}", bulk.done, bulk.matched),
                bulk.failed.to_string(),
                in_words(now.saturating_sub(bulk.created_at.0)),
                bulk.query.clone().unwrap_or_default(),
            ]
        },
    )?;
    Ok(Exit::Done)
}

fn status(status: BulkStatus) -> &'static str {
    match status {
        BulkStatus::Running => "running",
        BulkStatus::Completed => "completed",
        BulkStatus::Canceled => "canceled",
    }
}

fn dry_run_text(action: BulkAction, dry_run: &BulkDryRun) -> String {
    let more = if dry_run.more { "more than " } else { "" };
    let by_status: Vec<String> =
        dry_run.by_status.iter().map(|(status, n)| format!("{n} {status}")).collect();
    output::facts([
        ("runs", format!("{more}{}", dry_run.matched)),
        (
            action.word(),
            format!("{} would take it, {} would refuse it", dry_run.outcomes.apply, dry_run.outcomes.refuse),
        ),
        ("status", by_status.join(", ")),
    ])
}

fn text(bulk: &BulkInfo) -> String {
    let mut text = output::facts([
        ("id", bulk.id.clone()),
        ("action", bulk.action.word().to_owned()),
        ("status", status(bulk.status).to_owned()),
        ("query", bulk.query.clone().unwrap_or_default()),
        ("done", format!("{} of {}", bulk.done, bulk.matched)),
        ("failed", bulk.failed.to_string()),
    ]);
    for failure in bulk.failures.iter().take(FAILURES_SHOWN) {
        text += &format!("{}  {}: {}\n", failure.id, failure.code, failure.message);
    }
    text
}
