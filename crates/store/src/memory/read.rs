//! Questions about runs, jobs, messages, the ledger and the audit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use windlass_engine::counter::{Fence, Seq};
use windlass_engine::id::{JobId, RunId, ScheduleId};
use windlass_engine::job::Attempt;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::state::{MemoryState, ProjectTables};
use crate::account::{LedgerQuery, LedgerRow};
use crate::error::StoreError;
use crate::job::{JobOutline, JobQuery, JobRow, OutlineQuery, ReadyCursor, ReadyQuery, due_at};
use crate::log::{LOGS_MAX, LogRow, LogsOf};
use crate::outbox::{Message, MessageId, OutboxCursor, Party, Undelivered, WaitingTree};
use crate::page::{LineOrder, NameRange, Order, Page, Part, cut};
use crate::run::{Journal, RunGroup, RunQuery, RunRef, RunRow, Since, Wake};
use crate::service::{WAITING_MAX, WaitingService};
use crate::store::Due;

impl MemoryState {
    pub(super) fn due(&self, now: Timestamp, limit: usize) -> Result<Due, StoreError> {
        fn oldest<I: Ord>(
            wakes: impl Iterator<Item = Wake<I>>,
            now: Timestamp,
            limit: usize,
        ) -> Vec<Wake<I>> {
            let mut wakes: Vec<Wake<I>> = wakes.filter(|wake| wake.at <= now).collect();
            wakes.sort();
            wakes.truncate(limit);
            wakes
        }
        let tables = || self.projects.values();
        let runs = tables().flat_map(ProjectTables::wakes_of_runs);
        let jobs = tables().flat_map(ProjectTables::wakes_of_jobs);
        let schedules = oldest(tables().flat_map(ProjectTables::wakes_of_schedules), now, limit);
        let scheduled =
            |wake: Wake<ScheduleId>| self.projects.get(&wake.project)?.schedule(wake.id).transpose();
        Ok(Due {
            runs: oldest(runs, now, limit),
            jobs: oldest(jobs, now, limit),
            schedules: schedules.into_iter().filter_map(scheduled).collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn orphans(
        &self,
        now: Timestamp,
        dead_after_ms: u64,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<RunRow>, StoreError> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let open = self.projects.values().flat_map(|tables| {
            let ids = tables.open_runs.range((from, Bound::Unbounded));
            ids.filter_map(|id| Some(&tables.runs.get(id)?.row))
        });
        let is_orphan = |row: &&RunRow| {
            row.projection.owner.is_some_and(|owner| {
                let server = self.servers.get(&owner.server);
                !server.is_some_and(|server| server.owner == owner && server.is_alive(now, dead_after_ms))
            })
        };
        let mut orphans: Vec<&RunRow> = open.filter(is_orphan).collect();
        orphans.sort_by_key(|row| row.id);
        Ok(orphans.into_iter().take(limit).cloned().collect())
    }

    pub(super) fn outbox(
        &self,
        now: Timestamp,
        after: Option<OutboxCursor>,
        limit: usize,
    ) -> Result<Vec<Undelivered>, StoreError> {
        let undelivered = self.projects.values().flat_map(|tables| {
            let sent = undelivered_messages(tables).filter(|message| message.note.tree().is_none());
            sent.map(|message| Undelivered { project: tables.project.clone(), message: message.clone() })
        });
        let is_asked = |row: &Undelivered| {
            row.message.at <= now && after.as_ref().is_none_or(|after| row.place() > *after)
        };
        let mut undelivered: Vec<Undelivered> = undelivered.filter(is_asked).collect();
        undelivered.sort_by_key(Undelivered::place);
        undelivered.truncate(limit);
        Ok(undelivered)
    }

    pub(super) fn waiting_trees(
        &self,
        after: Option<WaitingTree>,
        limit: usize,
    ) -> Result<Vec<WaitingTree>, StoreError> {
        let trees = self.projects.values().flat_map(|tables| {
            let roots = undelivered_messages(tables).filter_map(|message| message.note.tree());
            roots.map(|(root, _)| WaitingTree { project: tables.project.clone(), root })
        });
        let trees: BTreeSet<WaitingTree> =
            trees.filter(|tree| after.as_ref().is_none_or(|after| tree > after)).collect();
        Ok(trees.into_iter().take(limit).collect())
    }
}

impl ProjectTables {
    fn wakes_of_runs(&self) -> impl Iterator<Item = Wake<RunId>> {
        let at = |id: &RunId| self.runs.get(id)?.row.projection.wake_at;
        self.open_runs.iter().filter_map(move |id| Some(wake(&self.project, at(id)?, *id)))
    }

    fn wakes_of_jobs(&self) -> impl Iterator<Item = Wake<JobId>> {
        let at = |id: &JobId| self.jobs.get(id)?.job.wake_at();
        self.open_jobs.iter().filter_map(move |id| Some(wake(&self.project, at(id)?, *id)))
    }

    fn wakes_of_schedules(&self) -> impl Iterator<Item = Wake<ScheduleId>> {
        let schedules = self.schedules.iter();
        schedules.filter_map(|(id, (_, row))| Some(wake(&self.project, row.next_at?, *id)))
    }

    pub(super) fn journal(&self, run: RunId, since: Since, limit: usize) -> Result<Journal, StoreError> {
        let Some(stored) = self.runs.get(&run) else { return Ok(Journal::default()) };
        let (snapshot, after) = match since {
            Since::Entry(after) => (None, after),
            Since::Snapshot => {
                let after = stored.snapshot.as_ref().map_or(Seq::ZERO, |snapshot| snapshot.seq);
                (stored.snapshot.clone(), after)
            }
        };
        let entries = (1..).zip(&stored.entries).skip(usize::try_from(after.0).unwrap_or(usize::MAX));
        let entries = entries.take(limit).map(|(seq, entry)| (Seq(seq), entry.clone())).collect();
        Ok(Journal { snapshot, entries })
    }

    pub(super) fn run(&self, run: RunRef) -> Result<Option<RunRow>, StoreError> {
        let id = match run {
            RunRef::Id(id) => Some(id),
            RunRef::Request(request) => self.requests.get(&request).copied(),
        };
        Ok(id.and_then(|id| self.runs.get(&id)).map(|stored| stored.row.clone()))
    }

    pub(super) fn runs(&self, query: RunQuery) -> Result<Page<RunRow>, StoreError> {
        let rows = self.runs.values().map(|stored| &stored.row);
        let matches = rows.filter(|row| row.matches(&query)).cloned().collect();
        let order = query.part.order;
        Ok(cut(&query.part, matches, |row: &RunRow| match order {
            Order::Newest | Order::Oldest => (row.origin.created_at, row.id),
            Order::LatestChange => (row.projection.updated_at, row.id),
        })?)
    }

    pub(super) fn job(&self, job: JobId) -> Result<Option<JobRow>, StoreError> {
        Ok(self.jobs.get(&job).cloned())
    }

    pub(super) fn jobs(&self, query: JobQuery) -> Result<Page<JobRow>, StoreError> {
        let matches = self.jobs.values().filter(|row| row.matches(&query)).cloned().collect();
        let order = query.part.order;
        Ok(cut(&query.part, matches, |row: &JobRow| match order {
            Order::Newest | Order::Oldest => (row.job.created_at, row.id()),
            Order::LatestChange => (row.job.updated_at, row.id()),
        })?)
    }

    pub(super) fn attempts(&self, job: JobId, after: u32, limit: usize) -> Result<Vec<Attempt>, StoreError> {
        let all = self.attempts.range((job, 0)..=(job, u32::MAX)).map(|(_, attempt)| attempt);
        Ok(all.filter(|attempt| attempt.number > after).take(limit).cloned().collect())
    }

    pub(super) fn ready(&self, query: ReadyQuery) -> Result<Vec<JobRow>, StoreError> {
        let open = self.open_jobs.iter().filter_map(|id| self.jobs.get(id));
        let mut ready: Vec<&JobRow> =
            open.filter(|row| row.is_ready(&query) && !self.is_paused(&row.job.spec.queue)).collect();
        ready.sort_by_key(|row| (Reverse(row.job.spec.priority), due_at(&row.job), row.id()));
        Ok(ready.into_iter().take(query.limit).cloned().collect())
    }

    pub(super) fn waiting_services(
        &self,
        names: NameRange,
        now: Timestamp,
    ) -> Result<Vec<WaitingService>, StoreError> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for row in self.open_jobs.iter().filter_map(|id| self.jobs.get(id)) {
            let service = row.job.spec.name.as_str();
            if names.contains(service) && due_at(&row.job).is_some_and(|at| at <= now) {
                *counts.entry(service).or_default() += 1;
            }
        }
        let counts = counts.into_iter().take(names.limit());
        Ok(counts
            .map(|(name, n)| WaitingService { name: name.to_owned(), n_waiting: n.min(WAITING_MAX) })
            .collect())
    }

    pub(super) fn ready_cursors(&self, query: ReadyQuery) -> Result<Vec<ReadyCursor>, StoreError> {
        Ok(self.ready(query)?.iter().map(JobRow::ready_cursor).collect())
    }

    pub(super) fn job_outlines(&self, query: OutlineQuery) -> Result<Vec<JobOutline>, StoreError> {
        let mut rows: Vec<&JobRow> = match &query {
            OutlineQuery::Ids(ids) => ids.iter().filter_map(|id| self.jobs.get(id)).collect(),
            OutlineQuery::Delayed { queue, now, .. } => {
                let is_delayed =
                    |row: &&JobRow| row.job.spec.queue == *queue && due_at(&row.job) > Some(*now);
                self.jobs.values().filter(is_delayed).collect()
            }
            OutlineQuery::DeadLetters { queue, .. } => {
                let is_dead = |row: &&JobRow| row.job.spec.queue == *queue && row.job.is_dead_letter();
                self.jobs.values().filter(is_dead).collect()
            }
        };
        match query {
            OutlineQuery::Ids(_) => {}
            OutlineQuery::Delayed { limit, .. } => {
                rows.sort_by_key(|row| due_at(&row.job));
                rows.truncate(limit);
            }
            OutlineQuery::DeadLetters { limit, .. } => {
                rows.sort_by_key(|row| Reverse((row.job.created_at, row.id())));
                rows.truncate(limit);
            }
        }
        Ok(rows.into_iter().cloned().map(JobOutline::of).collect())
    }

    pub(super) fn logs(&self, run: RunId, of: LogsOf) -> Result<Vec<LogRow>, StoreError> {
        let after = match of {
            LogsOf::Attempt(_) => Bound::Included((run, Seq::ZERO, Fence::ZERO)),
            LogsOf::After { entry, fence } => Bound::Excluded((run, entry, fence)),
        };
        let rows = self.logs.range((after, Bound::Included((run, Seq(u64::MAX), Fence(u64::MAX)))));
        let rows = rows.map(|(_, row)| row).filter(|row| match of {
            LogsOf::Attempt(fence) => row.fence == fence,
            LogsOf::After { .. } => true,
        });
        Ok(rows.take(LOGS_MAX).cloned().collect())
    }

    pub(super) fn waiting_children(&self, root: RunId, limit: usize) -> Result<Vec<Message>, StoreError> {
        let depth =
            |message: &Message| message.note.tree().filter(|(of, _)| *of == root).map(|(_, depth)| depth);
        let mut found: Vec<(Reverse<u32>, &Message)> = undelivered_messages(self)
            .filter_map(|message| Some((Reverse(depth(message)?), message)))
            .collect();
        found.sort_by_key(|(depth, message)| (*depth, message.at, &message.id));
        Ok(found.into_iter().take(limit).map(|(_, message)| message.clone()).collect())
    }

    pub(super) fn count_runs(&self, group: RunGroup, limit: usize) -> Result<usize, StoreError> {
        let is_below = |row: &RunRow, root: RunId| {
            row.origin.parent.as_ref().is_some_and(|parent| parent.root() == root)
        };
        let counts = |row: &&RunRow| match group {
            RunGroup::Below(root) => is_below(row, root),
            RunGroup::OpenBelow(root) => row.projection.status.is_open() && is_below(row, root),
            RunGroup::OpenOfFlow(flow) => row.projection.status.is_open() && row.origin.flow == flow,
            RunGroup::Open => row.projection.status.is_open(),
        };
        Ok(self.runs.values().map(|stored| &stored.row).filter(counts).take(limit).count())
    }

    pub(super) fn count_matching(&self, query: RunQuery, limit: usize) -> Result<Option<usize>, StoreError> {
        let rows = self.runs.values().map(|stored| &stored.row);
        Ok((!query.is_examined()).then(|| rows.filter(|row| row.matches(&query)).take(limit).count()))
    }

    pub(super) fn outbox_to(&self, to: Party) -> Result<Vec<Message>, StoreError> {
        let open: BTreeSet<&MessageId> = self.undelivered.iter().map(|(_, id)| id).collect();
        let sent = open.into_iter().filter_map(|id| self.messages.get(id));
        Ok(sent.filter(|message| message.to == to).cloned().collect())
    }

    pub(super) fn ledger(&self, query: LedgerQuery) -> Result<Vec<LedgerRow>, StoreError> {
        let size = Part { limit: query.limit, ..Part::default() }.size();
        let rows = self.accounts.get(&query.account).map(|stored| stored.ledger.as_slice());
        let asked = |row: &&LedgerRow| {
            (query.run.is_none() || query.run == row.posting.run())
                && query.key.as_ref().is_none_or(|key| *key == row.posting.movement.key)
        };
        let rows = rows.unwrap_or_default().iter().filter(asked);
        Ok(match query.order {
            LineOrder::Oldest => rows.filter(|row| row.seq > query.after).take(size).cloned().collect(),
            LineOrder::Newest => {
                let before = if query.after == Seq::ZERO { Seq(u64::MAX) } else { query.after };
                rows.rev().filter(|row| row.seq < before).take(size).cloned().collect()
            }
        })
    }
}

fn undelivered_messages(tables: &ProjectTables) -> impl Iterator<Item = &Message> {
    tables.undelivered.iter().filter_map(|(_, id)| tables.messages.get(id))
}

fn wake<I>(project: &Project, at: Timestamp, id: I) -> Wake<I> {
    Wake { at, id, project: project.clone() }
}
