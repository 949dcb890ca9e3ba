//! Helpers of the tests of this surface.

use serde_json::{Value, json};

use crate::test_server::{TestResponse, TestServer};

/// A task with only the required fields.
pub(crate) fn task(name: &str) -> Value {
    json!({ "name": name, "type": "immediate", "queue_name": "default" })
}

/// The same with more fields.
pub(crate) fn with(name: &str, more: Value) -> Value {
    let mut task = task(name);
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

impl TestResponse {
    /// Checks that it is refused in the form of this surface, and answers with the places that are wrong.
    #[track_caller]
    pub(crate) fn no(&self, status: u16, code: &str) -> Vec<String> {
        let body = self.json();
        assert_eq!((self.status.as_u16(), body["code"].as_str()), (status, Some(code)), "{body}");
        assert_eq!(self.headers["content-type"], "application/json");
        assert!(body["error"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
        assert_eq!(body["status"], status);
        let errors = body["errors"].as_array().cloned().unwrap_or_default();
        errors.iter().map(|error| error["path"].as_str().unwrap().to_owned()).collect()
    }
}

impl TestResponse {
    /// The warnings in its headers.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warnings = self.headers.get_all("warning").iter();
        warnings.map(|warning| warning.to_str().unwrap().to_owned()).collect()
    }
}

impl TestServer {
    /// Creates a task and answers with its id.
    pub(crate) async fn create(&self, task: Value) -> String {
        let response = self.post("/api/v1/tasks", task).await;
        assert_eq!(response.status, 201, "{}", response.json());
        response.json()["task_id"].as_str().unwrap().to_owned()
    }

    /// A task as it stands.
    pub(crate) async fn task(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/tasks/{id}")).await.ok()
    }

    /// Claims a job of the queue `default`.
    pub(crate) async fn claim(&self) -> Value {
        let claim = json!({ "worker_id": "w-1", "queues": ["default"], "wait_ms": 20_000 });
        let claimed = self.post("/api/v1/jobs/claim", claim).await.ok();
        claimed["jobs"][0].clone()
    }

    /// Says how a claimed job ended.
    pub(crate) async fn finish(&self, job: &Value, how: Value) {
        let mut result = json!({ "id": job["id"], "lease": job["lease"] });
        result.as_object_mut().unwrap().extend(how.as_object().unwrap().clone());
        let response = self.post("/api/v1/jobs/finish", json!({ "results": [result] })).await.ok();
        assert_eq!(response["results"][0]["verdict"], "ok", "{response}");
    }

    /// Makes a dead letter and answers with its id.
    pub(crate) async fn dead_letter(&self, task: Value, error: &str) -> String {
        let id = self.create(task).await;
        let job = self.claim().await;
        self.finish(&job, json!({ "outcome": "failed", "error": error, "retryable": false })).await;
        assert_eq!(self.task(&id).await["display_status"], "failed");
        id
    }
}
