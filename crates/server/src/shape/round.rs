//! A dry run in the types of the native surface.

use windlass_engine::run::{DryRunEntry, DryRunReport};
use windlass_sdk::contract::{DryRun, DryRunCalls, DryRunCost, DryRunNode};

pub(crate) fn dry_run(id: &str, report: DryRunReport) -> DryRun {
    DryRun {
        id: id.to_owned(),
        round: report.round,
        nodes: report.nodes.into_iter().map(dry_run_node).collect(),
        more: report.more,
        calls: DryRunCalls { sure: report.n_calls, at_most: report.n_calls_possible },
        cost: DryRunCost {
            estimated: report.cost.estimated.0,
            at_most: report.cost.at_most.0,
            unknown: report.cost.n_unknown,
        },
        budget_left: report.budget_left.map(|left| left.0),
    }
}

fn dry_run_node(entry: DryRunEntry) -> DryRunNode {
    let DryRunEntry { node, status, label, times, call } = entry;
    DryRunNode {
        node: node.to_string(),
        status: status.word().to_owned(),
        kind: label,
        times,
        by: call.as_ref().map(|call| call.by.to_owned()),
        estimate: call.as_ref().and_then(|call| call.estimate).map(|estimate| estimate.0),
        service: call.map(|call| call.service),
    }
}
