use axum::body::Body;
use windlass_server::scheduler::ROUTES;

use crate::support::clients;

#[tokio::test]
async fn every_route_is_there_and_says_no_in_its_own_words() {
    for client in clients().await {
        for (method, path, _) in ROUTES {
            let answer = client.send(method, path, Body::empty()).await;
            assert!(answer.status < 500, "{method} {path}: {answer:?}");
            assert!(!answer.body.to_string().contains("there is nothing at"), "{method} {path}: {answer:?}");
            let wrong = client.send("DELETE", path, Body::empty()).await;
            assert_eq!(wrong.status, 405, "{path}");
            assert!(wrong.body["error"].is_string(), "{path}");
        }
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_too_large() {
    for client in clients().await {
        let name = "x".repeat(5 << 20);
        let answer = client.post("/flows", serde_json::json!({"Name": name})).await;
        assert_eq!(answer.status, 413, "{answer:?}");
        assert!(answer.body["error"].is_string(), "{answer:?}");
    }
}

#[tokio::test]
async fn no_body_brings_the_server_down() {
    let deep = "{\"a\":".repeat(5_000);
    let bodies = ["{", "nonsense", "[]", "7", "\"x\"", "null", "{\"id\": {\"id\": 1}}", "\u{0}", &deep];
    for client in clients().await {
        for (method, path, _) in ROUTES.into_iter().filter(|(method, _, _)| *method == "POST") {
            for body in bodies {
                let answer = client.send(method, path, body.to_owned()).await;
                assert_eq!(answer.status, 400, "{path} {body:.40}: {answer:?}");
                assert!(answer.body["error"].is_string());
            }
            let answer = client.send(method, path, vec![0xff, 0xfe]).await;
            assert_eq!(answer.status, 400, "{path}: {answer:?}");
        }
        for (_, path, _) in ROUTES.into_iter().filter(|(method, _, _)| *method == "GET") {
            for query in [
                "id=%ff&flow_id=%ff",
                "page=99999999999999999999",
                "page_size=-1&ttl=-9223372036854775808",
                "=&&=",
            ] {
                let answer = client.get(&format!("{path}?{query}")).await;
                assert!(answer.status < 500, "{path}?{query}: {answer:?}");
            }
        }
    }
}
