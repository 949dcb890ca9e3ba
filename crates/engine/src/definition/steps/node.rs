//! One task of the steps form as a node.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::expansion::Task;
use super::tree::{Step, StepRole, Tree};
use super::{ExpandedTask, NodeDepth, StepsAround, build};
use crate::definition::graph::calls::{self, ExecType, Terms};
use crate::definition::graph::node::version;
use crate::definition::reader::{Fields, Reader, at_index, shown};
use crate::definition::refs;
use crate::params::Params;
use crate::plan::{Approval, Compute, Exec, Join, Loop, LoopOver, Node, NodeKind, Post, Prep, Recheck};
use crate::reference::{Ref, Root, Template, parse_dollar, parse_path};
use crate::retry::Backoff;

/// Makes the node of a task, and expands the body of a loop. A task that cannot be made becomes a no-op, so that the rest
/// can still be checked.
///
/// `flow` is the place of the flow that the task belongs to.
pub(super) fn read(
    task: &Task<'_, '_>,
    flow: &str,
    depth: NodeDepth,
    tree: &Tree,
    body: &mut Vec<ExpandedTask>,
    reader: &mut Reader,
) -> Node {
    let step = task.step;
    let mut node = Node {
        key: step.id.clone(),
        title: step.title.map(str::to_owned),
        task_id: Some(task.task_id.clone()),
        label: step.operator.to_owned(),
        kind: NodeKind::Pass,
        params: Params::default(),
        prep: Prep::Scope,
        post: Post::default(),
        out: Vec::new(),
        n_in: 0,
        join: Join::default(),
        timeout_ms: 0,
        place: super::after(flow, &step.path),
        group: task.group,
    };
    match step.role {
        StepRole::Trigger => node.prep = Prep::Key(Ref { root: Root::Params, path: Vec::new() }),
        StepRole::Parallel | StepRole::Branches => {}
        StepRole::Loop => {
            node.timeout_ms = step.settings.timeout_ms;
            let repeated = repeat(step, depth, tree, body, reader);
            node.kind = repeated.map_or(NodeKind::Pass, |repeated| NodeKind::Loop(Box::new(repeated)));
        }
        StepRole::Subflow => subflow(&mut node, step, reader),
        StepRole::Define
        | StepRole::Assign
        | StepRole::Return
        | StepRole::TextJoin
        | StepRole::TextSplit
        | StepRole::JsonGet
        | StepRole::JsonSet
        | StepRole::TimeNow
        | StepRole::Approval
        | StepRole::Service => {
            node.prep = parameters(step, reader);
            node.kind = kind(&mut node, step, tree, reader);
        }
    }
    warn_of_idle_settings(step, reader);
    node
}

fn kind(node: &mut Node, step: &Step<'_>, tree: &Tree, reader: &mut Reader) -> NodeKind {
    match step.role {
        StepRole::Define => {
            let variable = tree.variables.get(&step.id).unwrap_or(&step.id).clone();
            reader.check_shared_key(&variable, &format!("{}.parameters.name", step.path));
            NodeKind::Compute(Compute::Define { variable })
        }
        StepRole::Assign => match assigned(step, tree, reader) {
            Some(variable) => NodeKind::Compute(Compute::Assign { variable }),
            None => NodeKind::Pass,
        },
        StepRole::Return => NodeKind::Return,
        StepRole::TextJoin => NodeKind::Compute(Compute::TextJoin),
        StepRole::TextSplit => NodeKind::Compute(Compute::TextSplit),
        StepRole::JsonGet => NodeKind::Compute(Compute::JsonGet),
        StepRole::JsonSet => NodeKind::Compute(Compute::JsonSet),
        StepRole::TimeNow => NodeKind::Compute(Compute::TimeNow),
        StepRole::Approval => {
            node.timeout_ms = step.settings.timeout_ms;
            NodeKind::Approval(approval(step, reader))
        }
        StepRole::Trigger | StepRole::Parallel | StepRole::Branches | StepRole::Loop | StepRole::Subflow => {
            NodeKind::Pass
        }
        StepRole::Service => {
            let exec = match step.settings.exec_type.unwrap_or(ExecType::Queue) {
                ExecType::Http => Exec::Http,
                ExecType::Queue | ExecType::Func | ExecType::Script => Exec::Queue,
            };
            NodeKind::Call(Box::new(terms(step).call(exec, step.operator.to_owned(), Params::default())))
        }
    }
}

