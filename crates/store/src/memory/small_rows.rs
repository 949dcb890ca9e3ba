//! Rows of one table each: workers, servers, prices, services, queues, accounts, dead letters, schedules.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::counter::{Epoch, Revision};
use windlass_engine::job::{Job, State as JobState};
use windlass_engine::money::Amount;
use windlass_engine::time::Timestamp;

use super::state::{MemoryState, ProjectTables, StoredAccount};
use crate::account::{AccountRow, BalanceWaiter};
use crate::error::{Refusal, StoreError, Subject};
use crate::job::{DeadLetterGroup, GROUPS_MAX, JobStatus, due_at, fingerprint};
use crate::page::{NameRange, Page, Part, cut};
use crate::queue::{QueueDepth, QueueSettings, Spent};
use crate::schedule::Scheduled;
use crate::server::ServerRow;
use crate::store_key::StoreKey;

impl MemoryState {
    pub(super) fn servers(&self) -> Result<Vec<ServerRow>, StoreError> {
        Ok(self.servers.values().cloned().collect())
    }

    pub(super) fn save_server(&mut self, row: ServerRow) -> Result<(), StoreError> {
        let found = self.servers.get(&row.owner.server).map_or(Epoch::ZERO, |server| server.owner.epoch);
        if found > row.owner.epoch {
            let what = Subject::Server(row.owner.server);
            return Err(StoreError::Conflict { what, expected: row.owner.epoch.0, found: found.0 });
        }
        self.servers.insert(row.owner.server, row);
        Ok(())
    }

    pub(super) fn store_key(&mut self, name: &str, fresh: StoreKey) -> Result<StoreKey, StoreError> {
        Ok(*self.keys.entry(name.to_owned()).or_insert(fresh))
    }

    pub(super) fn delete_servers(&mut self, before: Timestamp) -> Result<(), StoreError> {
        let latest = self.servers.values().map(|row| row.owner.epoch).max();
        let runs = self.projects.values().flat_map(|tables| tables.runs.values());
        let owners: BTreeSet<_> = runs.filter_map(|stored| stored.row.projection.owner).collect();
        self.servers.retain(|_, row| {
            row.beat_at >= before || Some(row.owner.epoch) == latest || owners.contains(&row.owner)
        });
        Ok(())
    }

    pub(super) fn delete_workers(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let tables = self.projects.values_mut();
        let gone = tables
            .flat_map(|tables| tables.registry.workers.extract_if(.., move |_, row| row.beat_at < before));
        Ok(gone.take(limit).count())
    }

    pub(super) fn delete_queues(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let mut n = 0;
        for tables in self.projects.values_mut() {
            let jobs = tables.jobs.values().map(|row| &row.job);
            let counted = jobs.filter(|job| job.is_open() || job.is_dead_letter());
            let used: BTreeSet<&str> = counted.map(|job| job.spec.queue.as_str()).collect();
            let is_gone = |name: &String, settings: &mut QueueSettings| {
                settings.is_empty() && settings.updated_at < before && !used.contains(name.as_str())
            };
            n += tables.queues.extract_if(.., is_gone).take(limit - n).count();
        }
        Ok(n)
    }
}

impl ProjectTables {
    pub(super) fn save_queue(&mut self, settings: QueueSettings) -> Result<(), StoreError> {
        self.queues.insert(settings.name.clone(), settings);
        Ok(())
    }

    pub(super) fn save_spent(&mut self, spent: Vec<Spent>, now: Timestamp) -> Result<(), StoreError> {
        self.spend(spent);
        self.spent.retain(|_, full_at| *full_at > now);
        Ok(())
    }

    pub(super) fn open_account(&mut self, id: &str, name: &str, now: Timestamp) -> Result<(), StoreError> {
        if let Some(stored) = self.accounts.get(id) {
            let taken = stored.row.name.clone();
            if taken == name {
                return Ok(());
            }
            return Err(Refusal::AccountTaken { id: id.to_owned(), name: taken }.into());
        }
        let (name, created_at) = (name.to_owned(), now);
        let row = AccountRow {
            id: id.to_owned(),
            name,
            balance: Amount::ZERO,
            held: Amount::ZERO,
            revision: Revision(0),
            created_at,
        };
        let stored = StoredAccount { row, ledger: Vec::new(), by_key: BTreeMap::new() };
        self.accounts.insert(id.to_owned(), stored);
        Ok(())
    }

