//! Fans: which branch starts next, and the combined result of the branches.

use serde_json::{Map, Value, json};

use super::super::Todo;
use super::super::state::{Activity, FanState, Phase, Slot};
use super::Applier;
use crate::path::NodePath;
use crate::plan::{Fan, NodeKind, Strategy};

impl Applier<'_> {
    /// A branch ended: the fan gives up, goes on, or is finished.
    pub(super) fn branch_settled(&mut self, path: &NodePath, failed: bool) {
        let Some((fan_path, _)) = path.split_last() else { return };
        let Some(spot) = self.run.spot(self.plan, &fan_path) else { return };
        let NodeKind::Fan(fan) = &spot.node.kind else { return };
        let is_draining = self.run.draining.contains_key(&fan_path);
        let Some(arms) = self.run.root.fan_mut(&self.plan.root, &fan_path) else { return };
        arms.n_open = arms.n_open.saturating_sub(1);
        arms.n_failed += usize::from(failed);
        if is_draining {
            return;
        }
        if failed && arms.strategy(fan) == Strategy::FailFast {
            if arms.n_failed == 1 {
                self.run.agenda.push_front(Todo::Collapse(fan_path));
            }
            return;
        }
        self.fan_moved(&fan_path);
    }

    /// Starts as many branches as may run at a time; ends the fan when none is left.
    pub(super) fn fan_moved(&mut self, path: &NodePath) {
        let Some(spot) = self.run.spot(self.plan, path) else { return };
        let NodeKind::Fan(fan) = &spot.node.kind else { return };
        let most = fan.max_parallel.unwrap_or(usize::MAX);
        let Some(arms) = self.run.root.fan_mut(&self.plan.root, path) else { return };
        let mut starting = Vec::new();
        while arms.n_open < most && arms.next < arms.slots.len() {
            let slot = &mut arms.slots[arms.next];
            if slot.phase == Phase::Pending {
                slot.phase = Phase::Open(Activity::Beginning);
                arms.n_open += 1;
                starting.push(Todo::Begin(path.at(arms.next)));
            }
            arms.next += 1;
        }
        let over = arms.n_open == 0 && arms.next >= arms.slots.len();
        self.run.agenda.extend(starting);
        if over {
            self.run.agenda.push_back(Todo::Finish(path.clone()));
        }
    }
}

/// The results in declared order, as the strategy wants them.
pub(super) fn output(strategy: Strategy, arms: &FanState) -> Value {
    let value = |slot: &Slot| match (&slot.phase, &slot.output) {
        (Phase::Done, Some(output)) => Some((**output).clone()),
        _ => None,
    };
    let slots = arms.slots.iter();
    match strategy {
        Strategy::All | Strategy::CollectErrors | Strategy::Continue => {
            Value::Array(slots.map(|slot| value(slot).unwrap_or(Value::Null)).collect())
        }
        Strategy::FailFast | Strategy::IgnoreErrors => Value::Array(slots.filter_map(value).collect()),
    }
}

/// `[{index, service, error}]` of the branches that failed.
pub(super) fn errors(fan: &Fan, arms: &FanState) -> Value {
    let failed = arms.slots.iter().enumerate().filter(|(_, slot)| slot.phase == Phase::Failed);
    let row = |(at, slot): (usize, &Slot)| {
        let mut row = Map::new();
        row.insert("index".to_owned(), at.into());
        let name = arms.names.get(at).cloned().or_else(|| Some(fan.branch(at)?.name.clone()));
        row.insert("service".to_owned(), json!(name));
        row.insert("error".to_owned(), json!(slot.fault.as_ref().map(|fault| &fault.message)));
        Value::Object(row)
    };
    Value::Array(failed.map(row).collect())
}
