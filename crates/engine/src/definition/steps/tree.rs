//! The tree of steps as it is written, every field read once.

use std::collections::BTreeMap;

use serde_json::Value;

use super::PRIORITIES;
use crate::definition::graph::calls::{self, ExecType};
use crate::definition::reader::{Fields, Reader, at_index, shown};
use crate::expr::Condition;
use crate::expr::steps::Test;
use crate::limits;
use crate::money::Cost;
use crate::plan::{Priority, Recheck};

/// The kind of a step, by its operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepRole {
    Trigger,
    Parallel,
    Branches,
    Loop,
    Define,
    Assign,
    Return,
    TextJoin,
    TextSplit,
    JsonGet,
    JsonSet,
    TimeNow,
    Approval,
    Subflow,
    Service,
}

const OPERATORS: [(&str, StepRole); 13] = [
    ("@control/flow/parallel", StepRole::Parallel),
    ("@control/flow/branches", StepRole::Branches),
    ("@control/flow/loop", StepRole::Loop),
    ("@internal/define", StepRole::Define),
    ("@internal/assign", StepRole::Assign),
    ("@internal/return", StepRole::Return),
    ("@internal/text/join", StepRole::TextJoin),
    ("@internal/text/split", StepRole::TextSplit),
    ("@internal/json/get", StepRole::JsonGet),
    ("@internal/json/set", StepRole::JsonSet),
    ("@internal/time/now", StepRole::TimeNow),
    ("@workflow/approval", StepRole::Approval),
    ("@subflow/call", StepRole::Subflow),
];

pub(super) struct Step<'v> {
    pub(super) id: String,
    pub(super) title: Option<&'v str>,
    pub(super) operator: &'v str,
    pub(super) role: StepRole,
    pub(super) parameters: Option<&'v Value>,
    pub(super) settings: Settings,
    /// `None` = the step before.
    pub(super) depend_on: Option<Vec<String>>,
    pub(super) branches: Vec<StepsBranch<'v>>,
    /// The body of a loop.
    pub(super) body: Vec<Step<'v>>,
    pub(super) path: String,
}

pub(super) struct StepsBranch<'v> {
    /// `None` = always.
    pub(super) condition: Option<Condition>,
    pub(super) steps: Vec<Step<'v>>,
}

#[derive(Default)]
pub(super) struct Settings {
    pub(super) retries: u64,
    pub(super) retry_delay_ms: u64,
    pub(super) timeout_ms: u64,
    pub(super) exec_type: Option<ExecType>,
    pub(super) at_most_once: bool,
    pub(super) cost: Option<Cost>,
    pub(super) recheck: Recheck,
    pub(super) priority: Option<Priority>,
}

/// Facts about all steps of one flow.
#[derive(Default)]
pub(super) struct Tree {
    /// Where each id stands.
    pub(super) ids: BTreeMap<String, String>,
    /// The variable each `@internal/define` makes, by its step's id.
    pub(super) variables: BTreeMap<String, String>,
    n_branches: usize,
    /// The steps with branches around the place that is being read, outermost first.
    around: Vec<(String, StepRole)>,
    /// Ids that look like the id of a step in a turn, without their numbers, and how many numbers they have.
    pub(super) like_turns: BTreeMap<(String, usize), String>,
}

impl Tree {
    /// Notes an id that ends like that of a step in a turn: `a_i0` could be step `a` in turn 0.
    fn note_like_turns(&mut self, id: &str) {
        let mut base = id;
        for n in 1..=limits::DEPTH {
            let Some((before, number)) = base.rsplit_once("_i") else { return };
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return;
            }
            self.like_turns.insert((before.to_owned(), n), id.to_owned());
            base = before;
        }
    }
}

/// Reads a row of steps and everything inside it. `None` if there are too many of them.
pub(super) fn read<'v>(
    list: &'v [Value],
    path: &str,
    depth: usize,
    tree: &mut Tree,
    reader: &mut Reader,
) -> Option<Vec<Step<'v>>> {
    if !reader.admit_depth(depth, path) || !reader.admit_nodes(list.len(), path) {
        return None;
    }
    let mut steps = Vec::with_capacity(list.len());
    for (i, value) in list.iter().enumerate() {
        let Some(fields) = Fields::of(value, at_index(path, i), reader) else { continue };
        let may_trigger = i == 0 && tree.ids.is_empty();
        steps.extend(step(fields, may_trigger, depth, tree, reader));
    }
    Some(steps)
}

