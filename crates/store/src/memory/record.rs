//! Small rows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use windlass_engine::id::ScheduleId;
use windlass_engine::job::{Job, State as JobState};
use windlass_engine::time::Timestamp;

use super::state::{State, StoredAccount};
use crate::account::{AccountRow, InNeed};
use crate::error::{Refusal, StoreError, Subject};
use crate::job::{GROUPS_MAX, JobRow, JobStatus, LetterGroup, due_at, fingerprint};
use crate::log::{LOGS_MAX, LogsOf};
use crate::queue::{QueueDepth, Spent};
use crate::record::{Record, RecordQuery, Records};
use crate::schedule::Scheduled;
use crate::server::ServerRow;
use crate::service::ServiceSettings;
use crate::worker::WorkerBeat;

impl State {
    pub(super) fn save(&mut self, record: Record) -> Result<(), StoreError> {
        match record {
            Record::Server(row) => self.save_server(row),
            Record::ServersGone { before } => {
                let latest = self.servers.values().map(|row| row.owner.epoch).max();
                let owners: BTreeSet<_> =
                    self.runs.values().filter_map(|stored| stored.row.standing.owner).collect();
                self.servers.retain(|_, row| {
                    row.beat_at >= before || Some(row.owner.epoch) == latest || owners.contains(&row.owner)
                });
                Ok(())
            }
            Record::Worker(row) => {
                self.workers.insert(row.id.clone(), row);
                Ok(())
            }
            Record::WorkerBeat(beat) => Ok(self.beat(beat)?),
            Record::WorkerDrain { id, is_draining } => {
                self.workers.get_mut(&id).ok_or(Refusal::UnknownWorker(id))?.is_draining = is_draining;
                Ok(())
            }
            Record::WorkersGone { before } => {
                self.workers.retain(|_, row| row.beat_at >= before);
                Ok(())
            }
            Record::Account { id, name, now } => Ok(self.open_account(id, name, now)?),
            Record::Price(row) => {
                self.prices.insert(row.service.clone(), row);
                Ok(())
            }
            Record::PriceGone { service } => {
                self.prices.remove(&service);
                Ok(())
            }
            Record::Queue(settings) => {
                self.queues.insert(settings.name.clone(), settings);
                Ok(())
            }
            Record::Spent { spent, now } => {
                self.spend(spent);
                self.spent.retain(|_, full_at| *full_at > now);
                Ok(())
            }
            Record::Service(row) => {
                if row.settings == ServiceSettings::default() {
                    self.services.remove(&row.name);
                } else {
                    self.services.insert(row.name.clone(), row);
                }
                Ok(())
            }
        }
    }

    pub(super) fn spend(&mut self, spent: Vec<Spent>) {
        for Spent { queue, limit_key, full_at } in spent {
            let before = self.spent.entry((queue, limit_key)).or_insert(full_at);
            *before = full_at.max(*before);
        }
    }

    fn open_account(&mut self, id: String, name: String, now: Timestamp) -> Result<(), Refusal> {
        if let Some(stored) = self.accounts.get(&id) {
            let taken = stored.row.name.clone();
            return if taken == name { Ok(()) } else { Err(Refusal::AccountTaken { id, name: taken }) };
        }
        let row = AccountRow { id: id.clone(), name, balance: 0, held: 0, revision: 0, created_at: now };
        self.accounts.insert(id, StoredAccount { row, ledger: Vec::new(), by_key: BTreeMap::new() });
        Ok(())
    }

    /// Open runs that wait for money, oldest first, with their accounts.
    fn runs_in_need(&self) -> impl Iterator<Item = (&str, InNeed)> {
        let mut rows: Vec<_> = self.open_runs.iter().filter_map(|id| Some(&self.runs.get(id)?.row)).collect();
        rows.sort_by_key(|row| (row.origin.created_at, row.id));
        rows.into_iter().filter_map(|row| {
            Some((row.origin.account.as_deref()?, InNeed { run: row.id, needs: row.standing.needs? }))
        })
    }

    fn save_server(&mut self, row: ServerRow) -> Result<(), StoreError> {
        let found = self.servers.get(&row.owner.server).map_or(0, |server| server.owner.epoch);
        if found > row.owner.epoch {
            let what = Subject::Server(row.owner.server);
            return Err(StoreError::Conflict { what, expected: row.owner.epoch, found });
        }
        self.servers.insert(row.owner.server, row);
        Ok(())
    }

    fn beat(&mut self, beat: WorkerBeat) -> Result<(), Refusal> {
        let WorkerBeat { id, url, load, at } = beat;
        let row = self.workers.get_mut(&id).ok_or(Refusal::UnknownWorker(id))?;
        row.url = url.unwrap_or_else(|| std::mem::take(&mut row.url));
        row.load = load.unwrap_or(row.load);
        row.beat_at = row.beat_at.max(at);
        Ok(())
    }

