//! `windlass run`: starting runs, looking at them, telling them something.

mod act;
mod children;
mod logs;
mod look;
mod picture;
mod round;
mod start;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::Value;
use windlass_sdk::types::RunStatus;

use crate::help::help;
use crate::session::{Options, duration};
use crate::stats;

pub(crate) use act::told;
pub(crate) use start::key_value;

const ENDS: &str = "Exit codes:
  0    the run completed
  1    the run failed, or there is no such run
  2    the run was canceled
  3    the server could not be asked; one that answered before is waited for, until --timeout
  124  it did not end in time";

const ACTS: &str = "Exit codes:
  0  done
  1  the run refused, or there is no such run
  3  the server could not be asked";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Starts a run of a flow.
    #[command(after_help = help!(
        "  windlass run start graph/branching -p name=Ada -p age=36\n  \
           windlass run start orders -f params.json --watch\n  \
           windlass run start orders --request-id order-7 --wait --timeout 30s",
        "Exit codes:\n  0  started; with --wait or --watch: completed\n  1  refused; with --wait or --watch: failed\n  \
           2  with --wait or --watch: canceled\n  3  the server could not be asked\n  124  it did not end in time"
    ))]
    Start(start::Start),
    /// Lists runs, newest first.
    #[command(after_help = help!(
        "  windlass run list\n  windlass run list --status failed --since 24h\n  \
           windlass run list --flow orders -q | xargs -n1 windlass run cancel",
        "Exit codes:\n  0  listed\n  3  the server could not be asked"
    ))]
    List(look::List),
    /// Shows a run and its nodes.
    #[command(after_help = help!("  windlass run show run_0190a1b2", ACTS))]
    Show(Which),
    /// Lists every attempt at every node, oldest first.
    #[command(after_help = help!("  windlass run attempts run_0190a1b2 -o json", ACTS))]
    Attempts(Which),
    /// Follows a run until it ends: redrawn in place for people, one line a change for pipes.
    #[command(after_help = help!("  windlass run watch run_0190a1b2 --timeout 5m", ENDS))]
    Watch(Wait),
    /// Shows the state of a run, now or after so many entries of its journal.
    #[command(after_help = help!(
        "  windlass run state run_0190a1b2\n  windlass run state run_0190a1b2 --at 3 -o json", ACTS
    ))]
    State {
        #[command(flatten)]
        which: Which,
        /// After so many entries of the journal.
        #[arg(long, value_name = "N")]
        at: Option<u64>,
    },
    /// Shows what changed in a run between two entries of its journal.
    #[command(after_help = help!(
        "  windlass run diff run_0190a1b2           the last entry\n  windlass run diff run_0190a1b2 3 7", ACTS
    ))]
    Diff {
        #[command(flatten)]
        which: Which,
        /// After so many entries of the journal; the one before TO unless given.
        from: Option<u64>,
        /// After so many entries of the journal; all of them unless given.
        to: Option<u64>,
    },
    /// Prints what happened to a run, one entry of its journal a line.
    #[command(after_help = help!("  windlass run events run_0190a1b2 --follow", ACTS))]
    Events {
        #[command(flatten)]
        which: Which,
        /// Go on until the run ends.
        #[arg(long)]
        follow: bool,
    },
    /// Prints what happened to a run in words, and what those said who worked for it.
    #[command(after_help = help!(
        "  windlass run logs run_0190a1b2\n  windlass run logs run_0190a1b2 --level warn --node render\n  \
           windlass run logs run_0190a1b2 --follow", ACTS
    ))]
    Logs(logs::Logs),
    /// Gives a run a value from outside.
    #[command(after_help = help!(
        "  windlass run signal run_0190a1b2 payment '{\"receipt\": \"R-7\"}'\n  \
           windlass run signal run_0190a1b2 go yes", ACTS
    ))]
    Signal {
        #[command(flatten)]
        which: Which,
        /// What the value is called.
        key: String,
        /// The value: JSON, or text where it is none.
        #[arg(value_parser = json_or_text)]
        value: Value,
        /// The same signal sent again under the same key is no news.
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Stops a run.
    #[command(after_help = help!("  windlass run cancel run_0190a1b2 --reason 'wrong order'", ACTS))]
    Cancel {
        #[command(flatten)]
        which: Which,
        /// Why, for whoever reads the journal.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Lets a run start nothing new.
    #[command(after_help = help!("  windlass run pause run_0190a1b2", ACTS))]
    Pause(Which),
    /// Lets a paused run go on.
    #[command(after_help = help!("  windlass run resume run_0190a1b2", ACTS))]
    Resume(Which),
    /// Advances a run that was started with --manual by one step.
    #[command(after_help = help!("  windlass run step run_0190a1b2", ACTS))]
    Step(Which),
    /// Runs again from a node on.
    #[command(after_help = help!(
        "  windlass run rerun run_0190a1b2 --from ship --plan\n  \
           windlass run rerun run_0190a1b2 --from loop/2/ship\n  \
           windlass run rerun run_0190a1b2 --from ship --shared '{\"order\": {\"item\": \"lamp\"}}'\n  \
           windlass run rerun run_0190a1b2 --from ship --shared shared.json", ACTS
    ))]
    Rerun(round::Rerun),
    /// Tries again what failed or was canceled in a run that has ended; what is done stays done.
    #[command(after_help = help!(
        "  windlass run retry run_0190a1b2 --plan\n  windlass run retry run_0190a1b2", ACTS
    ))]
    Retry(round::Retry),
    /// Sets what a run may spend; calls that wait for a larger budget are looked at again.
    #[command(after_help = help!("  windlass run budget run_0190a1b2 5000", ACTS))]
    Budget {
        #[command(flatten)]
        which: Which,
        /// What the estimates of all its calls together may reach, in whole minor units.
        #[arg(value_parser = clap::value_parser!(i64).range(0..))]
        amount: i64,
    },
    /// Ends a suspended or waiting node with a result.
    #[command(after_help = help!(
        "  windlass run continue run_0190a1b2 render '{\"urls\": [\"asset://film.mp4\"]}'", ACTS
    ))]
    Continue {
        #[command(flatten)]
        which: Which,
        /// The node.
        node: String,
        /// Its result: JSON, or text where it is none.
        #[arg(value_parser = json_or_text, default_value = "null")]
        result: Value,
    },
    /// Waits until a run has ended and shows it.
    #[command(after_help = help!("  windlass run wait run_0190a1b2 --timeout 5m -o json", ENDS))]
    Wait(Wait),
    /// Says how many calls of a run went on at once, and how long its nodes took.
    #[command(after_help = help!("  windlass run stats run_0190a1b2", ACTS))]
    Stats(Which),
    /// Says what a run waits for, and what would clear it.
    #[command(after_help = help!("  windlass run why run_0190a1b2", ACTS))]
    Why(Which),
}

