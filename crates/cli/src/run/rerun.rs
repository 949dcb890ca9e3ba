//! `windlass run rerun`, `retry` and `diff`: new rounds of an ended run (or a dry run of one), and the changes between
//! two entries of a journal.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Map, Value};
use windlass_sdk::contract::{self, DryRun, DryRunNode, StateDiffQuery};

use super::{RunSelector, actions};
use crate::exit::Exit;
use crate::flow::{change_line, read};
use crate::json::read_json;
use crate::output;
use crate::session::Session;

#[derive(Args)]
pub(crate) struct RunRerunArgs {
    #[command(flatten)]
    which: RunSelector,
    /// The first node, by its path: `ship`, `loop/2/ship`, `each/3`.
    #[arg(long, value_name = "NODE")]
    from: String,
    /// The new shared state, a JSON object or a file with one [default: unchanged].
    #[arg(long, value_name = "JSON|FILE")]
    shared: Option<String>,
    /// Only show which nodes would run; change nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
pub(crate) struct RunRetryArgs {
    #[command(flatten)]
    which: RunSelector,
    /// Only show which nodes would run; change nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn rerun(rerun: RunRerunArgs, session: &Session) -> Result<Exit> {
    let RunRerunArgs { which, from, shared, dry_run } = rerun;
    let body = contract::RerunRequest { from, shared: shared.as_deref().map(object).transpose()? };
    let run = session.run_id(&which.run).await?;
    if dry_run {
        return print_dry_run(&session.client.runs().rerun_dry_run(&run, &body).await?, session);
    }
    actions::print_run(&session.client.runs().rerun(&run, &body).await?, session)
}

pub(super) async fn retry(retry: &RunRetryArgs, session: &Session) -> Result<Exit> {
    let run = session.run_id(&retry.which.run).await?;
    if retry.dry_run {
        return print_dry_run(&session.client.runs().retry_dry_run(&run).await?, session);
    }
    actions::print_run(&session.client.runs().retry(&run).await?, session)
}

/// Reads a JSON object, written out or in a file.
fn object(text: &str) -> Result<Map<String, Value>> {
    let is_json = text.trim_start().starts_with(['{', '[', '"']);
    let text = if is_json { text.to_owned() } else { read(Path::new(text))? };
    match read_json(text.as_bytes()).context("--shared must be a JSON object such as '{\"key\": 1}'")? {
        Value::Object(shared) => Ok(shared),
        _ => bail!("--shared must be a JSON object such as '{{\"key\": 1}}'"),
    }
}

fn print_dry_run(dry_run: &DryRun, session: &Session) -> Result<Exit> {
    session.out.value(dry_run, &dry_run.id, || {
        let rows: Vec<[String; 5]> = dry_run.nodes.iter().map(row).collect();
        let table = session.out.table_text(["node", "what", "kind", "call", "estimate"], &rows);
        format!(
            "round {} of {} would begin; nothing was changed\n{table}\n{}",
            dry_run.round,
            dry_run.id,
            sums(dry_run)
        )
    })?;
    if dry_run.more {
        output::message("there are more nodes than are listed, and they are not counted");
    }
    Ok(Exit::Done)
}

fn row(node: &DryRunNode) -> [String; 5] {
    let times = node.times.map(|times| format!(" × {times}")).unwrap_or_default();
    let call = match (&node.service, &node.by) {
        (Some(service), Some(by)) => format!("{service} ({by})"),
        _ => String::new(),
    };
    let estimate = node.estimate.map(|amount| amount.to_string()).unwrap_or_default();
    [
        node.node.clone(),
        format!("{}{times}", node.status.replace('_', " ")),
        node.kind.clone(),
        call,
        estimate,
    ]
}

fn sums(dry_run: &DryRun) -> String {
    let span = |from: String, to: String| if from == to { from } else { format!("{from} to {to}") };
    let calls = span(dry_run.calls.sure.to_string(), dry_run.calls.at_most.to_string());
    let cost = span(dry_run.cost.estimated.to_string(), dry_run.cost.at_most.to_string());
    let mut text = format!("calls: {calls}\nestimated cost: {cost}");
    if dry_run.cost.unknown > 0 {
        let _ = write!(text, ", not counting {} whose cost is unknown", dry_run.cost.unknown);
    }
    if let Some(left) = dry_run.budget_left {
        let _ = write!(text, "\nleft of the budget: {left}");
    }
    text
}

pub(super) async fn diff(
    which: &RunSelector,
    from: Option<u64>,
    to: Option<u64>,
    session: &Session,
) -> Result<Exit> {
    let run = session.run_id(&which.run).await?;
    let diff = session.client.runs().diff(&run, &StateDiffQuery { from, to }).await?;
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
    Ok(Exit::Done)
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
