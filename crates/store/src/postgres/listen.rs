//! What servers on one database tell one another: that something was written, and where.
//!
//! It is said after a commit, not in it: a transaction that says something is made durable with nobody beside it, and
//! what is said is only a hint. A listener has a connection of its own, which is made again when it is lost; then
//! anything may have been missed, and that is said.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Config, NoTls};
use uuid::Uuid;
use windlass_engine::id::RunId;

use super::column::{Id, cells};
use super::link::Link;
use crate::hint::{Hint, Hints, Listeners};

const LISTEN: &str = "LISTEN windlass";
const TELL: &str = "SELECT pg_notify('windlass', $1)";
/// PostgreSQL takes less than 8,000 bytes.
const BYTES_MAX: usize = 7_900;
/// Before a lost connection is made again; longer each time.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A hint on its way.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Told {
    from: Uuid,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<Uuid>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queues: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    outbox: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    schedules: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    settings: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    everything: bool,
}

/// One end of what servers tell one another.
#[derive(Debug)]
pub(super) struct Channel {
    /// Tells this one from the others, so that nobody is told of what it did itself.
    me: Uuid,
    config: Config,
    runtime: Handle,
    listeners: Arc<Listeners>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

impl Channel {
    pub(super) fn new(config: Config) -> Self {
        Channel {
            me: Uuid::now_v7(),
            config,
            runtime: Handle::current(),
            listeners: Arc::default(),
            listening: Mutex::default(),
        }
    }

    /// Tells the others, at leisure and on this connection, which is of no other use meanwhile. What cannot be said is
    /// not said: a database that is only like PostgreSQL may not know how.
    pub(super) fn tell(&self, db: Link, hint: Hint) {
        if hint.is_empty() {
            return;
        }
        let payload = self.payload(hint);
        self.runtime.spawn(async move { drop(db.ask(TELL, &cells![payload]).await) });
    }

    fn payload(&self, hint: Hint) -> String {
        let Hint { runs, queues, outbox, schedules, settings, everything } = hint;
        let (runs, queues) = (runs.into_iter().map(Id::key).collect(), queues.into_iter().collect());
        let told = Told { from: self.me, runs, queues, outbox, schedules, settings, everything };
        let written = |told: &Told| serde_json::to_string(told).expect("ids and texts can be written");
        Some(written(&told))
            .filter(|text| text.len() <= BYTES_MAX)
            .unwrap_or_else(|| written(&Told { from: self.me, everything: true, ..Told::default() }))
    }

    /// What the others tell, from now on.
    pub(super) fn listen(&self) -> Hints {
        let hints = self.listeners.add();
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        listening.get_or_insert_with(|| {
            self.runtime.spawn(listen(self.config.clone(), self.me, self.listeners.clone()))
        });
        hints
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner).take();
        listening.iter().for_each(JoinHandle::abort);
    }
}

async fn listen(config: Config, me: Uuid, listeners: Arc<Listeners>) {
    let mut pause = PAUSE;
    loop {
        if hear(&config, me, &listeners).await {
            pause = PAUSE;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Listens until the connection is lost; whether there was one.
async fn hear(config: &Config, me: Uuid, listeners: &Listeners) -> bool {
    let Ok((client, mut connection)) = config.connect(NoTls).await else { return false };
    let mut asked = std::pin::pin!(client.batch_execute(LISTEN));
    let mut is_heard = false;
    loop {
        let message = tokio::select! {
            answer = &mut asked, if !is_heard => {
                if answer.is_err() {
                    return false;
                }
                is_heard = true;
                listeners.tell(&Hint { everything: true, ..Hint::default() });
                continue;
            }
            message = poll_fn(|context| connection.poll_message(context)) => message,
        };
        match message {
            Some(Ok(AsyncMessage::Notification(told))) => {
                let told: Option<Told> = serde_json::from_str(told.payload()).ok();
                listeners.tell(&told.map_or_else(unknown, |told| read(told, me)));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return is_heard,
        }
    }
}

/// What somebody of another version has said.
fn unknown() -> Hint {
    Hint { everything: true, ..Hint::default() }
}

fn read(told: Told, me: Uuid) -> Hint {
    if told.from == me {
        return Hint::default();
    }
    let Told { from: _, runs, queues, outbox, schedules, settings, everything } = told;
    let runs = runs.into_iter().map(RunId::from_key).collect();
    Hint { runs, queues: queues.into_iter().collect(), outbox, schedules, settings, everything }
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[LISTEN, TELL];
