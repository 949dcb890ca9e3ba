//! The shared state as clients of this surface know it: the keys that flows wrote, received signals, and under `_rt` the
//! state of open nodes, rendered from the engine's state.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use windlass_engine::plan::{Branches, Fan, Node, NodeKind, Plan, Routing, Scope, Strategy};
use windlass_engine::run::Run;
use windlass_engine::run::state::{FanState, Nest, NodeState, Phase, ScopeState};

/// The shared state of a run.
pub(super) fn render(plan: &Plan, run: &Run) -> Value {
    let mut all: Map<String, Value> =
        run.signals.iter().map(|(key, value)| (key.clone(), (**value).clone())).collect();
    all.extend(own(&plan.root, &run.root));
    Value::Object(all)
}

/// The shared state of a scope, with the state of its open nodes. The engine bounds the nesting of scopes.
fn own(scope: &Scope, state: &ScopeState) -> Map<String, Value> {
    let shared = state.shared.iter().flatten();
    let mut all: Map<String, Value> = shared.map(|(key, value)| (key.clone(), (**value).clone())).collect();
    let open = state.nodes.iter().filter(|(_, node)| node.phase.is_open());
    let doing: Map<String, Value> = open
        .filter_map(|(ix, node)| {
            let plan = scope.nodes.get(*ix)?;
            let (prefix, value) = doing(plan, node)?;
            Some((format!("{prefix}:{}", plan.key), value))
        })
        .collect();
    if !doing.is_empty() {
        all.insert("_rt".to_owned(), Value::Object(doing));
    }
    all
}

fn doing(plan: &Node, node: &NodeState) -> Option<(&'static str, Value)> {
    let since = || json!({"start": node.entered_at.map(|at| at.0)});
    match (&plan.kind, node.nest.as_deref()) {
        (NodeKind::Fan(fan), Some(Nest::Fan(arms))) => Some(fan_state(fan, arms)),
        (NodeKind::Sub(sub), Some(Nest::Scope(inner))) => Some(("sf", sub_state(&sub.scope, inner))),
        (NodeKind::Timer(_), _) => Some(("tm", since())),
        (NodeKind::Wait(_), _) => Some(("we", since())),
        (NodeKind::Approval(_), _) => Some(("ap", since())),
        // States without a word in the documents are not shown.
        (
            NodeKind::Call(_)
            | NodeKind::Choice(_)
            | NodeKind::Fan(_)
            | NodeKind::Sub(_)
            | NodeKind::Loop(_)
            | NodeKind::Compute(_)
            | NodeKind::Pass
            | NodeKind::Return,
            _,
        ) => None,
    }
}

fn fan_state(fan: &Fan, arms: &FanState) -> (&'static str, Value) {
    let is_items = matches!(fan.branches, Branches::Items { .. });
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let (mut done, mut errs) = (Map::new(), Map::new());
    for (index, slot) in arms.slots.iter().enumerate() {
        let name = if is_items { index.to_string() } else { branch_name(fan, arms, index, &mut names) };
        match &slot.phase {
            Phase::Done => {
                done.insert(name, slot.output.as_deref().cloned().unwrap_or(Value::Null));
            }
            Phase::Failed => {
                let message = slot.fault.as_ref().map(|fault| fault.message.clone());
                errs.insert(name, json!(message.unwrap_or_default()));
            }
            Phase::Pending | Phase::Open(_) | Phase::Skipped | Phase::Canceled => {}
        }
    }
    let mut state = json!({
        "done": done,
        "errs": errs,
        "mode": if fan.max_parallel == Some(1) { "sequential" } else { "concurrent" },
        "max": fan.max_parallel.unwrap_or(0),
        "strategy": strategy_word(fan.strategy),
    });
    if is_items {
        state["idx"] = arms.next.into();
        return ("fe", state);
    }
    ("pl", state)
}

/// Branches go by their service; of several with the same one, the later ones also by their index.
fn branch_name(fan: &Fan, arms: &FanState, index: usize, names: &mut BTreeMap<String, usize>) -> String {
    let given = match &fan.branches {
        Branches::Fixed(list) => list.get(index).map(|branch| branch.name.clone()),
        Branches::Services { .. } | Branches::Items { .. } => arms.names.get(index).cloned(),
    };
    let name = given.unwrap_or_else(|| index.to_string());
    let n_before = names.entry(name.clone()).or_default();
    *n_before += 1;
    if *n_before == 1 { name } else { format!("{name}#{index}") }
}

fn strategy_word(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::All => "",
        Strategy::FailFast => "fail_fast",
        Strategy::CollectErrors => "collect_errors",
        Strategy::IgnoreErrors => "ignore_errors",
        Strategy::Continue => "continue",
    }
}

fn sub_state(scope: &Scope, inner: &ScopeState) -> Value {
    let last = inner.nodes.values().filter(|node| node.ended_at.is_some()).max_by_key(|node| node.visit);
    json!({
        "curr": current(scope, inner).unwrap_or_default(),
        "shared": own(scope, inner),
        "last": last.and_then(|node| node.action.clone()).unwrap_or_default(),
    })
}

/// The node where a scope is, or begins; where several are open, the one entered last.
pub(super) fn current<'p>(scope: &'p Scope, state: &ScopeState) -> Option<&'p str> {
    let ix = match scope.routing {
        Routing::Action { start } => Some(state.cursor.unwrap_or(start)),
        Routing::Join { .. } => {
            let entered = state.nodes.iter().filter(|(_, node)| node.visit.0 > 0);
            entered.max_by_key(|(_, node)| (node.phase.is_open(), node.visit)).map(|(ix, _)| *ix)
        }
    };
    ix.and_then(|ix| scope.nodes.get(ix)).map(|node| node.key.as_str())
}

#[cfg(test)]
mod tests;
