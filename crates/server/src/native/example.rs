//! The example flows of this program: listing them, and publishing them for a first look around.

use axum::Json;
use axum::extract::State;
use windlass_runtime::runs::flow::FlowSpec as FlowDraft;
use windlass_sdk::contract::{ExampleInfo, ExampleNames, ExamplesLoaded, List};
use windlass_store::flow::FlowRef;

use super::definition::DefinitionText;
use super::flow::{draft, published};
use crate::access::Caller;
use crate::app::App;
use crate::extract::JsonBody;
use crate::guard::RequestMemory;
use crate::problem::{ApiError, ApiResult, Code};

/// Lists the example flows of this program.
#[utoipa::path(get, path = "/api/v1/examples", operation_id = "list_examples", tag = "flows",
    responses((status = 200, description = "The examples", body = List<ExampleInfo>)))]
pub(crate) async fn list(State(app): State<App>) -> ApiResult<Json<List<ExampleInfo>>> {
    let mut items = Vec::new();
    for example in app.examples.iter() {
        items.push(ExampleInfo { name: example.name.clone(), loaded: is_loaded(&app, &example.name).await? });
    }
    Ok(Json(List { items, next: None }))
}

/// Publishes example flows, all of them or those that are named. A flow that is there already is kept as it is.
#[utoipa::path(post, path = "/api/v1/examples", operation_id = "load_examples", tag = "flows", request_body = ExampleNames,
    responses((status = 200, description = "The flows that were published", body = ExamplesLoaded)))]
pub(crate) async fn load(
    State(app): State<App>,
    caller: Caller,
    memory: RequestMemory,
    JsonBody(asked): JsonBody<ExampleNames>,
) -> ApiResult<Json<ExamplesLoaded>> {
    let names = asked.names.unwrap_or_else(|| app.examples.iter().map(|one| one.name.clone()).collect());
    if let Some(unknown) = names.iter().find(|name| app.examples.iter().all(|one| one.name != **name)) {
        let shown: String = unknown.chars().take(80).collect();
        let reason = format!("there is no example `{shown}`: list them with GET /api/v1/examples");
        return Err(ApiError::field(Code::InvalidBody, "names", reason));
    }
    let mut loaded = ExamplesLoaded::default();
    for example in app.examples.iter().filter(|example| names.contains(&example.name)) {
        if is_loaded(&app, &example.name).await? {
            loaded.kept.push(example.name.clone());
            continue;
        }
        let source = DefinitionText::of(None, Some(example.text.clone()))?;
        source.charge(&memory).await?;
        source.check_scripts(&app.runtime, &caller).await?;
        let flow = FlowDraft {
            name: example.name.clone(),
            description: String::new(),
            labels: [("example".to_owned(), "true".to_owned())].into(),
            is_template: false,
            allow_same_name: false,
        };
        let publishing = app.runtime.runs().publish_flow(flow, Some(draft(source, String::new()))).await?;
        loaded.published.push(published(publishing, example.name.clone())?);
    }
    Ok(Json(loaded))
}

async fn is_loaded(app: &App, name: &str) -> ApiResult<bool> {
    Ok(app.store().flow(app.project(), FlowRef::Name(name.to_owned())).await?.is_some())
}
