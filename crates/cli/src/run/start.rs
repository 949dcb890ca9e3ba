//! `windlass run start`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use windlass_sdk::types::{ExecMode, NewRun, OnShortBalance, Priority};

use super::{json_or_text, look, watch};
use crate::flow::read;
use crate::session::{Session, duration};

#[derive(Args)]
pub(crate) struct Start {
    /// The name or the id of the flow.
    flow: String,
    /// What the run is given: `key=value`, the value JSON or text; may be repeated.
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    params: Vec<(String, Value)>,
    /// What the run is given, as a JSON object in a file; single params win over it.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The number of the version; the newest published one unless named.
    #[arg(long)]
    version: Option<u32>,
    /// Starting again with the same id starts nothing.
    #[arg(long, alias = "idempotency-key", value_name = "ID")]
    request_id: Option<String>,
    /// A label, `key=value`; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Who pays.
    #[arg(long)]
    account: Option<String>,
    /// What the estimates of all its calls together may reach, in whole minor units.
    #[arg(long, value_name = "AMOUNT", value_parser = clap::value_parser!(i64).range(0..))]
    budget: Option<i64>,
    /// What a call does that the account or the budget cannot bear.
    #[arg(long, value_enum, default_value = "fail")]
    on_short_balance: OnShort,
    /// How urgent it is; as the definition says unless given.
    #[arg(long, value_parser = priority)]
    priority: Option<Priority>,
    /// Only from these nodes on, with commas between.
    #[arg(long, value_name = "NODES", value_delimiter = ',', conflicts_with = "only")]
    from: Vec<String>,
    /// Only these nodes, with commas between.
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    only: Vec<String>,
    /// Advance only by `windlass run step`.
    #[arg(long)]
    manual: bool,
    /// Wait for the end and show it.
    #[arg(long)]
    wait: bool,
    /// Follow it to the end.
    #[arg(long, conflicts_with = "wait")]
    watch: bool,
    /// Stop waiting or following after so long: 90s, 15m, 2h.
    #[arg(long, value_parser = duration)]
    timeout: Option<Duration>,
}

/// What a call does for which there is no money.
#[derive(Clone, Copy, ValueEnum)]
enum OnShort {
    /// Its node fails.
    Fail,
    /// It waits until there is enough.
    Wait,
}

pub(super) async fn start(start: Start, session: &Session) -> Result<ExitCode> {
    let mut params = match &start.file {
        Some(file) => object(&read(file)?).with_context(|| format!("cannot use {}", file.display()))?,
        None => Map::new(),
    };
    params.extend(start.params);
    let (exec_mode, start_node_ids) = match (start.from.is_empty(), start.only.is_empty()) {
        (false, _) => (ExecMode::SpecifiedStarts, start.from),
        (true, false) => (ExecMode::IsolatedNodes, start.only),
        (true, true) => (ExecMode::All, Vec::new()),
    };
    let run = NewRun {
        params: Some(params),
        version: start.version,
        request_id: start.request_id,
        account: start.account,
        budget: start.budget,
        on_short_balance: match start.on_short_balance {
            OnShort::Fail => OnShortBalance::Fail,
            OnShort::Wait => OnShortBalance::Wait,
        },
        exec_mode,
        start_node_ids,
        priority: start.priority,
        labels: start.labels.into_iter().collect(),
        manual: start.manual,
        ..NewRun::default()
    };
    let started = session.client.start(&start.flow, &run).await?;
    if start.watch {
        return watch::watch(&started.id, start.timeout, session).await;
    }
    if start.wait {
        return look::wait(&started.id, start.timeout, session).await;
    }
    session.out.value(&started, &started.id, || {
        let again = if started.created { "" } else { " (it was there already)" };
        format!("{} {}{again}", started.id, started.status.word())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn object(text: &str) -> Result<Map<String, Value>> {
    match serde_json::from_str(text)? {
        Value::Object(map) => Ok(map),
        other => bail!("params are a JSON object such as {{\"key\": 1}}, not {other}"),
    }
}

/// `key=value`, the value JSON or text.
pub(crate) fn key_value(text: &str) -> Result<(String, Value), String> {
    let (key, value) = label(text)?;
    let value = json_or_text(&value).unwrap_or_default();
    Ok((key, value))
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err(format!("`{text}` is not of the form key=value")),
    }
}

fn priority(text: &str) -> Result<Priority, String> {
    serde_json::from_value(Value::String(text.to_owned()))
        .map_err(|_| "it must be one of highest, high, medium, low, lowest".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn params_are_json_where_they_can_be() {
        assert_eq!(key_value("age=36"), Ok(("age".to_owned(), json!(36))));
        assert_eq!(key_value("name=Ada"), Ok(("name".to_owned(), json!("Ada"))));
        assert_eq!(key_value("a=[1, 2]"), Ok(("a".to_owned(), json!([1, 2]))));
        assert_eq!(key_value("eq=a=b"), Ok(("eq".to_owned(), json!("a=b"))));
        assert!(key_value("=1").is_err() && key_value("name").is_err());
    }

    #[test]
    fn only_objects_are_params() {
        assert!(object("[1]").is_err());
        assert!(object("{\"a\": 1}").is_ok());
    }
}
