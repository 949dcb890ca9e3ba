//! Bounds on open runs: of one flow, and of the project.
//!
//! The counts are estimates: counted in the store now and then, and kept up to date by the commits of this server in
//! between. Starts beyond a bound are refused; child runs wait in the store until a run ends.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use windlass_engine::id::{FlowId, RunId};
use windlass_engine::limits::DEPTH;
use windlass_store::StoreError;
use windlass_store::run::RunGroup;

use crate::RuntimeError;
use crate::part::{RuntimePart, part};
use crate::runs::RunsState;

/// The part of a bound that each level of a tree leaves to the levels below it.
const LEVEL_SHARE: usize = 512;
/// How long a count holds at least; a count of many runs holds longer, because it costs more.
const COUNT_AGE_MIN: Duration = Duration::from_secs(5);
const COUNT_AGE_PER_RUN: Duration = Duration::from_micros(50);
/// The same for a count that left no room.
const FULL_AGE_MIN: Duration = Duration::from_millis(100);
const FULL_AGE_PER_RUN: Duration = Duration::from_micros(10);
/// Flows whose runs are counted; the counts of the others are forgotten.
const GROUPS_MAX: usize = 10_000;
/// How long a refused caller should wait.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// How many open runs a new run at this depth may find. Deeper runs may find more, so that runs that wait for child
/// runs never take all the room of those.
pub(super) fn room_at(max: usize, depth: u32) -> usize {
    // One level more than runs can have: its runs are refused when they start.
    let levels_below = (DEPTH + 1).saturating_sub(usize::try_from(depth).unwrap_or(usize::MAX));
    max.saturating_sub((max / LEVEL_SHARE).max(1).saturating_mul(levels_below))
}

/// Open runs by flow and together.
#[derive(Default)]
pub(crate) struct OpenRuns {
    groups: Mutex<HashMap<RunGroup, OpenGroup>>,
    /// One task counts at a time.
    counting: tokio::sync::Mutex<()>,
    /// Trees that wait for room in a group.
    n_blocked: AtomicUsize,
}

struct OpenGroup {
    n_open: usize,
    /// Absent until it is counted.
    counted_at: Option<Instant>,
    /// Trees with a child run that found no room, by age, and the room that it would need.
    blocked: BTreeMap<RunId, usize>,
}

/// A bound that leaves no room.
pub(super) struct FullGroup {
    pub(super) group: RunGroup,
    pub(super) max: usize,
}

/// Why no further run can be open.
pub(super) enum NoRoom {
    Full(FullGroup),
    Store(StoreError),
}

impl From<StoreError> for NoRoom {
    fn from(error: StoreError) -> Self {
        NoRoom::Store(error)
    }
}

impl From<NoRoom> for RuntimeError {
    fn from(reason: NoRoom) -> Self {
        match reason {
            NoRoom::Store(error) => error.into(),
            NoRoom::Full(FullGroup { group, max }) => {
                let (of, setting) = match group {
                    RunGroup::OpenOfFlow(flow) => (flow.to_string(), "flow_open_runs_max"),
                    RunGroup::Open | RunGroup::Below(_) | RunGroup::OpenBelow(_) => {
                        ("the project".to_owned(), "open_runs_max")
                    }
                };
                RuntimeError::OpenRunsFull { of, max, setting, retry_after: RETRY_AFTER }
            }
        }
    }
}

impl OpenGroup {
    /// Whether there is room; `None` = it has to be counted again.
    fn has_room(&self, room: usize) -> Option<bool> {
        let (is_full, n) = (self.n_open >= room, u32::try_from(self.n_open).unwrap_or(u32::MAX));
        let (least, each) =
            if is_full { (FULL_AGE_MIN, FULL_AGE_PER_RUN) } else { (COUNT_AGE_MIN, COUNT_AGE_PER_RUN) };
        let age_max = least.saturating_add(each.saturating_mul(n));
        let is_old = self.counted_at.is_none_or(|at| at.elapsed() >= age_max);
        (!is_old).then_some(!is_full)
    }

