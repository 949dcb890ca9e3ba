//! Starting a run: its parameters are checked against the plan before anything happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Decider;
use super::outside::is_reserved;
use crate::definition::of_node;
use crate::event::{Event, ExecMode, Level, Start};
use crate::input::Refusal;
use crate::money::{Amount, Price};
use crate::path::NodePath;
use crate::plan::{Form, Payer, Plan, Routing, Variable, VariableKind, When};
use crate::problem::{Problem, Problems, did_you_mean};
use crate::run::apply::chosen;
use crate::run::state::Status;
use crate::text::a_type;

/// Lines about reads of nodes that take no part, of one start.
const MISSED_MAX: usize = 100;

impl Decider<'_> {
    pub(super) fn start(&self, start: &Start) -> Result<Vec<Event>, Refusal> {
        if self.run.status != Status::Pending {
            return Err(Refusal::AlreadyStarted);
        }
        let problems = check(self.plan, start);
        if !problems.is_empty() {
            return Err(Refusal::Bad(problems));
        }
        let mut start = start.clone();
        let defaults = self
            .plan
            .variables
            .iter()
            .filter_map(|(name, variable)| Some((name.clone(), variable.default.clone()?)));
        let defaults: Map<String, Value> = defaults.collect();
        start.params = start.params.over(&defaults.into()).compact();
        // A run carries the prices and the settings that it can need, however many there are.
        if !(start.prices.is_empty() && start.services.is_empty())
            && let Some(called) = self.plan.services()
        {
            start.prices = priced(&start.prices, &called);
            start.services.retain(|service, _| called.contains(service.as_str()));
        }
        let missed = missed(self.plan, &start);
        let mut events = vec![Event::Started(Box::new(start))];
        events.extend(missed);
        Ok(events)
    }
}

/// The prices of the called services; costs the number of calls, not of prices.
fn priced(all: &Arc<BTreeMap<String, Price>>, called: &BTreeSet<&str>) -> Arc<BTreeMap<String, Price>> {
    let found: Vec<_> = called.iter().filter_map(|service| all.get_key_value(*service)).collect();
    if found.len() == all.len() {
        return all.clone();
    }
    Arc::new(found.into_iter().map(|(service, price)| (service.clone(), price.clone())).collect())
}

/// Reads that an exec mode makes useless: results of nodes that take no part, read by nodes or by the conditions of their
/// edges. Logged once, at the start, so that the inputs of workers and the path of the run can be explained.
fn missed(plan: &Plan, start: &Start) -> Vec<Event> {
    let Some(chosen) = chosen(&plan.root, start) else { return Vec::new() };
    let mut events = Vec::new();
    for ix in chosen.n_in.keys() {
        let node = &plan.root.nodes[*ix];
        let edges = node.out.iter().filter(|edge| edge.to.is_some_and(|to| chosen.n_in.contains_key(&to)));
        let conditions = edges.filter_map(|edge| match &edge.when {
            When::If(condition) => Some(condition.refs()),
            When::Always | When::Action(_) => None,
        });
        let absent: BTreeSet<&str> = of_node(node)
            .into_iter()
            .chain(conditions.flatten())
            .filter_map(|reference| reference.node())
            .filter(|name| plan.root.node(name).is_some_and(|(named, _)| !chosen.n_in.contains_key(&named)))
            .collect();
        events.extend(absent.into_iter().take(MISSED_MAX).map(|name| Event::Logged {
            level: Level::Warn,
            node: Some(NodePath::root().child(&node.key)),
            message: format!("reads `{name}`, which takes no part in this run: what it reads is null"),
        }));
    }
    events.truncate(MISSED_MAX);
    events
}

/// Every problem with the parameters of a run of this plan.
pub fn check(plan: &Plan, start: &Start) -> Vec<Problem> {
    let mut problems = Problems::default();
    if plan.stopped {
        problems.error_hint(
            "$.status",
            "the flow is stopped",
            Some("publish a version with status `normal`".to_owned()),
        );
    }
    for key in start.params.fields().into_keys().filter(|key| is_reserved(key)) {
        problems.error(format!("$.params.{key}"), "is reserved and cannot be given");
    }
    for (key, excess) in start.params.excess() {
        problems.error(format!("$.params.{key}"), excess.to_string());
    }
    check_variables(plan, start, &mut problems);
    check_starts(plan, start, &mut problems);
    if plan.payer == Payer::Starter && start.account.is_none() {
        let hint = "name the account that pays for the run".to_owned();
        problems.error_hint("$.account", "is required by the flow and was not given", Some(hint));
    }
    if start.budget.is_some_and(|budget| budget < Amount::ZERO) {
        problems.error("$.budget", "must not be negative");
    }
    if start.parent.as_ref().is_some_and(|parent| parent.depth as usize > crate::limits::DEPTH) {
        problems.error("$.parent", too_deep(&start.chain));
    }
    problems.into_list()
}

