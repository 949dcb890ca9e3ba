//! Flows that are on the server: listing, showing, comparing.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::Value;
use windlass_sdk::types::{self, Change, ChangeKind, DiffQuery, Flow, FlowsQuery, Version};

use super::Which;
use crate::output;
use crate::run::key_value;
use crate::session::{Session, cut, in_words, now_ms};

/// Flows on one page.
const PAGE: usize = 1_000;
/// Characters of a value that a line of a diff shows.
const VALUE_CHARS: usize = 80;

/// A flow to be made of a template.
#[derive(Args)]
pub(crate) struct Instantiate {
    /// The name or the id of the template.
    template: String,
    /// The name of the new flow.
    name: String,
    /// The default of a variable: key=value, the value as JSON, or text where it is none.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    values: Vec<(String, Value)>,
    /// The version of the template; the newest published one unless named.
    #[arg(long)]
    version: Option<u32>,
    /// What it is for; that of the template unless given.
    #[arg(long)]
    description: Option<String>,
}

pub(super) async fn instantiate(new: Instantiate, session: &Session) -> Result<ExitCode> {
    let Instantiate { template, name, values, version, description } = new;
    let variables = values.into_iter().collect();
    let flow = types::Instantiate { name, description, version, variables, ..types::Instantiate::default() };
    let made = session.client.instantiate(&template, &flow).await?;
    session
        .out
        .value(&made, &made.name, || format!("{}  ({}), version {}\n", made.name, made.id, made.version))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn list(mut query: FlowsQuery, limit: u32, session: &Session) -> Result<ExitCode> {
    let limit = limit as usize;
    let mut flows: Vec<Flow> = Vec::new();
    while flows.len() < limit {
        query.limit = Some((limit - flows.len()).min(PAGE));
        let page = session.client.flows(&query).await?;
        flows.extend(page.items);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    session.out.list(
        ["name", "version", "updated", "description"],
        &flows,
        |flow| flow.name.clone(),
        |flow| {
            let age = in_words(now_ms() - flow.updated_at.0);
            let description = cut(&flow.description, VALUE_CHARS);
            [flow.name.clone(), flow.latest_version.to_string(), format!("{age} ago"), description]
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn show(which: &Which, session: &Session) -> Result<ExitCode> {
    let mut shown = session.client.flow(&which.flow).await?;
    if let Some(number) = which.version {
        shown.version = Some(session.client.version(&which.flow, number).await?);
    }
    session.out.value(&shown, &shown.flow.name, || {
        let mut text = format!("{}  ({})\n", shown.flow.name, shown.flow.id);
        if !shown.flow.description.is_empty() {
            text += &format!("{}\n", shown.flow.description);
        }
        match &shown.version {
            Some(version) => text += &version_text(version),
            None => text += "no version is published yet\n",
        }
        text
    })?;
    Ok(ExitCode::SUCCESS)
}

fn version_text(version: &Version) -> String {
    let summary = &version.summary;
    let note = if summary.note.is_empty() { String::new() } else { format!(": {}", summary.note) };
    let heading = format!("version {} ({}, {}){note}", summary.version, summary.form, summary.status);
    format!("{heading}\n\n{}\n", version.text.trim_end())
}

pub(super) async fn versions(flow: &str, session: &Session) -> Result<ExitCode> {
    let versions = session.client.versions(flow).await?.items;
    session.out.list(
        ["version", "status", "form", "created", "note"],
        &versions,
        |version| version.version.to_string(),
        |version| {
            [
                version.version.to_string(),
                version.status.clone(),
                version.form.clone(),
                version.created_at.to_string(),
                cut(&version.note, VALUE_CHARS),
            ]
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn diff(
    flow: &str,
    from: Option<u32>,
    to: Option<u32>,
    session: &Session,
) -> Result<ExitCode> {
    let diff = session.client.diff(flow, &DiffQuery { from, to }).await?;
    session.out.value(&diff, flow, || {
        let mut text = format!("{flow}: version {} to version {}\n", diff.from, diff.to);
        if diff.changes.is_empty() {
            text += "they are the same\n";
        }
        diff.changes.iter().for_each(|change| text += &change_line(change));
        text
    })?;
    if diff.more {
        output::message("there are more changes than are listed");
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn change_line(change: &Change) -> String {
    let value = |value: &Option<serde_json::Value>| {
        cut(&value.as_ref().map(ToString::to_string).unwrap_or_default(), VALUE_CHARS)
    };
    let (before, after) = (value(&change.before), value(&change.after));
    match change.kind {
        ChangeKind::Added => format!("+ {} {after}\n", change.path),
        ChangeKind::Removed => format!("- {} {before}\n", change.path),
        ChangeKind::Changed => format!("~ {} {before} → {after}\n", change.path),
    }
}
