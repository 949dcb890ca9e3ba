//! Attempts at the nodes of a task (`NodeRun` in the documents), and their logs.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::id::{JobId, RunId};
use windlass_engine::job::State as JobState;
use windlass_engine::path::NodePath;
use windlass_engine::plan::Plan;
use windlass_runtime::RuntimeError;
use windlass_store::flow::VersionRef;
use windlass_store::job::{JobQuery, JobStatus};
use windlass_store::log::LogsOf;
use windlass_store::page::{PAGE_MAX, Part};
use windlass_store::projection::attempts::{AttemptPart as Where, AttemptStatus, Attempts, NodeAttempt};
use windlass_store::run::{RunRef, Since};
use windlass_store::worker::WorkerQuery;

use super::Surface;
use super::era::Noun;
use super::failure::{Failure, SchedulerResult};
use super::request::RequestFields;
use super::worker::seconds;
use super::{flow, id};

/// Entries of a journal that are read at once.
const ENTRIES: usize = 1_000;

pub(super) async fn list(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    let text = ask.required("task_id")?;
    let store = surface.runtime.store();
    let row = match id::read_task(text) {
        Some(run) => store.run(surface.runtime.project(), RunRef::Id(run)).await?,
        None => None,
    };
    // Clients of this surface expect a list for every id.
    let Some(row) = row else { return Ok(Json(json!([]))) };
    let run = row.id;
    let plan = surface.runtime.runs().plan(row.origin.version).await?;
    let attempts = summaries_last(fold(&surface, run, &plan).await?);
    let version = store.version(surface.runtime.project(), VersionRef::Id(row.origin.version)).await?;
    let showing = AttemptRenderer {
        run,
        definition: version.as_ref().map(flow::definition).unwrap_or_default(),
        claimed: claimed(&surface, run, &attempts).await?,
        urls: urls(&surface, &attempts).await?,
        newest: attempts.iter().enumerate().map(|(at, row)| (row.node.clone(), at)).collect(),
    };
    let shown = attempts.iter().enumerate();
    let shown = shown.map(|(at, row)| surface.era.object(Noun::Attempt, showing.fields(at, row)));
    Ok(Json(shown.collect()))
}

async fn fold(surface: &Surface, run: RunId, plan: &Plan) -> Result<Vec<NodeAttempt>, RuntimeError> {
    let mut attempts = Attempts::new(run, plan);
    let mut read = Seq::ZERO;
    loop {
        let part = surface
            .runtime
            .store()
            .journal(surface.runtime.project(), run, Since::Entry(read), ENTRIES)
            .await?;
        part.entries.iter().for_each(|(_, entry)| attempts.follow(entry));
        match part.entries.last() {
            Some((seq, _)) if part.entries.len() == ENTRIES => read = *seq,
            Some(_) | None => return Ok(attempts.into_rows()),
        }
    }
}

/// The attempts with the row of each fan after the rows of its branches: it tells their result.
fn summaries_last(attempts: Vec<NodeAttempt>) -> Vec<NodeAttempt> {
    let is_branch = |row: &&NodeAttempt| matches!(row.part, Where::Branch { .. } | Where::Item { .. });
    let fan_of = |row: &NodeAttempt| row.node.split_last().map(|(fan, _)| fan);
    let fans: BTreeSet<NodePath> = attempts.iter().filter(is_branch).filter_map(fan_of).collect();
    // The rows of the fans that are around the row at hand.
    let mut newest: HashMap<&NodePath, usize> = HashMap::new();
    let mut last_of: Vec<usize> = (0..attempts.len()).collect();
    for (at, row) in attempts.iter().enumerate() {
        let mut around = fan_of(row);
        while let Some(path) = around {
            if let Some(fan) = newest.get(&path) {
                last_of[*fan] = at;
            }
            around = path.split_last().map(|(outer, _)| outer);
        }
        if let Some(fan) = fans.get(&row.node) {
            newest.insert(fan, at);
        }
    }
    let mut placed: Vec<(usize, NodeAttempt)> = last_of.into_iter().zip(attempts).collect();
    // A row inside comes before the row of its fan.
    placed.sort_by_key(|(at, row)| (*at, Reverse(row.node.segments().count())));
    placed.into_iter().map(|(_, row)| row).collect()
}

