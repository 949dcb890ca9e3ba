//! Deletion of runs, jobs and commands that ended long ago.

use std::collections::BTreeSet;

use windlass_engine::counter::Seq;
use windlass_engine::id::{JobId, RunId};
use windlass_engine::time::Timestamp;

use super::state::{MemoryState, ProjectTables};
use crate::error::StoreError;
use crate::outbox::{MessageId, Party};
use crate::schedule::Started;
use crate::store::Retained;

impl MemoryState {
    pub(super) fn retain(&mut self, before: Timestamp, limit: usize) -> Result<Retained, StoreError> {
        let mut retained = Retained::default();
        for tables in self.projects.values_mut() {
            let Retained { n_runs, n_jobs, n_commands } = tables.retain(before, limit);
            retained.n_runs += n_runs;
            retained.n_jobs += n_jobs;
            retained.n_commands += n_commands;
        }
        Ok(retained)
    }
}

impl ProjectTables {
    fn retain(&mut self, before: Timestamp, limit: usize) -> Retained {
        let ended = |id: &RunId| self.runs[id].row.projection.ended_at.filter(|at| *at < before);
        // A run stays until its messages are delivered: a child that is yet to be created refers to its parameters.
        let senders: BTreeSet<&Party> = self.undelivered.iter().map(|(_, message)| &message.sender).collect();
        let is_done = |id: &&RunId| !senders.contains(&Party::Run(**id));
        let runs = self.runs.keys().filter(is_done);
        let mut runs: Vec<_> = runs.filter_map(|id| Some((ended(id)?, *id))).collect();
        runs.sort();
        runs.truncate(limit);
        let mut n_jobs = 0;
        for (_, id) in &runs {
            n_jobs += self.forget_run(*id);
        }
        let is_old = |job: &windlass_engine::job::Job| {
            job.spec.run.is_none()
                && !job.is_open()
                && !job.is_dead_letter()
                && job.updated_at < before
                && !job.holds_key(before)
        };
        let jobs = self.jobs.values().filter(|row| is_old(&row.job));
        let mut jobs: Vec<_> = jobs.map(|row| (row.job.updated_at, row.id())).collect();
        jobs.sort();
        jobs.truncate(limit);
        for (_, id) in &jobs {
            self.forget_job(*id);
        }
        // A command of a run that is kept is kept with it: its journal still names it.
        let is_old = |run: Option<(RunId, Seq)>| run.is_none_or(|(run, _)| !self.runs.contains_key(&run));
        let commands = self.commands.values().filter(|c| c.at < before && is_old(c.run));
        let commands: Vec<_> = commands.map(|committed| committed.command).take(limit).collect();
        for command in &commands {
            self.commands.remove(command);
        }
        let is_old = |id: &MessageId, at: Timestamp| {
            matches!(id.sender, Party::Account(_))
                && at < before
                && !self.undelivered.contains(&(at, id.clone()))
        };
        let messages = self.messages.iter().filter(|(id, message)| is_old(id, message.at));
        let messages: Vec<MessageId> = messages.map(|(id, _)| id.clone()).take(limit).collect();
        for message in &messages {
            self.messages.remove(message);
        }
        Retained { n_runs: runs.len(), n_jobs: n_jobs + jobs.len(), n_commands: commands.len() }
    }

    /// Deletes a run with everything that belongs to it, and says how many jobs that were.
    fn forget_run(&mut self, id: RunId) -> usize {
        let Some(stored) = self.runs.remove(&id) else { return 0 };
        if let Some(request) = &stored.row.origin.request {
            self.requests.remove(&request.id);
        }
        let jobs: Vec<JobId> = self
            .jobs
            .values()
            .filter(|row| row.job.spec.run == Some(id))
            .map(crate::job::JobRow::id)
            .collect();
        for job in &jobs {
            self.forget_job(*job);
        }
        self.messages.retain(|message, _| message.sender != Party::Run(id));
        self.logs.retain(|(run, _, _), _| *run != id);
        self.blobs.forget(id);
        self.firings.retain(|_, started| *started != Started::Run(id));
        jobs.len()
    }

    fn forget_job(&mut self, id: JobId) {
        let Some(row) = self.jobs.remove(&id) else { return };
        self.open_jobs.remove(&id);
        self.firings.retain(|_, started| *started != Started::Job(id));
        self.attempts.retain(|(job, _), _| *job != id);
        let key = (row.job.spec.queue.clone(), row.job.spec.dedup_key.clone());
        if self.keys.get(&key) == Some(&id) {
            self.keys.remove(&key);
        }
    }
}
