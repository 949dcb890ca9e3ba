//! A fake server that speaks the contract: tests put jobs in and read the results that workers sent.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use windlass_sdk::Client;
use windlass_sdk::contract::{
    ClaimRequest, ClaimResponse, ClaimedJob, ExtendRequest, ExtendResponse, ExtendVerdict, FinishRequest,
    FinishResponse, FinishVerdict, JobResult, LeaseVerdict,
};

/// The jobs of the server and the requests that it received.
#[derive(Debug, Default)]
pub(crate) struct FakeState {
    pub(crate) ready: VecDeque<ClaimedJob>,
    pub(crate) finished: Vec<JobResult>,
    pub(crate) n_finishes: usize,
    pub(crate) extended: Vec<String>,
    pub(crate) canceled: BTreeSet<String>,
    pub(crate) lost: BTreeSet<String>,
    pub(crate) registered: Vec<Value>,
    pub(crate) known: bool,
    pub(crate) refuse_finishes: usize,
    /// Jobs whose end cannot be taken the first time.
    pub(crate) doubtful: BTreeSet<String>,
    /// Bytes of the results of one request above which it is too large; 0 = never.
    pub(crate) finish_bytes_max: usize,
    /// Whether another worker has taken the id.
    pub(crate) id_taken: bool,
    /// Whether workers are told to go.
    pub(crate) draining: bool,
    /// Claims that wait for work now.
    pub(crate) n_waiting: usize,
    n_put: usize,
}

pub(crate) struct Fake {
    pub(crate) state: Mutex<FakeState>,
    work: Notify,
    changed: watch::Sender<()>,
}

type Shared = Arc<Fake>;

impl Fake {
    /// Starts a server on a free port.
    pub(crate) async fn start() -> (Shared, Client) {
        let fake = Arc::new(Fake {
            state: Mutex::new(FakeState::default()),
            work: Notify::new(),
            changed: watch::Sender::new(()),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let router = Router::new()
            .route("/api/v1/jobs/claim", post(claim))
            .route("/api/v1/jobs/finish", post(finish))
            .route("/api/v1/jobs/extend", post(extend))
            .route("/api/workers/register", post(register))
            .route("/api/workers/heartbeat", post(heartbeat))
            .route("/api/v1/flows/{flow}", get(flow))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(Arc::clone(&fake));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (fake, client)
    }

    pub(crate) fn put(&self, service: &str, input: Value) -> String {
        let mut state = self.state.lock().unwrap();
        state.n_put += 1;
        let (id, call) = (format!("job_{}", state.n_put), format!("run_{}.1", state.n_put));
        state.ready.push_back(ClaimedJob {
            id: id.clone(),
            lease: format!("{id}.1"),
            call: Some(call),
            attempt: 1,
            key: format!("key of {id}"),
            queue: "default".to_owned(),
            service: service.to_owned(),
            input,
            ..ClaimedJob::default()
        });
        self.work.notify_one();
        id
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut FakeState)) {
        change(&mut self.state.lock().unwrap());
        self.changed.send_replace(());
    }

    /// Tells workers to go.
    pub(crate) fn drain(&self) {
        self.change(|state| state.draining = true);
        self.work.notify_one();
    }

    /// Waits until the received requests satisfy the condition.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&FakeState) -> bool) {
        let mut changes = self.changed.subscribe();
        let waiting = async {
            loop {
                changes.mark_unchanged();
                if holds(&self.state.lock().unwrap()) {
                    return;
                }
                changes.changed().await.unwrap();
            }
        };
        let patience = Duration::from_secs(10);
        if tokio::time::timeout(patience, waiting).await.is_err() {
            panic!("{what}: {:#?}", self.state.lock().unwrap());
        }
    }
}

/// Counts a claim as long as it waits; a client that hangs up waits no longer.
struct Waiting<'f>(&'f Fake);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.n_waiting -= 1);
    }
}

