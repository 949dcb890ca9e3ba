//! `windlass dlq`: jobs that failed for good, until somebody replays or discards them.

mod look;
mod moving;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::help::help;
use crate::session::Options;

const LOOKS: &str =
    "Exit codes:\n  0  shown\n  1  there is no such dead letter\n  3  the server could not be asked";
const MOVES: &str = "Exit codes:
  0  done
  1  refused, or some stay as they are: named ones that are no dead letters, or whose key another job has now
  3  the server could not be asked";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Lists dead letters, oldest first, of one queue or of all.
    #[command(after_help = help!(
        "  windlass dlq list\n  windlass dlq list mail --group 3f2a9c0d11e8b7a4 --limit 200", LOOKS
    ))]
    List(look::List),
    /// Lists dead letters by what went wrong, of one queue or of all.
    #[command(after_help = help!("  windlass dlq groups\n  windlass dlq groups mail -o json", LOOKS))]
    Groups {
        /// The name of the queue; all that have some unless named.
        queue: Option<String>,
    },
    /// Shows a dead letter with all its attempts.
    #[command(after_help = help!("  windlass dlq show f2841987", LOOKS))]
    Show {
        /// The id of the job, or as much of its beginning as no other has.
        job: String,
    },
    /// Tries dead letters again: the oldest, those of a group, all, or the named ones.
    ///
    /// A letter is in the queue again or still a dead letter, never lost; each gets all its attempts anew.
    #[command(after_help = help!(
        "  windlass dlq replay default --count 1 --priority 2\n  \
           windlass dlq replay mail --group 3f2a9c0d11e8b7a4 --rate 10 --yes\n  \
           windlass dlq replay mail f2841987 --patch '{\"to\": \"ann@example.org\"}'\n  \
           windlass dlq replay mail --all --dry-run",
        MOVES
    ))]
    Replay(moving::Replay),
    /// Gives dead letters up, with a reason: the oldest, those of a group, all, or the named ones.
    #[command(after_help = help!(
        "  windlass dlq discard mail f2841987 --reason 'wrong address'\n  \
           windlass dlq discard mail --group 3f2a9c0d11e8b7a4 --reason 'the shop is closed' --yes",
        MOVES
    ))]
    Discard(moving::Discard),
}

pub(crate) async fn run(command: Command, options: &Options) -> Result<ExitCode> {
    let session = &options.session()?;
    match command {
        Command::List(list) => look::list(&list, session).await,
        Command::Groups { queue } => look::groups(queue.as_deref(), session).await,
        Command::Show { job } => look::show(&job, session).await,
        Command::Replay(replay) => moving::replay(replay, session).await,
        Command::Discard(discard) => moving::discard(discard, session).await,
    }
}
