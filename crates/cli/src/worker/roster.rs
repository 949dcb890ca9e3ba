//! Who works: listing workers, and letting them go gently.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use windlass_sdk::types::{Worker, WorkerTask};

use crate::help::help;
use crate::output;
use crate::session::{Options, Session, from_now};

const LOOKS: &str =
    "Exit codes:\n  0  shown\n  1  there is no such worker\n  3  the server could not be asked";
const ACTS: &str = "Exit codes:\n  0  done\n  1  there is no such worker\n  3  the server could not be asked";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Lists workers and what each is doing.
    #[command(after_help = help!(
        "  windlass worker list\n  windlass worker list --online -q", "Exit codes:\n  0  listed\n  3  the server could not be asked"
    ))]
    List {
        /// Only those that are there.
        #[arg(long)]
        online: bool,
    },
    /// Shows a worker and what it has.
    #[command(after_help = help!("  windlass worker show worker-4711", LOOKS))]
    Show(Which),
    /// Gives a worker no more work; it goes when it is done with what it has.
    #[command(after_help = help!("  windlass worker drain worker-4711", ACTS))]
    Drain(Which),
    /// Gives a worker work again.
    #[command(after_help = help!("  windlass worker undrain worker-4711", ACTS))]
    Undrain(Which),
}

/// A worker.
#[derive(Args)]
pub(crate) struct Which {
    /// The id of the worker, or as much of its beginning as no other has.
    worker: String,
}

pub(super) async fn run(command: Command, options: &Options) -> Result<ExitCode> {
    let session = &options.session()?;
    let workers = match command {
        Command::List { online } => {
            let all = session.client.workers().await?.workers;
            let listed = all.into_iter().filter(|worker| !online || worker.status == "online");
            return list(&listed.collect::<Vec<_>>(), session);
        }
        Command::Show(Which { worker }) => return shown(&session.worker(&worker).await?, session),
        Command::Drain(Which { worker }) => {
            session.client.drain_worker(&session.worker(&worker).await?.id).await?
        }
        Command::Undrain(Which { worker }) => {
            session.client.undrain_worker(&session.worker(&worker).await?.id).await?
        }
    };
    session.out.value(&workers, &workers.id, || {
        let state = state(&workers);
        format!("{} {} with {} jobs", workers.id, session.out.painted(state, state), workers.tasks.len())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn list(workers: &[Worker], session: &Session) -> Result<ExitCode> {
    session.out.list(
        ["worker", "state", "seen", "load", "queues", "services", "doing"],
        workers,
        |worker| worker.id.clone(),
        |worker| {
            let doing: Vec<String> = worker
                .tasks
                .iter()
                .take(3)
                .map(|task| format!("{} {} ({})", task.name, task.task_id, from_now(task.since)))
                .collect();
            let more = worker.tasks.len().saturating_sub(doing.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            [
                worker.id.clone(),
                state(worker).to_owned(),
                from_now(worker.heartbeat_at),
                format!("{}/{}", worker.load, worker.capacity),
                worker.queues.join(", "),
                worker.services.join(", "),
                doing.join(", ") + &more,
            ]
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

fn shown(worker: &Worker, session: &Session) -> Result<ExitCode> {
    session.out.value(worker, &worker.id, || {
        let state = state(worker);
        let facts = output::facts([
            ("name", worker.name.clone()),
            ("seen", from_now(worker.heartbeat_at)),
            ("load", format!("{}/{}", worker.load, worker.capacity)),
            ("queues", worker.queues.join(", ")),
            ("services", worker.services.join(", ")),
            ("url", worker.url.clone()),
        ]);
        let head = format!("{}  {}\n{facts}", worker.id, session.out.painted(state, state));
        if worker.tasks.is_empty() {
            return head;
        }
        let rows: Vec<[String; 5]> = worker.tasks.iter().map(row).collect();
        let table = session.out.table_text(["job", "name", "queue", "attempt", "since"], &rows);
        format!("{head}\n{table}")
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(task: &WorkerTask) -> [String; 5] {
    [
        task.task_id.clone(),
        task.name.clone(),
        task.queue_name.clone(),
        task.attempt.to_string(),
        from_now(task.since),
    ]
}

fn state(worker: &Worker) -> &str {
    if worker.is_draining && worker.status == "online" { "draining" } else { &worker.status }
}
