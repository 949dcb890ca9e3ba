//! Validation and expansion of definitions that are not saved.

use axum::Json;
use serde::de::{Deserialize, Deserializer};
use serde_json::Value;
use windlass_engine::definition::{self, Compiled, Strictness};
use windlass_engine::layout::Direction;
use windlass_engine::plan::Form;
use windlass_runtime::Runtime;
use windlass_sdk::contract::{
    Definition, ExpandResponse, ExpandedTaskInfo, FlowRequest, Validation, VersionRequest,
};

use crate::access::{self, Caller};
use crate::extract::JsonBody;
use crate::guard::RequestMemory;
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// The text of a definition, as it is stored.
pub(crate) struct DefinitionText {
    text: String,
    /// Whether its author wrote this text, in which places of problems are known.
    is_written: bool,
}

impl DefinitionText {
    /// One of the two ways in which a definition can be given.
    pub(crate) fn of(definition: Option<Value>, yaml: Option<String>) -> ApiResult<DefinitionText> {
        let wrong = |path, reason| Err(ApiError::field(Code::InvalidBody, path, reason));
        match (definition, yaml) {
            (Some(Value::String(_)), None) => {
                wrong("definition", "it is text: give it as `yaml`, which takes JSON too")
            }
            (Some(value), None) => Ok(DefinitionText { text: value.to_string(), is_written: false }),
            (None, Some(text)) => Ok(DefinitionText { text, is_written: true }),
            (Some(_), Some(_)) => wrong("yaml", "there is a `definition` too: give one of the two"),
            (None, None) => wrong("definition", "there is no definition: give `definition` or `yaml`"),
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// The text, if its author wrote it.
    fn written(&self) -> Option<&str> {
        self.is_written.then_some(self.text.as_str())
    }

    /// Holds memory for its compilation.
    pub(crate) async fn charge(&self, memory: &RequestMemory) -> ApiResult<()> {
        Ok(memory.add(definition::compile_bytes(&self.text)).await?)
    }

    /// Refuses scripts of a caller whose key lacks the right, on a server that runs scripts.
    pub(crate) async fn check_scripts(&self, runtime: &Runtime, caller: &Caller) -> ApiResult<()> {
        access::check_scripts(runtime, caller, &self.text, Strictness::Strict).await
    }

    /// Compiles the text that would be stored, so that a valid definition can be published.
    fn compile(self) -> Compiled {
        definition::compile(&self.text, Strictness::Strict)
    }
}

/// A request that gives a definition.
pub(crate) trait GivesDefinition {
    /// Takes the definition out of the request: as a value, and as text.
    fn take_definition(&mut self) -> (Option<Value>, Option<String>);
}

impl GivesDefinition for Definition {
    fn take_definition(&mut self) -> (Option<Value>, Option<String>) {
        (self.definition.take(), self.yaml.take())
    }
}

impl GivesDefinition for FlowRequest {
    fn take_definition(&mut self) -> (Option<Value>, Option<String>) {
        (self.definition.take(), self.yaml.take())
    }
}

impl GivesDefinition for VersionRequest {
    fn take_definition(&mut self) -> (Option<Value>, Option<String>) {
        (self.definition.take(), self.yaml.take())
    }
}

/// A request, and the text of the definition in it. The thread that builds the values of a definition frees them: the
/// allocator keeps memory that another thread frees until the first one needs it again.
pub(crate) struct WithDefinition<T> {
    pub(crate) request: T,
    /// The text, or the reason why there is none.
    pub(crate) source: ApiResult<DefinitionText>,
}

impl<'de, T: Deserialize<'de> + GivesDefinition> Deserialize<'de> for WithDefinition<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut request = T::deserialize(from)?;
        let (definition, yaml) = request.take_definition();
        Ok(WithDefinition { request, source: DefinitionText::of(definition, yaml) })
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
    JsonBody(given): JsonBody<WithDefinition<Definition>>,
) -> ApiResult<Json<Validation>> {
    let source = given.source?;
    let text = source.written().filter(|text| text.len() <= PLACED_MAX).map(str::to_owned);
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
    JsonBody(given): JsonBody<WithDefinition<Definition>>,
) -> ApiResult<Json<ExpandResponse>> {
    let source = given.source?;
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
