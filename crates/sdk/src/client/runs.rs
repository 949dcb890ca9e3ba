//! Runs: starting them, reading them, acting on them.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde::Serialize;
use serde_json::Value;

use super::{Client, EventStream, Repeat, with_query};
use crate::contract::{
    Budget, Cancel, Continue, DryRun, DryRunQuery, FlowGraph, JournalEntry, List, LogLine, LogsQuery, NoBody,
    NodeAttemptInfo, OutputQuery, PageQuery, RerunRequest, RunCounts, RunCountsQuery, RunDetail,
    RunGraphQuery, RunPage, RunRequest, RunState, RunStats, RunSummary, RunsQuery, Signal, StartQuery,
    StartResponse, StateDiff, StateDiffQuery, StateQuery, Why,
};
use crate::error::ClientError;

/// The first pause between two looks at a run whose end is awaited; each next one is half as long again.
const LOOK_FIRST: Duration = Duration::from_millis(20);
/// The longest pause.
const LOOK_LAST: Duration = Duration::from_secs(1);

/// Runs of one server, from [`Client::runs`].
#[derive(Debug, Clone, Copy)]
pub struct RunsApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Starts, reads and controls runs.
    pub fn runs(&self) -> RunsApi<'_> {
        RunsApi { client: self }
    }
}