fn terms(step: &Step<'_>) -> Terms {
    Terms {
        retry: calls::policy(step.settings.retries, step.settings.retry_delay_ms, Backoff::Fixed),
        total_timeout_ms: step.settings.timeout_ms,
        cost: step.settings.cost.clone(),
        recheck: step.settings.recheck,
        priority: step.settings.priority,
        at_most_once: step.settings.at_most_once,
        ..Terms::default()
    }
}

fn parameters(step: &Step<'_>, reader: &mut Reader) -> Prep {
    let empty = Value::Object(Map::new());
    let path = format!("{}.parameters", step.path);
    template(step.parameters.unwrap_or(&empty), &path, reader).map_or(Prep::Scope, Prep::Params)
}

fn template(value: &Value, path: &str, reader: &mut Reader) -> Option<Template> {
    Template::from_steps(value).map_err(|reason| reader.error(path, reason)).ok()
}

fn fields<'v>(step: &Step<'v>, reader: &mut Reader) -> Option<Fields<'v>> {
    Fields::of(step.parameters?, format!("{}.parameters", step.path), reader)
}

/// The variable an assignment is to: a define step in any of its spellings, or a variable's name.
fn assigned(step: &Step<'_>, tree: &Tree, reader: &mut Reader) -> Option<String> {
    let mut given = fields(step, reader);
    let target = given.as_mut().and_then(|fields| {
        fields.text("target", reader).or_else(|| fields.text("name", reader)).map(str::to_owned)
    });
    let path = format!("{}.parameters.target", step.path);
    let Some(target) = target else {
        reader.error(path, "name the variable to assign to, as in `{{__id.value}}`");
        return None;
    };
    let bare = target.trim().trim_start_matches("{{").trim_end_matches("}}").trim();
    let bare = bare.strip_prefix("__").unwrap_or(bare);
    let bare = bare.strip_suffix(".value").unwrap_or(bare);
    let variable = match tree.variables.get(bare) {
        Some(variable) => variable.clone(),
        None if tree.variables.values().any(|variable| variable == bare) => bare.to_owned(),
        None => {
            let known: BTreeSet<&str> =
                tree.variables.iter().flat_map(|(id, name)| [id.as_str(), name.as_str()]).collect();
            let hint = reader.suggestion(bare, known);
            let reason = format!("no step defines `{}`", shown(bare));
            reader.hint_warning(path.clone(), reason, hint);
            bare.to_owned()
        }
    };
    reader.check_shared_key(&variable, &path);
    Some(variable)
}

fn approval(step: &Step<'_>, reader: &mut Reader) -> Approval {
    let none = Approval { key: None, assignees: Vec::new(), form: None };
    let Some(mut fields) = fields(step, reader) else { return none };
    let path = fields.at("approval_key");
    let key = fields.text("approval_key", reader).and_then(|text| {
        let read = parse_dollar(text)
            .unwrap_or_else(|| parse_path(text).map(|path| Ref { root: Root::Anywhere, path }));
        read.map_err(|reason| reader.error(path, reason)).ok()
    });
    Approval {
        key,
        assignees: fields.texts("assignees", reader).unwrap_or_default(),
        form: fields.map("form", reader).cloned().map(Value::Object),
    }
}

fn subflow(node: &mut Node, step: &Step<'_>, reader: &mut Reader) {
    let missing = format!("{}.parameters.flow", step.path);
    let Some(mut fields) = fields(step, reader) else {
        reader.error(missing, "the flow is missing: name the flow to call");
        return;
    };
    let empty = Value::Object(Map::new());
    let version = version(&mut fields, reader);
    let params = fields.value("params").unwrap_or(&empty);
    if !params.is_object() && !params.is_string() {
        reader.error(fields.at("params"), "must be an object");
    }
    if let Some(template) = template(params, &fields.at("params"), reader) {
        node.prep = Prep::Params(template);
    }
    match fields.name("flow", reader) {
        Some(flow) if flow.contains("{{") => {
            reader.error(missing, "the name of the flow cannot be a variable");
        }
        Some(flow) => {
            let exec = Exec::Flow { flow: flow.to_owned(), version };
            node.kind = NodeKind::Call(Box::new(terms(step).call(exec, flow.to_owned(), Params::default())));
        }
        None => reader.error(missing, "the flow is missing: name the flow to call"),
    }
    fields.finish(reader);
}

