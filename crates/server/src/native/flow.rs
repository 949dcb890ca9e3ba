//! Flows and their versions.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use windlass_engine::definition::Strictness;
use windlass_runtime::runs::flow::{FlowSpec as FlowDraft, Publishing, VersionSpec as VersionDraft};
use windlass_sdk::contract::{
    FlowDetail, FlowInfo, FlowRequest, FlowsQuery, List, PublishResponse, Version, VersionRequest,
    VersionSummary,
};
use windlass_store::flow::{FlowQuery, FlowRow, VersionRef, VersionRow, VersionStatus};

use super::definition::{DefinitionText, WithDefinition};
use crate::access::Caller;
use crate::app::App;
use crate::check;
use crate::extract::{JsonBody, PathParams, QueryParams};
use crate::guard::RequestMemory;
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Makes a flow, with its first version.
#[utoipa::path(post, path = "/api/v1/flows", operation_id = "create_flow", tag = "flows", request_body = FlowRequest,
    responses((status = 201, description = "The flow, with version 1 published", body = PublishResponse)))]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    memory: RequestMemory,
    JsonBody(WithDefinition { request: new, source }): JsonBody<WithDefinition<FlowRequest>>,
) -> ApiResult<(StatusCode, Json<PublishResponse>)> {
    check::name("name", &new.name)?;
    check::text("description", &new.description)?;
    check::labels(&new.labels)?;
    let source = source?;
    source.charge(&memory).await?;
    source.check_scripts(&app.runtime, &caller).await?;
    let version = draft(source, String::new());
    let flow = FlowDraft {
        name: new.name.clone(),
        description: new.description,
        labels: new.labels,
        is_template: new.is_template,
        allow_same_name: false,
    };
    let publishing = app.runtime.runs().publish_flow(flow, Some(version)).await?;
    Ok((StatusCode::CREATED, Json(published(publishing, new.name)?)))
}

/// Publishes the next version of a flow.
#[utoipa::path(post, path = "/api/v1/flows/{flow}/versions", operation_id = "publish_version", tag = "flows", request_body = VersionRequest,
    params(("flow" = String, Path, description = "The name or the id of the flow")),
    responses((status = 201, description = "The version", body = PublishResponse)))]
pub(crate) async fn publish(
    State(app): State<App>,
    PathParams(flow): PathParams<String>,
    caller: Caller,
    memory: RequestMemory,
    JsonBody(WithDefinition { request: new, source }): JsonBody<WithDefinition<VersionRequest>>,
) -> ApiResult<(StatusCode, Json<PublishResponse>)> {
    check::text("note", &new.note)?;
    let flow = app.flow(&flow).await?;
    let source = source?;
    source.charge(&memory).await?;
    source.check_scripts(&app.runtime, &caller).await?;
    let version = draft(source, new.note);
    let publishing = app.runtime.runs().publish_version(flow.id, version).await?;
    Ok((StatusCode::CREATED, Json(published(publishing, flow.name)?)))
}

/// Lists flows, newest first.
#[utoipa::path(get, path = "/api/v1/flows", operation_id = "list_flows", tag = "flows", params(FlowsQuery),
    responses((status = 200, description = "A page of flows", body = List<FlowInfo>)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(asked): QueryParams<FlowsQuery>,
) -> ApiResult<Json<List<FlowInfo>>> {
    let query = FlowQuery {
        flow: None,
        text: asked.q.filter(|text| !text.is_empty()),
        label: shape::label(asked.label),
        is_template: asked.is_template,
        part: shape::part(asked.cursor, asked.limit)?,
    };
    Ok(Json(shape::list(app.store().flows(app.project(), query).await?, shape::flow)))
}

/// Shows a flow, with the version that is started when none is named.
#[utoipa::path(get, path = "/api/v1/flows/{flow}", operation_id = "show_flow", tag = "flows",
    params(("flow" = String, Path, description = "The name or the id of the flow")),
    responses((status = 200, description = "The flow", body = FlowDetail)))]
pub(crate) async fn show(
    State(app): State<App>,
    PathParams(flow): PathParams<String>,
) -> ApiResult<Json<FlowDetail>> {
    let flow = app.flow(&flow).await?;
    let version = app.store().version(app.project(), VersionRef::Latest { flow: flow.id }).await?;
    Ok(Json(FlowDetail { flow: shape::flow(flow), version: version.map(shape::version) }))
}

/// Lists all versions of a flow, newest number first.
#[utoipa::path(get, path = "/api/v1/flows/{flow}/versions", operation_id = "list_versions", tag = "flows",
    params(("flow" = String, Path, description = "The name or the id of the flow")),
    responses((status = 200, description = "All versions", body = List<VersionSummary>)))]
pub(crate) async fn versions(
    State(app): State<App>,
    PathParams(flow): PathParams<String>,
) -> ApiResult<Json<List<VersionSummary>>> {
    let flow = app.flow(&flow).await?;
    let rows = app.store().versions(app.project(), flow.id).await?;
    Ok(Json(List { items: rows.iter().map(shape::version_summary).collect(), next: None }))
}

/// Shows one version, with its definition.
#[utoipa::path(get, path = "/api/v1/flows/{flow}/versions/{version}", operation_id = "show_version", tag = "flows",
    params(("flow" = String, Path, description = "The name or the id of the flow"),
        ("version" = u32, Path, description = "The number of the version")),
    responses((status = 200, description = "The version", body = Version)))]
pub(crate) async fn version(
    State(app): State<App>,
    PathParams((flow, number)): PathParams<(String, String)>,
) -> ApiResult<Json<Version>> {
    let flow = app.flow(&flow).await?;
    let number = number.parse().map_err(|_| unknown_version(&flow, &number))?;
    Ok(Json(shape::version(numbered(&app, &flow, number).await?)))
}

/// One version of a flow.
pub(crate) async fn numbered(app: &App, flow: &FlowRow, number: u32) -> ApiResult<VersionRow> {
    let version = app.store().version(app.project(), VersionRef::Number { flow: flow.id, number }).await?;
    version.ok_or_else(|| unknown_version(flow, &number.to_string()))
}

fn unknown_version(flow: &FlowRow, number: &str) -> ApiError {
    let shown: String = number.chars().take(80).collect();
    let detail = format!("flow `{}` has no version {shown}: its highest is {}", flow.name, flow.latest);
    ApiError::new(Code::UnknownVersion, detail)
}

/// A version as it is published by default.
pub(crate) fn draft(source: DefinitionText, note: String) -> VersionDraft {
    VersionDraft {
        definition: source.into_text(),
        strictness: Strictness::Strict,
        number: None,
        status: VersionStatus::Published,
        note,
    }
}

/// The published version, as a response.
pub(crate) fn published(publishing: Publishing, name: String) -> ApiResult<PublishResponse> {
    let (id, number) = publishing
        .published
        .version
        .ok_or_else(|| ApiError::new(Code::Internal, "the version was not published"))?;
    Ok(PublishResponse {
        id: publishing.published.flow.to_string(),
        name,
        version: number,
        version_id: id.to_string(),
        warnings: shape::severity_problems(publishing.warnings, None),
    })
}
