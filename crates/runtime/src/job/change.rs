//! From what is asked of jobs to durable changes of them.

use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::id::{CommandId, JobId};
use windlass_engine::input::{Input, Outcome};
use windlass_engine::job::{JobInput, JobRefusal};
use windlass_engine::time::Timestamp;
use windlass_store::StoreError;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::JobRow;
use windlass_store::project::job_postings;

use super::written;
use crate::error::same;
use crate::log::{Log, Wrote};
use crate::run::Along;
use crate::{Runtime, RuntimeError, SubmitError};

/// The job after an input; `None` when it is no news.
pub(super) fn moved(row: &JobRow, input: JobInput, now: Timestamp) -> Result<Option<JobChange>, JobRefusal> {
    let events = row.job.decide(input, now)?;
    if events.is_empty() {
        return Ok(None);
    }
    let mut job = row.job.clone();
    events.iter().for_each(|event| job.apply(event, now));
    Ok(Some(JobChange { expected_rev: row.rev, job, origin: row.origin.clone() }))
}

/// The changes with what they cost or give back, as one commit.
fn commit_of(command: CommandId, jobs: Vec<JobChange>, is_hasty: bool, now: Timestamp) -> Commit {
    Commit { postings: job_postings(&jobs), jobs, is_hasty, ..Commit::new(command, now) }
}

/// Accounts that something comes back to.
fn credited(commit: &Commit) -> Vec<String> {
    let credits = commit.postings.iter().filter(|posting| posting.movement.amount > 0);
    credits.map(|posting| posting.account.clone()).collect()
}

/// A command that nobody has given before.
pub(super) fn new_command() -> CommandId {
    CommandId::new(Uuid::now_v7())
}

/// What became of a change that somebody waits for.
pub(super) enum Ended {
    Yes,
    /// The run that it is about does not want it any more; the job has ended alone.
    Unwanted,
    /// The job moved on meanwhile: read it and decide again.
    Outdated,
}

impl Runtime {
    /// Writes the changes together, or, when something forbids that, each for itself: what one meets does not spoil
    /// the others. Answers for each in its place.
    pub(super) async fn commit_jobs(&self, changes: Vec<JobChange>) -> Vec<Result<(), StoreError>> {
        self.commit_each(changes, false).await
    }

    /// The same for claims, which wait for nobody: what somebody else has just now is probably claimed.
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
                self.heard_of_changes(changes);
                std::iter::repeat_with(|| Ok(())).take(n).collect()
            }
            Err(StoreError::Conflict { .. } | StoreError::Refused(_)) if n > 1 => {
                let alone = changes.iter().map(|one| vec![one.clone()]).collect();
                let answers = self.commit_all(alone, is_hasty).await;
                let done = changes.into_iter().zip(&answers).filter(|(_, answer)| answer.is_ok());
                let done: Vec<JobChange> = done.map(|(change, _)| change).collect();
                self.heard_of_changes(done);
                answers
            }
            Err(error) => (0..n).map(|_| Err(same(&error))).collect(),
        }
    }

    /// These changes are durable.
    pub(super) fn heard_of_changes(&self, changes: Vec<JobChange>) {
        self.calendar().jobs_moved(&changes);
        self.relay_jobs(&changes);
        let now = self.clock().now();
        self.tallies().changed(&changes, now);
        self.stats().jobs_moved(&changes, now);
        self.jobs().heard(changes.into_iter().map(written));
    }

    /// Writes the changes together or not at all, as this command. Whoever calls this tells the index.
    pub(super) async fn commit_once(
        &self,
        command: CommandId,
        changes: Vec<JobChange>,
    ) -> Result<(), StoreError> {
        self.commit_parts(vec![(command, changes)], false).await.pop().unwrap_or(Ok(()))
    }

    /// Writes a commit. An unknown outcome is looked up, never guessed.
    pub(crate) async fn commit_looked_up(&self, commit: Commit) -> Result<(), StoreError> {
        let command = commit.command;
        match self.store().commit_one(commit).await {
            Ok(_) => Ok(()),
            Err(error @ StoreError::Unavailable(_)) => match self.store().command(command).await {
                Ok(Some(_)) => Ok(()),
                Ok(None) | Err(_) => Err(error),
            },
            Err(error) => Err(error),
        }
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
        let commits: Vec<Commit> =
            parts.into_iter().map(|(command, jobs)| commit_of(command, jobs, is_hasty, now)).collect();
        let credits: Vec<Vec<String>> = commits.iter().map(credited).collect();
        let commands: Vec<CommandId> = commits.iter().map(|commit| commit.command).collect();
        let mut answers = Vec::with_capacity(commands.len());
        let written = commands.into_iter().zip(self.store().commit(commits).await);
        for ((command, answer), credits) in written.zip(credits) {
            let answer = match answer {
                Ok(_) => Ok(()),
                Err(error @ StoreError::Unavailable(_)) => match self.store().command(command).await {
                    Ok(Some(_)) => Ok(()),
                    Ok(None) | Err(_) => Err(error),
                },
                Err(
                    error @ (StoreError::Conflict { .. } | StoreError::Refused(_) | StoreError::Corrupt(_)),
                ) => Err(error),
            };
            if answer.is_ok() {
                credits.iter().for_each(|account| self.credited(account));
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
        outcome: Outcome,
        worker: Option<String>,
        log: Log,
    ) -> Result<Ended, RuntimeError> {
        let Some(call) = &row.origin.call else {
            return self.end_alone(change).await;
        };
        let log = Some(Wrote { node: call.node.clone(), fence: call.fence, log });
        let input = Input::CallEnded { node: call.node.clone(), fence: call.fence, outcome, worker };
        let along = Along { jobs: vec![change.clone()], log, ..Along::default() };
        match self.submit_along(call.run, input, along).await {
            Ok(_) => Ok(Ended::Yes),
            Err(SubmitError::Outdated) => Ok(Ended::Outdated),
            // The run has gone on without it, or is no longer there.
            Err(SubmitError::Refused(_) | SubmitError::UnknownRun(_)) => {
                Ok(match self.end_alone(change).await? {
                    Ended::Yes | Ended::Unwanted => Ended::Unwanted,
                    Ended::Outdated => Ended::Outdated,
                })
            }
            Err(SubmitError::Runtime(error)) => Err(error),
        }
    }

    async fn end_alone(&self, change: JobChange) -> Result<Ended, RuntimeError> {
        match self.commit_jobs(vec![change]).await.pop().unwrap_or(Ok(())) {
            Ok(()) => Ok(Ended::Yes),
            Err(StoreError::Conflict { .. }) => Ok(Ended::Outdated),
            Err(error) => Err(error.into()),
        }
    }

    /// A job as it is stored now; what is kept of it is brought up to date.
    pub(super) async fn reload(&self, id: JobId) -> Result<Option<Arc<JobRow>>, StoreError> {
        let row = self.store().job(id).await?;
        match &row {
            Some(row) => self.jobs().heard([row.clone()]),
            None => self.jobs().dispatch.forget(id),
        }
        Ok(row.map(Arc::new))
    }
}
