//! The worker: services that this program offers, pulled from the server's queues, pushed by the server, or both.
//!
//! Pull: jobs are claimed in batches up to the free slots, leases are kept alive while handlers work, and results are
//! handed in together. Push: the server calls this program over HTTP. Either way the worker registers itself and
//! sends heartbeats.

mod handler;
mod heartbeat;
mod held_leases;
mod name;
mod pull;
mod push;
mod result_sender;
mod signature;
mod slots;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{Client, ClientError};
use handler::Handler;
use signature::SignatureCheck;
use slots::{SlotRange, Slots};

pub use handler::{CallLogger, HandlerOutcome, ServiceCall};
pub use name::unique_id;
pub use push::bind;

/// Calls answered at once unless told otherwise.
const SLOTS: usize = 64;
/// How long a claim lasts unless it is extended.
const LEASE: Duration = Duration::from_secs(30);
/// The interval of heartbeats: three of them within the time after which a worker counts as gone.
const BEAT: Duration = Duration::from_secs(5);
/// How long at most half of the slots are taken before a worker with a range of slots gives some up.
const IDLE: Duration = Duration::from_secs(10);
/// How long calls may go on after the worker was told to stop.
const GRACE: Duration = Duration::from_secs(25);

/// How long a call that was canceled at the end may take to stop.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The error of a worker whose id was taken.
const LOST: &str =
    "another worker registered the same id from another address: give each worker an id of its own";

/// Handlers by the names of services and queues.
#[derive(Clone, Default)]
pub(crate) struct Services {
    services: BTreeMap<String, Handler>,
    queues: BTreeMap<String, Handler>,
}

impl Services {
    fn of_service(&self, service: &str) -> Option<&Handler> {
        self.services.get(service)
    }

    /// The handler of a job: the one of its service, or else the one of its queue.
    fn of_job(&self, service: &str, queue: &str) -> Option<&Handler> {
        self.services.get(service).or_else(|| self.queues.get(queue))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.services.keys().map(String::as_str)
    }
}

/// A worker that is being put together.
pub struct Worker {
    client: Client,
    id: String,
    services: Services,
    slots: SlotRange,
    idle: Duration,
    lease: Duration,
    grace: Duration,
    beat: Duration,
    pull: bool,
    push: Option<(TcpListener, String)>,
    /// The secret that the server is given at the registration.
    secret: Option<String>,
    signatures: SignatureCheck,
}

impl Worker {
    /// A worker without services. The id must be its own: two workers of one id are taken for one.
    pub fn new(client: Client, id: impl Into<String>) -> Self {
        Worker {
            client,
            id: id.into(),
            services: Services::default(),
            slots: SlotRange::new(SLOTS, SLOTS),
            idle: IDLE,
            lease: LEASE,
            grace: GRACE,
            beat: BEAT,
            pull: true,
            push: None,
            secret: None,
            signatures: SignatureCheck::default(),
        }
    }

    /// Offers a service.
    #[must_use]
    pub fn service<F, R>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(ServiceCall) -> R + Send + Sync + 'static,
        R: Future + Send + 'static,
        R::Output: Into<HandlerOutcome>,
    {
        self.services.services.insert(name.into(), Handler::new(handler));
        self
    }

    /// Claims the jobs of a queue, whose service may have any name, unless a service of that name is offered too.
    #[must_use]
    pub fn queue<F, R>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(ServiceCall) -> R + Send + Sync + 'static,
        R: Future + Send + 'static,
        R::Output: Into<HandlerOutcome>,
    {
        self.services.queues.insert(name.into(), Handler::new(handler));
        self
    }

    /// How many calls are answered at once, pushed and pulled ones each.
    #[must_use]
    pub fn slots(self, slots: usize) -> Self {
        self.slots_between(slots, slots)
    }

    /// How many calls are answered at once, at least and at most: the number doubles while work waits, and halves
    /// when at most half of them were taken for ten seconds. The server hears of it at once.
    #[must_use]
    pub fn slots_between(mut self, min: usize, max: usize) -> Self {
        self.slots = SlotRange::new(min, max);
        self
    }

    /// How long at most half of the slots are taken before half of them are given up.
    #[must_use]
    pub fn idle_after(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// How long a claim lasts unless it is extended; it is extended at a third.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_millis(3));
        self
    }

    /// How long calls may go on after the worker was told to stop; then they are canceled.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The interval of the worker's heartbeats.
    #[must_use]
    pub fn beat_every(mut self, beat: Duration) -> Self {
        self.beat = beat;
        self
    }

