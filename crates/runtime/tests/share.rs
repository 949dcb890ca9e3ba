//! Lower priorities behind more than memory holds of a queue, on a real store and over a restart.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_conformance::backend::fresh;
use windlass_engine::definition::Strictness;
use windlass_engine::event::Start;
use windlass_engine::plan::Priority;
use windlass_engine::share::SHARE;
use windlass_runtime::jobs::ClaimRequest;
use windlass_runtime::runs::RunSpec;
use windlass_runtime::runs::flow::{FlowSpec, VersionSpec};
use windlass_runtime::{Runtime, Settings};
use windlass_store::flow::VersionStatus;

/// More than are read from the store at once.
const N_URGENT: usize = 5_000;

/// Starts a run with so many branches that each wait for a worker of the service `work`.
async fn start(server: &Runtime, name: &str, n: usize, priority: Priority) {
    let node = json!({"kind": "foreach", "service": "work", "exec_type": "queue", "parallel_mode": "concurrent", "prep": {"input_key": "$params.all"}});
    let flow = FlowSpec { name: name.to_owned(), ..FlowSpec::default() };
    let version = VersionSpec {
        definition: json!({"start": "each", "nodes": {"each": node}, "edges": []}).to_string(),
        strictness: Strictness::Strict,
        number: None,
        status: VersionStatus::Published,
        note: String::new(),
    };
    let published = server.runs().publish_flow(flow, Some(version)).await.unwrap().published;
    let Value::Object(params) = json!({"all": vec![0; n]}) else { unreachable!() };
    let new = RunSpec {
        flow: published.flow,
        version: published.version.unwrap().0,
        request: None,
        labels: BTreeMap::new(),
        schedule: None,
        start: Start { params: params.into(), priority: Some(priority), ..Start::default() },
    };
    server.runs().start(new).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lowest_is_found_behind_thousands_after_a_restart() {
    let store = fresh().await;
    let settings = || Settings::default();
    let before = Runtime::start_up(store.clone(), settings()).await.unwrap();
    start(&before, "urgent", N_URGENT, Priority::Highest).await;
    start(&before, "patient", 3, Priority::Lowest).await;
    before.shut_down(Duration::ZERO).await;
    let server = Runtime::start_up(store, settings()).await.unwrap();
    let mut order = Vec::new();
    for _ in 0..500 {
        if order.iter().filter(|priority| **priority == -2).count() == 3 {
            break;
        }
        let claim = ClaimRequest {
            worker: "w".to_owned(),
            queues: Vec::new(),
            services: vec!["work".to_owned()],
            max: 1,
            wait: Duration::from_secs(20),
            lease: Duration::from_secs(60),
        };
        order.extend(server.jobs().claim(claim).await.unwrap().into_iter().map(|claimed| claimed.priority));
    }
    let patient: Vec<usize> = (0..order.len()).filter(|at| order[*at] == -2).collect();
    // They are read beside the running dispatch, and have every fifth slot from then on.
    assert_eq!(patient.len(), 3, "{order:?}");
    assert!(patient.windows(2).all(|two| two[1] - two[0] == SHARE as usize), "{patient:?}");
    assert!(patient[0] >= SHARE as usize - 1, "{patient:?}");
}
