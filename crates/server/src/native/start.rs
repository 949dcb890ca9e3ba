//! Starting runs.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use windlass_engine::event::{ExecMode as EngineMode, OnShort, Start};
use windlass_engine::id::{FlowId, RunId};
use windlass_runtime::run::{NewRun as RunDraft, StartError};
use windlass_sdk::types::{ExecMode, NewRun, OnShortBalance, Run, StartQuery, Started};
use windlass_store::flow::{FlowRow, VersionRef, VersionRow, VersionStatus};
use windlass_store::run::{Request, RunRef, RunRow, RunStatus};

use super::flow::numbered;
use crate::app::App;
use crate::check;
use crate::extract::{Asked, At, Body};
use crate::problem::{Answer, ApiError, Code};
use crate::shape;

/// The longest that a caller waits: proxies give up sooner or later.
const WAIT_MS_MAX: u64 = 60_000;
/// Nodes that a run may be told to start from.
const STARTS_MAX: usize = 10_000;

/// Starts a run. The same `request_id` with the same body answers 200 with the run that is there.
#[utoipa::path(post, path = "/api/v1/flows/{flow}/runs", operation_id = "start_run", tag = "runs", request_body = NewRun,
    params(("flow" = String, Path, description = "The name or the id of the flow"), StartQuery),
    responses((status = 201, description = "The run was started", body = Started),
        (status = 200, description = "The run was started before, by a request of the same id", body = Started)))]
