//! Leases and ids of calls prove the grant of work: no other text ends, extends or answers it.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use serde_json::{Value, json};

use crate::test_server::{TestServer, queued};

/// Texts that a client can make up for a grant, given the real text of another grant.
fn forgeries(real: &str, other: &str) -> Vec<String> {
    let (name, signature) = real.rsplit_once('.').unwrap();
    let (id, fence) = name.rsplit_once('.').unwrap();
    let (other_name, other_signature) = other.rsplit_once('.').unwrap();
    let next: u64 = fence.parse::<u64>().unwrap() + 1;
    vec![
        name.to_owned(),
        format!("{name}."),
        format!("{name}.{}", &signature[..signature.len() - 1]),
        format!("{name}.{}", &signature[..signature.len() / 2]),
        format!("{name}.{signature}0"),
        format!("{name}.{other_signature}"),
        format!("{other_name}.{signature}"),
        format!("{id}.{next}.{signature}"),
        format!("{name}.{}", "0".repeat(signature.len())),
        format!("{name}.{}", signature.chars().rev().collect::<String>()),
        format!("{real}.{signature}"),
        format!("{name}.{signature}.."),
    ]
}

/// Two runs, and the claimed job of each.
async fn two_jobs(host: &TestServer) -> [(String, Value); 2] {
    host.publish("d", queued()).await;
    let mut jobs = Vec::new();
    for _ in 0..2 {
        let run = host.start("d", json!({ "params": { "text": "hi" } })).await;
        let job = host.claim("press").await;
        assert_eq!(job["run"], json!(run));
        jobs.push((run, job));
    }
    jobs.try_into().unwrap()
}

fn text<'v>(job: &'v Value, field: &str) -> &'v str {
    job[field].as_str().unwrap()
}

#[tokio::test]
async fn a_forged_lease_neither_ends_nor_extends_a_job() {
    let host = TestServer::new().await;
    let [(run, job), (other_run, other)] = two_jobs(&host).await;
    let (lease, other_lease) = (text(&job, "lease"), text(&other, "lease"));
    let mut forged = forgeries(lease, other_lease);
    forged.push(format!(
        "{}.{}",
        lease.rsplit_once('.').unwrap().0,
        text(&job, "call").rsplit_once('.').unwrap().1
    ));
    for lease in forged {
        for id in [&job["id"], &other["id"]] {
            let result = json!({ "id": id, "lease": lease, "outcome": "done", "result": "stolen" });
            let answer = host.post("/api/v1/jobs/finish", json!({ "results": [result] })).await.ok();
            assert_eq!(answer["results"][0]["verdict"], "lost", "{lease}");
        }
        let answer = host.post("/api/v1/jobs/extend", json!({ "leases": [lease] })).await.ok();
        assert_eq!(answer["results"][0]["verdict"], "lost", "{lease}");
    }
    // Each real lease is good for its own job only, and the workers still have them.
    let crossed = json!({ "id": other["id"], "lease": lease, "outcome": "done", "result": "stolen" });
    let answer = host.post("/api/v1/jobs/finish", json!({ "results": [crossed] })).await.ok();
    assert_eq!(answer["results"][0]["verdict"], "lost");
    for (run, job) in [(run, job), (other_run, other)] {
        let extended = host.post("/api/v1/jobs/extend", json!({ "leases": [job["lease"]] })).await.ok();
        assert_eq!(extended["results"][0]["verdict"], "ok");
        assert_eq!(host.finish(&job, json!({ "outcome": "done", "result": "mine" })).await, "ok");
        assert_eq!(host.ended(&run).await["shared"]["pressed"], "mine");
    }
}

