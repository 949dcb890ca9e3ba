//! What can be read at a place of a run that was not made.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::EACH_MAX;
use crate::plan::{Branch, Form, Kind, LoopOver, Node, Plan, Scope};
use crate::reference::{Ref, Root, Seg, Template};
use crate::run::decide::outside::is_reserved;
use crate::run::decide::whole;
use crate::run::preview::Fate;
use crate::run::preview::room::Room;
use crate::run::preview::told::{Sight, Told};

type Overrides = BTreeMap<String, Map<String, Value>>;

/// Where the walk is: how sure and how often it gets there.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) fate: Fate,
    /// `None` = nobody knows.
    pub(super) times: Option<u64>,
    /// How many flows deep the run is.
    pub(super) depth: u32,
    /// Scopes around it, of all flows together.
    pub(super) deep: usize,
}

impl At {
    /// A node of what is here.
    pub(super) fn inside(self, fate: Fate) -> At {
        At { fate: self.fate.inside(fate), deep: self.deep + 1, ..self }
    }

    /// What happens here so many times.
    pub(super) fn repeated(self, n: Option<usize>) -> At {
        let times = self.times.zip(n).map(|(times, n)| times.saturating_mul(n as u64));
        At { times, ..self }
    }
}

/// What is known of nodes here and around: the open turns of loops, and what only passes on. A place is made for every
/// node and call, so these are never copied.
#[derive(Default)]
struct Nodes<'a> {
    here: BTreeMap<&'a str, Told>,
    around: Option<Rc<Nodes<'a>>>,
}

impl<'a> Nodes<'a> {
    fn within(around: &Rc<Self>, here: BTreeMap<&'a str, Told>) -> Rc<Self> {
        Rc::new(Nodes { here, around: Some(around.clone()) })
    }

    /// The nearest of this name.
    fn find(&self, key: &str) -> Option<&Told> {
        let mut nodes = self;
        loop {
            match nodes.here.get(key) {
                Some(known) => return Some(known),
                None => nodes = nodes.around.as_deref()?,
            }
        }
    }
}

/// What can be read at a node, and what goes into it; in a scope, what its nodes find there.
#[derive(Clone)]
pub(super) struct Place<'a> {
    pub(super) params: Told,
    pub(super) input: Told,
    shared: Told,
    nodes: Rc<Nodes<'a>>,
    is_root: bool,
    overrides: Option<&'a Overrides>,
    /// What nodes of the flow write: what is held under these keys now need not be what is read.
    writes: Rc<BTreeSet<&'a str>>,
    room: Rc<Room>,
}

impl<'a> Place<'a> {
    /// The beginning of a run that is given these params.
    pub(super) fn root(plan: &'a Plan, given: &Told, room: Rc<Room>) -> Self {
        let (mut params, is_open) = given.split();
        for (name, variable) in &plan.variables {
            if let (false, Some(default)) = (is_open, &variable.default) {
                params.entry(name.clone()).or_insert_with(|| Told::literal(default, &room));
            }
        }
        let held = if plan.form == Form::Dag { params.clone() } else { BTreeMap::new() };
        let mut place = Place {
            params: Told::fields(params, is_open),
            input: Told::null(),
            shared: Told::Unknown,
            nodes: Rc::default(),
            is_root: true,
            overrides: None,
            writes: Rc::new(plan.writes()),
            room,
        };
        place.shared = place.held(held);
        place
    }

    /// A shared state that begins with these. What is not there may be written.
    fn held(&self, mut fields: BTreeMap<String, Told>) -> Told {
        fields.retain(|key, _| !is_reserved(key) && !self.writes.contains(key.as_str()));
        Told::fields(fields, true)
    }

    /// The same, where nodes of this scope are found first. Those that only pass on what they are given, as triggers
    /// do, have put it out when others read it.
    pub(super) fn within(&self, scope: &'a Scope) -> Place<'a> {
        let known = |node: &'a Node| {
            let passed = matches!(node.kind, Kind::Pass).then(|| self.node(node).input);
            (node.key.as_str(), passed.unwrap_or(Told::Unknown))
        };
        let nodes = Nodes::within(&self.nodes, scope.nodes.iter().map(known).collect());
        Place { nodes, ..self.clone() }
    }

