//! The heartbeat of a worker: it registers, reports its load every few seconds, and registers again when the server
//! does not know it any more. A worker whose id another worker has taken stops.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Services;
use super::slots::Slots;
use crate::Client;
use crate::client::Registration;

/// How soon a worker that could not be registered tries again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The registration data of a worker.
pub(super) struct WorkerRegistration {
    fixed: Registration,
    slots: Arc<Slots>,
}

impl WorkerRegistration {
    pub(super) fn new(
        id: &str,
        url: Option<String>,
        services: &Services,
        slots: Arc<Slots>,
        pull: bool,
        secret: Option<String>,
    ) -> Self {
        let kind = if url.is_none() && pull { "async" } else { "http" };
        let mut names: Vec<String> = services.names().map(str::to_owned).collect();
        names.sort_unstable();
        let fixed = Registration {
            id: id.to_owned(),
            url: url.unwrap_or_default(),
            services: names,
            queues: services.queues.keys().filter(|_| pull).cloned().collect(),
            capacity: None,
            kind: kind.to_owned(),
            secret,
        };
        WorkerRegistration { fixed, slots }
    }

    /// With the number of slots that the worker has now.
    fn now(&self) -> Registration {
        Registration { capacity: Some(self.slots.n()), ..self.fixed.clone() }
    }
}

/// The state of a worker at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RegistrationState {
    Registered,
    Unregistered,
    /// Another worker has the id.
    Lost,
}

/// Sends heartbeats until `stop`; cancels `drain` when the server drains the worker. Cancels `lost` and `drain` and
/// returns when another worker has taken the id: both would take it from each other for ever.
pub(super) async fn run(
    client: Client,
    registration: WorkerRegistration,
    every: Duration,
    load: impl Fn() -> usize + Send,
    drain: CancellationToken,
    lost: CancellationToken,
    stop: CancellationToken,
) {
    let mut state = RegistrationState::Unregistered;
    loop {
        state = beat(&client, &registration.now(), load(), state, &drain).await;
        let pause = match state {
            RegistrationState::Registered => every,
            RegistrationState::Unregistered => RETRY_DELAY,
            RegistrationState::Lost => {
                lost.cancel();
                return drain.cancel();
            }
        };
        let resized = tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => false,
            () = registration.slots.changed() => true,
        };
        if resized && state == RegistrationState::Registered {
            // The server calls and counts a worker by the capacity of its registration.
            state = RegistrationState::Unregistered;
        }
    }
}

/// Sends one heartbeat, or registers.
async fn beat(
    client: &Client,
    registration: &Registration,
    load: usize,
    state: RegistrationState,
    drain: &CancellationToken,
) -> RegistrationState {
    if state == RegistrationState::Registered {
        match client.workers().heartbeat(&registration.id, &registration.url, load).await {
            Ok(false) => return RegistrationState::Registered,
            Ok(true) => {
                drain.cancel();
                return RegistrationState::Registered;
            }
            Err(error) if error.is_conflict() => {
                tracing::error!(worker = %registration.id, %error, "the id is lost: this worker stops");
                return RegistrationState::Lost;
            }
            Err(error) if error.is_not_found() => {
                tracing::info!(worker = %registration.id, "the server does not know this worker any more: registering again");
            }
            Err(error) => {
                tracing::warn!(worker = %registration.id, %error, "a heartbeat failed");
                return RegistrationState::Registered;
            }
        }
    }
    match client.workers().register(registration).await {
        Ok(()) => {
            tracing::info!(worker = %registration.id, url = %registration.url, services = ?registration.services, "registered");
            RegistrationState::Registered
        }
        Err(error) => {
            tracing::warn!(worker = %registration.id, %error, "could not register, will try again");
            RegistrationState::Unregistered
        }
    }
}
