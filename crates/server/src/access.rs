//! Access control of requests. `identify` finds out which identity a request proves, `authorize` decides with the table
//! of routes whether that identity may use the matched route. Neither looks at the text of a path.

mod credential;
mod table;

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use windlass_engine::access::identity::Identity;
use windlass_engine::access::{Permission, Role};
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::id::JobId;
use windlass_engine::project::Project;
use windlass_runtime::access::AccessError;
use windlass_runtime::{Runtime, ScriptPolicy};
use windlass_store::Store;
use windlass_store::job::OutlineQuery;

use crate::extract::ClientAddress;
use crate::guard;
use crate::problem::{ApiError, ApiResult, Code};
use credential::Credential;

pub(crate) use table::{AccessRule, AccessTable, Requirement, access_rules};

/// Characters of a service or queue that a refusal repeats.
const SHOWN_CHARS: usize = 80;

/// The caller of a request. Nothing else in the server says who a caller is.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// The server has no keys: every caller may do everything.
    Anyone,
    /// A valid key names the caller.
    Known(Arc<Identity>),
    /// The request proves nothing. It reaches public routes only.
    Stranger(Arc<ApiError>),
}

/// A request that no middleware has identified is a stranger's: a route cannot be reached around the check.
impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_else(|| Caller::Stranger(Arc::new(unproven()))))
    }
}

impl Caller {
    /// The identity, if the caller has one.
    pub(crate) fn identity(&self) -> Option<&Identity> {
        match self {
            Caller::Known(identity) => Some(identity),
            Caller::Anyone | Caller::Stranger(_) => None,
        }
    }

    /// The name of the caller: that of its identity, or the one that it gave itself where the server asks for no key.
    pub(crate) fn name_or(&self, given: Option<String>) -> Option<String> {
        self.identity().map(|identity| identity.name.clone()).or(given)
    }

    /// Refuses a caller without this permission.
    pub(crate) fn require(&self, permission: Permission) -> ApiResult<()> {
        match self {
            Caller::Anyone => Ok(()),
            Caller::Known(identity) if identity.has(permission) => Ok(()),
            Caller::Known(identity) => Err(forbidden(identity.role, permission)),
            Caller::Stranger(error) => Err((**error).clone()),
        }
    }

    /// Whether definitions of the caller may have scripts.
    pub(crate) fn may_script(&self) -> bool {
        match self {
            Caller::Anyone => true,
            Caller::Known(identity) => identity.may_script,
            Caller::Stranger(_) => false,
        }
    }

    /// Refuses work outside of the services and queues of the caller's key, each for itself.
    pub(crate) fn require_scope<'n>(
        &self,
        services: impl IntoIterator<Item = &'n String>,
        queues: impl IntoIterator<Item = &'n String>,
    ) -> ApiResult<()> {
        self.require(Permission::Work)?;
        let Some(identity) = self.identity() else { return Ok(()) };
        let mut services = services.into_iter().filter(|service| !identity.scope.has_service(service));
        if let Some(service) = services.next() {
            return Err(out_of_scope("service", service));
        }
        let mut queues = queues.into_iter().filter(|queue| !identity.scope.has_queue(queue));
        queues.next().map_or(Ok(()), |queue| Err(out_of_scope("queue", queue)))
    }

    /// Refuses the ends and extensions of jobs outside of the scope. Unknown jobs pass: the handler answers for them.
    pub(crate) async fn require_jobs(
        &self,
        store: &dyn Store,
        project: &Project,
        jobs: Vec<JobId>,
    ) -> ApiResult<()> {
        self.require(Permission::Work)?;
        let is_limited = self.identity().is_some_and(|identity| !identity.scope.is_everything());
        if !is_limited || jobs.is_empty() {
            return Ok(());
        }
        let outlines = store.job_outlines(project, OutlineQuery::Ids(jobs)).await?;
        outlines.iter().try_for_each(|outline| {
            let spec = &outline.row.job.spec;
            // A job can be claimed by its service or by its queue.
            self.require_scope([&spec.name], []).or_else(|_| self.require_scope([], [&spec.queue]))
        })
    }
}

/// The refusal of a request that proves nothing, whatever it lacks.
fn unproven() -> ApiError {
    let detail = "the request needs a valid API key: send it as `Authorization: Bearer wl_…`, or set WINDLASS_KEY \
                  for the command line and the SDKs; `windlass key create` makes one";
    ApiError::new(Code::Unauthenticated, detail)
}

