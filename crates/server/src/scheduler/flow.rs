//! Flows and their versions.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use windlass_engine::definition::{self, Strictness, compile};
use windlass_runtime::runs::flow::{FlowSpec, VersionSpec};
use windlass_store::flow::{FlowQuery, FlowRef, FlowRow, VersionRef, VersionRow, VersionStatus};
use windlass_store::page::{Order, Part};

use super::Surface;
use super::era::{Era, Noun};
use super::failure::{Failure, SchedulerResult};
use super::id;
use super::request::RequestFields;
use super::worker::seconds;
use crate::access::{Caller, check_scripts};
use crate::warning::{WARNINGS_MAX, append_warning};

/// Bytes of a description.
const DESCRIPTION_MAX: usize = 16_384;

pub(super) async fn list(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    let (page, size) = ask.page(surface.era.page_size())?;
    let part = Part {
        order: Order::Newest,
        cursor: None,
        skip: page.saturating_sub(1).saturating_mul(size),
        limit: size,
        count: surface.era == Era::Prefixed,
    };
    let found = surface
        .runtime
        .store()
        .flows(surface.runtime.project(), FlowQuery { part, ..FlowQuery::default() })
        .await?;
    let data = found.items.into_iter().map(|flow| render(surface.era, flow)).collect();
    Ok(surface.era.page(data, found.total, page, size))
}

fn render(era: Era, flow: FlowRow) -> Value {
    let fields = [
        ("id".to_owned(), id::flow(flow.id).into()),
        ("name".to_owned(), flow.name.into()),
        ("description".to_owned(), flow.description.into()),
        ("created_at".to_owned(), seconds(flow.created_at).into()),
    ];
    era.object(Noun::Flow, fields.into_iter().collect())
}

pub(super) async fn create(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    let name = ask.required("Name")?.to_owned();
    let description = ask.text("Description")?.unwrap_or_default().to_owned();
    if description.len() > DESCRIPTION_MAX {
        return Err(Failure::bad(format!("`Description` is longer than {DESCRIPTION_MAX} bytes")));
    }
    let flow = FlowSpec { name, description, allow_same_name: true, ..FlowSpec::default() };
    let publishing = surface.runtime.runs().publish_flow(flow, None).await?;
    Ok(Json(json!({"id": id::flow(publishing.published.flow)})))
}

pub(super) async fn versions(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    let flow = find(&surface, ask.required("flow_id")?).await?;
    let versions = surface.runtime.store().versions(surface.runtime.project(), flow.id).await?;
    Ok(Json(versions.into_iter().map(|version| render_version(surface.era, version)).collect()))
}

pub(super) async fn version(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    let text = ask.required("id")?;
    let unknown = || Failure::unknown("version", text);
    let id = id::read_version(text).ok_or_else(unknown)?;
    let version = surface
        .runtime
        .store()
        .version(surface.runtime.project(), VersionRef::Id(id))
        .await?
        .ok_or_else(unknown)?;
    Ok(Json(render_version(surface.era, version)))
}

fn render_version(era: Era, version: VersionRow) -> Value {
    let fields = [
        ("id".to_owned(), id::version(version.id).into()),
        ("flow_id".to_owned(), id::flow(version.flow).into()),
        ("version".to_owned(), version.number.into()),
        ("status".to_owned(), status_word(version.status).into()),
        ("definition_json".to_owned(), definition_json(version).into()),
    ];
    era.object(Noun::Version, fields.into_iter().collect())
}

fn status_word(status: VersionStatus) -> &'static str {
    match status {
        VersionStatus::Draft => "draft",
        VersionStatus::Published => "published",
        VersionStatus::Archived => "archived",
    }
}

/// The definition as JSON, also when it was published as YAML.
fn definition_json(version: VersionRow) -> String {
    if serde_json::from_str::<IgnoredAny>(&version.definition).is_ok() {
        return version.definition;
    }
    compile(&version.definition, version.strictness()).definition.to_string()
}

/// The definition of a version as a value.
pub(super) fn definition(version: &VersionRow) -> Value {
    serde_json::from_str(&version.definition)
        .unwrap_or_else(|_| compile(&version.definition, version.strictness()).definition)
}

/// Publishes a version. The warnings about its definition are in the headers: clients know the answer as an id alone.
pub(super) async fn publish(
    State(surface): State<Surface>,
    caller: Caller,
    ask: RequestFields,
) -> Result<Response, Failure> {
    let flow = ask.required("FlowID")?.to_owned();
    let number = match ask.whole("Version")? {
        None | Some(0) => None,
        Some(number) => Some(u32::try_from(number).map_err(|_| {
            Failure::bad(format!("`Version` is a number from 1 up, or 0 for the next one, not {number}"))
        })?),
    };
    let status = match ask.text("Status")? {
        None | Some("published") => VersionStatus::Published,
        Some("draft") => VersionStatus::Draft,
        Some("archived") => VersionStatus::Archived,
        Some(_) => return Err(Failure::bad("`Status` is published, draft or archived")),
    };
    let mut definition = definition_text(&ask)?;
    ask.memory().add(definition::compile_bytes(&definition)).await?;
    if surface.era.has_bare_paths() {
        definition = definition::with_shared_paths(definition);
    }
    check_scripts(&surface.runtime, &caller, &definition, Strictness::Lenient).await?;
    // The text is in memory once while its values are built.
    drop(ask);
    let version =
        VersionSpec { definition, strictness: Strictness::Lenient, number, status, note: String::new() };
    let flow = find(&surface, &flow).await?;
    let publishing = surface.runtime.runs().publish_version(flow.id, version).await?;
    let published = publishing.published.version.ok_or_else(|| Failure::bad("no version was published"))?;
    let mut response = Json(json!({"id": id::version(published.0)})).into_response();
    for warning in publishing.warnings.iter().take(WARNINGS_MAX) {
        let hint = warning.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let text = format!("{}: {}{hint}", warning.path, warning.reason);
        append_warning(response.headers_mut(), &text);
    }
    Ok(response)
}

fn definition_text(ask: &RequestFields) -> Result<String, Failure> {
    // Some clients send the object itself.
    let text_of = |name: &str| match ask.value(name) {
        Value::Object(fields) => Ok(Some(Value::Object(fields).to_string())),
        _ => ask.text(name).map(|text| text.map(str::to_owned)),
    };
    match (text_of("DefinitionJSON")?, text_of("DefinitionYAML")?) {
        (Some(text), None) | (None, Some(text)) => Ok(text),
        (None, None) => Err(Failure::bad("give `DefinitionJSON` or `DefinitionYAML`")),
        (Some(_), Some(_)) => Err(Failure::bad("give either `DefinitionJSON` or `DefinitionYAML`, not both")),
    }
}

/// A flow by the id a client gave.
pub(super) async fn find(surface: &Surface, text: &str) -> Result<FlowRow, Failure> {
    let unknown = || Failure::unknown("flow", text);
    let id = id::read_flow(text).ok_or_else(unknown)?;
    surface.runtime.store().flow(surface.runtime.project(), FlowRef::Id(id)).await?.ok_or_else(unknown)
}
