//! Commits: first everything is checked, then everything is written, so that nothing is ever half done.

use std::collections::BTreeMap;

use windlass_engine::counter::{Revision, Seq};
use windlass_engine::id::CommandId;
use windlass_engine::job::Job;
use windlass_engine::money::{Account, Amount, Movement};
use windlass_engine::time::Timestamp;

use super::state::{MemoryState, ProjectTables, StoredRun};
use crate::account::{self, LedgerRow, Posting};
use crate::commit::{Commit, Committed, JobChange, QueueGuard, RunChange, ScheduleChange, Unmoved};
use crate::error::{Duplicate, Refusal, StoreError, Subject};
use crate::job::{JobRow, JobStatus};
use crate::outbox::{Message, MessageId};
use crate::run::{RunRow, Snapshot};
use crate::schedule::FiringRow;

/// The effect of postings on one account.
struct PostedAccount {
    account: Account,
    rows: Vec<(Posting, Amount)>,
}

impl MemoryState {
    pub(super) fn commit(&mut self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
        let one = |commit: Commit| self.tables(&commit.project).commit_one(commit);
        commits.into_iter().map(one).collect()
    }
}

impl ProjectTables {
    pub(super) fn command(&self, command: CommandId) -> Result<Option<Committed>, StoreError> {
        Ok(self.commands.get(&command).cloned())
    }

    fn commit_one(&mut self, commit: Commit) -> Result<Committed, StoreError> {
        if let Some(before) = self.commands.get(&commit.command) {
            return Ok(before.clone());
        }
        let posted = self.check(&commit)?;
        Ok(self.write(commit, posted))
    }

    fn check(&self, commit: &Commit) -> Result<BTreeMap<String, PostedAccount>, StoreError> {
        if let Some(fault) = commit.fault() {
            return Err(Refusal::Malformed(fault).into());
        }
        if let Some(change) = &commit.run {
            self.check_run(change)?;
        }
        self.check_jobs(&commit.jobs, commit.now)?;
        for QueueGuard { queue, expected, .. } in &commit.turns {
            let found = self.turns.get(queue).copied().unwrap_or(0);
            guard(|| Subject::Queue(queue.clone()), *expected, found)?;
        }
        for Unmoved { account, revision } in &commit.unmoved {
            let found = self.account_row(account)?.revision;
            guard(|| Subject::Account(account.clone()), *revision, found)?;
        }
        let posted = self.check_postings(&commit.postings)?;
        self.check_delivered(&commit.delivered)?;
        self.check_schedules(&commit.schedules, &commit.firings)?;
        Ok(posted)
    }

    fn check_run(&self, change: &RunChange) -> Result<(), StoreError> {
        let found = self.runs.get(&change.run).map_or(Seq::ZERO, |stored| stored.row.len);
        guard(|| Subject::Run(change.run), change.expected_len, found)?;
        let Some(origin) = &change.create else { return Ok(()) };
        if self.versions.get(&origin.version).is_none_or(|version| version.flow != origin.flow) {
            return Err(Refusal::UnknownVersion(origin.version).into());
        }
        let Some(request) = &origin.request else { return Ok(()) };
        let Some(&existing) = self.requests.get(&request.id) else { return Ok(()) };
        let first = self.runs.get(&existing).and_then(|stored| stored.row.origin.request.as_ref());
        let same_request = first.is_some_and(|first| first.digest == request.digest);
        Err(Refusal::RequestTaken { request: request.id.clone(), existing, same_request }.into())
    }

