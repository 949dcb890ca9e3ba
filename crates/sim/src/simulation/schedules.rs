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

use super::plain::{JobWriteOutcome, PlainJobs, QUEUE};
use crate::bug::PlantedBug;
use crate::checker::Violation;
use crate::world::SimWorld;

const EVERY_MS: i64 = 20_000;
/// The longest delay of a slot while the world settles: a server checks at least once a second.
const FIRING_DELAY_MS_MAX: i64 = 5_000;

/// The schedules of a world. Their jobs are plain ones.
pub(super) struct SimSchedules {
    kept: Vec<SimSchedule>,
}

struct SimSchedule {
    id: ScheduleId,
    from: Timestamp,
    /// Whether every slot must fire.
    is_complete: bool,
}

impl SimSchedules {
    /// Creates some schedules with different rules.
    pub(super) fn begin(plain: &mut PlainJobs, world: &mut SimWorld) -> Self {
        let mut kept = Vec::new();
        let rules = [
            (Overlap::Allow, Catchup::All),
            (Overlap::Skip, Catchup::None),
            (Overlap::Queue, Catchup::All),
            (Overlap::Cancel, Catchup::Last),
        ];
        for (number, (overlap, catchup)) in (1_u128..).zip(rules) {
            if plain.percent(50) {
                continue;
            }
            let id = ScheduleId::new(Uuid::from_u128(number));
            let cron = Cron::parse("*/20 * * * * *", "UTC").expect("the expression is a good one");
            let schedule = Schedule { id, cron, enabled: true, overlap, catchup, window_ms: 0 };
            let first = schedule.plan(&Progress::default(), world.wall(), 0);
            let row = ScheduleRow {
                schedule,
                name: format!("schedule{number}"),
                target: serde_json::Value::Null,
                progress: first.progress,
                next_at: first.next_at,
                history: History::default(),
                created_at: world.now,
                updated_at: world.now,
            };
            if let Some(next_at) = row.next_at {
                world.checker.late.scheduled(id, EVERY_MS.unsigned_abs(), next_at);
            }
            save_schedule(world, Revision::ZERO, row);
            world.checker.jobs.scheduled(id, overlap);
            let is_complete = overlap == Overlap::Allow && catchup == Catchup::All;
            kept.push(SimSchedule { id, from: world.wall(), is_complete });
        }
        SimSchedules { kept }
    }

    /// Fires all slots that are due.
    pub(super) fn fire(
        &self,
        server: usize,
        plain: &mut PlainJobs,
        world: &mut SimWorld,
    ) -> Result<(), Violation> {
        for id in self.kept.iter().map(|kept| kept.id) {
            if !world.servers[server].is_up {
                return Ok(());
            }
            let kept = world.servers[server].schedules.remove(&id).filter(|_| plain.percent(50));
            let Some(scheduled) = kept.or_else(|| stored_schedule(world, id)) else { continue };
            fire_schedule(server, scheduled, plain, world)?;
        }
        Ok(())
    }

    /// Checks that every slot that had to fire has fired, and removes all schedules.
    pub(super) fn end(&mut self, world: &mut SimWorld) -> Result<(), Violation> {
        let until = Timestamp(world.wall().0 - FIRING_DELAY_MS_MAX);
        for kept in std::mem::take(&mut self.kept) {
            if kept.is_complete {
                world.checker.jobs.all_fired(kept.id, kept.from, until, EVERY_MS)?;
            }
            world.checker.late.unscheduled(kept.id);
            if let Some(Scheduled { rev, mut row, .. }) = stored_schedule(world, kept.id) {
                row.schedule.enabled = false;
                row.next_at = None;
                save_schedule(world, rev, row);
            }
        }
        Ok(())
    }
}

fn save_schedule(world: &mut SimWorld, expected_rev: Revision, row: ScheduleRow) {
    let mut commit = Commit::new(&Project::DEFAULT, world.store.command(), world.now);
    commit.schedules.push(ScheduleChange { expected_rev, row, delete: false });
    for answer in world.store.memory.commit_now(vec![commit]) {
        answer.expect("nobody else writes at this moment");
    }
}

fn stored_schedule(world: &SimWorld, id: ScheduleId) -> Option<Scheduled> {
    world.store.memory.schedule_now(&Project::DEFAULT, id).ok()?
}

fn fire_schedule(
    server: usize,
    scheduled: Scheduled,
    plain: &mut PlainJobs,
    world: &mut SimWorld,
) -> Result<(), Violation> {
    let ahead = if world.bug == Some(PlantedBug::EarlyFiring) { 500 } else { 0 };
    let row = &scheduled.row;
    let n_running = if world.bug == Some(PlantedBug::OverlapIgnored) { 0 } else { scheduled.running.len() };
    let mut decision = row.schedule.plan(&row.progress, world.wall().after(ahead), n_running);
    // A slot that fired before the wall clock went back does not fire again.
    decision.fire.retain(|firing| world.store.job(firing.job()).is_none());
    if world.bug == Some(PlantedBug::SlotsForgotten) {
        decision.fire.drain(..decision.fire.len().saturating_sub(1));
    }
    let is_news = !decision.fire.is_empty()
        || decision.n_passed > 0
        || decision.progress.waiting != row.progress.waiting
        || decision.next_at != row.next_at
        || row.progress.is_ahead_of(world.wall());
    if !is_news {
        world.servers[server].schedules.insert(row.id(), scheduled);
        return Ok(());
    }
    if decision.cancel_running {
        for started in &scheduled.running {
            let Started::Job(job) = started else { continue };
            plain.submit(world, server, *job, &JobInput::Cancel)?;
        }
    }
    if !world.servers[server].is_up {
        return Ok(());
    }
    let commit = firing(world, &scheduled, &decision);
    if world.bug == Some(PlantedBug::FiringApart) {
        let jobs = Commit {
            jobs: commit.jobs.clone(),
            ..Commit::new(&Project::DEFAULT, world.store.command(), world.now)
        };
        let alone = Commit { jobs: Vec::new(), ..commit };
        if let JobWriteOutcome::Yes = plain.write(world, server, alone)? {
            plain.write(world, server, jobs)?;
        }
        return Ok(());
    }
    // After a conflict or an unknown outcome, the server decides again at the next tick.
    plain.write(world, server, commit).map(|_| ())
}

/// The commit of a decision: jobs, firings and progress together.
fn firing(world: &mut SimWorld, scheduled: &Scheduled, decision: &Decision) -> Commit {
    let mut commit = Commit::new(&Project::DEFAULT, world.store.command(), world.now);
    let mut row = scheduled.row.clone();
    (row.progress, row.next_at) = (decision.progress.clone(), decision.next_at);
    row.updated_at = world.now;
    let origin = JobOrigin { call: None, schedule: Some(row.id()) };
    for firing in &decision.fire {
        let spec = JobSpec { max_retries: 2, ..JobSpec::new("tick", QUEUE) };
        let Ok((job, _)) = Job::create(firing.job(), spec, world.now) else { continue };
        commit.jobs.push(JobChange { expected_rev: Revision(0), job, origin: origin.clone() });
        commit.firings.push(FiringRow { firing: *firing, started: Started::Job(firing.job()) });
    }
    commit.schedules.push(ScheduleChange { expected_rev: scheduled.rev, row, delete: false });
    commit
}
