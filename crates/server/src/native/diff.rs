//! Differences between two versions of a flow: paths that were added, removed or changed.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::State;
use serde_json::Value;
use windlass_engine::definition::source_map::pointer;
use windlass_engine::layout::{Direction, LayoutNode, layout};
use windlass_engine::plan::Plan;
use windlass_sdk::contract::{DefinitionChange, DefinitionChangeKind, DiffQuery, FlowDiff, NodeChange};

use super::definition::run_blocking;
use super::flow::numbered;
use crate::app::App;
use crate::extract::{PathParams, QueryParams};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Differences listed at most: more are another flow.
const CHANGES_MAX: usize = 10_000;

/// Compares two versions of a flow.
#[utoipa::path(get, path = "/api/v1/flows/{flow}/diff", operation_id = "compare_versions", tag = "flows",
    params(("flow" = String, Path, description = "The name or the id of the flow"), DiffQuery),
    responses((status = 200, description = "Every place that differs", body = FlowDiff)))]
pub(crate) async fn diff(
    State(app): State<App>,
    PathParams(flow): PathParams<String>,
    QueryParams(asked): QueryParams<DiffQuery>,
) -> ApiResult<Json<FlowDiff>> {
    let flow = app.flow(&flow).await?;
    let to = asked.to.unwrap_or(flow.latest);
    let Some(from) = asked.from.or_else(|| to.checked_sub(1).filter(|from| *from > 0)) else {
        let detail = format!("flow `{}` has nothing before version {to}: name two versions", flow.name);
        return Err(ApiError::new(Code::UnknownVersion, detail));
    };
    let (before, after) = (numbered(&app, &flow, from).await?, numbered(&app, &flow, to).await?);
    let runs = app.runtime.runs();
    let plans = (runs.plan(before.id).await?, runs.plan(after.id).await?);
    let flow_id = flow.id.to_string();
    let compare = move || {
        let old = VersionGraph::of(shape::definition(&before), &plans.0);
        let new = VersionGraph::of(shape::definition(&after), &plans.1);
        let (changes, more) = differences(&old.definition, &new.definition);
        let nodes = changed_nodes(&old, &new);
        let (before_text, after_text) = (before.definition, after.definition);
        FlowDiff { flow_id, from, to, changes, more, nodes, before_text, after_text }
    };
    Ok(Json(run_blocking(compare).await?))
}

/// A definition, and its nodes with their places in it.
struct VersionGraph {
    definition: Value,
    /// By the id of the node: its place as a JSON pointer.
    nodes: BTreeMap<String, String>,
}

impl VersionGraph {
    fn of(definition: Value, plan: &Plan) -> Self {
        let drawn = layout(plan, Direction::LeftRight);
        let place = |node: LayoutNode| Some((node.id, pointer(&node.place?)?));
        VersionGraph { definition, nodes: drawn.nodes.into_iter().filter_map(place).collect() }
    }

    /// The definition of a node without the nodes inside of it, which are compared by themselves.
    fn own(&self, pointer: &str) -> Value {
        let mut own = self.definition.pointer(pointer).cloned().unwrap_or_default();
        let inner = self.nodes.values().filter_map(|other| other.strip_prefix(pointer));
        for inner in inner.filter(|inner| inner.starts_with('/')) {
            if let Some(place) = own.pointer_mut(inner) {
                *place = Value::Null;
            }
        }
        own
    }
}

/// Nodes that only one version has, and those whose own definitions differ.
fn changed_nodes(old: &VersionGraph, new: &VersionGraph) -> Vec<NodeChange> {
    let ids: BTreeSet<&String> = old.nodes.keys().chain(new.nodes.keys()).collect();
    let mut nodes = Vec::new();
    for id in ids {
        let (kind, pointers) = match (old.nodes.get(id), new.nodes.get(id)) {
            (Some(before), None) => (DefinitionChangeKind::Removed, vec![before.clone()]),
            (None, Some(after)) => (DefinitionChangeKind::Added, vec![after.clone()]),
            (Some(before), Some(after)) => {
                let (changes, _) = differences(&old.own(before), &new.own(after));
                let places: Vec<String> =
                    changes.iter().map(|change| format!("{after}{}", change.path)).collect();
                if places.is_empty() {
                    continue;
                }
                (DefinitionChangeKind::Changed, places)
            }
            (None, None) => continue,
        };
        nodes.push(NodeChange { node: id.clone(), kind, pointers });
    }
    nodes
}

