//! `windlass schedule`: jobs and runs that start by the clock.

mod look;
mod make;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::help::help;
use crate::session::{Options, Session};

const LOOKS: &str =
    "Exit codes:\n  0  shown\n  1  there is no such schedule\n  3  the server could not be asked";
const ACTS: &str =
    "Exit codes:\n  0  done\n  1  refused, or there is no such schedule\n  3  the server could not be asked";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Makes a schedule of a job or of runs of a flow.
    ///
    /// It is said by flags, by a JSON object in a file (-f) as the API takes it, or both: flags win.
    #[command(after_help = help!(
        "  windlass schedule create --cron '0 9 * * 1-5' --tz Europe/Berlin --job report --queue nightly\n  \
           windlass schedule create --cron @hourly --flow orders/close -p region=north --overlap queue\n  \
           windlass schedule create --cron '*/10 * * * * *' --like f2841987\n  \
           windlass schedule create -f schedule.json --disabled",
        "Exit codes:\n  0  made\n  1  refused, or a file could not be read\n  3  the server could not be asked"
    ))]
    Create(Box<make::Create>),
    /// Lists schedules, oldest first.
    #[command(after_help = help!("  windlass schedule list", LOOKS))]
    List,
    /// Shows a schedule: what it starts, what is running, when it is due.
    #[command(after_help = help!("  windlass schedule show report", LOOKS))]
    Show(Which),
    /// Prints when a schedule is due next, in its time zone.
    #[command(after_help = help!("  windlass schedule next report --count 20", LOOKS))]
    Next {
        #[command(flatten)]
        which: Which,
        /// So many.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        count: u32,
    },
    /// Prints when a cron expression would be due.
    #[command(after_help = help!(
        "  windlass schedule preview '30 2 * * *' --tz Europe/Berlin --dst twice",
        "Exit codes:\n  0  printed\n  1  it is no cron expression, or there is no such time zone\n  3  the server could not be asked"
    ))]
    Preview(look::PreviewFlags),
    /// Lets a schedule fire.
    #[command(visible_alias = "resume", after_help = help!("  windlass schedule enable report", ACTS))]
    Enable(Which),
    /// Lets a schedule fire no more; what it started goes on.
    #[command(visible_alias = "pause", after_help = help!("  windlass schedule disable report", ACTS))]
    Disable(Which),
    /// Starts what a schedule starts, now; its slots stay as they are.
    #[command(visible_alias = "run-now", after_help = help!("  windlass schedule trigger report", ACTS))]
    Trigger(Which),
    /// Changes a schedule; what is not said stays.
    #[command(after_help = help!(
        "  windlass schedule edit report --cron '0 8 * * 1-5'\n  \
           windlass schedule edit report --priority 5 --catchup last",
        ACTS
    ))]
    Edit(Box<make::Edit>),
    /// Deletes a schedule; what it started goes on.
    #[command(after_help = help!("  windlass schedule delete report", ACTS))]
    Delete(Which),
}

/// A schedule.
#[derive(Args)]
pub(crate) struct Which {
    /// The name of the schedule, its id, or as much of the id's beginning as no other has.
    schedule: String,
}

pub(crate) async fn run(command: Command, options: &Options) -> Result<ExitCode> {
    let session = &options.session()?;
    let client = &session.client;
    match command {
        Command::Create(create) => make::create(*create, session).await,
        Command::Edit(edit) => make::edit(*edit, session).await,
        Command::List => look::list(session).await,
        Command::Show(which) => look::shown(&session.schedule(&which.schedule).await?, session),
        Command::Next { which, count } => {
            let schedule = session.schedule(&which.schedule).await?;
            look::slots(&client.next_runs(&schedule.id, Some(count as usize)).await?, session)
        }
        Command::Preview(preview) => look::preview(preview, session).await,
        Command::Enable(which) => toggle(&which, true, session).await,
        Command::Disable(which) => toggle(&which, false, session).await,
        Command::Trigger(which) => {
            let schedule = session.schedule(&which.schedule).await?;
            look::triggered(&client.trigger_schedule(&schedule.id).await?, session)
        }
        Command::Delete(which) => {
            let schedule = session.schedule(&which.schedule).await?;
            client.delete_schedule(&schedule.id).await?;
            look::deleted(&schedule, session)
        }
    }
}

async fn toggle(which: &Which, enabled: bool, session: &Session) -> Result<ExitCode> {
    let schedule = session.schedule(&which.schedule).await?;
    look::shown(&session.client.toggle_schedule(&schedule.id, Some(enabled)).await?, session)
}
