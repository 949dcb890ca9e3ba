//! `windlass run`: starts, shows and controls runs.

mod actions;
mod children;
mod logs;
mod render;
mod rerun;
mod show;
mod start;
mod watch;

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::Value;
use windlass_sdk::contract::RunStatus;

use crate::amount::amount;
use crate::exit::Exit;
use crate::help::{CHANGE_EXITS, SHOW_EXITS, START_EXITS, WAIT_EXITS, help};
use crate::json::read_json;
use crate::session::{GlobalArgs, duration};
use crate::stats;

pub(crate) use actions::print_run;
pub(crate) use start::{key_value, priority};

#[derive(Subcommand)]
pub(crate) enum RunCommand {
    /// Starts a run of a flow.
    #[command(after_help = help!(
        "  windlass run start graph/branching -p name=Ada -p age=36\n  \
           windlass run start orders -f params.json --watch\n  \
           windlass run start orders --request-id order-7 --wait --timeout 30s",
        START_EXITS
    ))]
    Start(start::RunStartArgs),
    /// Lists runs, newest first.
    #[command(after_help = help!(
        "  windlass run list\n  windlass run list -q 'status:failed flow:orders after:1d'\n  \
           windlass run list --flow orders --quiet | xargs -n1 windlass run cancel",
        SHOW_EXITS
    ))]
    List(show::RunListArgs),
    /// Shows a run and its nodes.
    #[command(after_help = help!("  windlass run show run_0190a1b2", CHANGE_EXITS))]
    Show(RunSelector),
    /// Lists every attempt at every node, oldest first.
    #[command(after_help = help!("  windlass run attempts run_0190a1b2 -o json", CHANGE_EXITS))]
    Attempts(RunSelector),
    /// Follows a run until it ends: redrawn in place on a terminal, one line a change on a pipe.
    #[command(after_help = help!("  windlass run watch run_0190a1b2 --timeout 5m", WAIT_EXITS))]
    Watch(RunWaitArgs),
    /// Shows the state of a run, now or after an entry of its journal.
    #[command(after_help = help!(
        "  windlass run state run_0190a1b2\n  windlass run state run_0190a1b2 --at 3 -o json", CHANGE_EXITS
    ))]
    State {
        #[command(flatten)]
        which: RunSelector,
        /// The number of entries of the journal.
        #[arg(long, value_name = "N")]
        at: Option<u64>,
    },
    /// Shows the changes of a run between two entries of its journal.
    #[command(after_help = help!(
        "  windlass run diff run_0190a1b2           the last entry\n  windlass run diff run_0190a1b2 3 7", CHANGE_EXITS
    ))]
    Diff {
        #[command(flatten)]
        which: RunSelector,
        /// The earlier entry [default: the one before TO].
        from: Option<u64>,
        /// The later entry [default: the last].
        to: Option<u64>,
    },
    /// Prints the journal of a run, one entry a line.
    #[command(after_help = help!("  windlass run events run_0190a1b2 --follow", CHANGE_EXITS))]
    Events {
        #[command(flatten)]
        which: RunSelector,
        /// Print new entries until the run ends.
        #[arg(long)]
        follow: bool,
    },
    /// Prints the log of a run: its events in words, and the lines of its workers.
    #[command(after_help = help!(
        "  windlass run logs run_0190a1b2\n  windlass run logs run_0190a1b2 --level warn --node render\n  \
           windlass run logs run_0190a1b2 --follow", CHANGE_EXITS
    ))]
    Logs(logs::RunLogsArgs),
    /// Sends a signal: a value from outside.
    #[command(after_help = help!(
        "  windlass run signal run_0190a1b2 payment '{\"receipt\": \"R-7\"}'\n  \
           windlass run signal run_0190a1b2 go yes", CHANGE_EXITS
    ))]
    Signal {
        #[command(flatten)]
        which: RunSelector,
        /// The key of the signal.
        key: String,
        /// The value: JSON, or plain text.
        #[arg(value_parser = json_or_text)]
        value: Value,
        /// An id that makes a repeated signal a no-op.
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Cancels a run.
    #[command(after_help = help!("  windlass run cancel run_0190a1b2 --reason 'wrong order'", CHANGE_EXITS))]
    Cancel {
        #[command(flatten)]
        which: RunSelector,
        /// The reason, kept in the journal.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Pauses a run: it starts no new node.
    #[command(after_help = help!("  windlass run pause run_0190a1b2", CHANGE_EXITS))]
    Pause(RunSelector),
    /// Resumes a paused run.
    #[command(after_help = help!("  windlass run resume run_0190a1b2", CHANGE_EXITS))]
    Resume(RunSelector),
    /// Advances a run that was started with --manual by one step.
    #[command(after_help = help!("  windlass run step run_0190a1b2", CHANGE_EXITS))]
    Step(RunSelector),
    /// Runs an ended run again from a node on.
    #[command(after_help = help!(
        "  windlass run rerun run_0190a1b2 --from ship --dry-run\n  \
           windlass run rerun run_0190a1b2 --from loop/2/ship\n  \
           windlass run rerun run_0190a1b2 --from ship --shared '{\"order\": {\"item\": \"lamp\"}}'\n  \
           windlass run rerun run_0190a1b2 --from ship --shared shared.json", CHANGE_EXITS
    ))]
    Rerun(rerun::RunRerunArgs),
    /// Retries the failed and canceled nodes of an ended run; completed nodes stay.
    #[command(after_help = help!(
        "  windlass run retry run_0190a1b2 --dry-run\n  windlass run retry run_0190a1b2", CHANGE_EXITS
    ))]
    Retry(rerun::RunRetryArgs),
    /// Sets the budget of a run; calls that wait for a larger one go on.
    #[command(after_help = help!("  windlass run budget run_0190a1b2 5000", CHANGE_EXITS))]
    Budget {
        #[command(flatten)]
        which: RunSelector,
        /// The most that the estimates of all its calls may reach, in whole numbers of the smallest unit of money.
        #[arg(allow_negative_numbers = true, value_parser = amount)]
        amount: i64,
    },
    /// Ends a suspended or waiting node with a result.
    #[command(after_help = help!(
        "  windlass run continue run_0190a1b2 render '{\"urls\": [\"asset://film.mp4\"]}'", CHANGE_EXITS
    ))]
    Continue {
        #[command(flatten)]
        which: RunSelector,
        /// The node.
        node: String,
        /// Its result: JSON, or plain text.
        #[arg(value_parser = json_or_text, default_value = "null")]
        result: Value,
    },
    /// Waits until a run has ended and shows it.
    #[command(after_help = help!("  windlass run wait run_0190a1b2 --timeout 5m -o json", WAIT_EXITS))]
    Wait(RunWaitArgs),
    /// Shows the parallel calls of a run and the durations of its nodes.
    #[command(after_help = help!("  windlass run stats run_0190a1b2", CHANGE_EXITS))]
    Stats(RunSelector),
    /// Explains why a run waits, and how to let it go on.
    #[command(after_help = help!("  windlass run why run_0190a1b2", CHANGE_EXITS))]
    Why(RunSelector),
}

