//! `windlass service`: shows and configures services.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{ArgGroup, Args, Subcommand};
use windlass_sdk::contract::{RunPriority, SecretChange, ServiceChange, ServiceInfo};

use crate::exit::Exit;
use crate::help::{CHANGE_EXITS, SHOW_EXITS, help};
use crate::run::priority;
use crate::session::{GlobalArgs, Session, duration, in_words};

#[derive(Subcommand)]
pub(crate) enum ServiceCommand {
    /// Lists services of live workers, and services with settings.
    #[command(after_help = help!("  windlass service list\n  windlass service list -o json", SHOW_EXITS))]
    List,
    /// Shows a service.
    #[command(after_help = help!("  windlass service show video_motion", SHOW_EXITS))]
    Show(ServiceSelector),
    /// Configures a service, for runs that start afterwards.
    #[command(after_help = help!(
        "  windlass service set video_motion --recheck-ms 5000\n  windlass service set video_motion --recheck 1m\n  \
           windlass service set video_motion --timeout 30m --calls-max 8 --priority high\n  \
           windlass service set video_motion --clear",
        CHANGE_EXITS
    ))]
    Set(ServiceSetArgs),
}

/// A service.
#[derive(Args)]
pub(crate) struct ServiceSelector {
    /// The name of the service.
    service: String,
}

/// The flags that set something; one of them is needed, or `--clear`.
const SETTINGS: [&str; 8] = [
    "recheck_ms",
    "recheck",
    "until_reported",
    "timeout",
    "calls_max",
    "priority",
    "secret_file",
    "no_secret",
];

#[derive(Args)]
#[command(group = ArgGroup::new("setting").multiple(true).args(SETTINGS))]
pub(crate) struct ServiceSetArgs {
    #[command(flatten)]
    which: ServiceSelector,
    /// The pause before a suspended call is made again, in milliseconds, and the first delay after temporary faults.
    #[arg(long, value_name = "MS", conflicts_with = "recheck")]
    recheck_ms: Option<u64>,
    /// The same as a duration: 500ms, 10s, 5m, 2h.
    #[arg(long, value_parser = duration)]
    recheck: Option<Duration>,
    /// Suspended calls wait until they are reported.
    #[arg(long, conflicts_with_all = ["recheck_ms", "recheck"])]
    until_reported: bool,
    /// The time limit over all attempts of a call whose node has none: 30s, 10m, 2h.
    #[arg(long, value_parser = duration)]
    timeout: Option<Duration>,
    /// Parallel calls to push workers at most.
    #[arg(long, value_name = "N")]
    calls_max: Option<u32>,
    /// The priority of calls whose node has none.
    #[arg(long, value_parser = priority)]
    priority: Option<RunPriority>,
    /// A file with the secret under which calls to push workers are signed, `-` = standard input: `whsec_` and 24 to 64
    /// bytes as base64. Without it the secret stays as it is.
    #[arg(long, value_name = "FILE", conflicts_with = "no_secret")]
    secret_file: Option<PathBuf>,
    /// Sign no calls any more.
    #[arg(long)]
    no_secret: bool,
    /// Remove the settings, the secret too.
    #[arg(long, conflicts_with = "setting", required_unless_present = "setting")]
    clear: bool,
}

pub(crate) async fn run(command: ServiceCommand, options: &GlobalArgs) -> Result<Exit> {
    let session = &options.session()?;
    match command {
        ServiceCommand::List => list(session).await,
        ServiceCommand::Show(ServiceSelector { service }) => {
            print_service(&session.client.services().show(&service).await?, session)
        }
        ServiceCommand::Set(given) => {
            let millis = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let change = ServiceChange {
                recheck_ms: given.recheck_ms.or(given.recheck.map(millis)),
                until_reported: given.until_reported,
                timeout_ms: given.timeout.map(millis),
                calls_max: given.calls_max,
                priority: given.priority,
                secret: match &given.secret_file {
                    Some(path) => SecretChange::Set(read_secret(path)?),
                    None if given.no_secret || given.clear => SecretChange::Remove,
                    None => SecretChange::Keep,
                },
            };
            print_service(&session.client.services().set(&given.which.service, &change).await?, session)
        }
    }
}

/// Reads a secret from a file, or from standard input.
pub(crate) fn read_secret(path: &Path) -> Result<String> {
    let text = match path.to_str() {
        Some("-") => std::io::read_to_string(std::io::stdin()),
        _ => std::fs::read_to_string(path),
    };
    let text = text.with_context(|| format!("cannot read the secret in {}", path.display()))?;
    Ok(text.trim().to_owned())
}

async fn list(session: &Session) -> Result<Exit> {
    let services = session.client.services().all().await?;
    session.out.list(
        ["service", "waiting", "workers", "busy", "settings"],
        &services,
        |service| service.name.clone(),
        |service| {
            [
                service.name.clone(),
                service.n_waiting.to_string(),
                service.n_workers.to_string(),
                busy_text(service),
                settings_of(service).join(", "),
            ]
        },
    )?;
    Ok(Exit::Done)
}

fn print_service(service: &ServiceInfo, session: &Session) -> Result<Exit> {
    session.out.value(service, &service.name, || {
        let ServiceInfo { name, n_workers, n_waiting, .. } = service;
        let mut text = format!("{name}\n  waiting       {n_waiting}\n  live workers  {n_workers}\n");
        text += &format!("  busy          {}\n", busy_text(service));
        settings_of(service).iter().for_each(|setting| text += &format!("  {setting}\n"));
        text
    })?;
    Ok(Exit::Done)
}

/// The calls in progress, and those that the workers can take at once.
fn busy_text(service: &ServiceInfo) -> String {
    format!("{} of {}", service.load, service.capacity)
}

fn settings_of(service: &ServiceInfo) -> Vec<String> {
    let words = |ms: u64| in_words(i64::try_from(ms).unwrap_or(i64::MAX));
    let settings = [
        service.recheck_ms.map(|ms| format!("recheck every {}", words(ms))),
        service.until_reported.then(|| "suspended until reported".to_owned()),
        service.timeout_ms.map(|ms| format!("timeout {}", words(ms))),
        service.calls_max.map(|n| format!("{n} calls at most")),
        service.priority.map(|priority| format!("priority {}", priority.word())),
        service.is_signed.then(|| "calls are signed".to_owned()),
    ];
    settings.into_iter().flatten().collect()
}
