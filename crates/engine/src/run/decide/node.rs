//! Entering a node, and its first action.

use std::sync::Arc;

use serde_json::Value;

use super::{Decider, action_text, prepare, warning};
use crate::compute;
use crate::counter::Fence;
use crate::event::{Event, Waiting};
use crate::meter::{BYTES_PER_STEP, steps_of};
use crate::number::Num;
use crate::params::Params;
use crate::path::NodePath;
use crate::plan::{Body, Branches, Choice, Compute, Fan, Join, LoopOver, NodeKind, Routing, Strategy, Timer};
use crate::reference::{Facts, Seg, Template, dig};
use crate::retry::{Fault, FaultKind};
use crate::run::view::NodeRef;
use crate::text::type_name;
use crate::time::Timestamp;
use crate::weight::{Excess, weigh, weigh_refs};

impl Decider<'_> {
    pub(super) fn enter(&self, path: &NodePath) -> Vec<Event> {
        let spot = self.spot(path);
        let level = spot.level;
        if is_dead(&spot) {
            return vec![Event::Skipped { node: path.clone() }];
        }
        if self.run.entries >= crate::limits::VISITS.saturating_add(self.run.spare_entries) {
            let message =
                format!("more than {} nodes were entered: a cycle without end?", crate::limits::VISITS);
            let fault = Fault::new(FaultKind::Limit, message).permanent();
            return vec![spot.failed(path, Fence::ZERO, fault, None)];
        }
        let view = spot.view(self.run, &level.state.input);
        let templates = spot.node.prep.templates().chain(spot.node.kind.over());
        match weigh_templates(templates, &view) {
            Ok(bytes) if self.given.meter.spend_bytes(bytes).is_err() => return Vec::new(),
            Ok(_) => {}
            Err(excess) => return vec![spot.excessive(path, Fence::ZERO, "the input", excess, None)],
        }
        let input = match &spot.node.kind {
            NodeKind::Loop(plan) => match &plan.over {
                LoopOver::Limit(template) | LoopOver::Array(template) => Some(template.resolve(&view)),
            },
            _ => prepare(&spot.node.prep, &view),
        };
        let input = input.map_or_else(|| level.state.input.clone(), Arc::new);
        if let Err(excess) = weigh(&input) {
            return vec![spot.excessive(path, Fence::ZERO, "the input", excess, None)];
        }
        vec![Event::Entered { node: path.clone(), visit: self.run.visits.next(), input }]
    }

    pub(super) fn begin(&self, path: &NodePath) -> Vec<Event> {
        let spot = self.spot(path);
        if let Some(arm) = &spot.branch {
            return match &arm.branch.body {
                Body::Call(_) => self.call(&spot, path).grant(),
                Body::Scope(_) => vec![opened(path, 0)],
            };
        }
        match &spot.node.kind {
            NodeKind::Call(_) => self.call(&spot, path).grant(),
            NodeKind::Choice(choice) => self.choose(&spot, path, choice),
            NodeKind::Fan(fan) => vec![open_fan(&spot, path, fan)],
            NodeKind::Sub(_) => vec![opened(path, 0)],
            NodeKind::Loop(plan) => vec![open_loop(&spot, path, &plan.over)],
            NodeKind::Timer(timer) => vec![self.open_timer(&spot, path, timer)],
            NodeKind::Wait(_) | NodeKind::Approval(_) => vec![self.open_wait(&spot, path)],
            NodeKind::Compute(compute) => self.compute(&spot, path, compute),
            NodeKind::Pass | NodeKind::Return => vec![spot.done(path, spot.state.input.clone(), None)],
        }
    }

    fn choose(&self, spot: &NodeRef<'_, '_>, path: &NodePath, choice: &Choice) -> Vec<Event> {
        let view = spot.view(self.run, &spot.state.input);
        let mut events = Vec::new();
        let hit = choice.cases.iter().find_map(|(action, condition)| {
            match condition.holds(&view, &self.given.meter) {
                Ok(true) => Some(action.clone()),
                Ok(false) => None,
                Err(reason) => {
                    events.push(warning(path, format!("case `{action}` counts as false: {reason}")));
                    None
                }
            }
        });
        let post = &spot.node.post;
        let action = hit
            .or_else(|| post.action_static.clone())
            .or_else(|| {
                post.action_key.as_deref().and_then(|key| keyed_action(key, &spot.state.input, &view))
            })
            .or_else(|| choice.default_action.clone());
        events.push(spot.done(path, spot.state.input.clone(), action));
        events
    }

    fn compute(&self, spot: &NodeRef<'_, '_>, path: &NodePath, compute: &Compute) -> Vec<Event> {
        let view = spot.view(self.run, &spot.state.input);
        if let Compute::Test(condition) = compute {
            let (flag, mut events) = match condition.holds(&view, &self.given.meter) {
                Ok(flag) => (flag, Vec::new()),
                Err(reason) => (false, vec![warning(path, format!("counts as false: {reason}"))]),
            };
            events.push(spot.done(path, Arc::new(Value::Bool(flag)), Some(flag.to_string())));
            return events;
        }
        let steps = match compute {
            Compute::Set(entries) | Compute::Outputs(entries) => {
                match weigh_templates(entries.iter().map(|(_, template)| template), &view) {
                    Ok(bytes) => bytes / BYTES_PER_STEP,
                    Err(excess) => {
                        return vec![spot.excessive(path, Fence::ZERO, "the output", excess, None)];
                    }
                }
            }
            _ => steps_of(&spot.state.input),
        };
        if self.given.meter.spend(steps).is_err() {
            return Vec::new();
        }
        match compute::evaluate(compute, &spot.state.input, &view, self.given) {
            Ok(output) => vec![spot.done(path, Arc::new(output), None)],
            Err(message) => vec![spot.bad_input(path, message)],
        }
    }

    fn open_timer(&self, spot: &NodeRef<'_, '_>, path: &NodePath, timer: &Timer) -> Event {
        let view = spot.view(self.run, &spot.state.input);
        let until = match timer {
            Timer::Delay(template) => {
                let value = template.resolve(&view);
                Num::duration_ms(&value, 1).map(|ms| self.given.now.after(ms)).ok_or_else(|| {
                    format!("the delay must be a number of milliseconds from 0 up, not {value}")
                })
            }
            Timer::Seconds(template) => {
                let value = template.resolve(&view);
                Num::duration_ms(&value, 1_000)
                    .map(|ms| self.given.now.after(ms))
                    .ok_or_else(|| format!("the delay must be a number of seconds from 0 up, not {value}"))
            }
            Timer::Until(template) => {
                let value = template.resolve(&view);
                return match value.as_str().and_then(Timestamp::parse_rfc3339) {
                    Some(moment) => self.wait_for_wall(path, moment),
                    None => spot.bad_input(
                        path,
                        format!("`until` must be a time like 2026-11-15T09:00:00Z, not {value}"),
                    ),
                };
            }
        };
        match until {
            Ok(until) => Event::Waiting { node: path.clone(), wait: Waiting::Timer { until, wall: None } },
            Err(message) => spot.bad_input(path, message),
        }
    }

    fn open_wait(&self, spot: &NodeRef<'_, '_>, path: &NodePath) -> Event {
        if let Some(arrived) = self.arrival(spot, path) {
            return arrived;
        }
        let ms = spot.node.timeout_ms;
        let until = (ms > 0).then(|| self.given.now.after(ms));
        let wait = match &spot.node.kind {
            NodeKind::Approval(_) => Waiting::Approval { until },
            _ => Waiting::Signal { until },
        };
        Event::Waiting { node: path.clone(), wait }
    }

    /// The place an item of the agenda names. Items are made from the plan, so it is always there.
    pub(super) fn spot<'s>(&'s self, path: &NodePath) -> NodeRef<'s, 's> {
        self.run.spot(self.plan, path).expect("the agenda names places of the run")
    }
}