    /// Takes the oldest tree that waits and may find room now.
    fn take_with_room(&mut self) -> Option<RunId> {
        let may_go = |room: usize| self.has_room(room) != Some(false);
        let root = self.blocked.iter().find(|(_, room)| may_go(**room)).map(|(root, _)| *root)?;
        self.blocked.remove(&root);
        Some(root)
    }
}

impl OpenRuns {
    fn groups(&self) -> MutexGuard<'_, HashMap<RunGroup, OpenGroup>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is room in a group; `None` = it has to be counted.
    pub(super) fn has_room(&self, group: RunGroup, room: usize) -> Option<bool> {
        self.groups().get(&group).and_then(|counted| counted.has_room(room))
    }

    fn counted(&self, group: RunGroup, n_open: usize) {
        let mut groups = self.groups();
        if groups.len() >= GROUPS_MAX {
            groups.retain(|_, counted| !counted.blocked.is_empty());
        }
        let blocked = groups.remove(&group).map(|before| before.blocked).unwrap_or_default();
        groups.insert(group, OpenGroup { n_open, counted_at: Some(Instant::now()), blocked });
    }

    fn opened(&self, flow: FlowId) {
        let mut groups = self.groups();
        for group in [RunGroup::OpenOfFlow(flow), RunGroup::Open] {
            if let Some(counted) = groups.get_mut(&group) {
                counted.n_open += 1;
            }
        }
    }

    /// A run of the flow has ended, or was not started after all; returns a tree of each group that can go on.
    pub(super) fn closed(&self, flow: FlowId) -> Vec<(RunGroup, RunId)> {
        let mut groups = self.groups();
        for group in [RunGroup::OpenOfFlow(flow), RunGroup::Open] {
            if let Some(counted) = groups.get_mut(&group) {
                counted.n_open = counted.n_open.saturating_sub(1);
            }
        }
        if self.n_blocked.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let both = [RunGroup::OpenOfFlow(flow), RunGroup::Open];
        // The count is an estimate: if it leaves no room, the oldest tree tries.
        let take = |counted: &mut OpenGroup| {
            counted.take_with_room().or_else(|| counted.blocked.pop_first().map(|(root, _)| root))
        };
        let woken = both.into_iter().filter_map(|group| Some((group, take(groups.get_mut(&group)?)?)));
        let woken: Vec<(RunGroup, RunId)> = woken.collect();
        self.n_blocked.fetch_sub(woken.len(), Ordering::Relaxed);
        woken
    }

    /// The next tree that can go on, because the one before it left the room of the group unused.
    pub(super) fn take_blocked(&self, group: RunGroup) -> Option<RunId> {
        let woken = self.groups().get_mut(&group)?.take_with_room()?;
        self.n_blocked.fetch_sub(1, Ordering::Relaxed);
        Some(woken)
    }

