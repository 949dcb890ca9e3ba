//! `windlass flow list`, `show`, `versions`, `diff` and `instantiate`: flows on the server.

use anyhow::Result;
use clap::Args;
use serde_json::Value;
use windlass_sdk::contract::{
    self, DefinitionChange, DefinitionChangeKind, DiffQuery, FlowInfo, FlowsQuery, Version,
};

use super::FlowSelector;
use crate::exit::Exit;
use crate::output;
use crate::run::key_value;
use crate::session::{Session, cut, in_words, now_ms};

/// Flows of one page.
const PAGE_SIZE: usize = 1_000;
/// Characters of a value that a line of a diff shows.
const VALUE_CHARS: usize = 80;

/// A new flow from a template.
#[derive(Args)]
pub(crate) struct FlowInstantiateArgs {
    /// The name or the id of the template.
    template: String,
    /// The name of the new flow.
    name: String,
    /// The default of a variable: key=value, the value JSON or plain text.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    values: Vec<(String, Value)>,
    /// The version of the template [default: the newest published one].
    #[arg(long)]
    version: Option<u32>,
    /// The description [default: that of the template].
    #[arg(long)]
    description: Option<String>,
}

pub(super) async fn instantiate(new: FlowInstantiateArgs, session: &Session) -> Result<Exit> {
    let FlowInstantiateArgs { template, name, values, version, description } = new;
    let variables = values.into_iter().collect();
    let flow = contract::InstantiateRequest {
        name,
        description,
        version,
        variables,
        ..contract::InstantiateRequest::default()
    };
    let made = session.client.flows().instantiate(&template, &flow).await?;
    session
        .out
        .value(&made, &made.name, || format!("{}  ({}), version {}\n", made.name, made.id, made.version))?;
    Ok(Exit::Done)
}

pub(super) async fn list(mut query: FlowsQuery, limit: u32, session: &Session) -> Result<Exit> {
    let limit = limit as usize;
    let mut flows: Vec<FlowInfo> = Vec::new();
    while flows.len() < limit {
        query.limit = Some((limit - flows.len()).min(PAGE_SIZE));
        let page = session.client.flows().list(&query).await?;
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
    Ok(Exit::Done)
}

pub(super) async fn show(which: &FlowSelector, session: &Session) -> Result<Exit> {
    let mut shown = session.client.flows().show(&which.flow).await?;
    if let Some(number) = which.version {
        shown.version = Some(session.client.flows().version(&which.flow, number).await?);
    }
    session.out.value(&shown, &shown.flow.name, || {
        let mut text = format!("{}  ({})\n", shown.flow.name, shown.flow.id);
        if !shown.flow.description.is_empty() {
            text += &format!("{}\n", shown.flow.description);
        }
        match &shown.version {
            Some(version) => text += &version_text(version),
            None => text += "no version is published\n",
        }
        text
    })?;
    Ok(Exit::Done)
}

fn version_text(version: &Version) -> String {
    let summary = &version.summary;
    let note = if summary.note.is_empty() { String::new() } else { format!(": {}", summary.note) };
    let heading = format!("version {} ({}, {}){note}", summary.version, summary.form, summary.status);
    format!("{heading}\n\n{}\n", version.text.trim_end())
}

pub(super) async fn versions(flow: &str, session: &Session) -> Result<Exit> {
    let versions = session.client.flows().versions(flow).await?.items;
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
    Ok(Exit::Done)
}

pub(super) async fn diff(flow: &str, from: Option<u32>, to: Option<u32>, session: &Session) -> Result<Exit> {
    let diff = session.client.flows().diff(flow, &DiffQuery { from, to }).await?;
    session.out.value(&diff, flow, || {
        let mut text = format!("{flow}: version {} to version {}\n", diff.from, diff.to);
        if diff.changes.is_empty() {
            text += "they are the same\n";
        }
        for node in &diff.nodes {
            let sign = match node.kind {
                DefinitionChangeKind::Added => '+',
                DefinitionChangeKind::Removed => '-',
                DefinitionChangeKind::Changed => '~',
            };
            text += &format!("{sign} node {}\n", node.node);
        }
        diff.changes.iter().for_each(|change| text += &change_line(change));
        text
    })?;
    if diff.more {
        output::message("there are more changes than are listed");
    }
    Ok(Exit::Done)
}

pub(crate) fn change_line(change: &DefinitionChange) -> String {
    let value = |value: &Option<serde_json::Value>| {
        cut(&value.as_ref().map(ToString::to_string).unwrap_or_default(), VALUE_CHARS)
    };
    let (before, after) = (value(&change.before), value(&change.after));
    match change.kind {
        DefinitionChangeKind::Added => format!("+ {} {after}\n", change.path),
        DefinitionChangeKind::Removed => format!("- {} {before}\n", change.path),
        DefinitionChangeKind::Changed => format!("~ {} {before} → {after}\n", change.path),
    }
}