/// A subflow, a branch or a loop opens.
pub(super) fn opened(path: &NodePath, n: usize) -> Event {
    Event::Opened { node: path.clone(), n, names: Vec::new(), all: false }
}

fn open_fan(spot: &NodeRef<'_, '_>, path: &NodePath, fan: &Fan) -> Event {
    let all = fan.strategy == Strategy::All;
    let opened = |n, names| Event::Opened { node: path.clone(), n, names, all };
    match &fan.branches {
        Branches::Fixed(list) => opened(list.len(), Vec::new()),
        Branches::Services { .. } => match service_names(&spot.params()) {
            Ok(names) => opened(names.len(), names),
            Err(message) => spot.bad_input(path, message),
        },
        Branches::Items { .. } => match &*spot.state.input {
            Value::Array(items) if items.len() > crate::limits::FAN_BRANCHES => {
                let most = crate::limits::FAN_BRANCHES;
                spot.bad_input(path, format!("{} items are too many: at most {most}", items.len()))
            }
            Value::Array(items) => opened(items.len(), Vec::new()),
            other => {
                let found = type_name(other);
                spot.bad_input(path, format!("foreach needs an array, its input is {found}"))
            }
        },
    }
}

fn open_loop(spot: &NodeRef<'_, '_>, path: &NodePath, over: &LoopOver) -> Event {
    let n = match (over, &*spot.state.input) {
        (LoopOver::Array(_), Value::Array(items)) => Ok(items.len()),
        (LoopOver::Array(_), other) => Err(format!("a loop over an array got {}", type_name(other))),
        (LoopOver::Limit(_), value) => whole(value)
            .and_then(|n| usize::try_from(n).ok())
            .ok_or_else(|| format!("the loop's limit must be a whole number from 0 up, not {value}")),
    };
    let most = crate::limits::FAN_BRANCHES;
    match n {
        Ok(n) if n <= most => opened(path, n),
        Ok(n) => spot.bad_input(path, format!("{n} turns are too many: at most {most}")),
        Err(message) => spot.bad_input(path, message),
    }
}

