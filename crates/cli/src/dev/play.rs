//! Runs one example on the server: starts the run, performs the actions of its script, and waits for the end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Map, Value};
use windlass_sdk::client::Registration;
use windlass_sdk::contract::{
    Cancel, Decide, NodeInfo, RerunRequest, RunDetail, RunRequest, RunStatus, Signal, WaitReason, WorkerInfo,
};
use windlass_sdk::worker::bind;
use windlass_sdk::{Client, ClientError};

use super::example::{Example, ExampleAction, ExampleScript};

/// The time limit of one example; examples finish in far less.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The pause between two polls of a run.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Reasons to wait that only an action from outside clears.
const OUTSIDE_REASONS: [&str; 4] = ["signal", "approval", "step", "resume"];

/// The end of a run, or its state at the time limit.
pub(super) struct ExampleOutcome {
    pub(super) run: String,
    pub(super) status: &'static str,
    pub(super) took: Duration,
    pub(super) n_entries: u64,
    /// The result of the flow, or else its shared state.
    pub(super) result: Value,
    pub(super) error: Option<String>,
    pub(super) shared: Map<String, Value>,
    pub(super) nodes: BTreeMap<String, NodeInfo>,
    /// Failures to run the example.
    pub(super) failures: Vec<String>,
}

/// Waits until the server knows this worker by its URL: the store may remember an earlier one with the same id.
pub(super) async fn until_registered(client: &Client, id: &str, url: &str) -> Result<()> {
    let began = Instant::now();
    let is_it = |worker: &WorkerInfo| worker.id == id && worker.url == url && worker.status == "online";
    while !client.workers().all().await?.iter().any(is_it) {
        if began.elapsed() > TIMEOUT {
            bail!("the worker of this process could not register: see the messages above");
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

pub(super) async fn play(client: &Client, example: &Example) -> Result<ExampleOutcome> {
    let script = &example.script;
    register_dead(client, script).await?;
    let began = Instant::now();
    let new = RunRequest {
        params: Some(script.params.clone()),
        exec_mode: script.exec_mode,
        start_node_ids: script.start_node_ids.clone(),
        ..RunRequest::default()
    };
    let run = client.runs().start(&example.name, &new).await?.id;
    let mut playing = ExampleRun { client, run, began, failures: Vec::new() };
    playing.perform_all(&script.script).await?;
    let ended = playing.until_at_rest().await?;
    let took = began.elapsed();
    if !ended.summary.status.is_ended() && playing.failures.is_empty() {
        playing.give_up().await?;
    }
    Ok(playing.ending(ended, took))
}

/// Registers workers at addresses where none listens.
async fn register_dead(client: &Client, script: &ExampleScript) -> Result<()> {
    for (id, services) in &script.dead_workers {
        let (listener, url) = bind("http://127.0.0.1:0").await?;
        drop(listener);
        let worker = Registration {
            id: id.clone(),
            url,
            services: services.clone(),
            kind: "http".to_owned(),
            ..Registration::default()
        };
        client.workers().register(&worker).await?;
    }
    Ok(())
}

struct ExampleRun<'c> {
    client: &'c Client,
    run: String,
    began: Instant,
    failures: Vec<String>,
}

impl ExampleRun<'_> {
    /// Polls the run until `holds` or the time limit.
    async fn until(&self, holds: impl Fn(&RunDetail) -> bool) -> Result<RunDetail, ClientError> {
        loop {
            let run = self.client.runs().show(&self.run).await?;
            if holds(&run) || self.began.elapsed() > TIMEOUT {
                return Ok(run);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Polls the run until it has ended, or waits for an action that the script does not have.
    async fn until_at_rest(&self) -> Result<RunDetail, ClientError> {
        loop {
            let might_rest = |run: &RunDetail| {
                let status = run.summary.status;
                status.is_ended() || status == RunStatus::Waiting && run.summary.wake_at.is_none()
            };
            let run = self.until(might_rest).await?;
            if run.summary.status.is_ended() || self.began.elapsed() > TIMEOUT {
                return Ok(run);
            }
            let why = self.client.runs().why(&self.run).await?;
            let needs_outside = |reason: &WaitReason| OUTSIDE_REASONS.contains(&reason.waits_for.as_str());
            if !why.reasons.is_empty() && why.reasons.iter().all(needs_outside) {
                return Ok(run);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Performs the actions in order, each when no worker has a call of the run.
    async fn perform_all(&mut self, acts: &[ExampleAction]) -> Result<()> {
        for (n_done, act) in acts.iter().enumerate() {
            let ready = |run: &RunDetail| match (act, run.summary.status) {
                (_, RunStatus::Completed | RunStatus::Failed | RunStatus::Canceled) => true,
                (ExampleAction::Retry {} | ExampleAction::Rerun { .. }, _) => false,
                (
                    ExampleAction::Signal { .. }
                    | ExampleAction::Decide { .. }
                    | ExampleAction::Cancel { .. },
                    status,
                ) => {
                    matches!(status, RunStatus::Waiting | RunStatus::Paused)
                }
            };
            self.until(ready).await?;
            if let Err(error) = self.perform(act).await {
                let n_left = acts.len() - n_done;
                self.failures
                    .push(format!("the script's next act was refused ({n_left} are left): {}", error.detail));
                return Ok(());
            }
        }
        Ok(())
    }

    async fn perform(&self, act: &ExampleAction) -> Result<(), ClientError> {
        loop {
            let done = match act.clone() {
                ExampleAction::Signal { key, value } => {
                    let signal = Signal { key, value, id: None, by: None };
                    self.client.runs().signal(&self.run, &signal).await
                }
                ExampleAction::Decide { node, decision, by, comment } => {
                    let decide = Decide { node, decision, comment, by };
                    self.client.approvals().decide(&self.run, &decide).await
                }
                ExampleAction::Cancel { reason } => {
                    self.client.runs().cancel(&self.run, &Cancel { reason, by: None }).await
                }
                ExampleAction::Retry {} => self.client.runs().retry(&self.run).await,
                ExampleAction::Rerun { from, shared } => {
                    self.client.runs().rerun(&self.run, &RerunRequest { from, shared }).await
                }
            };
            match done {
                Ok(_) => return Ok(()),
                // The approval opens later.
                Err(error) if error.code == "no_approval" && self.began.elapsed() < TIMEOUT => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Notes the reasons of a run that did not end, and cancels it.
    async fn give_up(&mut self) -> Result<()> {
        let why = self.client.runs().why(&self.run).await?;
        let reasons: Vec<String> =
            why.reasons.iter().map(|reason| format!("{}: {}", reason.node, reason.text)).collect();
        let reasons = if reasons.is_empty() { "for nothing".to_owned() } else { reasons.join("; ") };
        self.failures.push(format!("it has not ended; it waits: {reasons}"));
        let reason = Some("the example did not end by itself".to_owned());
        self.client.runs().cancel(&self.run, &Cancel { reason, by: None }).await?;
        Ok(())
    }

    fn ending(self, run: RunDetail, took: Duration) -> ExampleOutcome {
        let error = run.summary.error.map(|error| match error.node {
            Some(node) => format!("{node}: {}", error.message),
            None => error.message,
        });
        ExampleOutcome {
            run: self.run,
            status: run.summary.status.word(),
            took,
            n_entries: run.summary.len,
            result: run.result.unwrap_or_else(|| Value::Object(run.shared.clone())),
            error,
            shared: run.shared,
            nodes: run.node_states,
            failures: self.failures,
        }
    }
}
