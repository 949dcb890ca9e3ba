//! Trees of runs: a run without a parent is the root of the child runs that its calls lead to, at any depth.
//!
//! Below one root a bounded number of runs is open, and a bounded number exists. A child run without room waits as an
//! undelivered message in the store. When there is room, one task per tree reads the next page of them, the deepest
//! first, and hands them to the outbox. Deeper runs may use more of the bound (`room_at`), so that a tree never waits
//! for itself.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use windlass_engine::counter::Seq;
use windlass_engine::id::{FlowId, RunId};
use windlass_store::StoreError;
use windlass_store::outbox::{Child, Message, Note};
use windlass_store::run::{RunGroup, RunRef, RunStatus};

use crate::Settings;
use crate::part::RuntimePart;
use crate::runs::cached_run::CachedRun;
use crate::runs::open_runs::{FullGroup, room_at};
use crate::runs::outbox::{OutboxDelivery, RETRY_DELAY};

/// Waiting child runs of one tree that are read at once.
const PAGE: usize = 256;
/// Trees that are remembered; idle ones beyond are forgotten and counted again.
const TREES_MAX: usize = 100_000;

/// The bounds of a tree.
#[derive(Debug, Clone, Copy)]
struct TreeBounds {
    n_open: usize,
    n_runs: usize,
}

impl TreeBounds {
    fn of(settings: &Settings) -> Self {
        TreeBounds { n_open: settings.tree_open_runs_max, n_runs: settings.tree_runs_max }
    }
}

/// The trees that this server creates child runs in, by root.
#[derive(Default)]
pub(crate) struct Trees {
    trees: Mutex<HashMap<RunId, Tree>>,
}

/// The state of a tree, as far as this server knows it. The counts are those of the store, and the child runs admitted since.
#[derive(Default)]
struct Tree {
    is_counted: bool,
    n_open: usize,
    n_runs: usize,
    /// Child runs that were admitted and are being created.
    n_pending: usize,
    /// The root is being canceled: no child run is created any more.
    is_canceling: bool,
    /// As many runs exist as may: further ones are refused.
    is_spent: bool,
    /// Child runs wait in the store.
    has_waiting: bool,
    /// Child runs have waited: their creation may have been taken back meanwhile.
    has_waited: bool,
    /// Flows without room, and the depth at which a child run found none; the empty name stands for all flows.
    full_flows: BTreeMap<String, u32>,
    /// Groups with room for a child run of this tree. If it leaves the room unused, the next tree gets it.
    free_groups: HashSet<RunGroup>,
    is_feeding: bool,
    /// Something has changed since the feeding task looked.
    is_woken: bool,
}

impl Tree {
    /// Whether the next child run can be created now, by the counts.
    fn has_room(&self, bounds: TreeBounds, depth: u32) -> bool {
        self.is_counted
            && !self.is_canceling
            && self.n_runs < bounds.n_runs
            && self.n_open < room_at(bounds.n_open, depth)
    }

    fn admit(&mut self) {
        self.n_open += 1;
        self.n_runs += 1;
        self.n_pending += 1;
    }

    fn is_idle(&self) -> bool {
        !self.has_waiting && !self.is_feeding && self.n_pending == 0
    }

    fn is_full_for(&self, child: &Child) -> bool {
        let is_full =
            |flow: &str| self.full_flows.get(flow).is_some_and(|depth| child.parent.depth <= *depth);
        is_full("") || is_full(&child.flow)
    }

    /// Asks for another look; `true` = the caller has to start the feeding task.
    fn wake(&mut self) -> bool {
        self.is_woken = true;
        !std::mem::replace(&mut self.is_feeding, true)
    }
}

impl Trees {
    fn trees(&self) -> MutexGuard<'_, HashMap<RunId, Tree>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A root that was created just now has no child runs: its tree need not be counted.
    fn begin(&self, root: RunId) {
        let mut trees = self.trees();
        if trees.len() >= TREES_MAX {
            trees.retain(|_, tree| !tree.is_idle());
        }
        trees.entry(root).or_insert_with(|| Tree { is_counted: true, ..Tree::default() });
    }

    /// Admits a child run that was decided just now; `false` = it waits in the store.
    fn admit_new(&self, root: RunId, depth: u32, bounds: TreeBounds) -> bool {
        let mut trees = self.trees();
        let tree = trees.entry(root).or_default();
        let may_go = !tree.has_waiting && (tree.is_spent || tree.has_room(bounds, depth));
        if may_go {
            tree.admit();
        }
        may_go
    }

    /// Child runs of the tree wait in the store; `true` = the caller has to start the feeding task.
    /// Those of a tree that was not counted before have not waited for room.
    fn leave_waiting(&self, root: RunId, may_be_canceled: bool) -> bool {
        let mut trees = self.trees();
        let tree = trees.entry(root).or_default();
        tree.has_waiting = true;
        tree.has_waited |= may_be_canceled || tree.is_counted;
        tree.wake()
    }

