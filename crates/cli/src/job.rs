//! `windlass job`: creates, shows, awaits, cancels and retries jobs.

mod batch;
mod create;
mod show;
mod spec;

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use windlass_sdk::contract::JobDetail;

use crate::exit::Exit;
use crate::help::{CHANGE_EXITS, SHOW_EXITS, START_EXITS, WAIT_EXITS, help};
use crate::session::{GlobalArgs, Session, duration};

pub(crate) use create::{QueuePushArgs, push};
pub(crate) use show::{all_attempts, attempt_of, attempt_row, facts_of};
pub(crate) use spec::{JobSpecArgs, task_of};

#[derive(Subcommand)]
pub(crate) enum JobCommand {
    /// Creates a job, or many from a file.
    ///
    /// Flags, a JSON object in a file (-f), or both describe the job: flags win. With --batch, a file holds many jobs: a
    /// JSON array, or one object a line. A job is durable when the command returns.
    #[command(after_help = help!(
        "  windlass job create thumbnail --payload '{\"file\": \"cat.png\"}' --priority 5\n  \
           windlass job create report --queue nightly --in 30m --retries 5 --dedup-key report-7\n  \
           windlass job create -f job.json --wait --timeout 30s\n  \
           windlass job create --batch jobs.jsonl",
        START_EXITS
    ))]
    Create(Box<create::JobCreateArgs>),
    /// Lists jobs, newest first.
    #[command(after_help = help!(
        "  windlass job list\n  windlass job list --status failed --queue mail --since 24h\n  \
           windlass job list --status retrying --quiet | xargs -n1 windlass job retry",
        SHOW_EXITS
    ))]
    List(show::JobListArgs),
    /// Shows a job and its latest attempt.
    #[command(after_help = help!("  windlass job show job_0190a1b2", SHOW_EXITS))]
    Show(JobSelector),
    /// Lists every attempt at a job, oldest first.
    #[command(after_help = help!("  windlass job attempts job_0190a1b2 -o json", SHOW_EXITS))]
    Attempts(JobSelector),
    /// Waits until a job has ended and shows it.
    #[command(after_help = help!("  windlass job wait job_0190a1b2 --timeout 5m -o json", WAIT_EXITS))]
    Wait(JobWaitArgs),
    /// Cancels a job; its worker is told to stop.
    #[command(after_help = help!("  windlass job cancel job_0190a1b2", CHANGE_EXITS))]
    Cancel(JobSelector),
    /// Starts the next attempt at a waiting job now, or opens a failed or canceled job again.
    #[command(after_help = help!("  windlass job retry job_0190a1b2", CHANGE_EXITS))]
    Retry(JobSelector),
}

/// A job.
#[derive(Args)]
pub(crate) struct JobSelector {
    /// The id of the job, or a unique prefix of it.
    job: String,
}

/// A job to wait for.
#[derive(Args)]
pub(crate) struct JobWaitArgs {
    #[command(flatten)]
    which: JobSelector,
    /// Stop waiting after this time: 90s, 15m, 2h.
    #[arg(long, value_parser = duration)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(command: JobCommand, options: &GlobalArgs) -> Result<Exit> {
    let session = &options.session()?;
    match command {
        JobCommand::Create(create) => create::create(*create, session).await,
        JobCommand::List(list) => show::list(list, session).await,
        JobCommand::Show(JobSelector { job }) => show::show(&session.job_id(&job).await?, session).await,
        JobCommand::Attempts(JobSelector { job }) => {
            show::attempts(&session.job_id(&job).await?, session).await
        }
        JobCommand::Wait(JobWaitArgs { which, timeout }) => {
            show::wait(&session.job_id(&which.job).await?, timeout, session).await
        }
        JobCommand::Cancel(JobSelector { job }) => {
            print_job(&session.client.jobs().cancel(&session.job_id(&job).await?).await?, session)
        }
        JobCommand::Retry(JobSelector { job }) => {
            print_job(&session.client.jobs().retry(&session.job_id(&job).await?).await?, session)
        }
    }
}

fn print_job(job: &JobDetail, session: &Session) -> Result<Exit> {
    let (id, status) = (&job.summary.id, job.summary.status.word());
    let note = if job.summary.cancel_requested { " (its worker is told to stop)" } else { "" };
    session.out.value(job, id, || format!("{id} {}{note}", session.out.painted(status, status)))?;
    Ok(Exit::Done)
}
