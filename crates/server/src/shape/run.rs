//! Runs.

use serde_json::{Map, Value};
use windlass_engine::counter::Seq;
use windlass_engine::event::{ExecMode as EngineMode, RunFault};
use windlass_engine::money::Bill;
use windlass_engine::plan::Priority as EnginePriority;
use windlass_engine::run::{Run as EngineRun, Totals};
use windlass_runtime::feed::RunUpdate;
use windlass_runtime::runs::RunView;
use windlass_sdk::contract::{
    ChangeEvent, FaultInfo, OwnCost, ParentCall, RunCost, RunDetail, RunPriority, RunState, RunStatus,
    RunSummary, StartMode,
};
use windlass_store::run::{RunRow, RunStatus as StoreStatus};

use super::node::{node_states, shape_fault};
use super::time;
use crate::app::VersionLabel;

pub(crate) fn status(status: StoreStatus) -> RunStatus {
    match status {
        StoreStatus::Pending => RunStatus::Pending,
        StoreStatus::Running => RunStatus::Running,
        StoreStatus::Waiting => RunStatus::Waiting,
        StoreStatus::Paused => RunStatus::Paused,
        StoreStatus::Canceling => RunStatus::Canceling,
        StoreStatus::Completed => RunStatus::Completed,
        StoreStatus::Failed => RunStatus::Failed,
        StoreStatus::Canceled => RunStatus::Canceled,
    }
}

pub(crate) fn priority_word(priority: EnginePriority) -> RunPriority {
    match priority {
        EnginePriority::Lowest => RunPriority::Lowest,
        EnginePriority::Low => RunPriority::Low,
        EnginePriority::Medium => RunPriority::Medium,
        EnginePriority::High => RunPriority::High,
        EnginePriority::Highest => RunPriority::Highest,
    }
}

/// The engine's word for a priority.
pub(crate) fn priority(priority: RunPriority) -> EnginePriority {
    match priority {
        RunPriority::Lowest => EnginePriority::Lowest,
        RunPriority::Low => EnginePriority::Low,
        RunPriority::Medium => EnginePriority::Medium,
        RunPriority::High => EnginePriority::High,
        RunPriority::Highest => EnginePriority::Highest,
    }
}

fn cost(totals: Totals) -> RunCost {
    RunCost { estimated: totals.estimated.0, actual: totals.actual.0, own: None }
}

/// The same, with its own part where it is not the whole.
pub(super) fn whole_cost(state: &EngineRun) -> RunCost {
    let Bill { estimated, actual } = state.own_cost();
    let own = (!state.children.is_zero()).then_some(OwnCost { estimated: estimated.0, actual: actual.0 });
    RunCost { own, ..cost(state.cost) }
}

fn run_fault(error: &RunFault) -> FaultInfo {
    shape_fault(&error.fault, Some(&error.node))
}

/// A change of a run, as streams tell it.
pub(crate) fn run_change(change: &RunUpdate) -> ChangeEvent {
    ChangeEvent {
        run: change.run.to_string(),
        flow_id: change.flow.to_string(),
        seq: change.seq.0,
        at: time(change.at),
        status: status(change.status),
        node: change.node.as_ref().map(ToString::to_string),
    }
}

/// A run as it is listed.
pub(crate) fn summary(row: &RunRow, label: &VersionLabel) -> RunSummary {
    let (origin, projection) = (&row.origin, &row.projection);
    RunSummary {
        id: row.id.to_string(),
        flow: label.flow.clone(),
        flow_id: origin.flow.to_string(),
        version: label.number,
        version_id: origin.version.to_string(),
        status: status(projection.status),
        round: projection.round,
        node: projection.node.as_ref().map(ToString::to_string),
        action: projection.action.clone(),
        step_count: projection.step_count,
        len: row.len.0,
        labels: origin.labels.clone(),
        account: origin.account.clone(),
        request_id: origin.request.as_ref().map(|request| request.id.clone()),
        parent: origin
            .parent
            .as_ref()
            .map(|parent| ParentCall { run: parent.run.to_string(), node: parent.node.to_string() }),
        schedule_id: origin.schedule.map(|schedule| schedule.to_string()),
        error: projection.error.as_ref().map(run_fault),
        cost: cost(projection.cost),
        wake_at: projection.wake_at.map(time),
        created_at: time(origin.created_at),
        updated_at: time(projection.updated_at),
        ended_at: projection.ended_at.map(time),
    }
}

/// A run, wholly.
pub(crate) fn run(view: &RunView, label: &VersionLabel) -> RunDetail {
    let (state, start) = (&*view.state, &view.state.start);
    let (node_states, more_nodes) = node_states(&view.plan, state);
    RunDetail {
        summary: RunSummary { cost: whole_cost(state), ..summary(&view.row, label) },
        params: start.params.to_map(),
        shared: shared(&view.state),
        result: state.result.as_deref().cloned(),
        node_states,
        more_nodes,
        exec_mode: exec_mode(start.exec_mode),
        start_node_ids: start.start_node_ids.clone(),
        priority: priority_word(state.priority(&view.plan)),
        manual: start.manual,
        budget: state.budget.map(|budget| budget.0),
    }
}

pub(super) fn exec_mode(mode: EngineMode) -> StartMode {
    match mode {
        EngineMode::All => StartMode::All,
        EngineMode::SpecifiedStarts => StartMode::SpecifiedStarts,
        EngineMode::IsolatedNodes => StartMode::IsolatedNodes,
    }
}

/// A run as it was after so many entries; `row` says how many there are by now.
pub(crate) fn run_state(view: &RunView, at: Seq, row: &RunRow) -> RunState {
    let state = &*view.state;
    let (node_states, more_nodes) = node_states(&view.plan, state);
    RunState {
        id: state.id.to_string(),
        at: at.0,
        len: row.len.0,
        time: time(state.updated_at),
        status: status(windlass_store::projection::status(state)),
        round: state.round,
        params: state.start.params.to_map(),
        shared: shared(&view.state),
        signals: state.signals.iter().map(|(key, value)| (key.clone(), (**value).clone())).collect(),
        node_states,
        more_nodes,
        error: state.error.as_ref().map(run_fault),
        result: state.result.as_deref().cloned(),
        cost: whole_cost(state),
    }
}

pub(crate) fn shared(state: &EngineRun) -> Map<String, Value> {
    let fields = state.root.shared.iter().flatten();
    fields.map(|(key, value)| (key.clone(), (**value).clone())).collect()
}
