//! The scheduler surface: thin adapters over the runtime, for clients that speak of tasks. A *task* here is a run.
//!
//! There are two eras. The prefixed one speaks snake_case and wraps its lists; the first one has no prefix, speaks
//! PascalCase (camelCase for attempts) and answers bare arrays. Both have the same routes and do the same things:
//! only the spelling of their answers differs, and only `era` knows how.

mod access;
mod audit;
mod era;
mod failure;
mod id;
pub(crate) mod openapi;
mod request;

mod worker;

mod flow;

mod task;

mod attempt;
mod shared;

mod queue;

use axum::Router;
use axum::routing::{get, post};
use windlass_runtime::Runtime;

use era::Era;
use failure::Failure;

pub(crate) use access::ACCESS;
pub(crate) use audit::AUDITED;
#[cfg(test)]
pub(crate) use audit::UNAUDITED;

/// The state that all handlers of the surface share.
#[derive(Clone)]
struct Surface {
    runtime: Runtime,
    era: Era,
}

/// Every route of the surface: its method, its path without the prefix, and its purpose.
pub const ROUTES: [(&str, &str, &str); 25] = [
    ("POST", "/workers/register", "registers a worker, or again"),
    ("POST", "/register", "registers a worker, or again"),
    ("POST", "/workers/heartbeat", "the heartbeat of a worker"),
    ("POST", "/heartbeat", "the heartbeat of a worker"),
    ("GET", "/workers", "lists the workers that are alive"),
    ("GET", "/workers/list", "lists the workers that are alive"),
    ("GET", "/list", "lists the workers that are alive"),
    ("GET", "/workers/allocate", "names the least loaded live worker of a service"),
    ("GET", "/allocate", "names the least loaded live worker of a service"),
    ("GET", "/flows", "lists flows"),
    ("POST", "/flows", "makes a flow"),
    ("GET", "/flows/version", "lists the versions of a flow, newest first"),
    ("POST", "/flows/version", "publishes a version of a flow"),
    ("GET", "/flows/version/get", "shows a version"),
    ("GET", "/tasks", "lists tasks, latest change first"),
    ("POST", "/tasks", "starts a task"),
    ("GET", "/tasks/get", "shows a task with its shared state"),
    ("POST", "/tasks/run_once", "advances a task by one step"),
    ("POST", "/tasks/cancel", "cancels a task"),
    ("GET", "/tasks/runs", "lists the attempts of a task's nodes, oldest first"),
    ("GET", "/tasks/logs", "shows the log of an attempt"),
    ("POST", "/tasks/signal", "gives a task a value it may wait for"),
    ("POST", "/queue/poll", "hands out a job"),
    ("POST", "/queue/complete", "takes the end of a job"),
    ("POST", "/queue/update_run", "keeps a claimed job alive"),
];

/// Prefixes under which the surface is mounted.
pub(crate) const PREFIXES: [&str; 2] = ["/api", ""];

/// Whether a path belongs to the surface.
pub(crate) fn owns_path(path: &str) -> bool {
    const NOUNS: [&str; 8] =
        ["flows", "tasks", "workers", "queue", "register", "heartbeat", "list", "allocate"];
    let bare = path.strip_prefix("/api").unwrap_or(path);
    let noun = bare.strip_prefix('/').and_then(|rest| rest.split('/').next());
    noun.is_some_and(|noun| NOUNS.contains(&noun))
}

/// The surface in the spelling of the later era, to be nested at `/api`.
pub fn prefixed(runtime: Runtime) -> Router {
    router(Surface { runtime, era: Era::Prefixed })
}

/// The surface in the spelling of the first era, to be merged without a prefix.
pub fn bare(runtime: Runtime) -> Router {
    router(Surface { runtime, era: Era::First })
}

fn router(surface: Surface) -> Router {
    Router::new()
        .route("/workers/register", post(worker::register))
        .route("/register", post(worker::register))
        .route("/workers/heartbeat", post(worker::heartbeat))
        .route("/heartbeat", post(worker::heartbeat))
        .route("/workers", get(worker::list))
        .route("/workers/list", get(worker::list))
        .route("/list", get(worker::list))
        .route("/workers/allocate", get(worker::allocate))
        .route("/allocate", get(worker::allocate))
        .route("/flows", get(flow::list).post(flow::create))
        .route("/flows/version", get(flow::versions).post(flow::publish))
        .route("/flows/version/get", get(flow::version))
        .route("/tasks", get(task::list).post(task::create))
        .route("/tasks/get", get(task::show))
        .route("/tasks/run_once", post(task::run_once))
        .route("/tasks/cancel", post(task::cancel))
        .route("/tasks/runs", get(attempt::list))
        .route("/tasks/logs", get(attempt::log))
        .route("/tasks/signal", post(task::signal))
        .route("/queue/poll", post(queue::poll))
        .route("/queue/complete", post(queue::complete))
        .route("/queue/update_run", post(queue::update_run))
        .method_not_allowed_fallback(async || Failure::method_not_allowed())
        .with_state(surface)
}
