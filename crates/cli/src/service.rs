//! `windlass service`: shows and configures services.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use windlass_sdk::contract::{ServiceChange, ServiceInfo};

use crate::exit::Exit;
use crate::help::{CHANGE_EXITS, SHOW_EXITS, help};
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

#[derive(Args)]
pub(crate) struct ServiceSetArgs {
    #[command(flatten)]
    which: ServiceSelector,
    /// The pause before a suspended call is made again, in milliseconds, and the first delay after temporary faults.
    #[arg(long, value_name = "MS", required_unless_present_any = ["recheck", "clear"], conflicts_with = "recheck")]
    recheck_ms: Option<u64>,
    /// The same as a duration: 500ms, 10s, 5m, 2h.
    #[arg(long, value_parser = duration)]
    recheck: Option<Duration>,
    /// Remove the settings.
    #[arg(long, conflicts_with_all = ["recheck_ms", "recheck"])]
    clear: bool,
}

pub(crate) async fn run(command: ServiceCommand, options: &GlobalArgs) -> Result<Exit> {
    let session = &options.session()?;
    match command {
        ServiceCommand::List => list(session).await,
        ServiceCommand::Show(ServiceSelector { service }) => {
            print_service(&session.client.services().show(&service).await?, session)
        }
        ServiceCommand::Set(ServiceSetArgs { which, recheck_ms, recheck, clear: _ }) => {
            let millis = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let change = ServiceChange { recheck_ms: recheck_ms.or(recheck.map(millis)) };
            print_service(&session.client.services().set(&which.service, &change).await?, session)
        }
    }
}

async fn list(session: &Session) -> Result<Exit> {
    let services = session.client.services().all().await?;
    session.out.list(
        ["service", "workers", "recheck"],
        &services,
        |service| service.name.clone(),
        |service| [service.name.clone(), service.n_workers.to_string(), recheck_text(service)],
    )?;
    Ok(Exit::Done)
}

fn print_service(service: &ServiceInfo, session: &Session) -> Result<Exit> {
    session.out.value(service, &service.name, || {
        let ServiceInfo { name, n_workers, .. } = service;
        format!("{name}\n  live workers  {n_workers}\n  recheck       {}\n", recheck_text(service))
    })?;
    Ok(Exit::Done)
}

/// The pause before a suspended call is made again.
fn recheck_text(service: &ServiceInfo) -> String {
    match service.recheck_ms {
        Some(ms) => format!("every {}", in_words(i64::try_from(ms).unwrap_or(i64::MAX))),
        None => "set by workers and nodes".to_owned(),
    }
}
