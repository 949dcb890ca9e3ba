//! Schedules: jobs and runs that start by the clock.
//!
//! The engine decides which slots fire, and the store keeps a schedule's progress. `fire` turns a decision into one
//! commit, `calendar` knows when the next decision is due.

mod calendar;
mod check;
mod fire;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;
use windlass_engine::counter::Revision;
use windlass_engine::id::{FlowId, ScheduleId};
use windlass_engine::job::JobSpec;
use windlass_engine::problem::Problem;
use windlass_engine::problem::Severity;
use windlass_engine::schedule::{Catchup, Dst, Overlap, Progress, Schedule};
use windlass_engine::time::Timestamp;
use windlass_store::commit::{JobChange, ScheduleChange};
use windlass_store::page::{Page, Part};
use windlass_store::schedule::{History, ScheduleRow, Scheduled, Started};

use crate::RuntimeError;
use crate::part::{RuntimePart, part};

use calendar::Calendar;
use check::CheckedDraft;
use fire::{ATTEMPTS_MAX, FireOutcome, RETRY_DELAY, StartFailure, starts, target_of};

/// Schedules that there can be: all of them are known to every server.
pub const SCHEDULES_MAX: usize = 10_000;

/// The job or run that a schedule starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FiringTarget {
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

/// A schedule as a client asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleDraft {
    /// Empty = the name of the target.
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
    pub target: FiringTarget,
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

/// The state of `Schedules`.
#[derive(Default)]
pub(crate) struct SchedulesState {
    calendar: Calendar,
}

part! {
    /// The owner of schedules: jobs and runs that start by the clock.
    pub Schedules, schedules: SchedulesState
}

impl Schedules {
    /// Reads all schedules soon: another server wrote some.
    pub(crate) fn refresh_soon(&self) {
        self.state().calendar.written.notify_one();
    }

    /// Whether a schedule waits for the end of this run or job.
    pub(crate) fn watches(&self, started: Started) -> bool {
        self.state().calendar.watches(started)
    }

    /// The runs and jobs that a schedule waits for.
    pub(crate) fn watched(&self) -> Vec<Started> {
        self.state().calendar.watched()
    }

    /// A run or job ended: a schedule that waits for it is due.
    pub(crate) fn on_ended(&self, started: Started) {
        self.state().calendar.ended(started);
    }

    /// Jobs changed: schedules that wait for the end of one of them are due.
    pub(crate) fn on_jobs_changed(&self, changes: &[JobChange]) {
        self.state().calendar.jobs_moved(changes);
    }

    /// Makes a schedule.
    pub async fn create_schedule(&self, draft: ScheduleDraft) -> Result<Scheduled, ScheduleError> {
        let checked = self.check_draft(&draft).await?;
        if self.state().calendar.len() >= SCHEDULES_MAX {
            let reason = format!("there are {SCHEDULES_MAX} schedules already: delete one first");
            return Err(ScheduleError::Problems(vec![problem("$", reason)]));
        }
        let (now, wall) = self.clock().both();
        let id = ScheduleId::new(Uuid::now_v7());
        let mut row = row_of(id, draft, checked, now);
        let first = row.schedule.plan(&Progress::default(), wall, 0);
        (row.progress, row.next_at) = (first.progress, first.next_at);
        let change = ScheduleChange { expected_rev: Revision(0), row: row.clone(), delete: false };
        if !self.commit_schedule(change, now).await? {
            return Err(RuntimeError::Broken.into());
        }
        let scheduled =
            Scheduled { project: self.project().clone(), rev: Revision(1), row, running: Vec::new() };
        self.learn(&scheduled);
        Ok(scheduled)
    }

    /// Changes a schedule: it is given as it is and answers as it is to be. Its slots so far stay decided.
    pub async fn change_schedule(
        &self,
        id: ScheduleId,
        change: impl FnOnce(ScheduleDraft) -> ScheduleDraft + Clone + Send,
    ) -> Result<Scheduled, ScheduleError> {
        for _ in 0..ATTEMPTS_MAX {
            let (now, wall) = self.clock().both();
            // Slots that are due by now are decided by the old rule.
            let schedules = self.clone();
            self.ctx().to_the_end(async move { schedules.fire(id, wall).await }).await??;
            let Scheduled { project, rev, row: before, running } = self.find_schedule(id).await?;
            let draft = change.clone()(draft_of_row(&before));
            let checked = self.check_draft(&draft).await?;
            let mut row = ScheduleRow {
                history: before.history,
                created_at: before.created_at,
                ..row_of(id, draft, checked, now)
            };
            let last_slot = before.progress.last_slot.max(Some(wall));
            let waiting = if row.schedule.enabled { before.progress.waiting } else { Vec::new() };
            row.progress = Progress { last_slot, waiting };
            row.next_at = last_slot
                .filter(|_| row.schedule.enabled)
                .and_then(|decided| row.schedule.cron.next_after(decided));
            let change = ScheduleChange { expected_rev: rev, row: row.clone(), delete: false };
            if self.commit_schedule(change, now).await? {
                let scheduled = Scheduled { project, rev: rev.next(), row, running };
                self.learn(&scheduled);
                return Ok(scheduled);
            }
        }
        Err(RuntimeError::Busy { retry_after: RETRY_DELAY }.into())
    }

