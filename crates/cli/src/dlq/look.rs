//! Looking at dead letters.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use windlass_sdk::types::{DeadLetter, LetterGroup, LettersQuery, TaskDetail, TaskRun, TasksQuery};

use crate::job::{attempt_of, attempt_row, every_attempt, facts_of};
use crate::output;
use crate::session::{Session, cut, from_now};

/// Letters on one page.
const PAGE: usize = 1_000;
/// Characters of a value that a row shows.
const VALUE_CHARS: usize = 60;

#[derive(Args)]
pub(crate) struct List {
    /// The name of the queue; all that have some unless named.
    queue: Option<String>,
    /// Only those of this group, by its fingerprint.
    #[arg(long, value_name = "FINGERPRINT")]
    group: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// A group, and where it is.
#[derive(Serialize)]
struct Group {
    queue: String,
    #[serde(flatten)]
    group: LetterGroup,
}

/// A dead letter with everything that was tried.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    detail: TaskDetail,
    runs: Vec<TaskRun>,
}

pub(super) async fn list(list: &List, session: &Session) -> Result<ExitCode> {
    let limit = list.limit as usize;
    let mut letters = Vec::new();
    let mut more = false;
    for queue in queues(list.queue.as_deref(), session).await? {
        let found = letters_of(&queue, list.group.as_deref(), limit - letters.len(), session).await?;
        letters.extend(found.0);
        more |= found.1;
        if letters.len() >= limit {
            break;
        }
    }
    session.out.list(
        ["id", "name", "queue", "attempts", "failed", "group", "error"],
        &letters,
        |letter| letter.task_id.clone(),
        row,
    )?;
    if more {
        output::message(&format!("there may be more than {limit}: ask for them with --limit"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The oldest dead letters of a queue, at most so many, and whether there are more.
pub(super) async fn letters_of(
    queue: &str,
    group: Option<&str>,
    most: usize,
    session: &Session,
) -> Result<(Vec<DeadLetter>, bool)> {
    let mut query = LettersQuery { fingerprint: group.map(str::to_owned), ..LettersQuery::default() };
    let mut letters: Vec<DeadLetter> = Vec::new();
    while letters.len() < most {
        query.count = Some((most - letters.len()).min(PAGE));
        let page = session.client.dead_letters(queue, &query).await?;
        letters.extend(page.items);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok((letters, false)),
        }
    }
    Ok((letters, true))
}

fn row(letter: &DeadLetter) -> [String; 7] {
    [
        letter.task_id.clone(),
        letter.name.clone(),
        letter.queue_name.clone(),
        attempt_of(letter.attempt, letter.max_retries, "/"),
        from_now(letter.failed_at),
        letter.fingerprint.clone(),
        cut(&letter.error.message, VALUE_CHARS),
    ]
}

/// The named queue, or all that have dead letters.
async fn queues(named: Option<&str>, session: &Session) -> Result<Vec<String>> {
    if let Some(named) = named {
        return Ok(vec![named.to_owned()]);
    }
    let all = session.client.queues().await?.queues;
    Ok(all.into_iter().filter(|queue| queue.dead_letters > 0).map(|queue| queue.name).collect())
}

pub(super) async fn groups(queue: Option<&str>, session: &Session) -> Result<ExitCode> {
    let mut groups = Vec::new();
    for queue in queues(queue, session).await? {
        let found = session.client.letter_groups(&queue).await?.groups;
        groups.extend(found.into_iter().map(|group| Group { queue: queue.clone(), group }));
    }
    session.out.list(
        ["group", "queue", "letters", "first", "last", "latest", "error"],
        &groups,
        |group| group.group.fingerprint.clone(),
        |Group { queue, group }| {
            [
                group.fingerprint.clone(),
                queue.clone(),
                group.count.to_string(),
                from_now(group.first_at),
                from_now(group.last_at),
                group.latest_task_id.clone(),
                cut(&group.error.message, VALUE_CHARS),
            ]
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn show(job: &str, session: &Session) -> Result<ExitCode> {
    let among = TasksQuery { status: Some("failed".to_owned()), ..TasksQuery::default() };
    let id = session.job_id_among(job, among).await?;
    let detail = session.client.task(&id).await?;
    if !detail.task.is_dead_letter {
        bail!("{id} is no dead letter: it is {}; see windlass job show {id}", detail.display_status);
    }
    let runs = every_attempt(&id, session).await?;
    let shown = Shown { detail, runs };
    session.out.value(&shown, &id, || {
        let rows: Vec<[String; 6]> = shown.runs.iter().map(attempt_row).collect();
        let heading = ["attempt", "status", "worker", "started", "took", "result"];
        format!("{}\n{}", facts_of(&shown.detail, session), session.out.table_text(heading, &rows))
    })?;
    Ok(ExitCode::SUCCESS)
}
