//! Ready jobs that other servers get hints of.
//!
//! A worker that has just claimed a job here will probably claim the next one of its sort too, and other servers would ask for
//! it in vain. So a hint is sent only if the job is still there after a while.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, State as JobState};

use crate::hint::LEFT_MS;
use crate::job::due_at;

/// A worker that has claimed within this time is likely to claim again.
const HERE: Duration = Duration::from_millis(500);
/// How long no hint names a job that a worker here is likely to claim.
const LEFT: Duration = Duration::from_millis(LEFT_MS);
/// Between two looks for such jobs.
const LOOK: Duration = Duration::from_millis(50);
/// Jobs without a hint at most; when there are more, hints for all of them are sent at once.
const UNTOLD_MAX: usize = 20_000;
/// Number of sorts of jobs above which sorts without recent claims are forgotten.
const SORTS_MAX: usize = 1_024;

/// Queue and service.
type Sort = (String, String);

#[derive(Debug, Default)]
pub(super) struct JobHints {
    state: Mutex<UnclaimedJobs>,
    is_any: Notify,
}

#[derive(Debug, Default)]
struct UnclaimedJobs {
    /// When a job of each sort was last claimed here.
    claimed: HashMap<Sort, Instant>,
    /// Ready jobs that the others were not told of, with their queues.
    untold: HashMap<JobId, String>,
    /// The same in the order in which they came; some are claimed by now.
    order: VecDeque<(Instant, JobId)>,
}

impl UnclaimedJobs {
    fn is_claimed_here(&self, sort: &Sort, now: Instant) -> bool {
        self.claimed.get(sort).is_some_and(|at| now.duration_since(*at) < HERE)
    }

    fn note_claim(&mut self, sort: Sort, now: Instant) {
        if self.claimed.len() >= SORTS_MAX && !self.claimed.contains_key(&sort) {
            self.claimed.retain(|_, at| now.duration_since(*at) < HERE);
        }
        self.claimed.insert(sort, now);
    }

    /// Jobs that have waited long enough.
    fn late(&mut self, now: Instant) -> BTreeMap<JobId, String> {
        let n = self.order.iter().take_while(|(since, _)| now.duration_since(*since) >= LEFT).count();
        let late = self.order.drain(..n).filter_map(|(_, id)| Some((id, self.untold.remove(&id)?)));
        late.collect()
    }
}

impl JobHints {
    /// These jobs were written; the queues that the others are to be told of at once.
    pub(super) fn written<'j>(&self, jobs: impl Iterator<Item = &'j Job>) -> BTreeSet<String> {
        let (mut queues, now) = (BTreeSet::new(), Instant::now());
        let mut state = self.lock();
        let was_empty = state.order.is_empty();
        for job in jobs {
            let sort = || (job.spec.queue.clone(), job.spec.name.clone());
            if due_at(job).is_none() {
                state.untold.remove(&job.id);
                if matches!(job.state, JobState::Running { .. }) {
                    state.note_claim(sort(), now);
                }
            } else if state.order.len() < UNTOLD_MAX && state.is_claimed_here(&sort(), now) {
                state.untold.insert(job.id, job.spec.queue.clone());
                state.order.push_back((now, job.id));
            } else if !queues.contains(&job.spec.queue) {
                queues.insert(job.spec.queue.clone());
            }
        }
        if was_empty && !state.order.is_empty() {
            self.is_any.notify_one();
        }
        queues
    }

    /// Waits for jobs that no worker here has claimed, with their queues. Another server may have.
    pub(super) async fn late(&self) -> BTreeMap<JobId, String> {
        loop {
            let (late, is_over) = {
                let mut state = self.lock();
                (state.late(Instant::now()), state.order.is_empty())
            };
            if !late.is_empty() {
                return late;
            }
            if is_over {
                self.is_any.notified().await;
            }
            // Jobs that arrive meanwhile share the hint.
            tokio::time::sleep(LOOK).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, UnclaimedJobs> {
        // This is a guess: a panic elsewhere breaks nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use windlass_engine::job::{JobInput, JobSpec};
    use windlass_engine::time::Timestamp;

    use super::*;

    fn job(n: u128, queue: &str) -> Job {
        Job::create(JobId::new(Uuid::from_u128(n)), JobSpec::new("s", queue), Timestamp(0)).unwrap().0
    }

    fn claimed(job: &Job) -> Job {
        let mut job = job.clone();
        let claim = JobInput::Claim { worker: "w".to_owned(), lease_ms: 1_000 };
        for event in job.decide(claim, Timestamp(0)).unwrap() {
            job.apply(&event, Timestamp(0));
        }
        job
    }

    fn names(queues: &[&str]) -> BTreeSet<String> {
        queues.iter().map(|queue| (*queue).to_owned()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn claims_of_this_server_are_announced_only_if_the_job_stays_ready() {
        let hints = JobHints::default();
        let (first, second, third) = (job(1, "q"), job(2, "q"), job(3, "other"));
        // No worker claims here: other servers may.
        assert_eq!(hints.written([&first].into_iter()), names(&["q"]));
        assert_eq!(hints.written([&claimed(&first)].into_iter()), names(&[]));
        // Workers claim here: hints name only jobs of another sort.
        assert_eq!(hints.written([&second, &third].into_iter()), names(&["other"]));
        assert_eq!(hints.written([&claimed(&second)].into_iter()), names(&[]));
        let fourth = job(4, "q");
        assert_eq!(hints.written([&fourth].into_iter()), names(&[]));
        assert_eq!(hints.late().await, [(fourth.id, "q".to_owned())].into());
        // The claiming worker has gone.
        tokio::time::advance(HERE).await;
        assert_eq!(hints.written([&job(5, "q")].into_iter()), names(&["q"]));
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_claimed_in_time_are_not_announced() {
        let hints = JobHints::default();
        let (first, second) = (job(1, "q"), job(2, "q"));
        hints.written([&claimed(&first)].into_iter());
        hints.written([&second].into_iter());
        hints.written([&claimed(&second)].into_iter());
        assert!(tokio::time::timeout(LEFT * 2, hints.late()).await.is_err());
    }
}
