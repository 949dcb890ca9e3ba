//! Workers: registration, heartbeats, lists and allocation.

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use windlass_engine::time::Timestamp;
use windlass_runtime::calls::signature::read_secret;
use windlass_runtime::workers::BeatVerdict;
use windlass_store::page::NameRange;
use windlass_store::signing::SigningSecret;
use windlass_store::worker::{WorkerBeat, WorkerQuery, WorkerRow};

use super::Surface;
use super::era::Noun;
use super::failure::{Failure, SchedulerResult, ok};
use super::request::RequestFields;
use crate::access::Caller;
use crate::audit;
use crate::check;
use crate::extract::ClientAddress;

/// Bytes of a URL: longer ones are refused by most servers too.
const URL_MAX: usize = 2_048;
/// Workers that are listed, the first by id: more than one server calls.
const LIST_MAX: usize = 10_000;
const KINDS: [&str; 3] = ["http", "async", "local"];

/// The refusal of a worker whose id another one has now.
pub(super) fn lost(id: &str) -> Failure {
    Failure::conflict(format!("lost: {}", check::taken_id(id)))
}

pub(super) async fn register(
    State(surface): State<Surface>,
    ClientAddress(peer): ClientAddress,
    caller: Caller,
    ask: RequestFields,
) -> SchedulerResult {
    let id = ask.required("id")?.to_owned();
    let url = url_of(&ask)?.unwrap_or_default();
    // A worker without an address can only pull.
    let kind = ask.text("type")?.unwrap_or(if url.is_empty() { "async" } else { "http" });
    if !KINDS.contains(&kind) {
        let kind: String = kind.chars().take(40).collect();
        return Err(Failure::bad(format!("there is no worker type `{kind}`: give http, async or local")));
    }
    if kind == "http" && url.is_empty() {
        return Err(Failure::bad("`url` is missing: a worker of type http is called there"));
    }
    let now = surface.runtime.clock().now();
    let worker = WorkerRow {
        name: ask.name("name")?.unwrap_or(&id).to_owned(),
        id,
        url,
        kind: kind.to_owned(),
        services: ask.texts("services")?.unwrap_or_default(),
        queues: ask.texts("queues")?.unwrap_or_default(),
        load: ask.whole("load")?.unwrap_or(0).max(0),
        capacity: ask.whole("capacity")?.unwrap_or(0).max(0),
        is_draining: false,
        peer,
        replaced: Vec::new(),
        secret: secret_of(&ask)?,
        registered_at: now,
        beat_at: now,
    };
    caller.require_scope(&worker.services, &worker.queues)?;
    require_worker(&surface, &caller, &worker.id).await?;
    let (id, address) = (worker.id.clone(), worker.address());
    if let Some(older) = surface.runtime.workers().register(worker).await? {
        audit::note_takeover(&surface.runtime, &id, &older, &address).await;
    }
    ok()
}

pub(super) async fn heartbeat(
    State(surface): State<Surface>,
    ClientAddress(peer): ClientAddress,
    caller: Caller,
    ask: RequestFields,
) -> SchedulerResult {
    let id = ask.required("id")?.to_owned();
    let load = ask.whole("load")?.map(|load| load.max(0));
    require_worker(&surface, &caller, &id).await?;
    let beat = WorkerBeat { id: id.clone(), url: url_of(&ask)?, load, at: surface.runtime.clock().now() };
    match surface.runtime.workers().beat(beat, &peer).await? {
        BeatVerdict::Known => {}
        BeatVerdict::Unknown => return Err(Failure::unknown("worker", &id)),
        BeatVerdict::Lost => return Err(lost(&id)),
    }
    if surface.runtime.workers().is_worker_draining(&id) {
        return Ok(Json(json!({ "ok": "1", "draining": true })));
    }
    ok()
}

/// The secret under which the server signs calls to the worker.
fn secret_of(ask: &RequestFields) -> Result<Option<SigningSecret>, Failure> {
    let secret = ask.text("secret")?.map(read_secret).transpose();
    secret.map_err(|reason| Failure::bad(format!("`secret`: {reason}")))
}

/// Refuses to change the registration of a worker with services or queues outside of the scope: its calls would go to
/// the address of another key.
async fn require_worker(surface: &Surface, caller: &Caller, id: &str) -> Result<(), Failure> {
    if caller.identity().is_none_or(|identity| identity.scope.is_everything()) {
        return Ok(());
    }
    let query = WorkerQuery { ids: NameRange::One(id.to_owned()), ..WorkerQuery::default() };
    for worker in surface.runtime.store().workers(surface.runtime.project(), query).await? {
        caller.require_scope(&worker.services, &worker.queues)?;
    }
    Ok(())
}

fn url_of(ask: &RequestFields) -> Result<Option<String>, Failure> {
    let url = ask.text("url")?;
    if url.is_some_and(|url| url.len() > URL_MAX) {
        return Err(Failure::bad(format!("`url` is longer than {URL_MAX} bytes")));
    }
    if url.is_some_and(|url| url.contains(char::is_control)) {
        return Err(Failure::bad("`url` has control characters: leave them out"));
    }
    Ok(url.map(str::to_owned))
}

pub(super) async fn list(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    let asked_ms =
        ask.whole("ttl")?.and_then(|ttl| u64::try_from(ttl).ok()).map(|ttl| ttl.saturating_mul(1_000));
    let ttl_ms = asked_ms.filter(|ms| *ms > 0).unwrap_or_else(|| ttl_ms(&surface));
    let now = surface.runtime.clock().now();
    let since = Timestamp(now.0.saturating_sub(i64::try_from(ttl_ms).unwrap_or(i64::MAX)));
    let service = ask.text("service")?.map(str::to_owned);
    let ids = NameRange::After { name: None, limit: LIST_MAX };
    let query = WorkerQuery { ids, service, alive_since: Some(since) };
    let workers = surface.runtime.workers().list(query).await?;
    Ok(Json(workers.into_iter().map(|worker| render(&surface, worker, now)).collect()))
}

pub(super) async fn allocate(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    let service = ask.required("service")?;
    let now = surface.runtime.clock().now();
    match surface.runtime.workers().allocate(service).await? {
        Some(worker) => Ok(Json(render(&surface, worker, now))),
        None => Err(Failure::new(axum::http::StatusCode::NOT_FOUND, "no worker")),
    }
}

fn ttl_ms(surface: &Surface) -> u64 {
    u64::try_from(surface.runtime.settings().worker_ttl.as_millis()).unwrap_or(u64::MAX)
}

fn render(surface: &Surface, worker: WorkerRow, now: Timestamp) -> Value {
    let is_alive = now.since(worker.beat_at) <= ttl_ms(surface);
    let mut fields = Map::new();
    fields.insert("id".to_owned(), worker.id.into());
    fields.insert("url".to_owned(), worker.url.into());
    fields.insert("services".to_owned(), worker.services.into());
    fields.insert("load".to_owned(), worker.load.into());
    fields.insert("last_heartbeat".to_owned(), seconds(worker.beat_at).into());
    fields.insert("status".to_owned(), json!(if is_alive { "online" } else { "offline" }));
    fields.insert("type".to_owned(), worker.kind.into());
    surface.era.object(Noun::Worker, fields)
}

/// A time as this surface tells it.
pub(super) fn seconds(at: Timestamp) -> i64 {
    at.0.div_euclid(1_000)
}
