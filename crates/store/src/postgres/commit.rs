//! Commits: first a group is decided in memory, then what passed is written, a statement for each kind of row.

use std::collections::BTreeMap;

use tokio_postgres::Row;
use windlass_engine::id::CommandId;

use super::batch::Batch;
use super::column::{Columns, Id, cells, json, unnest};
use super::desk::Desk;
use super::link::{Ask, Link};
use super::{account, job, outbox, queue, run, schedule};
use crate::commit::{Commit, Committed};
use crate::error::{Refusal, StoreError};

const FIND: &str = "SELECT command, at, run, seq, balances FROM journal WHERE command = ANY($1) \
     UNION ALL SELECT id, at, NULL, NULL, balances FROM commands WHERE id = ANY($1)";
const RECORD: &str = "INSERT INTO commands (id, at, balances) \
     SELECT * FROM UNNEST($1::uuid[], $2::bigint[], $3::text[])";

/// A commit with its texts, made by whoever hands it in.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) commit: Commit,
    fault: Option<&'static str>,
    pub(super) run: Option<run::Texts>,
    pub(super) jobs: Vec<job::Texts>,
}

impl Draft {
    pub(super) fn of(commit: Commit) -> Self {
        let run = commit.run.as_ref().map(run::Texts::of);
        let jobs = commit.jobs.iter().map(job::Texts::of).collect();
        Draft { fault: commit.fault(), run, jobs, commit }
    }
}

/// A command that appended no entry.
pub(super) struct Recorded<'c> {
    pub(super) commit: &'c Commit,
    pub(super) balances: Option<String>,
}

pub(super) fn find<'a>(commands: impl Iterator<Item = CommandId>) -> Ask<'a> {
    Ask::new(FIND, cells![commands.map(Id::key).collect::<Vec<_>>()])
}

pub(super) fn read(row: &Row) -> Result<Committed, StoreError> {
    let mut columns = Columns::of(row);
    let (command, at) = (columns.id()?, columns.time()?);
    let run = columns.id_or_none()?.zip(columns.number_or_none()?);
    Ok(Committed { command, at, run, balances: columns.json_or_none()?.unwrap_or_default() })
}

pub(super) fn record<'c>(rows: &'c [Recorded<'c>]) -> Ask<'c> {
    let cells = unnest!(rows, |row| [row.commit.command.key(), row.commit.now.0, row.balances.as_deref()]);
    Ask::new(RECORD, cells)
}

/// What came of commands, as far as they were committed.
pub(super) async fn commands(db: &Link, commands: &[CommandId]) -> Result<Vec<Committed>, StoreError> {
    let ask = find(commands.iter().copied());
    db.ask(ask.sql, &ask.cells).await?.iter().map(read).collect()
}

/// Decides one commit: refuses it, finds that it was committed before, or adds it to what will be written.
pub(super) fn decide<'c>(
    desk: &mut Desk,
    batch: &mut Batch<'c>,
    draft: &'c Draft,
) -> Result<Committed, StoreError> {
    if let Some(committed) = desk.commands.get(&draft.commit.command) {
        return Ok(committed.clone());
    }
    let posted = check(desk, draft)?;
    let committed = batch.add(desk, draft, posted);
    desk.commands.insert(committed.command, committed.clone());
    Ok(committed)
}

fn check<'c>(desk: &Desk, draft: &'c Draft) -> Result<Vec<account::Posted<'c>>, StoreError> {
    if let Some(fault) = draft.fault {
        return Err(Refusal::Malformed(fault).into());
    }
    let commit = &draft.commit;
    if let Some(change) = &commit.run {
        run::check(desk, change)?;
    }
    job::check(desk, &commit.jobs, commit.now)?;
    for turn in &commit.turns {
        queue::check_turn(desk, turn)?;
    }
    for unmoved in &commit.unmoved {
        account::check_unmoved(desk, unmoved)?;
    }
    let posted = account::check(desk, &commit.postings, commit.now)?;
    for id in &commit.delivered {
        outbox::check(desk, id)?;
    }
    schedule::check(desk, &commit.schedules, &commit.firings)?;
    Ok(posted)
}

/// The balances that a commit leaves, and their text if there are any.
pub(super) fn balances(posted: &[account::Posted<'_>]) -> (BTreeMap<String, i64>, Option<String>) {
    let balance = |posted: &account::Posted<'_>| (posted.account.id.clone(), posted.account.balance);
    let balances: BTreeMap<String, i64> = posted.iter().map(balance).collect();
    let text = (!balances.is_empty()).then(|| json(&balances));
    (balances, text)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[FIND, RECORD];
