//! `windlass worker`: the standard worker, which serves built-in functions, and the management of workers.

mod manage;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_engine::function;
use windlass_engine::problem::did_you_mean;
use windlass_sdk::Worker;
use windlass_sdk::worker::{HandlerOutcome, ServiceCall, bind, unique_id};

use crate::exit::{Exit, usage};
use crate::output;
use crate::serve::stop_on_signals;
use crate::session::{GlobalArgs, duration};

/// The services of the standard worker.
const STANDARD: [&str; 3] = ["transform", "sum", "route"];
/// The default URL of the standard worker.
const URL: &str = "http://127.0.0.1:8080";

/// Slots of one worker: each is a task, and each open call holds its input.
const SLOTS_MAX: usize = 10_000;

/// The default queue of `--demo`.
const DEMO_QUEUE: &str = "default";

#[derive(Args)]
pub(crate) struct WorkerArgs {
    #[command(subcommand)]
    command: Option<manage::WorkerCommand>,
    /// The URL at which the server calls this worker; if its port is taken, a free one is used.
    #[arg(long, value_name = "URL", env = "WORKER_URL", default_value = URL)]
    url: String,
    /// Only pull jobs: the server cannot call this worker.
    #[arg(long)]
    pull_only: bool,
    /// Only answer calls: pull no jobs.
    #[arg(long, conflicts_with_all = ["pull_only", "queues"])]
    push_only: bool,
    /// The services: names of built-in functions with commas between, or `all`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values = STANDARD)]
    services: Vec<String>,
    /// Also take the jobs of these queues, with commas between.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    queues: Vec<String>,
    /// Fail the first attempt of every job of an odd priority, to show retries; all other jobs succeed.
    ///
    /// Serves the queue `default` unless --queues names others.
    #[arg(long)]
    demo: bool,
    /// The id of the worker [default: generated].
    #[arg(long)]
    id: Option<String>,
    /// Parallel calls at most: a number, or MIN..MAX for a number that grows with the work and shrinks when idle.
    #[arg(long, value_name = "N|MIN..MAX", default_value = "64", value_parser = slots)]
    slots: SlotBounds,
    /// The duration of a lease: 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = lease)]
    lease: Duration,
}

/// The number of parallel calls, at least and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SlotBounds {
    min: usize,
    max: usize,
}

/// Reads a number of slots, or a range.
fn slots(text: &str) -> Result<SlotBounds, String> {
    let number = |text: &str| {
        let n = text.trim().parse::<usize>().ok().filter(|n| (1..=SLOTS_MAX).contains(n));
        n.ok_or_else(|| {
            format!("write a number from 1 to {SLOTS_MAX}, or two with `..` between, such as 2..64")
        })
    };
    let (min, max) = match text.split_once("..") {
        Some((min, max)) => (number(min)?, number(max)?),
        None => (number(text)?, number(text)?),
    };
    if min > max {
        return Err(format!("the least, {min}, is above the most, {max}"));
    }
    Ok(SlotBounds { min, max })
}

/// Reads a lease that the server accepts.
fn lease(text: &str) -> Result<Duration, String> {
    let lease = duration(text)?;
    let allowed = Duration::from_secs(1)..=Duration::from_secs(3_600);
    if allowed.contains(&lease) { Ok(lease) } else { Err("it must be from 1s to 1h".to_owned()) }
}

pub(crate) async fn run(flags: WorkerArgs, options: &GlobalArgs) -> Result<Exit> {
    match flags.command {
        Some(command) => manage::run(command, options).await,
        None => work(flags, options).await,
    }
}

async fn work(flags: WorkerArgs, options: &GlobalArgs) -> Result<Exit> {
    let server = options.server(&["REGISTRY_URL", "SCHEDULER_BASE"]);
    let services = chosen(&flags.services)?;
    let id = flags.id.unwrap_or_else(|| unique_id("worker"));
    let demo = flags.demo;
    let SlotBounds { min, max } = flags.slots;
    let mut worker = Worker::new(options.client(&server)?, &id).slots_between(min, max).lease(flags.lease);
    for service in &services {
        worker = worker.service(*service, move |call| answer(call, demo));
    }
    let queues = served(flags.queues, demo && !flags.push_only);
    for queue in &queues {
        worker = worker.queue(queue, move |call| answer(call, demo));
    }
    let mut place = "pulls jobs".to_owned();
    if !flags.pull_only {
        let (listener, url) =
            bind(&flags.url).await.with_context(|| format!("cannot listen at {}", flags.url))?;
        place = format!("is called at {url}");
        worker = worker.listen(listener, url);
    }
    if flags.push_only {
        worker = worker.push_only();
    }
    let queues = if queues.is_empty() { String::new() } else { format!("; queues {}", queues.join(", ")) };
    output::message(&format!("worker {id} {place}, for {server}: {}{queues}", services.join(", ")));
    let stop = CancellationToken::new();
    stop_on_signals(stop.clone())?;
    worker.run(stop).await.context("the worker broke")?;
    Ok(Exit::Done)
}

