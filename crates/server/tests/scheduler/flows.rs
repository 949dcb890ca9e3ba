use serde_json::{Value, json};

use crate::support::{Client, clients};

async fn flow(client: &Client, name: &str) -> String {
    client.posted("/flows", json!({"name": name})).await["id"].as_str().unwrap().to_owned()
}

fn definition(service: &str) -> Value {
    json!({"start": "a", "nodes": {"a": {"service": service}}})
}

#[tokio::test]
async fn flows_are_made_and_listed_newest_first() {
    for client in clients().await {
        for name in ["one", "two", "two"] {
            assert!(flow(&client, name).await.starts_with("flow-"));
        }
        let flows = client.listed("/flows").await;
        let names: Vec<_> = flows.iter().map(|flow| client.field(flow, "name")).collect();
        assert_eq!(names, ["two", "two", "one"], "a taken name makes another flow");
        assert!(client.field(&flows[0], "created_at").as_i64().unwrap() > 1_700_000_000);
        assert_eq!(client.field(&flows[0], "description"), "");
        let second = client.listed("/flows?page=2&page_size=2").await;
        assert_eq!(second.len(), 1);
        if !client.is_first() {
            let body = client.got("/flows?page=2&page_size=2").await;
            assert_eq!((&body["total"], &body["page"], &body["size"]), (&json!(3), &json!(2), &json!(2)));
        }
    }
}

#[tokio::test]
async fn versions_are_published_and_shown() {
    for client in clients().await {
        let flow = flow(&client, "f").await;
        let mut ids = Vec::new();
        for (version, service) in [(1, "s1"), (0, "s2")] {
            let text = definition(service).to_string();
            let body =
                json!({"FlowID": flow, "Version": version, "DefinitionJSON": text, "Status": "published"});
            ids.push(client.posted("/flows/version", body).await["id"].as_str().unwrap().to_owned());
        }
        let yaml = "start: a\nnodes:\n  a:\n    service: s3\n";
        let body = json!({"flow_id": flow, "definition_yaml": yaml, "status": "draft"});
        ids.push(client.posted("/flows/version", body).await["id"].as_str().unwrap().to_owned());
        assert!(ids.iter().all(|id| id.starts_with("ver-")));

        let versions = client.got(&format!("/flows/version?flow_id={flow}")).await;
        let versions = versions.as_array().unwrap();
        let numbers: Vec<_> = versions.iter().map(|version| client.field(version, "version")).collect();
        assert_eq!(numbers, [3, 2, 1], "newest first");
        assert_eq!(client.field(&versions[0], "status"), "draft");
        assert_eq!(client.json(&versions[0], "definition_json"), definition("s3"), "YAML is shown as JSON");

        let one = client.got(&format!("/flows/version/get?id={}", ids[0])).await;
        assert_eq!(client.field(&one, "id"), ids[0].as_str());
        assert_eq!(client.field(&one, "flow_id"), flow.as_str());
        assert_eq!(client.json(&one, "definition_json"), definition("s1"));
        assert_eq!(client.field(&one, "status"), "published");
    }
}

#[tokio::test]
async fn all_problems_of_a_definition_are_told_at_once() {
    for client in clients().await {
        let flow = flow(&client, "f").await;
        let broken = json!({"start": "nowhere", "nodes": {"a": {"kind": "wizard"}, "b": {}},
            "edges": [{"from": "a", "to": "c"}]});
        let body = json!({"FlowID": flow, "DefinitionJSON": broken.to_string()});
        let answer = client.post("/flows/version", body).await;
        assert_eq!(answer.status, 400);
        let text = answer.body["error"].as_str().unwrap();
        for place in ["$.start", "$.nodes.a.kind", "$.nodes.b", "$.edges[0].to"] {
            assert!(text.contains(place), "{place} is missing in {text}");
        }
        assert_eq!(client.got(&format!("/flows/version?flow_id={flow}")).await, json!([]));
    }
}

