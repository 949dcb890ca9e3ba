//! One node of the graph form: its kind, its input and the use of its result.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::branches;
use super::calls::{Doer, ExecType, Terms};
use super::waits::{approval, timer, wait};
use crate::definition::Flow;
use crate::definition::reader::{Fields, Reader, at_index, at_key, is_blank, shown};
use crate::expr::{Condition, json};
use crate::params::Params;
use crate::plan::{Choice, Exec, Join, Node, NodeKind, Post, Prep, Sub, SubFailure};
use crate::reference::{Ref, Root, Seg, Template, parse_dollar, parse_path};

/// The kinds of the graph form, aliases included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::definition) enum Word {
    Executor,
    Local,
    FlowRef,
    Choice,
    Parallel,
    Foreach,
    Subflow,
    Timer,
    WaitEvent,
    Approval,
}

pub(in crate::definition) const KINDS: [(&str, Word); 11] = [
    ("executor", Word::Executor),
    ("choice", Word::Choice),
    ("parallel", Word::Parallel),
    ("subflow", Word::Subflow),
    ("timer", Word::Timer),
    ("foreach", Word::Foreach),
    ("wait_event", Word::WaitEvent),
    ("approval", Word::Approval),
    ("remote", Word::Executor),
    ("local", Word::Local),
    ("flow_ref", Word::FlowRef),
];

/// Every field that a node of this form may carry; fields that its kind does not use get a warning.
const FIELDS: [&str; 28] = [
    "service",
    "exec_type",
    "func",
    "script",
    "params",
    "prep",
    "post",
    "max_retries",
    "wait_ms",
    "max_attempts",
    "attempt_delay_ms",
    "weighted_by_load",
    "timeout_ms",
    "parallel_services",
    "parallel_execs",
    "foreach_execs",
    "subflow",
    "subflow_execs",
    "default_action",
    "choice_cases",
    "parallel_mode",
    "max_parallel",
    "failure_strategy",
    "flow",
    "version",
    "cost",
    "at_most_once",
    "description",
];

