//! `windlass job`: creating jobs, looking at them, waiting for them, ending their wait or them.
//!
//! A job is what the queue platform surface calls a task.

mod batch;
mod create;
mod look;
mod spec;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use windlass_sdk::types::TaskDetail;

use crate::help::help;
use crate::session::{Options, Session, duration};

pub(crate) use create::{Push, push};
pub(crate) use look::{attempt_of, attempt_row, every_attempt, facts_of};
pub(crate) use spec::{Spec, task_of};

const ENDS: &str = "Exit codes:
  0    the job completed
  1    the job failed, or there is no such job
  2    the job was cancelled
  3    the server could not be asked; one that answered before is waited for, until --timeout
  124  it did not end in time";

pub(crate) const CREATES: &str = "Exit codes:
  0    created, or there already; with --wait: completed
  1    refused, or a file could not be read; with --wait: failed
  2    with --wait: cancelled
  3    the server could not be asked
  124  it did not end in time";

const LOOKS: &str = "Exit codes:
  0  shown
  1  there is no such job
  3  the server could not be asked";

const ACTS: &str = "Exit codes:
  0  done
  1  the job refused, or there is no such job
  3  the server could not be asked";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Creates a job, or many from a file.
    ///
    /// It is said by flags, by a JSON object in a file (-f), or both: flags win. With --batch, a file holds many: a JSON
    /// array, or an object a line. What is answered is durable.
    #[command(after_help = help!(
        "  windlass job create thumbnail --payload '{\"file\": \"cat.png\"}' --priority 5\n  \
           windlass job create report --queue nightly --in 30m --dedup-key report-7\n  \
           windlass job create -f job.json --wait --timeout 30s\n  \
           windlass job create --batch jobs.jsonl -q",
        CREATES
    ))]
    Create(Box<create::Create>),
    /// Lists jobs, newest first.
    #[command(after_help = help!(
        "  windlass job list\n  windlass job list --status failed --queue mail --since 24h\n  \
           windlass job list --status retrying -q | xargs -n1 windlass job retry",
        "Exit codes:\n  0  listed\n  3  the server could not be asked"
    ))]
    List(look::List),
    /// Shows a job and its latest attempt.
    #[command(after_help = help!("  windlass job show f2841987", LOOKS))]
    Show(Which),
    /// Lists every attempt at a job, oldest first.
    #[command(after_help = help!("  windlass job attempts f2841987 -o json", LOOKS))]
    Attempts(Which),
    /// Waits until a job has ended and shows it.
    #[command(after_help = help!("  windlass job wait f2841987 --timeout 5m -o json", ENDS))]
    Wait(Wait),
    /// Cancels a job; whoever works on it is told to stop.
    #[command(after_help = help!("  windlass job cancel f2841987", ACTS))]
    Cancel(Which),
    /// Tries a job now that waits for its next attempt, or opens a failed or cancelled one again.
    #[command(after_help = help!("  windlass job retry f2841987", ACTS))]
    Retry(Which),
}

/// A job.
#[derive(Args)]
pub(crate) struct Which {
    /// The id of the job, or as much of its beginning as no other has.
    job: String,
}

/// A job whose end is awaited.
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
        Command::Create(create) => create::create(*create, session).await,
        Command::List(list) => look::list(list, session).await,
        Command::Show(Which { job }) => look::show(&session.job_id(&job).await?, session).await,
        Command::Attempts(Which { job }) => look::attempts(&session.job_id(&job).await?, session).await,
        Command::Wait(Wait { which, timeout }) => {
            look::wait(&session.job_id(&which.job).await?, timeout, session).await
        }
        Command::Cancel(Which { job }) => {
            told(&session.client.cancel_task(&session.job_id(&job).await?).await?, session)
        }
        Command::Retry(Which { job }) => {
            told(&session.client.retry_task(&session.job_id(&job).await?).await?, session)
        }
    }
}

fn told(job: &TaskDetail, session: &Session) -> Result<ExitCode> {
    let (id, status) = (&job.task.id, job.display_status.as_str());
    let asked = if job.task.cancel_requested { " (its worker is told to stop)" } else { "" };
    session.out.value(job, id, || format!("{id} {}{asked}", session.out.painted(status, status)))?;
    Ok(ExitCode::SUCCESS)
}
