//! `windlass flow apply`: publishes definitions from files.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use serde_json::Value;
use windlass_engine::definition::{Strictness, compile};
use windlass_sdk::Client;
use windlass_sdk::contract::{FlowRequest, VersionRequest};

use super::{read, validate};
use crate::exit::{Exit, usage};
use crate::output;
use crate::session::Session;

#[derive(Args)]
pub(crate) struct FlowApplyArgs {
    /// Definitions, JSON or YAML.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The name of the flow; for one file only.
    #[arg(long)]
    name: Option<String>,
    /// A note about the change.
    #[arg(long, alias = "reason", default_value = "")]
    note: String,
    /// Make new flows templates for `flow instantiate`.
    #[arg(long)]
    template: bool,
    /// Only show which flows would change.
    #[arg(long)]
    dry_run: bool,
}

/// The outcome for one file.
#[derive(Debug, Serialize)]
struct AppliedFlow {
    flow: String,
    version: u32,
    /// `created`, `updated` or `unchanged`; with --dry-run the outcome it would have had.
    done: &'static str,
}

pub(super) async fn apply(apply: &FlowApplyArgs, session: &Session) -> Result<Exit> {
    if apply.name.is_some() && apply.files.len() > 1 {
        return Err(usage("--name names one flow: apply the files one by one"));
    }
    let (mut applied, mut n_bad) = (Vec::new(), 0);
    for file in &apply.files {
        let text = read(file)?;
        let compiled = compile(&text, Strictness::Strict);
        if compiled.plan.is_none() {
            validate::refuse(file, &text, &compiled.problems);
            n_bad += 1;
            continue;
        }
        let name = apply.name.clone().unwrap_or_else(|| name_of(file));
        let what = VersionRequest { definition: None, yaml: Some(text), note: apply.note.clone() };
        let options = PublishOptions { is_template: apply.template, dry_run: apply.dry_run };
        applied.push(publish(&session.client, name, &compiled.definition, what, options).await?);
    }
    session.out.list(
        ["flow", "version", "done"],
        &applied,
        |applied| applied.flow.clone(),
        |applied| [applied.flow.clone(), applied.version.to_string(), applied.done.to_owned()],
    )?;
    if apply.dry_run {
        output::message("nothing was changed: this was a dry run");
    }
    Ok(if n_bad == 0 { Exit::Done } else { Exit::Invalid })
}

/// Options of a publication.
#[derive(Clone, Copy, Default)]
struct PublishOptions {
    is_template: bool,
    dry_run: bool,
}

async fn publish(
    client: &Client,
    name: String,
    definition: &Value,
    what: VersionRequest,
    how: PublishOptions,
) -> Result<AppliedFlow> {
    let there = match client.flows().show(&name).await {
        Ok(there) => Some(there),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error.into()),
    };
    let Some(there) = there else {
        let is_template = how.is_template;
        let flow = FlowRequest { name: name.clone(), yaml: what.yaml, is_template, ..FlowRequest::default() };
        let version = if how.dry_run { 1 } else { client.flows().create(&flow).await?.version };
        return Ok(AppliedFlow { flow: name, version, done: "created" });
    };
    if how.is_template && !there.flow.is_template {
        bail!(
            "`{name}` is a flow already and cannot become a template: leave --template out, or give it another --name"
        );
    }
    if let Some(newest) = there.version.filter(|version| version.definition == *definition) {
        return Ok(AppliedFlow { flow: name, version: newest.summary.version, done: "unchanged" });
    }
    let version = match how.dry_run {
        true => there.flow.latest_version.saturating_add(1),
        false => client.flows().publish(&name, &what).await?.version,
    };
    Ok(AppliedFlow { flow: name, version, done: "updated" })
}

/// Publishes one definition, unless it is the newest version already.
pub(crate) async fn ensure(client: &Client, name: &str, text: String) -> Result<()> {
    let definition = compile(&text, Strictness::Strict).definition;
    let what = VersionRequest { definition: None, yaml: Some(text), note: String::new() };
    publish(client, name.to_owned(), &definition, what, PublishOptions::default()).await.map(|_| ())
}

fn name_of(file: &Path) -> String {
    file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}
