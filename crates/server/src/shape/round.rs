//! A round that was only told, in the words of the surface.

use windlass_engine::run::{Planned, Preview};
use windlass_sdk::types::{PlannedCalls, PlannedCost, PlannedNode, RoundPlan};

/// What a new round of a run would do.
pub(crate) fn round_plan(id: &str, preview: Preview) -> RoundPlan {
    RoundPlan {
        id: id.to_owned(),
        round: preview.round,
        nodes: preview.places.into_iter().map(planned).collect(),
        more: preview.more,
        calls: PlannedCalls { sure: preview.n_calls, at_most: preview.n_calls_possible },
        cost: PlannedCost {
            estimated: preview.cost.estimated,
            at_most: preview.cost.at_most,
            unknown: preview.cost.n_unknown,
        },
        budget_left: preview.budget_left,
    }
}

fn planned(planned: Planned) -> PlannedNode {
    let Planned { node, fate, label, times, call } = planned;
    PlannedNode {
        node: node.to_string(),
        fate: fate.word().to_owned(),
        kind: label,
        times,
        by: call.as_ref().map(|call| call.by.to_owned()),
        estimate: call.as_ref().and_then(|call| call.estimate),
        service: call.map(|call| call.service),
    }
}