    /// A node of this scope.
    pub(super) fn node(&self, node: &Node) -> Place<'a> {
        let own = match &node.kind {
            Kind::Call(call) => &call.params,
            _ => &node.params,
        };
        let mut place = self.with_params(own, node);
        place.input = match node.kind.over() {
            Some(over) => Told::of(over, &place, &self.room),
            None => Told::prepared(&node.prep, &self.input, &place, &self.room),
        };
        place
    }

    /// A branch of the fan that this is, for this item or input.
    pub(super) fn branch(&self, fan: &Node, branch: &Branch, base: &Told) -> Place<'a> {
        let mut own = fan.params.clone();
        own.extend(branch.params.iter().map(|(key, value)| (key.clone(), value.clone())));
        let mut place = self.with_params(&own, fan);
        place.input = base.clone();
        place.input = Told::prepared(&branch.prep, base, &place, &self.room);
        place
    }

    /// With a node's own params: at the root the run's win, inside the node's, and overrides over both.
    fn with_params(&self, own: &Map<String, Value>, node: &Node) -> Place<'a> {
        let special = self.overrides.and_then(|all| all.get(&node.key));
        let mut place = self.clone();
        if own.is_empty() && special.is_none() {
            return place;
        }
        let mut own = own.clone();
        own.extend(special.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
        let own = Told::literals(&own, &self.room);
        place.params = if self.is_root { self.params.over(&own) } else { own.over(&self.params) };
        place
    }

    /// The scope of a subflow or, with its index, of a branch.
    pub(super) fn opened(
        &self,
        scope: &Scope,
        index: Option<Option<usize>>,
        overrides: Option<&'a Overrides>,
    ) -> Place<'a> {
        let mut place = Place { is_root: false, overrides, ..self.clone() };
        if scope.owns_shared {
            let mut fields = match &self.input {
                input if is_fieldless(input) => BTreeMap::from([("input".to_owned(), input.clone())]),
                input => input.split().0,
            };
            if let Some(index) = index {
                let index = index.map_or(Told::Unknown, |index| Told::known(index.into()));
                fields.insert("index".to_owned(), index);
            }
            place.shared = self.held(fields);
        }
        place
    }

    /// A turn of a loop in this scope; `None` = any.
    pub(super) fn turn(&self, node: &'a Node, turn: Option<usize>, over: &Told) -> Place<'a> {
        let index = turn.map_or(Told::Unknown, |turn| Told::known(turn.into()));
        let value = match turn {
            Some(at) if over.n_items().is_some() => over.at(&[Seg::Index(at)]),
            Some(_) => index.clone(),
            None => Told::Unknown,
        };
        let fact = Told::fields([("index".to_owned(), index), ("value".to_owned(), value)], true);
        let nodes = Nodes::within(&self.nodes, BTreeMap::from([(node.key.as_str(), fact)]));
        Place { nodes, is_root: false, overrides: None, ..self.clone() }
    }

    /// How many turns a loop has that goes over the input of this place.
    pub(super) fn n_turns(&self, over: &LoopOver) -> Option<usize> {
        match over {
            LoopOver::Array(_) => self.input.n_items(),
            LoopOver::Limit(_) => self.input.value().and_then(whole).and_then(|n| usize::try_from(n).ok()),
        }
    }

    /// An item of the fan that this is; `None` = any.
    pub(super) fn item(&self, index: Option<usize>) -> Told {
        index.map_or(Told::Unknown, |index| self.input.at(&[Seg::Index(index)]))
    }

    /// The services that branches are named by, if they can be told and are not too many.
    pub(super) fn services(&self) -> Option<Vec<String>> {
        let services = self.params.at(&[Seg::Key("services".to_owned())]);
        let n = services.n_items().filter(|n| *n <= EACH_MAX)?;
        let name = |at| services.at(&[Seg::Index(at)]).value().and_then(Value::as_str).map(str::to_owned);
        (0..n).map(name).collect()
    }

    /// What prices put together.
    pub(super) fn told(&self, template: &Template) -> Told {
        Told::of(template, self, &self.room)
    }

    /// How many fields its params and its input have, which are listed again for every node here.
    pub(super) fn breadth(&self) -> usize {
        self.params.n_fields().saturating_add(self.input.n_fields())
    }

    /// What prices read; of a call whose whole configuration is prepared, that is its params.
    pub(super) fn asked(&self, is_whole: bool) -> Place<'a> {
        let mut place = self.clone();
        if is_whole {
            place.params = self.input.clone();
        }
        place
    }
}

/// Whether this is known to be neither an object nor nothing.
pub(super) fn is_fieldless(told: &Told) -> bool {
    match told {
        Told::Known(_) => told.value().is_some_and(|value| !(value.is_null() || value.is_object())),
        Told::Items { .. } => true,
        Told::Fields { .. } | Told::Unknown => false,
    }
}

impl Sight for Place<'_> {
    fn read(&self, reference: &Ref) -> Told {
        let Ref { root, path } = reference;
        match root {
            Root::Params => self.params.at(path),
            Root::Shared => self.shared.at(path),
            Root::Input => self.input.at(path),
            Root::Output(node) => self.nodes.find(node).map_or(Told::Unknown, |known| known.at(path)),
            Root::Result | Root::Error(_) | Root::Status(_) => Told::Unknown,
            // What shared does not hold yet may come, and would win.
            Root::Anywhere => self.shared.at(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Strictness, compile_value};
    use serde_json::json;

    #[test]
    fn places_of_one_scope_share_what_is_known_of_its_nodes() {
        let nodes = json!([{ "id": "start", "type": "start" }, { "id": "a", "type": "x" }]);
        let definition = json!({ "nodes": nodes, "edges": [{ "source": "start", "target": "a" }] });
        let plan = compile_value(&definition, Strictness::Strict).plan.unwrap();
        let scope = Place::root(&plan, &Told::Unknown, Rc::default()).within(&plan.root);
        for node in &plan.root.nodes {
            let place = scope.node(node);
            assert!(Rc::ptr_eq(&place.nodes, &scope.nodes));
            assert!(Rc::ptr_eq(&place.asked(true).nodes, &scope.nodes));
        }
        assert!(Rc::ptr_eq(scope.within(&plan.root).nodes.around.as_ref().unwrap(), &scope.nodes));
    }
}
