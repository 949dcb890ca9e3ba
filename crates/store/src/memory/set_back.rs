//! Stored times that a wrong clock wrote, set back.

use windlass_engine::time::Timestamp;

use super::state::{MemoryState, ProjectTables};
use crate::error::StoreError;
use crate::store::SetBack;

impl MemoryState {
    pub(super) fn set_back(&mut self, now: Timestamp) -> Result<SetBack, StoreError> {
        let mut done = SetBack::default();
        for row in self.servers.values_mut() {
            done.n_servers += all_back(&mut [&mut row.started_at, &mut row.beat_at], now);
        }
        self.projects.values_mut().for_each(|tables| set_tables_back(tables, now, &mut done));
        Ok(done)
    }
}

fn set_tables_back(tables: &mut ProjectTables, now: Timestamp, done: &mut SetBack) {
    for row in tables.registry.workers.values_mut() {
        done.n_workers += all_back(&mut [&mut row.registered_at, &mut row.beat_at], now);
    }
    for stored in tables.runs.values_mut() {
        let (created_at, projection) = (&mut stored.row.origin.created_at, &mut stored.row.projection);
        if projection.updated_at > now {
            projection.wake_at = projection.wake_at.map(|at| at.min(now));
            projection.ended_at = projection.ended_at.map(|at| at.min(now));
            done.n_runs += all_back(&mut [&mut projection.updated_at, created_at], now);
        }
    }
    for row in tables.jobs.values_mut() {
        done.n_jobs += all_back(&mut [&mut row.job.created_at, &mut row.job.updated_at], now);
    }
    for (_, row) in tables.schedules.values_mut() {
        done.n_schedules += all_back(&mut [&mut row.created_at, &mut row.updated_at], now);
    }
    for message in tables.messages.values_mut() {
        done.n_messages += all_back(&mut [&mut message.at], now);
    }
    tables.undelivered = std::mem::take(&mut tables.undelivered)
        .into_iter()
        .map(|(at, message)| (at.min(now), message))
        .collect();
    for full_at in tables.spent.values_mut() {
        done.n_rates += all_back(&mut [full_at], now);
    }
}

/// Sets the times of a row back; the number of changed rows.
fn all_back(times: &mut [&mut Timestamp], now: Timestamp) -> usize {
    let is_ahead = times.iter().any(|at| **at > now);
    times.iter_mut().for_each(|at| **at = (**at).min(now));
    usize::from(is_ahead)
}