fn served(queues: Vec<String>, is_demonstration: bool) -> Vec<String> {
    if queues.is_empty() && is_demonstration { vec![DEMO_QUEUE.to_owned()] } else { queues }
}

fn chosen(names: &[String]) -> Result<Vec<&'static str>> {
    if names.iter().any(|name| name == "all") {
        return Ok(function::NAMES.to_vec());
    }
    let known = |name: &String| function::NAMES.into_iter().find(|known| known == name);
    names
        .iter()
        .map(|name| match known(name) {
            Some(known) => Ok(known),
            None => {
                let hint = did_you_mean(name, function::NAMES).map(|hint| format!(" ({hint})"));
                let all = function::NAMES.join(", ");
                Err(usage(format!(
                    "the standard worker has no service `{name}`{}; it has {all}: write a worker for any other service (see docs/workers.md)",
                    hint.unwrap_or_default()
                )))
            }
        })
        .collect()
}

async fn answer(call: ServiceCall, demo: bool) -> HandlerOutcome {
    if demo && call.attempt == 1 && call.priority % 2 != 0 {
        return HandlerOutcome::failed("the first attempt of an odd priority fails, for the demonstration");
    }
    let is_plain_job = call.queue.is_some() && call.run.is_none();
    match built_in(&call) {
        Some(outcome) => outcome,
        None if is_plain_job && demo => HandlerOutcome::Done(Value::Null),
        None => HandlerOutcome::failed(format!(
            "the standard worker has no service `{}`: start a worker that serves it",
            call.service
        )),
    }
}

/// Answers by a built-in function; `None` if there is none of that name.
pub(crate) fn built_in(call: &ServiceCall) -> Option<HandlerOutcome> {
    let none = serde_json::Map::new();
    let params = call.params.as_object().unwrap_or(&none);
    let outcome = function::call(&call.service, &call.input, params, call.memo.as_ref())?;
    Some(match outcome {
        function::FunctionOutcome::Done(value) => HandlerOutcome::Done(value),
        function::FunctionOutcome::Suspended { memo, recheck_ms } => {
            HandlerOutcome::Suspended { memo, recheck: Some(Duration::from_millis(recheck_ms)) }
        }
        function::FunctionOutcome::Failed { message, retryable } => {
            HandlerOutcome::Failed { message, retryable, temporary: false }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_built_in_can_be_offered() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(chosen(&names(&["sum", "route"])).unwrap(), ["sum", "route"]);
        assert_eq!(chosen(&names(&["all"])).unwrap().len(), function::NAMES.len());
        let error = chosen(&names(&["tranform"])).unwrap_err().to_string();
        assert!(error.contains("did you mean `transform`?"), "{error}");
    }

    #[test]
    fn slots_are_a_number_or_a_range() {
        assert_eq!(slots("8"), Ok(SlotBounds { min: 8, max: 8 }));
        assert_eq!(slots("2..64"), Ok(SlotBounds { min: 2, max: 64 }));
        for wrong in ["0", "10001", "64..2", "..5", "3..", "0..4", "many"] {
            assert!(slots(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_lease_is_what_the_server_takes() {
        assert_eq!(lease("90s"), Ok(Duration::from_secs(90)));
        for wrong in ["0s", "999ms", "2h", "soon"] {
            assert!(lease(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_demonstration_serves_the_default_queue_unless_told_otherwise() {
        assert_eq!(served(Vec::new(), true), ["default"]);
        assert_eq!(served(vec!["mail".to_owned()], true), ["mail"]);
        assert!(served(Vec::new(), false).is_empty());
    }
}