async fn claim(State(fake): State<Shared>, Json(claim): Json<ClaimRequest>) -> Json<ClaimResponse> {
    fake.change(|state| state.n_waiting += 1);
    let _waiting = Waiting(&fake);
    loop {
        let (jobs, draining): (Vec<ClaimedJob>, bool) = {
            let mut state = fake.state.lock().unwrap();
            let n = if state.draining { 0 } else { state.ready.len().min(claim.max.unwrap_or(1)) };
            (state.ready.drain(..n).collect(), state.draining)
        };
        if draining || !jobs.is_empty() {
            return Json(ClaimResponse { jobs, draining });
        }
        fake.work.notified().await;
    }
}

async fn finish(
    State(fake): State<Shared>,
    Json(finish): Json<FinishRequest>,
) -> Result<Json<FinishResponse>, (StatusCode, Json<Value>)> {
    let (mut refused, mut is_large, mut doubtful) = (false, false, BTreeSet::new());
    let size = serde_json::to_vec(&finish).unwrap().len();
    fake.change(|state| {
        state.n_finishes += 1;
        is_large = state.finish_bytes_max > 0 && size > state.finish_bytes_max;
        refused = state.refuse_finishes > 0;
        state.refuse_finishes = state.refuse_finishes.saturating_sub(1);
        if !refused && !is_large {
            doubtful = std::mem::take(&mut state.doubtful);
            let taken = finish.results.iter().filter(|result| !doubtful.contains(&result.id));
            state.finished.extend(taken.cloned());
        }
    });
    if is_large {
        let problem = json!({ "code": "too_large", "detail": "too many bytes" });
        return Err((StatusCode::PAYLOAD_TOO_LARGE, Json(problem)));
    }
    if refused {
        return Err((
            StatusCode::SERVICE_UNAVAILABLE,
            Json(json!({ "code": "draining", "detail": "later" })),
        ));
    }
    let verdict = |result: JobResult| {
        let is_doubtful = doubtful.contains(&result.id);
        let verdict = if is_doubtful { LeaseVerdict::Error } else { LeaseVerdict::Ok };
        FinishVerdict { id: result.id, verdict, code: is_doubtful.then(|| "internal".to_owned()) }
    };
    Ok(Json(FinishResponse { results: finish.results.into_iter().map(verdict).collect() }))
}

async fn extend(State(fake): State<Shared>, Json(extend): Json<ExtendRequest>) -> Json<ExtendResponse> {
    let mut results = Vec::new();
    fake.change(|state| {
        for lease in extend.leases {
            let job = lease.split('.').next().unwrap_or_default();
            let verdict = if state.canceled.contains(job) {
                LeaseVerdict::Canceled
            } else if state.lost.contains(job) {
                LeaseVerdict::Lost
            } else {
                LeaseVerdict::Ok
            };
            state.extended.push(lease.clone());
            results.push(ExtendVerdict { lease, verdict, code: None });
        }
    });
    Json(ExtendResponse { results })
}

async fn register(State(fake): State<Shared>, Json(worker): Json<Value>) -> Json<Value> {
    fake.change(|state| {
        state.registered.push(worker);
        state.known = true;
    });
    Json(json!({ "ok": "1" }))
}

async fn heartbeat(State(fake): State<Shared>, Json(_beat): Json<Value>) -> (StatusCode, Json<Value>) {
    let state = fake.state.lock().unwrap();
    match state.known {
        _ if state.id_taken => {
            (StatusCode::CONFLICT, Json(json!({ "error": "lost: another worker has it" })))
        }
        true if state.draining => (StatusCode::OK, Json(json!({ "ok": "1", "draining": true }))),
        true => (StatusCode::OK, Json(json!({ "ok": "1" }))),
        false => (StatusCode::NOT_FOUND, Json(json!({ "error": "unknown worker" }))),
    }
}

async fn flow() -> (StatusCode, Json<Value>) {
    let problem = json!({
        "type": "/docs/errors#unknown_flow", "title": "there is no such flow", "status": 404,
        "code": "unknown_flow", "detail": "there is no flow `nope`",
        "errors": [{"path": "flow", "reason": "unknown", "hint": "did you mean `hope`?"}]
    });
    (StatusCode::NOT_FOUND, Json(problem))
}
