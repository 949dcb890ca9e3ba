//! One node of the dag form.

use serde_json::{Map, Value};

use super::{expression, outputs};
use crate::definition::graph::calls::{self, ExecType, Terms};
use crate::definition::graph::node as graph_node;
use crate::definition::reader::{Fields, Reader, shown};
use crate::params::Params;
use crate::plan::{
    Body, Branch, Branches, Call, Compute, Exec, Join, Node, NodeKind, Post, Prep, Recheck, Temporary, Timer,
};
use crate::reference::{REFERENCE_ROOTS, Template};
use crate::retry::{Backoff, Policy};

const OWN_TYPES: [&str; 5] = ["start", "end", "variable_set", "condition", "delay"];

const EXEC_TYPES: [(&str, ExecType); 3] =
    [("queue", ExecType::Queue), ("http", ExecType::Http), ("local_func", ExecType::Func)];

/// Fields beside a node's configuration.
struct OuterFields {
    retry: Option<Policy>,
    timeout_ms: u64,
    exec_type: Option<ExecType>,
    recheck: Recheck,
    at_most_once: bool,
}

const JOINS: [(&str, Join); 2] = [("any_live", Join::AnyLive), ("any_settled", Join::AnySettled)];

/// Reads a node. An unreadable node becomes one that does nothing, so that the rest can still be checked.
pub(super) fn read(id: &str, mut fields: Fields<'_>, depth: usize, reader: &mut Reader) -> Node {
    let title = fields.text("name", reader).or_else(|| fields.text("title", reader));
    let mut node = Node {
        key: id.to_owned(),
        title: title.map(str::to_owned),
        task_id: None,
        label: String::new(),
        kind: NodeKind::Pass,
        params: Params::default(),
        prep: Prep::Scope,
        post: Post::default(),
        out: Vec::new(),
        n_in: 0,
        join: Join::default(),
        timeout_ms: 0,
        place: String::new(),
        group: None,
    };
    fields.allow(&["description", "position"]);
    join(&mut node, &mut fields, reader);
    editor_mode(&mut fields, reader);
    let empty = Value::Object(Map::new());
    let config = fields.value("config").unwrap_or(&empty);
    let config_path = fields.at("config");
    let Some(word) = fields.name("type", reader) else {
        reader.error(fields.at("type"), "the type of the node is missing");
        fields.allow(&["retry", "timeout_ms", "exec_type", "cost", "recheck_ms", "until_reported"]);
        fields.allow(&["at_most_once"]);
        fields.finish(reader);
        return node;
    };
    node.label = word.to_owned();
    let graph_kind = graph_node::KINDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind);
    if let Some(kind) = graph_kind {
        of_graph_kind(&mut node, kind, config, config_path, &mut fields, depth, reader);
    } else if OWN_TYPES.contains(&word) {
        if let Some(config) = Fields::of(config, config_path, reader) {
            of_own_type(&mut node, word, config, &mut fields, reader);
        }
    } else {
        warn_of_slip(word, &fields, reader);
        service(&mut node, word, config, &config_path, &mut fields, reader);
    }
    fields.finish(reader);
    node
}

/// Reads `join`: the edges into the node that have to be live. An `end` builds the result of the flow in every case.
fn join(node: &mut Node, fields: &mut Fields<'_>, reader: &mut Reader) {
    let given = fields.word("join", &JOINS, reader);
    let always = fields.map.get("type").and_then(Value::as_str) == Some("end");
    if always && given == Some(Join::AnyLive) {
        reader.error(fields.at("join"), "has no effect: an `end` always runs");
    }
    node.join = if always { Join::AnySettled } else { given.unwrap_or_default() };
}

/// Editors store the mode in which a node was tried out; runs have theirs from their start.
fn editor_mode(fields: &mut Fields<'_>, reader: &mut Reader) {
    if fields.text("execMode", reader).is_some() {
        let reason = "has no effect here: a run gets `exec_mode` and `start_node_ids` when it is started";
        reader.warning(fields.at("execMode"), reason);
    }
}

/// Any type may be a service, so a misspelt one is legal; it is still worth saying.
fn warn_of_slip(word: &str, fields: &Fields<'_>, reader: &mut Reader) {
    if word.len() < 4 {
        return;
    }
    let known = OWN_TYPES.into_iter().chain(graph_node::KINDS.iter().map(|(name, _)| *name));
    if let Some(hint) = reader.suggestion(word, known) {
        let reason = format!("`{}` is taken as the name of a service", shown(word));
        reader.hint_warning(fields.at("type"), reason, Some(hint));
    }
}

