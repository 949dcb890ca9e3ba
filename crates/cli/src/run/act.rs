//! Telling a run something. Every command answers with the run as it is then.

use std::process::ExitCode;

use anyhow::{Result, bail};
use windlass_sdk::types::{Cancel, Continue, RunSummary, Signal};

use super::Command;
use crate::session::Session;

pub(super) async fn act(command: Command, session: &Session) -> Result<ExitCode> {
    let client = &session.client;
    let run = match command {
        Command::Signal { which, key, value, idempotency_key } => {
            let signal = Signal { key, value, id: idempotency_key, by: session.actor.clone() };
            client.signal(&session.run_id(&which.run).await?, &signal).await?
        }
        Command::Cancel { which, reason } => {
            let cancel = Cancel { reason, by: session.actor.clone() };
            client.cancel(&session.run_id(&which.run).await?, &cancel).await?
        }
        Command::Pause(which) => client.pause(&session.run_id(&which.run).await?).await?,
        Command::Resume(which) => client.resume(&session.run_id(&which.run).await?).await?,
        Command::Step(which) => client.step(&session.run_id(&which.run).await?).await?,
        Command::Budget { which, amount } => {
            client.set_budget(&session.run_id(&which.run).await?, amount).await?
        }
        Command::Continue { which, node, result } => {
            let body = Continue { node, result };
            client.continue_node(&session.run_id(&which.run).await?, &body).await?
        }
        Command::Start(_)
        | Command::List(_)
        | Command::Show(_)
        | Command::Attempts(_)
        | Command::Watch(_)
        | Command::State { .. }
        | Command::Diff { .. }
        | Command::Events { .. }
        | Command::Logs(_)
        | Command::Wait(_)
        | Command::Stats(_)
        | Command::Why(_) => bail!("this command only looks"),
        Command::Retry(_) | Command::Rerun(_) => bail!("this command opens a round"),
    };
    told(&run, session)
}

pub(crate) fn told(run: &RunSummary, session: &Session) -> Result<ExitCode> {
    let (id, status) = (&run.id, run.status.word());
    session.out.value(run, id, || format!("{id} {}", session.out.painted(status, status)))?;
    Ok(ExitCode::SUCCESS)
}
