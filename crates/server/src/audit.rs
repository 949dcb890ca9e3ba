//! The audit: what people ask for, over any surface, is noted when it has been decided and before the answer is sent;
//! what was refused too.

mod change;
mod said;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, Query, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::{Map, Value, json};
use windlass_runtime::Runtime;
use windlass_runtime::audit::Line;

use crate::guard;
use crate::problem::Code;
use crate::scheduler;
use change::{Change, Subject, When};
use said::{Said, plain};

pub(crate) use change::{Changes, words};
pub(crate) use said::{ACTOR, Slot};

/// Who asked, where nobody says so.
const NOBODY: &str = "anonymous";
/// How long an answer is held back so that it is noted first. What it says is durable already.
const PATIENCE: Duration = Duration::from_secs(5);
/// Characters of what was asked for, of where, and of why: requests that are refused may be of any length.
const SUBJECT_CHARS: usize = 255;
const PATH_CHARS: usize = 500;
const REASON_CHARS: usize = 500;

/// What a handler says that it made: only it knows the id.
#[derive(Debug, Clone)]
pub(crate) struct Made(String);

/// Says what was made.
pub(crate) fn made(id: &str) -> Extension<Made> {
    Extension(Made(id.to_owned()))
}

/// What notes need.
#[derive(Clone)]
pub(crate) struct Audit {
    runtime: Runtime,
    changes: Arc<Changes>,
}

impl Audit {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Audit { runtime, changes: Arc::new(Changes::new()) }
    }
}

/// Lets a request through, and notes what came of it if it asked for a change.
pub(crate) async fn note(State(audit): State<Audit>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let change = audit.changes.find(request.method(), path);
    let Some(change) = change.filter(|change| !change.is_planned(request.uri())) else {
        return next.run(request).await;
    };
    // Most of what asks for this only looks, for long, and stops when whoever asked is gone.
    if change.when == When::Repairs {
        return audit.see_through(change, request, next).await;
    }
    // To its end, whoever goes away meanwhile and also if the server stops: a change that was made is noted.
    let (runtime, path) = (audit.runtime.clone(), request.uri().path().to_owned());
    let answered = runtime.to_the_end(audit.see_through(change, request, next)).await;
    answered.unwrap_or_else(|broken| guard::refuse(&path, &broken.into()))
}

impl Audit {
    async fn see_through(self, change: &'static Change, request: Request, next: Next) -> Response {
        let (mut parts, body) = request.into_parts();
        let asked = Asked::of(change, &mut parts).await;
        let (actor, response) = match said::actor(&parts.headers) {
            Ok(actor) => {
                parts.extensions.insert(asked.slot.clone());
                (actor, next.run(Request::from_parts(parts, body)).await)
            }
            Err(error) => (None, guard::refuse(asked.uri.path(), &error)),
        };
        let is_look = change.when == When::Repairs && !asked.slot.said().repairs;
        if is_look || !is_decided(&response) {
            return response;
        }
        let line = asked.line(change, actor, &response);
        let told = format!("{} {} by {}", line.what, line.subject, line.who);
        let status = response.status().as_u16();
        match tokio::time::timeout(PATIENCE, self.runtime.note(line)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, change = told, status, "the audit does not have a change")
            }
            Err(_) => {
                tracing::warn!(change = told, status, "the audit may not have a change: the store is slow")
            }
        }
        response
    }
}

/// What is known of a request before it is answered.
struct Asked {
    method: String,
    uri: Uri,
    /// What the path names.
    named: Option<String>,
    ip: Option<String>,
    slot: Slot,
}

impl Asked {
    async fn of(change: &Change, parts: &mut Parts) -> Self {
        let params = RawPathParams::from_request_parts(parts, &()).await;
        let named = match (change.subject, &params) {
            (Subject::Path(name), Ok(params)) => {
                params.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
            }
            _ => None,
        };
        let field = match change.subject {
            Subject::Body(field) | Subject::Task(field) | Subject::Flow(field) => Some(field),
            Subject::Path(_) | Subject::Made | Subject::Server => None,
        };
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Asked {
            method: parts.method.to_string(),
            uri: parts.uri.clone(),
            named,
            ip: peer.map(|ConnectInfo(peer)| peer.ip().to_canonical().to_string()),
            slot: Slot::new(field),
        }
    }

    fn line(&self, change: &Change, actor: Option<String>, response: &Response) -> Line {
        let Said { by, reason, .. } = self.slot.said();
        let mut detail = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                detail.insert(name.to_owned(), value);
            }
        };
        put("ip", self.ip.clone().map(Value::from));
        put("method", Some(json!(self.method)));
        put("path", Some(json!(said::line(self.uri.path(), PATH_CHARS))));
        put("status", Some(json!(response.status().as_u16())));
        put("result", Some(json!(result(response.status()))));
        put("code", response.extensions().get::<Code>().map(|code| json!(code.word())));
        put("reason", reason.as_deref().map(|reason| json!(said::line(reason, REASON_CHARS))));
        Line {
            who: actor.or_else(|| by.clone()).unwrap_or_else(|| NOBODY.to_owned()),
            what: change.what.to_owned(),
            subject: said::line(&self.subject(change, response), SUBJECT_CHARS),
            detail: Value::Object(detail),
        }
    }

    /// What the change is asked of; empty where the request does not say.
    fn subject(&self, change: &Change, response: &Response) -> String {
        let said = || self.slot.said().subject.clone();
        let found = match change.subject {
            Subject::Path(_) => self.named.clone(),
            Subject::Body(field) => said().or_else(|| self.queried(field)),
            Subject::Task(field) => said().or_else(|| self.queried(field)).map(|id| scheduler::run_id(&id)),
            Subject::Flow(field) => said().or_else(|| self.queried(field)).map(|id| scheduler::flow_id(&id)),
            Subject::Made => response.extensions().get::<Made>().map(|Made(id)| id.clone()),
            Subject::Server => None,
        };
        found.unwrap_or_default()
    }

    fn queried(&self, field: &str) -> Option<String> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&self.uri).ok()?;
        pairs.into_iter().rev().find(|(key, _)| plain(key) == field).map(|(_, value)| value)
    }
}

/// Whether somebody looked at the request. What is turned away unseen should cost nothing, however much of it there is.
fn is_decided(response: &Response) -> bool {
    let code = response.extensions().get::<Code>();
    let is_unseen = matches!(code, Some(Code::Busy | Code::Draining | Code::CrossOrigin));
    !is_unseen && response.status() != StatusCode::TOO_MANY_REQUESTS
}

/// What came of it, in one word. What failed may have been done: whoever asked was not told.
fn result(status: StatusCode) -> &'static str {
    match status {
        status if status.is_server_error() => "failed",
        status if status.is_client_error() => "refused",
        _ => "done",
    }
}
