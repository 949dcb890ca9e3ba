//! The ledger: one row for every movement of money, in the same table as on PostgreSQL. The writer appends rows, readers
//! page through them by account or by run; no statement changes or deletes a row.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::counter::Seq;
use windlass_engine::id::RunId;
use windlass_engine::money::{Amount, Movement};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{SqliteColumns, SqliteId};
use crate::account::{LedgerQuery, LedgerRow, Posting, related_keys};
use crate::column::{bound, stored};
use crate::decode;
use crate::error::StoreError;
use crate::page::{LineOrder, Part};

macro_rules! ledger {
    ($rest:literal) => {
        concat!(
            "SELECT kind, amount, key, held, borne_by_platform, seq, account, balance_after, at FROM ledger ",
            $rest
        )
    };
}

const APPEND: &str = "INSERT INTO ledger (project, account, seq, kind, amount, key, held, borne_by_platform, run, \
     node, balance_after, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
const BY_KEY: &str = ledger!("WHERE project = ?3 AND account = ?1 AND key = ?2");
const OLDEST: &str = ledger!("WHERE project = ?4 AND account = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
const NEWEST: &str = ledger!("WHERE project = ?4 AND account = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3");
// The index is named because SQLite prefers the primary key, and walks through the whole account.
const OLDEST_OF_RUN: &str = ledger!(
    "INDEXED BY ledger_by_run WHERE project = ?4 AND account = ?1 AND run = ?5 AND seq > ?2 ORDER BY seq LIMIT ?3"
);
const NEWEST_OF_RUN: &str = ledger!(
    "INDEXED BY ledger_by_run WHERE project = ?4 AND account = ?1 AND run = ?5 AND seq < ?2 ORDER BY seq DESC LIMIT ?3"
);

/// Appends one row.
pub(super) fn append(
    db: &Connection,
    project: &Project,
    seq: Seq,
    posting: &Posting,
    balance_after: Amount,
    at: Timestamp,
) -> Result<(), StoreError> {
    let Posting { account, movement } = posting;
    let Movement { kind, amount, key, held, borne_by_platform } = movement;
    let (run, node) = (posting.run().map(SqliteId::key), posting.node());
    let node = node.as_ref().map(|node| node.as_str());
    db.prepare_cached(APPEND)?.execute(params![
        project.as_str(),
        account,
        stored(seq),
        kind.word(),
        amount.0,
        key,
        held.0,
        borne_by_platform.0,
        run,
        node,
        balance_after.0,
        at.0
    ])?;
    Ok(())
}

/// The movements of one account that decide about these postings: the same movement, and the movements of the charge
/// that it closes. A run that the same commit creates has none.
pub(super) fn related(
    db: &Connection,
    project: &Project,
    postings: &[&Posting],
    new_run: Option<RunId>,
) -> Result<Vec<Movement>, StoreError> {
    let mut by_key = db.prepare_cached(BY_KEY)?;
    let mut found = Vec::new();
    for posting in postings {
        if new_run.is_some() && posting.run() == new_run {
            continue;
        }
        for key in related_keys(&posting.movement) {
            let row = by_key.query_row(params![posting.account, key, project.as_str()], read).optional()?;
            found.extend(row.map(|row| row.posting.movement));
        }
    }
    Ok(found)
}

/// Rows of an account, or of one of its runs, or the one row with a key.
pub(super) fn ledger(
    db: &Connection,
    project: &Project,
    query: &LedgerQuery,
) -> Result<Vec<LedgerRow>, StoreError> {
    let project = project.as_str();
    let LedgerQuery { account, run, key, order, after, limit } = query;
    if let Some(key) = key {
        let row = db.prepare_cached(BY_KEY)?.query_row(params![account, key, project], read).optional()?;
        let is_of_run = |row: &LedgerRow| run.is_none() || row.posting.run() == *run;
        return Ok(row.filter(is_of_run).into_iter().collect());
    }
    let (all, of_run, after) = match order {
        LineOrder::Oldest => (OLDEST, OLDEST_OF_RUN, *after),
        LineOrder::Newest if *after == Seq::ZERO => (NEWEST, NEWEST_OF_RUN, Seq(u64::MAX)),
        LineOrder::Newest => (NEWEST, NEWEST_OF_RUN, *after),
    };
    let (after, limit) = (bound(after.0), bound(Part { limit: *limit, ..Part::default() }.size()));
    let rows = match run {
        Some(run) => db
            .prepare_cached(of_run)?
            .query_map(params![account, after, limit, project, run.key()], read)?
            .collect::<rusqlite::Result<_>>(),
        None => db.prepare_cached(all)?.query_map(params![account, after, limit, project], read)?.collect(),
    };
    Ok(rows?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<LedgerRow> {
    decode::ledger(&mut SqliteColumns::of(row))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[APPEND, BY_KEY, OLDEST, NEWEST, OLDEST_OF_RUN, NEWEST_OF_RUN];

#[cfg(test)]
mod tests;
