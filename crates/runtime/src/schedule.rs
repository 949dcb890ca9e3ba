//! Schedules: jobs and runs that start by the clock.
//!
//! The engine decides which slots fire, the store remembers how far a schedule has got. What is here reads, asks and
//! commits: `fire` turns a decision into one commit, `calendar` says when to ask.

mod calendar;
mod check;
mod fire;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;
use windlass_engine::id::{FlowId, ScheduleId};
use windlass_engine::job::JobSpec;
use windlass_engine::problem::Problem;
use windlass_engine::problem::Severity;
use windlass_engine::schedule::{Catchup, Dst, Overlap, Progress, Schedule};
use windlass_engine::time::Timestamp;
use windlass_store::commit::ScheduleChange;
use windlass_store::schedule::{History, ScheduleRow, Scheduled, Started};

use crate::{Runtime, RuntimeError};

pub(crate) use calendar::Calendar;
use check::Checked;
use fire::{AGAIN, Misfit, TRIES, Tried, starts, target_of};

/// Schedules that there can be: all of them are known to every server.
pub const SCHEDULES_MAX: usize = 10_000;

/// What a schedule starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Job(Box<JobSpec>),
    Flow {
        flow: FlowId,
        /// `None` = the latest published one when it fires.
        version: Option<u32>,
        params: Map<String, Value>,
        #[serde(default)]
        account: Option<String>,
    },
}

/// A schedule as somebody wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Empty = that of what it starts.
    pub name: String,
    /// Five fields, or six with seconds first.
    pub cron_expr: String,
    /// An IANA name; empty = UTC.
    pub timezone: String,
    pub dst: Dst,
    pub enabled: bool,
    pub overlap: Overlap,
    pub catchup: Catchup,
    /// 0 = a day.
    pub window_ms: u64,
    pub target: Target,
}