/// The workers that hold jobs of a run. The journal does not name them: it learns of a job at its end.
async fn claimed(
    surface: &Surface,
    run: RunId,
    attempts: &[NodeAttempt],
) -> Result<HashMap<JobId, String>, Failure> {
    if !attempts.iter().any(|row| row.status == AttemptStatus::Queued) {
        return Ok(HashMap::new());
    }
    let part = Part { limit: PAGE_MAX, ..Part::default() };
    let query = JobQuery { run: Some(run), statuses: vec![JobStatus::Running], part, ..JobQuery::default() };
    let jobs = surface.runtime.store().jobs(surface.runtime.project(), query).await?.items;
    let holder = |job: windlass_engine::job::Job| match job.state {
        JobState::Running { worker, .. } => Some((job.id, worker)),
        JobState::Pending { .. }
        | JobState::Queued { .. }
        | JobState::Suspended { .. }
        | JobState::Retrying { .. }
        | JobState::Succeeded
        | JobState::Failed { .. }
        | JobState::Canceled => None,
    };
    Ok(jobs.into_iter().filter_map(|row| holder(row.job)).collect())
}

/// Where the workers that are named are called.
async fn urls(surface: &Surface, attempts: &[NodeAttempt]) -> Result<HashMap<String, String>, Failure> {
    if attempts.iter().all(|row| row.worker.is_none() && row.status != AttemptStatus::Queued) {
        return Ok(HashMap::new());
    }
    let workers = surface.runtime.store().workers(surface.runtime.project(), WorkerQuery::default()).await?;
    Ok(workers.into_iter().map(|worker| (worker.id, worker.url)).collect())
}

/// The data that all attempts of one task are rendered with.
struct AttemptRenderer {
    run: RunId,
    definition: Value,
    claimed: HashMap<JobId, String>,
    urls: HashMap<String, String>,
    newest: HashMap<NodePath, usize>,
}

impl AttemptRenderer {
    fn fields(&self, at: usize, row: &NodeAttempt) -> Map<String, Value> {
        let holder = self.claimed.get(&JobId::of_call(self.run, row.fence));
        let holder = holder.filter(|_| row.status == AttemptStatus::Queued);
        let function = row.function.as_ref().map(|name| format!("local-func:{name}"));
        let worker = row.worker.as_ref().or(holder).or(function.as_ref()).cloned().unwrap_or_default();
        let is_newest = self.newest.get(&row.node) == Some(&at);
        let (status, sub_status) = words(row, holder.is_some(), is_newest);
        let (node_key, branch_id) = key_and_branch(row);
        let output = row.output.as_deref().map(Value::to_string);
        let has_log = row.fence > Fence::ZERO && matches!(row.exec, Some("local_script" | "queue"));
        let log_path =
            if has_log { format!("/api/tasks/logs?run_id={}", self.id_of(row)) } else { String::new() };
        let fields = [
            ("id", self.id_of(row).into()),
            ("task_id", id::task(self.run).into()),
            ("node_key", node_key.into()),
            ("attempt_no", row.attempt.into()),
            ("status", status.into()),
            ("sub_status", sub_status.into()),
            ("branch_id", branch_id.into()),
            ("prep_json", prep(&self.definition, &row.node).to_string().into()),
            ("exec_input_json", row.input.to_string().into()),
            ("exec_output_json", output.unwrap_or_default().into()),
            ("error_text", row.fault.as_ref().map(|fault| fault.message.clone()).unwrap_or_default().into()),
            ("action", action(row).into()),
            ("started_at", seconds(row.started_at).into()),
            ("finished_at", row.finished_at.map_or(0, seconds).into()),
            ("worker_url", self.urls.get(&worker).cloned().unwrap_or_default().into()),
            ("worker_id", worker.into()),
            ("log_path", log_path.into()),
        ];
        fields.into_iter().map(|(name, value): (&str, Value)| (name.to_owned(), value)).collect()
    }

    fn id_of(&self, row: &NodeAttempt) -> String {
        id::attempt(self.run, row.fence, row.event)
    }
}