/// Says who called whom, in the middle no more than that it went on.
fn too_deep(chain: &[String]) -> String {
    let limit = crate::limits::DEPTH;
    let shown: Vec<&str> = match chain {
        [] => return format!("flows call flows more than {limit} deep: a flow that calls itself?"),
        [first, second, third, .., before, last] if chain.len() > 6 => {
            vec![first, second, third, "…", before, last]
        }
        few => few.iter().map(String::as_str).collect(),
    };
    format!("flows call flows more than {limit} deep: {}", shown.join(" → "))
}

fn check_variables(plan: &Plan, start: &Start, problems: &mut Problems) {
    if plan.form != Form::Dag || plan.variables.is_empty() {
        return;
    }
    for (name, variable) in &plan.variables {
        let given = start.params.get(name).or(variable.default.as_ref());
        match given {
            None | Some(Value::Null) if variable.required => {
                problems.error(format!("$.variables.{name}"), "is required and was not given");
            }
            // Only a default may say that there is none.
            Some(value) if !start.params.contains_key(name) && variable.kind.is_none(value) => {
                if variable.required {
                    problems.error(format!("$.variables.{name}"), "is required and was not given");
                }
            }
            None | Some(Value::Null) => {}
            Some(value) => {
                if let Some(reason) = variable.kind.refuses(value) {
                    problems.error(format!("$.variables.{name}"), reason);
                }
            }
        }
    }
    for name in start.params.fields().into_keys().filter(|name| !plan.variables.contains_key(*name)) {
        let hint = did_you_mean(name, plan.variables.keys().map(String::as_str));
        problems.error_hint(format!("$.variables.{name}"), "is not declared by the flow", hint);
    }
}

fn check_starts(plan: &Plan, start: &Start, problems: &mut Problems) {
    if start.exec_mode == ExecMode::All {
        if !start.start_node_ids.is_empty() {
            problems.error("$.start_node_ids", "goes with exec_mode `specified_starts` or `isolated_nodes`");
        }
        return;
    }
    if !matches!(plan.root.routing, Routing::Join { .. }) {
        problems.error("$.exec_mode", "only flows of the dag and steps forms have exec modes");
        return;
    }
    if start.start_node_ids.is_empty() {
        problems.error("$.start_node_ids", "names no node: this exec_mode needs at least one");
    }
    for (at, id) in start.start_node_ids.iter().enumerate() {
        if plan.root.node(id).is_none() {
            let hint = did_you_mean(id, plan.root.index.keys().map(String::as_str));
            problems.error_hint(format!("$.start_node_ids[{at}]"), format!("there is no node `{id}`"), hint);
        }
    }
}

impl Variable {
    /// Why a value cannot be the default of this variable.
    pub fn refuses_default(&self, value: &Value) -> Option<String> {
        if self.kind.is_none(value) { None } else { self.kind.refuses(value) }
    }
}

/// Whether a text names a place: a scheme, `://`, and something after it, without blanks.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let mut letters = scheme.chars();
    let begins_well = letters.next().is_some_and(|first| first.is_ascii_alphabetic());
    begins_well
        && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'))
        && !rest.is_empty()
        && (scheme == "file" || !rest.starts_with(['/', '?', '#']))
        && !text.chars().any(|letter| letter.is_whitespace() || letter.is_control())
}

impl VariableKind {
    /// Why a value is not of this kind.
    fn refuses(self, value: &Value) -> Option<String> {
        let accepts = match self {
            VariableKind::String => value.is_string(),
            VariableKind::Number => value.is_number(),
            VariableKind::Boolean => value.is_boolean(),
            VariableKind::Url => value.as_str().is_some_and(is_url),
            VariableKind::Object => value.is_object(),
            VariableKind::Array => value.is_array(),
        };
        if accepts {
            return None;
        }
        Some(match self == VariableKind::Url && value.is_string() {
            true => "must be a URL, such as `https://example.com/a.png`".to_owned(),
            false => format!("must be {}, not {}", self.word(), a_type(value)),
        })
    }

    /// Whether a value is the word for none: an empty text where a URL is wanted.
    fn is_none(self, value: &Value) -> bool {
        self == VariableKind::Url && value.as_str().is_some_and(str::is_empty)
    }

    fn word(self) -> &'static str {
        match self {
            VariableKind::String => "a string",
            VariableKind::Number => "a number",
            VariableKind::Boolean => "a boolean",
            VariableKind::Url => "a URL",
            VariableKind::Object => "an object",
            VariableKind::Array => "an array",
        }
    }
}
