//! What waits for a person.

use std::ops::ControlFlow;

use axum::Json;
use axum::extract::State;
use windlass_engine::plan::Kind;
use windlass_engine::run::state::{Activity, Phase};
use windlass_runtime::RuntimeError;
use windlass_runtime::run::RunView;
use windlass_sdk::types::{Approval, ApprovalsQuery, List};
use windlass_store::run::{RunQuery, RunRow, RunStatus};

use crate::app::{App, Label, is_of_one_run};
use crate::extract::Asked;
use crate::problem::Answer;
use crate::shape::{self, Found};

/// Open approvals of one run that are listed: a fan over many items has one for each.
const OF_ONE_RUN_MAX: usize = 100;

/// Lists what waits for a person, the newest runs first. A page looks at `limit` open runs: it may be empty and
/// still have a next one. Of one run at most 100 are listed; a run that cannot be read is left out.
#[utoipa::path(get, path = "/api/v1/approvals", operation_id = "list_approvals", tag = "runs", params(ApprovalsQuery),
    responses((status = 200, description = "A page of approvals", body = List<Approval>)))]
pub(crate) async fn list(
    State(app): State<App>,
    Asked(asked): Asked<ApprovalsQuery>,
) -> Answer<Json<List<Approval>>> {
    let statuses = vec![RunStatus::Waiting, RunStatus::Running, RunStatus::Paused];
    let part = shape::part(asked.cursor, asked.limit)?;
    let page = app.store().runs(RunQuery { statuses, part, ..RunQuery::default() }).await?;
    let mut items = Vec::new();
    for row in page.items {
        let view = match approving(&app, &row).await {
            Ok(Some(view)) => view,
            Ok(None) => continue,
            Err(error) if is_of_one_run(&error) => {
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

/// The run, if its flow asks people at all: most do not, and need not be folded to know that.
async fn approving(app: &App, row: &RunRow) -> Result<Option<RunView>, RuntimeError> {
    let plan = app.runtime.plan(row.origin.version).await?;
    let asks_people = plan.nodes().any(|node| matches!(node.kind, Kind::Approval(_)));
    if asks_people { app.runtime.view(row.id).await } else { Ok(None) }
}

fn open_approvals(view: &RunView, label: &Label) -> Vec<Approval> {
    let mut approvals = Vec::new();
    // A walk that is cut short has found enough.
    let _stopped = shape::each_node(&view.plan, &view.state, &mut |path, found| {
        if let Found::Node { node, state } = found
            && let (Kind::Approval(approval), Phase::Open(Activity::Approval { until })) =
                (&node.kind, &state.phase)
        {
            approvals.push(Approval {
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
