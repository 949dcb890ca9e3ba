//! New rounds of a run that has ended, done or only told; and what changed between two moments of a run.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Map, Value};
use windlass_sdk::types::{self, PlannedNode, RoundPlan, StateDiffQuery};

use super::{Which, act};
use crate::flow::{change_line, read};
use crate::output;
use crate::session::Session;

#[derive(Args)]
pub(crate) struct Rerun {
    #[command(flatten)]
    which: Which,
    /// The node to begin with, by its path: `ship`, `loop/2/ship`, `each/3`.
    #[arg(long, value_name = "NODE")]
    from: String,
    /// The shared state to go on with, a JSON object or a file that holds one; as it is unless given.
    #[arg(long, value_name = "JSON|FILE")]
    shared: Option<String>,
    /// Only say what would run.
    #[arg(long)]
    plan: bool,
}

#[derive(Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    which: Which,
    /// Only say what would run.
    #[arg(long)]
    plan: bool,
}

pub(super) async fn rerun(rerun: Rerun, session: &Session) -> Result<ExitCode> {
    let Rerun { which, from, shared, plan } = rerun;
    let body = types::Rerun { from, shared: shared.as_deref().map(object).transpose()? };
    let run = session.run_id(&which.run).await?;
    if plan {
        return told(&session.client.rerun_plan(&run, &body).await?, session);
    }
    act::told(&session.client.rerun(&run, &body).await?, session)
}

pub(super) async fn retry(retry: &Retry, session: &Session) -> Result<ExitCode> {
    let run = session.run_id(&retry.which.run).await?;
    if retry.plan {
        return told(&session.client.retry_plan(&run).await?, session);
    }
    act::told(&session.client.retry(&run).await?, session)
}

/// A JSON object, as it stands there or in a file.
fn object(text: &str) -> Result<Map<String, Value>> {
    let is_json = text.trim_start().starts_with(['{', '[', '"']);
    let text = if is_json { text.to_owned() } else { read(Path::new(text))? };
    match serde_json::from_str(&text).context("--shared must be a JSON object such as '{\"key\": 1}'")? {
        Value::Object(shared) => Ok(shared),
        _ => bail!("--shared must be a JSON object such as '{{\"key\": 1}}'"),
    }
}

fn told(plan: &RoundPlan, session: &Session) -> Result<ExitCode> {
    session.out.value(plan, &plan.id, || {
        let rows: Vec<[String; 5]> = plan.nodes.iter().map(row).collect();
        let table = session.out.table_text(["node", "what", "kind", "call", "estimate"], &rows);
        format!(
            "round {} of {} would begin; nothing was changed\n{table}\n{}",
            plan.round,
            plan.id,
            sums(plan)
        )
    })?;
    if plan.more {
        output::message("there are more nodes than are listed, and they are not counted");
    }
    Ok(ExitCode::SUCCESS)
}

fn row(node: &PlannedNode) -> [String; 5] {
    let times = node.times.map(|times| format!(" × {times}")).unwrap_or_default();
    let call = match (&node.service, &node.by) {
        (Some(service), Some(by)) => format!("{service} ({by})"),
        _ => String::new(),
    };
    let estimate = node.estimate.map(|amount| amount.to_string()).unwrap_or_default();
    [node.node.clone(), format!("{}{times}", node.fate.replace('_', " ")), node.kind.clone(), call, estimate]
}

fn sums(plan: &RoundPlan) -> String {
    let span = |from: String, to: String| if from == to { from } else { format!("{from} to {to}") };
    let calls = span(plan.calls.sure.to_string(), plan.calls.at_most.to_string());
    let cost = span(plan.cost.estimated.to_string(), plan.cost.at_most.to_string());
    let mut text = format!("calls: {calls}\nestimated cost: {cost}");
    if plan.cost.unknown > 0 {
        let _ = write!(text, ", not counting {} whose price is not known before", plan.cost.unknown);
    }
    if let Some(left) = plan.budget_left {
        let _ = write!(text, "\nleft of the budget: {left}");
    }
    text
}

pub(super) async fn diff(
    which: &Which,
    from: Option<u64>,
    to: Option<u64>,
    session: &Session,
) -> Result<ExitCode> {
    let run = session.run_id(&which.run).await?;
    let diff = session.client.state_diff(&run, &StateDiffQuery { from, to }).await?;
    session.out.value(&diff, &diff.id, || {
        let mut text = format!("{}: entry {} to entry {}\n", diff.id, diff.from, diff.to);
        if diff.changes.is_empty() {
            text += "nothing changed\n";
        }
        diff.changes.iter().for_each(|change| text += &change_line(change));
        text
    })?;
    if diff.more {
        output::message("there are more changes than are listed");
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_is_a_shared_state() {
        assert_eq!(object(" {\"a\": 1}").unwrap().len(), 1);
        assert!(object("[1]").is_err());
        assert!(object("{oops").is_err());
        assert!(object("no-such-file.json").is_err());
    }
}
