//! Ready jobs of a queue by limit key, and the jobs that workers hold of each.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use windlass_engine::job::State as JobState;

use super::state::ProjectTables;
use crate::error::StoreError;
use crate::job::{HeldRow, JobRow, KeyBatch, KeyQuery, KeyRows, due_at};
use crate::queue::{Held, Spent};

impl ProjectTables {
    pub(super) fn ready_by_key(&self, query: KeyQuery) -> Result<KeyRows, StoreError> {
        // By priority, and then by key from where the last question ended.
        let mut found: BTreeMap<(Reverse<i32>, bool, &str), Vec<&JobRow>> = BTreeMap::new();
        for row in self.open_jobs.iter().filter_map(|id| self.jobs.get(id)).filter(|row| asks(&query, row)) {
            let key = row.job.spec.limit_key.as_str();
            let is_behind = query.after.as_deref().is_some_and(|after| key <= after);
            found.entry((Reverse(row.job.spec.priority), is_behind, key)).or_default().push(row);
        }
        if self.is_paused(&query.queue) {
            found.clear();
        }
        let rest = found.keys().nth(query.limit).map(|(Reverse(priority), ..)| *priority);
        let n_turns = found.len().min(query.limit);
        let n_each = query.limit.checked_div(n_turns).unwrap_or(query.limit).max(1);
        let turn = |((Reverse(priority), _, key), mut rows): ((Reverse<i32>, bool, &str), Vec<&JobRow>)| {
            rows.sort_by_key(|row| (due_at(&row.job), row.id()));
            let is_all = rows.len() <= n_each;
            let rows = rows.into_iter().take(n_each).cloned().collect();
            KeyBatch { key: key.to_owned(), priority, rows, is_all }
        };
        Ok(KeyRows { turns: found.into_iter().take(n_turns).map(turn).collect(), rest })
    }

    /// Consumption of rates.
    pub(super) fn spent(&self) -> Result<Vec<Spent>, StoreError> {
        Ok(used_rates(self).collect())
    }

    pub(super) fn held(&self, queue: String) -> Result<Held, StoreError> {
        let open = self.open_jobs.iter().filter_map(|id| self.jobs.get(id));
        let held = open
            .filter(|row| row.job.spec.queue == queue && matches!(row.job.state, JobState::Running { .. }));
        let row =
            |row: &JobRow| HeldRow { job: row.id(), rev: row.rev, limit_key: row.job.spec.limit_key.clone() };
        Ok(Held {
            turns: self.turns.get(&queue).copied().unwrap_or(0),
            jobs: held.map(row).collect(),
            spent: used_rates(self).filter(|spent| spent.queue == queue).collect(),
        })
    }
}

fn asks(query: &KeyQuery, row: &JobRow) -> bool {
    let spec = &row.job.spec;
    matches!(row.job.state, JobState::Queued { since } if since <= query.now || !spec.limit_key.is_empty())
        && spec.queue == query.queue
        && query.service.as_ref().is_none_or(|service| *service == spec.name)
        && !query.except.contains(spec.limit_key.as_str())
        && !query.taken.contains(&row.id())
}

fn used_rates(tables: &ProjectTables) -> impl Iterator<Item = Spent> {
    tables.spent.iter().map(|((queue, limit_key), full_at)| Spent {
        queue: queue.clone(),
        limit_key: limit_key.clone(),
        full_at: *full_at,
    })
}
