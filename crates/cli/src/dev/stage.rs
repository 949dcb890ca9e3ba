//! Plays one example on the server: starts its run, does what its script says from outside, and waits for its end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Map, Value};
use windlass_sdk::client::Registration;
use windlass_sdk::types::{Cancel, Decide, NewRun, NodeState, Reason, Rerun, Run, RunStatus, Signal, Worker};
use windlass_sdk::worker::bind;
use windlass_sdk::{Client, ClientError};

use super::example::{Act, Example, Script};

/// How long one example may take: they are for reading, and finish in far less.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// What only somebody outside can bring.
const FOR_PEOPLE: [&str; 4] = ["signal", "approval", "step", "resume"];

/// How a run ended, or where it stood when patience did.
pub(super) struct Ending {
    pub(super) run: String,
    pub(super) status: &'static str,
    pub(super) took: Duration,
    pub(super) n_entries: u64,
    /// What the flow returned, or else its shared state.
    pub(super) result: Value,
    pub(super) error: Option<String>,
    pub(super) shared: Map<String, Value>,
    pub(super) nodes: BTreeMap<String, NodeState>,
    /// What went wrong with playing it.
    pub(super) trouble: Vec<String>,
}

/// Waits until the server knows this very worker; a store may remember others, and an earlier one of that name.
pub(super) async fn until_registered(client: &Client, id: &str, url: &str) -> Result<()> {
    let began = Instant::now();
    let is_it = |worker: &Worker| worker.id == id && worker.url == url && worker.status == "online";
    while !client.workers().await?.workers.iter().any(is_it) {
        if began.elapsed() > PATIENCE {
            bail!("the worker of this process could not register: see the messages above");
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

pub(super) async fn play(client: &Client, example: &Example) -> Result<Ending> {
    let script = &example.script;
    register_dead(client, script).await?;
    let began = Instant::now();
    let new = NewRun {
        params: Some(script.params.clone()),
        exec_mode: script.exec_mode,
        start_node_ids: script.start_node_ids.clone(),
        ..NewRun::default()
    };
    let run = client.start(&example.name, &new).await?.id;
    let mut stage = Stage { client, run, began, trouble: Vec::new() };
    stage.acts(&script.script).await?;
    let ended = stage.until_at_rest().await?;
    let took = began.elapsed();
    if !ended.summary.status.is_ended() && stage.trouble.is_empty() {
        stage.wondering().await?;
    }
    Ok(stage.ending(ended, took))
}

/// Registers workers that are not there: addresses at which nobody answers.
async fn register_dead(client: &Client, script: &Script) -> Result<()> {
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
        client.register(&worker).await?;
    }
    Ok(())
}

struct Stage<'c> {
    client: &'c Client,
    run: String,
    began: Instant,
    trouble: Vec<String>,
}

impl Stage<'_> {
    /// Looks at the run until it is so, or patience ends.
    async fn until(&self, holds: impl Fn(&Run) -> bool) -> Result<Run, ClientError> {
        loop {
            let run = self.client.run(&self.run).await?;
            if holds(&run) || self.began.elapsed() > PATIENCE {
                return Ok(run);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Looks at the run until it has ended, or waits for somebody who will not come.
    async fn until_at_rest(&self) -> Result<Run, ClientError> {
        loop {
            let might_rest = |run: &Run| {
                let status = run.summary.status;
                status.is_ended() || status == RunStatus::Waiting && run.summary.wake_at.is_none()
            };
            let run = self.until(might_rest).await?;
            if run.summary.status.is_ended() || self.began.elapsed() > PATIENCE {
                return Ok(run);
            }
            let why = self.client.why(&self.run).await?;
            let for_people = |reason: &Reason| FOR_PEOPLE.contains(&reason.waits_for.as_str());
            if !why.reasons.is_empty() && why.reasons.iter().all(for_people) {
                return Ok(run);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Does one act after the other, each when nobody works on the run.
    async fn acts(&mut self, acts: &[Act]) -> Result<()> {
        for (n_done, act) in acts.iter().enumerate() {
            let ready = |run: &Run| match (act, run.summary.status) {
                (_, RunStatus::Completed | RunStatus::Failed | RunStatus::Canceled) => true,
                (Act::Retry {} | Act::Rerun { .. }, _) => false,
                (Act::Signal { .. } | Act::Decide { .. } | Act::Cancel { .. }, status) => {
                    matches!(status, RunStatus::Waiting | RunStatus::Paused)
                }
            };
            self.until(ready).await?;
            if let Err(error) = self.act(act).await {
                let n_left = acts.len() - n_done;
                self.trouble
                    .push(format!("the script's next act was refused ({n_left} are left): {}", error.detail));
                return Ok(());
            }
        }
        Ok(())
    }

    async fn act(&self, act: &Act) -> Result<(), ClientError> {
        loop {
            let done = match act.clone() {
                Act::Signal { key, value } => {
                    let signal = Signal { key, value, id: None, by: None };
                    self.client.signal(&self.run, &signal).await
                }
                Act::Decide { node, decision, by, comment } => {
                    let decide = Decide { node, decision, comment, by };
                    self.client.decide(&self.run, &decide).await
                }
                Act::Cancel { reason } => self.client.cancel(&self.run, &Cancel { reason, by: None }).await,
                Act::Retry {} => self.client.retry(&self.run).await,
                Act::Rerun { from, shared } => self.client.rerun(&self.run, &Rerun { from, shared }).await,
            };
            match done {
                Ok(_) => return Ok(()),
                // The approval is still to come: time has to pass first.
                Err(error) if error.code == "no_approval" && self.began.elapsed() < PATIENCE => {
                    tokio::time::sleep(LOOK).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Says what a run that did not end waits for, and ends it.
    async fn wondering(&mut self) -> Result<()> {
        let why = self.client.why(&self.run).await?;
        let reasons: Vec<String> =
            why.reasons.iter().map(|reason| format!("{}: {}", reason.node, reason.text)).collect();
        let reasons = if reasons.is_empty() { "for nothing".to_owned() } else { reasons.join("; ") };
        self.trouble.push(format!("it has not ended; it waits: {reasons}"));
        let reason = Some("the example did not end by itself".to_owned());
        self.client.cancel(&self.run, &Cancel { reason, by: None }).await?;
        Ok(())
    }

    fn ending(self, run: Run, took: Duration) -> Ending {
        let error = run.summary.error.map(|error| match error.node {
            Some(node) => format!("{node}: {}", error.message),
            None => error.message,
        });
        Ending {
            run: self.run,
            status: run.summary.status.word(),
            took,
            n_entries: run.summary.len,
            result: run.result.unwrap_or_else(|| Value::Object(run.shared.clone())),
            error,
            shared: run.shared,
            nodes: run.node_states,
            trouble: self.trouble,
        }
    }
}
