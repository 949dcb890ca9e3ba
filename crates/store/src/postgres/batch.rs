//! What a group of commits writes: of every row its last state, whoever of the group changed it.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;
use windlass_engine::id::{JobId, RunId, ScheduleId};
use windlass_engine::job::{Attempt, Job};

use super::column::Id;
use super::commit::{self, Draft, Recorded};
use super::depth::{Depths, Place};
use super::desk::Desk;
use super::journal::{self, Appended};
use super::link::Ask;
use super::{account, attempt, job, log, outbox, queue, record, run, schedule};
use crate::account::AccountRow;
use crate::commit::{Committed, JobChange, RunChange, ScheduleChange, Turn};
use crate::hint::Hint;
use crate::job::JobStatus;
use crate::log::LogRow;
use crate::outbox::{Message, MessageId};
use crate::project::Reopened;
use crate::queue::Spent;
use crate::record::AuditRow;
use crate::schedule::{FiringRow, Started};

#[derive(Default)]
pub(super) struct Batch<'c> {
    runs: BTreeMap<RunId, run::Write<'c>>,
    entries: Vec<Appended<'c>>,
    snapshots: BTreeMap<RunId, (u64, &'c [u8])>,
    reopened: BTreeMap<RunId, &'c Reopened>,
    recorded: Vec<Recorded<'c>>,
    jobs: BTreeMap<JobId, job::Write<'c>>,
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
    logs: Vec<&'c LogRow>,
    depths: Depths,
}

impl<'c> Batch<'c> {
    /// Adds a commit that may be made, and notes on the desk what is so from now on.
    pub(super) fn add(
        &mut self,
        desk: &mut Desk,
        draft: &'c Draft,
        posted: Vec<account::Posted<'c>>,
    ) -> Committed {
        let commit = &draft.commit;
        let (balances, text) = commit::balances(&posted);
        let run = match commit.run.as_ref().zip(draft.run.as_ref()) {
            Some((change, texts)) => Some((change.run, self.add_run(desk, change, texts, text))),
            None => {
                self.recorded.push(Recorded { commit, balances: text });
                None
            }
        };
        for (change, texts) in commit.jobs.iter().zip(&draft.jobs) {
            self.add_job(desk, change, texts);
        }
        for Turn { queue, expected, spent } in &commit.turns {
            let turns = expected.saturating_add(1);
            // A queue that nobody has set anything for has no turns.
            if let Some(known) = desk.turns.get_mut(queue) {
                *known = turns;
                self.turns.insert(queue, turns);
            }
            self.spent.extend(spent);
        }
        posted.into_iter().for_each(|posted| self.add_posted(desk, posted));
        for message in &commit.messages {
            desk.messages.entry(message.id.clone()).or_insert(false);
            self.messages.entry(&message.id).or_insert(message);
        }
        for id in &commit.delivered {
            desk.messages.insert(id.clone(), true);
            self.delivered.insert(id);
        }
        commit.schedules.iter().for_each(|change| self.add_schedule(desk, change));
        for row in &commit.firings {
            desk.firings.insert(row.firing);
            self.firings.push(row);
        }
        self.audit.extend(&commit.audit);
        self.logs.extend(&commit.logs);
        Committed { command: commit.command, at: commit.now, run, balances }
    }

    fn add_run(
        &mut self,
        desk: &mut Desk,
        change: &'c RunChange,
        texts: &'c run::Texts,
        balances: Option<String>,
    ) -> u64 {
        let RunChange { run, expected_len, create, entry, standing, snapshot, reopened } = change;
        let len = expected_len.saturating_add(1);
        let origin = create.as_ref().map(|origin| (origin, texts));
        let origin = origin.or_else(|| self.runs.get(run).and_then(|written| written.origin));
        self.runs.insert(*run, run::Write { len, change, texts, origin });
        self.entries.push(Appended { run: *run, seq: len, entry, events: &texts.events, balances });
        if let Some(bytes) = snapshot {
            self.snapshots.insert(*run, (len, bytes));
        }
        if let Some(reopened) = reopened {
            self.reopened.insert(*run, reopened);
        }
        let is_open = standing.status.is_open();
        let before = desk.runs.insert(*run, run::Head { len, is_open });
        // What fired a new one finds out by itself.
        if before.is_some_and(|head| head.is_open != is_open) {
            self.running.insert(Started::Run(*run), is_open);
        }
        if let Some(request) = create.as_ref().and_then(|origin| origin.request.as_ref()) {
            desk.requests.insert(request.id.clone(), (*run, request.digest.clone()));
        }
        len
    }