/// Why a schedule stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    #[error("there is no schedule {0}")]
    Unknown(ScheduleId),
    /// Everything that is wrong with it, each with the field as clients spell it.
    #[error("the schedule cannot be kept: {} problems", .0.len())]
    Problems(Vec<Problem>),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl Runtime {
    /// Makes a schedule.
    pub async fn create_schedule(&self, draft: Draft) -> Result<Scheduled, ScheduleError> {
        let checked = self.check_draft(&draft).await?.map_err(ScheduleError::Problems)?;
        if self.calendar().len() >= SCHEDULES_MAX {
            let reason = format!("there are {SCHEDULES_MAX} schedules already: delete one first");
            return Err(ScheduleError::Problems(vec![problem("$", reason)]));
        }
        let now = self.clock().now();
        let id = ScheduleId::new(Uuid::now_v7());
        let mut row = row_of(id, draft, checked, now);
        let first = row.schedule.plan(&Progress::default(), now, 0);
        (row.progress, row.next_at) = (first.progress, first.next_at);
        let change = ScheduleChange { expected_rev: 0, row: row.clone(), delete: false };
        if !self.commit_schedule(change, now).await? {
            return Err(RuntimeError::Broken.into());
        }
        let scheduled = Scheduled { rev: 1, row, running: Vec::new() };
        self.calendar().set(&scheduled);
        Ok(scheduled)
    }

    /// Changes a schedule: it is given as it is and answers as it is to be. Its slots so far stay decided.
    pub async fn change_schedule(
        &self,
        id: ScheduleId,
        change: impl FnOnce(Draft) -> Draft + Clone + Send,
    ) -> Result<Scheduled, ScheduleError> {
        for _ in 0..TRIES {
            let now = self.clock().now();
            // What is due by now is decided by the rule that it was due by.
            let runtime = self.clone();
            self.to_the_end(async move { runtime.fire(id, now).await }).await??;
            let Scheduled { rev, row: before, running } = self.find_schedule(id).await?;
            let draft = change.clone()(draft_of_row(&before));
            let checked = self.check_draft(&draft).await?.map_err(ScheduleError::Problems)?;
            let mut row = ScheduleRow {
                history: before.history,
                created_at: before.created_at,
                ..row_of(id, draft, checked, now)
            };
            let last_slot = before.progress.last_slot.max(Some(now));
            let waiting = if row.schedule.enabled { before.progress.waiting } else { Vec::new() };
            row.progress = Progress { last_slot, waiting };
            row.next_at = last_slot
                .filter(|_| row.schedule.enabled)
                .and_then(|decided| row.schedule.cron.next_after(decided));
            let change = ScheduleChange { expected_rev: rev, row: row.clone(), delete: false };
            if self.commit_schedule(change, now).await? {
                let scheduled = Scheduled { rev: rev.saturating_add(1), row, running };
                self.calendar().set(&scheduled);
                return Ok(scheduled);
            }
        }
        Err(RuntimeError::Busy { retry_after: AGAIN }.into())
    }

    /// Deletes a schedule; what it started goes on.
    pub async fn delete_schedule(&self, id: ScheduleId) -> Result<(), ScheduleError> {
        for _ in 0..TRIES {
            let Scheduled { rev, row, .. } = self.find_schedule(id).await?;
            let change = ScheduleChange { expected_rev: rev, row, delete: true };
            if self.commit_schedule(change, self.clock().now()).await? {
                self.calendar().forget(id);
                return Ok(());
            }
        }
        Err(RuntimeError::Busy { retry_after: AGAIN }.into())
    }

    /// Starts what the schedule starts, now, whether or not it is enabled. A job whose deduplication key is taken is
    /// answered with the one that has it.
    pub async fn trigger_schedule(&self, id: ScheduleId) -> Result<Started, ScheduleError> {
        let runtime = self.clone();
        self.to_the_end(async move { runtime.trigger(id).await }).await?
    }

    async fn trigger(&self, id: ScheduleId) -> Result<Started, ScheduleError> {
        for nth in 0..TRIES {
            let Scheduled { rev, mut row, running } = self.find_schedule(id).await?;
            // Of one moment there is one: whoever asks twice within it gets the next.
            let now = self.clock().now().after(nth);
            let (firing, cancels) = row.schedule.trigger(now, running.len());
            let target = target_of(&row);
            if cancels {
                self.cancel_started(&running).await?;
            }
            row.updated_at = now;
            match (self.start_part(rev, &mut row, target.as_ref(), &[firing], now).await?, target) {
                (Tried::Fired, Ok(target)) => {
                    let started = starts(&target, firing);
                    let running = running.into_iter().chain([started]).collect();
                    self.calendar().set(&Scheduled { rev: rev.saturating_add(1), row, running });
                    return Ok(started);
                }
                (Tried::Misfit(Misfit { existing: Some(job), .. }), _) => return Ok(Started::Job(job)),
                (Tried::Misfit(Misfit { path, reason, existing: None }), _) => {
                    return Err(ScheduleError::Problems(vec![problem(path, reason)]));
                }
                (Tried::Fired | Tried::Again(_), _) => {}
            }
        }
        Err(RuntimeError::Busy { retry_after: AGAIN }.into())
    }

    /// Schedules, oldest first; all, or one.
    pub async fn schedules(&self, id: Option<ScheduleId>) -> Result<Vec<Scheduled>, RuntimeError> {
        Ok(self.store().schedules(id).await?)
    }

    async fn find_schedule(&self, id: ScheduleId) -> Result<Scheduled, ScheduleError> {
        let found = self.schedules(Some(id)).await?.pop();
        found.ok_or_else(|| {
            self.calendar().forget(id);
            ScheduleError::Unknown(id)
        })
    }
}

/// The draft that a stored schedule was made from. A target that cannot be read is a job without a name, which nobody
/// can save.
pub fn draft_of(scheduled: &Scheduled) -> Draft {
    draft_of_row(&scheduled.row)
}

fn draft_of_row(row: &ScheduleRow) -> Draft {
    let Schedule { cron, enabled, overlap, catchup, window_ms, .. } = &row.schedule;
    Draft {
        name: row.name.clone(),
        cron_expr: cron.expr().to_owned(),
        timezone: cron.zone().to_owned(),
        dst: cron.dst(),
        enabled: *enabled,
        overlap: *overlap,
        catchup: *catchup,
        window_ms: *window_ms,
        target: target_of(row).unwrap_or_else(|_| Target::Job(Box::new(JobSpec::new("", "")))),
    }
}

/// A schedule as it was asked for, at its very beginning.
fn row_of(id: ScheduleId, draft: Draft, checked: Checked, now: Timestamp) -> ScheduleRow {
    let Draft { enabled, overlap, catchup, window_ms, target, .. } = draft;
    let Checked { cron, name } = checked;
    ScheduleRow {
        schedule: Schedule { id, cron, enabled, overlap, catchup, window_ms },
        name,
        target: serde_json::to_value(target).expect("specifications and parameters are JSON"),
        progress: Progress::default(),
        next_at: None,
        history: History::default(),
        created_at: now,
        updated_at: now,
    }
}

fn problem(path: &str, reason: String) -> Problem {
    Problem { path: path.to_owned(), reason, hint: None, severity: Severity::Error }
}

#[cfg(test)]
mod tests;