    pub(super) fn account(&self, id: &str) -> Result<Option<AccountRow>, StoreError> {
        Ok(self.accounts.get(id).map(|stored| stored.row.clone()))
    }

    pub(super) fn accounts(&self) -> Result<Vec<AccountRow>, StoreError> {
        Ok(self.accounts.values().map(|stored| stored.row.clone()).collect())
    }

    pub(super) fn accounts_after(
        &self,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<AccountRow>, StoreError> {
        let rows = self.accounts.values().map(|stored| &stored.row);
        let asked = rows.filter(|row| after.as_ref().is_none_or(|after| row.id > *after));
        Ok(asked.take(limit).cloned().collect())
    }

    pub(super) fn accounts_with_waiters(
        &self,
        account: Option<String>,
    ) -> Result<Vec<AccountRow>, StoreError> {
        let ids = waiting_runs(self).map(|(id, _)| id);
        let ids: BTreeSet<&str> =
            ids.filter(|id| account.as_deref().is_none_or(|account| account == *id)).collect();
        let rows = ids.into_iter().filter_map(|id| self.accounts.get(id));
        Ok(rows.map(|stored| stored.row.clone()).collect())
    }

    pub(super) fn balance_waiters(
        &self,
        account: String,
        within: Amount,
        limit: usize,
    ) -> Result<Vec<BalanceWaiter>, StoreError> {
        let rows = waiting_runs(self).filter(|(of, row)| *of == account && row.needs <= within);
        Ok(rows.map(|(_, row)| row).take(limit).collect())
    }

    pub(super) fn spend(&mut self, spent: Vec<Spent>) {
        for Spent { queue, limit_key, full_at } in spent {
            let before = self.spent.entry((queue, limit_key)).or_insert(full_at);
            *before = full_at.max(*before);
        }
    }

    pub(super) fn dead_letter_groups(&self, queue: String) -> Result<Vec<DeadLetterGroup>, StoreError> {
        let mut groups: BTreeMap<String, DeadLetterGroup> = BTreeMap::new();
        let mut letters: Vec<&Job> = self.jobs.values().map(|row| &row.job).collect();
        letters.retain(|job| job.spec.queue == queue && job.is_dead_letter());
        letters.sort_by_key(|job| (job.updated_at, job.id));
        for job in letters {
            let (JobState::Failed { reason, .. }, Some(fingerprint)) = (&job.state, fingerprint(job)) else {
                continue;
            };
            let at = job.updated_at;
            let group = groups.entry(fingerprint.clone()).or_insert_with(|| DeadLetterGroup {
                fingerprint,
                n: 0,
                reason: reason.clone(),
                latest: job.id,
                first_at: at,
                last_at: at,
            });
            (group.n, group.reason, group.latest, group.last_at) = (group.n + 1, reason.clone(), job.id, at);
        }
        let mut groups: Vec<DeadLetterGroup> = groups.into_values().collect();
        groups.sort_by_key(|group| (Reverse(group.n), Reverse(group.last_at)));
        groups.truncate(GROUPS_MAX);
        Ok(groups)
    }

    pub(super) fn schedules(&self, part: Part) -> Result<Page<Scheduled>, StoreError> {
        let rows = self.schedules.keys().filter_map(|id| self.schedule(*id).transpose());
        Ok(cut(&part, rows.collect::<Result<_, _>>()?, |scheduled: &Scheduled| scheduled.place(part.order))?)
    }

    pub(super) fn is_paused(&self, queue: &str) -> bool {
        self.queues.get(queue).is_some_and(|settings| settings.is_paused)
    }

    pub(super) fn queues(&self, names: NameRange, now: Timestamp) -> Result<Vec<QueueDepth>, StoreError> {
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
        let asked = depths.into_iter().filter(|(name, _)| names.contains(name));
        Ok(asked.take(names.limit()).map(named).collect())
    }
}

/// Open runs that wait for money, oldest first, with their accounts.
fn waiting_runs(tables: &ProjectTables) -> impl Iterator<Item = (&str, BalanceWaiter)> {
    let mut rows: Vec<_> = tables.open_runs.iter().filter_map(|id| Some(&tables.runs.get(id)?.row)).collect();
    rows.sort_by_key(|row| (row.origin.created_at, row.id));
    rows.into_iter().filter_map(|row| {
        Some((row.origin.account.as_deref()?, BalanceWaiter { run: row.id, needs: row.projection.needs? }))
    })
}
