//! Events, effects and plans of rounds as case files show them.

use serde_json::Value;
use windlass_engine::effect::Effect;
use windlass_engine::event::Event;
use windlass_engine::money::Bill;
use windlass_engine::run::{CostEstimate, DryRunEntry, DryRunReport};

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
        Effect::Call(spec) => {
            let mut text = format!(
                "call {} fence={} attempt={} {:?} {} input={} params={}",
                spec.node, spec.fence, spec.attempt, spec.exec, spec.service, spec.input, spec.params
            );
            if let Some(memo) = &spec.memo {
                text = format!("{text} memo={memo}");
            }
            if let Some(worker) = &spec.stays_with {
                text = format!("{text} stays_with={worker}");
            }
            if !spec.avoid.is_empty() {
                text = format!("{text} avoid={}", spec.avoid.join(","));
            }
            text
        }
        Effect::Cancel { node, fence, .. } => format!("cancel {node} fence={fence}"),
        Effect::Withdraw { node, fence, .. } => format!("withdraw {node} fence={fence}"),
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
pub(super) fn shown_dry_run(report: &DryRunReport) -> String {
    let place = |entry: &DryRunEntry| {
        let times = entry.times.map(|n| format!("*{n}")).unwrap_or_default();
        format!("{} {}{times}", entry.node, entry.status.word())
    };
    let places: Vec<String> = report.nodes.iter().map(place).collect();
    let CostEstimate { estimated, at_most, n_unknown } = report.cost;
    let (n, possible) = (report.n_calls, report.n_calls_possible);
    let left = report.budget_left.map(|left| format!(" | left {left}")).unwrap_or_default();
    format!("{} | calls {n}-{possible} | cost {estimated}-{at_most}+{n_unknown}{left}", places.join(", "))
}
