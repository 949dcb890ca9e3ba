//! Commits: first everything is checked, then everything is written, so that what is refused has written nothing.
//!
//! Whether a command was committed before is not asked beforehand: it cannot be recorded twice, and one whose time
//! is over is refused by what has moved on since.

use std::collections::BTreeMap;
use std::mem;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::id::CommandId;

use super::column::{Columns, Id, json};
use super::desk::{Desk, Head};
use super::slip::Slip;
use super::{account, job, journal, log, outbox, queue, record, run, schedule};
use crate::commit::{Commit, Committed};
use crate::error::{Refusal, StoreError};

const FIND: &str = "SELECT at, balances FROM commands WHERE id = ?1";
const RECORD: &str =
    "INSERT INTO commands (id, at, balances) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO NOTHING";

/// A commit with its texts, made by whoever hands it in: the one thread that writes only binds them.
pub(super) struct Draft {
    commit: Commit,
    fault: Option<&'static str>,
    run: Option<run::Texts>,
    jobs: Vec<job::Texts>,
    /// Its postings.
    slips: Vec<Slip>,
}

impl Draft {
    pub(super) fn of(mut commit: Commit) -> Self {
        let run = commit.run.as_ref().map(run::Texts::of);
        let jobs = commit.jobs.iter().map(job::Texts::of).collect();
        let fault = commit.fault();
        let slips = mem::take(&mut commit.postings).into_iter().map(Slip::of).collect();
        Draft { fault, run, jobs, slips, commit }
    }
}

/// What the check found out and the writing needs.
struct Checked<'c> {
    run: Option<Head>,
    jobs: Vec<job::Before>,
    posted: Vec<account::Posted<'c>>,
}

/// Writes one commit, inside a transaction with others.
pub(super) fn commit(desk: &Desk, draft: &Draft) -> Result<Committed, StoreError> {
    let refused = match check(desk, draft) {
        Ok(checked) => match write(desk, draft, &checked)? {
            Some(committed) => return Ok(committed),
            None => StoreError::Corrupt("a command was committed, and cannot be found".to_owned()),
        },
        Err(refused @ (StoreError::Conflict { .. } | StoreError::Refused(_))) => refused,
        Err(error @ (StoreError::Unavailable(_) | StoreError::Corrupt(_))) => return Err(error),
    };
    command(desk, draft.commit.command)?.ok_or(refused)
}

/// What came of a command.
pub(super) fn command(db: &Connection, command: CommandId) -> Result<Option<Committed>, StoreError> {
    if let Some(committed) = journal::command(db, command)? {
        return Ok(Some(committed));
    }
    let found = db.prepare_cached(FIND)?.query_row([command.key()], |row| {
        let mut columns = Columns::of(row);
        let (at, balances) = (columns.time()?, columns.json_or_none()?.unwrap_or_default());
        Ok(Committed { command, at, run: None, balances })
    });
    Ok(found.optional()?)
}

fn check<'c>(desk: &Desk, draft: &'c Draft) -> Result<Checked<'c>, StoreError> {
    if let Some(fault) = draft.fault {
        return Err(Refusal::Malformed(fault).into());
    }
    let commit = &draft.commit;
    let run = match &commit.run {
        Some(change) => run::check(desk, change)?,
        None => None,
    };
    let jobs = job::check(desk, &commit.jobs, commit.now)?;
    for turn in &commit.turns {
        queue::check_turn(desk, turn)?;
    }
    for unmoved in &commit.unmoved {
        account::check_unmoved(desk, unmoved)?;
    }
    let new_run = commit.run.as_ref().filter(|change| change.create.is_some()).map(|change| change.run);
    let posted = account::check(desk, &draft.slips, new_run)?;
    for id in &commit.delivered {
        outbox::check(desk, id)?;
    }
    schedule::check(desk, &commit.schedules, &commit.firings)?;
    Ok(Checked { run, jobs, posted })
}

/// Writes it, unless its command was committed before.
fn write(desk: &Desk, draft: &Draft, checked: &Checked<'_>) -> Result<Option<Committed>, StoreError> {
    let commit = &draft.commit;
    let balance = |posted: &account::Posted<'_>| (posted.id.to_owned(), posted.account.balance);
    let balances: BTreeMap<String, i64> = checked.posted.iter().map(balance).collect();
    let text = (!balances.is_empty()).then(|| json(&balances));
    let run = match commit.run.as_ref().zip(draft.run.as_ref()) {
        Some((change, texts)) => {
            let change = run::Change { change, texts, before: checked.run };
            let Some(len) = run::write(desk, &change, text.as_deref())? else { return Ok(None) };
            Some((change.change.run, len))
        }
        None => {
            let row = params![commit.command.key(), commit.now.0, text];
            if desk.prepare_cached(RECORD)?.execute(row)? == 0 {
                return Ok(None);
            }
            None
        }
    };
    for ((change, texts), before) in commit.jobs.iter().zip(&draft.jobs).zip(&checked.jobs) {
        job::write(desk, change, texts, before)?;
    }
    for turn in &commit.turns {
        queue::write_turn(desk, turn)?;
    }
    for posted in &checked.posted {
        account::write(desk, posted, commit.now)?;
    }
    for message in &commit.messages {
        outbox::send(desk, message)?;
    }
    for id in &commit.delivered {
        outbox::deliver(desk, id)?;
    }
    for change in &commit.schedules {
        schedule::write(desk, change)?;
    }
    for firing in &commit.firings {
        schedule::fire(desk, firing)?;
        desk.note_firing();
    }
    for row in &commit.audit {
        record::note(desk, row)?;
    }
    for row in &commit.logs {
        log::write(desk, row)?;
    }
    Ok(Some(Committed { command: commit.command, at: commit.now, run, balances }))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[FIND, RECORD];
