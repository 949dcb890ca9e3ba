//! The heartbeat of a worker: it registers, reports its load every few seconds, and registers again when the server
//! does not know it any more.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Services;
use crate::Client;
use crate::client::Registration;

/// How soon a worker that could not be registered tries again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The registration data of a worker.
#[derive(Debug, Clone)]
pub(super) struct WorkerCard(Registration);

impl WorkerCard {
    pub(super) fn new(id: &str, url: Option<String>, services: &Services, slots: usize, pull: bool) -> Self {
        let kind = if url.is_none() && pull { "async" } else { "http" };
        let mut names: Vec<String> = services.names().map(str::to_owned).collect();
        names.sort_unstable();
        WorkerCard(Registration {
            id: id.to_owned(),
            url: url.unwrap_or_default(),
            services: names,
            queues: services.queues.keys().filter(|_| pull).cloned().collect(),
            capacity: Some(slots),
            kind: kind.to_owned(),
        })
    }
}

/// Sends heartbeats until `stop`; cancels `drain` when the server drains the worker.
pub(super) async fn run(
    client: Client,
    card: WorkerCard,
    every: Duration,
    load: impl Fn() -> usize + Send,
    drain: CancellationToken,
    stop: CancellationToken,
) {
    let mut known = false;
    loop {
        known = beat(&client, &card.0, load(), known, &drain).await;
        let pause = if known { every } else { RETRY_DELAY };
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}

/// Sends one heartbeat; returns whether the server knows the worker now.
async fn beat(
    client: &Client,
    card: &Registration,
    load: usize,
    known: bool,
    drain: &CancellationToken,
) -> bool {
    if known {
        match client.workers().heartbeat(&card.id, &card.url, load).await {
            Ok(false) => return true,
            Ok(true) => {
                drain.cancel();
                return true;
            }
            Err(error) if error.is_not_found() => {
                tracing::info!(worker = %card.id, "the server does not know this worker any more: registering again");
            }
            Err(error) => {
                tracing::warn!(worker = %card.id, %error, "a heartbeat failed");
                return true;
            }
        }
    }
    match client.workers().register(card).await {
        Ok(()) => {
            tracing::info!(worker = %card.id, url = %card.url, services = ?card.services, "registered");
            true
        }
        Err(error) => {
            tracing::warn!(worker = %card.id, %error, "could not register, will try again");
            false
        }
    }
}
