//! The order of dispatch of a window: that of the store, with turns for the lower classes of runs.

use std::collections::{BTreeMap, VecDeque};

use windlass_engine::id::JobId;
use windlass_engine::share::{SHARE, Share};

/// A job that waits, in the order of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingJob {
    pub job: JobId,
    pub priority: i32,
    /// Whether a run created the job, so that it leaves turns to lower classes.
    pub is_run: bool,
}

/// Puts jobs into the order of dispatch. `window` has the priorities in the list that the result replaces: the turns
/// continue where they were.
pub fn dispatch_order(waiting: &[WaitingJob], window: impl IntoIterator<Item = i32>) -> Vec<JobId> {
    let mut share = share_after(&window.into_iter().take(SHARE as usize).collect::<Vec<_>>());
    let (mut classes, mut plain) = (BTreeMap::<i32, VecDeque<usize>>::new(), VecDeque::new());
    for (at, job) in waiting.iter().enumerate() {
        let list = if job.is_run { classes.entry(job.priority).or_default() } else { &mut plain };
        list.push_back(at);
    }
    let mut order = Vec::with_capacity(waiting.len());
    while let Some(top) = first(&classes, &plain) {
        let job = waiting[top];
        let mut given = top;
        if job.is_run && share.is_kept() {
            let below = |below: i32| classes.range(..below).rev().find_map(|(_, list)| list.front().copied());
            let lower = share.below(job.priority).into_iter().find_map(below);
            // A plain job before the one of the lower class takes the turn instead.
            given = lower.map_or(top, |lower| plain.front().map_or(lower, |plain| lower.min(*plain)));
        }
        if job.is_run && waiting[given].is_run {
            share.gave(job.priority, waiting[given].priority);
        } else if job.is_run {
            share.note_grant_by_other();
        }
        let list = if waiting[given].is_run {
            classes.entry(waiting[given].priority).or_default()
        } else {
            &mut plain
        };
        list.pop_front();
        order.push(waiting[given].job);
    }
    order
}

/// The first job in the order of the store.
fn first(classes: &BTreeMap<i32, VecDeque<usize>>, plain: &VecDeque<usize>) -> Option<usize> {
    let run = classes.values().filter_map(VecDeque::front).min();
    run.into_iter().chain(plain.front()).min().copied()
}

/// The state of the turns before the jobs with these priorities: the next lower class among them is the next.
fn share_after(next: &[i32]) -> Share<i32> {
    let mut share = Share::default();
    let Some(top) = next.iter().copied().max() else { return share };
    let Some(at) = next.iter().position(|priority| *priority < top) else { return share };
    share.gave(i32::MAX, next[at].saturating_add(1));
    for _ in at + 1..SHARE as usize {
        share.gave(top, top);
    }
    share
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    /// Jobs of runs of these classes, and plain jobs where `is_run` says so, in the order of the store.
    fn waiting(jobs: &[(i32, bool, usize)]) -> Vec<WaitingJob> {
        let mut all = Vec::new();
        for (priority, is_run, n) in jobs {
            for _ in 0..*n {
                let job = JobId::new(Uuid::from_u128(all.len() as u128));
                all.push(WaitingJob { job, priority: *priority, is_run: *is_run });
            }
        }
        all
    }

    fn ordered(jobs: &[(i32, bool, usize)], window: &[i32]) -> Vec<i32> {
        let waiting = waiting(jobs);
        let order = dispatch_order(&waiting, window.iter().copied());
        order.iter().map(|job| waiting[job.uuid().as_u128() as usize].priority).collect()
    }

    #[test]
    fn every_fifth_turn_is_that_of_a_lower_class_and_the_classes_take_them_in_turn() {
        let order = ordered(&[(2, true, 60), (0, true, 6), (-1, true, 1), (-2, true, 20)], &[]);
        let lower: Vec<(usize, i32)> =
            order.iter().copied().enumerate().filter(|(_, class)| *class != 2).take(6).collect();
        assert_eq!(lower, [(4, 0), (9, -1), (14, -2), (19, 0), (24, -2), (29, 0)]);
        assert_eq!(order.len(), 87);
    }

    #[test]
    fn no_plain_job_is_overtaken_and_none_gives_a_turn_away() {
        let order = ordered(&[(2, true, 20), (1, false, 2), (-2, true, 3)], &[]);
        assert_eq!(order[4], 1);
        assert_eq!(order[9], 1);
        assert_eq!(order[14], -2);
        assert_eq!(ordered(&[(2, false, 8), (-2, true, 3)], &[])[..8], [2; 8]);
    }

    #[test]
    fn the_turns_continue_where_the_list_was() {
        let jobs = [(2, true, 20), (0, true, 9), (-2, true, 9)];
        let order = ordered(&jobs, &[]);
        for n in 0..15 {
            let next = ordered(&jobs, &order[n..]);
            assert_eq!(next[..10], order[n..n + 10], "after {n}");
        }
    }
}