/// Where two values differ, in the order of the paths; and whether there is more than is listed. Without recursion:
/// values may be as deep as they like.
pub(super) fn differences(before: &Value, after: &Value) -> (Vec<DefinitionChange>, bool) {
    let mut changes = Vec::new();
    let mut open = vec![(String::new(), Some(before), Some(after))];
    while let Some((path, before, after)) = open.pop() {
        if changes.len() >= CHANGES_MAX {
            return (changes, true);
        }
        let first = open.len();
        match (before, after) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                open.extend(old.iter().map(|(key, value)| (step(&path, key), Some(value), new.get(key))));
                let added = new.iter().filter(|(key, _)| !old.contains_key(*key));
                open.extend(added.map(|(key, value)| (step(&path, key), None, Some(value))));
                open[first..].sort_by(|a, b| b.0.cmp(&a.0));
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) => {
                let n = old.len().max(new.len());
                open.extend((0..n).rev().map(|at| (step(&path, &at.to_string()), old.get(at), new.get(at))));
            }
            (before, after) if before == after => {}
            (before, after) => {
                let kind = match (before, after) {
                    (None, _) => DefinitionChangeKind::Added,
                    (_, None) => DefinitionChangeKind::Removed,
                    (Some(_), Some(_)) => DefinitionChangeKind::Changed,
                };
                changes.push(DefinitionChange { path, kind, before: before.cloned(), after: after.cloned() });
            }
        }
    }
    (changes, false)
}

/// One step further in a JSON pointer.
fn step(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_place_that_differs_is_listed_once_in_order() {
        let before = json!({"a": {"x": 1, "y": [1, 2, 3]}, "b": 1, "same": [{}]});
        let after = json!({"a": {"x": 2, "y": [1, 5]}, "c/d": null, "same": [{}]});
        let (changes, more) = differences(&before, &after);
        let told: Vec<_> = changes.iter().map(|change| (change.path.as_str(), change.kind)).collect();
        assert_eq!(
            told,
            [
                ("/a/x", DefinitionChangeKind::Changed),
                ("/a/y/1", DefinitionChangeKind::Changed),
                ("/a/y/2", DefinitionChangeKind::Removed),
                ("/b", DefinitionChangeKind::Removed),
                ("/c~1d", DefinitionChangeKind::Added),
            ]
        );
        assert_eq!(
            (changes[0].before.as_ref(), changes[0].after.as_ref()),
            (Some(&json!(1)), Some(&json!(2)))
        );
        assert!(!more);
    }

    #[test]
    fn a_container_is_changed_only_by_its_own_fields() {
        let nodes = |inner: u64, limit: u64| VersionGraph {
            definition: json!({"nodes": {"each": {"limit": limit, "body": {"nodes": {"a": {"x": inner}}}}}}),
            nodes: [("each", "/nodes/each"), ("each/*/a", "/nodes/each/body/nodes/a")]
                .map(|(id, place)| (id.to_owned(), place.to_owned()))
                .into(),
        };
        let told = |old: VersionGraph, new: VersionGraph| {
            let nodes = changed_nodes(&old, &new);
            nodes.into_iter().map(|node| (node.node, node.kind, node.pointers)).collect::<Vec<_>>()
        };
        let inner = (
            "each/*/a".to_owned(),
            DefinitionChangeKind::Changed,
            vec!["/nodes/each/body/nodes/a/x".to_owned()],
        );
        assert_eq!(told(nodes(1, 5), nodes(2, 5)), [inner]);
        let outer = ("each".to_owned(), DefinitionChangeKind::Changed, vec!["/nodes/each/limit".to_owned()]);
        assert_eq!(told(nodes(1, 5), nodes(1, 6)), [outer]);
        let empty = VersionGraph { definition: json!({}), nodes: BTreeMap::new() };
        assert_eq!(told(empty, nodes(1, 5)).len(), 2);
    }

    #[test]
    fn equal_values_have_no_differences_at_any_depth() {
        let deep = (0..500).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(differences(&deep, &deep.clone()), (Vec::new(), false));
        let other = (0..500).fold(json!(2), |inner, _| json!([inner]));
        assert_eq!(differences(&deep, &other).0.len(), 1);
    }

    #[test]
    fn too_many_differences_are_cut() {
        let (old, new) = (json!(vec![0; CHANGES_MAX + 5]), json!(vec![1; CHANGES_MAX + 5]));
        let (changes, more) = differences(&old, &new);
        assert_eq!((changes.len(), more), (CHANGES_MAX, true));
    }
}
