//! `windlass run start`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use windlass_sdk::contract::{OnShortBalance, RunPriority, RunRequest, StartMode};

use super::{json_or_text, show, watch};
use crate::amount::amount;
use crate::exit::Exit;
use crate::flow::read;
use crate::json::read_json;
use crate::session::{Session, duration};

#[derive(Args)]
pub(crate) struct RunStartArgs {
    /// The name or the id of the flow.
    flow: String,
    /// A param of the run: `key=value`, the value JSON or text; repeatable.
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    params: Vec<(String, Value)>,
    /// A file with the params as a JSON object; single params win over it.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The version [default: the newest published one].
    #[arg(long)]
    version: Option<u32>,
    /// An idempotency key: a second start with the same id returns the first run.
    #[arg(long, alias = "idempotency-key", value_name = "ID")]
    request_id: Option<String>,
    /// A label, `key=value`; repeatable.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// The account that pays.
    #[arg(long)]
    account: Option<String>,
    /// The most that the estimates of all its calls may reach, in whole numbers of the smallest unit of money.
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true, value_parser = amount)]
    budget: Option<i64>,
    /// The policy for a call that the account or the budget cannot pay.
    #[arg(long, value_enum, default_value = "fail")]
    on_short_balance: ShortBalanceArg,
    /// The priority [default: that of the definition].
    #[arg(long, value_parser = priority)]
    priority: Option<RunPriority>,
    /// Start only from these nodes on, with commas between.
    #[arg(long, value_name = "NODES", value_delimiter = ',', conflicts_with = "only")]
    from: Vec<String>,
    /// Run only these nodes, with commas between.
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    only: Vec<String>,
    /// Advance only by `windlass run step`.
    #[arg(long)]
    manual: bool,
    /// Wait until it has ended and show it.
    #[arg(long)]
    wait: bool,
    /// Follow it until it ends.
    #[arg(long, conflicts_with = "wait")]
    watch: bool,
    /// Stop waiting after this time: 90s, 15m, 2h.
    #[arg(long, value_parser = duration)]
    timeout: Option<Duration>,
}

/// The policy for a call without money.
#[derive(Clone, Copy, ValueEnum)]
enum ShortBalanceArg {
    /// Its node fails.
    Fail,
    /// It waits until there is enough.
    Wait,
}

pub(super) async fn start(start: RunStartArgs, session: &Session) -> Result<Exit> {
    let mut params = match &start.file {
        Some(file) => object(&read(file)?).with_context(|| format!("cannot use {}", file.display()))?,
        None => Map::new(),
    };
    params.extend(start.params);
    let (exec_mode, start_node_ids) = match (start.from.is_empty(), start.only.is_empty()) {
        (false, _) => (StartMode::SpecifiedStarts, start.from),
        (true, false) => (StartMode::IsolatedNodes, start.only),
        (true, true) => (StartMode::All, Vec::new()),
    };
    let run = RunRequest {
        params: Some(params),
        version: start.version,
        request_id: start.request_id,
        account: start.account,
        budget: start.budget,
        on_short_balance: match start.on_short_balance {
            ShortBalanceArg::Fail => OnShortBalance::Fail,
            ShortBalanceArg::Wait => OnShortBalance::Wait,
        },
        exec_mode,
        start_node_ids,
        priority: start.priority,
        labels: start.labels.into_iter().collect(),
        manual: start.manual,
        ..RunRequest::default()
    };
    let started = session.client.runs().start(&start.flow, &run).await?;
    if start.watch {
        return watch::watch(&started.id, start.timeout, session).await;
    }
    if start.wait {
        return show::wait(&started.id, start.timeout, session).await;
    }
    session.out.value(&started, &started.id, || {
        let again = if started.created { "" } else { " (it exists already)" };
        format!("{} {}{again}", started.id, started.status.word())
    })?;
    Ok(Exit::Done)
}

fn object(text: &str) -> Result<Map<String, Value>> {
    match read_json(text.as_bytes())? {
        Value::Object(map) => Ok(map),
        other => bail!("params are a JSON object such as {{\"key\": 1}}, not {other}"),
    }
}

/// `key=value`, the value JSON or text.
pub(crate) fn key_value(text: &str) -> Result<(String, Value), String> {
    let (key, value) = label(text)?;
    let value = json_or_text(&value)?;
    Ok((key, value))
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err(format!("`{text}` is not of the form key=value")),
    }
}

/// Reads a priority.
pub(crate) fn priority(text: &str) -> Result<RunPriority, String> {
    serde_json::from_value(Value::String(text.to_owned()))
        .map_err(|_| "write highest, high, medium, low or lowest".to_owned())
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
