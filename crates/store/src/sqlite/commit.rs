//! Commits: first everything is checked, then everything is written, so that what is refused has written nothing.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::id::CommandId;

use super::column::{Columns, Id, json, stored};
use super::{account, job, outbox, record, run, schedule};
use crate::commit::{Commit, Committed};
use crate::error::{Refusal, StoreError};

const FIND: &str = "SELECT at, run, seq, balances FROM commands WHERE id = ?1";
const RECORD: &str = "INSERT INTO commands (id, at, run, seq, balances) VALUES (?1, ?2, ?3, ?4, ?5)";

/// What the check found out and the writing needs.
struct Checked {
    run: Option<run::Before>,
    jobs: Vec<job::Before>,
    posted: BTreeMap<String, account::Posted>,
}

/// Writes one commit, inside a transaction with others.
pub(super) fn commit(db: &Connection, commit: &Commit) -> Result<Committed, StoreError> {
    if let Some(before) = command(db, commit.command)? {
        return Ok(before);
    }
    let checked = check(db, commit)?;
    write(db, commit, &checked)
}

/// What came of a command.
pub(super) fn command(db: &Connection, command: CommandId) -> Result<Option<Committed>, StoreError> {
    let found = db.prepare_cached(FIND)?.query_row([command.key()], |row| {
        let mut columns = Columns::of(row);
        let at = columns.time()?;
        let run = columns.id_or_none()?.zip(columns.number_or_none()?);
        let balances = columns.json_or_none()?.unwrap_or_default();
        Ok(Committed { command, at, run, balances })
    });
    Ok(found.optional()?)
}

fn check(db: &Connection, commit: &Commit) -> Result<Checked, StoreError> {
    if let Some(fault) = commit.fault() {
        return Err(Refusal::Malformed(fault).into());
    }
    let run = commit.run.as_ref().map(|change| run::check(db, change)).transpose()?;
    let jobs = job::check(db, &commit.jobs, commit.now)?;
    for unmoved in &commit.unmoved {
        account::check_unmoved(db, unmoved)?;
    }
    let posted = account::check(db, &commit.postings)?;
    for id in &commit.delivered {
        outbox::check(db, id)?;
    }
    schedule::check(db, &commit.schedules, &commit.firings)?;
    Ok(Checked { run, jobs, posted })
}

fn write(db: &Connection, commit: &Commit, checked: &Checked) -> Result<Committed, StoreError> {
    let run = match commit.run.as_ref().zip(checked.run.as_ref()) {
        Some((change, before)) => Some((change.run, run::write(db, change, before)?)),
        None => None,
    };
    for (change, before) in commit.jobs.iter().zip(&checked.jobs) {
        job::write(db, change, before)?;
    }
    for (id, posted) in &checked.posted {
        account::write(db, id, posted, commit.now)?;
    }
    for message in &commit.messages {
        outbox::send(db, message)?;
    }
    for id in &commit.delivered {
        outbox::deliver(db, id)?;
    }
    for change in &commit.schedules {
        schedule::write(db, change)?;
    }
    for firing in &commit.firings {
        schedule::fire(db, firing)?;
    }
    for row in &commit.audit {
        record::note(db, row)?;
    }
    let balance = |(id, posted): (&String, &account::Posted)| (id.clone(), posted.account.balance);
    let balances = checked.posted.iter().map(balance).collect();
    let committed = Committed { command: commit.command, at: commit.now, run, balances };
    let (its_run, seq) = (run.map(|(run, _)| run.key()), run.map(|(_, seq)| stored(seq)));
    let balances = (!committed.balances.is_empty()).then(|| json(&committed.balances));
    let row = params![committed.command.key(), committed.at.0, its_run, seq, balances];
    db.prepare_cached(RECORD)?.execute(row)?;
    Ok(committed)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[FIND, RECORD];
