//! A pull worker, and the log of its calls.

use serde_json::{Value, json};

use crate::test_server::TestServer;

impl TestServer {
    /// Claims one job of a service, waiting for it.
    pub(crate) async fn claim(&self, service: &str) -> Value {
        let claim = json!({ "worker_id": "w", "services": [service], "wait_ms": 20_000 });
        let claimed = self.post("/api/v1/jobs/claim", claim).await.ok();
        assert!(claimed["jobs"][0].is_object(), "no job of `{service}` came: {claimed}");
        claimed["jobs"][0].clone()
    }

    /// Finishes a claimed job and returns the verdict.
    pub(crate) async fn finish(&self, job: &Value, mut end: Value) -> Value {
        (end["id"], end["lease"]) = (job["id"].clone(), job["lease"].clone());
        let response = self.post("/api/v1/jobs/finish", json!({ "results": [end] })).await.ok();
        response["results"][0]["verdict"].clone()
    }

    /// The lines of a run's log.
    pub(crate) async fn lines(&self, run: &str, query: &str) -> Vec<Value> {
        let page = self.get(&format!("/api/v1/runs/{run}/logs?limit=1000{query}")).await.ok();
        page["items"].as_array().unwrap().clone()
    }
}