    /// Deletes a schedule; its runs and jobs go on.
    pub async fn delete_schedule(&self, id: ScheduleId) -> Result<(), ScheduleError> {
        for _ in 0..ATTEMPTS_MAX {
            let Scheduled { rev, row, .. } = self.find_schedule(id).await?;
            let change = ScheduleChange { expected_rev: rev, row, delete: true };
            if self.commit_schedule(change, self.clock().now()).await? {
                self.state().calendar.forget(id);
                return Ok(());
            }
        }
        Err(RuntimeError::Busy { retry_after: RETRY_DELAY }.into())
    }

    /// Starts the target of the schedule now, enabled or not. If the deduplication key of the job is taken, returns the
    /// existing job.
    pub async fn trigger_schedule(&self, id: ScheduleId) -> Result<Started, ScheduleError> {
        let schedules = self.clone();
        self.ctx().to_the_end(async move { schedules.trigger(id).await }).await?
    }

    async fn trigger(&self, id: ScheduleId) -> Result<Started, ScheduleError> {
        for nth in 0..ATTEMPTS_MAX {
            let Scheduled { project, rev, mut row, running } = self.find_schedule(id).await?;
            // A slot is one millisecond, so a second trigger within it gets the next one.
            let now = self.clock().now().after(nth);
            let (firing, cancels) = row.schedule.trigger(now, running.len());
            let target = target_of(&row);
            if cancels {
                self.cancel_started(&running).await?;
            }
            row.updated_at = now;
            match (self.start_part(rev, &mut row, target.as_ref(), &[firing], now).await?, target) {
                (FireOutcome::Fired, Ok(target)) => {
                    let started = starts(&target, firing);
                    let running = running.into_iter().chain([started]).collect();
                    self.learn(&Scheduled { project, rev: rev.next(), row, running });
                    return Ok(started);
                }
                (FireOutcome::StartFailure(StartFailure { existing: Some(job), .. }), _) => {
                    return Ok(Started::Job(job));
                }
                (FireOutcome::StartFailure(StartFailure { path, reason, existing: None }), _) => {
                    return Err(ScheduleError::Problems(vec![problem(path, reason)]));
                }
                (FireOutcome::Fired | FireOutcome::Again(_), _) => {}
            }
        }
        Err(RuntimeError::Busy { retry_after: RETRY_DELAY }.into())
    }

    /// One schedule.
    pub async fn show(&self, id: ScheduleId) -> Result<Option<Scheduled>, RuntimeError> {
        Ok(self.store().schedule(self.project(), id).await?)
    }

    /// A page of schedules.
    pub async fn list(&self, part: Part) -> Result<Page<Scheduled>, RuntimeError> {
        Ok(self.store().schedules(self.project(), part).await?)
    }

    async fn find_schedule(&self, id: ScheduleId) -> Result<Scheduled, ScheduleError> {
        let found = self.show(id).await?;
        found.ok_or_else(|| {
            self.state().calendar.forget(id);
            ScheduleError::Unknown(id)
        })
    }
}

/// The draft of a stored schedule. A target that cannot be read becomes a job without a name, which validation refuses.
pub fn draft_of(scheduled: &Scheduled) -> ScheduleDraft {
    draft_of_row(&scheduled.row)
}

fn draft_of_row(row: &ScheduleRow) -> ScheduleDraft {
    let Schedule { cron, enabled, overlap, catchup, window_ms, .. } = &row.schedule;
    ScheduleDraft {
        name: row.name.clone(),
        cron_expr: cron.expr().to_owned(),
        timezone: cron.zone().to_owned(),
        dst: cron.dst(),
        enabled: *enabled,
        overlap: *overlap,
        catchup: *catchup,
        window_ms: *window_ms,
        target: target_of(row).unwrap_or_else(|_| FiringTarget::Job(Box::new(JobSpec::new("", "")))),
    }
}

/// A schedule as it was asked for, at its very beginning.
fn row_of(id: ScheduleId, draft: ScheduleDraft, checked: CheckedDraft, now: Timestamp) -> ScheduleRow {
    let ScheduleDraft { enabled, overlap, catchup, window_ms, target, .. } = draft;
    let CheckedDraft { cron, name } = checked;
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