fn forbidden(role: Role, permission: Permission) -> ApiError {
    let roles: Vec<&str> = Role::with(permission).map(Role::word).collect();
    let detail = format!(
        "the role {} lacks the permission `{}`: use a key with the role {}",
        role.word(),
        permission.word(),
        roles.join(" or ")
    );
    ApiError::new(Code::Forbidden, detail)
}

fn out_of_scope(kind: &str, name: &str) -> ApiError {
    let name: String = name.chars().take(SHOWN_CHARS).collect();
    let detail = format!(
        "the {kind} `{name}` is outside of the scope of this key: use a key that was made with --{kind}"
    );
    ApiError::new(Code::Forbidden, detail)
}

/// Refuses a definition with scripts of a caller whose key lacks the right, on a server that runs scripts. Definitions
/// that do not compile pass: publishing reports their problems.
pub(crate) async fn check_scripts(
    runtime: &Runtime,
    caller: &Caller,
    definition: &str,
    strictness: Strictness,
) -> ApiResult<()> {
    if caller.may_script() || runtime.settings().scripts == ScriptPolicy::Off {
        return Ok(());
    }
    let text = definition.to_owned();
    let compiled = tokio::task::spawn_blocking(move || compile(&text, strictness).plan).await;
    let plan =
        compiled.map_err(|_| ApiError::new(Code::Internal, "the definition was not checked: report it"))?;
    if plan.is_some_and(|plan| plan.has_scripts()) {
        let detail = "the definition has scripts, and this key lacks the right `scripts`: use a key that was made \
                      with --scripts";
        return Err(ApiError::new(Code::Forbidden, detail));
    }
    Ok(())
}

fn refusal(error: AccessError) -> ApiError {
    match error {
        AccessError::Unproven => unproven(),
        AccessError::Expired => {
            let detail = "the API key has expired: use another one; `windlass key create` makes one";
            ApiError::new(Code::KeyExpired, detail)
        }
        AccessError::TooManyWrong { retry_after } => {
            let detail = "too many unknown API keys came from this address: check the key of your clients";
            ApiError::new(Code::Busy, detail).retry_after(retry_after)
        }
        AccessError::Runtime(error) => error.into(),
    }
}

/// Finds out who the caller is. It refuses nothing: the matched route decides what a stranger may reach.
pub(crate) async fn identify(State(runtime): State<Runtime>, mut request: Request, next: Next) -> Response {
    let caller = if runtime.access().is_closed() {
        let takes_basic = guard::is_compatible(request.uri().path());
        let given = Credential::of(request.headers(), takes_basic);
        let address = ClientAddress::of(request.extensions()).unwrap_or_default();
        caller(&runtime, given, &address).await
    } else {
        Caller::Anyone
    };
    request.extensions_mut().insert(caller);
    next.run(request).await
}

async fn caller(runtime: &Runtime, given: Option<Credential>, address: &str) -> Caller {
    // Missing and unreadable credentials take the same way as wrong ones.
    let presented = given.as_ref().map_or("", Credential::key);
    match runtime.access().identify(presented, address).await {
        Ok(identity) => Caller::Known(identity),
        Err(error) => Caller::Stranger(Arc::new(refusal(error))),
    }
}

/// Passes a request on if its caller may use the matched route.
pub(crate) async fn authorize(
    State(table): State<Arc<AccessTable>>,
    request: Request,
    next: Next,
) -> Response {
    let caller = request.extensions().get::<Caller>();
    // Without a matched path only the fallback answers: with a page of the console, or that there is nothing.
    let Some(path) = request.extensions().get::<MatchedPath>() else { return next.run(request).await };
    let decided = match (caller, table.find(request.method(), path.as_str())) {
        (Some(Caller::Anyone), _) | (_, Requirement::Public) => Ok(()),
        (Some(caller), Requirement::Needs(permission)) => caller.require(permission),
        (Some(Caller::Stranger(error)), _) => Err((**error).clone()),
        // The route takes other methods only, or the table has no entry for it. Its handler is not reached.
        (Some(Caller::Known(_)), Requirement::NoMethod) => {
            let detail = format!("this path does not take {}: see /docs", request.method());
            Err(ApiError::new(Code::MethodNotAllowed, detail))
        }
        (Some(Caller::Known(_)), Requirement::Unlisted) => {
            let detail = "the table of routes does not say who may use this one: report it";
            Err(ApiError::new(Code::Forbidden, detail))
        }
        (None, _) => Err(unproven()),
    };
    match decided {
        Ok(()) => next.run(request).await,
        Err(error) => guard::refuse(request.uri().path(), &error),
    }
}
