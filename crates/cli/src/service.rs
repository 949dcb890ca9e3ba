//! `windlass service`: what workers can do, and what is set for it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use windlass_sdk::types::{Service, ServiceChange};

use crate::help::help;
use crate::session::{Options, Session, duration, in_words};

const LOOKS: &str =
    "Exit codes:\n  0  shown\n  1  there is no such service\n  3  the server could not be asked";
const ACTS: &str = "Exit codes:\n  0  done\n  1  refused\n  3  the server could not be asked";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Lists services that live workers serve, and those for which something is set.
    #[command(after_help = help!("  windlass service list\n  windlass service list -o json", LOOKS))]
    List,
    /// Shows a service.
    #[command(after_help = help!("  windlass service show video_motion", LOOKS))]
    Show(Which),
    /// Sets what holds for a service, in runs that are started from now on.
    #[command(after_help = help!(
        "  windlass service set video_motion --recheck-ms 5000\n  windlass service set video_motion --recheck 1m\n  \
           windlass service set video_motion --clear",
        ACTS
    ))]
    Set(Set),
}

/// A service.
#[derive(Args)]
pub(crate) struct Which {
    /// The name of the service.
    service: String,
}

#[derive(Args)]
pub(crate) struct Set {
    #[command(flatten)]
    which: Which,
    /// How often suspended calls are asked again, in milliseconds, and the first wait while temporary faults go on.
    #[arg(long, value_name = "MS", required_unless_present_any = ["recheck", "clear"], conflicts_with = "recheck")]
    recheck_ms: Option<u64>,
    /// The same as a length of time: 500ms, 10s, 5m, 2h.
    #[arg(long, value_parser = duration)]
    recheck: Option<Duration>,
    /// Set nothing any more.
    #[arg(long, conflicts_with_all = ["recheck_ms", "recheck"])]
    clear: bool,
}

pub(crate) async fn run(command: Command, options: &Options) -> Result<ExitCode> {
    let session = &options.session()?;
    match command {
        Command::List => list(session).await,
        Command::Show(Which { service }) => shown(&session.client.service(&service).await?, session),
        Command::Set(Set { which, recheck_ms, recheck, clear: _ }) => {
            let millis = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let change = ServiceChange { recheck_ms: recheck_ms.or(recheck.map(millis)) };
            shown(&session.client.set_service(&which.service, &change).await?, session)
        }
    }
}

async fn list(session: &Session) -> Result<ExitCode> {
    let services = session.client.services().await?.items;
    session.out.list(
        ["service", "workers", "asked again"],
        &services,
        |service| service.name.clone(),
        |service| [service.name.clone(), service.n_workers.to_string(), asked_again(service)],
    )?;
    Ok(ExitCode::SUCCESS)
}

fn shown(service: &Service, session: &Session) -> Result<ExitCode> {
    session.out.value(service, &service.name, || {
        let Service { name, n_workers, .. } = service;
        format!("{name}\n  live workers  {n_workers}\n  asked again   {}\n", asked_again(service))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// How often suspended calls are asked again.
fn asked_again(service: &Service) -> String {
    match service.recheck_ms {
        Some(ms) => format!("every {}", in_words(i64::try_from(ms).unwrap_or(i64::MAX))),
        None => "as workers and nodes say".to_owned(),
    }
}
