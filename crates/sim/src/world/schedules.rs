//! Schedules: every server checks all of them, on cached or stored rows; a slot fires once.

use uuid::Uuid;
use windlass_engine::counter::Revision;
use windlass_engine::id::ScheduleId;
use windlass_engine::job::{Job, JobInput, JobSpec};
use windlass_engine::project::Project;
use windlass_engine::schedule::{Catchup, Cron, Decision, Overlap, Progress, Schedule};
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, JobChange, ScheduleChange};
use windlass_store::job::JobOrigin;
use windlass_store::schedule::{FiringRow, History, ScheduleRow, Scheduled, Started};

use super::SimWorld;
use super::plain::{JobWriteOutcome, QUEUE};
use crate::bug::PlantedBug;
use crate::checker::Violation;

const EVERY_MS: i64 = 20_000;
/// The longest delay of a slot while the world settles: a server checks at least once a second.
const FIRING_DELAY_MS_MAX: i64 = 5_000;

/// A schedule of the world.
pub(super) struct SimSchedule {
    id: ScheduleId,
    from: Timestamp,
    /// Whether every slot must fire.
    is_complete: bool,
}

impl SimWorld {
    pub(super) fn begin_schedules(&mut self) {
        let rules = [
            (Overlap::Allow, Catchup::All),
            (Overlap::Skip, Catchup::None),
            (Overlap::Queue, Catchup::All),
            (Overlap::Cancel, Catchup::Last),
        ];
        for (number, (overlap, catchup)) in (1_u128..).zip(rules) {
            if self.plain.rng.percent(50) {
                continue;
            }
            let id = ScheduleId::new(Uuid::from_u128(number));
            let cron = Cron::parse("*/20 * * * * *", "UTC").expect("the expression is a good one");
            let schedule = Schedule { id, cron, enabled: true, overlap, catchup, window_ms: 0 };
            let first = schedule.plan(&Progress::default(), self.now, 0);
            let row = ScheduleRow {
                schedule,
                name: format!("schedule{number}"),
                target: serde_json::Value::Null,
                progress: first.progress,
                next_at: first.next_at,
                history: History::default(),
                created_at: self.now,
                updated_at: self.now,
            };
            self.save_schedule(Revision::ZERO, row);
            self.checker.jobs.scheduled(id, overlap);
            let is_complete = overlap == Overlap::Allow && catchup == Catchup::All;
            self.plain.schedules.push(SimSchedule { id, from: self.now, is_complete });
        }
    }

    fn save_schedule(&mut self, expected_rev: Revision, row: ScheduleRow) {
        let mut commit = Commit::new(&Project::DEFAULT, self.store.command(), self.now);
        commit.schedules.push(ScheduleChange { expected_rev, row, delete: false });
        for answer in self.store.memory.commit_now(vec![commit]) {
            answer.expect("nobody else writes at this moment");
        }
    }

    fn stored_schedule(&self, id: ScheduleId) -> Option<Scheduled> {
        self.store.memory.schedules_now(&Project::DEFAULT, Some(id)).ok()?.into_iter().next()
    }

    pub(super) fn fire_schedules(&mut self, server: usize) -> Result<(), Violation> {
        let ids: Vec<ScheduleId> = self.plain.schedules.iter().map(|kept| kept.id).collect();
        for id in ids {
            if !self.servers[server].is_up {
                return Ok(());
            }
            let kept = self.servers[server].schedules.remove(&id).filter(|_| self.plain.rng.percent(50));
            let Some(scheduled) = kept.or_else(|| self.stored_schedule(id)) else { continue };
            self.fire_schedule(server, scheduled)?;
        }
        Ok(())
    }

    fn fire_schedule(&mut self, server: usize, scheduled: Scheduled) -> Result<(), Violation> {
        let ahead = if self.bug == Some(PlantedBug::EarlyFiring) { 500 } else { 0 };
        let row = &scheduled.row;
        let n_running =
            if self.bug == Some(PlantedBug::OverlapIgnored) { 0 } else { scheduled.running.len() };
        let mut decision = row.schedule.plan(&row.progress, self.now.after(ahead), n_running);
        if self.bug == Some(PlantedBug::SlotsForgotten) {
            decision.fire.drain(..decision.fire.len().saturating_sub(1));
        }
        let is_news = !decision.fire.is_empty()
            || decision.n_passed > 0
            || decision.progress.waiting != row.progress.waiting
            || decision.next_at != row.next_at;
        if !is_news {
            self.servers[server].schedules.insert(row.id(), scheduled);
            return Ok(());
        }
        if decision.cancel_running {
            for started in &scheduled.running {
                let Started::Job(job) = started else { continue };
                self.submit_plain(server, *job, &JobInput::Cancel)?;
            }
        }
        if !self.servers[server].is_up {
            return Ok(());
        }
        let commit = self.firing(&scheduled, &decision);
        if self.bug == Some(PlantedBug::FiringApart) {
            let jobs = Commit {
                jobs: commit.jobs.clone(),
                ..Commit::new(&Project::DEFAULT, self.store.command(), self.now)
            };
            let alone = Commit { jobs: Vec::new(), ..commit };
            if let JobWriteOutcome::Yes = self.write_plain(server, alone)? {
                self.write_plain(server, jobs)?;
            }
            return Ok(());
        }
        // After a conflict or an unknown outcome, the server decides again at the next tick.
        self.write_plain(server, commit).map(|_| ())
    }

    /// The commit of a decision: jobs, firings and progress together.
    fn firing(&mut self, scheduled: &Scheduled, decision: &Decision) -> Commit {
        let mut commit = Commit::new(&Project::DEFAULT, self.store.command(), self.now);
        let mut row = scheduled.row.clone();
        (row.progress, row.next_at) = (decision.progress.clone(), decision.next_at);
        row.updated_at = self.now;
        let origin = JobOrigin { call: None, schedule: Some(row.id()) };
        for firing in &decision.fire {
            let spec = JobSpec { max_retries: 2, ..JobSpec::new("tick", QUEUE) };
            let Ok((job, _)) = Job::create(firing.job(), spec, self.now) else { continue };
            commit.jobs.push(JobChange { expected_rev: Revision(0), job, origin: origin.clone() });
            commit.firings.push(FiringRow { firing: *firing, started: Started::Job(firing.job()) });
        }
        commit.schedules.push(ScheduleChange { expected_rev: scheduled.rev, row, delete: false });
        commit
    }

    /// Checks that every slot that had to fire has fired, and removes all schedules.
    pub(super) fn end_schedules(&mut self) -> Result<(), Violation> {
        let until = Timestamp(self.now.0 - FIRING_DELAY_MS_MAX);
        for kept in std::mem::take(&mut self.plain.schedules) {
            if kept.is_complete {
                self.checker.jobs.all_fired(kept.id, kept.from, until, EVERY_MS)?;
            }
            if let Some(Scheduled { rev, mut row, .. }) = self.stored_schedule(kept.id) {
                row.schedule.enabled = false;
                row.next_at = None;
                self.save_schedule(rev, row);
            }
        }
        Ok(())
    }
}
