//! Hints between servers on one database: that rows were written, and where.
//!
//! A hint is sent after a commit, not in it: a transaction with NOTIFY takes a global lock at its end, and a hint
//! may be lost. So it is sent on a connection of its own, which does not wait for the disk, one at a time:
//! hints that arrive meanwhile are merged. A listener has a connection of its own too, which is made
//! again when it is lost; then any hint may have been missed, and listeners are told so.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::AsyncMessage;
use uuid::Uuid;
use windlass_engine::id::{JobId, RunId};
use windlass_engine::job::Job;

use super::column::{PostgresColumns, PostgresId, cells};
use super::job_hints::JobHints;
use super::link::{self, Connector, Link, Purpose};
use crate::column::Columns;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::hint::{Hint, Hints, Listeners};

const LISTEN: &str = "LISTEN windlass";
const NOTIFY: &str = "SELECT pg_notify('windlass', $1)";
const STILL_READY: &str = "SELECT DISTINCT queue FROM jobs WHERE id = ANY($1) AND due_at IS NOT NULL";
/// PostgreSQL takes less than 8,000 bytes.
const BYTES_MAX: usize = 7_900;
/// Runs that are named in one hint when there is too much for one: 39 bytes each.
const RUNS_MAX: usize = 190;
/// Before a lost connection is made again; longer each time.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A hint on its way.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct HintPayload {
    from: Uuid,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<Uuid>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queues: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    overdue: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    outbox: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    schedules: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    settings: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    everything: bool,
}

/// One end of the channel between servers.
#[derive(Debug)]
pub(super) struct Channel {
    /// Identifies this server, so that it ignores its own hints.
    me: Uuid,
    connector: Connector,
    runtime: Handle,
    /// Hints to send; one task reads and sends them.
    outgoing: Arc<Listeners>,
    job_hints: Arc<JobHints>,
    overdue_task: JoinHandle<()>,
    listeners: Arc<Listeners>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

impl Channel {
    pub(super) fn new(connector: Connector) -> Result<Self, StoreError> {
        let (me, outgoing, job_hints) =
            (Uuid::now_v7(), Arc::<Listeners>::default(), Arc::<JobHints>::default());
        let send_pool = link::pool(connector.clone(), Durability::Fast, Purpose::Any, 1)?;
        tokio::spawn(send_hints(send_pool.clone(), me, outgoing.add()));
        let overdue_task = tokio::spawn(send_overdue(send_pool, job_hints.clone(), outgoing.clone()));
        Ok(Channel {
            me,
            connector,
            runtime: Handle::current(),
            overdue_task,
            outgoing,
            job_hints,
            listeners: Arc::default(),
            listening: Mutex::default(),
        })
    }

    /// Sends a hint, eventually. A hint that cannot be sent is dropped: a database that is only like PostgreSQL may not
    /// support NOTIFY.
    pub(super) fn tell(&self, hint: &Hint) {
        self.outgoing.tell(hint);
    }

    /// Sends hints of written rows, and of jobs that no worker here is likely to claim.
    pub(super) fn tell_written<'j>(&self, hint: Hint, jobs: impl Iterator<Item = &'j Job>) {
        self.tell(&Hint { queues: self.job_hints.written(jobs), ..hint });
    }

    /// Hints of the other servers, from now on.
    pub(super) fn listen(&self) -> Hints {
        let hints = self.listeners.add();
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        listening.get_or_insert_with(|| {
            self.runtime.spawn(listen(self.connector.clone(), self.me, self.listeners.clone()))
        });
        hints
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner).take();
        listening.iter().for_each(JoinHandle::abort);
        self.overdue_task.abort();
    }
}

/// Sends hints until the channel closes.
async fn send_hints(send_pool: Pool, me: Uuid, mut outgoing: Hints) {
    while let Some(hint) = outgoing.next().await {
        for payload in payloads(me, hint) {
            // The connection may be an old one, of before the database was started again: then there is a new one.
            if notify(&send_pool, &payload).await.is_err() {
                drop(notify(&send_pool, &payload).await);
            }
        }
    }
}

async fn notify(send_pool: &Pool, payload: &str) -> Result<(), StoreError> {
    Link::take(send_pool).await?.ask(NOTIFY, &cells![payload]).await.map(drop)
}

/// Sends hints of jobs that no worker here claims, unless another server has them.
async fn send_overdue(send_pool: Pool, job_hints: Arc<JobHints>, outgoing: Arc<Listeners>) {
    loop {
        let late = job_hints.late().await;
        let overdue = match still_ready(&send_pool, late.keys().copied()).await {
            Ok(queues) => queues,
            Err(_) => late.into_values().collect(),
        };
        outgoing.tell(&Hint { overdue, ..Hint::default() });
    }
}

async fn still_ready(
    send_pool: &Pool,
    jobs: impl Iterator<Item = JobId>,
) -> Result<BTreeSet<String>, StoreError> {
    let rows = Link::take(send_pool)
        .await?
        .ask(STILL_READY, &cells![jobs.map(PostgresId::key).collect::<Vec<_>>()])
        .await?;
    rows.iter().map(|row| PostgresColumns::of(row).text()).collect()
}

