//! Commits. The writer validates a whole commit before it writes any row, so a rejected commit leaves no trace.
//!
//! It does not look up the command first: a unique index refuses a second record of it, and a late duplicate meets a
//! conflict, after which the writer returns the first outcome.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::id::CommandId;
use windlass_engine::money::Amount;
use windlass_engine::project::Project;

use super::column::{SqliteColumns, SqliteId};
use super::writer_cache::{RunHead, WriterCache};
use super::{account, audit, blob, job, journal, log, outbox, queue, run, schedule};
use crate::column::{Columns, json};
use crate::commit::{Commit, Committed};
use crate::error::{Refusal, StoreError};

const FIND: &str = "SELECT at, balances FROM commands WHERE id = ?1 AND project = ?2";
const RECORD: &str =
    "INSERT INTO commands (id, at, balances, project) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO NOTHING";

/// A commit with its JSON texts. The caller's thread makes them, the writer only binds them.
pub(super) struct PreparedCommit {
    commit: Commit,
    fault: Option<&'static str>,
    run: Option<run::RunTexts>,
    jobs: Vec<job::JobTexts>,
}

impl PreparedCommit {
    pub(super) fn of(commit: Commit) -> Self {
        let run = commit.run.as_ref().map(run::RunTexts::of);
        let jobs = commit.jobs.iter().map(job::JobTexts::of).collect();
        let fault = commit.fault();
        PreparedCommit { fault, run, jobs, commit }
    }
}

/// The rows that the validation found.
struct CheckedCommit<'c> {
    run: Option<RunHead>,
    jobs: Vec<job::JobBefore>,
    posted: Vec<account::AccountPostings<'c>>,
}

/// Writes one commit inside the transaction of its group.
pub(super) fn commit(cache: &WriterCache, prepared: &PreparedCommit) -> Result<Committed, StoreError> {
    let refused = match check(cache, prepared) {
        Ok(checked) => match write(cache, prepared, &checked)? {
            Some(committed) => return Ok(committed),
            None => StoreError::Corrupt("a command was committed, and cannot be found".to_owned()),
        },
        Err(refused @ (StoreError::Conflict { .. } | StoreError::Refused(_))) => refused,
        Err(error @ (StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::Damaged(_))) => {
            return Err(error);
        }
    };
    command(cache.db(), &prepared.commit.project, prepared.commit.command)?.ok_or(refused)
}

/// The outcome of a command.
pub(super) fn command(
    db: &Connection,
    project: &Project,
    command: CommandId,
) -> Result<Option<Committed>, StoreError> {
    if let Some(committed) = journal::command(db, project, command)? {
        return Ok(Some(committed));
    }
    let found = db.prepare_cached(FIND)?.query_row(params![command.key(), project.as_str()], |row| {
        let mut columns = SqliteColumns::of(row);
        let (at, balances) = (columns.time()?, columns.json_or_none()?.unwrap_or_default());
        Ok(Committed { command, at, run: None, balances })
    });
    Ok(found.optional()?)
}

fn check<'c>(cache: &WriterCache, prepared: &'c PreparedCommit) -> Result<CheckedCommit<'c>, StoreError> {
    if let Some(fault) = prepared.fault {
        return Err(Refusal::Malformed(fault).into());
    }
    let commit = &prepared.commit;
    let project = &commit.project;
    let run = match &commit.run {
        Some(change) => run::check(cache, project, change)?,
        None => None,
    };
    let jobs = job::check(cache, project, &commit.jobs, commit.now)?;
    for turn in &commit.turns {
        queue::check_turn(cache.db(), project, turn)?;
    }
    for unmoved in &commit.unmoved {
        account::check_unmoved(cache, project, unmoved)?;
    }
    let new_run = commit.run.as_ref().filter(|change| change.create.is_some()).map(|change| change.run);
    let posted = account::check(cache, project, &commit.postings, new_run)?;
    for id in &commit.delivered {
        outbox::check(cache.db(), project, id)?;
    }
    schedule::check(cache.db(), project, &commit.schedules, &commit.firings)?;
    Ok(CheckedCommit { run, jobs, posted })
}

/// Writes a commit; `None` if its command was committed before.
fn write(
    cache: &WriterCache,
    prepared: &PreparedCommit,
    checked: &CheckedCommit<'_>,
) -> Result<Option<Committed>, StoreError> {
    let commit = &prepared.commit;
    let project = &commit.project;
    let balance = |posted: &account::AccountPostings<'_>| (posted.id.to_owned(), posted.account.balance);
    let balances: BTreeMap<String, Amount> = checked.posted.iter().map(balance).collect();
    let text = (!balances.is_empty()).then(|| json(&balances));
    let run = match commit.run.as_ref().zip(prepared.run.as_ref()) {
        Some((change, texts)) => {
            let change = run::RunWrite { change, texts, before: checked.run };
            let Some(len) = run::write(cache, project, &change, text.as_deref())? else { return Ok(None) };
            blob::write(cache.db(), project, change.change.run, &commit.blobs)?;
            Some((change.change.run, len))
        }
        None => {
            let row = params![commit.command.key(), commit.now.0, text, project.as_str()];
            if cache.db().prepare_cached(RECORD)?.execute(row)? == 0 {
                return Ok(None);
            }
            None
        }
    };
    for ((change, texts), before) in commit.jobs.iter().zip(&prepared.jobs).zip(&checked.jobs) {
        job::write(cache, project, change, texts, before)?;
    }
    for turn in &commit.turns {
        queue::write_turn(cache.db(), project, turn)?;
    }
    for posted in &checked.posted {
        account::write(cache, project, posted, commit.now)?;
    }
    for message in &commit.messages {
        outbox::send(cache.db(), project, message)?;
    }
    for id in &commit.delivered {
        outbox::deliver(cache.db(), project, id)?;
    }
    for change in &commit.schedules {
        schedule::write(cache.db(), project, change)?;
    }
    for firing in &commit.firings {
        schedule::fire(cache.db(), firing)?;
        cache.note_firing();
    }
    for row in &commit.audit {
        audit::note(cache.db(), project, row)?;
    }
    for row in &commit.logs {
        log::write(cache.db(), project, row)?;
    }
    Ok(Some(Committed { command: commit.command, at: commit.now, run, balances }))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[FIND, RECORD];
