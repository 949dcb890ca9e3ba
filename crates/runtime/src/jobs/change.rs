//! Commits of job changes. Every other module of jobs writes through here, so the dispatcher, Redis and the metrics
//! learn of each durable change.

use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::id::{CommandId, JobId};
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::job::{JobInput, JobRefusal};
use windlass_engine::money::Amount;
use windlass_engine::project::Project;
use windlass_engine::raw_json::RawJson;
use windlass_engine::time::Timestamp;
use windlass_store::StoreError;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::JobRow;
use windlass_store::projection::job_postings;

use super::written;
use crate::calls::log::{AttemptLog, Log};
use crate::jobs::Jobs;
use crate::part::RuntimePart;
use crate::runs::{ExtraWrites, SubmitOptions};
use crate::{RuntimeError, SubmitError};

/// The job after an input; `None` = the input is a no-op.
pub(super) fn moved(row: &JobRow, input: JobInput, now: Timestamp) -> Result<Option<JobChange>, JobRefusal> {
    let events = row.job.decide(input, now)?;
    if events.is_empty() {
        return Ok(None);
    }
    let mut job = row.job.clone();
    events.iter().for_each(|event| job.apply(event, now));
    Ok(Some(JobChange { expected_rev: row.rev, job, origin: row.origin.clone() }))
}

/// The changes with their postings, as one commit.
fn commit_of(
    project: &Project,
    command: CommandId,
    jobs: Vec<JobChange>,
    is_hasty: bool,
    now: Timestamp,
) -> Commit {
    Commit { postings: job_postings(&jobs), jobs, is_hasty, ..Commit::new(project, command, now) }
}

/// Accounts that something comes back to.
fn credited(commit: &Commit) -> Vec<String> {
    let credits = commit.postings.iter().filter(|posting| posting.movement.amount > Amount::ZERO);
    credits.map(|posting| posting.account.clone()).collect()
}

/// A new command id.
pub(super) fn new_command() -> CommandId {
    CommandId::new(Uuid::now_v7())
}

/// The result of writing the end of a job.
pub(super) enum EndOutcome {
    Yes,
    /// The run that it is about does not want it any more; the job has ended alone.
    Unwanted,
    /// The job moved on meanwhile: read it and decide again.
    Outdated,
}

impl Jobs {
    /// Writes the changes in one commit, or, if that is refused, each in its own, so a rejected change does not affect
    /// the others. Returns one answer per change, in order.
    pub(super) async fn commit_jobs(&self, changes: Vec<JobChange>) -> Vec<Result<(), StoreError>> {
        self.commit_each(changes, false).await
    }

    /// The same for claims, which do not wait for row locks: a job that is locked just now is probably claimed.
    pub(super) async fn commit_claims(&self, changes: Vec<JobChange>) -> Vec<Result<(), StoreError>> {
        self.commit_each(changes, true).await
    }

    async fn commit_each(&self, changes: Vec<JobChange>, is_hasty: bool) -> Vec<Result<(), StoreError>> {
        if changes.is_empty() {
            return Vec::new();
        }
        let n = changes.len();
        match self.commit_all(vec![changes.clone()], is_hasty).await.pop().unwrap_or(Ok(())) {
            Ok(()) => {
                self.apply_changes(changes);
                std::iter::repeat_with(|| Ok(())).take(n).collect()
            }
            // One of them, or its page, is at fault.
            Err(
                StoreError::Conflict { .. }
                | StoreError::Refused(_)
                | StoreError::Damaged(_)
                | StoreError::Corrupt(_),
            ) if n > 1 => {
                let alone = changes.iter().map(|one| vec![one.clone()]).collect();
                let answers = self.commit_all(alone, is_hasty).await;
                let done = changes.into_iter().zip(&answers).filter(|(_, answer)| answer.is_ok());
                let done: Vec<JobChange> = done.map(|(change, _)| change).collect();
                self.apply_changes(done);
                answers
            }
            Err(error) => (0..n).map(|_| Err(error.clone())).collect(),
        }
    }

    /// These changes are durable.
    pub(super) fn apply_changes(&self, changes: Vec<JobChange>) {
        self.schedules().on_jobs_changed(&changes);
        self.relay().relay_jobs(&changes);
        let now = self.clock().now();
        self.stats().record_jobs(&changes, now);
        self.stats().record_calls(&changes, now);
        self.tell_watchers(&changes);
        self.state().offer_rows(changes.into_iter().map(written));
    }

