//! `windlass schedule`: creates and controls cron schedules of jobs and runs.

mod edit;
mod show;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::help::{CHANGE_EXITS, SHOW_EXITS, help};
use crate::session::{GlobalArgs, Session};

#[derive(Subcommand)]
pub(crate) enum ScheduleCommand {
    /// Creates a schedule of jobs or of runs of a flow.
    ///
    /// Flags, a JSON object in a file (-f), or both describe it: flags win.
    #[command(after_help = help!(
        "  windlass schedule create --cron '0 9 * * 1-5' --tz Europe/Berlin --job report --queue nightly\n  \
           windlass schedule create --cron @hourly --flow orders/close -p region=north --overlap queue\n  \
           windlass schedule create --cron '*/10 * * * * *' --like f2841987\n  \
           windlass schedule create -f schedule.json --disabled",
        "Exit codes:\n  0  created\n  1  refused, or a file cannot be read\n  3  the server cannot be reached"
    ))]
    Create(Box<edit::ScheduleCreateArgs>),
    /// Lists schedules, oldest first.
    #[command(after_help = help!("  windlass schedule list", SHOW_EXITS))]
    List,
    /// Shows a schedule: its job or flow, its running ones, its next times.
    #[command(after_help = help!("  windlass schedule show report", SHOW_EXITS))]
    Show(ScheduleSelector),
    /// Prints the next times of a schedule, in its time zone.
    #[command(after_help = help!("  windlass schedule next report --count 20", SHOW_EXITS))]
    Next {
        #[command(flatten)]
        which: ScheduleSelector,
        /// The number of times.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        count: u32,
    },
    /// Prints the next times of a cron expression.
    #[command(after_help = help!(
        "  windlass schedule preview '30 2 * * *' --tz Europe/Berlin --dst twice",
        "Exit codes:\n  0  printed\n  1  not a cron expression, or no such time zone\n  3  the server cannot be reached"
    ))]
    Preview(show::SchedulePreviewArgs),
    /// Enables a schedule.
    #[command(visible_alias = "resume", after_help = help!("  windlass schedule enable report", CHANGE_EXITS))]
    Enable(ScheduleSelector),
    /// Disables a schedule; its running jobs and runs go on.
    #[command(visible_alias = "pause", after_help = help!("  windlass schedule disable report", CHANGE_EXITS))]
    Disable(ScheduleSelector),
    /// Fires a schedule now; its next times stay.
    #[command(visible_alias = "run-now", after_help = help!("  windlass schedule trigger report", CHANGE_EXITS))]
    Trigger(ScheduleSelector),
    /// Changes a schedule; fields without a flag stay.
    #[command(after_help = help!(
        "  windlass schedule edit report --cron '0 8 * * 1-5'\n  \
           windlass schedule edit report --priority 5 --catchup last",
        CHANGE_EXITS
    ))]
    Edit(Box<edit::ScheduleEditArgs>),
    /// Deletes a schedule; its running jobs and runs go on.
    #[command(after_help = help!("  windlass schedule delete report", CHANGE_EXITS))]
    Delete(ScheduleSelector),
}

/// A schedule.
#[derive(Args)]
pub(crate) struct ScheduleSelector {
    /// The name of the schedule, its id, or a unique prefix of the id.
    schedule: String,
}

pub(crate) async fn run(command: ScheduleCommand, options: &GlobalArgs) -> Result<Exit> {
    let session = &options.session()?;
    let client = &session.client;
    match command {
        ScheduleCommand::Create(create) => edit::create(*create, session).await,
        ScheduleCommand::Edit(edit) => edit::edit(*edit, session).await,
        ScheduleCommand::List => show::list(session).await,
        ScheduleCommand::Show(which) => {
            show::print_schedule(&session.schedule(&which.schedule).await?, session)
        }
        ScheduleCommand::Next { which, count } => {
            let schedule = session.schedule(&which.schedule).await?;
            show::slots(&client.schedules().next(&schedule.id, Some(count as usize)).await?, session)
        }
        ScheduleCommand::Preview(preview) => show::preview(preview, session).await,
        ScheduleCommand::Enable(which) => toggle(&which, true, session).await,
        ScheduleCommand::Disable(which) => toggle(&which, false, session).await,
        ScheduleCommand::Trigger(which) => {
            let schedule = session.schedule(&which.schedule).await?;
            show::print_triggered(&client.schedules().trigger(&schedule.id).await?, session)
        }
        ScheduleCommand::Delete(which) => {
            let schedule = session.schedule(&which.schedule).await?;
            client.schedules().delete(&schedule.id).await?;
            show::print_deleted(&schedule, session)
        }
    }
}

async fn toggle(which: &ScheduleSelector, enabled: bool, session: &Session) -> Result<Exit> {
    let schedule = session.schedule(&which.schedule).await?;
    show::print_schedule(&session.client.schedules().toggle(&schedule.id, Some(enabled)).await?, session)
}