    fn check_jobs(&self, changes: &[JobChange], now: Timestamp) -> Result<(), StoreError> {
        let mut taken: BTreeMap<(&str, &str), &Job> = BTreeMap::new();
        let mut duplicates = Vec::new();
        for JobChange { expected_rev, job, .. } in changes {
            let before = self.jobs.get(&job.id);
            guard(|| Subject::Job(job.id), *expected_rev, before.map_or(Revision::ZERO, |row| row.rev))?;
            // A key is taken when a job is created or opened again; while the job is open no other job can have it.
            let opens = before.is_none_or(|row| !row.job.is_open()) && job.is_open();
            let (queue, key) = (job.spec.queue.as_str(), job.spec.dedup_key.as_str());
            if !opens || key.is_empty() {
                continue;
            }
            let holder = self.keys.get(&(queue.to_owned(), key.to_owned()));
            let holder = holder.and_then(|id| self.jobs.get(id)).filter(|row| row.job.holds_key(now));
            let holder = holder.map(|row| &row.job).or_else(|| taken.get(&(queue, key)).copied());
            if let Some(existing) = holder.filter(|holder| holder.id != job.id) {
                duplicates.push(Duplicate {
                    job: job.id,
                    queue: queue.to_owned(),
                    key: key.to_owned(),
                    existing: existing.id,
                    status: JobStatus::of(existing),
                });
                continue;
            }
            taken.insert((queue, key), job);
        }
        if duplicates.is_empty() { Ok(()) } else { Err(Refusal::Duplicates(duplicates).into()) }
    }

    fn account_row(&self, id: &str) -> Result<&account::AccountRow, Refusal> {
        let stored = self.accounts.get(id).ok_or_else(|| Refusal::UnknownAccount(id.to_owned()))?;
        Ok(&stored.row)
    }

    fn check_postings(&self, postings: &[Posting]) -> Result<BTreeMap<String, PostedAccount>, StoreError> {
        let mut by_account: BTreeMap<&str, Vec<&Posting>> = BTreeMap::new();
        for posting in postings {
            by_account.entry(&posting.account).or_default().push(posting);
        }
        let mut posted = BTreeMap::new();
        for (id, postings) in by_account {
            let row = self.account_row(id)?;
            let (account, rows) = account::post(row, &self.known(id, &postings), &postings)?;
            let rows = rows.into_iter().map(|(posting, balance_after)| (posting.clone(), balance_after));
            posted.insert(id.to_owned(), PostedAccount { account, rows: rows.collect() });
        }
        Ok(posted)
    }

    /// The rows of the ledger that decide about these movements.
    fn known(&self, id: &str, postings: &[&Posting]) -> Vec<Movement> {
        let Some(stored) = self.accounts.get(id) else { return Vec::new() };
        let keys = postings.iter().flat_map(|posting| account::related_keys(&posting.movement));
        let row = |key: String| Some(stored.ledger[*stored.by_key.get(&key)?].posting.movement.clone());
        keys.filter_map(row).collect()
    }

    fn check_delivered(&self, delivered: &[MessageId]) -> Result<(), Refusal> {
        for id in delivered {
            let message = self.messages.get(id).ok_or_else(|| Refusal::UnknownMessage(id.clone()))?;
            if !self.undelivered.contains(&(message.at, id.clone())) {
                return Err(Refusal::AlreadyDelivered(id.clone()));
            }
        }
        Ok(())
    }

    fn check_schedules(&self, changes: &[ScheduleChange], firings: &[FiringRow]) -> Result<(), StoreError> {
        for ScheduleChange { expected_rev, row, .. } in changes {
            let found = self.schedules.get(&row.id()).map_or(Revision::ZERO, |(rev, _)| *rev);
            guard(|| Subject::Schedule(row.id()), *expected_rev, found)?;
        }
        for FiringRow { firing, .. } in firings {
            let is_new = changes.iter().any(|change| change.row.id() == firing.schedule && !change.delete);
            if !is_new && !self.schedules.contains_key(&firing.schedule) {
                return Err(Refusal::UnknownSchedule(firing.schedule).into());
            }
            if self.firings.contains_key(firing) {
                return Err(Refusal::AlreadyFired(*firing).into());
            }
        }
        Ok(())
    }

