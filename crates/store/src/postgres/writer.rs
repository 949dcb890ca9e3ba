//! Writers of commits: a few tasks, each with a connection of its own, and each with one group of commits at a time.
//!
//! A group holds the commits that arrived while all writers were busy. It goes into one transaction, in two round trips: one
//! locks and reads the rows that the group concerns, one writes the accepted commits and makes them durable. No caller
//! is answered before that. A refused commit does not affect the others; if a statement fails, each commit gets a
//! transaction of its own. If another transaction came between, the whole group is retried and sees its changes: the commands show
//! which commits have been made already.

mod commit_queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use windlass_engine::id::CommandId;
use windlass_engine::project::Project;

use super::batch::Batch;
use super::commit::{self, Draft};
use super::link::{Link, Piped};
use super::listen::Channel;
use super::read_set::ReadSet;
use super::trouble::{ErrorClass, Trouble, again, kind};
use crate::commit::Committed;
use crate::condition::ConditionLog;
use crate::error::StoreError;
use commit_queue::{Call, CommitQueue, Group};

/// Groups that are written at once at most. A group that waits for an account that another server moves keeps only
/// itself waiting.
pub const WRITERS: usize = 4;
/// So many are as a rule, by all servers together if they can: more would be smaller, and each costs the same two
/// journeys. One more is begun only if it is large already or late.
const BUSY: usize = 2;
/// The maximum number of waiting calls: more would be a leak.
const WAITING_MAX: usize = 50_000;
/// How often a group is written again after a conflict with other writers, before each commit is written alone.
const RACES_MAX: u32 = 5;
/// How long a commit with an unknown outcome is looked up before its caller has to.
const LOOK_UP: Duration = Duration::from_secs(3);
/// Between two looks at a database that is coming up again.
const PAUSE: Duration = Duration::from_millis(100);

type Answer = Result<Committed, StoreError>;

/// State that all writers share.
#[derive(Debug)]
struct WriterParts {
    writers: Pool,
    readers: Pool,
    channel: Arc<Channel>,
    condition: Arc<ConditionLog>,
}

#[derive(Debug)]
pub(super) struct Writer {
    inbox: mpsc::Sender<Call>,
    busy: Arc<AtomicUsize>,
}

impl Writer {
    /// Starts the writers. When it is dropped, they finish the waiting commits and end.
    pub(super) fn start(
        writers: Pool,
        readers: Pool,
        channel: Arc<Channel>,
        condition: Arc<ConditionLog>,
        shards: [i64; WRITERS],
    ) -> Self {
        let (inbox, waiting) = mpsc::channel(WAITING_MAX);
        let parts = Arc::new(WriterParts { writers, readers, channel, condition });
        let busy = Arc::new(AtomicUsize::new(BUSY));
        tokio::spawn(serve(parts, waiting, shards, busy.clone()));
        Writer { inbox, busy }
    }

    /// So many servers write to the database.
    pub(super) fn shared_by(&self, n_servers: usize) {
        self.busy.store((BUSY / n_servers.max(1)).max(1), Ordering::Relaxed);
    }

    /// Submits commits, and waits for their results.
    pub(super) async fn write(&self, drafts: Vec<Draft>) -> Vec<Answer> {
        let n = drafts.len();
        let all = |why: &str| (0..n).map(|_| Err(Trouble::new(why).into())).collect();
        let (answer, answers) = oneshot::channel();
        match self.inbox.try_send(Call { drafts, answer }) {
            Ok(()) => answers.await.unwrap_or_else(|_| all("the store was closed before it answered")),
            Err(mpsc::error::TrySendError::Full(_)) => {
                all("too much is waiting for the store: ask again later")
            }
            Err(mpsc::error::TrySendError::Closed(_)) => all("the store is closed"),
        }
    }
}

async fn serve(
    parts: Arc<WriterParts>,
    inbox: mpsc::Receiver<Call>,
    shards: [i64; WRITERS],
    busy: Arc<AtomicUsize>,
) {
    let (give_back, mut back) = mpsc::unbounded_channel();
    let (mut free, mut queue) = (shards.to_vec(), CommitQueue::new(inbox));
    let mut group = Group::default();
    while !queue.is_over() || !group.is_empty() {
        while let Ok(shard) = back.try_recv() {
            queue.end(shard);
            free.push(shard);
        }
        queue.fill(&mut group);
        let n_busy = WRITERS - free.len();
        let is_late = [group.late(), queue.late()].into_iter().flatten().any(|late| late <= Instant::now());
        let is_due = n_busy < busy.load(Ordering::Relaxed) || group.is_large() || is_late;
        if is_due
            && !group.is_empty()
            && let Some(shard) = free.pop()
        {
            let mut group = std::mem::take(&mut group);
            queue.begin(shard, &mut group);
            tokio::spawn(perform(parts.clone(), group.calls, Slot { shard, give_back: give_back.clone() }));
            continue;
        }
        // While no writer is free, time changes nothing.
        let late = [group.late().filter(|_| !is_due), queue.late()].into_iter().flatten().min();
        let late = late.filter(|_| !free.is_empty());
        tokio::select! {
            // It never ends: its other end is here.
            shard = back.recv() => if let Some(shard) = shard {
                queue.end(shard);
                free.push(shard);
            },
            () = queue.next(&mut group), if queue.takes(&group) => {}
            () = tokio::time::sleep_until(late.unwrap_or_else(Instant::now)), if late.is_some() => {}
        }
    }
}

/// One who writes; the next may when it is done, however it is done.
struct Slot {
    shard: i64,
    give_back: mpsc::UnboundedSender<i64>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Once the store is closed, no caller takes it back.
        let _nobody = self.give_back.send(self.shard);
    }
}

