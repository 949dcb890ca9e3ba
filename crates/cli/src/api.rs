//! `windlass api`: any call, for what has no command of its own.

use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;

use crate::output;
use crate::session::Options;

/// Bytes of a body that are read from stdin.
const BODY_BYTES: u64 = 64 << 20;

#[derive(Args)]
pub(crate) struct Api {
    /// GET, POST, PUT, PATCH or DELETE.
    method: String,
    /// The path, such as /api/v1/runs?limit=5.
    path: String,
    /// The body as JSON; `-` reads it from stdin.
    #[arg(short, long, value_name = "JSON")]
    data: Option<String>,
}

pub(crate) async fn run(api: Api, options: &Options) -> Result<ExitCode> {
    let session = options.session()?;
    let body = match api.data.as_deref() {
        None => None,
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().take(BODY_BYTES).read_to_string(&mut text).context("cannot read stdin")?;
            Some(text)
        }
        Some(text) => Some(text.to_owned()),
    };
    let body: Option<Value> =
        body.map(|text| serde_json::from_str(&text).context("the body is not JSON")).transpose()?;
    let (status, text) = session.client.raw(&api.method, &api.path, body.as_ref()).await?;
    match serde_json::from_str::<Value>(&text) {
        Ok(value) => output::json(&value)?,
        Err(_not_json) if text.is_empty() => {}
        Err(_not_json) => output::line(&text)?,
    }
    if (200..300).contains(&status) {
        return Ok(ExitCode::SUCCESS);
    }
    output::message(&format!("error: {} {} answered {status}", api.method, api.path));
    Ok(ExitCode::FAILURE)
}
