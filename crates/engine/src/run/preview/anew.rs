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
        // What may not begin has no inside that surely does.
        let fate = if self.fate == Fate::MayRun { Fate::MayRun } else { fate };
        Anew { path: self.path.child(key), within: self.within.child(key), fate, ..self.clone() }
    }

    pub(super) fn is_repeated(&self) -> bool {
        self.path.segments().any(|segment| segment == "*")
    }

    /// This place, in every item and turn around it.
    pub(super) fn models(&self) -> impl Iterator<Item = NodePath> {
        self.around.iter().map(|around| self.within.segments().fold(around.clone(), |at, key| at.child(key)))
    }

    /// Every item or turn of this place: `ranges` are those that each of its models had.
    pub(super) fn each(&self, ranges: &[Option<Range<usize>>]) -> Anew {
        // Of what only the run will know, or what was not looked at, nobody knows how often.
        let is_whole = self.times.is_none_or(|times| times == ranges.len() as u64);
        let n: Option<u64> = ranges.iter().map(|range| range.as_ref().map(|range| range.len() as u64)).sum();
        let inner = self
            .models()
            .zip(ranges)
            .flat_map(|(model, range)| range.clone().unwrap_or_default().map(move |at| model.at(at)));
        let around: Vec<NodePath> = inner.take(LOOKS_MAX).collect();
        Anew {
            path: self.path.child("*"),
            around: around.into(),
            within: NodePath::root(),
            fate: self.fate,
            times: n.filter(|_| is_whole),
        }
    }
}
