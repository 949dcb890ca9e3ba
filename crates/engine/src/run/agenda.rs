//! The agenda: decisions to take next, oldest first. Items can be found by their path, so that the items inside
//! a node that ended are removed without a look at everything else.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Todo;
use crate::path::NodePath;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Vec<Todo>", into = "Vec<Todo>")]
pub(crate) struct Agenda {
    items: BTreeMap<u64, Todo>,
    places: BTreeSet<(NodePath, u64)>,
    next: u64,
}

/// Numbers start in the middle, so that there is room in front.
const MIDDLE: u64 = 1 << 40;

impl Default for Agenda {
    fn default() -> Self {
        Agenda { items: BTreeMap::new(), places: BTreeSet::new(), next: MIDDLE }
    }
}

impl Agenda {
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Todo> {
        self.items.values()
    }

    pub(crate) fn contains(&self, todo: &Todo) -> bool {
        let path = todo.path();
        let mut here = self.places.range((path.clone(), 0)..=(path.clone(), u64::MAX));
        here.any(|(_, at)| self.items.get(at) == Some(todo))
    }

    /// Puts an item before all others: the end of a node comes before new work inside it.
    pub(crate) fn push_front(&mut self, todo: Todo) {
        let at = self.items.first_key_value().map_or(self.next, |(first, _)| first.saturating_sub(1));
        self.next = self.next.max(at + 1);
        self.places.insert((todo.path().clone(), at));
        self.items.insert(at, todo);
    }

    pub(crate) fn push_back(&mut self, todo: Todo) {
        self.places.insert((todo.path().clone(), self.next));
        self.items.insert(self.next, todo);
        self.next += 1;
    }

    /// Removes the oldest item that is equal to this one.
    pub(crate) fn remove(&mut self, todo: &Todo) {
        // Nearly always it is the first of all.
        let first = self.items.first_key_value().filter(|(_, item)| *item == todo).map(|(at, _)| *at);
        let found = first.or_else(|| {
            let path = todo.path();
            let here = self.places.range((path.clone(), 0)..=(path.clone(), u64::MAX));
            here.map(|(_, at)| *at).find(|at| self.items.get(at) == Some(todo))
        });
        if let Some(at) = found {
            self.items.remove(&at);
            self.places.remove(&(todo.path().clone(), at));
        }
    }

    /// Removes every item about a path and the paths inside it.
    pub(crate) fn forget(&mut self, path: &NodePath) {
        if path.is_root() {
            self.clear();
            return;
        }
        let gone: Vec<(NodePath, u64)> = self.inside(path).cloned().collect();
        for place in gone {
            self.items.remove(&place.1);
            self.places.remove(&place);
        }
    }

    /// Removes the beginnings of everything inside a path.
    pub(crate) fn forget_starts(&mut self, path: &NodePath) {
        let is_start = |todo: &Todo| matches!(todo, Todo::Enter(_) | Todo::Begin(_));
        let gone: Vec<(NodePath, u64)> =
            self.inside(path).filter(|(_, at)| self.items.get(at).is_some_and(is_start)).cloned().collect();
        for place in gone {
            self.items.remove(&place.1);
            self.places.remove(&place);
        }
    }

    /// Whether an item is about this path or a path inside it.
    pub(crate) fn has_inside(&self, path: &NodePath) -> bool {
        self.inside(path).next().is_some()
    }

    /// The places of the items about a path and the paths inside it.
    fn inside<'a>(&'a self, path: &'a NodePath) -> impl Iterator<Item = &'a (NodePath, u64)> {
        // Inner paths sort together, but not right behind the outer path itself: `a-b` comes before `a/b`.
        let here = self.places.range((path.clone(), 0)..=(path.clone(), u64::MAX));
        let from = if path.is_root() { NodePath::root() } else { path.child("") };
        let inside = self.places.range((from, 0)..).take_while(move |(other, _)| path.holds(other));
        here.filter(move |_| !path.is_root()).chain(inside)
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.places.clear();
    }
}

impl Extend<Todo> for Agenda {
    fn extend<I: IntoIterator<Item = Todo>>(&mut self, todos: I) {
        todos.into_iter().for_each(|todo| self.push_back(todo));
    }
}

impl From<Vec<Todo>> for Agenda {
    fn from(todos: Vec<Todo>) -> Self {
        let mut agenda = Agenda::default();
        agenda.extend(todos);
        agenda
    }
}

impl From<Agenda> for Vec<Todo> {
    fn from(agenda: Agenda) -> Self {
        agenda.items.into_values().collect()
    }
}

impl Todo {
    pub(crate) fn path(&self) -> &NodePath {
        match self {
            Todo::Enter(path)
            | Todo::Begin(path)
            | Todo::Judge(path)
            | Todo::Turn(path)
            | Todo::Finish(path)
            | Todo::Collapse(path) => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_todo() -> impl Strategy<Value = Todo> {
        let path = prop::sample::select(vec!["", "a", "a-b", "a/0", "a/0/x", "a0", "ab", "b", "b/a"]);
        (path, 0..3u8).prop_map(|(path, kind)| {
            let path = NodePath::from(path);
            match kind {
                0 => Todo::Enter(path),
                1 => Todo::Begin(path),
                _ => Todo::Finish(path),
            }
        })
    }

    proptest! {
        #[test]
        fn it_does_what_a_plain_list_does(
            todos in prop::collection::vec(any_todo(), 0..24),
            ops in prop::collection::vec((any::<bool>(), any_todo()), 0..12),
        ) {
            let mut agenda = Agenda::from(todos.clone());
            let mut list = todos;
            for (forget, todo) in ops {
                if forget {
                    agenda.forget(todo.path());
                    list.retain(|item| !todo.path().holds(item.path()));
                } else {
                    agenda.remove(&todo);
                    if let Some(at) = list.iter().position(|item| *item == todo) {
                        list.remove(at);
                    }
                }
                prop_assert_eq!(agenda.iter().cloned().collect::<Vec<_>>(), list.clone());
                prop_assert_eq!(agenda.items.len(), agenda.places.len());
            }
        }
    }
}
