//! Priorities of runs at an overloaded worker, and their metrics.

use std::collections::BTreeSet;

use windlass_conformance::backend::Backend;

use super::*;

/// A worker with one place for jobs of `one`, which writes down whose turn it was.
fn slow_worker(client: &Client) -> (DropGuard, Arc<Mutex<Vec<String>>>) {
    let (stop, order) = (CancellationToken::new(), Arc::new(Mutex::new(Vec::new())));
    let turns = order.clone();
    let worker = Worker::new(client.clone(), "slow").grace(Duration::ZERO).slots(1).service(
        "one",
        move |call: ServiceCall| {
            let turns = turns.clone();
            async move {
                turns.lock().unwrap().push(call.params["who"].as_str().unwrap_or_default().to_owned());
                tokio::time::sleep(Duration::from_millis(5)).await;
                HandlerOutcome::Done(Value::Null)
            }
        },
    );
    tokio::spawn(worker.run(stop.clone()));
    (stop.drop_guard(), order)
}

async fn start_of(client: &Client, flow: &str, priority: &str) -> String {
    let new = serde_json::from_value(json!({"priority": priority, "params": {"who": priority}})).unwrap();
    client.runs().start(flow, &new).await.unwrap().id
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lowest_is_done_soon_although_the_highest_never_end() {
    let server = Server::start(&[]).await;
    let client = server.client();
    publish(
        &client,
        "one",
        json!({"steps": [trigger(), {"id": "a", "operator": "one", "parameters": {"who": "{{__0.who}}"}}]}),
    )
    .await;
    // They are there before the worker, so that it is known who waits.
    let mut runs = Vec::new();
    for _ in 0..24 {
        runs.push(start_of(&client, "one", "highest").await);
    }
    for class in ["lowest", "low", "high"] {
        runs.push(start_of(&client, "one", class).await);
    }
    let (_worker, order) = slow_worker(&client);
    for run in &runs {
        ends(&client, run, "completed").await;
    }
    let order = order.lock().unwrap().clone();
    let lower: Vec<(usize, &str)> = order
        .iter()
        .enumerate()
        .filter(|(_, who)| *who != "highest")
        .map(|(at, who)| (at, who.as_str()))
        .collect();
    // Every fifth turn, and one class after the other.
    assert_eq!(lower, [(4, "high"), (9, "low"), (14, "lowest")], "{order:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn finished_work_is_measured() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let (_worker, _diary) = worker(&client);
    let branches = ["a", "b", "c"].map(|id| json!([step(id, "meet")]));
    let run = comes_to(&client, "measured", &[trigger(), parallel("p", &branches)], json!({})).await;
    let stats = get(&client, "/api/v1/stats").await;
    assert_eq!(stats["flows"], json!(["measured"]), "{stats}");
    assert_eq!(stats["runs"]["total"]["completed"], 1, "{stats}");
    assert_eq!(stats["nodes"]["total"]["succeeded"], 3, "{stats}");
    assert_eq!(
        (&stats["parallelism"]["running"], &stats["parallelism"]["max_running"]),
        (&json!(0), &json!(3))
    );
    assert!(stats["nodes"]["last_hour"]["duration_ms"]["p50"].as_u64() >= Some(50), "{stats}");
    assert!(stats["process"]["tasks"].as_u64() > Some(0), "{stats}");
    let flow = get(&client, "/api/v1/flows/measured/stats").await;
    assert_eq!(
        (&flow["by_node"][0]["node"], &flow["by_node"][2]["succeeded"]),
        (&json!("a"), &json!(1)),
        "{flow}"
    );
    // However long the calls had to wait for a worker.
    let busy: u64 = (0..3).filter_map(|nth| flow["by_node"][nth]["total_ms"].as_u64()).sum();
    let took = flow["runs"]["total"]["duration_ms"]["mean"].as_u64().unwrap();
    let average = flow["average_parallelism"].as_f64().unwrap();
    assert!(busy >= 3 * 60 && (average - busy as f64 / took as f64).abs() < 0.01, "{flow}");
    // Metrics of queues are shown when a queue has a job.
    let job = json!({"name": "idle", "queue": "idle"});
    assert_eq!(client.raw("POST", "/api/v1/jobs", Some(&job)).await.unwrap().0, 201);
    let (status, text) = client.raw("GET", "/metrics", None).await.unwrap();
    assert_eq!(status, 200);
    for line in [
        "windlass_runs_ended_total{flow=\"measured\",status=\"completed\"} 1",
        "windlass_calls_ended_total{flow=\"measured\",node=\"b\",outcome=\"succeeded\"} 1",
        "windlass_call_duration_seconds_count{flow=\"measured\",node=\"c\"} 1",
        "windlass_calls_running 0",
        "windlass_run_duration_seconds_bucket{flow=\"measured\",le=\"+Inf\"} 1",
        "# TYPE windlass_run_duration_seconds histogram",
    ] {
        assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
    }
    assert!(is_well_formed(&text), "{text}");
    assert_eq!(documented(), metrics(&text), "docs/metrics.md");
    // Unknown flows and runs.
    let gone = client.raw("GET", "/api/v1/flows/nothing/stats", None).await.unwrap();
    assert_eq!(gone.0, 404, "{}", gone.1);
    let id = run["id"].as_str().unwrap().replace('0', "1");
    assert_eq!(client.raw("GET", &format!("/api/v1/runs/{id}/stats"), None).await.unwrap().0, 404);
    assert_eq!(client.raw("GET", "/api/v1/stats?since=1", None).await.unwrap().0, 400);
}

/// The metrics of a page.
fn metrics(text: &str) -> BTreeSet<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// The metrics that the document explains; those of Redis are only there where a server has one.
fn documented() -> BTreeSet<String> {
    let has_redis = Backend::chosen() == Backend::PostgresAndRedis;
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.filter(|name| name.contains("process_") || name.starts_with("windlass_"))
        .filter(|name| has_redis || !name.starts_with("windlass_redis_"))
        .map(str::to_owned)
        .collect()
}

/// Every sample belongs to the metric that was named last, and is a number.
fn is_well_formed(text: &str) -> bool {
    let mut metric = "";
    text.lines().all(|line| {
        if let Some(named) = line.strip_prefix("# TYPE ") {
            metric = named.split(' ').next().unwrap_or("");
            return true;
        }
        let is_of = |name: &str| {
            name.strip_prefix(metric).is_some_and(|rest| ["", "_bucket", "_sum", "_count"].contains(&rest))
        };
        let sample = line.rsplit_once(' ');
        line.starts_with("# HELP ")
            || sample.is_some_and(|(name, value)| {
                is_of(name.split('{').next().unwrap_or("")) && value.parse::<f64>().is_ok()
            })
    })
}