/// The status in the words of this surface, and its sub-status.
fn words(row: &NodeAttempt, is_claimed: bool, is_newest: bool) -> (&'static str, &'static str) {
    let complete = match row.part {
        Where::Outermost => "",
        Where::Branch { .. } => "branch_complete",
        Where::Item { .. } => "item_complete",
        Where::Inner { .. } => "sub_node_complete",
    };
    match row.status {
        AttemptStatus::Queued if is_claimed => ("running", ""),
        AttemptStatus::Queued => ("queued", ""),
        AttemptStatus::Running => ("running", ""),
        AttemptStatus::Waiting => ("running", "waiting"),
        AttemptStatus::Suspended if is_newest => ("running", "suspended"),
        // It was asked again: that one answered, though not with a result.
        AttemptStatus::Suspended => ("ok", "suspended"),
        AttemptStatus::Ok => ("ok", complete),
        AttemptStatus::Error => ("error", complete),
        AttemptStatus::Canceled => ("canceled", complete),
    }
}

/// A node inside another one has the key of the outer node, and its own name as the branch.
fn key_and_branch(row: &NodeAttempt) -> (String, String) {
    let around = node_key(&row.node);
    match &row.part {
        Where::Outermost => (around, String::new()),
        Where::Branch { name, .. } => (around, name.clone()),
        Where::Item { index } => (around, index.to_string()),
        Where::Inner { key } => (around, key.clone()),
    }
}

/// The node that a place is filed under: itself, or the one around it.
pub(super) fn node_key(path: &NodePath) -> String {
    match path.split_last() {
        Some((around, _)) if !around.is_root() => around.to_string(),
        Some(_) | None => path.to_string(),
    }
}

fn action(row: &NodeAttempt) -> String {
    let is_default = row.status == AttemptStatus::Ok && row.part == Where::Outermost;
    row.action.clone().unwrap_or_else(|| if is_default { "default".to_owned() } else { String::new() })
}

/// How a node's input is made, as its definition says; empty where it says nothing.
fn prep(definition: &Value, path: &NodePath) -> Value {
    let mut scope = definition;
    let mut found = None;
    for key in path.segments() {
        // Indexes of branches and iterations are no nodes: nodes inside them belong to the node before.
        if let Some(node) = scope.get("nodes").and_then(|nodes| nodes.get(key)) {
            found = node.get("prep");
            scope = node.get("subflow").unwrap_or(&Value::Null);
        }
    }
    found.filter(|prep| prep.is_object()).cloned().unwrap_or_else(|| json!({}))
}

pub(super) async fn log(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    let text = ask.required("run_id")?;
    let unknown = || Failure::unknown("node run", text);
    let (run, fence) = id::read_attempt(text).ok_or_else(unknown)?;
    let view = surface.runtime.runs().view(run).await?.ok_or_else(unknown)?;
    // Only a call writes something.
    let Some(fence) = fence else { return Ok(Json(json!({"content": ""}))) };
    if fence == Fence::ZERO || fence > view.state.fence {
        return Err(unknown());
    }
    let logs = surface.runtime.store().logs(surface.runtime.project(), run, LogsOf::Attempt(fence)).await?;
    let content: String = logs.into_iter().map(|log| log.text).collect();
    Ok(Json(json!({"content": content})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_inside_a_node_share_its_key() {
        for (path, key) in [("a", "a"), ("fe/3", "fe"), ("sf/b", "sf"), ("sf/fe/3", "sf/fe")] {
            assert_eq!(node_key(&NodePath::from(path)), key);
        }
    }

    #[test]
    fn the_prep_of_a_node_is_found_however_deep_it_is() {
        let definition = json!({"nodes": {
            "sf": {"prep": {"input_key": "x"}, "subflow": {"nodes": {"b": {"prep": {"input_key": "y"}}, "c": {}}}},
            "f": {"subflow": {"nodes": {"d": {"prep": {"input_map": {}}}}}}}});
        let prep = |path: &str| prep(&definition, &NodePath::from(path)).to_string();
        assert_eq!(prep("sf"), r#"{"input_key":"x"}"#);
        assert_eq!(prep("sf/b"), r#"{"input_key":"y"}"#);
        assert_eq!(prep("f/7/d"), r#"{"input_map":{}}"#);
        assert_eq!((prep("sf/c").as_str(), prep("nowhere").as_str()), ("{}", "{}"));
    }
}