fn beside(fields: &mut Fields<'_>, reader: &mut Reader) -> OuterFields {
    OuterFields {
        retry: retry(fields, reader),
        timeout_ms: fields.whole("timeout_ms", reader).unwrap_or(0),
        exec_type: fields.word("exec_type", &EXEC_TYPES, reader),
        recheck: reconciled(calls::recheck(fields, reader)),
        at_most_once: fields.flag("at_most_once", reader).unwrap_or(false),
    }
}

/// A suspended call of this form is looked at again even if neither its node nor its service says when.
fn reconciled(recheck: Recheck) -> Recheck {
    if recheck == Recheck::OfService { Recheck::Reconciled } else { recheck }
}

fn retry(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<Policy> {
    const BACKOFFS: [(&str, Backoff); 2] = [("fixed", Backoff::Fixed), ("exponential", Backoff::Exponential)];
    let mut retry = fields.inner("retry", reader)?;
    let max = retry.whole("max", reader).unwrap_or(0);
    let delay_ms = retry.whole("delay_ms", reader).unwrap_or(0);
    let backoff = retry.word("backoff", &BACKOFFS, reader).unwrap_or_default();
    retry.finish(reader);
    Some(calls::policy(max, delay_ms, backoff))
}

fn service(
    node: &mut Node,
    service: &str,
    config: &Value,
    config_path: &str,
    fields: &mut Fields<'_>,
    reader: &mut Reader,
) {
    let beside = beside(fields, reader);
    let terms = Terms {
        retry: beside.retry.unwrap_or_default(),
        timeout_ms: beside.timeout_ms,
        temporary: Temporary::Suspends,
        cost: calls::cost(fields, reader),
        recheck: beside.recheck,
        at_most_once: beside.at_most_once,
        ..Terms::default()
    };
    let exec = match beside.exec_type.unwrap_or(ExecType::Queue) {
        ExecType::Queue | ExecType::Script => Exec::Queue,
        ExecType::Http => Exec::Http,
        ExecType::Func => Exec::Func { name: service.to_owned() },
    };
    node.kind = NodeKind::Call(Box::new(terms.call(exec, service.to_owned(), Params::default())));
    if Fields::of(config, config_path.to_owned(), reader).is_some()
        && let Some(template) = template(config, config_path, reader)
    {
        node.prep = Prep::Params(template);
    }
}

/// Text that only begins like a reference is text; where a root is near, that is worth saying.
fn warn_of_text(value: &Value, path: &str, reader: &mut Reader) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.values()),
            Value::String(text) => {
                let root =
                    text.strip_prefix('$').and_then(|rest| rest.split_once(['.', '['])).map(|(root, _)| root);
                let Some(root) = root.filter(|root| !REFERENCE_ROOTS.contains(root)) else { continue };
                if let Some(hint) = reader.suggestion(root, REFERENCE_ROOTS) {
                    let reason = format!("`{}` is no reference and is taken as text", shown(text));
                    reader.hint_warning(path.to_owned(), reason, Some(hint));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

pub(super) fn template(value: &Value, path: &str, reader: &mut Reader) -> Option<Template> {
    warn_of_text(value, path, reader);
    Template::from_dag(value).map_err(|reason| reader.error(path, reason)).ok()
}

/// A kind of the graph form; its fields are in the configuration, some may stand beside it.
fn of_graph_kind(
    node: &mut Node,
    kind: graph_node::Word,
    config: &Value,
    config_path: String,
    fields: &mut Fields<'_>,
    depth: usize,
    reader: &mut Reader,
) {
    let retry_path = fields.at("retry");
    let retry = retry(fields, reader);
    let Value::Object(map) = config else {
        Fields::of(config, config_path, reader);
        return;
    };
    let mut merged = map.clone();
    for name in ["timeout_ms", "exec_type", "cost", "recheck_ms", "until_reported", "at_most_once"] {
        if let Some(value) = fields.value(name) {
            merged.entry(name).or_insert_with(|| value.clone());
        }
    }
    let merged = Value::Object(merged);
    let Some(mut config) = Fields::of(&merged, config_path.clone(), reader) else { return };
    graph_node::fill(node, kind, &mut config, depth, reader);
    let params = config.map.get("params").filter(|params| params.is_object());
    let has_prep = config.map.get("prep").is_some_and(|prep| !prep.is_null());
    if let NodeKind::Call(call) = &mut node.kind {
        call.temporary = Temporary::Suspends;
        // References in params have the same meaning as in any other configuration of this form.
        if !has_prep
            && let Some(params) = params
            && let Some(template) = template(params, &format!("{config_path}.params"), reader)
        {
            call.params = Params::default();
            node.prep = Prep::Params(template);
        }
    }
    for call in calls_of(&mut node.kind) {
        call.recheck = reconciled(call.recheck);
    }
    if let Some(retry) = retry {
        let mut has_calls = false;
        for call in calls_of(&mut node.kind) {
            (call.retry, has_calls) = (retry, true);
        }
        if !has_calls {
            reader.warning(retry_path, no_effect(&node.kind, &node.label));
        }
    }
    graph_node::finish(config, &node.label, reader);
}

/// The calls that a node makes itself: its own, or those of its branches.
fn calls_of(kind: &mut NodeKind) -> Vec<&mut Call> {
    let branches: Vec<&mut Branch> = match kind {
        NodeKind::Call(call) => return vec![call],
        NodeKind::Fan(fan) => match &mut fan.branches {
            Branches::Fixed(list) => list.iter_mut().collect(),
            Branches::Services { each } => vec![each],
            Branches::Items { each, special } => std::iter::once(each).chain(special.values_mut()).collect(),
        },
        _ => return Vec::new(),
    };
    let calls = branches.into_iter().filter_map(|branch| match &mut branch.body {
        Body::Call(call) => Some(&mut **call),
        Body::Scope(_) => None,
    });
    calls.collect()
}

fn no_effect(kind: &NodeKind, label: &str) -> String {
    match kind {
        NodeKind::Sub(_) => {
            "has no effect on a subflow: give `failure_strategy: retry` in its config".to_owned()
        }
        NodeKind::Fan(_) => {
            "has no effect on branches that are flows: give it to the nodes inside".to_owned()
        }
        _ => format!("has no effect on a node of type {label}"),
    }
}

/// A type of this form. `beside` are the fields of the node beside its configuration.
fn of_own_type(
    node: &mut Node,
    word: &str,
    mut config: Fields<'_>,
    beside: &mut Fields<'_>,
    reader: &mut Reader,
) {
    match word {
        "end" => node.kind = NodeKind::Compute(Compute::Outputs(outputs::read(&mut config, beside, reader))),
        "variable_set" => {
            let path = config.at("variables");
            let values = outputs::named_values("variables", "value", &mut config, reader);
            for (name, _) in &values {
                reader.check_shared_key(name, &path);
            }
            if values.is_empty() {
                reader.error(path, "name the variables to set");
            }
            node.kind = NodeKind::Compute(Compute::Set(values));
        }
        "condition" => {
            // Without an expression, the edges out of the node carry the conditions; the scope checks that some do.
            if let Some(text) = config.text("expression", reader) {
                let condition = expression(text, &config.at("expression"), reader);
                node.kind =
                    condition.map_or(NodeKind::Pass, |condition| NodeKind::Compute(Compute::Test(condition)));
            }
        }
        "delay" => node.kind = delay(&mut config, reader).map_or(NodeKind::Pass, NodeKind::Timer),
        // A `start` declares variables at most, which are read with those of the flow; editors may keep fields of their
        // own there.
        _ => {
            config.allow(&["variables", "inputs", "inputVariables"]);
            beside.allow(&["inputVariables"]);
        }
    }
    config.finish(reader);
}

fn delay(config: &mut Fields<'_>, reader: &mut Reader) -> Option<Timer> {
    let seconds = config.value("delaySeconds");
    let ms = config.value("delay_ms");
    let (value, path) = match (seconds, ms) {
        (Some(value), None) => (value, config.at("delaySeconds")),
        (None, Some(value)) => (value, config.at("delay_ms")),
        (Some(_), Some(_)) => {
            reader.error(config.at("delay_ms"), "a delay has `delaySeconds` or `delay_ms`, not both");
            return None;
        }
        (None, None) => {
            reader.error(config.at("delaySeconds"), "the length of the delay is missing");
            return None;
        }
    };
    let template = template(value, &path, reader)?;
    let number = |v: &Value| v.as_f64().or_else(|| v.as_str()?.trim().parse().ok());
    if let Template::Literal(literal) = &template
        && number(literal).is_none_or(|n: f64| n.is_nan() || n < 0.0)
    {
        reader.error(path, "a delay is a number from 0, or a reference to one");
        return None;
    }
    Some(if seconds.is_some() { Timer::Seconds(template) } else { Timer::Delay(template) })
}
