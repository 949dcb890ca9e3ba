//! Nodes that wait for a signal or an approval, indexed by the key that could end the wait, so that a write is matched
//! only against the nodes that it may concern.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::path::NodePath;
use crate::plan::NodeKind;
use crate::reference::{Ref, Root, Seg};

/// The key that could end a wait.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Awaited {
    /// A decision, and nothing that is written anywhere.
    Decision,
    /// A value under this key of the shared state or of the signals.
    Key(String),
    /// Any other target of a reference.
    Anything,
}

/// Nodes that wait, by the key that could end their wait.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Waits(BTreeSet<(Awaited, NodePath)>);

impl Waits {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &NodePath> {
        self.0.iter().map(|(_, path)| path)
    }

    /// The node at `path` waits from now on; a no-op for kinds of nodes that do not wait.
    pub(crate) fn insert(&mut self, kind: &NodeKind, path: &NodePath) {
        if let Some(awaited) = awaited(kind) {
            self.0.insert((awaited, path.clone()));
        }
    }

    pub(crate) fn remove(&mut self, kind: &NodeKind, path: &NodePath) {
        if let Some(awaited) = awaited(kind) {
            self.0.remove(&(awaited, path.clone()));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether any wait is for something other than a key, such as the output of a node.
    fn has_references(&self) -> bool {
        self.0.last().is_some_and(|(awaited, _)| *awaited == Awaited::Anything)
    }

    /// The nodes inside `place` that wait for this.
    fn inside(&self, awaited: Awaited, place: &NodePath) -> impl Iterator<Item = &NodePath> {
        // Inner paths sort behind their outer path, but other paths sort between: `a-b` comes before `a/b`.
        let from = if place.is_root() { place.clone() } else { place.child("") };
        let place = place.clone();
        self.0
            .range((awaited.clone(), from)..)
            .take_while(move |(of, path)| *of == awaited && place.holds(path))
            .map(|(_, path)| path)
    }
}

/// Which waits have to be looked at again.
#[derive(Debug, Clone)]
pub(crate) enum Look {
    All,
    /// Those that wait for one of these keys inside that place.
    At(Vec<(NodePath, String)>),
}

impl Default for Look {
    fn default() -> Self {
        Look::At(Vec::new())
    }
}

impl Look {
    pub(crate) fn is_needed(&self) -> bool {
        match self {
            Look::All => true,
            Look::At(places) => !places.is_empty(),
        }
    }

    /// Something was written under `key`, to be seen inside `place`.
    pub(crate) fn note(&mut self, place: &NodePath, key: &str) {
        if let Look::At(places) = self {
            places.push((place.clone(), key.to_owned()));
        }
    }

    /// A node settled: waits for something other than a key look again.
    pub(crate) fn note_settled(&mut self, waits: &Waits) {
        if waits.has_references() {
            self.note(&NodePath::root(), "");
        }
    }

    /// The waits it is about, in the order of their paths.
    pub(crate) fn of<'w>(&self, waits: &'w Waits) -> BTreeSet<&'w NodePath> {
        let Look::At(places) = self else {
            return waits.paths().collect();
        };
        let mut found = BTreeSet::new();
        for (place, key) in places {
            for awaited in [Awaited::Key(key.clone()), Awaited::Anything] {
                found.extend(waits.inside(awaited, place));
            }
        }
        found
    }
}

/// The key that could end the wait of a node of this kind; `None` when it is not a wait.
fn awaited(kind: &NodeKind) -> Option<Awaited> {
    match kind {
        NodeKind::Wait(wait) => Some(read_by(&wait.key)),
        NodeKind::Approval(approval) => Some(approval.key.as_ref().map_or(Awaited::Decision, read_by)),
        NodeKind::Call(_)
        | NodeKind::Choice(_)
        | NodeKind::Fan(_)
        | NodeKind::Sub(_)
        | NodeKind::Loop(_)
        | NodeKind::Timer(_)
        | NodeKind::Compute(_)
        | NodeKind::Pass
        | NodeKind::Return => None,
    }
}

fn read_by(reference: &Ref) -> Awaited {
    match (&reference.root, reference.path.first()) {
        (Root::Shared | Root::Anywhere, Some(Seg::Key(key))) => Awaited::Key(key.clone()),
        _ => Awaited::Anything,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_looked_at_by_those_it_may_concern() {
        let key = |key: &str| Awaited::Key(key.to_owned());
        let waits = [
            (key("go"), "f/0/w"),
            (key("go"), "f/1/w"),
            (key("go"), "f/10/w"),
            (key("go"), "f-x"),
            (key("stop"), "f/1/v"),
            (Awaited::Anything, "f/1/any"),
            (Awaited::Anything, "z"),
            (Awaited::Decision, "f/1/person"),
        ]
        .map(|(awaited, path)| (awaited, NodePath::from(path)))
        .into();
        let waits = Waits(waits);
        let seen = |place: &str, key: &str| {
            let mut look = Look::default();
            look.note(&NodePath::from(place), key);
            look.of(&waits).into_iter().map(NodePath::as_str).collect::<Vec<_>>()
        };
        assert_eq!(seen("f/1", "go"), ["f/1/any", "f/1/w"]);
        assert_eq!(seen("f", "go"), ["f/0/w", "f/1/any", "f/1/w", "f/10/w"]);
        assert_eq!(seen("", "stop"), ["f/1/any", "f/1/v", "z"]);
        assert_eq!(seen("f/2", "go"), [""; 0]);
        assert_eq!(Look::All.of(&waits).len(), waits.paths().count());
    }
}