/// Whether a ready node of a join scope is skipped: no live edge leads to it and it needs one, or one of its
/// dependencies failed. Where a run starts by name, nothing leads there and nothing needs to.
pub(super) fn is_dead(spot: &NodeRef<'_, '_>) -> bool {
    let level = spot.level;
    let started = level.state.chosen.as_ref().is_some_and(|chosen| chosen.starts.contains(&spot.ix));
    let joins = matches!(level.scope.routing, Routing::Join { .. }) && spot.state.n_in_settled > 0;
    let needs_live = spot.node.join == Join::AnyLive;
    joins && !started && (spot.state.blocked || needs_live && spot.state.n_in_live == 0)
}

/// The bytes that the references of these templates bring, if their value is small enough to be made at all.
pub(super) fn weigh_templates<'t>(
    templates: impl Iterator<Item = &'t Template>,
    facts: &dyn Facts,
) -> Result<usize, Excess> {
    let refs: Vec<_> = templates.flat_map(Template::refs).collect();
    weigh_refs(&refs, facts)
}

/// A choice's `action_key`: in its input, then in shared.
fn keyed_action(key: &[Seg], input: &Value, view: &dyn Facts) -> Option<String> {
    if let Some(action) = dig(input, key).and_then(action_text) {
        return Some(action);
    }
    let reference = crate::reference::Ref { root: crate::reference::Root::Shared, path: key.to_vec() };
    action_text(&reference.resolve(view))
}

fn service_names(params: &Params) -> Result<Vec<String>, String> {
    let list = match params.get("services") {
        Some(Value::Array(list)) if !list.is_empty() => list,
        Some(Value::Array(_)) | None => {
            return Err("parallel has no branches: params.services names none".to_owned());
        }
        Some(other) => {
            return Err(format!(
                "params.services must be an array of service names, not {}",
                type_name(other)
            ));
        }
    };
    if list.len() > crate::limits::FAN_BRANCHES {
        return Err(format!("{} branches are too many: at most {}", list.len(), crate::limits::FAN_BRANCHES));
    }
    list.iter()
        .map(|name| match name {
            Value::String(name) if !name.is_empty() => Ok(name.clone()),
            other => Err(format!("params.services must hold service names, not {other}")),
        })
        .collect()
}

/// A whole number, also when written as text or as `3.0`.
fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within 2^53")]
            (float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0).then_some(float as i64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
