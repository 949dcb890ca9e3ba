//! Every route over a real connection: names of fields and statuses.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_sdk::Client;

use crate::http::{ask, ends, expect, get, post, seen};
use crate::server::Server;

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().map(String::as_str).collect()
}

#[track_caller]
fn has(value: &Value, names: &str) {
    let wanted: BTreeSet<&str> = names.split(',').collect();
    assert!(wanted.is_subset(&keys(value)), "{names} of {value}");
}

/// A flow with a job, a signal and a function.
pub(crate) fn graph() -> Value {
    json!({
        "start": "a",
        "nodes": {
            "a": {"service": "double", "exec_type": "queue", "prep": {"input_key": "$params.x"},
                "post": {"output_key": "two"}},
            "w": {"kind": "wait_event", "params": {"signal_key": "go"}},
            "z": {"kind": "local", "func": "echo", "prep": {"input_key": "two"}, "post": {"output_key": "out"}},
        },
        "edges": [{"from": "a", "to": "w"}, {"from": "w", "to": "z"}],
    })
}

/// The words of one era of the older surface.
struct Era {
    prefix: &'static str,
    worker: &'static str,
    flow: &'static str,
    version: &'static str,
    task: &'static str,
    attempt: &'static str,
}

const ERAS: [Era; 2] = [
    Era {
        prefix: "/api",
        worker: "id,url,services,load,last_heartbeat,status,type",
        flow: "id,name,description,created_at",
        version: "id,flow_id,version,definition_json,status",
        task: "id,flow_version_id,flow_id,flow_name,flow_version,status,params_json,shared_json,current_node_key,\
               last_action,step_count,retry_state_json,lease_owner,lease_expiry,request_id,created_at,updated_at",
        attempt: "id,task_id,node_key,attempt_no,status,sub_status,branch_id,prep_json,exec_input_json,\
                  exec_output_json,error_text,action,started_at,finished_at,worker_id,worker_url,log_path",
    },
    Era {
        prefix: "",
        worker: "ID,URL,Services,Load,LastHeartbeat,Status",
        flow: "ID,Name,Description,CreatedAt",
        version: "ID,FlowID,Version,DefinitionJSON,Status",
        task: "ID,FlowVersionID,Status,ParamsJSON,SharedJSON,CurrentNodeKey,LastAction,StepCount,RetryStateJSON,\
               LeaseOwner,LeaseExpiry,RequestID,CreatedAt,UpdatedAt",
        attempt: "id,taskId,nodeKey,attemptNo,status,prepJson,execInputJson,execOutputJson,errorText,action,\
                  startedAt,finishedAt,workerId,workerUrl",
    },
];

impl Era {
    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// A field under the name that this era gives it.
    fn of<'v>(&self, value: &'v Value, name: &str, first: &str) -> &'v Value {
        &value[if self.prefix.is_empty() { first } else { name }]
    }

    /// The items of a list.
    fn items<'v>(&self, list: &'v Value) -> &'v Value {
        if self.prefix.is_empty() {
            return list;
        }
        assert_eq!(keys(list), BTreeSet::from(["data", "page", "size", "total"]), "{list}");
        &list["data"]
    }
}

async fn workers_of(era: &Era, client: &Client) {
    let id = format!("w{}", era.prefix.len());
    for path in ["/workers/register", "/register"] {
        let body = json!({"id": id, "url": "http://127.0.0.1:9", "services": ["s"], "type": "http"});
        assert_eq!(post(client, &era.at(path), body).await, json!({"ok": "1"}));
        expect(client, "POST", &era.at(path), Some(json!({"url": "http://127.0.0.1:9"})), 400).await;
    }
    for path in ["/workers/heartbeat", "/heartbeat"] {
        let body = json!({"id": id, "url": "http://127.0.0.1:9", "load": 3});
        assert_eq!(post(client, &era.at(path), body).await, json!({"ok": "1"}));
        let unknown = expect(client, "POST", &era.at(path), Some(json!({"id": "nobody"})), 404).await;
        assert!(unknown["error"].is_string());
    }
    for path in ["/workers/list", "/list"] {
        let list = get(client, &era.at(&format!("{path}?service=s&ttl=15"))).await;
        has(&list[0], era.worker);
        assert_eq!(get(client, &era.at(&format!("{path}?service=none"))).await, json!([]));
    }
    for path in ["/workers/allocate", "/allocate"] {
        has(&get(client, &era.at(&format!("{path}?service=s"))).await, era.worker);
        let none = expect(client, "GET", &era.at(&format!("{path}?service=none")), None, 404).await;
        assert_eq!(none, json!({"error": "no worker"}));
    }
}

