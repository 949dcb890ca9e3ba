//! Pull workers: they claim jobs, keep their leases alive, finish or die.

use serde_json::json;
use windlass_engine::id::JobId;
use windlass_engine::input::{Input, Outcome};
use windlass_engine::job::{JobInput, Outcome as JobOutcome};
use windlass_engine::money::Price;
use windlass_engine::retry::{Fault as CallFault, FaultKind};
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::JobRow;

use super::{Boxed, Happening, World};
use crate::checker::Violation;
use crate::disk::Heard;
use crate::fault::Fault;
use crate::server::{Along, Said};
use crate::worker;

/// Short, so that leases are lost often.
const LEASE_MS: u64 = 5_000;

impl World {
    pub(super) fn poll(&mut self, worker: usize) -> Result<(), Violation> {
        let ms = self.rng.between(10, 300);
        self.after(ms, Happening::Poll(worker));
        let services = (0..4).map(|at| format!("s{at}")).collect();
        let Some(row) = self.disk.ready(services, self.now).into_iter().next() else { return Ok(()) };
        let claim = JobInput::Claim { worker: format!("worker{worker}"), lease_ms: LEASE_MS };
        let Some(change) = moved(&row, claim, self.now) else { return Ok(()) };
        let fence = change.job.fence;
        let memo = change.job.memo.is_some();
        let mut commit = Commit::new(self.disk.command(), self.now);
        commit.jobs.push(change);
        match self.disk.commit(commit, &mut self.faults, &mut self.rng) {
            Heard::Answer(Ok(_)) => {}
            // A claim that was not heard of is nobody's: its lease runs out.
            Heard::Answer(Err(_)) | Heard::Silence { .. } => return Ok(()),
        }
        let Some(call) = &row.origin.call else { return Ok(()) };
        let Some(plan) = self.plan_of(call.run) else { return Ok(()) };
        self.checker.called(&plan, call.run, &call.node, call.fence)?;
        if self.faults.strikes(Fault::WorkerDeath, 8, &mut self.rng) {
            return Ok(());
        }
        let deed = worker::perform(&call.node, call.fence, memo, &mut self.faults, &mut self.rng);
        let Some(outcome) = deed.outcome else { return Ok(()) };
        let job = row.job.id;
        let hangs = self.faults.strikes(Fault::WorkerHang, 6, &mut self.rng);
        if !hangs {
            self.after(LEASE_MS / 3, Happening::Extend { job, fence });
        }
        let ms = if hangs { deed.ms + 3 * LEASE_MS } else { deed.ms };
        let done = Happening::Finish { job, fence, outcome: Boxed(Box::new(outcome)) };
        self.after(ms, done.clone());
        if let Some(later) = deed.again_after_ms {
            self.after(ms + later, done);
        }
        Ok(())
    }

    pub(super) fn extend(&mut self, job: JobId, fence: u64) {
        let Some(row) = self.disk.job(job) else { return };
        let Some(change) = moved(&row, JobInput::Extend { fence, lease_ms: LEASE_MS }, self.now) else {
            return;
        };
        let mut commit = Commit::new(self.disk.command(), self.now);
        commit.jobs.push(change);
        self.disk.commit(commit, &mut self.faults, &mut self.rng);
        self.after(LEASE_MS / 3, Happening::Extend { job, fence });
    }

    /// A worker's answer ends its job and the attempt of the node in one commit.
    pub(super) fn finish(&mut self, job: JobId, fence: u64, outcome: Outcome) -> Result<(), Violation> {
        let Some(row) = self.disk.job(job) else { return Ok(()) };
        let finish = JobInput::Finish { fence, outcome: recorded(&outcome) };
        let Some(change) = moved(&row, finish, self.now) else { return Ok(()) };
        let again = Happening::Finish { job, fence, outcome: Boxed(Box::new(outcome.clone())) };
        match self.tell_run(&row, change, outcome)? {
            Said::Nothing | Said::Outdated => self.after(500, again),
            Said::Taken | Said::Refused(_) | Said::Existing(_) => {}
        }
        Ok(())
    }

    /// Tells the run what became of the job that carries its call, in the commit that changes the job.
    pub(super) fn tell_run(
        &mut self,
        row: &JobRow,
        change: JobChange,
        outcome: Outcome,
    ) -> Result<Said, Violation> {
        let Some(call) = &row.origin.call else { return Ok(Said::Taken) };
        let Some(server) = self.any_server() else { return Ok(Said::Nothing) };
        let input = Input::CallEnded { node: call.node.clone(), fence: call.fence, outcome, worker: None };
        let along = Along { jobs: vec![change.clone()], ..Along::default() };
        let said = self.submit(server, call.run, &input, &along)?;
        if let Said::Refused(_) = said {
            // The run has gone on without it; the job ends alone.
            let mut commit = Commit::new(self.disk.command(), self.now);
            commit.jobs.push(change);
            self.disk.commit(commit, &mut self.faults, &mut self.rng);
        }
        Ok(said)
    }

    /// A job whose time has come: its lease, its limit or the grace of its cancel is over.
    pub(super) fn reap(&mut self, server: usize, job: JobId) -> Result<(), Violation> {
        let Some(row) = self.disk.job(job) else { return Ok(()) };
        if row.origin.call.is_none() {
            return self.reap_plain(server, job);
        }
        let Some(input) = row.job.overdue(self.now) else { return Ok(()) };
        let outcome = match &input {
            JobInput::LeaseExpired { .. } => Outcome::WorkerLost,
            JobInput::AttemptTimeout => {
                Outcome::Failed(CallFault::new(FaultKind::Timeout, "the attempt took too long"))
            }
            _ => Outcome::Canceled,
        };
        let Some(change) = moved(&row, input, self.now) else { return Ok(()) };
        self.tell_run(&row, change, outcome).map(|_| ())
    }
}

/// The job after an input; `None` when it is refused or no news.
pub(super) fn moved(row: &JobRow, input: JobInput, now: Timestamp) -> Option<JobChange> {
    let events = row.job.decide(input, now).ok().filter(|events| !events.is_empty())?;
    let mut job = row.job.clone();
    for event in &events {
        job.apply(event, now);
    }
    Some(JobChange { expected_rev: row.rev, job, origin: row.origin.clone() })
}

/// The outcome as the job keeps it. The run alone decides about trying again or asking again, so the job is over.
fn recorded(outcome: &Outcome) -> JobOutcome {
    match outcome {
        Outcome::Done(value) => JobOutcome::Done { result: (**value).clone() },
        Outcome::Suspended { memo, .. } => JobOutcome::Done { result: memo.clone() },
        Outcome::Failed(fault) => {
            JobOutcome::Failed { fault: fault.clone().permanent(), retry_after_ms: None }
        }
        Outcome::Canceled | Outcome::WorkerLost | Outcome::ServerLost => {
            let fault = CallFault::new(FaultKind::Canceled, "cancelled").permanent();
            JobOutcome::Failed { fault, retry_after_ms: None }
        }
    }
}

/// Every third job is paid for, at a price of its own; the worker says what it took.
pub(super) fn payment(n: u128) -> Option<(String, Price)> {
    let unit_price = i64::try_from(n % 7).unwrap_or_default();
    let actual_units = Some(json!("$result.fence"));
    let price = Price { unit_price, min_unit: 1, units: json!(2), actual_units };
    n.is_multiple_of(3).then(|| (format!("account{}", n % 2), price))
}
