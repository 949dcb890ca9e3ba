//! Places of what begins from its beginning, many at once where they are repeated.

use std::ops::Range;
use std::rc::Rc;

use super::{Fate, LOOKS_MAX};
use crate::path::NodePath;

/// Where the walk is in what begins from its beginning.
#[derive(Clone)]
pub(super) struct Anew {
    /// As it is told: `*` for what is repeated.
    pub(super) path: NodePath,
    /// The items and turns around it as they were before, each of which may have its own estimate.
    pub(super) around: Rc<[NodePath]>,
    /// The way from each of these to here.
    within: NodePath,
    pub(super) fate: Fate,
    pub(super) times: Option<u64>,
}

impl Anew {
    /// A place that is not repeated.
    pub(super) fn once(path: NodePath, fate: Fate) -> Anew {
        let around = Rc::from([path.clone()]);
        Anew { path, around, within: NodePath::root(), fate, times: None }
    }

    pub(super) fn child(&self, key: &str, fate: Fate) -> Anew {
        let fate = self.fate.inside(fate);
        Anew { path: self.path.child(key), within: self.within.child(key), fate, ..self.clone() }
    }

    pub(super) fn is_repeated(&self) -> bool {
        self.path.segments().any(|segment| segment == "*")
    }

    /// This place, in every item and turn around it.
    pub(super) fn models(&self) -> impl Iterator<Item = NodePath> {
        self.around.iter().map(|around| self.within.segments().fold(around.clone(), |at, key| at.child(key)))
    }

    /// Every item or turn of this place, but those that are told apart, in ascending order. `ranges` are those that
    /// each of its models had.
    pub(super) fn each(&self, ranges: &[Option<Range<usize>>], apart: &[usize]) -> Anew {
        let n_before = |end: usize| apart.partition_point(|at| *at < end);
        let n_of = |range: &Range<usize>| range.len() - (n_before(range.end) - n_before(range.start));
        let n: Option<u64> = ranges.iter().map(|range| range.as_ref().map(|range| n_of(range) as u64)).sum();
        let inner = self.models().zip(ranges).flat_map(|(model, range)| {
            let range = range.clone().unwrap_or_default();
            range.filter(|at| apart.binary_search(at).is_err()).map(move |at| model.at(at))
        });
        let around: Vec<NodePath> = inner.take(LOOKS_MAX).collect();
        Anew {
            path: self.path.child("*"),
            around: around.into(),
            within: NodePath::root(),
            fate: self.fate,
            times: n.filter(|_| self.is_whole(ranges)),
        }
    }

    /// One item of this place that is not like the others, if it has so many; at most so many models are kept.
    pub(super) fn item(&self, at: usize, ranges: &[Option<Range<usize>>], most: usize) -> Option<Anew> {
        let may_have = |range: &Option<Range<usize>>| range.as_ref().is_none_or(|range| range.contains(&at));
        let n = ranges.iter().filter(|range| may_have(range)).count() as u64;
        let is_known = self.is_whole(ranges) && ranges.iter().all(Option::is_some);
        if is_known && n == 0 {
            return None;
        }
        let inner = self.models().zip(ranges).filter(|(_, range)| may_have(range));
        Some(Anew {
            path: self.path.at(at),
            around: inner.map(|(model, _)| model.at(at)).take(most).collect(),
            within: NodePath::root(),
            fate: if is_known { self.fate } else { Fate::MayRun },
            times: self.times.and(is_known.then_some(n)),
        })
    }

    /// Whether all of this place was looked at: of what was not, or only the run will know, nobody knows how often.
    fn is_whole(&self, ranges: &[Option<Range<usize>>]) -> bool {
        self.times.is_none_or(|times| times == ranges.len() as u64)
    }
}