async fn flow_of(era: &Era, client: &Client) -> String {
    let body = json!({"Name": "double", "Description": "twice as much"});
    let made = post(client, &era.at("/flows"), body.clone()).await;
    let flow = made["id"].as_str().unwrap().to_owned();
    assert!(flow.starts_with("flow-"));
    assert_ne!(
        post(client, &era.at("/flows"), body).await["id"],
        flow.as_str(),
        "a taken name makes another"
    );
    has(&era.items(&get(client, &era.at("/flows?page=1&page_size=5")).await)[0], era.flow);
    let body =
        json!({"FlowID": flow, "Version": 1, "DefinitionJSON": graph().to_string(), "Status": "published"});
    let version = post(client, &era.at("/flows/version"), body).await["id"].as_str().unwrap().to_owned();
    assert!(version.starts_with("ver-"));
    let bad = json!({"start": "x", "nodes": {"a": {"kind": "what"}}, "edges": [{"from": "a", "to": "b"}]});
    let body = json!({"flow_id": flow, "definition_json": bad.to_string()});
    let refused = expect(client, "POST", &era.at("/flows/version"), Some(body), 400).await;
    let said = refused["error"].as_str().unwrap();
    assert!(said.contains("what") && said.contains("`x`"), "every problem is told: {said}");
    has(&get(client, &era.at(&format!("/flows/version?flow_id={flow}"))).await[0], era.version);
    has(&get(client, &era.at(&format!("/flows/version/get?id={version}"))).await, era.version);
    flow
}

async fn task_of(era: &Era, client: &Client, flow: &str) {
    let body =
        json!({"FlowID": flow, "Version": 0, "ParamsJSON": "{\"x\": 21}", "RequestID": format!("r-{flow}")});
    let task = post(client, &era.at("/tasks"), body.clone()).await["id"].as_str().unwrap().to_owned();
    assert!(task.starts_with("task-"));
    assert_eq!(post(client, &era.at("/tasks"), body).await["id"], task.as_str(), "asked twice, done once");
    let poll = json!({"worker_id": "p", "services": ["double"]});
    let path = era.at("/queue/poll");
    let queued = seen("the queue task", async || {
        let (status, answer) = ask(client, "POST", &path, Some(poll.clone())).await;
        assert!([200, 204].contains(&status), "{answer}");
        (status == 200).then_some(answer)
    })
    .await;
    let names = "id,task_id,node_key,service,input_json,status,worker_id,created_at,started_at,timeout_at";
    has(&queued, names);
    assert_eq!(queued["task_id"], task.as_str());
    let input: Value = serde_json::from_str(queued["input_json"].as_str().unwrap()).unwrap();
    assert_eq!((keys(&input), &input["input"]), (BTreeSet::from(["input", "params", "run_id"]), &json!(21)));
    let shown = get(client, &era.at(&format!("/tasks/get?id={task}"))).await;
    has(&shown, era.task);
    assert_eq!(era.of(&shown, "status", "Status"), "waiting_queue");
    let body = json!({"run_id": input["run_id"], "status": "running"});
    assert_eq!(post(client, &era.at("/queue/update_run"), body).await, json!({"ok": "1"}));
    let body = json!({"queue_id": queued["id"], "result": 42, "run_id": input["run_id"]});
    assert_eq!(post(client, &era.at("/queue/complete"), body).await, json!({"ok": "1"}));
    let body = json!({"queue_id": queued["id"], "result": 43});
    expect(client, "POST", &era.at("/queue/complete"), Some(body), 409).await;
    let body = json!({"task_id": task, "key": "go", "value": true});
    assert_eq!(post(client, &era.at("/tasks/signal"), body.clone()).await, json!({"ok": "1"}));
    let run = format!("run_{}", task.trim_start_matches("task-").replace('-', ""));
    assert_eq!(ends(client, &run, "completed").await["shared"]["out"], 42);
    assert_eq!(post(client, &era.at("/tasks/signal"), body).await, json!({"ok": "1"}), "the task has ended");
    let rows = get(client, &era.at(&format!("/tasks/runs?task_id={task}"))).await;
    assert!(rows.as_array().unwrap().len() >= 3, "{rows}");
    has(&rows[0], era.attempt);
    let log = get(client, &era.at(&format!("/tasks/logs?run_id={}", rows[0]["id"].as_str().unwrap()))).await;
    has(&log, "content");
    let listed = get(client, &era.at("/tasks?status=completed&page=1&page_size=5")).await;
    assert_eq!(era.of(&era.items(&listed)[0], "id", "ID"), task.as_str());
    has(&era.items(&listed)[0], era.task);
    by_hand(era, client, flow).await;
}