fn step<'v>(
    mut fields: Fields<'v>,
    may_trigger: bool,
    depth: usize,
    tree: &mut Tree,
    reader: &mut Reader,
) -> Option<Step<'v>> {
    let id = fields.id("id", reader).unwrap_or_default().into_owned();
    let title = fields.text("title", reader).or_else(|| fields.text("name", reader));
    fields.text("description", reader);
    let operator = fields.name("operator", reader);
    if operator.is_none() {
        reader.error(fields.at("operator"), "the operator is missing");
    }
    let role = operator.and_then(|operator| role(operator, may_trigger, &fields, reader));
    if reader.check_key(&id, &fields.at("id")) {
        match tree.ids.get(&id) {
            Some(first) => {
                let reason = format!("the id `{}` is taken by {first}", shown(&id));
                reader.error(fields.at("id"), reason);
            }
            None => drop(tree.ids.insert(id.clone(), fields.path.clone())),
        }
        tree.note_like_turns(&id);
    }
    let parameters = fields.value("parameters");
    if parameters.is_some_and(|parameters| !parameters.is_object()) {
        reader.error(fields.at("parameters"), "must be an object");
    }
    let mut step = Step {
        id,
        title,
        operator: operator.unwrap_or_default(),
        role: role.unwrap_or(StepRole::Service),
        parameters: parameters.filter(|parameters| parameters.is_object()),
        settings: settings(&mut fields, reader),
        depend_on: depend_on(&mut fields, reader),
        branches: Vec::new(),
        body: Vec::new(),
        path: fields.path.clone(),
    };
    contents(&mut step, &mut fields, depth, tree, reader);
    if step.role == StepRole::Define {
        let name = step.parameters.and_then(|parameters| parameters.get("name")?.as_str());
        let name = name.filter(|name| !name.is_empty()).unwrap_or(&step.id).to_owned();
        tree.variables.insert(step.id.clone(), name);
    }
    fields.finish(reader);
    (operator.is_some() && role.is_some()).then_some(step)
}

fn role(operator: &str, may_trigger: bool, fields: &Fields<'_>, reader: &mut Reader) -> Option<StepRole> {
    if let Some((_, role)) = OPERATORS.iter().find(|(name, _)| *name == operator) {
        return Some(*role);
    }
    if is_trigger(operator) {
        if !may_trigger {
            reader.error(fields.at("operator"), "a trigger can only be the first step of a flow");
        }
        return Some(StepRole::Trigger);
    }
    let known = OPERATORS.iter().map(|(name, _)| *name);
    if operator.starts_with("@control/flow/") {
        let reason = format!("unknown operator `{}`", shown(operator));
        reader.error_near(fields.at("operator"), reason, operator, known);
        return None;
    }
    if operator.starts_with("@internal/")
        && let Some(hint) = reader.suggestion(operator, known)
    {
        let reason = format!("`{}` is taken as the name of a service", shown(operator));
        reader.hint_warning(fields.at("operator"), reason, Some(hint));
    }
    Some(StepRole::Service)
}

/// `@trigger/…` and `@anything-trigger/…`.
fn is_trigger(operator: &str) -> bool {
    let family = operator.strip_prefix('@').and_then(|rest| rest.split_once('/')).map(|(family, _)| family);
    family.is_some_and(|family| family == "trigger" || family.ends_with("-trigger"))
}

/// Reads the inside of a step: branches or a body.
fn contents<'v>(
    step: &mut Step<'v>,
    fields: &mut Fields<'v>,
    depth: usize,
    tree: &mut Tree,
    reader: &mut Reader,
) {
    let branches_path = fields.at("branches");
    let steps_path = fields.at("steps");
    let branches = fields.list("branches", reader);
    let body = fields.list("steps", reader);
    let forked = matches!(step.role, StepRole::Parallel | StepRole::Branches);
    if branches.is_some_and(|list| !list.is_empty()) && !forked {
        let reason = "only `@control/flow/parallel` and `@control/flow/branches` have branches";
        reader.error(branches_path.clone(), reason);
    }
    if body.is_some_and(|list| !list.is_empty()) && step.role != StepRole::Loop {
        reader.error(steps_path.clone(), "only `@control/flow/loop` has steps of its own");
    }
    if forked {
        let list = branches.unwrap_or_default();
        tree.n_branches = tree.n_branches.saturating_add(list.len());
        if tree.n_branches > limits::NODES {
            reader.error(branches_path, format!("more than {} branches", limits::NODES));
            return;
        }
        tree.around.push((step.id.clone(), step.role));
        if tree.around.len() > limits::NESTED_BRANCHES {
            refuse_nesting(&tree.around, branches_path, reader);
            tree.around.pop();
            return;
        }
        for (i, value) in list.iter().enumerate() {
            let Some(fields) = Fields::of(value, at_index(&branches_path, i), reader) else { continue };
            step.branches.extend(branch(fields, step.role, depth, tree, reader));
        }
        tree.around.pop();
    }
    if step.role == StepRole::Loop {
        let list = body.unwrap_or_default();
        if list.is_empty() {
            reader.error(steps_path.clone(), "a loop needs steps to repeat");
        }
        step.body = read(list, &steps_path, depth + 1, tree, reader).unwrap_or_default();
    }
}