    fn write(&mut self, commit: Commit, posted: BTreeMap<String, PostedAccount>) -> Committed {
        let run = commit.run.map(|change| self.write_run(change));
        if let Some((run, _)) = run {
            self.blobs.keep(run, commit.blobs);
        }
        for change in commit.jobs {
            self.write_job(change);
        }
        for QueueGuard { queue, expected, spent } in commit.turns {
            if self.queues.contains_key(&queue) {
                self.turns.insert(queue, expected.saturating_add(1));
            }
            self.spend(spent);
        }
        let balances = posted.iter().map(|(id, posted)| (id.clone(), posted.account.balance)).collect();
        for (id, posted) in posted {
            self.write_postings(&id, posted, commit.now);
        }
        for message in commit.messages {
            self.send(message);
        }
        for id in commit.delivered {
            if let Some(message) = self.messages.get(&id) {
                self.undelivered.remove(&(message.at, id));
            }
        }
        for ScheduleChange { expected_rev, row, delete } in commit.schedules {
            if delete {
                self.schedules.remove(&row.id());
            } else {
                self.schedules.insert(row.id(), (expected_rev.next(), row));
            }
        }
        self.firings.extend(commit.firings.into_iter().map(|row| (row.firing, row.started)));
        commit.audit.into_iter().for_each(|row| self.audit.note(&self.project, row));
        for row in commit.logs {
            if self.runs.contains_key(&row.run) {
                self.logs.entry((row.run, row.entry, row.fence)).or_insert(row);
            }
        }
        let committed = Committed { command: commit.command, at: commit.now, run, balances };
        self.commands.insert(commit.command, committed.clone());
        committed
    }

    fn write_run(&mut self, change: RunChange) -> (windlass_engine::id::RunId, Seq) {
        let RunChange { run, expected_len, create, entry, projection, snapshot, reopened: _ } = change;
        let len = expected_len.next();
        if projection.status.is_open() {
            self.open_runs.insert(run);
        } else {
            self.open_runs.remove(&run);
        }
        if let Some(request) = create.as_ref().and_then(|origin| origin.request.as_ref()) {
            self.requests.insert(request.id.clone(), run);
        }
        let snapshot = snapshot.map(|bytes| Snapshot { seq: len, bytes });
        match (create, self.runs.get_mut(&run)) {
            (Some(origin), _) => {
                let row = RunRow { project: self.project.clone(), id: run, len, origin, projection };
                self.runs.insert(run, StoredRun { row, entries: vec![entry], snapshot });
            }
            (None, Some(stored)) => {
                stored.row.len = len;
                stored.row.projection = projection;
                stored.entries.push(entry);
                stored.snapshot = snapshot.or(stored.snapshot.take());
            }
            (None, None) => unreachable!("a run without entries is created, as was checked"),
        }
        (run, len)
    }

    fn write_job(&mut self, change: JobChange) {
        let JobChange { expected_rev, job, origin } = change;
        let before = self.jobs.get(&job.id);
        let opens = job.is_open() && before.is_none_or(|row| !row.job.is_open());
        if opens && !job.spec.dedup_key.is_empty() {
            self.keys.insert((job.spec.queue.clone(), job.spec.dedup_key.clone()), job.id);
        }
        if job.is_open() {
            self.open_jobs.insert(job.id);
        } else {
            self.open_jobs.remove(&job.id);
        }
        for attempt in &job.attempts {
            self.attempts.insert((job.id, attempt.number), attempt.clone());
        }
        let origin = before.map_or(origin, |row| row.origin.clone());
        self.jobs.insert(job.id, JobRow { rev: expected_rev.next(), job, origin });
    }

    fn write_postings(&mut self, id: &str, posted: PostedAccount, at: Timestamp) {
        let stored = self.accounts.get_mut(id).expect("the account was found when this was checked");
        for (posting, balance_after) in posted.rows {
            stored.row.revision = stored.row.revision.next();
            stored.by_key.insert(posting.movement.key.clone(), stored.ledger.len());
            stored.ledger.push(LedgerRow { seq: Seq(stored.row.revision.0), posting, balance_after, at });
        }
        stored.row.balance = posted.account.balance;
        stored.row.held = posted.account.held;
    }

    fn send(&mut self, message: Message) {
        if !self.messages.contains_key(&message.id) {
            self.undelivered.insert((message.at, message.id.clone()));
            self.messages.insert(message.id.clone(), message);
        }
    }
}

fn guard<N>(what: impl FnOnce() -> Subject, expected: N, found: N) -> Result<(), StoreError>
where
    N: PartialEq + Into<u64>,
{
    if expected == found {
        return Ok(());
    }
    Err(StoreError::Conflict { what: what(), expected: expected.into(), found: found.into() })
}
