//! Commits: first a group is decided in memory, then the accepted commits are written, one statement for each kind of row.

use std::collections::BTreeMap;

use tokio_postgres::Row;
use windlass_engine::id::CommandId;
use windlass_engine::money::Amount;
use windlass_engine::project::Project;

use super::batch::Batch;
use super::column::{PostgresColumns, PostgresId, cells, unnest};
use super::link::{BoundStatement, Link};
use super::read_set::ReadSet;
use super::{account, job, outbox, queue, run, schedule};
use crate::column::{Columns, json};
use crate::commit::{Commit, Committed};
use crate::error::{Refusal, StoreError};

const FIND: &str = "SELECT command, at, run, seq, balances FROM journal WHERE command = ANY($1) \
     AND (SELECT project FROM runs WHERE runs.id = journal.run) = $2 \
     UNION ALL SELECT id, at, NULL, NULL, balances FROM commands WHERE id = ANY($1) AND project = $2";
const RECORD: &str = "INSERT INTO commands (id, at, balances, project) \
     SELECT new.*, $4::text FROM UNNEST($1::uuid[], $2::bigint[], $3::text[]) AS new";

/// A commit with its encoded texts, made by the caller's task.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) commit: Commit,
    fault: Option<&'static str>,
    pub(super) run: Option<run::RunTexts>,
    pub(super) jobs: Vec<job::JobTexts>,
}

impl Draft {
    pub(super) fn of(commit: Commit) -> Self {
        let run = commit.run.as_ref().map(run::RunTexts::of);
        let jobs = commit.jobs.iter().map(job::JobTexts::of).collect();
        Draft { fault: commit.fault(), run, jobs, commit }
    }
}

/// A command that appended no entry.
pub(super) struct Recorded<'c> {
    pub(super) commit: &'c Commit,
    pub(super) balances: Option<String>,
}

pub(super) fn find<'a>(commands: impl Iterator<Item = CommandId>) -> BoundStatement<'a> {
    BoundStatement::new(FIND, cells![commands.map(PostgresId::key).collect::<Vec<_>>()])
}

pub(super) fn read(row: &Row) -> Result<Committed, StoreError> {
    let mut columns = PostgresColumns::of(row);
    let (command, at) = (columns.id()?, columns.time()?);
    let run = columns.id_or_none()?.zip(columns.number_or_none()?);
    Ok(Committed { command, at, run, balances: columns.json_or_none()?.unwrap_or_default() })
}

pub(super) fn record<'c>(rows: &'c [Recorded<'c>]) -> BoundStatement<'c> {
    let cells = unnest!(rows, |row| [row.commit.command.key(), row.commit.now.0, row.balances.as_deref()]);
    BoundStatement::new(RECORD, cells)
}

/// Results of commands, as far as they were committed.
pub(super) async fn commands(
    db: &Link,
    project: &Project,
    commands: &[CommandId],
) -> Result<Vec<Committed>, StoreError> {
    let ask = find(commands.iter().copied()).in_project(project);
    db.ask(ask.sql, &ask.cells).await?.iter().map(read).collect()
}

/// Decides one commit: refuses it, finds that it was committed before, or adds it to the batch.
pub(super) fn decide<'c>(
    read_set: &mut ReadSet,
    batch: &mut Batch<'c>,
    draft: &'c Draft,
) -> Result<Committed, StoreError> {
    if let Some(committed) = read_set.commands.get(&draft.commit.command) {
        return Ok(committed.clone());
    }
    let posted = check(read_set, draft)?;
    let committed = batch.add(read_set, draft, posted);
    read_set.commands.insert(committed.command, committed.clone());
    Ok(committed)
}

fn check<'c>(read_set: &ReadSet, draft: &'c Draft) -> Result<Vec<account::Posted<'c>>, StoreError> {
    if let Some(fault) = draft.fault {
        return Err(Refusal::Malformed(fault).into());
    }
    let commit = &draft.commit;
    if let Some(change) = &commit.run {
        run::check(read_set, change)?;
    }
    job::check(read_set, &commit.jobs, commit.now)?;
    for turn in &commit.turns {
        queue::check_turn(read_set, turn)?;
    }
    for unmoved in &commit.unmoved {
        account::check_unmoved(read_set, unmoved)?;
    }
    let posted = account::check(read_set, &commit.postings, commit.now)?;
    for id in &commit.delivered {
        outbox::check(read_set, id)?;
    }
    schedule::check(read_set, &commit.schedules, &commit.firings)?;
    Ok(posted)
}

/// The balances that a commit leaves, and their text if there are any.
pub(super) fn balances(posted: &[account::Posted<'_>]) -> (BTreeMap<String, Amount>, Option<String>) {
    let balance = |posted: &account::Posted<'_>| (posted.account.id.clone(), posted.account.balance);
    let balances: BTreeMap<String, Amount> = posted.iter().map(balance).collect();
    let text = (!balances.is_empty()).then(|| json(&balances));
    (balances, text)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[FIND, RECORD];
