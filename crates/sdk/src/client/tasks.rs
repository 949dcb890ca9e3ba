//! Tasks: creating them, looking at them, ending their wait or them.

use serde::Serialize;

use super::{Client, Repeat, with_query};
use crate::error::ClientError;
use crate::types::{
    NewTask, NoBody, PageQuery, TaskCreated, TaskDetail, TaskList, TaskRuns, TasksCreated, TasksQuery,
};

impl Client {
    /// Creates a task.
    pub async fn create_task(&self, task: &NewTask) -> Result<TaskCreated, ClientError> {
        self.post(self.native(&["tasks"]), task, repeat([task])).await
    }

    /// Creates tasks, up to 10,000: all, or none when something is wrong with one of them.
    pub async fn create_tasks(&self, tasks: &[NewTask]) -> Result<TasksCreated, ClientError> {
        self.post(self.native(&["tasks", "batch"]), tasks, repeat(tasks)).await
    }

    /// A task with its latest run.
    pub async fn task(&self, id: &str) -> Result<TaskDetail, ClientError> {
        self.get(self.native(&["tasks", id])).await
    }

    /// Tasks, newest first.
    pub async fn tasks(&self, query: &TasksQuery) -> Result<TaskList, ClientError> {
        self.get(with_query(self.native(&["tasks"]), query)).await
    }

    /// Attempts at a task, oldest first.
    pub async fn task_runs(&self, id: &str, page: &PageQuery) -> Result<TaskRuns, ClientError> {
        self.get(with_query(self.native(&["tasks", id, "runs"]), page)).await
    }

    /// Cancels a task; one that somebody works on is cancelled when they have stopped, or had the time to.
    pub async fn cancel_task(&self, id: &str) -> Result<TaskDetail, ClientError> {
        self.act_on_task(id, "cancel").await
    }

    /// Ends the wait of a task, or opens a failed or cancelled one again.
    pub async fn retry_task(&self, id: &str) -> Result<TaskDetail, ClientError> {
        self.act_on_task(id, "retry").await
    }

    async fn act_on_task(&self, id: &str, word: &str) -> Result<TaskDetail, ClientError> {
        self.post(self.native(&["tasks", id, word]), &NoBody {}, Repeat::Never).await
    }

    /// Sends what changes something by a word in the path.
    pub(super) async fn word<B: Serialize, T: serde::de::DeserializeOwned>(
        &self,
        segments: &[&str],
        body: &B,
    ) -> Result<T, ClientError> {
        self.post(self.native(segments), body, Repeat::Harmless).await
    }
}

/// What has a key is created once, however often it is asked for.
fn repeat<'a>(tasks: impl IntoIterator<Item = &'a NewTask>) -> Repeat {
    if tasks.into_iter().all(|task| !task.dedup_key.is_empty()) { Repeat::Harmless } else { Repeat::Never }
}
