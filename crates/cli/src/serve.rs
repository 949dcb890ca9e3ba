//! `windlass serve` and `windlass check-config`.
//!
//! `config` reads the settings; `server` is the server itself, which `dev` uses too.

mod access;
pub(crate) mod config;
pub(crate) mod server;
mod signals;

use anyhow::Result;
use tokio_util::sync::CancellationToken;
use windlass_runtime::ScriptPolicy;
use windlass_runtime::calls::script::runs_as_root;

use crate::exit::Exit;
use crate::output;
use crate::session::GlobalArgs;
use config::{ScriptConfig, ServeArgs, ServerConfig};
use server::ListeningServer;

pub(crate) use signals::stop_on_signals;

/// Serves until a signal arrives; a second signal ends the process at once.
pub(crate) async fn run(flags: ServeArgs) -> Result<Exit> {
    let config = flags.config()?;
    let stop = CancellationToken::new();
    stop_on_signals(stop.clone())?;
    let server = ListeningServer::start(&config, stop.clone()).await?;
    output::message(&format!(
        "windlass {} listens on {}\n  store       {}\n  durability  {}\n  queue       {}\n  access      {}\n  open files  {}: {} for connections, {} for calls, scripts and the store\n  console     {}/ui/\n  docs        {}/docs",
        env!("CARGO_PKG_VERSION"),
        server.url(),
        config.store,
        config.durability.word(),
        config.queue,
        server.access.line(),
        server.descriptors.limit,
        server.descriptors.connections,
        server.descriptors.reserved(),
        server.url(),
        server.url(),
    ));
    if let Some(line) = tls_line(&config) {
        output::message(&format!("  tls         {line}"));
    }
    if let Some(line) = scripts_line(&config.scripts) {
        output::message(&format!("  scripts     {line}"));
    }
    server.until_stopped(config.drain).await?;
    output::message("stopped: open runs go on after the next start");
    Ok(Exit::Done)
}

/// The certificate, and whether clients need one too.
fn tls_line(config: &ServerConfig) -> Option<String> {
    let files = config.tls.listener.as_ref()?;
    let clients = match &files.client_ca {
        None => String::new(),
        Some(ca) => format!("; clients need a certificate of {}", ca.display()),
    };
    Some(format!("{}, read again when it changes{clients}", files.cert.display()))
}

/// Which commands flows may run, and whether their limits hold.
fn scripts_line(scripts: &ScriptConfig) -> Option<String> {
    if scripts.policy != ScriptPolicy::All {
        return None;
    }
    let allowed = "allowed: flows may run commands on this machine";
    Some(match &scripts.user {
        Some((_, name)) => format!("{allowed}, as the user {name}"),
        None if runs_as_root() && scripts.limits.processes_max > 0 => {
            format!("{allowed}, as root: script_processes_max does not hold for root, set script_user")
        }
        None => allowed.to_owned(),
    })
}

/// Checks the settings and prints them.
pub(crate) fn check_config(flags: ServeArgs, options: &GlobalArgs) -> Result<Exit> {
    let config = flags.config()?;
    let out = options.print();
    out.value(&config.shown(), "ok", || config_text(&config))?;
    Ok(Exit::Done)
}

fn config_text(config: &ServerConfig) -> String {
    let shown = config.shown();
    let lines = shown.as_object().into_iter().flatten();
    lines.map(|(key, value)| format!("{key:<28} {}\n", plain(value))).collect()
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
