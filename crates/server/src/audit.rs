//! The audit log. A middleware records every requested change, on any surface, after its decision and before the
//! response; refused changes too.

mod request;
mod table;

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{FromRequestParts, MatchedPath, Query, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::{Map, Value, json};
use windlass_engine::access::identity::Identity;
use windlass_runtime::Runtime;
use windlass_runtime::audit::AuditNote;
use windlass_store::worker::WorkerAddress;

use crate::access::Caller;
use crate::extract::ClientAddress;
use crate::guard;
use crate::live::EventHub;
use crate::problem::{ApiResult, Code};
use request::{BodyNotes, plain};

pub(crate) use request::{ACTOR, NotesSlot, is_hidden};
pub(crate) use table::{AuditCondition, AuditSubject, AuditTable, AuditedChange, audited_changes, words};

/// The actor of a request that names none.
pub(crate) const NOBODY: &str = "anonymous";
/// How long a response waits for its audit line. The change itself is durable already.
const PATIENCE: Duration = Duration::from_secs(5);
/// Characters of a subject, a path and a reason: refused requests may be of any length.
const SUBJECT_CHARS: usize = 255;
const PATH_CHARS: usize = 500;
const REASON_CHARS: usize = 500;

/// The id of a created thing, which only its handler knows.
#[derive(Debug, Clone)]
pub(crate) struct CreatedId(String);

/// Records the id of a created thing.
pub(crate) fn made(id: &str) -> Extension<CreatedId> {
    Extension(CreatedId(id.to_owned()))
}

/// The name that the caller gave itself.
pub(crate) fn actor_of(headers: &HeaderMap) -> ApiResult<Option<String>> {
    request::actor(headers)
}

/// The state of the audit middleware.
#[derive(Clone)]
pub(crate) struct Audit {
    runtime: Runtime,
    /// Its streams are told of changes.
    hub: EventHub,
    changes: Arc<AuditTable>,
}

impl Audit {
    pub(crate) fn new(runtime: Runtime, hub: EventHub) -> Self {
        Audit { runtime, hub, changes: Arc::new(AuditTable::new()) }
    }
}

/// Passes a request on, and records its result if it requests a change.
pub(crate) async fn note(State(audit): State<Audit>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let change = audit.changes.find(request.method(), path);
    let Some(change) = change.filter(|change| !change.is_dry_run(request.uri())) else {
        return next.run(request).await;
    };
    // Most of these requests only read, for long, and stop when their client disconnects.
    if change.when == AuditCondition::Repairs {
        return audit.see_through(change, request, next).await;
    }
    // It runs to its end even if the client disconnects or the server stops: a change that was made is recorded.
    let (runtime, path) = (audit.runtime.clone(), request.uri().path().to_owned());
    let answered = runtime.to_the_end(audit.see_through(change, request, next)).await;
    answered.unwrap_or_else(|broken| guard::refuse(&path, &broken.into()))
}

impl Audit {
    async fn see_through(self, change: &'static AuditedChange, request: Request, next: Next) -> Response {
        let (mut parts, body) = request.into_parts();
        let asked = AuditedRequest::of(change, &mut parts).await;
        let caller = parts.extensions.get::<Caller>().cloned();
        let (actor, response) = match request::actor(&parts.headers) {
            Ok(actor) => {
                parts.extensions.insert(asked.slot.clone());
                (actor, next.run(Request::from_parts(parts, body)).await)
            }
            Err(error) => (None, guard::refuse(asked.uri.path(), &error)),
        };
        let notes = asked.slot.notes();
        let is_look = match change.when {
            AuditCondition::Repairs => !notes.repairs,
            AuditCondition::NotDryRun => notes.is_dry_run,
            AuditCondition::Always => false,
        };
        if is_look || !is_decided(&response) {
            return response;
        }
        self.hub.on_change(change.what);
        let line = asked.line(change, actor, caller.as_ref().and_then(Caller::identity), &response);
        record(&self.runtime, line, response.status()).await;
        response
    }
}

async fn record(runtime: &Runtime, line: AuditNote, status: StatusCode) {
    let change_text = format!("{} {} by {}", line.what, line.subject, line.who);
    let status = status.as_u16();
    match tokio::time::timeout(PATIENCE, line.write(runtime)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(%error, change = change_text, status, "the audit does not have a change")
        }
        Err(_) => {
            tracing::warn!(change = change_text, status, "the audit may not have a change: the store is slow")
        }
    }
}