    fn set_canceling(&self, root: RunId, is_canceling: bool) {
        if let Some(tree) = self.trees().get_mut(&root) {
            tree.is_canceling = is_canceling;
        }
    }

    /// The tree was counted in the store while so many child runs were being created; `n_runs` absent: still known.
    fn counted(
        &self,
        root: RunId,
        n_pending: usize,
        n_open: usize,
        n_runs: Option<usize>,
        bounds: TreeBounds,
    ) {
        let mut trees = self.trees();
        let tree = trees.entry(root).or_default();
        // A child run that was created meanwhile counts twice, until the tree is counted again.
        let n_pending = n_pending.max(tree.n_pending);
        (tree.is_counted, tree.n_open) = (true, n_open + n_pending);
        if let Some(n_runs) = n_runs {
            (tree.n_runs, tree.is_spent) = (n_runs + n_pending, n_runs >= bounds.n_runs);
        }
    }

    /// Asks for another look at a tree with waiting child runs; `true` = the caller has to start the feeding task.
    fn wake(&self, root: RunId) -> bool {
        self.trees().get_mut(&root).is_some_and(|tree| tree.has_waiting && tree.wake())
    }

    /// An admitted child run is created or not; returns how many others are being created.
    fn settle(&self, root: RunId, is_created: bool) -> usize {
        let mut trees = self.trees();
        let Some(tree) = trees.get_mut(&root) else { return 0 };
        tree.n_pending = tree.n_pending.saturating_sub(1);
        if !is_created {
            tree.n_open = tree.n_open.saturating_sub(1);
            tree.n_runs = tree.n_runs.saturating_sub(1);
        }
        tree.n_pending
    }

    /// Child runs that were admitted and are being created.
    fn n_pending(&self, root: RunId) -> usize {
        self.trees().get(&root).map_or(0, |tree| tree.n_pending)
    }

    /// The feeding task is done, unless something has changed: `true` = it looks again.
    fn goes_on(&self, root: RunId) -> bool {
        let mut trees = self.trees();
        let Some(tree) = trees.get_mut(&root) else { return false };
        tree.is_feeding = std::mem::take(&mut tree.is_woken);
        tree.is_feeding
    }
}

impl OutboxDelivery {
    fn trees(&self) -> &Trees {
        &self.inner().runs.trees
    }

    /// The commit of a run is durable: its tree learns that it began, is being canceled, or has ended.
    pub(super) fn follow_tree(&self, cached: &CachedRun, status: RunStatus, starts_children: bool) {
        let (run, parent) = (cached.run.id, cached.run.start.parent.as_ref());
        if parent.is_none() && starts_children && cached.len == Seq(1) {
            self.trees().begin(run);
        }
        if parent.is_none() && status == RunStatus::Canceling {
            self.trees().set_canceling(run, true);
        }
        if status.is_open() {
            return;
        }
        self.on_closed(cached.flow);
        match parent {
            Some(parent) => {
                if let Some(tree) = self.trees().trees().get_mut(&parent.root()) {
                    tree.n_open = tree.n_open.saturating_sub(1);
                }
                self.read_tree_soon(parent.root());
            }
            None => {
                let mut trees = self.trees().trees();
                if let Some(tree) = trees.get_mut(&run) {
                    tree.is_canceling = false;
                    if tree.is_idle() {
                        trees.remove(&run);
                    }
                }
                drop(trees);
                self.read_tree_soon(run);
            }
        }
    }

    /// A run of the flow has ended, or was not started after all: trees that wait for it go on.
    pub(super) fn on_closed(&self, flow: FlowId) {
        for (group, root) in self.inner().runs.open_runs.closed(flow) {
            if !self.free(group, root) {
                self.free_next(group);
            }
        }
    }

    /// Looks again at child runs that found no room in their flow or in the project; `false` = none wait any more.
    fn free(&self, group: RunGroup, root: RunId) -> bool {
        let has_to_start = {
            let mut trees = self.trees().trees();
            let Some(tree) = trees.get_mut(&root).filter(|tree| tree.has_waiting) else { return false };
            tree.full_flows.clear();
            tree.free_groups.insert(group);
            tree.wake()
        };
        if has_to_start {
            self.start_reading(root);
        }
        true
    }

    /// Lets the next tree go on that waits for room in the group, if there is room.
    fn free_next(&self, group: RunGroup) {
        while let Some(root) = self.inner().runs.open_runs.take_blocked(group) {
            if self.free(group, root) {
                return;
            }
        }
    }

