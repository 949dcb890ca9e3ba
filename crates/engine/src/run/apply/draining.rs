//! Places that drain: nothing begins inside them, and the last of their calls lets them fail.

use super::super::Todo;
use super::super::state::Stage;
use super::Applier;
use crate::path::NodePath;

impl Applier<'_> {
    /// A place begins to drain. Only calls in hand are open inside it.
    pub(super) fn draining(&mut self, place: &NodePath) {
        self.run.agenda.remove(&Todo::Collapse(place.clone()));
        let works = self.run.root.works(&self.plan.root, place);
        let is_granted = |stage: &Stage| matches!(stage, Stage::Granted { .. });
        let n_calls = works.iter().filter(|(_, work)| is_granted(&work.stage)).count();
        self.run.draining.insert(place.clone(), n_calls);
    }

    /// Calls at a path, or inside it, are no longer granted.
    pub(super) fn left_grants(&mut self, path: &NodePath, n: usize) {
        self.run.n_granted = self.run.n_granted.saturating_sub(n);
        for (_, n_calls) in self.run.draining.iter_mut().filter(|(place, _)| place.holds(path)) {
            *n_calls = n_calls.saturating_sub(n);
        }
    }

    /// A path settled or starts again: nothing drains there any more.
    pub(super) fn drains_no_more(&mut self, path: &NodePath) {
        self.run.draining.retain(|place, _| !path.holds(place));
    }

    /// Lets places fail that have no calls left, once everything that their last calls led to is decided.
    pub(super) fn drained(&mut self) {
        for place in self.run.draining.keys().cloned().collect::<Vec<_>>() {
            self.run.agenda.forget_starts(&place);
            if self.run.draining.get(&place) == Some(&0) && !self.run.agenda.has_inside(&place) {
                self.run.agenda.push_front(Todo::Collapse(place));
            }
        }
    }
}
