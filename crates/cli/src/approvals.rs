//! `windlass approvals`: lists and decides open approvals.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::Value;
use windlass_sdk::contract::{ApprovalInfo, ApprovalsQuery, Decide};

use crate::exit::Exit;
use crate::help::{SHOW_EXITS, help};
use crate::run::print_run;
use crate::session::{GlobalArgs, Session, cut, in_words, now_ms};

/// Approvals of one page.
const PAGE_SIZE: usize = 1_000;
/// Characters of an input that a row shows.
const INPUT_CHARS: usize = 60;

const DECIDE_EXITS: &str = "Exit codes:
  0  decided
  1  no approval is open there, or it is assigned to other people
  3  the server cannot be reached";

#[derive(Subcommand)]
pub(crate) enum ApprovalCommand {
    /// Lists open approvals.
    #[command(after_help = help!("  windlass approvals list\n  windlass approvals list --assignee ann", SHOW_EXITS))]
    List {
        /// Only approvals that this person may decide.
        #[arg(long, value_name = "PERSON")]
        assignee: Option<String>,
    },
    /// Approves an open approval.
    #[command(after_help = help!(
        "  windlass approvals approve run_0190a1b2\n  \
           windlass approvals approve run_0190a1b2/review -m 'go ahead' --by ann",
        DECIDE_EXITS
    ))]
    Approve(ApprovalDecisionArgs),
    /// Rejects an open approval.
    #[command(after_help = help!("  windlass approvals reject run_0190a1b2/review -m 'not today'", DECIDE_EXITS))]
    Reject(ApprovalDecisionArgs),
}

#[derive(Args)]
pub(crate) struct ApprovalDecisionArgs {
    /// The run, or `run/node` where several approvals are open.
    #[arg(value_name = "RUN[/NODE]")]
    target: String,
    /// The reason, kept in the journal.
    #[arg(short, long, visible_alias = "reason")]
    message: Option<String>,
    /// The person who decides [default: --actor].
    #[arg(long, value_name = "PERSON")]
    by: Option<String>,
}

pub(crate) async fn run(command: ApprovalCommand, options: &GlobalArgs) -> Result<Exit> {
    let session = options.session()?;
    match command {
        ApprovalCommand::List { assignee } => list(assignee, &session).await,
        ApprovalCommand::Approve(decision) => decide(decision, true, &session).await,
        ApprovalCommand::Reject(decision) => decide(decision, false, &session).await,
    }
}

async fn list(assignee: Option<String>, session: &Session) -> Result<Exit> {
    let mut query = ApprovalsQuery { assignee, cursor: None, limit: Some(PAGE_SIZE) };
    let mut approvals: Vec<ApprovalInfo> = Vec::new();
    loop {
        let page = session.client.approvals().list(&query).await?;
        approvals.extend(page.items);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    let ids = session.out.short_ids(approvals.iter().map(|approval| approval.run.as_str()));
    session.out.list(
        ["approval", "flow", "who", "since", "about"],
        &approvals,
        |approval| format!("{}/{}", approval.run, approval.node),
        |approval| {
            let who = if approval.assignees.is_empty() {
                "any person".to_owned()
            } else {
                approval.assignees.join(", ")
            };
            let since = approval.since.map(|at| in_words(now_ms().saturating_sub(at.0)));
            let about = approval.title.clone().unwrap_or_else(|| approval.input.to_string());
            [
                format!("{}/{}", ids.of(&approval.run), approval.node),
                approval.flow.clone(),
                who,
                since.unwrap_or_default(),
                cut(&about, INPUT_CHARS),
            ]
        },
    )?;
    Ok(Exit::Done)
}

async fn decide(decision: ApprovalDecisionArgs, approved: bool, session: &Session) -> Result<Exit> {
    // The id of a run has no slash; the path of a node may have some.
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
    let run = session.client.approvals().decide(&session.run_id(run).await?, &body).await?;
    print_run(&run, session)
}
