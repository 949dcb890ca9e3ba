//! Open approvals.

use std::ops::ControlFlow;

use axum::Json;
use axum::extract::State;
use windlass_engine::plan::NodeKind;
use windlass_engine::run::state::{Activity, Phase};
use windlass_runtime::RuntimeError;
use windlass_runtime::runs::RunView;
use windlass_sdk::contract::{ApprovalInfo, ApprovalsQuery, List, TileCount};
use windlass_store::page::Part;
use windlass_store::run::{RunQuery, RunRow, RunStatus};

use crate::app::{App, VersionLabel};
use crate::extract::QueryParams;
use crate::problem::ApiResult;
use crate::shape::{self, NodeAt};

/// Open approvals of one run that are listed: a fan over many items has one for each.
const OF_ONE_RUN_MAX: usize = 100;
/// Waiting runs whose approvals are counted.
const COUNTED_RUNS: usize = 100;

/// Lists open approvals, the newest runs first. A page examines `limit` open runs: it may be empty and still have a
/// `next`. At most 100 approvals per run are listed; an unreadable run is left out.
#[utoipa::path(get, path = "/api/v1/approvals", operation_id = "list_approvals", tag = "runs", params(ApprovalsQuery),
    responses((status = 200, description = "A page of approvals", body = List<ApprovalInfo>)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(asked): QueryParams<ApprovalsQuery>,
) -> ApiResult<Json<List<ApprovalInfo>>> {
    let statuses = vec![RunStatus::Waiting, RunStatus::Running, RunStatus::Paused];
    let part = shape::part(asked.cursor, asked.limit)?;
    let page = app.store().runs(app.project(), RunQuery { statuses, part, ..RunQuery::default() }).await?;
    let mut items = Vec::new();
    for row in page.items {
        let view = match approving(&app, &row).await {
            Ok(Some(view)) => view,
            Ok(None) => continue,
            Err(error) if error.is_of_one_run() => {
                tracing::error!(run = %row.id, %error, "a run is left out of the approvals");
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let label = app.label(row.origin.flow, row.origin.version).await?;
        items.extend(open_approvals(&view, &label));
    }
    if let Some(person) = &asked.assignee {
        items.retain(|approval| approval.assignees.is_empty() || approval.assignees.contains(person));
    }
    Ok(Json(List { items, next: page.next.map(|next| next.as_str().to_owned()) }))
}

/// The number of open approvals, of the newest waiting runs.
pub(super) async fn count(app: &App) -> ApiResult<TileCount> {
    let part = Part { limit: COUNTED_RUNS, ..Part::default() };
    let query = RunQuery { statuses: vec![RunStatus::Waiting], part, ..RunQuery::default() };
    let page = app.store().runs(app.project(), query).await?;
    let mut n = 0;
    for row in &page.items {
        match approving(app, row).await {
            Ok(Some(view)) => {
                let label = app.label(row.origin.flow, row.origin.version).await?;
                n += open_approvals(&view, &label).len();
            }
            Ok(None) => {}
            Err(error) if error.is_of_one_run() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(TileCount { count: n as u64, more: page.next.is_some() })
}

/// The run, if its flow asks people at all: most do not, and need not be folded to know that.
async fn approving(app: &App, row: &RunRow) -> Result<Option<RunView>, RuntimeError> {
    let plan = app.runtime.runs().plan(row.origin.version).await?;
    let asks_people = plan.nodes().any(|node| matches!(node.kind, NodeKind::Approval(_)));
    if asks_people { app.runtime.runs().view(row.id).await } else { Ok(None) }
}

fn open_approvals(view: &RunView, label: &VersionLabel) -> Vec<ApprovalInfo> {
    let mut approvals = Vec::new();
    // A walk that is cut short has found enough.
    let _stopped = shape::each_node(&view.plan, &view.state, &mut |path, found| {
        if let NodeAt::Node { node, state } = found
            && let (NodeKind::Approval(approval), Phase::Open(Activity::Approval { until })) =
                (&node.kind, &state.phase)
        {
            approvals.push(ApprovalInfo {
                run: view.row.id.to_string(),
                flow: label.flow.clone(),
                node: path.to_string(),
                title: node.title.clone(),
                assignees: approval.assignees.clone(),
                form: approval.form.clone(),
                input: (*state.input).clone(),
                since: state.entered_at.map(shape::time),
                until: until.map(shape::time),
            });
        }
        if approvals.len() < OF_ONE_RUN_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    approvals
}
