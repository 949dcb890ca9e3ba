//! Events, effects and plans of rounds as case files show them.

use serde_json::Value;
use windlass_engine::effect::Effect;
use windlass_engine::event::Event;
use windlass_engine::money::Bill;
use windlass_engine::run::{Expense, Planned, Preview};

/// `name node field=value …`, from the stored form.
pub(super) fn shown_event(event: &Event) -> String {
    let Value::Object(mut fields) = serde_json::to_value(event).unwrap() else { unreachable!() };
    let mut text = fields.remove("e").unwrap().as_str().unwrap().to_owned();
    if let Some(node) = fields.remove("node") {
        text = format!("{text} {}", node.as_str().unwrap());
    }
    for (key, value) in fields {
        text = format!("{text} {key}={value}");
    }
    text
}

pub(super) fn shown_effect(effect: &Effect) -> String {
    match effect {
        Effect::Call(order) => {
            let mut text = format!(
                "call {} fence={} attempt={} {:?} {} input={} params={}",
                order.node, order.fence, order.attempt, order.exec, order.service, order.input, order.params
            );
            if let Some(memo) = &order.memo {
                text = format!("{text} memo={memo}");
            }
            if !order.avoid.is_empty() {
                text = format!("{text} avoid={}", order.avoid.join(","));
            }
            text
        }
        Effect::Cancel { node, fence, .. } => format!("cancel {node} fence={fence}"),
        Effect::Move { account, movement } => {
            format!("move {account} {} {}", movement.kind.word(), movement.amount)
        }
        Effect::Tell { parent, status, result, error, bill } => {
            let error = error.as_deref().unwrap_or("");
            let told = format!("tell {} fence={} {status:?} {result} {error}", parent.node, parent.fence);
            let Bill { estimated, actual } = bill;
            if bill.is_zero() { told } else { format!("{told} bill={estimated}/{actual}") }
        }
        Effect::Raise { fence, budget } => format!("raise fence={fence} {budget}"),
        Effect::Bill { parent, bill } => {
            format!("bill {} fence={} {}/{}", parent.node, parent.fence, bill.estimated, bill.actual)
        }
    }
}

/// `a runs, f/* may_run*3 | calls 1-4 | cost 5-20+1`, where the last number counts prices that are not known.
pub(super) fn shown_preview(preview: &Preview) -> String {
    let place = |planned: &Planned| {
        let times = planned.times.map(|n| format!("*{n}")).unwrap_or_default();
        format!("{} {}{times}", planned.node, planned.fate.word())
    };
    let places: Vec<String> = preview.places.iter().map(place).collect();
    let Expense { estimated, at_most, n_unknown } = preview.cost;
    let (n, possible) = (preview.n_calls, preview.n_calls_possible);
    let left = preview.budget_left.map(|left| format!(" | left {left}")).unwrap_or_default();
    format!("{} | calls {n}-{possible} | cost {estimated}-{at_most}+{n_unknown}{left}", places.join(", "))
}