#[tokio::test]
async fn a_forged_id_of_a_call_reports_nothing() {
    let host = TestServer::new().await;
    let [(run, job), (_, other)] = two_jobs(&host).await;
    for job in [&job, &other] {
        assert_eq!(host.finish(job, json!({ "outcome": "suspended" })).await, "ok");
    }
    let (call, other_call) = (text(&job, "call"), text(&other, "call"));
    let mut forged = forgeries(call, other_call);
    forged.push(format!(
        "{}.{}",
        call.rsplit_once('.').unwrap().0,
        text(&job, "lease").rsplit_once('.').unwrap().1
    ));
    for call in forged {
        let answer = host.post(&format!("/api/v1/calls/{call}/report"), json!({ "result": "stolen" })).await;
        match answer.status.as_u16() {
            200 => assert_eq!(answer.ok()["verdict"], "lost", "{call}"),
            _ => drop(answer.refused(404, "unknown_call")),
        }
    }
    let unsigned = format!("/api/v1/calls/{}/report", call.rsplit_once('.').unwrap().0);
    let problem = host.post(&unsigned, json!({ "result": 1 })).await.refused(404, "unknown_call");
    assert!(problem["detail"].as_str().unwrap().contains("<run>.<fence>.<signature>"), "{problem}");
    let report = host.post(&format!("/api/v1/calls/{call}/report"), json!({ "result": "mine" })).await.ok();
    assert_eq!(report["verdict"], "ok");
    assert_eq!(host.ended(&run).await["shared"]["pressed"], "mine");
}

#[tokio::test]
async fn nothing_that_can_be_read_proves_a_grant() {
    let host = TestServer::new().await;
    let [(run, job), (_, other)] = two_jobs(&host).await;
    assert_eq!(host.finish(&other, json!({ "outcome": "suspended" })).await, "ok");
    let signatures: Vec<&str> = [&job, &other]
        .into_iter()
        .flat_map(|job| [text(job, "lease"), text(job, "call")])
        .map(|grant| grant.rsplit_once('.').unwrap().1)
        .collect();
    let id = text(&job, "id");
    for path in [
        format!("/api/v1/runs/{run}"),
        format!("/api/v1/runs/{run}/journal"),
        format!("/api/v1/runs/{run}/attempts"),
        format!("/api/v1/runs/{run}/logs"),
        format!("/api/v1/runs/{run}/why"),
        format!("/api/v1/runs/{run}/state"),
        format!("/api/v1/jobs/{id}"),
        format!("/api/v1/jobs/{id}/attempts"),
        "/api/v1/runs".to_owned(),
        "/api/v1/jobs".to_owned(),
        "/api/v1/workers".to_owned(),
        "/api/v1/queues".to_owned(),
        "/api/v1/audit".to_owned(),
        "/api/tasks".to_owned(),
        "/metrics".to_owned(),
    ] {
        let answer = host.get(&path).await;
        assert_eq!(answer.status.as_u16(), 200, "{path}");
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(signatures.iter().all(|signature| !body.contains(signature)), "{path}: {body}");
    }
}

#[tokio::test]
async fn a_worker_whose_id_was_taken_gets_no_jobs() {
    let host = TestServer::new().await;
    let send = async |ip: &str, path: &str, body: Value| {
        let address: SocketAddr = format!("{ip}:5000").parse().unwrap();
        let request = Request::builder().method("POST").uri(path).extension(ConnectInfo(address));
        host.send(request.body(Body::from(body.to_string())).unwrap()).await
    };
    let card = json!({ "id": "w", "services": ["press"], "type": "async" });
    let claim = json!({ "worker_id": "w", "services": ["press"] });
    send("10.0.0.1", "/api/workers/register", card.clone()).await.ok();
    send("10.0.0.1", "/api/v1/jobs/claim", claim.clone()).await.ok();
    send("10.0.0.2", "/api/workers/register", card).await.ok();
    let problem = send("10.0.0.1", "/api/v1/jobs/claim", claim.clone()).await.refused(409, "worker_lost");
    assert!(problem["detail"].as_str().unwrap().contains("an id of its own"), "{problem}");
    for path in ["/api/workers/heartbeat", "/api/queue/poll", "/heartbeat", "/queue/poll"] {
        let body = json!({ "id": "w", "worker_id": "w", "services": ["press"] });
        let answer = send("10.0.0.1", path, body.clone()).await;
        assert_eq!(answer.status.as_u16(), 409, "{path}");
        assert!(answer.json()["error"].as_str().unwrap().starts_with("lost: "), "{path}");
        assert!(send("10.0.0.2", path, body).await.status.is_success(), "{path}");
    }
    send("10.0.0.2", "/api/v1/jobs/claim", claim).await.ok();
    let audit = host.get("/api/v1/audit?what=worker.takeover").await.ok();
    let [line] = audit["items"].as_array().unwrap().as_slice() else { panic!("{audit}") };
    assert_eq!((&line["subject"], &line["ip"]), (&json!("w"), &json!("10.0.0.2")));
    assert_eq!(line["reason"], "taken from the live worker at 10.0.0.1 by the one at 10.0.0.2");
}
