//! Commands that control a run. Every one prints the run afterwards.

use anyhow::{Result, bail};
use windlass_sdk::contract::{Cancel, Continue, RunSummary, Signal};

use super::RunCommand;
use crate::exit::Exit;
use crate::session::Session;

pub(super) async fn act(command: RunCommand, session: &Session) -> Result<Exit> {
    let client = &session.client;
    let run = match command {
        RunCommand::Signal { which, key, value, idempotency_key } => {
            let signal = Signal { key, value, id: idempotency_key, by: session.actor.clone() };
            client.runs().signal(&session.run_id(&which.run).await?, &signal).await?
        }
        RunCommand::Cancel { which, reason } => {
            let cancel = Cancel { reason, by: session.actor.clone() };
            client.runs().cancel(&session.run_id(&which.run).await?, &cancel).await?
        }
        RunCommand::Pause(which) => client.runs().pause(&session.run_id(&which.run).await?).await?,
        RunCommand::Resume(which) => client.runs().resume(&session.run_id(&which.run).await?).await?,
        RunCommand::Step(which) => client.runs().step(&session.run_id(&which.run).await?).await?,
        RunCommand::Budget { which, amount } => {
            client.runs().set_budget(&session.run_id(&which.run).await?, amount).await?
        }
        RunCommand::Continue { which, node, result } => {
            let body = Continue { node, result };
            client.runs().continue_node(&session.run_id(&which.run).await?, &body).await?
        }
        RunCommand::Start(_)
        | RunCommand::List(_)
        | RunCommand::Show(_)
        | RunCommand::Attempts(_)
        | RunCommand::Watch(_)
        | RunCommand::State { .. }
        | RunCommand::Diff { .. }
        | RunCommand::Events { .. }
        | RunCommand::Logs(_)
        | RunCommand::Wait(_)
        | RunCommand::Stats(_)
        | RunCommand::Why(_) => bail!("this command does not change a run"),
        RunCommand::Retry(_) | RunCommand::Rerun(_) => bail!("this command opens a round"),
    };
    print_run(&run, session)
}

pub(crate) fn print_run(run: &RunSummary, session: &Session) -> Result<Exit> {
    let (id, status) = (&run.id, run.status.word());
    session.out.value(run, id, || format!("{id} {}", session.out.painted(status, status)))?;
    Ok(Exit::Done)
}
