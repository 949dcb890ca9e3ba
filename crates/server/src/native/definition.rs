//! Validation and expansion of definitions that are not saved.

use axum::Json;
use serde_json::Value;
use windlass_engine::definition::{self, Compiled, Strictness};
use windlass_engine::layout::Direction;
use windlass_engine::plan::Form;
use windlass_runtime::Runtime;
use windlass_sdk::contract::{Definition, ExpandResponse, ExpandedTaskInfo, Validation};

use crate::access::{self, Caller};
use crate::extract::JsonBody;
use crate::guard::RequestMemory;
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// The text of a definition, as it is stored.
pub(crate) struct DefinitionText(String);

impl DefinitionText {
    /// One of the two ways in which a definition can be given.
    pub(crate) fn of(definition: Option<Value>, yaml: Option<String>) -> ApiResult<DefinitionText> {
        let wrong = |path, reason| Err(ApiError::field(Code::InvalidBody, path, reason));
        match (definition, yaml) {
            (Some(Value::String(_)), None) => {
                wrong("definition", "it is text: give it as `yaml`, which takes JSON too")
            }
            (Some(value), None) => Ok(DefinitionText(value.to_string())),
            (None, Some(text)) => Ok(DefinitionText(text)),
            (Some(_), Some(_)) => wrong("yaml", "there is a `definition` too: give one of the two"),
            (None, None) => wrong("definition", "there is no definition: give `definition` or `yaml`"),
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }

    /// Holds memory for its compilation.
    pub(crate) async fn charge(&self, memory: &RequestMemory) -> ApiResult<()> {
        Ok(memory.add(definition::compile_bytes(&self.0)).await?)
    }

    /// Refuses scripts of a caller whose key lacks the right, on a server that runs scripts.
    pub(crate) async fn check_scripts(&self, runtime: &Runtime, caller: &Caller) -> ApiResult<()> {
        access::check_scripts(runtime, caller, &self.0, Strictness::Strict).await
    }

    /// Compiles the text that would be stored, so that a valid definition can be published.
    fn compile(self) -> Compiled {
        definition::compile(&self.0, Strictness::Strict)
    }
}

/// The longest text whose problems get lines and columns. The positions of a dense text take many times its bytes, which
/// the memory of the request does not count.
const PLACED_MAX: usize = 256 << 10;

/// Lists the problems of a definition without saving it, and lays out its graph.
#[utoipa::path(post, path = "/api/v1/flows/validate", operation_id = "validate_definition", tag = "flows", request_body = Definition,
    responses((status = 200, description = "Everything that was found", body = Validation)))]
pub(crate) async fn validate(
    memory: RequestMemory,
    JsonBody(given): JsonBody<Definition>,
) -> ApiResult<Json<Validation>> {
    let text = given.yaml.as_ref().filter(|text| text.len() <= PLACED_MAX).cloned();
    let source = DefinitionText::of(given.definition, given.yaml)?;
    source.charge(&memory).await?;
    let validate = move || {
        let compiled = source.compile();
        let validation = Validation {
            ok: compiled.plan.is_some(),
            form: compiled.form.map(|form| shape::form(form).to_owned()),
            n_nodes: compiled.plan.as_ref().map(|plan| plan.n_nodes),
            problems: shape::severity_problems(compiled.problems, text.as_deref()),
            graph: compiled.plan.as_ref().map(|plan| shape::flow_graph(plan, Direction::LeftRight)),
        };
        // Held by the work and not by the request: it goes on when the client leaves.
        drop(memory);
        validation
    };
    Ok(Json(run_blocking(validate).await?))
}

/// Says which tasks the steps of a definition become, without saving it.
#[utoipa::path(post, path = "/api/v1/flows/expand", operation_id = "expand_definition", tag = "flows", request_body = Definition,
    responses((status = 200, description = "The tasks", body = ExpandResponse)))]
pub(crate) async fn expand(
    memory: RequestMemory,
    JsonBody(given): JsonBody<Definition>,
) -> ApiResult<Json<ExpandResponse>> {
    let source = DefinitionText::of(given.definition, given.yaml)?;
    source.charge(&memory).await?;
    let (compiled, expansion) = run_blocking(move || {
        let compiled = source.compile();
        let expansion = definition::expand(&compiled.definition, Strictness::Strict);
        drop(memory);
        (compiled, expansion)
    })
    .await?;
    match compiled.form {
        Some(Form::Steps) if compiled.plan.is_some() => {}
        Some(Form::Graph | Form::Dag) => {
            let reason =
                "only definitions of the steps form expand to tasks: this one is run as it is written";
            return Err(ApiError::field(Code::InvalidDefinition, "$", reason));
        }
        Some(Form::Steps) | None => {
            return Err(ApiError::problems(Code::InvalidDefinition, compiled.problems));
        }
    }
    Ok(Json(ExpandResponse { tasks: expansion.tasks.into_iter().map(expanded).collect() }))
}

/// Recurses once for each loop inside another, of which a definition has a bounded number.
fn expanded(task: definition::ExpandedTask) -> ExpandedTaskInfo {
    ExpandedTaskInfo {
        id: task.id,
        task_id: task.task_id,
        operator: task.operator,
        title: task.title,
        depend_on: task.depend_on,
        steps: task.steps.into_iter().map(expanded).collect(),
    }
}

/// Runs a long computation on a blocking thread.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> ApiResult<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        tracing::error!(%error, "work beside requests broke");
        ApiError::new(Code::Internal, "the server made a mistake while it worked on this: report it")
    })
}