/// Writes a group, and answers the caller of each commit. The slot is held to the end.
async fn perform(parts: Arc<WriterParts>, group: Vec<Call>, slot: Slot) {
    let (mut drafts, mut owed) = (Vec::new(), Vec::with_capacity(group.len()));
    for call in group {
        owed.push((call.drafts.len(), call.answer));
        drafts.extend(call.drafts);
    }
    let mut answers = commit_all(&parts, &drafts, slot.shard).await.into_iter();
    for (n, answer) in owed {
        // A caller that has gone does not want it.
        drop(answer.send(answers.by_ref().take(n).collect()));
    }
}

/// Why a transaction came to nothing.
enum GroupFailure {
    /// It could not be done, and nothing was written.
    Statement(StoreError),
    /// There is no connection to do it with, and nothing was written.
    Lost(StoreError),
    /// The connection was lost during the commit: the outcome is unknown.
    Unknown(StoreError),
}

async fn commit_all(parts: &WriterParts, drafts: &[Draft], shard: i64) -> Vec<Answer> {
    let error = match together(parts, drafts, shard).await {
        Ok(answers) => return answers,
        Err(GroupFailure::Unknown(error)) => return look_up(parts, drafts, &error).await,
        Err(GroupFailure::Lost(error)) => return drafts.iter().map(|_| Err(again(&error))).collect(),
        Err(GroupFailure::Statement(error)) => error,
    };
    if drafts.len() <= 1 {
        return drafts.iter().map(|_| Err(again(&error))).collect();
    }
    let mut answers = Vec::with_capacity(drafts.len());
    for alone in drafts.chunks(1) {
        match together(parts, alone, shard).await {
            Ok(answer) => answers.extend(answer),
            Err(GroupFailure::Unknown(error)) => answers.extend(look_up(parts, alone, &error).await),
            Err(GroupFailure::Statement(error)) => answers.push(Err(error)),
            Err(GroupFailure::Lost(error)) => {
                // All other commits would fail alike.
                answers.resize_with(drafts.len(), || Err(again(&error)));
                return answers;
            }
        }
    }
    answers
}

/// Writes commits in one transaction, again if others got in between.
async fn together(parts: &WriterParts, drafts: &[Draft], shard: i64) -> Result<Vec<Answer>, GroupFailure> {
    let (mut n_races, mut n_lost) = (0, 0);
    loop {
        let error = match transact(parts, drafts, shard).await {
            Err(GroupFailure::Statement(error)) => error,
            done => return done,
        };
        match kind(&error) {
            ErrorClass::Race if n_races < RACES_MAX => {
                n_races += 1;
                // Not all at once again.
                tokio::time::sleep(Duration::from_millis(u64::from(n_races) * shard.unsigned_abs() % 23))
                    .await;
            }
            // The first connection may have been an old one, of before the database was started again.
            ErrorClass::Lost if n_lost == 0 => n_lost += 1,
            ErrorClass::Lost => return Err(GroupFailure::Lost(error)),
            ErrorClass::Race | ErrorClass::Other => return Err(GroupFailure::Statement(error)),
        }
    }
}

async fn transact(parts: &WriterParts, drafts: &[Draft], shard: i64) -> Result<Vec<Answer>, GroupFailure> {
    let project = project_of(drafts);
    let db = Link::take_noting(&parts.writers, &parts.condition).await.map_err(GroupFailure::Lost)?;
    let mut read_set = match ReadSet::prepare(&db, project, drafts).await {
        Ok(read_set) => read_set,
        Err(error) => {
            db.roll_back().await;
            return Err(GroupFailure::Statement(error));
        }
    };
    let mut batch = Batch::of(project);
    let answers = drafts.iter().map(|draft| commit::decide(&mut read_set, &mut batch, draft)).collect();
    if batch.is_empty() {
        db.roll_back().await;
        return Ok(answers);
    }
    match db.pipeline(None, &batch.asks(shard), Some("COMMIT")).await {
        Ok(Piped::Done(_)) => {
            parts.channel.tell_written(batch.hint(), batch.jobs());
            Ok(answers)
        }
        Ok(Piped::Failed { error, is_certain: false }) => Err(GroupFailure::Unknown(error)),
        Err(error) | Ok(Piped::Failed { error, is_certain: true }) => {
            db.roll_back().await;
            Err(GroupFailure::Statement(error))
        }
    }
}

/// The project of a group: all its commits are of one.
fn project_of(drafts: &[Draft]) -> &Project {
    drafts.first().map_or(&Project::DEFAULT, |draft| &draft.commit.project)
}

/// Looks up the outcomes of commits. A commit that is not found may still be on its way, so it does not count as failed.
async fn look_up(parts: &WriterParts, drafts: &[Draft], error: &StoreError) -> Vec<Answer> {
    let ids: Vec<CommandId> = drafts.iter().map(|draft| draft.commit.command).collect();
    let begun = Instant::now();
    let found = loop {
        let asked =
            async { commit::commands(&Link::take(&parts.readers).await?, project_of(drafts), &ids).await };
        match asked.await {
            Ok(found) if !found.is_empty() => break found,
            Ok(_) | Err(_) if begun.elapsed() >= LOOK_UP => break Vec::new(),
            Ok(_) | Err(_) => tokio::time::sleep(PAUSE).await,
        }
    };
    let of = |id: &CommandId| found.iter().find(|committed| committed.command == *id).cloned();
    ids.iter().map(|id| of(id).ok_or_else(|| again(error))).collect()
}