async fn by_hand(era: &Era, client: &Client, flow: &str) {
    let body = json!({"FlowID": flow, "ParamsJSON": "{}", "Manual": true});
    let task = post(client, &era.at("/tasks"), body).await["id"].as_str().unwrap().to_owned();
    let shown = get(client, &era.at(&format!("/tasks/get?id={task}"))).await;
    assert_eq!(era.of(&shown, "status", "Status"), "pending");
    let step = era.at(&format!("/tasks/run_once?id={task}&owner=me"));
    expect(client, "POST", &step, None, 200).await;
    let shown = get(client, &era.at(&format!("/tasks/get?id={task}"))).await;
    assert_eq!(era.of(&shown, "current_node_key", "CurrentNodeKey"), "a");
    let path = era.at(&format!("/tasks/cancel?id={task}"));
    assert_eq!(expect(client, "POST", &path, None, 200).await, json!({"ok": "1"}));
    let run = format!("run_{}", task.trim_start_matches("task-").replace('-', ""));
    ends(client, &run, "canceled").await;
    expect(client, "POST", &step, None, 409).await;
    let (status, _) =
        ask(client, "POST", &era.at("/queue/poll"), Some(json!({"worker_id": "p", "services": ["double"]})))
            .await;
    assert_eq!(status, 204, "what was cancelled is handed out to nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_older_surface_in_both_eras() {
    let server = Server::start(&[]).await;
    let client = server.client();
    for era in &ERAS {
        workers_of(era, &client).await;
        let flow = flow_of(era, &client).await;
        task_of(era, &client, &flow).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_on_the_native_surface() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let body = json!({"name": "double", "description": "d", "definition": graph(), "labels": {"team": "a"}});
    let made = expect(&client, "POST", "/api/v1/flows", Some(body.clone()), 201).await;
    has(&made, "id,name,version,version_id");
    let taken = expect(&client, "POST", "/api/v1/flows", Some(body), 409).await;
    has(&taken, "type,title,status,code,detail");
    let body = json!({"definition": graph(), "note": "again"});
    let path = "/api/v1/flows/double/versions";
    assert_eq!(expect(&client, "POST", path, Some(body), 201).await["version"], 2);
    has(&get(&client, "/api/v1/flows").await, "items");
    has(&get(&client, "/api/v1/flows/double").await, "id,name,version");
    has(&get(&client, &format!("/api/v1/flows/{}", made["id"].as_str().unwrap())).await, "id,name");
    has(&get(&client, path).await["items"][0], "id,version,status,note");
    has(&get(&client, "/api/v1/flows/double/versions/1").await, "definition,version");
    has(&get(&client, "/api/v1/flows/double/diff?from=1&to=2").await, "changes,from,to");
    let checked = post(
        &client,
        "/api/v1/flows/validate",
        json!({"definition": {"start": "x", "nodes": {}, "edges": []}}),
    )
    .await;
    assert_eq!(checked["ok"], false);
    has(&checked["problems"][0], "path,reason,severity");
    let steps = json!({"title": "t", "steps": [{"id": "1", "title": "x", "operator": "@internal/time/now", "parameters": {}}]});
    let expanded = post(&client, "/api/v1/flows/expand", json!({"definition": steps})).await;
    has(&expanded["tasks"][0], "id,task_id,operator,dependOn");
    let wrong =
        json!({"name": "bad", "definition": {"start": "x", "nodes": {"a": {"kind": "what"}}, "edges": []}});
    let refused = expect(&client, "POST", "/api/v1/flows", Some(wrong), 422).await;
    assert!(refused["errors"].as_array().unwrap().len() > 1, "every error is told: {refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_and_jobs_on_the_native_surface() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let body = json!({"name": "double", "definition": graph()});
    expect(&client, "POST", "/api/v1/flows", Some(body), 201).await;
    let body = json!({"params": {"x": 4}, "request_id": "r", "labels": {"team": "a"}, "priority": "high"});
    let path = "/api/v1/flows/double/runs";
    let run = expect(&client, "POST", path, Some(body.clone()), 201).await;
    has(&run, "id,status,flow,version");
    assert_eq!(expect(&client, "POST", path, Some(body), 200).await["id"], run["id"]);
    expect(&client, "POST", path, Some(json!({"params": {"x": 5}, "request_id": "r"})), 409).await;
    let at = |rest: &str| format!("/api/v1/runs/{}{rest}", run["id"].as_str().unwrap());
    has(&get(&client, &at("")).await, "id,flow,version,status,params,shared,node_states,cost");
    assert_eq!(get(&client, &at("/why")).await["reasons"][0]["waits_for"], "worker");
    let body =
        json!({"worker_id": "w", "services": ["double"], "max": 5, "wait_ms": 30_000, "lease_ms": 30_000});
    let claimed = post(&client, "/api/v1/jobs/claim", body).await;
    let job = &claimed["jobs"][0];
    has(job, "id,lease,attempt,key,queue,service,input,params");
    let kept = post(&client, "/api/v1/jobs/extend", json!({"leases": [job["lease"]]})).await;
    assert_eq!(kept["results"][0], json!({"lease": job["lease"], "verdict": "ok"}));
    let result = json!({"id": job["id"], "lease": job["lease"], "outcome": "done", "result": 8});
    let ended = post(&client, "/api/v1/jobs/finish", json!({"results": [result]})).await;
    assert_eq!(ended["results"][0], json!({"id": job["id"], "verdict": "ok"}));
    post(&client, &at("/pause"), json!({})).await;
    post(&client, &at("/resume"), json!({})).await;
    post(&client, &at("/signal"), json!({"key": "go", "value": 1})).await;
    ends(&client, run["id"].as_str().unwrap(), "completed").await;
    has(&get(&client, &at("/attempts")).await["items"][0], "node,attempt,status,input,output,started_at");
    has(&get(&client, &at("/journal")).await["items"][0], "seq,at,command,events");
    has(&get(&client, &at("/logs")).await, "items");
    assert_eq!(get(&client, &at("/state?at=1")).await["at"], 1);
    let listed = get(&client, "/api/v1/runs?flow=double&status=completed&label=team=a&limit=5").await;
    assert_eq!(listed["items"][0]["id"], run["id"]);
    assert_eq!(post(&client, &at("/rerun"), json!({"from": "z"})).await["round"], 2);
    ends(&client, run["id"].as_str().unwrap(), "completed").await;
    expect(&client, "POST", &at("/retry"), Some(json!({})), 409).await;
    expect(&client, "POST", &at("/decide"), Some(json!({"decision": true})), 409).await;
    has(&get(&client, "/api/v1/approvals").await, "items");
    has(&get(&client, "/api/v1/workers").await, "workers,count");
    assert_eq!(get(&client, "/healthz").await["status"], "ok");
    has(&get(&client, "/readyz").await, "ready,timestamp");
    has(&get(&client, "/openapi.json").await, "openapi,paths");
}