pub(crate) async fn start(
    State(app): State<App>,
    At(flow): At<String>,
    Asked(asked): Asked<StartQuery>,
    Body(new): Body<NewRun>,
) -> Answer<(StatusCode, Json<Started>)> {
    if asked.wait_ms.is_some_and(|wait| wait > WAIT_MS_MAX) {
        return Err(ApiError::field(Code::BadQuery, "?wait_ms", format!("give at most {WAIT_MS_MAX}")));
    }
    check(&new)?;
    let flow = app.flow(&flow).await?;
    let wait = asked.wait_ms.map(Duration::from_millis);
    let request = new.request_id.clone().map(|id| Request::new(id, &asked_for(flow.id, &new)));
    if let Some(request) = &request
        && let Some(row) = app.store().run(RunRef::Request(request.id.clone())).await?
    {
        return repeated(&app, request, row, wait).await;
    }
    let version = version(&app, &flow, new.version).await?;
    let draft = RunDraft {
        flow: flow.id,
        version: version.id,
        request,
        labels: new.labels.clone(),
        schedule: None,
        start: given(new),
    };
    let started = match wait {
        Some(wait) => app.runtime.start_and_wait(draft, wait).await?,
        None => app.runtime.start(draft).await?,
    };
    if !started.created {
        // Another request of this id came first, at the same time: its run may be of another version.
        let row = app.row(started.run).await?;
        return Ok((StatusCode::OK, Json(existing(&app, &row, started.status, wait.is_some()).await?)));
    }
    let run = if wait.is_some() { Some(whole(&app, started.run).await?) } else { None };
    let answer = Started {
        id: started.run.to_string(),
        status: run.as_ref().map_or_else(|| shape::status(started.status), |run| run.summary.status),
        flow: flow.name,
        flow_id: flow.id.to_string(),
        version: version.number,
        version_id: version.id.to_string(),
        created: true,
        run,
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Answers a request that was made before from what it made, whatever was published or archived since.
async fn repeated(
    app: &App,
    request: &Request,
    row: RunRow,
    wait: Option<Duration>,
) -> Answer<(StatusCode, Json<Started>)> {
    if row.origin.request.as_ref() != Some(request) {
        let (request, existing) = (request.id.clone(), row.id);
        return Err(StartError::RequestTaken { request, existing }.into());
    }
    let mut status = row.standing.status;
    if let Some(wait) = wait.filter(|_| status.is_open()) {
        status = app.runtime.wait_ended(row.id, wait).await?.unwrap_or(status);
    }
    Ok((StatusCode::OK, Json(existing(app, &row, status, wait.is_some()).await?)))
}

/// A run that is there already, as the answer to a request for it.
async fn existing(app: &App, row: &RunRow, status: RunStatus, is_awaited: bool) -> Answer<Started> {
    let label = app.label(row.origin.flow, row.origin.version).await?;
    let run = if is_awaited { Some(whole(app, row.id).await?) } else { None };
    Ok(Started {
        id: row.id.to_string(),
        status: run.as_ref().map_or_else(|| shape::status(status), |run| run.summary.status),
        flow: label.flow.clone(),
        flow_id: row.origin.flow.to_string(),
        version: label.number,
        version_id: row.origin.version.to_string(),
        created: false,
        run,
    })
}

/// All of a run, for whoever waited for it.
async fn whole(app: &App, run: RunId) -> Answer<Box<Run>> {
    let view = app.view(run).await?;
    let label = app.label(view.row.origin.flow, view.row.origin.version).await?;
    Ok(Box::new(shape::run(&view, &label)))
}

fn check(new: &NewRun) -> Answer<()> {
    if new.params.is_some() && new.variables.is_some() {
        let reason = "there are `params` too, which mean the same: give one of the two";
        return Err(ApiError::field(Code::InvalidBody, "variables", reason));
    }
    check::name_if_given("request_id", new.request_id.as_deref())?;
    check::name_if_given("account", new.account.as_deref())?;
    check::labels(&new.labels)?;
    check::within("start_node_ids", new.start_node_ids.len(), 0, STARTS_MAX)?;
    check::within("budget", new.budget.unwrap_or(0), 0, i64::MAX)?;
    Ok(())
}

/// The version that is started: the one that is named, or the highest that is published.
async fn version(app: &App, flow: &FlowRow, number: Option<u32>) -> Answer<VersionRow> {
    let version = match number.filter(|number| *number > 0) {
        Some(number) => numbered(app, flow, number).await?,
        None => app.store().version(VersionRef::Latest { flow: flow.id }).await?.ok_or_else(|| {
            let detail = format!("flow `{}` has no published version: publish one first", flow.name);
            ApiError::new(Code::UnknownVersion, detail)
        })?,
    };
    let word = match version.status {
        VersionStatus::Published => return Ok(version),
        VersionStatus::Draft => "a draft",
        VersionStatus::Archived => "archived",
    };
    let detail = format!("version {} of `{}` is {word}: start a published one", version.number, flow.name);
    Err(ApiError::new(Code::NotPublished, detail))
}

fn given(new: NewRun) -> Start {
    Start {
        params: new.params.or(new.variables).unwrap_or_default(),
        exec_mode: match new.exec_mode {
            ExecMode::All => EngineMode::All,
            ExecMode::SpecifiedStarts => EngineMode::SpecifiedStarts,
            ExecMode::IsolatedNodes => EngineMode::IsolatedNodes,
        },
        start_node_ids: new.start_node_ids,
        priority: new.priority.map(shape::priority),
        manual: new.manual,
        account: new.account,
        budget: new.budget,
        on_short_balance: match new.on_short_balance {
            OnShortBalance::Fail => OnShort::Fail,
            OnShortBalance::Wait => OnShort::Wait,
        },
        ..Start::default()
    }
}

/// What a request asks, in one form: the order of its keys and the spaces between them mean nothing.
fn asked_for(flow: FlowId, new: &NewRun) -> Value {
    json!({ "flow": flow, "run": new })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(body: &str) -> String {
        let flow = "flow_0190a1b2c3d47000800000000000000b".parse().unwrap();
        Request::new("r", &asked_for(flow, &serde_json::from_str(body).unwrap())).digest
    }

    #[test]
    fn a_digest_tells_bodies_apart_and_not_their_spelling() {
        let plain = digest_of(r#"{"params":{"a":1,"b":[1,2]},"request_id":"r"}"#);
        assert_eq!(plain, digest_of(r#"{ "request_id":"r", "params": {"b":[1, 2],"a":1} }"#));
        assert_ne!(plain, digest_of(r#"{"params":{"a":1,"b":[2,1]},"request_id":"r"}"#));
        assert_ne!(plain, digest_of(r#"{"params":{"a":1,"b":[1,2]},"request_id":"r","manual":true}"#));
    }
}
