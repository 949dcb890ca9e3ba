//! Claims from queues with limits on a shared store.
//!
//! Each server counts the running jobs of such a queue as of a numbered turn, and a claim commits only as the next
//! turn: of two servers that both see one free slot, one gets the turn, and the other counts again. So limits hold for
//! all servers together, and queues without limits do not pay for it.

use windlass_engine::time::Timestamp;
use windlass_queue::QueueTurn;
use windlass_store::StoreError;
use windlass_store::commit::{Commit, JobChange, QueueGuard};
use windlass_store::error::Subject;
use windlass_store::queue::Spent;

use super::grant::ClaimWriter;
use crate::jobs::change::new_command;
use crate::part::RuntimePart;

impl ClaimWriter {
    /// Writes claims, those of each queue that is shared as one turn; answers for each in its place.
    pub(super) async fn commit_turns(
        &self,
        changes: Vec<JobChange>,
        turns: &[QueueTurn],
        spent: Vec<Spent>,
        now: Timestamp,
    ) -> Vec<Result<(), StoreError>> {
        let mut answers: Vec<Result<(), StoreError>> = changes.iter().map(|_| Ok(())).collect();
        let is_shared = |queue: &str| turns.iter().any(|turn| turn.queue == queue);
        let (shared, own): (Vec<_>, Vec<_>) =
            changes.into_iter().enumerate().partition(|(_, change)| is_shared(&change.job.spec.queue));
        let (shared_spent, own_spent): (Vec<_>, Vec<_>) =
            spent.into_iter().partition(|spent| is_shared(&spent.queue));
        let (places, own): (Vec<usize>, Vec<JobChange>) = own.into_iter().unzip();
        let (own_answers, ()) = tokio::join!(self.jobs.commit_jobs(own), self.save_spent(own_spent, now));
        for (at, answer) in places.into_iter().zip(own_answers) {
            answers[at] = answer;
        }
        for turn in turns {
            let part = shared.iter().filter(|(_, change)| change.job.spec.queue == turn.queue);
            let (places, part): (Vec<usize>, Vec<JobChange>) = part.cloned().unzip();
            let spent = shared_spent.iter().filter(|spent| spent.queue == turn.queue).cloned().collect();
            if let Err(error) = self.commit_turn(part, turn, spent, now).await {
                places.into_iter().for_each(|at| answers[at] = Err(error.clone()));
            }
        }
        answers
    }

    async fn commit_turn(
        &self,
        changes: Vec<JobChange>,
        turn: &QueueTurn,
        spent: Vec<Spent>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        let _alone = self.state().queue_locks.lock(&turn.queue).await;
        let dispatch = &self.state().dispatch;
        let what = || Subject::Queue(turn.queue.clone());
        let Some(expected) = dispatch.next_turn(turn) else {
            return Err(StoreError::Conflict { what: what(), expected: 0, found: 0 });
        };
        let turns = vec![QueueGuard { queue: turn.queue.clone(), expected, spent }];
        let commit =
            Commit { jobs: changes.clone(), turns, ..Commit::new(self.project(), new_command(), now) };
        let written = self.ctx().commit_looked_up(commit).await;
        match &written {
            Ok(()) => {
                dispatch.had_turn(turn);
                self.jobs.apply_changes(changes);
            }
            // One of the jobs is not there to be claimed; the turn is still to be had.
            Err(StoreError::Conflict { what: Subject::Job(_), .. }) => {}
            Err(_) => dispatch.recount(&turn.queue),
        }
        written
    }
}