    /// The tree has used the room in these groups, or has no use for it: the rest is for the next trees.
    fn leave_room(&self, root: RunId) {
        let groups = match self.trees().trees().get_mut(&root) {
            Some(tree) if !tree.free_groups.is_empty() => std::mem::take(&mut tree.free_groups),
            Some(_) | None => return,
        };
        groups.into_iter().for_each(|group| self.free_next(group));
    }

    /// Looks for waiting child runs of the tree that can be created, if there are any.
    pub(super) fn read_tree_soon(&self, root: RunId) {
        if self.trees().wake(root) {
            self.start_reading(root);
        }
    }

    fn start_reading(&self, root: RunId) {
        let delivery = self.clone();
        self.tasks().spawn(async move { delivery.feed(root).await });
    }

    /// Admits a child run that was decided just now; `false` = it waits in the store.
    pub(super) fn admit_child(&self, child: &Child) -> bool {
        let bounds = TreeBounds::of(self.settings());
        self.trees().admit_new(child.parent.root(), child.parent.depth, bounds)
    }

    /// Leaves child runs of this tree to the store, to be found there when their turn comes.
    pub(super) fn leave_waiting(&self, root: RunId, may_be_canceled: bool) {
        if self.trees().leave_waiting(root, may_be_canceled) {
            self.start_reading(root);
        }
    }

    /// A child run that was admitted is created, or is not to be created.
    pub(super) fn settle(&self, child: &Child, is_created: bool) {
        let n_pending = self.trees().settle(child.parent.root(), is_created);
        self.leave_room(child.parent.root());
        if n_pending <= PAGE / 2 {
            self.read_tree_soon(child.parent.root());
        }
    }

    /// A child run that was admitted stays in the store after all.
    pub(super) fn dismiss(&self, root: RunId) {
        self.trees().settle(root, false);
    }

    /// There is no room for the child run in its flow or in the project: it waits for the end of another run.
    pub(super) fn wait_for_room(&self, child: &Child, full: &FullGroup) {
        let root = child.parent.root();
        let flow = match full.group {
            RunGroup::OpenOfFlow(_) => child.flow.clone(),
            RunGroup::Open | RunGroup::Below(_) | RunGroup::OpenBelow(_) => String::new(),
        };
        if let Some(tree) = self.trees().trees().get_mut(&root) {
            (tree.has_waiting, tree.has_waited) = (true, true);
            let depth = tree.full_flows.entry(flow).or_default();
            *depth = child.parent.depth.max(*depth);
        }
        let (open_runs, room) = (&self.inner().runs.open_runs, room_at(full.max, child.parent.depth));
        open_runs.block(full.group, root, room);
        if open_runs.has_room(full.group, room) == Some(true) {
            // A run ended in between, and did not find the tree.
            self.free(full.group, root);
        }
    }

    /// The reason why no further child run is created below a root; `None` = more may be.
    pub(super) fn tree_refusal(&self, root: RunId) -> Option<String> {
        let is_spent = self.trees().trees().get(&root).is_some_and(|tree| tree.is_spent);
        is_spent.then(|| {
            let max = self.settings().tree_runs_max;
            format!(
                "{max} runs exist below {root}, as many as may: let the flow start fewer, or raise tree_runs_max"
            )
        })
    }

    /// Whether child runs of the tree have waited, so that their creation may have been taken back.
    pub(super) fn has_waited(&self, root: RunId) -> bool {
        self.trees().trees().get(&root).is_some_and(|tree| tree.has_waited)
    }