#[tokio::test]
async fn unknown_fields_of_a_definition_are_let_through_with_a_warning() {
    for client in clients().await {
        let flow = flow(&client, "f").await;
        let text =
            json!({"start": "a", "nodes": {"a": {"service": "s", "colour": "red"}}, "x": 1}).to_string();
        let answer = client.post("/flows/version", json!({"FlowID": flow, "DefinitionJSON": text})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let told =
            |place: &str, name: &str| format!("299 windlass \"{place}: unknown field `{name}` is ignored\"");
        assert_eq!(answer.warnings, [told("$.nodes.a.colour", "colour"), told("$.x", "x")]);
    }
}

#[tokio::test]
async fn a_definition_that_surprises_is_published_with_a_warning() {
    let node = |input: &str| json!({"service": "s", "prep": {"input_map": {"t": input}}, "post": {"output_key": "total"}});
    let two = |input: &str| json!({"start": "a", "nodes": {"a": node("$params.x"), "b": node(input)}, "edges": [{"from": "a", "to": "b"}]});
    for client in clients().await {
        let flow = flow(&client, "f").await;
        let warnings = async |definition: Value| {
            let body = json!({"FlowID": flow, "DefinitionJSON": definition.to_string()});
            client.post("/flows/version", body).await.warnings
        };
        // The first era reads a bare path from shared; the other one takes it as it is.
        let of_path = warnings(two("total")).await;
        assert_eq!(of_path.len(), usize::from(client.prefix == "/api"), "{of_path:?}");
        assert!(of_path.iter().all(|text| text.contains("$.nodes.b.prep.input_map.t")), "{of_path:?}");
        assert_eq!(warnings(two("$shared.total")).await, [""; 0]);
        let idle = json!({"start": "a", "nodes": {"a": {"service": "s", "func": "echo"}}});
        assert_eq!(
            warnings(idle).await,
            ["299 windlass \"$.nodes.a.func: has no effect with exec_type http\""]
        );
    }
}

#[tokio::test]
async fn invalid_definitions_are_not_published() {
    for client in clients().await {
        let id = flow(&client, "f").await;
        let text = definition("s").to_string();
        let with = |field: &str, value: Value| {
            let mut body = json!({"FlowID": id, "DefinitionJSON": text});
            body[field] = value;
            body
        };
        client.posted("/flows/version", with("Version", json!(4))).await;
        for (body, status) in [
            (with("Version", json!(4)), 409),
            (with("Version", json!(-1)), 400),
            (with("Version", json!("one")), 400),
            (with("Version", json!(1.5)), 400),
            (with("Status", json!("secret")), 400),
            (with("DefinitionYAML", json!("start: a")), 400),
            (with("DefinitionJSON", json!("")), 400),
            (with("DefinitionJSON", json!("{")), 400),
            (with("DefinitionJSON", json!([1])), 400),
            (with("DefinitionJSON", json!("[".repeat(10_000))), 400),
            (with("FlowID", json!("flow-0190a1b2-c3d4-7000-8000-00000000000a")), 404),
            (with("FlowID", json!("nonsense")), 404),
            (with("FlowID", json!("")), 400),
            (with("FlowID", json!(null)), 400),
        ] {
            let answer = client.post("/flows/version", body.clone()).await;
            assert_eq!(answer.status, status, "{body}: {answer:?}");
            assert!(answer.body["error"].is_string(), "{answer:?}");
        }
        for (path, status) in [
            ("/flows/version", 400),
            ("/flows/version?flow_id=x", 404),
            ("/flows/version/get", 400),
            ("/flows/version/get?id=x", 404),
            ("/flows/version/get?id=ver-0190a1b2-c3d4-7000-8000-00000000000a", 404),
            ("/flows?page=x", 400),
        ] {
            assert_eq!(client.get(path).await.status, status, "{path}");
        }
        for body in [json!({}), json!({"Name": ""}), json!({"Name": 3}), json!({"Name": "x".repeat(300)})] {
            assert_eq!(client.post("/flows", body).await.status, 400);
        }
    }
}
