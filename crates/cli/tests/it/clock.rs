//! The real binary on a store that a server with a wrong clock has used.

use std::process::{Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use windlass_engine::time::Timestamp;
use windlass_store::copy::{StoreAddress, open_stopped};
use windlass_store::server::ServerRow;

use crate::http::{ends, get, seen, start};
use crate::server::{Server, publish};
use crate::shell::text;
use crate::store::Store;

const HOUR_MS: u64 = 3_600_000;
const YEAR_MS: u64 = 365 * 24 * HOUR_MS;

fn windlass(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(args).stdin(Stdio::null()).output().unwrap()
}

/// The status and the detail of a check of `doctor`.
#[track_caller]
fn doctor(server: &Server, check: &str) -> (String, String) {
    let output = windlass(&["doctor", "--server", &server.url(), "--output", "json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("doctor prints JSON");
    let row = found.as_array().unwrap().iter().find(|row| row["check"] == check).unwrap().clone();
    (row["status"].as_str().unwrap().to_owned(), row["detail"].as_str().unwrap().to_owned())
}

/// Makes the store as if its last server had run so far ahead of the clock, and starts another one.
async fn restart_ahead(server: &mut Server, ahead_ms: u64) {
    server.kill();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let beat_at = i64::try_from(now).unwrap() + i64::try_from(ahead_ms).unwrap();
    match server.store() {
        Store::File(path) => {
            let place = StoreAddress::File(path.clone());
            let stopped = open_stopped(&place, &mut |_| {}).await.unwrap();
            for row in stopped.store.servers().await.unwrap() {
                let row = ServerRow { beat_at: Timestamp(beat_at), ..row };
                stopped.store.save_server(row).await.unwrap();
            }
        }
        other => drop(other.ask(&format!("UPDATE servers SET beat_at = {beat_at}"))),
    }
    server.spawn();
}

async fn readiness(server: &Server) -> (u16, Value) {
    let client = server.client();
    seen("readiness", async || {
        let (status, body) = client.raw("GET", "/readyz", None).await.ok()?;
        Some((status, serde_json::from_str(&body).ok()?))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_went_back_is_shown_and_stops_nothing() {
    let mut server = Server::start(&[]).await;
    restart_ahead(&mut server, HOUR_MS).await;
    let (status, body) = readiness(&server).await;
    assert_eq!(status, 200, "{body}");
    let warning = body["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains("behind the time of this server"), "{warning}");
    assert!(body["clock_skew_ms"].as_u64().unwrap() > 3_000_000, "{body}");
    let (status, detail) = doctor(&server, "clock");
    assert_eq!(status, "warning", "{detail}");
    assert!(detail.contains("behind the time of the server"), "{detail}");
    let client = server.client();
    let (_, metrics) = client.raw("GET", "/metrics", None).await.unwrap();
    let skew = metrics.lines().find_map(|line| line.strip_prefix("windlass_clock_skew_seconds "));
    assert!(skew.unwrap().parse::<f64>().unwrap() > 3_000.0);
    seen("the warning", async || server.log().contains("run at half pace").then_some(())).await;
    publish(
        &client,
        "t",
        json!({"start": "t", "nodes": {"t": {"kind": "timer", "params": {"delay_ms": 300}}}}),
    )
    .await;
    let run = start(&client, "t", json!({})).await;
    ends(&client, &run, "completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_of_another_year_makes_unready_until_the_store_is_repaired() {
    let mut server = Server::start(&[]).await;
    restart_ahead(&mut server, 55 * YEAR_MS).await;
    let (status, body) = readiness(&server).await;
    assert_eq!(status, 503, "{body}");
    assert!(body["troubles"][0].as_str().unwrap().contains("doctor --repair"), "{body}");
    assert_eq!(doctor(&server, "ready").0, "error");
    let address = server.store().address();
    let repair = || windlass(&["doctor", "--repair", "--store", &address, "--output", "json"]);
    let refused = repair();
    assert_eq!(refused.status.code(), Some(1), "a server uses it: {}", text(&refused.stderr));
    server.kill();
    let repaired = repair();
    let told = text(&repaired.stderr);
    assert!(repaired.status.success(), "{told}");
    assert!(told.contains("journals"), "{told}");
    let rows: Value = serde_json::from_slice(&repaired.stdout).unwrap();
    let n =
        |of: &str| rows.as_array().unwrap().iter().find(|row| row["rows"] == of).unwrap()["set_back"].clone();
    // On PostgreSQL every start is another server.
    assert!(n("servers").as_u64().unwrap() > 0 && n("runs") == json!(0), "{rows}");
    server.spawn();
    server.ready().await;
    assert_eq!(get(&server.client(), "/readyz").await.get("warnings"), None);
    let unused = windlass(&["doctor", "--store", &address]);
    assert_eq!(unused.status.code(), Some(2), "without --repair it has no effect");
}