    pub(super) fn records(&self, query: RecordQuery) -> Result<Records, StoreError> {
        Ok(match query {
            RecordQuery::Servers => Records::Servers(self.servers.values().cloned().collect()),
            RecordQuery::Workers(query) => {
                Records::Workers(self.workers.values().filter(|row| row.matches(&query)).cloned().collect())
            }
            RecordQuery::Accounts(id) => {
                let rows = self.accounts.values().map(|stored| &stored.row);
                let asked = rows.filter(|row| id.as_ref().is_none_or(|id| *id == row.id));
                Records::Accounts(asked.cloned().collect())
            }
            RecordQuery::AccountsAfter { after, limit } => {
                let rows = self.accounts.values().map(|stored| &stored.row);
                let asked = rows.filter(|row| after.as_ref().is_none_or(|after| row.id > *after));
                Records::Accounts(asked.take(limit).cloned().collect())
            }
            RecordQuery::AccountsInNeed(id) => {
                let ids = self.runs_in_need().map(|(account, _)| account);
                let ids: BTreeSet<&str> =
                    ids.filter(|account| id.as_deref().is_none_or(|id| id == *account)).collect();
                let rows = ids.into_iter().filter_map(|id| self.accounts.get(id));
                Records::Accounts(rows.map(|stored| stored.row.clone()).collect())
            }
            RecordQuery::InNeed { account, within, limit } => {
                let rows = self.runs_in_need().filter(|(of, row)| *of == account && row.needs <= within);
                Records::InNeed(rows.map(|(_, row)| row).take(limit).collect())
            }
            RecordQuery::Prices => Records::Prices(self.prices.values().cloned().collect()),
            RecordQuery::Services => Records::Services(self.services.values().cloned().collect()),
            RecordQuery::Queues { now } => Records::Queues(self.depths(now)),
            RecordQuery::Held { queue } => Records::Held(self.held(&queue)),
            RecordQuery::Spent => Records::Spent(self.spent().collect()),
            RecordQuery::LetterGroups { queue } => Records::LetterGroups(self.letter_groups(&queue)),
            RecordQuery::Ready(query) => {
                Records::Ready(self.ready(query)?.iter().map(JobRow::ready_place).collect())
            }
            RecordQuery::Schedules(id) => Records::Schedules(self.all_scheduled(id)),
            RecordQuery::Audit(query) => Records::Audit(self.audited(&query)),
            RecordQuery::Logs { run, of } => {
                let after = match of {
                    LogsOf::Attempt(_) => Bound::Included((run, 0, 0)),
                    LogsOf::After { entry, fence } => Bound::Excluded((run, entry, fence)),
                };
                let rows = self.logs.range((after, Bound::Included((run, u64::MAX, u64::MAX))));
                let rows = rows.map(|(_, row)| row).filter(|row| match of {
                    LogsOf::Attempt(fence) => row.fence == fence,
                    LogsOf::After { .. } => true,
                });
                Records::Logs(rows.take(LOGS_MAX).cloned().collect())
            }
        })
    }

    fn letter_groups(&self, queue: &str) -> Vec<LetterGroup> {
        let mut groups: BTreeMap<String, LetterGroup> = BTreeMap::new();
        let mut letters: Vec<&Job> = self.jobs.values().map(|row| &row.job).collect();
        letters.retain(|job| job.spec.queue == queue && job.is_dead_letter());
        letters.sort_by_key(|job| (job.updated_at, job.id));
        for job in letters {
            let (JobState::Failed { reason, .. }, Some(fingerprint)) = (&job.state, fingerprint(job)) else {
                continue;
            };
            let at = job.updated_at;
            let group = groups.entry(fingerprint.clone()).or_insert_with(|| LetterGroup {
                fingerprint,
                n: 0,
                reason: reason.clone(),
                latest: job.id,
                first_at: at,
                last_at: at,
            });
            (group.n, group.reason, group.latest, group.last_at) = (group.n + 1, reason.clone(), job.id, at);
        }
        let mut groups: Vec<LetterGroup> = groups.into_values().collect();
        groups.sort_by_key(|group| (Reverse(group.n), Reverse(group.last_at)));
        groups.truncate(GROUPS_MAX);
        groups
    }

    fn all_scheduled(&self, id: Option<ScheduleId>) -> Vec<Scheduled> {
        let ids = self.schedules.keys().filter(|found| id.is_none_or(|id| id == **found));
        let mut rows: Vec<Scheduled> = ids.filter_map(|id| self.scheduled(*id)).collect();
        rows.sort_by_key(|scheduled| (scheduled.row.created_at, scheduled.row.id()));
        rows
    }

    pub(super) fn is_paused(&self, queue: &str) -> bool {
        self.queues.get(queue).is_some_and(|settings| settings.is_paused)
    }

    fn depths(&self, now: Timestamp) -> Vec<QueueDepth> {
        let mut depths: BTreeMap<&str, QueueDepth> = BTreeMap::new();
        for name in self.queues.keys() {
            depths.entry(name).or_default();
        }
        for row in self.jobs.values().filter(|row| row.job.is_open() || row.job.is_dead_letter()) {
            let depth = depths.entry(&row.job.spec.queue).or_default();
            if row.job.is_dead_letter() {
                depth.n_dead_letters += 1;
                continue;
            }
            *depth.open.entry(JobStatus::of(&row.job)).or_default() += 1;
            let due = due_at(&row.job).filter(|due| *due <= now);
            depth.oldest_due_at = [depth.oldest_due_at, due].into_iter().flatten().min();
        }
        let named = |(name, depth): (&str, QueueDepth)| QueueDepth {
            name: name.to_owned(),
            is_paused: self.is_paused(name),
            limits: self.queues.get(name).map(|settings| settings.limits.clone()).unwrap_or_default(),
            ..depth
        };
        depths.into_iter().map(named).collect()
    }
}
