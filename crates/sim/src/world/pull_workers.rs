//! Modelled pull workers: they claim jobs, extend leases, and finish or die.

use windlass_engine::counter::Fence;
use windlass_engine::id::JobId;
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::job::{JobInput, JobOutcome};
use windlass_engine::project::Project;
use windlass_engine::raw_json::RawJson;
use windlass_engine::retry::{Fault as CallFault, FaultKind};
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::JobRow;

use super::SimWorld;
use super::clocks::moment_of;
use crate::checker::Violation;
use crate::event::{SimEvent, Unordered};
use crate::fault::SimFault;
use crate::server::{SimExtraWrites, SimReply};
use crate::store::CommitReply;
use crate::worker;

/// Short, so that leases expire often.
const LEASE_MS: u64 = 5_000;

impl SimWorld {
    pub(crate) fn poll(&mut self, worker: usize) -> Result<(), Violation> {
        let ms = self.rng.between(10, 300);
        self.after(ms, SimEvent::Poll(worker));
        let services = (0..4).map(|at| format!("s{at}")).collect();
        let Some(row) = self.store.ready(services, self.now).into_iter().next() else { return Ok(()) };
        let claim = JobInput::Claim { worker: format!("worker{worker}"), lease_ms: LEASE_MS };
        let Some(change) = moved(&row, claim, self.now) else { return Ok(()) };
        let fence = change.job.fence;
        let memo = change.job.memo.is_some();
        let mut commit = Commit::new(&Project::DEFAULT, self.store.command(), self.now);
        commit.jobs.push(change);
        match write_job(self, commit) {
            CommitReply::Answer(Ok(_)) => {}
            // A claim without a reply is lost: its lease expires.
            CommitReply::Answer(Err(_)) | CommitReply::Unknown { .. } => return Ok(()),
        }
        let Some(call) = &row.origin.call else { return Ok(()) };
        let Some(plan) = self.plan_of(call.run) else { return Ok(()) };
        self.checker.called(&plan, call.run, &call.node, call.fence)?;
        if self.faults.strikes(SimFault::WorkerDeath, 8, &mut self.rng) {
            return Ok(());
        }
        let action = worker::perform(&call.node, call.fence, memo, &mut self.faults, &mut self.rng);
        let Some(outcome) = action.outcome else { return Ok(()) };
        let job = row.job.id;
        let hangs = self.faults.strikes(SimFault::WorkerHang, 6, &mut self.rng);
        if !hangs {
            self.after(LEASE_MS / 3, SimEvent::Extend { job, fence });
        }
        let ms = if hangs { action.ms + 3 * LEASE_MS } else { action.ms };
        let done = SimEvent::Finish { job, fence, outcome: Unordered(Box::new(outcome)) };
        self.after(ms, done.clone());
        if let Some(later) = action.again_after_ms {
            self.after(ms + later, done);
        }
        Ok(())
    }

    pub(crate) fn extend(&mut self, job: JobId, fence: Fence) {
        let Some(row) = self.store.job(job) else { return };
        let Some(change) = moved(&row, JobInput::Extend { fence, lease_ms: LEASE_MS }, self.now) else {
            return;
        };
        let mut commit = Commit::new(&Project::DEFAULT, self.store.command(), self.now);
        commit.jobs.push(change);
        write_job(self, commit);
        self.after(LEASE_MS / 3, SimEvent::Extend { job, fence });
    }

    /// Ends a job and the attempt of its node in one commit.
    pub(crate) fn finish(&mut self, job: JobId, fence: Fence, outcome: CallOutcome) -> Result<(), Violation> {
        let Some(row) = self.store.job(job) else { return Ok(()) };
        let finish = JobInput::Finish { fence, outcome: recorded(&outcome) };
        let Some(change) = moved(&row, finish, self.now) else { return Ok(()) };
        let again = SimEvent::Finish { job, fence, outcome: Unordered(Box::new(outcome.clone())) };
        match self.tell_run(&row, change, outcome)? {
            SimReply::Nothing | SimReply::Outdated => self.after(500, again),
            SimReply::Taken | SimReply::Refused(_) | SimReply::Existing(_) => {}
        }
        Ok(())
    }

    /// Reports the end of a job to its run, in the commit that changes the job.
    fn tell_run(
        &mut self,
        row: &JobRow,
        change: JobChange,
        outcome: CallOutcome,
    ) -> Result<SimReply, Violation> {
        let Some(call) = &row.origin.call else { return Ok(SimReply::Taken) };
        let Some(server) = self.any_server() else { return Ok(SimReply::Nothing) };
        let input = Input::CallEnded { node: call.node.clone(), fence: call.fence, outcome, worker: None };
        let extra = SimExtraWrites { jobs: vec![change.clone()], ..SimExtraWrites::default() };
        let reply = self.submit(server, call.run, &input, &extra)?;
        if let SimReply::Refused(_) = reply {
            // The run has continued without it; the job ends alone.
            let mut commit = Commit::new(&Project::DEFAULT, self.store.command(), self.now);
            commit.jobs.push(change);
            write_job(self, commit);
        }
        Ok(reply)
    }

    /// Handles a due job of a run: its lease, its time limit or the grace of its cancel is over.
    pub(crate) fn reap(&mut self, row: &JobRow) -> Result<(), Violation> {
        let Some(input) = row.job.overdue(self.now) else { return Ok(()) };
        let outcome = match &input {
            JobInput::LeaseExpired { .. } => CallOutcome::WorkerLost,
            JobInput::AttemptTimeout => {
                CallOutcome::Failed(CallFault::new(FaultKind::Timeout, "the attempt took too long"))
            }
            _ => CallOutcome::Canceled,
        };
        let Some(change) = moved(row, input, self.now) else { return Ok(()) };
        self.tell_run(row, change, outcome).map(|_| ())
    }
}

/// The job after an input; `None` if the input is refused or a no-op.
pub(crate) fn moved(row: &JobRow, input: JobInput, now: Timestamp) -> Option<JobChange> {
    let events = row.job.decide(input, now).ok().filter(|events| !events.is_empty())?;
    let mut job = row.job.clone();
    for event in &events {
        job.apply(event, now);
    }
    Some(JobChange { expected_rev: row.rev, job, origin: row.origin.clone() })
}

/// The outcome as the job records it. The run decides about retries and rechecks, so the job ends.
fn recorded(outcome: &CallOutcome) -> JobOutcome {
    match outcome {
        CallOutcome::Done(value) => JobOutcome::Done { result: RawJson::from(&**value) },
        CallOutcome::Suspended { memo, .. } => JobOutcome::Done { result: memo.into() },
        CallOutcome::Failed(fault) => {
            JobOutcome::Failed { fault: fault.clone().permanent(), retry_after_ms: None }
        }
        CallOutcome::Canceled | CallOutcome::WorkerLost | CallOutcome::ServerLost => {
            let fault = CallFault::new(FaultKind::Canceled, "canceled").permanent();
            JobOutcome::Failed { fault, retry_after_ms: None }
        }
    }
}

/// Writes a job without its run, and passes an accepted commit to the checker.
fn write_job(world: &mut SimWorld, commit: Commit) -> CommitReply {
    let reply = world.store.commit(commit.clone(), &mut world.faults, &mut world.rng);
    if matches!(reply, CommitReply::Answer(Ok(_)) | CommitReply::Unknown { happened: true }) {
        let moment = moment_of(world);
        world.checker.late.committed(&commit, moment);
    }
    reply
}