impl RunsApi<'_> {
    /// Starts a run of a flow, named by its name or its id. With a request id it may be sent again.
    pub async fn start(self, flow: &str, run: &RunRequest) -> Result<StartResponse, ClientError> {
        self.start_and_wait(flow, run, Duration::ZERO).await
    }

    /// Starts a run and waits for its end, as long as the server waits for one (a minute at most).
    pub async fn start_and_wait(
        self,
        flow: &str,
        run: &RunRequest,
        wait: Duration,
    ) -> Result<StartResponse, ClientError> {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).min(60_000);
        let query = StartQuery { wait_ms: (wait_ms > 0).then_some(wait_ms) };
        let url = with_query(self.client.native(&["flows", flow, "runs"]), &query);
        let repeat = if run.request_id.is_some() { Repeat::Harmless } else { Repeat::Never };
        self.client.call(Method::POST, url, Some(run), Duration::from_millis(wait_ms), repeat).await
    }

    /// The graph of the version that a run executes, laid out.
    pub async fn graph(self, run: &str, query: &RunGraphQuery) -> Result<FlowGraph, ClientError> {
        self.client.get(with_query(self.client.native(&["runs", run, "graph"]), query)).await
    }

    /// Waits until a run has ended, however long; `None` = not within `at_most`. A server that goes away meanwhile is
    /// waited for; one that never answered only if there is an `at_most`.
    pub async fn wait(self, run: &str, at_most: Option<Duration>) -> Result<Option<RunDetail>, ClientError> {
        let began = Instant::now();
        let mut pause = LOOK_FIRST;
        let mut has_answered = false;
        loop {
            let asked = self.show(run).await;
            let left = at_most.map(|at_most| at_most.saturating_sub(began.elapsed()));
            let is_over = left.is_some_and(|left| left.is_zero());
            match asked {
                Ok(seen) if seen.summary.status.is_ended() => return Ok(Some(seen)),
                Ok(_) if is_over => return Ok(None),
                Ok(_) => has_answered = true,
                Err(error) if error.is_temporary() && !is_over && (has_answered || at_most.is_some()) => {
                    tracing::debug!(%error, "the run could not be looked at, will try again");
                }
                Err(error) => return Err(error),
            }
            tokio::time::sleep(pause.min(left.unwrap_or(pause))).await;
            pause = (pause * 3 / 2).min(LOOK_LAST);
        }
    }

    /// Runs, newest first.
    pub async fn list(self, query: &RunsQuery) -> Result<List<RunSummary>, ClientError> {
        self.client.get(with_query(self.client.native(&["runs"]), query)).await
    }

    /// Numbers of runs by status, of those that a query selects.
    pub async fn counts(self, query: &RunCountsQuery) -> Result<RunCounts, ClientError> {
        self.client.get(with_query(self.client.native(&["runs", "counts"]), query)).await
    }

    /// Everything that the page of a run shows.
    pub async fn view(self, run: &str) -> Result<RunPage, ClientError> {
        self.client.get(self.client.native(&["runs", run, "view"])).await
    }

    /// A value of a run or of an attempt, however large.
    pub async fn output(self, run: &str, query: &OutputQuery) -> Result<Value, ClientError> {
        self.client.get(with_query(self.client.native(&["runs", run, "output"]), query)).await
    }

    /// A run, wholly.
    pub async fn show(self, run: &str) -> Result<RunDetail, ClientError> {
        self.client.get(self.client.native(&["runs", run])).await
    }

    /// Every attempt at every node, oldest first.
    pub async fn attempts(self, run: &str, page: &PageQuery) -> Result<List<NodeAttemptInfo>, ClientError> {
        self.client.get(with_query(self.client.native(&["runs", run, "attempts"]), page)).await
    }

    /// The journal of a run, oldest entry first.
    pub async fn journal(self, run: &str, page: &PageQuery) -> Result<List<JournalEntry>, ClientError> {
        self.client.get(with_query(self.client.native(&["runs", run, "journal"]), page)).await
    }

    /// The log of a run with the lines of its workers, oldest first.
    pub async fn logs(self, run: &str, page: &LogsQuery) -> Result<List<LogLine>, ClientError> {
        self.client.get(with_query(self.client.native(&["runs", run, "logs"]), page)).await
    }

    /// A run as it was after so many entries of its journal.
    pub async fn state(self, run: &str, query: &StateQuery) -> Result<RunState, ClientError> {
        self.client.get(with_query(self.client.native(&["runs", run, "state"]), query)).await
    }

    /// The differences of a run between two entries of its journal.
    pub async fn diff(self, run: &str, query: &StateDiffQuery) -> Result<StateDiff, ClientError> {
        self.client.get(with_query(self.client.native(&["runs", run, "state", "diff"]), query)).await
    }

    /// The reasons why a run waits.
    pub async fn why(self, run: &str) -> Result<Why, ClientError> {
        self.client.get(self.client.native(&["runs", run, "why"])).await
    }

    /// Stops a run.
    pub async fn cancel(self, run: &str, body: &Cancel) -> Result<RunSummary, ClientError> {
        self.act(run, "cancel", body, Repeat::Harmless).await
    }

    /// Lets a run start nothing new.
    pub async fn pause(self, run: &str) -> Result<RunSummary, ClientError> {
        self.act(run, "pause", &NoBody {}, Repeat::Never).await
    }

    /// Resumes a paused run.
    pub async fn resume(self, run: &str) -> Result<RunSummary, ClientError> {
        self.act(run, "resume", &NoBody {}, Repeat::Never).await
    }

    /// Advances a run that is advanced by hand.
    pub async fn step(self, run: &str) -> Result<RunSummary, ClientError> {
        self.act(run, "step", &NoBody {}, Repeat::Never).await
    }

    /// Retries the failed nodes of an ended run.
    pub async fn retry(self, run: &str) -> Result<RunSummary, ClientError> {
        self.act(run, "retry", &NoBody {}, Repeat::Never).await
    }

    /// Reports the effect of a retry without changing the run.
    pub async fn retry_dry_run(self, run: &str) -> Result<DryRun, ClientError> {
        self.dry_run(run, "retry", &NoBody {}).await
    }

    /// Ends a suspended or waiting node with a result.
    pub async fn continue_node(self, run: &str, body: &Continue) -> Result<RunSummary, ClientError> {
        self.act(run, "continue", body, Repeat::Never).await
    }

    /// Gives a run a value from outside.
    pub async fn signal(self, run: &str, body: &Signal) -> Result<RunSummary, ClientError> {
        let repeat = if body.id.is_some() { Repeat::Harmless } else { Repeat::Never };
        self.act(run, "signal", body, repeat).await
    }

    /// Runs again from a node on.
    pub async fn rerun(self, run: &str, body: &RerunRequest) -> Result<RunSummary, ClientError> {
        self.act(run, "rerun", body, Repeat::Never).await
    }

    /// Reports the effect of a rerun without changing the run.
    pub async fn rerun_dry_run(self, run: &str, body: &RerunRequest) -> Result<DryRun, ClientError> {
        self.dry_run(run, "rerun", body).await
    }

    /// The events of a run, after the entry `last`, or from the beginning.
    pub async fn events(self, run: &str, last: Option<&str>) -> Result<EventStream, ClientError> {
        self.client.stream(&["runs", run, "events"], last).await
    }

    /// How many calls of a run went on at once, and how long its nodes took.
    pub async fn stats(self, run: &str) -> Result<RunStats, ClientError> {
        self.client.get(self.client.native(&["runs", run, "stats"])).await
    }

    /// Sets the budget of a run.
    pub async fn set_budget(self, run: &str, budget: i64) -> Result<RunSummary, ClientError> {
        self.client
            .post(self.client.native(&["runs", run, "budget"]), &Budget { budget }, Repeat::Harmless)
            .await
    }

    async fn dry_run(self, run: &str, verb: &str, body: &impl Serialize) -> Result<DryRun, ClientError> {
        let url = with_query(self.client.native(&["runs", run, verb]), &DryRunQuery { dry_run: true });
        self.client.post(url, body, Repeat::Harmless).await
    }

    async fn act(
        self,
        run: &str,
        verb: &str,
        body: &impl Serialize,
        repeat: Repeat,
    ) -> Result<RunSummary, ClientError> {
        self.client.post(self.client.native(&["runs", run, verb]), body, repeat).await
    }
}