/// Names the steps that stand inside one another, the middle ones left out.
fn refuse_nesting(around: &[(String, StepRole)], path: String, reader: &mut Reader) {
    let names: Vec<String> = around.iter().map(|(id, _)| shown(id)).collect();
    let chain = match &names[..] {
        [first, second, third, .., before, last] => {
            format!("{first} → {second} → {third} → … → {before} → {last}")
        }
        few => few.join(" → "),
    };
    let all_parallel = around.iter().all(|(_, role)| *role == StepRole::Parallel);
    let kind = if all_parallel { "parallels" } else { "parallels and branches" };
    let reason = format!("{kind} are nested deeper than {} levels: {chain}", limits::NESTED_BRANCHES);
    reader.hint_error(
        path,
        reason,
        "move the inner ones to a flow of their own, and call it with `@subflow/call`",
    );
}

fn branch<'v>(
    mut fields: Fields<'v>,
    role: StepRole,
    depth: usize,
    tree: &mut Tree,
    reader: &mut Reader,
) -> Option<StepsBranch<'v>> {
    for name in ["id", "title", "name", "description"] {
        fields.value(name);
    }
    let path = fields.at("conditions");
    let condition = match fields.value("conditions") {
        Some(Value::Array(list)) if list.is_empty() => None,
        Some(_) if role == StepRole::Parallel => {
            let reason = "branches of a parallel always run; use `@control/flow/branches` for conditions";
            reader.error(path, reason);
            None
        }
        Some(value) => Test::parse(value, &path, &mut reader.problems).map(Condition::Steps),
        None => None,
    };
    let path = fields.at("steps");
    let list = fields.list("steps", reader).unwrap_or_default();
    // Branches are no scopes of their own, but reading them recurses like one.
    let steps = read(list, &path, depth + 1, tree, reader)?;
    fields.finish(reader);
    Some(StepsBranch { condition, steps })
}

fn depend_on(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<Vec<String>> {
    let list = fields.list("dependOn", reader)?;
    let path = fields.at("dependOn");
    let mut ids = Vec::with_capacity(list.len());
    for (i, value) in list.iter().enumerate() {
        match value {
            Value::String(id) => ids.push(id.clone()),
            Value::Number(n) if n.is_u64() => ids.push(n.to_string()),
            _ => reader.error(at_index(&path, i), "must be the id of a step"),
        }
    }
    Some(ids)
}

fn settings(fields: &mut Fields<'_>, reader: &mut Reader) -> Settings {
    const EXEC_TYPES: [(&str, ExecType); 2] = [("queue", ExecType::Queue), ("http", ExecType::Http)];
    let mut settings = Settings::default();
    let Some(mut given) = fields.inner("settings", reader) else { return settings };
    if let Some(mut retry) = given.inner("retry", reader) {
        if retry.value("max").is_none() {
            reader.error(retry.at("max"), "say how many more tries there are, from 1 to 10");
        }
        settings.retries = retry.between("max", (1, 10), "", reader).unwrap_or(0);
        settings.retry_delay_ms = retry.between("delay", (1, 60), " seconds", reader).unwrap_or(1) * 1_000;
        retry.finish(reader);
    }
    if let Some(mut timeout) = given.inner("timeout", reader) {
        if timeout.value("delay").is_none() {
            reader.error(timeout.at("delay"), "say how long it may take, from 1 to 86400 seconds");
        }
        settings.timeout_ms = timeout.between("delay", (1, 86_400), " seconds", reader).unwrap_or(0) * 1_000;
        timeout.finish(reader);
    }
    settings.exec_type = given.word("exec_type", &EXEC_TYPES, reader);
    settings.at_most_once = given.flag("at_most_once", reader).unwrap_or(false);
    settings.cost = calls::cost(&mut given, reader);
    settings.recheck = calls::recheck(&mut given, reader);
    settings.priority = given.word("priority", &PRIORITIES, reader);
    given.finish(reader);
    settings
}
