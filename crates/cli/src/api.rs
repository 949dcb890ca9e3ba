//! `windlass api`: any request, for routes without a command.

use std::io::Read;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;

use crate::exit::Exit;
use crate::json::read_json;
use crate::output;
use crate::session::GlobalArgs;

/// Bytes of a body from stdin at most.
const BODY_BYTES_MAX: u64 = 64 << 20;

#[derive(Args)]
pub(crate) struct ApiArgs {
    /// GET, POST, PUT, PATCH or DELETE.
    method: String,
    /// The path, such as /api/v1/runs?limit=5.
    path: String,
    /// The body as JSON; `-` reads it from stdin.
    #[arg(short, long, value_name = "JSON")]
    data: Option<String>,
}

pub(crate) async fn run(api: ApiArgs, options: &GlobalArgs) -> Result<Exit> {
    let session = options.session()?;
    let body = match api.data.as_deref() {
        None => None,
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().take(BODY_BYTES_MAX).read_to_string(&mut text).context("cannot read stdin")?;
            Some(text)
        }
        Some(text) => Some(text.to_owned()),
    };
    let body: Option<Value> =
        body.map(|text| read_json(text.as_bytes()).context("the body is not JSON")).transpose()?;
    let (status, text) = session.client.raw(&api.method, &api.path, body.as_ref()).await?;
    match serde_json::from_str::<Value>(&text) {
        Ok(value) => output::json(&value)?,
        Err(_not_json) if text.is_empty() => {}
        Err(_not_json) => output::line(&text)?,
    }
    if (200..300).contains(&status) {
        return Ok(Exit::Done);
    }
    output::message(&format!("error: {} {} answered {status}", api.method, api.path));
    Ok(Exit::Failed)
}
