//! Starting runs.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use windlass_engine::event::{ExecMode as EngineMode, InsufficientFundsAction, Start};
use windlass_engine::id::{FlowId, RunId};
use windlass_engine::money::Amount;
use windlass_runtime::runs::{FlowStart, FlowStarted};
use windlass_sdk::contract::{OnShortBalance, RunDetail, RunRequest, StartMode, StartQuery, StartResponse};
use windlass_store::run::Request;

use crate::app::App;
use crate::check;
use crate::extract::{JsonBody, PathParams, QueryParams};
use crate::guard::RequestMemory;
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// The longest that a caller waits: proxies give up sooner or later.
const WAIT_MS_MAX: u64 = 60_000;
/// Nodes that a run may be told to start from.
const STARTS_MAX: usize = 10_000;

/// Starts a run. The same `request_id` with the same body answers 200 with the run that is there.
#[utoipa::path(post, path = "/api/v1/flows/{flow}/runs", operation_id = "start_run", tag = "runs", request_body = RunRequest,
    params(("flow" = String, Path, description = "The name or the id of the flow"), StartQuery),
    responses((status = 201, description = "The run was started", body = StartResponse),
        (status = 200, description = "The run was started before, by a request of the same id", body = StartResponse)))]
pub(crate) async fn start(
    State(app): State<App>,
    PathParams(flow): PathParams<String>,
    QueryParams(asked): QueryParams<StartQuery>,
    memory: RequestMemory,
    JsonBody(new): JsonBody<RunRequest>,
) -> ApiResult<(StatusCode, Json<StartResponse>)> {
    if asked.wait_ms.is_some_and(|wait| wait > WAIT_MS_MAX) {
        return Err(ApiError::field(Code::BadQuery, "?wait_ms", format!("give at most {WAIT_MS_MAX}")));
    }
    check(&new)?;
    let flow = app.flow(&flow).await?;
    let request = new.request_id.clone().map(|id| Request::new(id, &asked_for(flow.id, &new)));
    let is_awaited = asked.wait_ms.is_some();
    let flow_start = FlowStart {
        request,
        version: new.version.filter(|number| *number > 0),
        labels: new.labels.clone(),
        wait: asked.wait_ms.map(Duration::from_millis),
        start: given(new),
        flow,
    };
    let (flow_id, flow_name) = (flow_start.flow.id, flow_start.flow.name.clone());
    let FlowStarted { started, version, number } =
        app.runtime.runs().start_flow(flow_start, || memory.release()).await?;
    // A new run is answered from known facts: an error after the commit would make clients start a second one.
    let number = match number {
        Some(number) => number,
        None => app.label(flow_id, version).await?.number,
    };
    let run = if is_awaited { Some(whole(&app, started.run).await?) } else { None };
    let answer = StartResponse {
        id: started.run.to_string(),
        status: run.as_ref().map_or_else(|| shape::status(started.status), |run| run.summary.status),
        flow: flow_name,
        flow_id: flow_id.to_string(),
        version: number,
        version_id: version.to_string(),
        created: started.created,
        run,
    };
    let status = if started.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(answer)))
}

/// The whole run, for a client that waited for it.
async fn whole(app: &App, run: RunId) -> ApiResult<Box<RunDetail>> {
    let view = app.view(run).await?;
    let label = app.label(view.row.origin.flow, view.row.origin.version).await?;
    Ok(Box::new(shape::run(&view, &label)))
}

fn check(new: &RunRequest) -> ApiResult<()> {
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

fn given(new: RunRequest) -> Start {
    Start {
        params: new.params.or(new.variables).unwrap_or_default().into(),
        exec_mode: match new.exec_mode {
            StartMode::All => EngineMode::All,
            StartMode::SpecifiedStarts => EngineMode::SpecifiedStarts,
            StartMode::IsolatedNodes => EngineMode::IsolatedNodes,
        },
        start_node_ids: new.start_node_ids,
        priority: new.priority.map(shape::priority),
        manual: new.manual,
        account: new.account,
        budget: new.budget.map(Amount),
        on_short_balance: match new.on_short_balance {
            OnShortBalance::Fail => InsufficientFundsAction::Fail,
            OnShortBalance::Wait => InsufficientFundsAction::Wait,
        },
        ..Start::default()
    }
}

/// The canonical form of a request: the order of its keys and its spaces do not count.
fn asked_for(flow: FlowId, new: &RunRequest) -> Value {
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