/// A hint as it is said; in several parts if there is too much for one.
fn payloads(me: Uuid, hint: Hint) -> Vec<String> {
    let Hint { runs, queues, overdue, outbox, schedules, settings, everything } = hint;
    let runs: Vec<Uuid> = runs.into_iter().map(PostgresId::key).collect();
    let written =
        |payload: &HintPayload| serde_json::to_string(payload).expect("ids and texts can be written");
    let mut payload = HintPayload {
        from: me,
        runs,
        queues: queues.into_iter().collect(),
        overdue: overdue.into_iter().collect(),
        outbox,
        schedules,
        settings,
        everything,
    };
    let whole = written(&payload);
    if whole.len() <= BYTES_MAX {
        return vec![whole];
    }
    let runs = std::mem::take(&mut payload.runs);
    let part =
        |runs: &[Uuid]| written(&HintPayload { from: me, runs: runs.to_vec(), ..HintPayload::default() });
    let mut parts: Vec<String> = runs.chunks(RUNS_MAX).map(part).collect();
    let rest = written(&payload);
    if rest.len() > BYTES_MAX {
        return vec![written(&HintPayload { from: me, everything: true, ..HintPayload::default() })];
    }
    parts.push(rest);
    parts
}

async fn listen(connector: Connector, me: Uuid, listeners: Arc<Listeners>) {
    let mut pause = PAUSE;
    loop {
        if receive(&connector, me, &listeners).await {
            pause = PAUSE;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Listens until the connection is lost; whether there was one.
async fn receive(connector: &Connector, me: Uuid, listeners: &Listeners) -> bool {
    let Ok((client, mut connection)) = connector.connect().await else { return false };
    let mut asked = std::pin::pin!(client.batch_execute(LISTEN));
    let (mut is_listening, own) = (false, format!(r#"{{"from":"{me}""#));
    loop {
        let message = tokio::select! {
            answer = &mut asked, if !is_listening => {
                if answer.is_err() {
                    return false;
                }
                is_listening = true;
                listeners.tell(&Hint { everything: true, ..Hint::default() });
                continue;
            }
            message = poll_fn(|context| connection.poll_message(context)) => message,
        };
        match message {
            // It does not read its own hints.
            Some(Ok(AsyncMessage::Notification(notification)))
                if notification.payload().starts_with(&own) => {}
            Some(Ok(AsyncMessage::Notification(notification))) => {
                let payload: Option<HintPayload> = serde_json::from_str(notification.payload()).ok();
                listeners.tell(&payload.map_or_else(unknown, read));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return is_listening,
        }
    }
}

/// A hint of a server of another version.
fn unknown() -> Hint {
    Hint { everything: true, ..Hint::default() }
}

fn read(payload: HintPayload) -> Hint {
    let HintPayload { from: _, runs, queues, overdue, outbox, schedules, settings, everything } = payload;
    let runs = runs.into_iter().map(RunId::new).collect();
    let (queues, overdue) = (queues.into_iter().collect(), overdue.into_iter().collect());
    Hint { runs, queues, overdue, outbox, schedules, settings, everything }
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[LISTEN, NOTIFY, STILL_READY];

#[cfg(test)]
mod tests {
    use super::*;

    fn of_runs(n: u128) -> Hint {
        Hint { runs: (0..n).map(|n| RunId::new(Uuid::from_u128(n))).collect(), ..Hint::default() }
    }

    fn received(hint: &Hint) -> (usize, Hint) {
        let outgoing = payloads(Uuid::from_u128(7), hint.clone());
        assert!(outgoing.iter().all(|text| text.len() <= BYTES_MAX));
        let mut whole = Hint::default();
        outgoing.iter().for_each(|text| whole.merge(read(serde_json::from_str(text).unwrap())));
        (outgoing.len(), whole)
    }

    #[test]
    fn a_hint_that_fits_is_sent_at_once_and_a_larger_one_in_parts() {
        let small = Hint { outbox: true, queues: ["q".to_owned()].into(), ..of_runs(190) };
        assert_eq!(received(&small), (1, small.clone()));
        let large = Hint { outbox: true, queues: ["q".to_owned()].into(), ..of_runs(1_000) };
        assert_eq!(received(&large), (7, large.clone()));
    }

    #[test]
    fn names_that_do_not_fit_are_everything() {
        let names = (0..100).map(|n| format!("{n:0100}")).collect();
        let hint = Hint { queues: names, ..of_runs(1) };
        assert_eq!(received(&hint), (1, unknown()));
    }

    #[test]
    fn whose_a_hint_is_stands_at_its_beginning() {
        let outgoing = payloads(Uuid::from_u128(7), of_runs(1));
        assert!(
            outgoing[0].starts_with(r#"{"from":"00000000-0000-0000-0000-000000000007""#),
            "{}",
            outgoing[0]
        );
    }
}