    /// Looks at all trees with waiting child runs: after a start, and for those of other servers.
    pub(super) async fn read_waiting_trees(&self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.store().waiting_trees(after.take(), PAGE).await?;
            for tree in page.iter().filter(|tree| tree.project == *self.project()) {
                if let Some(tree) = self.trees().trees().get_mut(&tree.root) {
                    tree.full_flows.clear();
                }
                self.leave_waiting(tree.root, true);
            }
            match page.into_iter().nth(PAGE - 1) {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }

    async fn feed(&self, root: RunId) {
        loop {
            if let Err(error) = self.read_tree_page(root).await {
                tracing::warn!(%root, %error, "child runs that wait could not be read");
                tokio::select! {
                    () = tokio::time::sleep(RETRY_DELAY) => {}
                    () = self.stopped() => return,
                }
                self.trees().wake(root);
            }
            if !self.trees().goes_on(root) {
                if self.trees().n_pending(root) == 0 {
                    self.leave_room(root);
                }
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Hands the next waiting child runs to the outbox, as far as there is room for them.
    async fn read_tree_page(&self, root: RunId) -> Result<(), StoreError> {
        let bounds = TreeBounds::of(self.settings());
        let (n_pending, is_known) = {
            let mut trees = self.trees().trees();
            let Some(tree) = trees.get_mut(&root) else { return Ok(()) };
            tree.is_woken = false;
            let is_known = tree.is_counted && !self.is_shared() && tree.n_runs < bounds.n_runs;
            (tree.n_pending, is_known)
        };
        if n_pending > PAGE {
            // Woken again when fewer are left.
            return Ok(());
        }
        if !self.inner().runs.outbox.has_room() {
            self.inner().runs.outbox.mark_unread(root);
            return Ok(());
        }
        let (project, store) = (self.project(), self.store());
        let root_row = store.run(project, RunRef::Id(root)).await?;
        let is_canceling = root_row.is_some_and(|row| row.projection.status == RunStatus::Canceling);
        self.trees().set_canceling(root, is_canceling);
        if is_canceling {
            // Their parents take them back, or the end of the root wakes this task.
            return Ok(());
        }
        let n_open = store.count_runs(project, RunGroup::OpenBelow(root), bounds.n_open).await?;
        // All runs of a tree are many, and only this server creates them unless others share the store.
        let n_runs = if is_known {
            None
        } else {
            Some(store.count_runs(project, RunGroup::Below(root), bounds.n_runs).await?)
        };
        self.trees().counted(root, n_pending, n_open, n_runs, bounds);
        let limit = n_pending + PAGE;
        let page = store.waiting_children(project, root, limit).await?;
        let is_last = page.len() < limit;
        let all_handed = self.hand_over(root, page, bounds);
        if is_last
            && all_handed
            && let Some(tree) = self.trees().trees().get_mut(&root)
        {
            // A message that was left to the store since then has woken this task.
            tree.has_waiting = tree.is_woken;
        }
        Ok(())
    }

    /// Hands child runs to the outbox; `false` = some are left to the store.
    fn hand_over(&self, root: RunId, page: Vec<Message>, bounds: TreeBounds) -> bool {
        let mut all_handed = true;
        for message in page {
            let Note::StartChild(child) = &message.note else { continue };
            if self.inner().runs.outbox.holds(&message) {
                continue;
            }
            {
                let mut trees = self.trees().trees();
                let Some(tree) = trees.get_mut(&root) else { return false };
                if !tree.is_spent && tree.is_full_for(child) {
                    all_handed = false;
                    continue;
                }
                if !tree.is_spent && !tree.has_room(bounds, child.parent.depth) {
                    tree.has_waited = true;
                    return false;
                }
                tree.admit();
            }
            if !self.put(message) {
                self.inner().runs.outbox.mark_unread(root);
                self.dismiss(root);
                return false;
            }
        }
        all_handed
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const BOUNDS: TreeBounds = TreeBounds { n_open: 64, n_runs: 100 };

    fn root() -> RunId {
        RunId::new(Uuid::nil())
    }

    #[test]
    fn child_runs_are_admitted_up_to_the_room_of_their_depth() {
        let trees = Trees::default();
        assert!(!trees.admit_new(root(), 1, BOUNDS), "the tree was not counted yet");
        trees.counted(root(), 0, 0, Some(0), BOUNDS);
        let n = (0..100).take_while(|_| trees.admit_new(root(), 1, BOUNDS)).count();
        assert_eq!(n, room_at(64, 1));
        assert!(trees.admit_new(root(), 2, BOUNDS), "a deeper run finds more room");
        assert!(!trees.admit_new(root(), 2, BOUNDS));
        trees.settle(root(), false);
        assert!(trees.admit_new(root(), 2, BOUNDS), "one was not created after all");
    }

    #[test]
    fn a_tree_has_a_bounded_number_of_runs() {
        let trees = Trees::default();
        trees.counted(root(), 0, 0, Some(99), BOUNDS);
        assert!(trees.admit_new(root(), 1, BOUNDS));
        assert!(!trees.admit_new(root(), 1, BOUNDS), "it is counted again before others are refused");
        trees.settle(root(), true);
        trees.counted(root(), 0, 1, Some(100), BOUNDS);
        assert!(trees.trees()[&root()].is_spent);
        assert!(trees.admit_new(root(), 1, BOUNDS), "the others are refused at once");
    }

    #[test]
    fn no_child_run_overtakes_those_that_wait() {
        let trees = Trees::default();
        trees.begin(root());
        assert!(trees.admit_new(root(), 1, BOUNDS));
        assert!(trees.leave_waiting(root(), false), "a task looks at them");
        assert!(!trees.leave_waiting(root(), false), "one task only");
        assert!(!trees.admit_new(root(), 1, BOUNDS));
        assert!(trees.goes_on(root()), "it was woken again");
        assert!(!trees.goes_on(root()));
        assert!(trees.wake(root()));
    }

    #[test]
    fn a_tree_that_is_being_canceled_admits_none() {
        let trees = Trees::default();
        trees.begin(root());
        trees.set_canceling(root(), true);
        assert!(!trees.admit_new(root(), 1, BOUNDS));
    }
}
