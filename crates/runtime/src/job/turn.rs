//! Claims of jobs whose queues have limits, where several servers hand them out.
//!
//! Each server knows who has which jobs as of some turn at the queue, and a claim is written only as the very next turn:
//! of two servers that both see one free place, one has the turn, and the other asks again who has what. So limits hold
//! whoever hands out, and nobody but those who use limits pays for it.

use windlass_engine::time::Timestamp;
use windlass_queue::Turn;
use windlass_store::StoreError;
use windlass_store::commit::{Commit, JobChange, Turn as Taken};
use windlass_store::error::Subject;
use windlass_store::queue::Spent;

use super::change::new_command;
use crate::Runtime;
use crate::error::same;

impl Runtime {
    /// Writes claims, those of each queue that is shared as one turn; answers for each in its place.
    pub(super) async fn commit_turns(
        &self,
        changes: Vec<JobChange>,
        turns: &[Turn],
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
        let (own_answers, ()) = tokio::join!(self.commit_jobs(own), self.save_spent(own_spent, now));
        for (at, answer) in places.into_iter().zip(own_answers) {
            answers[at] = answer;
        }
        for turn in turns {
            let part = shared.iter().filter(|(_, change)| change.job.spec.queue == turn.queue);
            let (places, part): (Vec<usize>, Vec<JobChange>) = part.cloned().unzip();
            let spent = shared_spent.iter().filter(|spent| spent.queue == turn.queue).cloned().collect();
            if let Err(error) = self.commit_turn(part, turn, spent, now).await {
                places.into_iter().for_each(|at| answers[at] = Err(same(&error)));
            }
        }
        answers
    }

    async fn commit_turn(
        &self,
        changes: Vec<JobChange>,
        turn: &Turn,
        spent: Vec<Spent>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        let _alone = self.jobs().turnstiles.pass(&turn.queue).await;
        let dispatch = &self.jobs().dispatch;
        let what = || Subject::Queue(turn.queue.clone());
        let Some(expected) = dispatch.next_turn(turn) else {
            return Err(StoreError::Conflict { what: what(), expected: 0, found: 0 });
        };
        let turns = vec![Taken { queue: turn.queue.clone(), expected, spent }];
        let commit = Commit { jobs: changes.clone(), turns, ..Commit::new(new_command(), now) };
        let written = self.commit_looked_up(commit).await;
        match &written {
            Ok(()) => {
                dispatch.had_turn(turn);
                self.heard_of_changes(changes);
            }
            // One of the jobs is not there to be claimed; the turn is still to be had.
            Err(StoreError::Conflict { what: Subject::Job(_), .. }) => {}
            Err(_) => dispatch.recount(&turn.queue),
        }
        written
    }
}