/// A run.
#[derive(Args)]
pub(crate) struct RunSelector {
    /// The id of the run, or a unique prefix of it.
    #[arg(value_name = "RUN")]
    run: String,
}

/// A run to wait for.
#[derive(Args)]
pub(crate) struct RunWaitArgs {
    #[command(flatten)]
    which: RunSelector,
    /// Stop waiting after this time: 90s, 15m, 2h.
    #[arg(long, value_parser = duration)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(command: RunCommand, options: &GlobalArgs) -> Result<Exit> {
    let session = &options.session()?;
    match command {
        RunCommand::Start(start) => start::start(start, session).await,
        RunCommand::List(list) => show::list(list, session).await,
        RunCommand::Show(which) => show::show(&which, session).await,
        RunCommand::Attempts(which) => show::attempts(&which, session).await,
        RunCommand::Watch(RunWaitArgs { which, timeout }) => {
            let run = session.run_id(&which.run).await?;
            watch::watch(&run, timeout, session).await
        }
        RunCommand::State { which, at } => show::state(&which, at, session).await,
        RunCommand::Diff { which, from, to } => rerun::diff(&which, from, to, session).await,
        RunCommand::Rerun(rerun) => rerun::rerun(rerun, session).await,
        RunCommand::Retry(retry) => rerun::retry(&retry, session).await,
        RunCommand::Events { which, follow } => watch::events(&which, follow, session).await,
        RunCommand::Logs(logs) => logs::logs(logs, session).await,
        RunCommand::Wait(RunWaitArgs { which, timeout }) => {
            let run = session.run_id(&which.run).await?;
            show::wait(&run, timeout, session).await
        }
        RunCommand::Stats(which) => stats::print_run_stats(&which.run, session).await,
        RunCommand::Why(which) => show::why(&which, session).await,
        act => actions::act(act, session).await,
    }
}

/// The exit code for the end of a run.
fn exit_of(status: RunStatus) -> Exit {
    match status {
        RunStatus::Completed => Exit::Done,
        RunStatus::Canceled | RunStatus::Canceling => Exit::Canceled,
        RunStatus::Failed
        | RunStatus::Pending
        | RunStatus::Running
        | RunStatus::Waiting
        | RunStatus::Paused => Exit::Failed,
    }
}

/// Reads JSON, or else plain text.
pub(crate) fn json_or_text(text: &str) -> Result<Value, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(_) => read_json(text.as_bytes()).map_err(|flaw| flaw.to_string()),
        Err(_plain) => Ok(Value::String(text.to_owned())),
    }
}