/// A run.
#[derive(Args)]
pub(crate) struct Which {
    /// The id of the run, or as much of its beginning as no other has.
    #[arg(value_name = "RUN")]
    run: String,
}

/// A run whose end is awaited.
#[derive(Args)]
pub(crate) struct Wait {
    #[command(flatten)]
    which: Which,
    /// Give up after so long: 90s, 15m, 2h.
    #[arg(long, value_parser = duration)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(command: Command, options: &Options) -> Result<ExitCode> {
    let session = &options.session()?;
    match command {
        Command::Start(start) => start::start(start, session).await,
        Command::List(list) => look::list(list, session).await,
        Command::Show(which) => look::show(&which, session).await,
        Command::Attempts(which) => look::attempts(&which, session).await,
        Command::Watch(Wait { which, timeout }) => {
            let run = session.run_id(&which.run).await?;
            watch::watch(&run, timeout, session).await
        }
        Command::State { which, at } => look::state(&which, at, session).await,
        Command::Diff { which, from, to } => round::diff(&which, from, to, session).await,
        Command::Rerun(rerun) => round::rerun(rerun, session).await,
        Command::Retry(retry) => round::retry(&retry, session).await,
        Command::Events { which, follow } => watch::events(&which, follow, session).await,
        Command::Logs(logs) => logs::logs(logs, session).await,
        Command::Wait(Wait { which, timeout }) => {
            let run = session.run_id(&which.run).await?;
            look::wait(&run, timeout, session).await
        }
        Command::Stats(which) => stats::of_run(&which.run, session).await,
        Command::Why(which) => look::why(&which, session).await,
        act => act::act(act, session).await,
    }
}

/// What the end of a run ends a command with.
fn code_of(status: RunStatus) -> ExitCode {
    match status {
        RunStatus::Completed => ExitCode::SUCCESS,
        RunStatus::Canceled | RunStatus::Canceling => ExitCode::from(2),
        RunStatus::Failed
        | RunStatus::Pending
        | RunStatus::Running
        | RunStatus::Waiting
        | RunStatus::Paused => ExitCode::FAILURE,
    }
}

/// A value as people write it: JSON, or text where it is none.
pub(crate) fn json_or_text(text: &str) -> Result<Value, std::convert::Infallible> {
    Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
}