/// Reads a node. An unreadable node becomes one that does nothing, so that the rest can still be checked.
pub(super) fn read(key: &str, value: &Value, path: String, depth: usize, reader: &mut Reader) -> Node {
    let mut node = Node {
        key: key.to_owned(),
        title: None,
        task_id: None,
        label: "executor".to_owned(),
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
    let Some(mut fields) = Fields::of(value, path, reader) else { return node };
    node.title = fields.text("title", reader).or_else(|| fields.text("name", reader)).map(str::to_owned);
    if let Some(label) = fields.text("kind", reader) {
        node.label = shown(label);
    }
    let word = match fields.text("kind", reader) {
        Some(_) => fields.word("kind", &KINDS, reader),
        None => Some(Word::Executor),
    };
    match word {
        Some(word) => fill(&mut node, word, &mut fields, depth, reader),
        None => fields.allow(&FIELDS),
    }
    finish(fields, &node.label, reader);
    node
}

/// Reads a node of the kind `word` from `fields`, which may be those of the node or its configuration.
pub(in crate::definition) fn fill(
    node: &mut Node,
    word: Word,
    fields: &mut Fields<'_>,
    depth: usize,
    reader: &mut Reader,
) {
    node.prep = prep(fields, reader);
    node.post = post(fields, reader);
    fields.text("description", reader);
    node.timeout_ms = fields.whole("timeout_ms", reader).unwrap_or(0);
    let kind = match word {
        Word::Executor => call(node, ExecType::Http, fields, reader),
        Word::Local => call(node, ExecType::Func, fields, reader),
        Word::FlowRef => flow_ref(node, fields, reader),
        Word::Choice => Some(NodeKind::Choice(choice(fields, reader))),
        Word::Parallel => branches::parallel(fields, depth, reader).map(|fan| NodeKind::Fan(Box::new(fan))),
        Word::Foreach => branches::foreach(fields, depth, reader).map(|fan| NodeKind::Fan(Box::new(fan))),
        Word::Subflow if fields.map.get("subflow").is_none_or(is_blank) => {
            fields.value("subflow");
            match fields.text("flow", reader) {
                Some(_) => flow_ref(node, fields, reader),
                None => {
                    reader.error(
                        fields.at("subflow"),
                        "the subflow is missing: give its nodes, or name a `flow`",
                    );
                    None
                }
            }
        }
        Word::Subflow => {
            let inside = begins_with(&node.prep, reader);
            let outside = std::mem::replace(&mut reader.begins_with, inside);
            let kind = subflow(fields, depth, reader);
            reader.begins_with = outside;
            kind
        }
        Word::Timer => timer(fields, reader).map(NodeKind::Timer),
        Word::WaitEvent => wait(node, fields, reader).map(NodeKind::Wait),
        Word::Approval => Some(NodeKind::Approval(approval(node, fields, reader))),
    };
    if let Some(kind) = kind {
        node.kind = kind;
    }
    if !matches!(node.kind, NodeKind::Call(_)) {
        node.params = params(fields, reader);
    }
}

/// Warns of fields this kind has no use for, then reports the unknown ones.
pub(in crate::definition) fn finish(mut fields: Fields<'_>, label: &str, reader: &mut Reader) {
    for name in FIELDS {
        let idle = !fields.knows(name) && fields.map.get(name).is_some_and(|value| !is_blank(value));
        if idle {
            reader.warning(fields.at(name), format!("has no effect on a node of kind {label}"));
        }
    }
    fields.allow(&FIELDS);
    fields.finish(reader);
}

fn call(
    node: &mut Node,
    fallback: ExecType,
    fields: &mut Fields<'_>,
    reader: &mut Reader,
) -> Option<NodeKind> {
    let doer = Doer::of_node(fields, reader);
    let mut terms = Terms::read(fields, reader);
    // A call keeps its own time limit, per attempt.
    terms.timeout_ms = std::mem::take(&mut node.timeout_ms);
    let params = params(fields, reader);
    let (exec, service) = doer.exec(fallback, reader)?;
    Some(NodeKind::Call(Box::new(terms.call(exec, service, params))))
}

fn flow_ref(node: &mut Node, fields: &mut Fields<'_>, reader: &mut Reader) -> Option<NodeKind> {
    let mut terms = Terms::read(fields, reader);
    terms.timeout_ms = std::mem::take(&mut node.timeout_ms);
    let params = params(fields, reader);
    let version = version(fields, reader);
    let Some(flow) = fields.name("flow", reader) else {
        reader.error(fields.at("flow"), "the flow is missing: name the flow to run");
        return None;
    };
    let exec = Exec::Flow { flow: flow.to_owned(), version };
    Some(NodeKind::Call(Box::new(terms.call(exec, flow.to_owned(), params))))
}

/// A version number; absent and `latest` are the newest when the call is made.
pub(in crate::definition) fn version(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<u32> {
    match fields.value("version")? {
        Value::String(word) if word.is_empty() || word == "latest" => None,
        zero if reader.is_lenient() && is_blank(zero) => None,
        value => {
            let number = value.as_str().map_or_else(|| value.as_u64(), |text| text.parse().ok());
            let number = number.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
            if number.is_none() {
                reader.error(fields.at("version"), "a version is a number from 1, or `latest`");
            }
            number
        }
    }
}

pub(super) fn params(fields: &mut Fields<'_>, reader: &mut Reader) -> Params {
    fields.map("params", reader).cloned().unwrap_or_default().into()
}

/// Reads `prep`: a non-empty `input_map` wins over `input_key`.
pub(super) fn prep(fields: &mut Fields<'_>, reader: &mut Reader) -> Prep {
    let Some(mut prep) = fields.inner("prep", reader) else { return Prep::Scope };
    let key = prep
        .text("input_key", reader)
        .and_then(|key| reference(key, Root::Shared, &prep.at("input_key"), reader));
    let mut map = BTreeMap::new();
    let path = prep.at("input_map");
    for (to, from) in prep.map("input_map", reader).into_iter().flatten() {
        match Template::from_input_map(from) {
            Ok(template) => drop(map.insert(to.clone(), template)),
            Err(reason) => reader.error(at_key(&path, to), reason),
        }
    }
    prep.finish(reader);
    match key {
        _ if !map.is_empty() => Prep::Map(map),
        Some(key) => Prep::Key(key),
        None => Prep::Scope,
    }
}

/// A `$` reference, or a path that starts at `root`.
pub(super) fn reference(text: &str, root: Root, path: &str, reader: &mut Reader) -> Option<Ref> {
    let read = match parse_dollar(text) {
        Some(read) => read,
        None => parse_path(text).map(|path| Ref { root, path }),
    };
    read.map_err(|reason| reader.error(path, reason)).ok()
}

pub(super) fn post(fields: &mut Fields<'_>, reader: &mut Reader) -> Post {
    let Some(mut fields) = fields.inner("post", reader) else { return Post::default() };
    let mut post = Post::default();
    if let Some(key) = fields.text("output_key", reader) {
        reader.check_shared_key(key, &fields.at("output_key"));
        post.output_key = Some(key.to_owned());
    }
    let path = fields.at("output_map");
    for (key, field) in fields.map("output_map", reader).into_iter().flatten() {
        let path = at_key(&path, key);
        reader.check_shared_key(key, &path);
        let Some(field) = field.as_str() else {
            reader.error(path, "must be the path of a field of the result, as a string");
            continue;
        };
        if let Some(segments) = segments(field, &path, reader) {
            post.output_map.insert(key.clone(), segments);
        }
    }
    post.action_static = fields.name("action_static", reader).map(str::to_owned);
    let key = fields.text("action_key", reader);
    post.action_key = key.and_then(|key| segments(key, &fields.at("action_key"), reader));
    fields.finish(reader);
    post
}

/// A path into the result; `$result.x` is the same as `x`.
fn segments(text: &str, path: &str, reader: &mut Reader) -> Option<Vec<Seg>> {
    let bare = text.strip_prefix("$result.").unwrap_or(text);
    parse_path(bare).map_err(|reason| reader.error(path, reason)).ok()
}

fn choice(fields: &mut Fields<'_>, reader: &mut Reader) -> Choice {
    let default_action = fields.name("default_action", reader).map(str::to_owned);
    let path = fields.at("choice_cases");
    let mut cases = Vec::new();
    for (i, value) in fields.list("choice_cases", reader).unwrap_or_default().iter().enumerate() {
        let Some(mut case) = Fields::of(value, at_index(&path, i), reader) else { continue };
        let action = case.name("action", reader).map(str::to_owned);
        if action.is_none() {
            reader.error(case.at("action"), "a case needs an action");
        }
        let expr = match case.value("expr") {
            Some(expr) => json::JsonExpr::parse(expr, &case.at("expr"), &mut reader.problems),
            None => {
                reader.error(case.at("expr"), "a case needs an expression");
                None
            }
        };
        case.finish(reader);
        cases.extend(action.zip(expr.map(Condition::Json)));
    }
    Choice { cases, default_action }
}

fn subflow(fields: &mut Fields<'_>, depth: usize, reader: &mut Reader) -> Option<NodeKind> {
    let execs = subflow_execs(fields, reader);
    let doers = execs.iter().map(|exec| (exec.node.clone(), exec.doer.clone()));
    let doers: BTreeMap<String, Doer> = doers.filter(|(_, doer)| doer.is_given()).collect();
    let path = fields.at("subflow");
    let flow = fields.value("subflow").and_then(|value| Flow::read(value, &path, depth + 1, doers, reader));
    let on_failure = sub_failure(fields, reader);
    let scope = flow.and_then(|flow| flow.root);
    let mut overrides = BTreeMap::new();
    for NodeExec { node, params, path, .. } in execs {
        let index = scope.as_ref().map(|scope| &scope.index);
        if let Some(index) = index.filter(|index| !index.contains_key(&node)) {
            let reason = format!("the subflow has no node `{}`", shown(&node));
            reader.error_near(format!("{path}.node"), reason, &node, index.keys().map(String::as_str));
        } else if overrides.insert(node.clone(), params).is_some() {
            let reason = format!("node `{}` is given twice", shown(&node));
            reader.strict_error(format!("{path}.node"), reason, None);
        }
    }
    Some(NodeKind::Sub(Box::new(Sub { scope: scope?, overrides, on_failure })))
}

/// One of `subflow_execs`: fields of a node inside that are given here.
struct NodeExec {
    node: String,
    doer: Doer,
    params: Params,
    path: String,
}

fn subflow_execs(fields: &mut Fields<'_>, reader: &mut Reader) -> Vec<NodeExec> {
    let path = fields.at("subflow_execs");
    let mut execs = Vec::new();
    for (i, value) in fields.list("subflow_execs", reader).unwrap_or_default().iter().enumerate() {
        let Some(mut exec) = Fields::of(value, at_index(&path, i), reader) else { continue };
        let (doer, params) = (Doer::read(&mut exec, reader), params(&mut exec, reader));
        match exec.text("node", reader) {
            Some(node) => {
                execs.push(NodeExec { node: node.to_owned(), doer, params, path: exec.path.clone() })
            }
            None => reader.error(exec.at("node"), "name the node of the subflow that this is for"),
        }
        for idle in ["prep", "post", "index", "subflow"] {
            if exec.value(idle).is_some_and(|value| !is_blank(value)) {
                let reason = "has no effect: a node of a subflow can be given service, exec_type, func, script and params";
                reader.warning(exec.at(idle), reason);
            }
        }
        exec.finish(reader);
    }
    execs
}

/// The initial shared state of a subflow: the fields of its input, as far as they are known.
fn begins_with(prep: &Prep, reader: &Reader) -> Option<BTreeSet<String>> {
    match prep {
        Prep::Map(map) => Some(map.keys().cloned().collect()),
        Prep::Scope => reader.begins_with.clone(),
        Prep::Key(_) | Prep::Params(_) => None,
    }
}

fn sub_failure(fields: &mut Fields<'_>, reader: &mut Reader) -> SubFailure {
    #[derive(Clone, Copy, PartialEq)]
    enum Rule {
        Fail,
        Ignore,
        Retry,
    }
    const RULES: [(&str, Rule); 4] = [
        ("fail_fast", Rule::Fail),
        ("continue", Rule::Ignore),
        ("ignore_errors", Rule::Ignore),
        ("retry", Rule::Retry),
    ];
    let rule = fields.word("failure_strategy", &RULES, reader).unwrap_or(Rule::Fail);
    let max = fields.whole("max_retries", reader).unwrap_or(0);
    let wait = fields.whole("wait_ms", reader).unwrap_or(0);
    if rule != Rule::Retry && max > 0 {
        let reason = "has no effect on a subflow without `failure_strategy: retry`";
        reader.warning(fields.at("max_retries"), reason);
    }
    match rule {
        Rule::Fail => SubFailure::Fail,
        Rule::Ignore => SubFailure::Ignore,
        Rule::Retry => SubFailure::Restart(super::calls::policy(max, wait, crate::retry::Backoff::Fixed)),
    }
}
