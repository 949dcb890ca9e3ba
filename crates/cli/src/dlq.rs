//! `windlass dlq`: lists, replays and discards dead letters.

mod replay;
mod show;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::help::{CHANGE_EXITS, SHOW_EXITS, help};
use crate::session::GlobalArgs;

#[derive(Subcommand)]
pub(crate) enum DlqCommand {
    /// Lists dead letters, oldest first, of one queue or of all.
    #[command(after_help = help!(
        "  windlass dlq list\n  windlass dlq list mail --group 3f2a9c0d11e8b7a4 --limit 200", SHOW_EXITS
    ))]
    List(show::DlqListArgs),
    /// Lists groups of dead letters with the same error, of one queue or of all.
    #[command(after_help = help!("  windlass dlq groups\n  windlass dlq groups mail -o json", SHOW_EXITS))]
    Groups {
        /// The queue [default: all queues with dead letters].
        queue: Option<String>,
    },
    /// Shows a dead letter with all its attempts.
    #[command(after_help = help!("  windlass dlq show f2841987", SHOW_EXITS))]
    Show {
        /// The id of the job, or a unique prefix of it.
        job: String,
    },
    /// Replays dead letters: the oldest, those of a group, all, or the named ones.
    ///
    /// A job is in the queue again or still a dead letter, never lost; it gets all its attempts anew.
    #[command(after_help = help!(
        "  windlass dlq replay default --count 1 --priority 2\n  \
           windlass dlq replay mail --group 3f2a9c0d11e8b7a4 --rate 10 --yes\n  \
           windlass dlq replay mail f2841987 --patch '{\"to\": \"ann@example.org\"}'\n  \
           windlass dlq replay mail --all --dry-run",
        CHANGE_EXITS
    ))]
    Replay(replay::DlqReplayArgs),
    /// Discards dead letters, with a reason: the oldest, those of a group, all, or the named ones.
    #[command(after_help = help!(
        "  windlass dlq discard mail f2841987 --reason 'wrong address'\n  \
           windlass dlq discard mail --group 3f2a9c0d11e8b7a4 --reason 'the shop is closed' --yes",
        CHANGE_EXITS
    ))]
    Discard(replay::DlqDiscardArgs),
}

pub(crate) async fn run(command: DlqCommand, options: &GlobalArgs) -> Result<Exit> {
    let session = &options.session()?;
    match command {
        DlqCommand::List(list) => show::list(&list, session).await,
        DlqCommand::Groups { queue } => show::groups(queue.as_deref(), session).await,
        DlqCommand::Show { job } => show::show(&job, session).await,
        DlqCommand::Replay(replay) => replay::replay(replay, session).await,
        DlqCommand::Discard(discard) => replay::discard(discard, session).await,
    }
}