    fn add_job(&mut self, desk: &mut Desk, change: &'c JobChange, texts: &'c job::Texts) {
        let JobChange { expected_rev, job, .. } = change;
        let (id, spec, is_open) = (job.id, &*job.spec, job.is_open());
        let rev = expected_rev.saturating_add(1);
        let place = Place::of(JobStatus::of(job), job.is_dead_letter());
        let before = desk.jobs.get(&id);
        let (is_new, was_open) = (before.is_none(), before.is_some_and(|head| head.is_open));
        self.depths.note(&spec.queue, before.and_then(|head| head.place), place);
        // What is asked for changes only when it is opened again or replayed.
        let is_asked = before.is_none_or(|head| !head.is_open || head.replays != texts.replays);
        let last = before.and_then(|head| head.last);
        let written = self.jobs.get(&id);
        let origin = if is_new { Some(change) } else { written.and_then(|written| written.origin) };
        let asked = if is_asked { Some((spec, texts)) } else { written.and_then(|written| written.spec) };
        self.jobs.insert(id, job::Write { rev, change, texts, origin, spec: asked });
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
        desk.jobs.insert(id, job::Head { rev, is_open, replays, place, last: last_written });
        if is_open && !was_open && !spec.dedup_key.is_empty() {
            let key = (spec.queue.clone(), spec.dedup_key.clone());
            let was_there = desk.keys.insert(key, Some(id)).is_some();
            let taken = self.keys.entry((&spec.queue, &spec.dedup_key)).or_insert((id.key(), was_there));
            taken.0 = id.key();
        }
        if !spec.dedup_key.is_empty() {
            let holder = job::Holder::of(job);
            let until = desk.holders.get(&id).map_or(holder.until, |known| known.until);
            desk.holders.insert(id, job::Holder { until, ..holder });
        }
        if !is_new && is_open != was_open {
            self.running.insert(Started::Job(id), is_open);
        }
    }

    fn add_posted(&mut self, desk: &mut Desk, posted: account::Posted<'c>) {
        let account::Posted { account, rows } = posted;
        let known = desk.known.entry(account.id.clone()).or_default();
        for row in &rows {
            known.insert(row.posting.movement.key.clone(), row.posting.movement.clone());
        }
        self.ledger.extend(rows);
        self.accounts.insert(account.id.clone(), account.clone());
        desk.accounts.insert(account.id.clone(), account);
    }

    fn add_schedule(&mut self, desk: &mut Desk, change: &'c ScheduleChange) {
        let id = change.row.id();
        let before = if change.delete {
            desk.schedules.remove(&id)
        } else {
            desk.schedules.insert(id, change.expected_rev.saturating_add(1))
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
    pub(super) fn asks(&'c self, shard: i64) -> Vec<Ask<'c>> {
        let mut asks = Vec::new();
        let (new, old): (Vec<_>, Vec<_>) = self.runs.values().partition(|row| row.origin.is_some());
        add(&mut asks, &new, run::insert);
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
            asks.push(commit::record(&self.recorded));
        }
        self.add_asks_of_jobs(&mut asks);
        let turns: Vec<_> = self.turns.iter().map(|(queue, turns)| (*queue, *turns)).collect();
        add(&mut asks, &turns, queue::have_turns);
        add(&mut asks, &self.spent, queue::spend_rows);
        add(&mut asks, &self.ledger, account::post);
        add(&mut asks, &self.accounts.values().collect::<Vec<_>>(), account::moved);
        add(&mut asks, &self.messages.values().copied().collect::<Vec<_>>(), outbox::send);
        add(&mut asks, &self.delivered.iter().copied().collect::<Vec<_>>(), outbox::deliver);
        self.add_asks_of_schedules(&mut asks);
        add(&mut asks, &self.logs, log::write);
        asks.extend(self.depths.write(shard));
        // Last, because whoever else adds to the audit waits from here on.
        add(&mut asks, &self.audit, record::note);
        asks
    }

    fn add_asks_of_jobs(&'c self, asks: &mut Vec<Ask<'c>>) {
        let (new, old): (Vec<_>, Vec<_>) = self.jobs.values().partition(|row| row.origin.is_some());
        let specs = |rows: &[&job::Write<'c>]| -> Vec<_> {
            let spec = |row: &&job::Write<'c>| row.spec.map(|(spec, texts)| (row.change.job.id, spec, texts));
            rows.iter().filter_map(spec).collect()
        };
        add(asks, &new, job::insert);
        add(asks, &specs(&new), job::insert_specs);
        add(asks, &old, job::update);
        add(asks, &specs(&old), job::update_specs);
        let attempts: Vec<_> = self.attempts.iter().map(|((job, _), attempt)| (*job, *attempt)).collect();
        add(asks, &attempts, attempt::write);
        let taken = |was_there: bool| -> Vec<_> {
            let those = self.keys.iter().filter(|(_, (_, was))| *was == was_there);
            those.map(|((queue, key), (job, _))| (*queue, *key, *job)).collect()
        };
        add(asks, &taken(false), job::take_keys);
        add(asks, &taken(true), job::move_keys);
    }

    fn add_asks_of_schedules(&'c self, asks: &mut Vec<Ask<'c>>) {
        let (mut new, mut old, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for (id, (change, was_there)) in &self.schedules {
            match (change.delete, was_there) {
                (true, true) => gone.push(id.key()),
                (true, false) => {}
                (false, true) => old.push(*change),
                (false, false) => new.push(*change),
            }
        }
        add(asks, &new, schedule::insert);
        add(asks, &old, schedule::update);
        if !gone.is_empty() {
            asks.push(schedule::delete(gone));
        }
        // Before the firings, which find out by themselves.
        let running: Vec<_> = self.running.iter().map(|(started, is)| (*started, *is)).collect();
        add(asks, &running, schedule::set_running);
        add(asks, &self.firings, schedule::fire);
    }

    /// What others may want to know of it.
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
fn add<'c, T>(asks: &mut Vec<Ask<'c>>, rows: &[T], write: impl FnOnce(&[T]) -> Ask<'c>) {
    if !rows.is_empty() {
        asks.push(write(rows));
    }
}
