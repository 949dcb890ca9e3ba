//! Templates: flows that others are made of.

use serde_json::{Value, json};

use crate::test_server::TestServer;

fn greeting() -> Value {
    json!({
        "nodes": [
            { "id": "say", "type": "echo", "exec_type": "local_func", "config": { "input": "$var.text" } },
            { "id": "end", "type": "end", "config": { "outputs": [{ "name": "said", "source": "$node.say.output" }] } }
        ],
        "edges": [{ "source": "say", "target": "end" }],
        "variables": { "text": { "type": "string", "required": true }, "n": { "type": "number", "defaultValue": 1 } }
    })
}

async fn host() -> TestServer {
    let host = TestServer::new().await;
    let flow = json!({ "name": "greeting", "description": "Says it", "definition": greeting(), "is_template": true });
    host.post("/api/v1/flows", flow).await.ok();
    host
}

#[tokio::test]
async fn a_flow_is_made_of_a_template_with_its_values_as_defaults() {
    let host = host().await;
    let body = json!({ "name": "morning", "variables": { "text": "good morning", "n": 2 } });
    let response = host.post("/api/v1/flows/greeting/instantiate", body).await;
    assert_eq!(response.status, 201);
    assert_eq!((&response.ok()["name"], &response.ok()["version"]), (&json!("morning"), &json!(1)));
    let made = host.get("/api/v1/flows/morning").await.ok();
    assert_eq!((&made["is_template"], &made["description"]), (&json!(false), &json!("Says it")));
    let variables = &made["version"]["definition"]["variables"];
    assert_eq!(
        (&variables["text"]["defaultValue"], &variables["n"]["defaultValue"]),
        (&json!("good morning"), &json!(2))
    );
    let run = host.start("morning", json!({})).await;
    assert_eq!(host.ended(&run).await["result"], json!({ "said": "good morning" }));
    let run = host.start("morning", json!({ "variables": { "text": "good night" } })).await;
    assert_eq!(host.ended(&run).await["result"], json!({ "said": "good night" }));
    // The template itself can be run, and requires its parameters.
    let response = host.post("/api/v1/flows/greeting/runs", json!({})).await;
    assert_eq!(response.refused(422, "invalid_input")["errors"][0]["path"], "$.variables.text");
    let run = host.start("greeting", json!({ "variables": { "text": "hi" } })).await;
    assert_eq!(host.ended(&run).await["result"], json!({ "said": "hi" }));
}

#[tokio::test]
async fn templates_are_listed_apart() {
    let host = host().await;
    host.publish("plain", greeting()).await;
    let names = async |query: &str| {
        let listed = host.get(&format!("/api/v1/flows{query}")).await.ok();
        listed["items"].as_array().unwrap().iter().map(|flow| flow["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("?is_template=true").await, ["greeting"]);
    assert_eq!(names("?is_template=false").await, ["plain"]);
}

#[tokio::test]
async fn values_that_do_not_fit_the_template_are_named() {
    let host = host().await;
    host.publish("plain", greeting()).await;
    let ask =
        async |flow: &str, body: Value| host.post(&format!("/api/v1/flows/{flow}/instantiate"), body).await;
    let bad = json!({ "name": "x", "variables": { "txet": "a", "n": "two" } });
    let response = ask("greeting", bad).await.refused(422, "invalid_input");
    let errors = &response["errors"];
    assert_eq!(errors[0]["path"], "$.variables.n");
    assert_eq!(
        (&errors[1]["path"], &errors[1]["hint"]),
        (&json!("$.variables.txet"), &json!("did you mean `text`?"))
    );
    ask("plain", json!({ "name": "x" })).await.refused(409, "not_template");
    ask("nobody", json!({ "name": "x" })).await.refused(404, "unknown_flow");
    ask("greeting", json!({ "name": "plain" })).await.refused(409, "name_taken");
    ask("greeting", json!({ "name": "x", "version": 7 })).await.refused(404, "unknown_version");
    ask("greeting", json!({ "name": "" })).await.refused(422, "invalid_body");
    ask("greeting", json!({ "name": "x", "vars": {} })).await.refused(422, "unknown_field");
    host.get("/api/v1/flows/x").await.refused(404, "unknown_flow");
}