fn repeat(
    step: &Step<'_>,
    depth: NodeDepth,
    tree: &Tree,
    expanded: &mut Vec<ExpandedTask>,
    reader: &mut Reader,
) -> Option<Loop> {
    let given = fields(step, reader);
    let inside =
        NodeDepth { scopes: depth.scopes + 1, around: StepsAround::Loops(depth.around.n_loops() + 1) };
    let (body, tasks) = build(&step.body, &step.path, inside, tree, reader);
    *expanded = tasks;
    let Some(mut fields) = given else {
        reader.error(format!("{}.parameters", step.path), "a loop needs a `limit` or an `array`");
        return None;
    };
    let over = over(&mut fields, reader);
    let path = fields.at("outputs");
    let mut outputs = Vec::new();
    // Outputs are taken at the end of an iteration, so they see the body.
    reader.scopes.push(body.index.keys().cloned().collect());
    for (i, value) in fields.list("outputs", reader).unwrap_or_default().iter().enumerate() {
        let Some(mut output) = Fields::of(value, at_index(&path, i), reader) else { continue };
        let key = output.name("key", reader).map(str::to_owned);
        if key.is_none() {
            reader.error(output.at("key"), "the key of the output is missing");
        }
        let value = output.value("value").unwrap_or(&Value::Null);
        let template = template(value, &output.at("value"), reader);
        if let Some(template) = &template {
            refs::check_known(&template.refs(), &output.at("value"), reader);
        }
        output.allow(&["type", "description"]);
        output.finish(reader);
        outputs.extend(key.zip(template));
    }
    reader.scopes.pop();
    fields.finish(reader);
    Some(Loop { over: over?, body, outputs })
}

fn over(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<LoopOver> {
    const MODES: [(&str, bool); 2] = [("limit", false), ("array", true)];
    let mode = match fields.value("mode") {
        Some(_) => fields.word("mode", &MODES, reader)?,
        None => fields.map.contains_key("array"),
    };
    let (limit, array) = (fields.value("limit"), fields.value("array"));
    let (name, value) = if mode { ("array", array) } else { ("limit", limit) };
    let path = fields.at(name);
    let Some(value) = value else {
        reader.error(path, format!("a loop of this mode needs `{name}`"));
        return None;
    };
    let template = template(value, &path, reader)?;
    match &template {
        Template::Literal(literal) if mode && !literal.is_array() => {
            reader.error(path, "must be an array, or a variable that is one");
            None
        }
        Template::Literal(literal) if !mode && count_of(literal).is_none() => {
            reader.error(path, "must be a whole number from 0, or a variable that is one");
            None
        }
        Template::Literal(_)
        | Template::Ref(_)
        | Template::Text(_)
        | Template::Array(_)
        | Template::Object(_) => {
            Some(if mode { LoopOver::Array(template) } else { LoopOver::Limit(template) })
        }
    }
}

fn count_of(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn warn_of_idle_settings(step: &Step<'_>, reader: &mut Reader) {
    let calls = matches!(step.role, StepRole::Service | StepRole::Subflow);
    let waits = calls || matches!(step.role, StepRole::Approval | StepRole::Loop);
    let path = format!("{}.settings", step.path);
    if step.settings.retries > 0 && !calls {
        reader.warning(format!("{path}.retry"), "has no effect: this step cannot fail and be tried again");
    }
    if step.settings.timeout_ms > 0 && !waits {
        reader.warning(format!("{path}.timeout"), "has no effect: this step takes no time");
    }
    if step.settings.priority.is_some() && !calls {
        let reason =
            "has no effect: this step makes no call; set the priority of the flow, or of steps inside";
        reader.strict_error(format!("{path}.priority"), reason.to_owned(), None);
    }
    if step.settings.recheck != Recheck::OfService && step.role != StepRole::Service {
        let reason = "has no effect: this step makes no call that can be suspended";
        let name =
            if step.settings.recheck == Recheck::UntilReported { "until_reported" } else { "recheck_ms" };
        reader.strict_error(format!("{path}.{name}"), reason.to_owned(), None);
    }
}
