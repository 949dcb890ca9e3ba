//! Stored times that a wrong clock wrote, set back.

use rusqlite::Connection;
use windlass_engine::time::Timestamp;

use crate::error::StoreError;
use crate::store::SetBack;

const SERVERS: &str = "UPDATE servers SET started_at = min(started_at, ?1), beat_at = min(beat_at, ?1) \
     WHERE beat_at > ?1 OR started_at > ?1";
const WORKERS: &str = "UPDATE registrations SET registered_at = min(registered_at, ?1), beat_at = min(beat_at, ?1) \
     WHERE beat_at > ?1 OR registered_at > ?1";
// A run that was written since then has its wake-up from the wrong clock; any other keeps its own.
const RUNS: &str = "UPDATE runs SET created_at = min(created_at, ?1), updated_at = ?1, \
     wake_at = min(wake_at, ?1), ended_at = min(ended_at, ?1) WHERE updated_at > ?1";
const JOBS: &str = "UPDATE jobs SET key_until = key_until - max(created_at - ?1, 0), \
     created_at = min(created_at, ?1), updated_at = min(updated_at, ?1) WHERE updated_at > ?1 OR created_at > ?1";
const SCHEDULES: &str = "UPDATE schedules SET created_at = min(created_at, ?1), updated_at = min(updated_at, ?1) \
     WHERE updated_at > ?1 OR created_at > ?1";
const MESSAGES: &str = "UPDATE outbox SET at = ?1 WHERE at > ?1";
const RATES: &str = "UPDATE queue_rates SET full_at = ?1 WHERE full_at > ?1";
const COMMANDS: &str = "UPDATE commands SET at = ?1 WHERE at > ?1";

pub(super) fn set_back(db: &Connection, now: Timestamp) -> Result<SetBack, StoreError> {
    let set = |sql: &str| -> Result<usize, StoreError> { Ok(db.prepare_cached(sql)?.execute([now.0])?) };
    Ok(SetBack {
        n_servers: set(SERVERS)?,
        n_workers: set(WORKERS)?,
        n_runs: set(RUNS)?,
        n_jobs: set(JOBS)?,
        n_schedules: set(SCHEDULES)?,
        n_messages: set(MESSAGES)?,
        n_rates: set(RATES)?,
        n_commands: set(COMMANDS)?,
    })
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SERVERS, WORKERS, RUNS, JOBS, SCHEDULES, MESSAGES, RATES, COMMANDS];
