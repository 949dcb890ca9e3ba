//! `windlass worker list`, `show`, `drain` and `undrain`.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use windlass_sdk::contract::{RefusedWorker, WorkerInfo, WorkerTask};

use crate::exit::Exit;
use crate::help::{CHANGE_EXITS, SHOW_EXITS, help};
use crate::output;
use crate::session::{GlobalArgs, Session, from_now, native_job_id};

#[derive(Subcommand)]
pub(crate) enum WorkerCommand {
    /// Lists workers and their jobs.
    #[command(after_help = help!(
        "  windlass worker list\n  windlass worker list --online --quiet", SHOW_EXITS
    ))]
    List {
        /// Only online workers.
        #[arg(long)]
        online: bool,
    },
    /// Shows a worker and its jobs.
    #[command(after_help = help!("  windlass worker show worker-4711", SHOW_EXITS))]
    Show(WorkerSelector),
    /// Gives a worker no new jobs; it stops when its last job has ended.
    #[command(after_help = help!("  windlass worker drain worker-4711", CHANGE_EXITS))]
    Drain(WorkerSelector),
    /// Gives a drained worker new jobs again.
    #[command(after_help = help!("  windlass worker undrain worker-4711", CHANGE_EXITS))]
    Undrain(WorkerSelector),
}

/// A worker.
#[derive(Args)]
pub(crate) struct WorkerSelector {
    /// The id of the worker, or a unique prefix of it.
    worker: String,
}

pub(super) async fn run(command: WorkerCommand, options: &GlobalArgs) -> Result<Exit> {
    let session = &options.session()?;
    let workers = match command {
        WorkerCommand::List { online } => {
            let all = session.client.workers().all().await?;
            let listed = all.into_iter().filter(|worker| !online || worker.status == "online");
            let mut listed: Vec<ListedWorker> = listed.map(ListedWorker::of).collect();
            if !online {
                listed
                    .extend(session.client.workers().refused().await?.into_iter().map(ListedWorker::refused));
            }
            return list(&listed, session);
        }
        WorkerCommand::Show(WorkerSelector { worker }) => {
            return shown(&session.worker(&worker).await?, session);
        }
        WorkerCommand::Drain(WorkerSelector { worker }) => {
            session.client.workers().drain(&session.worker(&worker).await?.id).await?
        }
        WorkerCommand::Undrain(WorkerSelector { worker }) => {
            session.client.workers().undrain(&session.worker(&worker).await?.id).await?
        }
    };
    session.out.value(&workers, &workers.id, || {
        let state = state(&workers);
        format!("{} {} with {} jobs", workers.id, session.out.painted(state, state), workers.tasks.len())
    })?;
    Ok(Exit::Done)
}

/// A worker of the list, or one whose registration was refused.
#[derive(Serialize)]
struct ListedWorker {
    #[serde(flatten)]
    worker: WorkerInfo,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl ListedWorker {
    fn of(worker: WorkerInfo) -> Self {
        ListedWorker { worker, reason: None }
    }

    fn refused(refused: RefusedWorker) -> Self {
        let RefusedWorker { id, url, reason, at } = refused;
        let worker = WorkerInfo {
            name: id.clone(),
            id,
            queues: Vec::new(),
            services: Vec::new(),
            heartbeat_at: at,
            status: "refused".to_owned(),
            capacity: 0,
            load: 0,
            url,
            kind: String::new(),
            is_draining: false,
            tasks: Vec::new(),
        };
        ListedWorker { worker, reason: Some(reason) }
    }
}

fn list(workers: &[ListedWorker], session: &Session) -> Result<Exit> {
    let tasks = workers.iter().flat_map(|listed| &listed.worker.tasks);
    let ids = session.out.short_ids(tasks.map(|task| task.task_id.as_str()));
    session.out.list(
        ["worker", "state", "seen", "load", "queues", "services", "doing"],
        workers,
        |listed| listed.worker.id.clone(),
        |ListedWorker { worker, reason }| {
            let doing: Vec<String> = worker
                .tasks
                .iter()
                .take(3)
                .map(|task| {
                    format!(
                        "{} {} ({})",
                        task.name,
                        ids.of(&native_job_id(&task.task_id)),
                        from_now(task.since)
                    )
                })
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
                reason.clone().unwrap_or_else(|| doing.join(", ") + &more),
            ]
        },
    )?;
    Ok(Exit::Done)
}

fn shown(worker: &WorkerInfo, session: &Session) -> Result<Exit> {
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
    Ok(Exit::Done)
}

fn row(task: &WorkerTask) -> [String; 5] {
    [
        native_job_id(&task.task_id),
        task.name.clone(),
        task.queue_name.clone(),
        task.attempt.to_string(),
        from_now(task.since),
    ]
}

fn state(worker: &WorkerInfo) -> &str {
    if worker.is_draining && worker.status == "online" { "draining" } else { &worker.status }
}