    /// Writes the changes together or not at all, as this command. The caller updates the dispatcher.
    pub(super) async fn commit_once(
        &self,
        command: CommandId,
        changes: Vec<JobChange>,
    ) -> Result<(), StoreError> {
        self.commit_parts(vec![(command, changes)], false).await.pop().unwrap_or(Ok(()))
    }

    /// Writes these commits in one transaction.
    async fn commit_all(&self, parts: Vec<Vec<JobChange>>, is_hasty: bool) -> Vec<Result<(), StoreError>> {
        let parts = parts.into_iter().map(|jobs| (new_command(), jobs)).collect();
        self.commit_parts(parts, is_hasty).await
    }

    /// The same, each as its command. An unknown outcome is looked up, never guessed.
    async fn commit_parts(
        &self,
        parts: Vec<(CommandId, Vec<JobChange>)>,
        is_hasty: bool,
    ) -> Vec<Result<(), StoreError>> {
        let now = self.clock().now();
        let commits: Vec<Commit> = parts
            .into_iter()
            .map(|(command, jobs)| commit_of(self.project(), command, jobs, is_hasty, now))
            .collect();
        let credits: Vec<Vec<String>> = commits.iter().map(credited).collect();
        let commands: Vec<CommandId> = commits.iter().map(|commit| commit.command).collect();
        let mut answers = Vec::with_capacity(commands.len());
        let written = commands.into_iter().zip(self.store().commit(commits).await);
        for ((command, answer), credits) in written.zip(credits) {
            let answer = match answer {
                Ok(_) => Ok(()),
                Err(error @ StoreError::Unavailable(_)) => {
                    match self.store().command(self.project(), command).await {
                        Ok(Some(_)) => Ok(()),
                        Ok(None) | Err(_) => Err(error),
                    }
                }
                Err(
                    error @ (StoreError::Conflict { .. }
                    | StoreError::Refused(_)
                    | StoreError::Corrupt(_)
                    | StoreError::Damaged(_)),
                ) => Err(error),
            };
            if answer.is_ok() {
                credits.iter().for_each(|account| self.money().on_credit(account));
            }
            answers.push(answer);
        }
        answers
    }

    /// Writes the end of a job; one that carries a call of a run tells the run in the same commit.
    pub(super) async fn end_job(
        &self,
        row: &JobRow,
        change: JobChange,
        outcome: CallOutcome<RawJson>,
        worker: Option<String>,
        log: Log,
    ) -> Result<EndOutcome, RuntimeError> {
        let Some(call) = &row.origin.call else {
            return self.end_alone(change).await;
        };
        let outcome = outcome.map_result(|result| Arc::new(result.value()));
        let log = Some(AttemptLog { node: call.node.clone(), fence: call.fence, log });
        let input = Input::CallEnded { node: call.node.clone(), fence: call.fence, outcome, worker };
        let extra = ExtraWrites { jobs: vec![change.clone()], log, ..ExtraWrites::default() };
        match self.runs().submit_with(call.run, input, SubmitOptions::internal(extra)).await {
            Ok(_) => Ok(EndOutcome::Yes),
            Err(SubmitError::Outdated) => Ok(EndOutcome::Outdated),
            // The run has gone on without it, or is no longer there.
            Err(SubmitError::Refused(_) | SubmitError::UnknownRun(_)) => {
                Ok(match self.end_alone(change).await? {
                    EndOutcome::Yes | EndOutcome::Unwanted => EndOutcome::Unwanted,
                    EndOutcome::Outdated => EndOutcome::Outdated,
                })
            }
            Err(SubmitError::Runtime(error)) => Err(error),
        }
    }

    async fn end_alone(&self, change: JobChange) -> Result<EndOutcome, RuntimeError> {
        match self.commit_jobs(vec![change]).await.pop().unwrap_or(Ok(())) {
            Ok(()) => Ok(EndOutcome::Yes),
            Err(StoreError::Conflict { .. }) => Ok(EndOutcome::Outdated),
            Err(error) => Err(error.into()),
        }
    }

    /// A job as it is stored now; updates the dispatcher.
    pub(super) async fn reload(&self, id: JobId) -> Result<Option<Arc<JobRow>>, StoreError> {
        let row = self.store().job(self.project(), id).await?;
        match &row {
            Some(row) => self.state().offer_rows([row.clone()]),
            None => self.state().dispatch.forget(id),
        }
        Ok(row.map(Arc::new))
    }
}
