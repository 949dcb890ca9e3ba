//! Accounts, deposits, ledgers, prices and budgets, route by route; refused requests charge nothing.

use serde_json::{Value, json};
use windlass_conformance::backend::fresh;
use windlass_runtime::Settings;
use windlass_server::Options;

use crate::test_server::TestServer;

/// A call through a queue whose seconds are told beforehand and may be told by its result.
pub(crate) fn speech() -> Value {
    json!({
        "nodes": [{ "id": "tts", "type": "audio_tts", "config": { "seconds": "$var.seconds" } }],
        "edges": []
    })
}

/// Two per second, at least ten seconds.
pub(crate) fn per_second() -> Value {
    json!({ "unit_price": 2, "min_unit": 10, "units": "$params.seconds", "actual_units": "$result.seconds" })
}

impl TestServer {
    /// Opens an account with some money in it.
    pub(crate) async fn account(&self, id: &str, amount: i64) {
        self.post("/api/v1/accounts", json!({ "id": id })).await.ok();
        if amount > 0 {
            self.deposit(id, amount, "first").await.ok();
        }
    }

    pub(crate) async fn deposit(&self, id: &str, amount: i64, key: &str) -> crate::test_server::TestResponse {
        self.post(&format!("/api/v1/accounts/{id}/deposit"), json!({ "amount": amount, "key": key })).await
    }

    /// The balance and the held amount of an account.
    pub(crate) async fn money(&self, id: &str) -> (i64, i64) {
        let shown = self.get(&format!("/api/v1/accounts/{id}")).await.ok();
        (shown["balance"].as_i64().unwrap(), shown["held"].as_i64().unwrap())
    }

    /// The kinds and amounts of a ledger, oldest first.
    pub(crate) async fn moved(&self, id: &str) -> Vec<(String, i64)> {
        let rows = self.get(&format!("/api/v1/accounts/{id}/ledger?order=oldest&limit=1000")).await.ok();
        let rows = rows["items"].as_array().unwrap().iter();
        rows.map(|row| (row["kind"].as_str().unwrap().to_owned(), row["amount"].as_i64().unwrap())).collect()
    }

    /// Checks that money is where it must be.
    pub(crate) async fn sound(&self) {
        let found = self.post("/api/v1/doctor", json!({})).await.ok();
        assert_eq!(found["findings"], json!([]), "{found}");
    }
}

#[tokio::test]
async fn an_account_is_opened_once() {
    let host = TestServer::new().await;
    let open = |body: Value| host.post("/api/v1/accounts", body);
    let response = open(json!({ "id": "acme", "name": "Acme Ltd" })).await;
    assert_eq!(response.status, 201);
    let account = response.json();
    assert_eq!(
        (&account["balance"], &account["held"], &account["name"]),
        (&json!(0), &json!(0), &json!("Acme Ltd"))
    );
    let again = open(json!({ "id": "acme", "name": "Acme Ltd" })).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, account.clone()));
    assert_eq!(open(json!({ "id": "acme" })).await.status, 200);
    let refused = open(json!({ "id": "acme", "name": "Another" })).await.refused(409, "account_taken");
    assert!(refused["detail"].as_str().unwrap().contains("Acme Ltd"), "{refused}");
    open(json!({ "id": "nameless" })).await.ok();
    assert_eq!(host.get("/api/v1/accounts/nameless").await.ok()["name"], "nameless");
    assert_eq!(host.get("/api/v1/accounts/acme").await.ok(), account);
    host.get("/api/v1/accounts/nobody").await.refused(404, "account_not_found");
    for (body, code, path) in [
        (json!({}), "invalid_body", "id"),
        (json!({ "id": "" }), "invalid_body", "id"),
        (json!({ "id": "a/b" }), "invalid_body", "id"),
        (json!({ "id": " a" }), "invalid_body", "id"),
        (json!({ "id": "x".repeat(300) }), "invalid_body", "id"),
        (json!({ "id": 5 }), "invalid_body", "id"),
        (json!({ "id": "b", "name": "" }), "invalid_body", "name"),
        (json!({ "id": "b", "balance": 5 }), "unknown_field", "balance"),
    ] {
        assert_eq!(open(body.clone()).await.refused(422, code)["errors"][0]["path"], path, "{body}");
    }
    let ids = |list: Value| {
        list["items"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<_>>()
    };
    let first = host.get("/api/v1/accounts?limit=1").await.ok();
    assert_eq!(ids(first.clone()), ["acme"]);
    let next = format!("/api/v1/accounts?limit=5&cursor={}", first["next"].as_str().unwrap());
    assert_eq!(ids(host.get(&next).await.ok()), ["nameless"]);
    host.get("/api/v1/accounts?limt=1").await.refused(400, "bad_query");
}

