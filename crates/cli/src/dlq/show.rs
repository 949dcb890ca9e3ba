//! `windlass dlq list`, `groups` and `show`.

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use windlass_sdk::contract::{
    DeadLetter, DeadLetterGroupInfo, DeadLettersQuery, JobAttempt, JobDetail, JobsQuery,
};

use crate::exit::Exit;
use crate::job::{all_attempts, attempt_of, attempt_row, facts_of};
use crate::output::{self, ShortIds};
use crate::session::{Session, cut, from_now, native_job_id};

/// Dead letters of one page.
const PAGE_SIZE: usize = 1_000;
/// Characters of a value that a row shows.
const VALUE_CHARS: usize = 60;

#[derive(Args)]
pub(crate) struct DlqListArgs {
    /// The queue [default: all queues with dead letters].
    queue: Option<String>,
    /// Only dead letters of one group, by its fingerprint.
    #[arg(long, value_name = "FINGERPRINT")]
    group: Option<String>,
    /// The number of dead letters at most.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// A group of dead letters with its queue.
#[derive(Serialize)]
struct QueueDeadLetterGroup {
    queue: String,
    #[serde(flatten)]
    group: DeadLetterGroupInfo,
}

/// A dead letter with all its attempts.
#[derive(Serialize)]
struct DeadLetterDetail {
    #[serde(flatten)]
    detail: JobDetail,
    attempts: Vec<JobAttempt>,
}

pub(super) async fn list(list: &DlqListArgs, session: &Session) -> Result<Exit> {
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
    let ids = session.out.short_ids(letters.iter().map(|letter: &DeadLetter| letter.task_id.as_str()));
    session.out.list(
        ["id", "name", "queue", "attempts", "failed", "group", "error"],
        &letters,
        |letter| native_job_id(&letter.task_id),
        |letter| row(letter, ids),
    )?;
    if more {
        output::message(&format!("there may be more than {limit}: raise --limit to see them"));
    }
    Ok(Exit::Done)
}

/// The oldest dead letters of a queue, `most` at most, and whether there are more.
pub(super) async fn letters_of(
    queue: &str,
    group: Option<&str>,
    most: usize,
    session: &Session,
) -> Result<(Vec<DeadLetter>, bool)> {
    let mut query = DeadLettersQuery { fingerprint: group.map(str::to_owned), ..DeadLettersQuery::default() };
    let mut letters: Vec<DeadLetter> = Vec::new();
    while letters.len() < most {
        query.count = Some((most - letters.len()).min(PAGE_SIZE));
        let page = session.client.dead_letters().list(queue, &query).await?;
        letters.extend(page.items);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok((letters, false)),
        }
    }
    Ok((letters, true))
}

fn row(letter: &DeadLetter, ids: ShortIds) -> [String; 7] {
    [
        ids.of(&native_job_id(&letter.task_id)),
        letter.name.clone(),
        letter.queue_name.clone(),
        attempt_of(letter.attempt, letter.max_retries, "/"),
        from_now(letter.failed_at),
        letter.fingerprint.clone(),
        cut(&letter.error.message, VALUE_CHARS),
    ]
}

/// The named queue, or all queues with dead letters.
async fn queues(named: Option<&str>, session: &Session) -> Result<Vec<String>> {
    if let Some(named) = named {
        return Ok(vec![named.to_owned()]);
    }
    let all = session.client.queues().all().await?;
    Ok(all.into_iter().filter(|queue| queue.dead_letters > 0).map(|queue| queue.name).collect())
}

pub(super) async fn groups(queue: Option<&str>, session: &Session) -> Result<Exit> {
    let mut groups = Vec::new();
    for queue in queues(queue, session).await? {
        let found = session.client.dead_letters().groups(&queue).await?.groups;
        groups.extend(found.into_iter().map(|group| QueueDeadLetterGroup { queue: queue.clone(), group }));
    }
    let ids = session
        .out
        .short_ids(groups.iter().map(|group: &QueueDeadLetterGroup| group.group.latest_task_id.as_str()));
    session.out.list(
        ["group", "queue", "letters", "first", "last", "latest", "error"],
        &groups,
        |group| group.group.fingerprint.clone(),
        |QueueDeadLetterGroup { queue, group }| {
            [
                group.fingerprint.clone(),
                queue.clone(),
                group.count.to_string(),
                from_now(group.first_at),
                from_now(group.last_at),
                ids.of(&native_job_id(&group.latest_task_id)),
                cut(&group.error.message, VALUE_CHARS),
            ]
        },
    )?;
    Ok(Exit::Done)
}

pub(super) async fn show(job: &str, session: &Session) -> Result<Exit> {
    let among = JobsQuery { status: Some("failed".to_owned()), ..JobsQuery::default() };
    let id = session.job_id_among(job, among).await?;
    let detail = session.client.jobs().show(&id).await?;
    if !detail.summary.is_dead_letter {
        let status = detail.summary.status.word();
        bail!("{id} is no dead letter: it is {status}; see windlass job show {id}");
    }
    let attempts = all_attempts(&id, session).await?;
    let shown = DeadLetterDetail { detail, attempts };
    session.out.value(&shown, &id, || {
        let rows: Vec<[String; 6]> = shown.attempts.iter().map(attempt_row).collect();
        let heading = ["attempt", "status", "worker", "started", "took", "result"];
        format!("{}\n{}", facts_of(&shown.detail, session), session.out.table_text(heading, &rows))
    })?;
    Ok(Exit::Done)
}
