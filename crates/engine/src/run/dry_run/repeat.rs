//! Paths of nodes that start from the beginning. One path with a `*` stands for all items of a fan or all turns of a
//! loop, so that a dry run of a wide fan stays short.

use std::ops::Range;
use std::rc::Rc;

use super::DryRunStatus;
use super::budget::FUEL_MAX;
use crate::path::NodePath;

/// A node that starts from the beginning, together with its repetitions in the last round.
#[derive(Clone)]
pub(super) struct RepeatedPath {
    /// As it is listed: `*` for an item or a turn.
    pub(super) path: NodePath,
    /// The items and turns around it in the last round, each of which may have its own estimate.
    pub(super) around: Rc<[NodePath]>,
    /// The path from each of these to the node.
    within: NodePath,
    pub(super) status: DryRunStatus,
    pub(super) times: Option<u64>,
}

impl RepeatedPath {
    /// A path that is not repeated.
    pub(super) fn once(path: NodePath, status: DryRunStatus) -> RepeatedPath {
        let around = Rc::from([path.clone()]);
        RepeatedPath { path, around, within: NodePath::root(), status, times: None }
    }

    pub(super) fn child(&self, key: &str, status: DryRunStatus) -> RepeatedPath {
        let status = self.status.inside(status);
        RepeatedPath { path: self.path.child(key), within: self.within.child(key), status, ..self.clone() }
    }

    pub(super) fn is_repeated(&self) -> bool {
        self.path.segments().any(|segment| segment == "*")
    }

    /// This node in every item and turn around it.
    pub(super) fn models(&self) -> impl Iterator<Item = NodePath> {
        self.around.iter().map(|around| self.within.segments().fold(around.clone(), |at, key| at.child(key)))
    }

    /// Every item or turn of this fan or loop, except those in `apart`, which are listed separately and ascending.
    /// `ranges` has the items or turns of each model.
    pub(super) fn each(&self, ranges: &[Option<Range<usize>>], apart: &[usize]) -> RepeatedPath {
        let n_before = |end: usize| apart.partition_point(|at| *at < end);
        let n_of = |range: &Range<usize>| range.len() - (n_before(range.end) - n_before(range.start));
        let n: Option<u64> = ranges.iter().map(|range| range.as_ref().map(|range| n_of(range) as u64)).sum();
        let inner = self.models().zip(ranges).flat_map(|(model, range)| {
            let range = range.clone().unwrap_or_default();
            range.filter(|at| apart.binary_search(at).is_err()).map(move |at| model.at(at))
        });
        let around: Vec<NodePath> = inner.take(FUEL_MAX).collect();
        RepeatedPath {
            path: self.path.child("*"),
            around: around.into(),
            within: NodePath::root(),
            status: self.status,
            times: n.filter(|_| self.is_whole(ranges)),
        }
    }

    /// One item with a branch of its own, if the fan has so many items; at most `most` models are kept.
    pub(super) fn item(
        &self,
        at: usize,
        ranges: &[Option<Range<usize>>],
        most: usize,
    ) -> Option<RepeatedPath> {
        let may_have = |range: &Option<Range<usize>>| range.as_ref().is_none_or(|range| range.contains(&at));
        let n = ranges.iter().filter(|range| may_have(range)).count() as u64;
        let is_known = self.is_whole(ranges) && ranges.iter().all(Option::is_some);
        if is_known && n == 0 {
            return None;
        }
        let inner = self.models().zip(ranges).filter(|(_, range)| may_have(range));
        Some(RepeatedPath {
            path: self.path.at(at),
            around: inner.map(|(model, _)| model.at(at)).take(most).collect(),
            within: NodePath::root(),
            status: if is_known { self.status } else { DryRunStatus::MayRun },
            times: self.times.and(is_known.then_some(n)),
        })
    }

    /// Whether the ranges of all repetitions are known; the number of executions is unknown otherwise.
    fn is_whole(&self, ranges: &[Option<Range<usize>>]) -> bool {
        self.times.is_none_or(|times| times == ranges.len() as u64)
    }
}
