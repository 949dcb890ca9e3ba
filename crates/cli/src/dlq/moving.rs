//! Replaying and discarding dead letters.

use std::collections::HashSet;
use std::io::{BufRead, IsTerminal, Read};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use windlass_sdk::types::{DiscardLetters, LettersMoved, ReplayLetters, TasksQuery};
use windlass_sdk::worker::unique_id;

use super::look::letters_of;
use crate::output;
use crate::session::Session;

/// Letters that the server moves at once.
const AT_ONCE: usize = 10_000;
/// Bytes of an answer to a question.
const ANSWER_BYTES: u64 = 64;

/// Which dead letters are meant.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Chosen {
    /// The ids of jobs, or as much of their beginnings as no others have.
    #[arg(value_name = "JOB")]
    jobs: Vec<String>,
    /// The oldest ones, so many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: Option<u32>,
    /// Those of this group, by its fingerprint.
    #[arg(long, value_name = "FINGERPRINT")]
    group: Option<String>,
    /// All of them.
    #[arg(long)]
    all: bool,
}

/// Whether to ask first.
#[derive(Debug, Args)]
pub(crate) struct Caution {
    /// Do not ask first.
    #[arg(short, long)]
    yes: bool,
    /// Only say which they are.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
pub(crate) struct Replay {
    /// The name of the queue.
    queue: String,
    #[command(flatten)]
    chosen: Chosen,
    /// The priority they get; their own unless given.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// A JSON object laid over each payload; null in it removes a field.
    #[arg(long, value_name = "JSON", value_parser = patch)]
    patch: Option<Value>,
    /// At most so many begin in a second, the others later; all at once unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// The same command with the same id replays nothing twice.
    #[arg(long, alias = "idempotency-key", value_name = "ID")]
    replay_id: Option<String>,
    #[command(flatten)]
    caution: Caution,
}

#[derive(Args)]
pub(crate) struct Discard {
    /// The name of the queue.
    queue: String,
    #[command(flatten)]
    chosen: Chosen,
    /// Why, for whoever looks for them.
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    caution: Caution,
}

/// What the server is asked for, in its words.
#[derive(Default)]
struct Selection {
    ids: Option<Vec<String>>,
    count: Option<usize>,
    fingerprint: Option<String>,
}

pub(super) async fn replay(replay: Replay, session: &Session) -> Result<ExitCode> {
    let Replay { queue, chosen, priority, patch, rate, replay_id, caution } = replay;
    let Some((selection, n)) = agreed("replay", &queue, &chosen, &caution, session).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let replay_id = replay_id.unwrap_or_else(|| unique_id("replay"));
    let mut body = ReplayLetters {
        count: selection.count,
        ids: selection.ids,
        fingerprint: selection.fingerprint,
        override_priority: priority,
        patch,
        per_second: rate,
        replay_id: Some(replay_id.clone()),
    };
    let mut all = LettersMoved { queue: queue.clone(), ..LettersMoved::default() };
    let Some(n) = n else {
        add(&mut all, session.client.replay(&queue, &body).await?);
        return told("replayed", &all, session);
    };
    for part in parts(n) {
        let Some(count) = at_once(n, &all) else { break };
        body.count = Some(count);
        body.replay_id = Some(format!("{replay_id}-{part}"));
        add(&mut all, session.client.replay(&queue, &body).await?);
        if rate.is_some() && part > 1 {
            // The next request would begin at once too, and twice as many would come in a second.
            let n_moved = all.moved;
            output::message(&format!(
                "{n_moved} are replayed at that rate: say the rest again when they are done"
            ));
            break;
        }
    }
    told("replayed", &all, session)
}

pub(super) async fn discard(discard: Discard, session: &Session) -> Result<ExitCode> {
    let Discard { queue, chosen, reason, caution } = discard;
    let Some((selection, n)) = agreed("discard", &queue, &chosen, &caution, session).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let mut body = DiscardLetters {
        reason,
        count: selection.count,
        ids: selection.ids,
        fingerprint: selection.fingerprint,
    };
    let mut all = LettersMoved { queue: queue.clone(), ..LettersMoved::default() };
    let Some(n) = n else {
        add(&mut all, session.client.discard(&queue, &body).await?);
        return told("discarded", &all, session);
    };
    for _ in parts(n) {
        let Some(count) = at_once(n, &all) else { break };
        body.count = Some(count);
        add(&mut all, session.client.discard(&queue, &body).await?);
    }
    told("discarded", &all, session)
}

/// The numbers of the requests that move `n` letters. They are counted down, so that a command that was broken off
/// and is said again with the same id, when fewer are left, comes to the requests that have not been made.
fn parts(n: usize) -> impl Iterator<Item = usize> {
    (1..=n.div_ceil(AT_ONCE)).rev()
}

/// How many letters the next request is about: never more than were agreed to. `None` = no more.
fn at_once(n: usize, so_far: &LettersMoved) -> Option<usize> {
    let left = n.saturating_sub(so_far.moved);
    (left > 0).then_some(left.min(AT_ONCE))
}

fn add(all: &mut LettersMoved, moved: LettersMoved) {
    all.moved += moved.moved;
    all.ids.extend(moved.ids);
    // What stays is the oldest, and so is looked at by each request.
    let known: HashSet<&str> = all.refused.iter().map(|refused| refused.task_id.as_str()).collect();
    let fresh: Vec<_> =
        moved.refused.into_iter().filter(|refused| !known.contains(refused.task_id.as_str())).collect();
    all.refused.extend(fresh);
}

/// What is to be moved, and how many there are if somebody had to agree to that many, once they have; `None` =
/// nothing is to be done.
async fn agreed(
    verb: &str,
    queue: &str,
    chosen: &Chosen,
    caution: &Caution,
    session: &Session,
) -> Result<Option<(Selection, Option<usize>)>> {
    let selection = selected(queue, chosen, session).await?;
    if caution.dry_run {
        return would(verb, queue, chosen, &selection, session).await.map(|()| None);
    }
    let n = match (&chosen.group, chosen.all) {
        (Some(group), _) => {
            let groups = session.client.letter_groups(queue).await?.groups;
            let n = groups.iter().find(|found| found.fingerprint == *group).map_or(0, |found| found.count);
            usize::try_from(n).unwrap_or(usize::MAX)
        }
        (None, true) => {
            usize::try_from(session.client.queue(queue).await?.dead_letters).unwrap_or(usize::MAX)
        }
        // Whoever counted them or named them knows how many they are.
        (None, false) => return Ok(Some((selection, None))),
    };
    if caution.yes || n == 0 {
        return Ok(Some((selection, Some(n))));
    }
    if !std::io::stdin().is_terminal() {
        bail!("nobody can be asked whether to {verb} {} of `{queue}`: say --yes", letters(n));
    }
    if asked(&format!("{verb} {} of `{queue}`? [y/N] ", letters(n)))? {
        return Ok(Some((selection, Some(n))));
    }
    output::message("nothing is done");
    Ok(None)
}

async fn selected(queue: &str, chosen: &Chosen, session: &Session) -> Result<Selection> {
    let mut selection = Selection { fingerprint: chosen.group.clone(), ..Selection::default() };
    // All, and those of a group, are counted before they are asked for.
    if let Some(count) = chosen.count {
        selection.count = Some(count as usize);
    }
    if !chosen.jobs.is_empty() {
        let mut ids = Vec::new();
        for job in &chosen.jobs {
            let among = TasksQuery {
                status: Some("failed".to_owned()),
                queue: Some(queue.to_owned()),
                ..TasksQuery::default()
            };
            ids.push(session.job_id_among(job, among).await?);
        }
        selection.ids = Some(ids);
    }
    Ok(selection)
}

/// Says which letters would be moved.
async fn would(
    verb: &str,
    queue: &str,
    chosen: &Chosen,
    selection: &Selection,
    session: &Session,
) -> Result<()> {
    let ids = match &selection.ids {
        Some(ids) => ids.clone(),
        None => {
            let most = selection.count.unwrap_or(AT_ONCE);
            let (letters, more) = letters_of(queue, chosen.group.as_deref(), most, session).await?;
            if more && chosen.count.is_none() {
                output::message(&format!("there are more than {most}; these are the oldest"));
            }
            letters.into_iter().map(|letter| letter.task_id).collect()
        }
    };
    session.out.list([&format!("would {verb}")], &ids, Clone::clone, |id| [id.clone()])
}

fn asked(question: &str) -> Result<bool> {
    output::ask(question);
    let mut answer = String::new();
    let stdin = std::io::stdin().lock();
    stdin.take(ANSWER_BYTES).read_line(&mut answer).context("cannot read an answer")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn told(done: &str, moved: &LettersMoved, session: &Session) -> Result<ExitCode> {
    let ids = moved.ids.join("\n");
    if !session.out.quiet || !moved.ids.is_empty() {
        session.out.value(moved, &ids, || format!("{} of `{}` {done}", letters(moved.moved), moved.queue))?;
    }
    for refused in &moved.refused {
        output::message(&format!("error: {} stays: {}", refused.task_id, refused.reason));
    }
    Ok(if moved.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn letters(n: usize) -> String {
    if n == 1 { "1 dead letter".to_owned() } else { format!("{n} dead letters") }
}

fn patch(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) | Err(_) => Err("it must be a JSON object such as {\"to\": \"ann\"}".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use windlass_sdk::types::LetterRefused;

    use super::*;

    #[test]
    fn all_letters_are_moved_by_requests_of_their_own() {
        let mut all = LettersMoved::default();
        let mut asked = Vec::new();
        for part in parts(25_000) {
            let Some(count) = at_once(25_000, &all) else { break };
            asked.push((part, count));
            add(&mut all, LettersMoved { moved: count, ..LettersMoved::default() });
        }
        assert_eq!(asked, [(3, 10_000), (2, 10_000), (1, 5_000)]);
        // Broken off after the first: the two that are left have the numbers that they had.
        assert_eq!(parts(15_000).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(parts(0).count(), 0);
    }

    #[test]
    fn what_stays_is_told_once() {
        let stays = || LettersMoved {
            moved: 1,
            refused: vec![LetterRefused { task_id: "a".to_owned(), reason: "taken".to_owned() }],
            ..LettersMoved::default()
        };
        let mut all = stays();
        add(&mut all, stays());
        assert_eq!((all.moved, all.refused.len()), (2, 1));
    }
}