#[tokio::test]
async fn a_deposit_is_made_once_per_key() {
    let host = TestServer::new().await;
    host.account("acme", 0).await;
    let first = host.deposit("acme", 500, "invoice-7").await;
    assert_eq!((first.status.as_u16(), &first.json()["created"]), (201, &json!(true)));
    host.deposit("acme", 30, "invoice-8").await.ok();
    let again = host.deposit("acme", 500, "invoice-7").await;
    let body = again.json();
    assert_eq!(
        (again.status.as_u16(), &body["created"], &body["balance"]),
        (200, &json!(false), &json!(530))
    );
    assert_eq!(body["entry"], first.json()["entry"]);
    assert_eq!((&body["entry"]["amount"], &body["entry"]["balance_after"]), (&json!(500), &json!(500)));
    let refused = host.deposit("acme", 501, "invoice-7").await.refused(409, "deposit_taken");
    assert!(refused["detail"].as_str().unwrap().contains("500"), "{refused}");
    host.deposit("nobody", 5, "k").await.refused(404, "account_not_found");
    let path = "/api/v1/accounts/acme/deposit";
    for (body, place) in [
        (r#"{"amount": 0, "key": "a"}"#, "amount"),
        (r#"{"amount": -5, "key": "a"}"#, "amount"),
        (r#"{"amount": 1.5, "key": "a"}"#, "amount"),
        (r#"{"amount": "5", "key": "a"}"#, "amount"),
        (r#"{"amount": 9223372036854775808, "key": "a"}"#, "amount"),
        (r#"{"amount": 1e30, "key": "a"}"#, "amount"),
        (r#"{"amount": 9223372036854775807, "key": "a"}"#, "amount"),
        (r#"{"key": "a"}"#, "amount"),
        (r#"{"amount": 5}"#, "key"),
        (r#"{"amount": 5, "key": ""}"#, "key"),
    ] {
        let refused = host.raw("POST", path, body.to_owned()).await.refused(422, "invalid_body");
        assert_eq!(refused["errors"][0]["path"], place, "{body}: {refused}");
    }
    assert_eq!((host.money("acme").await, host.moved("acme").await.len()), ((530, 0), 2));
    host.sound().await;
}

#[tokio::test]
async fn deposits_at_the_same_time_count_once_per_key() {
    let host = TestServer::new().await;
    host.account("acme", 0).await;
    let deposits = (0..40).map(|n| host.deposit("acme", 5, ["a", "b", "c", "d"][n % 4]));
    for response in futures(deposits).await {
        response.ok();
    }
    assert_eq!((host.money("acme").await, host.moved("acme").await.len()), ((20, 0), 4));
}

/// All at once, answered in order.
async fn futures<F: Future>(all: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut all: Vec<_> = all.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = all.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in all.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(output) = future.as_mut().poll(context) {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test]
async fn a_price_is_checked_when_it_is_set() {
    let host = TestServer::new().await;
    let price = host.put("/api/v1/prices/audio_tts", per_second()).await.ok();
    assert_eq!((&price["service"], &price["min_unit"]), (&json!("audio_tts"), &json!(10)));
    assert_eq!(host.get("/api/v1/prices/audio_tts").await.ok(), price);
    let flat = host.put("/api/v1/prices/stamp", json!({ "unit_price": 7 })).await.ok();
    assert_eq!((&flat["units"], &flat["min_unit"]), (&json!(1), &json!(0)));
    for (body, code, place) in [
        (json!({}), "invalid_body", "unit_price"),
        (json!({ "unit_price": -1 }), "invalid_body", "unit_price"),
        (json!({ "unit_price": 1.5 }), "invalid_body", "unit_price"),
        (json!({ "unit_price": "3" }), "invalid_body", "unit_price"),
        (json!({ "unit_price": 1, "min_unit": -1 }), "invalid_body", "min_unit"),
        (json!({ "unit_price": 1, "min_unit": 0.5 }), "invalid_body", "min_unit"),
        (json!({ "unit_price": i64::MAX, "min_unit": 2 }), "invalid_body", "min_unit"),
        (json!({ "unit_price": 1, "units": -1 }), "invalid_body", "units"),
        (json!({ "unit_price": 1, "units": 2.5 }), "invalid_body", "units"),
        (json!({ "unit_price": 1, "units": "seconds" }), "invalid_body", "units"),
        (json!({ "unit_price": 1, "units": "$result.seconds" }), "invalid_body", "units"),
        (json!({ "unit_price": 1, "units": "$params.a[" }), "invalid_body", "units"),
        (json!({ "unit_price": 1, "actual_units": "$node.a.output" }), "invalid_body", "actual_units"),
        (json!({ "unit_price": 1, "actual_units": true }), "invalid_body", "actual_units"),
        (json!({ "unit_price": 1, "unit": 2 }), "unknown_field", "unit"),
    ] {
        let refused = host.put("/api/v1/prices/bad", body.clone()).await.refused(422, code);
        assert_eq!(refused["errors"][0]["path"], place, "{body}: {refused}");
    }
    let both = json!({ "unit_price": -1, "units": "x", "actual_units": "y" });
    let refused = host.put("/api/v1/prices/bad", both).await.refused(422, "invalid_body");
    assert_eq!(refused["errors"].as_array().unwrap().len(), 3, "{refused}");
    host.get("/api/v1/prices/bad").await.refused(404, "unknown_price");
    let page = host.get("/api/v1/prices?limit=1").await.ok();
    assert_eq!((&page["items"][0]["service"], &page["next"]), (&json!("audio_tts"), &json!("audio_tts")));
    let rest = host.get("/api/v1/prices?cursor=audio_tts").await.ok();
    assert_eq!((&rest["items"][0]["service"], &rest["next"]), (&json!("stamp"), &Value::Null));
    let deleted = host.raw("DELETE", "/api/v1/prices/stamp", "").await.ok();
    assert_eq!(deleted, json!({ "service": "stamp", "deleted": true }));
    host.raw("DELETE", "/api/v1/prices/stamp", "").await.refused(404, "unknown_price");
}

#[tokio::test]
async fn a_priced_call_is_charged_settled_and_told() {
    let host = TestServer::new().await;
    host.publish("speak", speech()).await;
    host.account("acme", 1_000).await;
    host.put("/api/v1/prices/audio_tts", per_second()).await.ok();
    let run = host.start("speak", json!({ "variables": { "seconds": 60 }, "account": "acme" })).await;
    let job = host.claim("audio_tts").await;
    assert_eq!(host.money("acme").await, (880, 120));
    // A price applies to later starts only.
    host.put("/api/v1/prices/audio_tts", json!({ "unit_price": 1_000 })).await.ok();
    assert_eq!(host.finish(&job, json!({ "outcome": "done", "result": { "seconds": 42 } })).await, "ok");
    let ended = host.ended(&run).await;
    assert_eq!(
        (&ended["status"], &ended["cost"]),
        (&json!("completed"), &json!({ "estimated": 120, "actual": 84 }))
    );
    assert_eq!(host.money("acme").await, (916, 0));
    let rows = host.get(&format!("/api/v1/accounts/acme/ledger?run={run}")).await.ok();
    let rows = rows["items"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["kind"], &rows[1]["kind"]), (2, &json!("settle"), &json!("charge")));
    assert_eq!(
        (&rows[0]["run"], &rows[0]["node"], &rows[0]["amount"]),
        (&json!(run), &json!("tts"), &json!(36))
    );
    let other = host.start("speak", json!({ "variables": { "seconds": 1 }, "account": "acme" })).await;
    let failed = host.ended(&other).await;
    assert_eq!(failed["status"], "failed");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("insufficient_balance") && message.contains("acme"), "{message}");
    assert_eq!(host.money("acme").await, (916, 0));
    host.sound().await;
}

#[tokio::test]
async fn a_ledger_is_read_page_by_page_from_both_ends() {
    let host = TestServer::new().await;
    host.account("acme", 0).await;
    for n in 1..=5 {
        host.deposit("acme", n, &format!("d{n}")).await.ok();
    }
    for (order, expected) in [("newest", [5, 4, 3, 2, 1]), ("oldest", [1, 2, 3, 4, 5])] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/api/v1/accounts/acme/ledger?limit=2&order={order}{cursor}");
            let page = host.get(&path).await.ok();
            seen.extend(page["items"].as_array().unwrap().iter().map(|row| row["amount"].as_i64().unwrap()));
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen, expected);
    }
    host.get("/api/v1/accounts/acme/ledger?cursor=x").await.refused(400, "bad_cursor");
    host.get("/api/v1/accounts/acme/ledger?order=sideways").await.refused(400, "bad_query");
    host.get("/api/v1/accounts/acme/ledger?run=7").await.refused(400, "bad_query");
    host.get("/api/v1/accounts/nobody/ledger").await.refused(404, "account_not_found");
}

#[tokio::test]
async fn a_run_that_is_refused_costs_nothing() {
    let host = TestServer::new().await;
    host.publish("speak", speech()).await;
    host.account("acme", 100).await;
    host.put("/api/v1/prices/audio_tts", per_second()).await.ok();
    let start = |body: &str| host.raw("POST", "/api/v1/flows/speak/runs", body.to_owned());
    let unknown = start(r#"{"account": "nobody"}"#).await.refused(422, "unknown_account");
    assert_eq!(unknown["errors"][0]["path"], "account", "{unknown}");
    for (body, place) in [
        (r#"{"account": "acme", "budget": -1}"#, "budget"),
        (r#"{"account": "acme", "budget": 1.5}"#, "budget"),
        (r#"{"account": "acme", "budget": 9223372036854775808}"#, "budget"),
        (r#"{"account": "acme", "on_short_balance": "beg"}"#, "on_short_balance"),
        (r#"{"account": ""}"#, "account"),
    ] {
        let refused = start(body).await.refused(422, "invalid_body");
        assert_eq!(refused["errors"][0]["path"], place, "{body}: {refused}");
    }
    assert_eq!((host.money("acme").await, host.moved("acme").await.len()), ((100, 0), 1));
    assert_eq!(host.get("/api/v1/runs").await.ok()["items"], json!([]));
}

#[tokio::test]
async fn a_budget_fails_the_node_or_parks_the_run_until_it_is_raised() {
    let host = TestServer::new().await;
    host.publish("speak", speech()).await;
    host.account("acme", 1_000).await;
    host.put("/api/v1/prices/audio_tts", per_second()).await.ok();
    let body = json!({ "variables": { "seconds": 60 }, "account": "acme", "budget": 119 });
    let failed = host.start("speak", body.clone()).await;
    let failed = host.ended(&failed).await;
    assert!(failed["error"]["message"].as_str().unwrap().starts_with("budget_exceeded"), "{failed}");
    let mut waits = body;
    waits["on_short_balance"] = json!("wait");
    let run = host.start("speak", waits).await;
    let why = host.get(&format!("/api/v1/runs/{run}/why")).await.ok();
    let command = why["reasons"][0]["command"].as_str().unwrap();
    assert_eq!(
        (&why["reasons"][0]["waits_for"], command),
        (&json!("budget"), &*format!("windlass run budget {run} AMOUNT"))
    );
    let path = format!("/api/v1/runs/{run}/budget");
    for body in [json!({ "budget": -1 }), json!({ "budget": 1.5 }), json!({ "budget": "9" }), json!({})] {
        let refused = host.post(&path, body.clone()).await.refused(422, "invalid_body");
        assert_eq!(refused["errors"][0]["path"], "budget", "{body}");
        assert!(!refused.to_string().contains("i64"), "{refused}");
    }
    assert_eq!(host.money("acme").await, (1_000, 0));
    host.post(&path, json!({ "budget": 120 })).await.ok();
    let job = host.claim("audio_tts").await;
    assert_eq!(host.finish(&job, json!({ "outcome": "done", "result": {} })).await, "ok");
    assert_eq!(host.ended(&run).await["status"], "completed");
    // A run that has ended takes another budget for its next round.
    host.post(&path, json!({ "budget": 5 })).await.ok();
    assert_eq!(host.get(&format!("/api/v1/runs/{run}")).await.ok()["status"], "completed");
    let nobody = "/api/v1/runs/run_00000000000000000000000000000000/budget";
    host.post(nobody, json!({ "budget": 5 })).await.refused(404, "unknown_run");
    assert_eq!(host.money("acme").await, (880, 0));
}

#[tokio::test]
async fn refunds_let_parked_runs_go_as_far_as_they_reach() {
    let host = TestServer::new().await;
    host.publish("speak", speech()).await;
    host.account("acme", 100).await;
    host.put("/api/v1/prices/audio_tts", per_second()).await.ok();
    let body = json!({ "variables": { "seconds": 50 }, "account": "acme", "on_short_balance": "wait" });
    let first = host.start("speak", body.clone()).await;
    let job = host.claim("audio_tts").await;
    let (second, third) = (host.start("speak", body.clone()).await, host.start("speak", body).await);
    let why = host.get(&format!("/api/v1/runs/{second}/why")).await.ok();
    let reason = &why["reasons"][0];
    assert_eq!(
        (&reason["waits_for"], &reason["command"]),
        (&json!("balance"), &json!("windlass account deposit acme 100"))
    );
    host.deposit("acme", 30, "some").await.ok();
    let why = host.get(&format!("/api/v1/runs/{second}/why")).await.ok();
    let reason = &why["reasons"][0];
    assert_eq!((&reason["amount"], &reason["missing"]), (&json!(100), &json!(70)), "{why}");
    assert_eq!(reason["command"], "windlass account deposit acme 70");
    assert_eq!(reason["text"], "a call of 100 is more than the account has: 30, 70 too little");
    let length = async |run: &str| {
        let journal = host.get(&format!("/api/v1/runs/{run}/journal?limit=1000")).await.ok();
        journal["items"].as_array().unwrap().len()
    };
    let before = length(&third).await;
    // A refund is enough for the older one, and the other is not even woken.
    host.finish(&job, json!({ "outcome": "failed", "error": "no voice", "retryable": false })).await;
    assert_eq!(host.ended(&first).await["status"], "failed");
    let job = host.claim("audio_tts").await;
    assert_eq!(job["run"], second.as_str());
    assert_eq!((host.money("acme").await, length(&third).await), ((30, 100), before));
    host.deposit("acme", 69, "too little").await.ok();
    host.deposit("acme", 1, "enough").await.ok();
    let last = host.claim("audio_tts").await;
    assert_eq!(last["run"], third.as_str());
    for job in [job, last] {
        host.finish(&job, json!({ "outcome": "done", "result": { "seconds": 50 } })).await;
    }
    for run in [second, third] {
        assert_eq!(host.ended(&run).await["status"], "completed");
    }
    assert_eq!(host.money("acme").await, (0, 0));
    host.sound().await;
}

#[tokio::test]
async fn a_run_without_an_account_is_charged_to_the_owner_of_its_flow() {
    let host = TestServer::new().await;
    host.account("owner", 1_000).await;
    host.account("guest", 1_000).await;
    host.put("/api/v1/prices/audio_tts", per_second()).await.ok();
    let mut owned = speech();
    owned["account"] = json!("owner");
    host.publish("owned", owned).await;
    for (body, payer) in [
        (json!({ "variables": { "seconds": 20 } }), "owner"),
        (json!({ "variables": { "seconds": 20 }, "account": "guest" }), "guest"),
    ] {
        let run = host.start("owned", body).await;
        assert_eq!(host.get(&format!("/api/v1/runs/{run}")).await.ok()["account"], payer);
        let job = host.claim("audio_tts").await;
        assert_eq!(host.finish(&job, json!({ "outcome": "done", "result": {} })).await, "ok");
        host.ended(&run).await;
        assert_eq!(host.money(payer).await, (960, 0), "{payer}");
    }
    assert_eq!(host.get("/api/v1/runs?account=owner").await.ok()["items"].as_array().unwrap().len(), 1);
    // An owner that has no account is no payer.
    let mut unknown = speech();
    unknown["account_id"] = json!(7);
    host.publish("unknown", unknown).await;
    host.post("/api/v1/flows/unknown/runs", json!({})).await.refused(422, "unknown_account");
    host.sound().await;
}

#[tokio::test]
async fn a_flow_may_require_an_account() {
    let host = TestServer::new().await;
    host.account("acme", 100).await;
    let mut strict = speech();
    strict["require_account"] = json!(true);
    host.publish("strict", strict).await;
    let body = host.post("/api/v1/flows/strict/runs", json!({})).await.refused(422, "invalid_input");
    assert_eq!(body["errors"][0]["path"], "$.account", "{body}");
    host.start("strict", json!({ "account": "acme" })).await;
    // A child run has the account of its parent, or none.
    let call =
        json!({ "nodes": [{ "id": "c", "type": "flow_ref", "config": { "flow": "strict" } }], "edges": [] });
    host.publish("outer", call).await;
    let run = host.start("outer", json!({})).await;
    let ended = host.ended(&run).await;
    let message = ended["error"]["message"].as_str().unwrap();
    assert!(message.contains("is required by the flow"), "{ended}");
}

#[tokio::test]
async fn a_project_may_require_an_account_for_every_run() {
    let settings = Settings { require_account: true, ..Settings::default() };
    let host = TestServer::on(fresh().await, settings, Options::default()).await;
    host.account("acme", 100).await;
    host.publish("plain", speech()).await;
    let body = host.post("/api/v1/flows/plain/runs", json!({})).await.refused(422, "invalid_input");
    assert_eq!(body["errors"][0]["path"], "$.account", "{body}");
    let schedule = |account: Value| json!({ "name": "nightly", "cron_expr": "0 3 * * *", "flow": "plain", "account": account });
    let refused = host.post("/api/v1/schedules", schedule(Value::Null)).await;
    assert!(refused.json().to_string().contains("is required by this project"), "{}", refused.json());
    host.post("/api/v1/schedules", schedule(json!("acme"))).await.ok();
    host.start("plain", json!({ "account": "acme" })).await;
    let mut owned = speech();
    owned["account"] = json!("acme");
    host.publish("owned", owned).await;
    host.start("owned", json!({})).await;
}
