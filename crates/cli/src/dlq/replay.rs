//! Replaying and discarding dead letters.

use std::collections::HashSet;
use std::io::{BufRead, IsTerminal, Read};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use windlass_sdk::contract::{DeadLettersMoved, DiscardDeadLetters, JobsQuery, ReplayDeadLetters};
use windlass_sdk::worker::unique_id;

use super::show::letters_of;
use crate::exit::{Exit, usage};
use crate::json::read_json;
use crate::output;
use crate::session::{Session, native_job_id, platform_job_id};

/// Dead letters of one request at most.
const BATCH_MAX: usize = 10_000;
/// Bytes of a typed answer at most.
const ANSWER_BYTES_MAX: u64 = 64;

/// The dead letters to replay or discard.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct DeadLetterSelector {
    /// The ids of jobs, or unique prefixes of them.
    #[arg(value_name = "JOB")]
    jobs: Vec<String>,
    /// The N oldest ones.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: Option<u32>,
    /// Those of one group, by its fingerprint.
    #[arg(long, value_name = "FINGERPRINT")]
    group: Option<String>,
    /// All of them.
    #[arg(long)]
    all: bool,
}

/// Confirmation of a change.
#[derive(Debug, Args)]
pub(crate) struct ConfirmArgs {
    /// Do not ask first.
    #[arg(short, long)]
    yes: bool,
    /// Only list them.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
pub(crate) struct DlqReplayArgs {
    /// The name of the queue.
    queue: String,
    #[command(flatten)]
    chosen: DeadLetterSelector,
    /// Their new priority [default: their own].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// A JSON object merged into each payload; null removes a field.
    #[arg(long, value_name = "JSON", value_parser = patch)]
    patch: Option<Value>,
    /// Jobs that may start per second [default: no limit].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// An id that makes the command idempotent: repeated with the same id, it replays nothing twice.
    #[arg(long, alias = "idempotency-key", value_name = "ID")]
    replay_id: Option<String>,
    #[command(flatten)]
    caution: ConfirmArgs,
}

#[derive(Args)]
pub(crate) struct DlqDiscardArgs {
    /// The name of the queue.
    queue: String,
    #[command(flatten)]
    chosen: DeadLetterSelector,
    /// The reason, shown with the discarded jobs.
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    caution: ConfirmArgs,
}

/// The selection as the API takes it.
#[derive(Default)]
struct DeadLetterSelection {
    ids: Option<Vec<String>>,
    count: Option<usize>,
    fingerprint: Option<String>,
}

pub(super) async fn replay(replay: DlqReplayArgs, session: &Session) -> Result<Exit> {
    let DlqReplayArgs { queue, chosen, priority, patch, rate, replay_id, caution } = replay;
    check_queue(&queue, session).await?;
    // A command that is repeated with its id finds nothing of the group left, and that is no error.
    if replay_id.is_none() {
        check_group(&queue, &chosen, session).await?;
    }
    let Some((selection, n)) = agreed("replay", &queue, &chosen, &caution, session).await? else {
        return Ok(Exit::Done);
    };
    let replay_id = replay_id.unwrap_or_else(|| unique_id("replay"));
    let mut body = ReplayDeadLetters {
        count: selection.count,
        ids: selection.ids,
        fingerprint: selection.fingerprint,
        override_priority: priority,
        patch,
        per_second: rate,
        replay_id: Some(replay_id.clone()),
    };
    let mut all = DeadLettersMoved { queue: queue.clone(), ..DeadLettersMoved::default() };
    let Some(n) = n else {
        add(&mut all, session.client.dead_letters().replay(&queue, &body).await?);
        return print_moved("replayed", &all, session);
    };
    for part in parts(n) {
        let Some(count) = next_batch(n, &all) else { break };
        body.count = Some(count);
        body.replay_id = Some(format!("{replay_id}-{part}"));
        add(&mut all, session.client.dead_letters().replay(&queue, &body).await?);
        if rate.is_some() && part > 1 {
            // The rate holds within one request: a second request now would double it.
            let n_moved = all.moved;
            output::message(&format!(
                "{n_moved} are replayed at that rate: repeat the command for the rest when they are done"
            ));
            break;
        }
    }
    print_moved("replayed", &all, session)
}

pub(super) async fn discard(discard: DlqDiscardArgs, session: &Session) -> Result<Exit> {
    let DlqDiscardArgs { queue, chosen, reason, caution } = discard;
    check_queue(&queue, session).await?;
    check_group(&queue, &chosen, session).await?;
    let Some((selection, n)) = agreed("discard", &queue, &chosen, &caution, session).await? else {
        return Ok(Exit::Done);
    };
    let mut body = DiscardDeadLetters {
        reason,
        count: selection.count,
        ids: selection.ids,
        fingerprint: selection.fingerprint,
    };
    let mut all = DeadLettersMoved { queue: queue.clone(), ..DeadLettersMoved::default() };
    let Some(n) = n else {
        add(&mut all, session.client.dead_letters().discard(&queue, &body).await?);
        return print_moved("discarded", &all, session);
    };
    for _ in parts(n) {
        let Some(count) = next_batch(n, &all) else { break };
        body.count = Some(count);
        add(&mut all, session.client.dead_letters().discard(&queue, &body).await?);
    }
    print_moved("discarded", &all, session)
}

/// The numbers of the requests that move `n` letters. They count down, so that a command that was broken off and is
/// repeated with the same id, when fewer are left, uses the numbers of the requests that are missing.
fn parts(n: usize) -> impl Iterator<Item = usize> {
    (1..=n.div_ceil(BATCH_MAX)).rev()
}

/// The number of letters of the next request, never more than were confirmed; `None` = all are moved.
fn next_batch(n: usize, so_far: &DeadLettersMoved) -> Option<usize> {
    let left = n.saturating_sub(so_far.moved);
    (left > 0).then_some(left.min(BATCH_MAX))
}

fn add(all: &mut DeadLettersMoved, moved: DeadLettersMoved) {
    all.moved += moved.moved;
    all.ids.extend(moved.ids);
    // Letters that stay are the oldest, so every request reports them again.
    let known: HashSet<&str> = all.refused.iter().map(|refused| refused.task_id.as_str()).collect();
    let fresh: Vec<_> =
        moved.refused.into_iter().filter(|refused| !known.contains(refused.task_id.as_str())).collect();
    all.refused.extend(fresh);
}

/// Refuses a group without dead letters: its fingerprint was mistyped.
async fn check_group(queue: &str, chosen: &DeadLetterSelector, session: &Session) -> Result<()> {
    let Some(group) = &chosen.group else { return Ok(()) };
    let groups = session.client.dead_letters().groups(queue).await?.groups;
    if !groups.iter().any(|found| found.fingerprint == *group) {
        bail!("`{queue}` has no dead letters of group `{group}`: see windlass dlq groups {queue}");
    }
    Ok(())
}

/// Refuses a queue that no job ever was in: its name was mistyped.
async fn check_queue(queue: &str, session: &Session) -> Result<()> {
    let queues = session.client.queues().all().await?;
    if queues.iter().any(|known| known.name == queue) {
        return Ok(());
    }
    // A queue without settings, open jobs and dead letters is known by the jobs that ended in it.
    let ended = JobsQuery { queue: Some(queue.to_owned()), limit: Some(1), ..JobsQuery::default() };
    if session.client.jobs().list(&ended).await?.items.is_empty() {
        let with_letters: Vec<&str> =
            queues.iter().filter(|known| known.dead_letters > 0).map(|known| known.name.as_str()).collect();
        let hint = match with_letters.as_slice() {
            [] => "no queue has dead letters".to_owned(),
            names => format!("dead letters are in {}", names.join(", ")),
        };
        bail!("there is no queue `{queue}`: {hint}");
    }
    Ok(())
}

/// The selected dead letters, and their number if the user had to confirm it; `None` if the user declined or asked for a
/// dry run.
async fn agreed(
    verb: &str,
    queue: &str,
    chosen: &DeadLetterSelector,
    caution: &ConfirmArgs,
    session: &Session,
) -> Result<Option<(DeadLetterSelection, Option<usize>)>> {
    let selection = selected(queue, chosen, session).await?;
    if caution.dry_run {
        return print_dry_run(verb, queue, chosen, &selection, session).await.map(|()| None);
    }
    let n = match (&chosen.group, chosen.all) {
        (Some(group), _) => {
            let groups = session.client.dead_letters().groups(queue).await?.groups;
            let n = groups.iter().find(|found| found.fingerprint == *group).map_or(0, |found| found.count);
            usize::try_from(n).unwrap_or(usize::MAX)
        }
        (None, true) => {
            usize::try_from(session.client.queues().show(queue).await?.dead_letters).unwrap_or(usize::MAX)
        }
        // A count or a list of jobs says how many they are.
        (None, false) => return Ok(Some((selection, None))),
    };
    if caution.yes || n == 0 {
        return Ok(Some((selection, Some(n))));
    }
    if !std::io::stdin().is_terminal() {
        return Err(usage(format!(
            "cannot ask whether to {verb} {} of `{queue}`, because stdin is no terminal: add --yes",
            letters(n)
        )));
    }
    if confirm(&format!("{verb} {} of `{queue}`? [y/N] ", letters(n)))? {
        return Ok(Some((selection, Some(n))));
    }
    output::message("nothing was changed");
    Ok(None)
}

async fn selected(
    queue: &str,
    chosen: &DeadLetterSelector,
    session: &Session,
) -> Result<DeadLetterSelection> {
    let mut selection =
        DeadLetterSelection { fingerprint: chosen.group.clone(), ..DeadLetterSelection::default() };
    // All, and those of a group, are counted before they are asked for.
    if let Some(count) = chosen.count {
        selection.count = Some(count as usize);
    }
    if !chosen.jobs.is_empty() {
        let mut ids = Vec::new();
        for job in &chosen.jobs {
            let among = JobsQuery {
                status: Some("failed".to_owned()),
                queue: Some(queue.to_owned()),
                ..JobsQuery::default()
            };
            ids.push(platform_job_id(&session.job_id_among(job, among).await?));
        }
        selection.ids = Some(ids);
    }
    Ok(selection)
}

/// Lists the letters that would be moved.
async fn print_dry_run(
    verb: &str,
    queue: &str,
    chosen: &DeadLetterSelector,
    selection: &DeadLetterSelection,
    session: &Session,
) -> Result<()> {
    let ids: Vec<String> = match &selection.ids {
        Some(ids) => ids.iter().map(|id| native_job_id(id)).collect(),
        None => {
            let most = selection.count.unwrap_or(BATCH_MAX);
            let (letters, more) = letters_of(queue, chosen.group.as_deref(), most, session).await?;
            if more && chosen.count.is_none() {
                output::message(&format!("there are more than {most}; these are the oldest"));
            }
            letters.iter().map(|letter| native_job_id(&letter.task_id)).collect()
        }
    };
    session.out.list([&format!("would {verb}")], &ids, Clone::clone, |id| [id.clone()])
}

fn confirm(question: &str) -> Result<bool> {
    output::ask(question);
    let mut answer = String::new();
    let stdin = std::io::stdin().lock();
    stdin.take(ANSWER_BYTES_MAX).read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn print_moved(done: &str, moved: &DeadLettersMoved, session: &Session) -> Result<Exit> {
    let ids = moved.ids.iter().map(|id| native_job_id(id)).collect::<Vec<_>>().join("\n");
    if !session.out.quiet || !moved.ids.is_empty() {
        session.out.value(moved, &ids, || format!("{} of `{}` {done}", letters(moved.moved), moved.queue))?;
    }
    for refused in &moved.refused {
        output::message(&format!("error: {} stays: {}", native_job_id(&refused.task_id), refused.reason));
    }
    Ok(if moved.refused.is_empty() { Exit::Done } else { Exit::Failed })
}

fn letters(n: usize) -> String {
    if n == 1 { "1 dead letter".to_owned() } else { format!("{n} dead letters") }
}

fn patch(text: &str) -> Result<Value, String> {
    match read_json(text.as_bytes()) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("it must be a JSON object such as {\"to\": \"ann\"}".to_owned()),
        Err(error) => Err(format!("it must be a JSON object such as {{\"to\": \"ann\"}}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use windlass_sdk::contract::DeadLetterRefusal;

    use super::*;

    #[test]
    fn many_letters_are_moved_by_several_requests() {
        let mut all = DeadLettersMoved::default();
        let mut requests = Vec::new();
        for part in parts(25_000) {
            let Some(count) = next_batch(25_000, &all) else { break };
            requests.push((part, count));
            add(&mut all, DeadLettersMoved { moved: count, ..DeadLettersMoved::default() });
        }
        assert_eq!(requests, [(3, 10_000), (2, 10_000), (1, 5_000)]);
        // Broken off after the first request: the two that are left keep their numbers.
        assert_eq!(parts(15_000).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(parts(0).count(), 0);
    }

    #[test]
    fn a_letter_that_stays_is_reported_once() {
        let stays = || DeadLettersMoved {
            moved: 1,
            refused: vec![DeadLetterRefusal { task_id: "a".to_owned(), reason: "taken".to_owned() }],
            ..DeadLettersMoved::default()
        };
        let mut all = stays();
        add(&mut all, stays());
        assert_eq!((all.moved, all.refused.len()), (2, 1));
    }
}
