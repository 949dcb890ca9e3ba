//! `windlass approvals`: what waits for a person.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::Value;
use windlass_sdk::types::{Approval, ApprovalsQuery, Decide};

use crate::run::told;
use crate::session::{Options, Session, cut, in_words, now_ms};

/// Open runs looked at for one page.
const PAGE: usize = 1_000;
/// Characters of what is to be decided that a row shows.
const INPUT_CHARS: usize = 60;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Lists what waits for a person.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass approvals list\n",
        "  windlass approvals list --assignee ann\n\n",
        "Exit codes:\n  0  listed\n  1  the server could not be asked",
    ))]
    List {
        /// Only what this person may decide.
        #[arg(long, value_name = "PERSON")]
        assignee: Option<String>,
    },
    /// Approves.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass approvals approve run_0190a1b2\n",
        "  windlass approvals approve run_0190a1b2/review -m 'go ahead' --by ann\n\n",
        "Exit codes:\n  0  decided\n  1  nothing waits there, somebody else has to decide, or the server could not be asked",
    ))]
    Approve(Decision),
    /// Rejects.
    #[command(after_help = concat!(
        "Example:\n",
        "  windlass approvals reject run_0190a1b2/review -m 'not today'\n\n",
        "Exit codes:\n  0  decided\n  1  nothing waits there, somebody else has to decide, or the server could not be asked",
    ))]
    Reject(Decision),
}

#[derive(Args)]
pub(crate) struct Decision {
    /// The run, or `run/node` where several approvals are open.
    #[arg(value_name = "RUN[/NODE]")]
    target: String,
    /// Why, for whoever reads the journal.
    #[arg(short, long, visible_alias = "reason")]
    message: Option<String>,
    /// Who decides; whoever is at the keyboard unless named.
    #[arg(long, value_name = "PERSON")]
    by: Option<String>,
}

pub(crate) async fn run(command: Command, options: &Options) -> Result<ExitCode> {
    let session = options.session()?;
    match command {
        Command::List { assignee } => list(assignee, &session).await,
        Command::Approve(decision) => decide(decision, true, &session).await,
        Command::Reject(decision) => decide(decision, false, &session).await,
    }
}

async fn list(assignee: Option<String>, session: &Session) -> Result<ExitCode> {
    let mut query = ApprovalsQuery { assignee, cursor: None, limit: Some(PAGE) };
    let mut approvals: Vec<Approval> = Vec::new();
    loop {
        let page = session.client.approvals(&query).await?;
        approvals.extend(page.items);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    session.out.list(
        ["approval", "flow", "who", "since", "about"],
        &approvals,
        |approval| format!("{}/{}", approval.run, approval.node),
        |approval| {
            let who = if approval.assignees.is_empty() {
                "anybody".to_owned()
            } else {
                approval.assignees.join(", ")
            };
            let since = approval.since.map(|at| in_words(now_ms().saturating_sub(at.0)));
            let about = approval.title.clone().unwrap_or_else(|| approval.input.to_string());
            [
                format!("{}/{}", approval.run, approval.node),
                approval.flow.clone(),
                who,
                since.unwrap_or_default(),
                cut(&about, INPUT_CHARS),
            ]
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

async fn decide(decision: Decision, approved: bool, session: &Session) -> Result<ExitCode> {
    // Paths of nodes have slashes of their own; ids of runs have none.
    let (run, node) = match decision.target.split_once('/') {
        Some((run, node)) => (run, Some(node.to_owned())),
        None => (decision.target.as_str(), None),
    };
    let body = Decide {
        node,
        decision: Value::Bool(approved),
        comment: decision.message,
        by: decision.by.or_else(|| session.actor.clone()),
    };
    let run = session.client.decide(&session.run_id(run).await?, &body).await?;
    told(&run, session)
}