/// Records that a worker took the id of a live one. Other registrations are no changes that people ask for.
pub(crate) async fn note_takeover(
    runtime: &Runtime,
    worker: &str,
    older: &WorkerAddress,
    newer: &WorkerAddress,
) {
    let place = |address: &WorkerAddress| {
        let WorkerAddress { url, peer } = address;
        if url.is_empty() { peer.clone() } else { url.clone() }
    };
    let (from, to) = (place(older), place(newer));
    tracing::warn!(worker, from, to, "a worker took the id of a live one");
    let detail = json!({
        "ip": newer.peer,
        "method": "POST",
        "path": "/api/workers/register",
        "status": 200,
        "result": "done",
        "reason": format!("taken from the live worker at {from} by the one at {to}"),
    });
    let what = table::TAKEOVER.to_owned();
    let line = AuditNote { who: NOBODY.to_owned(), what, subject: worker.to_owned(), detail };
    record(runtime, line, StatusCode::OK).await;
}

/// The data of a request before its response.
struct AuditedRequest {
    method: String,
    uri: Uri,
    /// The subject that the path names.
    named: Option<String>,
    ip: Option<String>,
    slot: NotesSlot,
}

impl AuditedRequest {
    async fn of(change: &AuditedChange, parts: &mut Parts) -> Self {
        let params = RawPathParams::from_request_parts(parts, &()).await;
        let named = match (change.subject, &params) {
            (AuditSubject::Path(name), Ok(params)) => {
                params.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
            }
            _ => None,
        };
        let field = match change.subject {
            AuditSubject::Body(field) | AuditSubject::ForeignId(field, _) => Some(field),
            AuditSubject::Path(_) | AuditSubject::Made | AuditSubject::Server => None,
        };
        AuditedRequest {
            method: parts.method.to_string(),
            uri: parts.uri.clone(),
            named,
            ip: ClientAddress::of(&parts.extensions),
            slot: NotesSlot::new(field),
        }
    }

    fn line(
        &self,
        change: &AuditedChange,
        actor: Option<String>,
        identity: Option<&Identity>,
        response: &Response,
    ) -> AuditNote {
        let BodyNotes { by, reason, .. } = self.slot.notes();
        let mut detail = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                detail.insert(name.to_owned(), value);
            }
        };
        put("ip", self.ip.clone().map(Value::from));
        put("method", Some(json!(self.method)));
        put("path", Some(json!(request::line(self.uri.path(), PATH_CHARS))));
        put("status", Some(json!(response.status().as_u16())));
        put("result", Some(json!(result(response.status()))));
        put("code", response.extensions().get::<Code>().map(|code| json!(code.word())));
        let given = actor.or_else(|| by.clone());
        if let Some(identity) = identity {
            put("key", identity.key.map(|key| json!(key.as_str())));
            put(
                "on_behalf_of",
                given.as_ref().filter(|given| **given != identity.name).map(|given| json!(given)),
            );
        }
        put("reason", reason.as_deref().map(|reason| json!(request::line(reason, REASON_CHARS))));
        AuditNote {
            who: identity
                .map(|identity| identity.name.clone())
                .or(given)
                .unwrap_or_else(|| NOBODY.to_owned()),
            what: change.what.to_owned(),
            subject: request::line(&self.subject(change, response), SUBJECT_CHARS),
            detail: Value::Object(detail),
        }
    }

    /// The subject of the change; empty where the request does not name it.
    fn subject(&self, change: &AuditedChange, response: &Response) -> String {
        let noted = || self.slot.notes().subject.clone();
        let found = match change.subject {
            AuditSubject::Path(_) => self.named.clone(),
            AuditSubject::Body(field) => noted().or_else(|| self.queried(field)),
            AuditSubject::ForeignId(field, read) => {
                noted().or_else(|| self.queried(field)).map(|id| read(&id))
            }
            AuditSubject::Made => response.extensions().get::<CreatedId>().map(|CreatedId(id)| id.clone()),
            AuditSubject::Server => None,
        };
        found.unwrap_or_default()
    }

    fn queried(&self, field: &str) -> Option<String> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&self.uri).ok()?;
        pairs.into_iter().rev().find(|(key, _)| plain(key) == field).map(|(_, value)| value)
    }
}

/// Whether a handler decided about the request. Requests that are turned away before that must cost nothing.
fn is_decided(response: &Response) -> bool {
    let code = response.extensions().get::<Code>();
    // A flood of requests without a key must not fill the audit.
    let is_stranger = matches!(code, Some(Code::Unauthenticated | Code::KeyExpired));
    let is_unseen = is_stranger || matches!(code, Some(Code::Busy | Code::Draining | Code::CrossOrigin));
    !is_unseen && response.status() != StatusCode::TOO_MANY_REQUESTS
}

/// The result in one word. A `failed` change may have been made: its client was not told.
fn result(status: StatusCode) -> &'static str {
    match status {
        status if status.is_server_error() => "failed",
        status if status.is_client_error() => "refused",
        _ => "done",
    }
}