    /// Lets the server call this worker at `url`, answered on `listener`; see [`bind`].
    #[must_use]
    pub fn listen(mut self, listener: TcpListener, url: impl Into<String>) -> Self {
        self.push = Some((listener, url.into()));
        self
    }

    /// Answers only pushed calls that the server has signed under this secret, and gives the server the secret with the
    /// registration: `whsec_` and 24 to 64 bytes as base64. Give it over `https` only, or set it as the secret of the
    /// service and use [`Worker::accept_secret`].
    pub fn secret(mut self, secret: &str) -> Result<Self, ClientError> {
        self.signatures.accept(secret)?;
        self.secret = Some(secret.trim().to_owned());
        Ok(self)
    }

    /// Answers only pushed calls that are signed under this secret, or under another accepted one: the server knows it as
    /// the secret of the service. While it is replaced, a worker accepts both.
    pub fn accept_secret(mut self, secret: &str) -> Result<Self, ClientError> {
        self.signatures.accept(secret)?;
        Ok(self)
    }

    /// Claims no jobs: the worker only answers pushed calls.
    #[must_use]
    pub fn push_only(mut self) -> Self {
        self.pull = false;
        self
    }

    /// Works until `shutdown` is canceled or the server drains this worker; then claims nothing new, lets its open
    /// calls end, and returns. An unreachable server is retried. A worker that the server drains has all the
    /// time it needs; after `shutdown`, the time of its grace. It is an error if another worker has taken the id.
    pub async fn run(self, shutdown: CancellationToken) -> io::Result<()> {
        let Worker { client, id, services, slots, idle, lease, grace, beat, pull, push, secret, signatures } =
            self;
        let slots = Arc::new(Slots::new(slots));
        let push_state = Arc::new(push::PushState::new(services.clone(), Arc::clone(&slots), signatures));
        let held = Arc::new(held_leases::HeldLeases::default());
        let url = push.as_ref().map(|(_, url)| url.clone());
        let registration =
            heartbeat::WorkerRegistration::new(&id, url, &services, Arc::clone(&slots), pull, secret);
        // Heartbeats go on while the worker drains: it is busy, not dead.
        let drained = CancellationToken::new();
        let load = load_of(&push_state, &held);
        let (leave, lost) = (shutdown.child_token(), CancellationToken::new());
        let beating = heartbeat::run(
            client.clone(),
            registration,
            beat,
            load,
            leave.clone(),
            lost.clone(),
            drained.clone(),
        );
        tokio::spawn(beating);
        let (resized, load, end) = (Arc::clone(&slots), load_of(&push_state, &held), drained.clone());
        tokio::spawn(async move { end.run_until_cancelled(resized.shrink_when_idle(idle, load)).await });
        let working = TaskTracker::new();
        let mut serving = None;
        if let Some((listener, _)) = push {
            serving = Some(working.spawn(push::serve(listener, Arc::clone(&push_state), leave.clone())));
        }
        if pull {
            let (held, end) = (Arc::clone(&held), drained.clone());
            let puller = pull::Puller { client, id, services, slots, lease, held, end };
            working.spawn(puller.run(leave.clone()));
        }
        let outcome = tokio::select! {
            () = leave.cancelled() => Ok(()),
            ended = ended(&mut serving) => ended,
        };
        let is_broken = !leave.is_cancelled();
        leave.cancel();
        working.close();
        if !is_broken {
            tokio::select! {
                () = working.wait() => {}
                () = shutdown.cancelled() => {}
            }
        }
        if tokio::time::timeout(grace, working.wait()).await.is_err() {
            held.cancel_all();
            // Canceled handlers get a moment to end; those that do not react are dropped.
            let _left_behind = tokio::time::timeout(LAST_WORDS, working.wait()).await;
        }
        drained.cancel();
        if lost.is_cancelled() {
            return Err(io::Error::other(LOST));
        }
        outcome
    }
}

fn load_of(
    push_state: &Arc<push::PushState>,
    held: &Arc<held_leases::HeldLeases>,
) -> impl Fn() -> usize + Send + 'static {
    let (push_state, held) = (Arc::clone(push_state), Arc::clone(held));
    move || push_state.load() + held.len()
}

/// The end of the push server, which comes before the shutdown only if it cannot go on; never, if there is none.
async fn ended(serving: &mut Option<tokio::task::JoinHandle<io::Result<()>>>) -> io::Result<()> {
    match serving {
        Some(serving) => serving.await.unwrap_or_else(|error| Err(io::Error::other(error))),
        None => std::future::pending().await,
    }
}
