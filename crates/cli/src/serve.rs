//! `windlass serve`: a server on a store, until it is told to stop.
//!
//! `config` puts flags, environment, file and defaults together; `server` is the server itself, which `dev` uses too.

pub(crate) mod config;
pub(crate) mod server;
mod stop;

use std::process::ExitCode;

use anyhow::Result;
use tokio_util::sync::CancellationToken;

use crate::output;
use crate::session::Options;
use config::{Config, Flags};
use server::Server;

pub(crate) use stop::stop_on_signals;

/// Serves until a signal comes; a second one ends the process at once.
pub(crate) async fn run(flags: Flags) -> Result<ExitCode> {
    let config = flags.config()?;
    let stop = CancellationToken::new();
    stop_on_signals(stop.clone())?;
    let server = Server::start(&config, stop.clone()).await?;
    output::message(&format!(
        "windlass {} listens on {}\n  store       {}\n  durability  {}\n  queue       {}\n  docs        {}/docs",
        env!("CARGO_PKG_VERSION"),
        server.url(),
        config.store,
        config.durability.word(),
        config.queue,
        server.url(),
    ));
    if config.allow_scripts {
        output::message("  scripts     allowed: flows may run commands on this machine");
    }
    server.until_stopped(config.drain).await?;
    output::message("stopped: what was running goes on after the next start");
    Ok(ExitCode::SUCCESS)
}

/// Says whether the settings can be used, and what they come to.
pub(crate) fn check_config(flags: Flags, options: &Options) -> Result<ExitCode> {
    let config = flags.config()?;
    let out = options.print();
    out.value(&config.shown(), "ok", || config_text(&config))?;
    Ok(ExitCode::SUCCESS)
}

fn config_text(config: &Config) -> String {
    let shown = config.shown();
    let lines = shown.as_object().into_iter().flatten();
    lines.map(|(key, value)| format!("{key:<28} {}\n", plain(value))).collect()
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