    /// A tree waits until the group has this much room.
    pub(super) fn block(&self, group: RunGroup, root: RunId, room: usize) {
        let mut groups = self.groups();
        // The count may be forgotten by now: it left no room.
        let full = || OpenGroup { n_open: room, counted_at: None, blocked: BTreeMap::new() };
        let blocked = &mut groups.entry(group).or_insert_with(full).blocked;
        let before = blocked.insert(root, room);
        if let Some(before) = before {
            // A deeper run of the tree finds more room.
            blocked.insert(root, room.max(before));
        } else {
            self.n_blocked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

part! {
    /// The bounds on open runs.
    pub(crate) RunLimits, runs: RunsState
}

impl RunLimits {
    /// Counts one more open run of a flow, unless the flow or the project has as many as it may.
    pub(super) async fn admit_open(&self, flow: FlowId, depth: u32) -> Result<(), NoRoom> {
        let settings = self.settings();
        let bounds = [
            (RunGroup::OpenOfFlow(flow), settings.flow_open_runs_max),
            (RunGroup::Open, settings.open_runs_max),
        ];
        for (group, max) in bounds {
            if !self.has_room(group, max, depth).await? {
                return Err(NoRoom::Full(FullGroup { group, max }));
            }
        }
        self.state().open_runs.opened(flow);
        Ok(())
    }

    async fn has_room(&self, group: RunGroup, max: usize, depth: u32) -> Result<bool, StoreError> {
        let (open_runs, room) = (&self.state().open_runs, room_at(max, depth));
        if let Some(has_room) = open_runs.has_room(group, room) {
            return Ok(has_room);
        }
        let _one = open_runs.counting.lock().await;
        if let Some(has_room) = open_runs.has_room(group, room) {
            return Ok(has_room);
        }
        let n_open = self.store().count_runs(self.project(), group, max).await?;
        open_runs.counted(group, n_open);
        Ok(n_open < room)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn deeper_runs_find_more_room() {
        assert_eq!(room_at(10_000, 33), 10_000);
        assert_eq!(room_at(10_000, 32), 10_000 - 19);
        assert_eq!(room_at(10_000, 0), 10_000 - 33 * 19);
        assert_eq!(room_at(64, 0), 31);
        assert!((0..33).all(|depth| room_at(64, depth) < room_at(64, depth + 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_count_is_taken_again_after_a_while() {
        let (open_runs, group) = (OpenRuns::default(), RunGroup::Open);
        assert_eq!(open_runs.has_room(group, 10), None);
        open_runs.counted(group, 9);
        assert_eq!(open_runs.has_room(group, 10), Some(true));
        open_runs.opened(FlowId::new(Uuid::nil()));
        assert_eq!(open_runs.has_room(group, 10), Some(false));
        tokio::time::advance(FULL_AGE_MIN * 2).await;
        assert_eq!(open_runs.has_room(group, 10), None, "a full group is counted again soon");
        assert_eq!(open_runs.has_room(group, 11), Some(true));
        tokio::time::advance(COUNT_AGE_MIN * 2).await;
        assert_eq!(open_runs.has_room(group, 11), None);
    }

    fn root(n: u128) -> RunId {
        RunId::new(Uuid::from_u128(n))
    }

    #[tokio::test(start_paused = true)]
    async fn each_end_lets_one_tree_go_on() {
        let (open_runs, flow) = (OpenRuns::default(), FlowId::new(Uuid::nil()));
        let group = RunGroup::OpenOfFlow(flow);
        open_runs.counted(group, 3);
        for n in [2, 1, 2] {
            open_runs.block(group, root(n), 3);
        }
        assert_eq!(open_runs.take_blocked(group), None, "there is no room");
        assert_eq!(open_runs.closed(flow), [(group, root(1))]);
        open_runs.opened(flow);
        assert_eq!(open_runs.take_blocked(group), None, "the tree used the room");
        assert_eq!(open_runs.closed(flow), [(group, root(2))]);
        assert_eq!(open_runs.closed(flow), []);
    }

    #[tokio::test(start_paused = true)]
    async fn room_that_a_tree_leaves_unused_is_for_the_next() {
        let (open_runs, flow) = (OpenRuns::default(), FlowId::new(Uuid::nil()));
        let group = RunGroup::OpenOfFlow(flow);
        open_runs.counted(group, 3);
        for (n, room) in [(1, 3), (2, 2), (3, 3), (4, 3)] {
            open_runs.block(group, root(n), room);
        }
        assert_eq!(open_runs.closed(flow), [(group, root(1))]);
        assert_eq!(open_runs.take_blocked(group), Some(root(3)), "the second needs more room than there is");
        open_runs.opened(flow);
        assert_eq!(open_runs.take_blocked(group), None);
        assert_eq!(open_runs.closed(flow), [(group, root(4))]);
        assert_eq!(open_runs.closed(flow), [(group, root(2))]);
    }

    #[test]
    fn a_tree_waits_also_if_the_count_was_forgotten() {
        let (open_runs, flow) = (OpenRuns::default(), FlowId::new(Uuid::nil()));
        let group = RunGroup::OpenOfFlow(flow);
        open_runs.block(group, root(1), 3);
        assert_eq!(open_runs.has_room(group, 3), None, "it has to be counted");
        open_runs.counted(RunGroup::Open, 0);
        assert_eq!(open_runs.closed(flow), [(group, root(1))]);
    }
}
