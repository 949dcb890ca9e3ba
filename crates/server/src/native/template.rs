//! Flows that are instantiated from templates.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Map, Value};
use windlass_engine::definition::{self, Strictness};
use windlass_engine::plan::Plan;
use windlass_engine::problem::{Problem, Problems, did_you_mean};
use windlass_runtime::runs::flow::FlowSpec as FlowDraft;
use windlass_sdk::contract::{InstantiateRequest, PublishResponse};
use windlass_store::flow::{FlowRow, VersionRef, VersionRow};

use super::definition::{DefinitionText, run_blocking};
use super::flow::{draft, numbered, published};
use crate::access::Caller;
use crate::app::App;
use crate::check;
use crate::extract::{JsonBody, PathParams};
use crate::problem::{ApiError, ApiResult, Code};

/// Makes a flow of a template: its definition, with the given values as the defaults of its variables.
#[utoipa::path(post, path = "/api/v1/flows/{flow}/instantiate", operation_id = "instantiate_flow", tag = "flows", request_body = InstantiateRequest,
    params(("flow" = String, Path, description = "The name or the id of the template")),
    responses((status = 201, description = "The flow, with version 1 published", body = PublishResponse)))]
pub(crate) async fn instantiate(
    State(app): State<App>,
    PathParams(flow): PathParams<String>,
    caller: Caller,
    JsonBody(new): JsonBody<InstantiateRequest>,
) -> ApiResult<(StatusCode, Json<PublishResponse>)> {
    check::name("name", &new.name)?;
    check::text("description", new.description.as_deref().unwrap_or_default())?;
    check::labels(&new.labels)?;
    let template = app.flow(&flow).await?;
    if !template.is_template {
        let detail = format!(
            "flow `{}` is no template: run it, or make a flow of its definition with POST /api/v1/flows",
            template.name
        );
        return Err(ApiError::new(Code::NotTemplate, detail));
    }
    let version = version(&app, &template, new.version).await?;
    let number = version.number;
    let variables = new.variables;
    let made = run_blocking(move || filled_in(&version, variables)).await?;
    let definition = made.map_err(|problems| ApiError::problems(Code::InvalidInput, problems))?;
    let note = format!("made of the template `{}`, version {number}", template.name);
    let source = DefinitionText::of(Some(definition), None)?;
    source.check_scripts(&app.runtime, &caller).await?;
    let draft = draft(source, note);
    let flow = FlowDraft {
        name: new.name.clone(),
        description: new.description.unwrap_or(template.description),
        labels: new.labels,
        is_template: false,
        allow_same_name: false,
    };
    let publishing = app.runtime.runs().publish_flow(flow, Some(draft)).await?;
    Ok((StatusCode::CREATED, Json(published(publishing, new.name)?)))
}

async fn version(app: &App, template: &FlowRow, number: Option<u32>) -> ApiResult<VersionRow> {
    if let Some(number) = number {
        return numbered(app, template, number).await;
    }
    let latest = app.store().version(app.project(), VersionRef::Latest { flow: template.id }).await?;
    latest.ok_or_else(|| {
        let detail = format!("template `{}` has no published version: publish one", template.name);
        ApiError::new(Code::NotPublished, detail)
    })
}

/// The definition of a template with these values as defaults, or their problems.
fn filled_in(version: &VersionRow, values: Map<String, Value>) -> Result<Value, Vec<Problem>> {
    let compiled = definition::compile(&version.definition, Strictness::Lenient);
    let Some(plan) = compiled.plan else { return Err(compiled.problems) };
    let problems = check_values(&plan, &values);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut definition = compiled.definition;
    for (name, value) in values {
        if let Some(Value::Object(variable)) =
            definition.pointer_mut("/variables").and_then(|all| all.get_mut(&name))
        {
            variable.remove("default");
            variable.insert("defaultValue".to_owned(), value);
        }
    }
    Ok(definition)
}

fn check_values(plan: &Plan, values: &Map<String, Value>) -> Vec<Problem> {
    let mut problems = Problems::default();
    for (name, value) in values {
        let place = format!("$.variables.{name}");
        match plan.variables.get(name) {
            Some(variable) => {
                if let Some(reason) = variable.refuses_default(value) {
                    problems.error(place, reason);
                }
            }
            None => {
                let hint = did_you_mean(name, plan.variables.keys().map(String::as_str));
                problems.error_hint(place, "is not declared by the template", hint);
            }
        }
    }
    problems.into_list()
}
