//! Stored times that a wrong clock wrote, set back.

use windlass_engine::time::Timestamp;

use super::column::cells;
use super::link::Link;
use crate::error::StoreError;
use crate::store::SetBack;

const SERVERS: &str = "UPDATE servers SET started_at = least(started_at, $1), beat_at = least(beat_at, $1) \
     WHERE beat_at > $1 OR started_at > $1";
const WORKERS: &str = "UPDATE registrations SET registered_at = least(registered_at, $1), beat_at = least(beat_at, $1) \
     WHERE beat_at > $1 OR registered_at > $1";
// A run that was written since then has its wake-up from the wrong clock; any other keeps its own.
const RUNS: &str = "UPDATE runs SET created_at = least(created_at, $1), updated_at = $1, \
     wake_at = CASE WHEN wake_at > $1 THEN $1 ELSE wake_at END, \
     ended_at = CASE WHEN ended_at > $1 THEN $1 ELSE ended_at END WHERE updated_at > $1";
const JOBS: &str = "UPDATE jobs SET key_until = key_until - greatest(created_at - $1, 0), \
     created_at = least(created_at, $1), updated_at = least(updated_at, $1) WHERE updated_at > $1 OR created_at > $1";
const SCHEDULES: &str = "UPDATE schedules SET created_at = least(created_at, $1), updated_at = least(updated_at, $1) \
     WHERE updated_at > $1 OR created_at > $1";
const MESSAGES: &str = "UPDATE outbox SET at = $1 WHERE at > $1";
const RATES: &str = "UPDATE queue_rates SET full_at = $1 WHERE full_at > $1";
const COMMANDS: &str = "UPDATE commands SET at = $1 WHERE at > $1";

pub(super) async fn set_back(db: &Link, now: Timestamp) -> Result<SetBack, StoreError> {
    let set = async |sql: &'static str| -> Result<usize, StoreError> {
        Ok(usize::try_from(db.execute(sql, &cells![now.0]).await?).unwrap_or(usize::MAX))
    };
    Ok(SetBack {
        n_servers: set(SERVERS).await?,
        n_workers: set(WORKERS).await?,
        n_runs: set(RUNS).await?,
        n_jobs: set(JOBS).await?,
        n_schedules: set(SCHEDULES).await?,
        n_messages: set(MESSAGES).await?,
        n_rates: set(RATES).await?,
        n_commands: set(COMMANDS).await?,
    })
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SERVERS, WORKERS, RUNS, JOBS, SCHEDULES, MESSAGES, RATES, COMMANDS];
