//! Writes of a group of commits: the last state of every row that the group changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::counter::Seq;
use windlass_engine::id::{JobId, RunId, ScheduleId};
use windlass_engine::job::{Attempt, Job};
use windlass_engine::params::ParamLayer;
use windlass_engine::project::Project;

use super::column::PostgresId;
use super::commit::{self, Draft, Recorded};
use super::depth::{DepthKey, Depths};
use super::journal::{self, Appended};
use super::link::BoundStatement;
use super::read_set::ReadSet;
use super::{account, attempt, audit, blob, job, log, outbox, queue, run, schedule};
use crate::account::AccountRow;
use crate::audit::AuditRow;
use crate::blob::blob_of;
use crate::commit::{Committed, JobChange, QueueGuard, RunChange, ScheduleChange};
use crate::hint::Hint;
use crate::job::JobStatus;
use crate::log::LogRow;
use crate::outbox::{Message, MessageId};
use crate::projection::Reopened;
use crate::queue::Spent;
use crate::schedule::{FiringRow, Started};

pub(super) struct Batch<'c> {
    project: &'c Project,
    runs: BTreeMap<RunId, run::RunWrite<'c>>,
    entries: Vec<Appended<'c>>,
    snapshots: BTreeMap<RunId, (Seq, &'c [u8])>,
    reopened: BTreeMap<RunId, &'c Reopened>,
    recorded: Vec<Recorded<'c>>,
    jobs: BTreeMap<JobId, job::JobWrite<'c>>,
    attempts: BTreeMap<(JobId, u32), &'c Attempt>,
    /// Whose they are from now on, and whether they were there before.
    keys: BTreeMap<(&'c str, &'c str), (Uuid, bool)>,
    turns: BTreeMap<&'c str, u64>,
    spent: Vec<&'c Spent>,
    ledger: Vec<account::PostedRow<'c>>,
    accounts: BTreeMap<String, AccountRow>,
    messages: BTreeMap<&'c MessageId, &'c Message>,
    delivered: BTreeSet<&'c MessageId>,
    /// As they are from now on, and whether they were there before.
    schedules: BTreeMap<ScheduleId, (&'c ScheduleChange, bool)>,
    firings: Vec<&'c FiringRow>,
    running: BTreeMap<Started, bool>,
    audit: Vec<&'c AuditRow>,
    /// Blobs that are not there yet.
    blobs: BTreeMap<&'c str, &'c Arc<ParamLayer>>,
    blob_refs: BTreeSet<(&'c str, RunId)>,
    logs: Vec<&'c LogRow>,
    depths: Depths,
}

impl<'c> Batch<'c> {
    /// Nothing to write yet, all of it of one project.
    pub(super) fn of(project: &'c Project) -> Self {
        Batch {
            project,
            runs: BTreeMap::new(),
            entries: Vec::new(),
            snapshots: BTreeMap::new(),
            reopened: BTreeMap::new(),
            recorded: Vec::new(),
            jobs: BTreeMap::new(),
            attempts: BTreeMap::new(),
            keys: BTreeMap::new(),
            turns: BTreeMap::new(),
            spent: Vec::new(),
            ledger: Vec::new(),
            accounts: BTreeMap::new(),
            messages: BTreeMap::new(),
            delivered: BTreeSet::new(),
            schedules: BTreeMap::new(),
            firings: Vec::new(),
            running: BTreeMap::new(),
            audit: Vec::new(),
            blobs: BTreeMap::new(),
            blob_refs: BTreeSet::new(),
            logs: Vec::new(),
            depths: Depths::default(),
        }
    }

    /// Adds an accepted commit, and updates the read set with its changes.
    pub(super) fn add(
        &mut self,
        read_set: &mut ReadSet,
        draft: &'c Draft,
        posted: Vec<account::Posted<'c>>,
    ) -> Committed {
        let commit = &draft.commit;
        let (balances, text) = commit::balances(&posted);
        let run = match commit.run.as_ref().zip(draft.run.as_ref()) {
            Some((change, texts)) => Some((change.run, self.add_run(read_set, change, texts, text))),
            None => {
                self.recorded.push(Recorded { commit, balances: text });
                None
            }
        };
        for (change, texts) in commit.jobs.iter().zip(&draft.jobs) {
            self.add_job(read_set, change, texts);
        }
        for QueueGuard { queue, expected, spent } in &commit.turns {
            let turns = expected.saturating_add(1);
            // A queue without settings counts no claims.
            if let Some(known) = read_set.turns.get_mut(queue) {
                *known = turns;
                self.turns.insert(queue, turns);
            }
            self.spent.extend(spent);
        }
        posted.into_iter().for_each(|posted| self.add_posted(read_set, posted));
        for message in &commit.messages {
            read_set.messages.entry(message.id.clone()).or_insert(false);
            self.messages.entry(&message.id).or_insert(message);
        }
        for id in &commit.delivered {
            read_set.messages.insert(id.clone(), true);
            self.delivered.insert(id);
        }
        commit.schedules.iter().for_each(|change| self.add_schedule(read_set, change));
        for row in &commit.firings {
            read_set.firings.insert(row.firing);
            self.firings.push(row);
        }
        for layer in run.iter().flat_map(|_| &commit.blobs) {
            let hash = blob_of(layer).hash.as_str();
            self.blob_refs.extend(run.map(|(run, _)| (hash, run)));
            if read_set.blobs.insert(hash.to_owned()) {
                self.blobs.insert(hash, layer);
            }
        }
        self.audit.extend(&commit.audit);
        self.logs.extend(&commit.logs);
        Committed { command: commit.command, at: commit.now, run, balances }
    }

    fn add_run(
        &mut self,
        read_set: &mut ReadSet,
        change: &'c RunChange,
        texts: &'c run::RunTexts,
        balances: Option<String>,
    ) -> Seq {
        let RunChange { run, expected_len, create, entry, projection, snapshot, reopened } = change;
        let len = expected_len.next();
        let origin = create.as_ref().map(|origin| (origin, texts));
        let origin = origin.or_else(|| self.runs.get(run).and_then(|written| written.origin));
        self.runs.insert(*run, run::RunWrite { len, change, texts, origin });
        self.entries.push(Appended { run: *run, seq: len, entry, events: &texts.events, balances });
        if let Some(bytes) = snapshot {
            self.snapshots.insert(*run, (len, bytes));
        }
        if let Some(reopened) = reopened {
            self.reopened.insert(*run, reopened);
        }
        let is_open = projection.status.is_open();
        let before = read_set.runs.insert(*run, run::LockedRun { len, is_open });
        // A new start is matched with its firing by the firing itself.
        if before.is_some_and(|head| head.is_open != is_open) {
            self.running.insert(Started::Run(*run), is_open);
        }
        if let Some(request) = create.as_ref().and_then(|origin| origin.request.as_ref()) {
            read_set.requests.insert(request.id.clone(), (*run, request.digest.clone()));
        }
        len
    }

    fn add_job(&mut self, read_set: &mut ReadSet, change: &'c JobChange, texts: &'c job::JobTexts) {
        let JobChange { expected_rev, job, .. } = change;
        let (id, spec, is_open) = (job.id, &*job.spec, job.is_open());
        let rev = expected_rev.next();
        let place = DepthKey::of(JobStatus::of(job), job.is_dead_letter());
        let before = read_set.jobs.get(&id);
        let (is_new, was_open) = (before.is_none(), before.is_some_and(|head| head.is_open));
        self.depths.note(self.project, &spec.queue, before.and_then(|head| head.place), place);
        // The specification changes only when the job is opened again or replayed.
        let is_asked = before.is_none_or(|head| !head.is_open || head.replays != texts.replays);
        let last = before.and_then(|head| head.last);
        let written = self.jobs.get(&id);
        let origin = if is_new { Some(change) } else { written.and_then(|written| written.origin) };
        let asked = if is_asked { Some((spec, texts)) } else { written.and_then(|written| written.spec) };
        self.jobs.insert(id, job::JobWrite { rev, change, texts, origin, spec: asked });
        let mut last_written = last;
        if !job.is_untouched() {
            // The one that was the last may have changed, and those after it.
            for attempt in
                job.attempts.iter().filter(|attempt| last.is_none_or(|last| attempt.number >= last))
            {
                self.attempts.insert((id, attempt.number), attempt);
                last_written = last_written.max(Some(attempt.number));
            }
        }
        let replays = texts.replays.clone();
        read_set.jobs.insert(id, job::LockedJob { rev, is_open, replays, place, last: last_written });
        if is_open && !was_open && !spec.dedup_key.is_empty() {
            let key = (spec.queue.clone(), spec.dedup_key.clone());
            let was_there = read_set.keys.insert(key, Some(id)).is_some();
            let taken = self.keys.entry((&spec.queue, &spec.dedup_key)).or_insert((id.key(), was_there));
            taken.0 = id.key();
        }
        if !spec.dedup_key.is_empty() {
            let holder = job::Holder::of(job);
            let until = read_set.holders.get(&id).map_or(holder.until, |known| known.until);
            read_set.holders.insert(id, job::Holder { until, ..holder });
        }
        if !is_new && is_open != was_open {
            self.running.insert(Started::Job(id), is_open);
        }
    }

    fn add_posted(&mut self, read_set: &mut ReadSet, posted: account::Posted<'c>) {
        let account::Posted { account, rows } = posted;
        let known = read_set.known.entry(account.id.clone()).or_default();
        for row in &rows {
            known.insert(row.posting.movement.key.clone(), row.posting.movement.clone());
        }
        self.ledger.extend(rows);
        self.accounts.insert(account.id.clone(), account.clone());
        read_set.accounts.insert(account.id.clone(), account);
    }

    fn add_schedule(&mut self, read_set: &mut ReadSet, change: &'c ScheduleChange) {
        let id = change.row.id();
        let before = if change.delete {
            read_set.schedules.remove(&id)
        } else {
            read_set.schedules.insert(id, change.expected_rev.next())
        };
        let written = self.schedules.entry(id).or_insert((change, before.is_some()));
        written.0 = change;
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        // Every commit records its command one way or the other.
        self.entries.is_empty() && self.recorded.is_empty()
    }

    /// The statements that write it, in the order in which they have to be made.
    pub(super) fn asks(&'c self, shard: i64) -> Vec<BoundStatement<'c>> {
        let mut asks = Vec::new();
        let (new, old): (Vec<_>, Vec<_>) = self.runs.values().partition(|row| row.origin.is_some());
        let project = self.project;
        add(&mut asks, &new, |rows| run::insert(rows).in_project(project));
        add(&mut asks, &old, run::update);
        let reopened: Vec<_> = self.reopened.iter().map(|(run, reopened)| (*run, *reopened)).collect();
        add(&mut asks, &reopened, run::reopen);
        if !self.entries.is_empty() {
            asks.push(journal::append(&self.entries));
        }
        let snapshots: Vec<_> =
            self.snapshots.iter().map(|(run, (seq, state))| (*run, *seq, *state)).collect();
        add(&mut asks, &snapshots, journal::keep_snapshots);
        if !self.recorded.is_empty() {
            asks.push(commit::record(&self.recorded).in_project(project));
        }
        self.add_asks_of_jobs(&mut asks);
        let turns: Vec<_> = self.turns.iter().map(|(queue, turns)| (*queue, *turns)).collect();
        add(&mut asks, &turns, |rows| queue::have_turns(rows).in_project(project));
        add(&mut asks, &self.spent, |rows| queue::spend_rows(rows).in_project(project));
        add(&mut asks, &self.ledger, |rows| account::post(rows).in_project(project));
        let accounts: Vec<_> = self.accounts.values().collect();
        add(&mut asks, &accounts, |rows| account::moved(rows).in_project(project));
        let messages: Vec<_> = self.messages.values().copied().collect();
        add(&mut asks, &messages, |rows| outbox::send(rows).in_project(project));
        let delivered: Vec<_> = self.delivered.iter().copied().collect();
        add(&mut asks, &delivered, |rows| outbox::deliver(rows).in_project(project));
        self.add_asks_of_schedules(&mut asks);
        let blobs: Vec<_> = self.blobs.values().copied().collect();
        add(&mut asks, &blobs, |rows| blob::keep(rows).in_project(project));
        let blob_refs: Vec<_> = self.blob_refs.iter().copied().collect();
        add(&mut asks, &blob_refs, |rows| blob::refer(rows).in_project(project));
        add(&mut asks, &self.logs, |rows| log::write(rows).in_project(project));
        asks.extend(self.depths.write(shard));
        // Last, because other writers to the audit wait from here on.
        add(&mut asks, &self.audit, |rows| audit::note(project, rows));
        asks
    }

    fn add_asks_of_jobs(&'c self, asks: &mut Vec<BoundStatement<'c>>) {
        let (new, old): (Vec<_>, Vec<_>) = self.jobs.values().partition(|row| row.origin.is_some());
        let specs = |rows: &[&job::JobWrite<'c>]| -> Vec<_> {
            let spec =
                |row: &&job::JobWrite<'c>| row.spec.map(|(spec, texts)| (row.change.job.id, spec, texts));
            rows.iter().filter_map(spec).collect()
        };
        add(asks, &new, |rows| job::insert(rows).in_project(self.project));
        add(asks, &specs(&new), job::insert_specs);
        add(asks, &old, job::update);
        add(asks, &specs(&old), job::update_specs);
        let attempts: Vec<_> = self.attempts.iter().map(|((job, _), attempt)| (*job, *attempt)).collect();
        add(asks, &attempts, attempt::write);
        let taken = |was_there: bool| -> Vec<_> {
            let those = self.keys.iter().filter(|(_, (_, was))| *was == was_there);
            those.map(|((queue, key), (job, _))| (*queue, *key, *job)).collect()
        };
        add(asks, &taken(false), |rows| job::take_keys(rows).in_project(self.project));
        add(asks, &taken(true), |rows| job::move_keys(rows).in_project(self.project));
    }

    fn add_asks_of_schedules(&'c self, asks: &mut Vec<BoundStatement<'c>>) {
        let (mut new, mut old, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for (id, (change, was_there)) in &self.schedules {
            match (change.delete, was_there) {
                (true, true) => gone.push(id.key()),
                (true, false) => {}
                (false, true) => old.push(*change),
                (false, false) => new.push(*change),
            }
        }
        add(asks, &new, |rows| schedule::insert(rows).in_project(self.project));
        add(asks, &old, schedule::update);
        if !gone.is_empty() {
            asks.push(schedule::delete(gone));
        }
        // Before the firings, which find out by themselves.
        let running: Vec<_> = self.running.iter().map(|(started, is)| (*started, *is)).collect();
        add(asks, &running, schedule::set_running);
        add(asks, &self.firings, schedule::fire);
    }

    /// The hint for other servers.
    pub(super) fn hint(&self) -> Hint {
        let mut hint = Hint::default();
        hint.merge(Hint {
            runs: self.runs.keys().copied().collect(),
            outbox: !self.messages.is_empty(),
            schedules: !self.schedules.is_empty(),
            ..Hint::default()
        });
        hint
    }

    /// Jobs as they are from now on.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().map(|row| &row.change.job)
    }
}

/// Adds the statement that writes rows, if there are any.
fn add<'c, T>(
    asks: &mut Vec<BoundStatement<'c>>,
    rows: &[T],
    write: impl FnOnce(&[T]) -> BoundStatement<'c>,
) {
    if !rows.is_empty() {
        asks.push(write(rows));
    }
}
