//! Journals: common fields of entries are columns, their events are stored as the engine writes them.

use tokio_postgres::Row;
use windlass_engine::counter::Seq;
use windlass_engine::id::{CommandId, RunId};
use windlass_engine::journal::Entry;
use windlass_engine::project::Project;

use super::blob;
use super::column::{PostgresColumns, PostgresId, cells, unnest};
use super::link::{BoundStatement, Link};
use crate::blob::BlobCache;
use crate::column::{Columns, bound, stored};
use crate::decode;
use crate::error::StoreError;
use crate::run::{Journal, Since, Snapshot};
use crate::table;

const APPEND: &str = "INSERT INTO journal (run, seq, v, at, command, events, balances) SELECT * FROM \
     UNNEST($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::uuid[], $6::text[], $7::text[])";
const ENTRIES: &str = "SELECT seq, v, at, command, events FROM journal \
     WHERE run = $1 AND seq > $2 AND (SELECT project FROM runs WHERE id = $1) = $4 ORDER BY seq LIMIT $3";
const SNAPSHOT: &str =
    "SELECT seq, state FROM snapshots WHERE run = $1 AND (SELECT project FROM runs WHERE id = $1) = $2";
const KEEP_SNAPSHOTS: &str = "INSERT INTO snapshots (run, seq, state) SELECT * FROM \
     UNNEST($1::uuid[], $2::bigint[], $3::bytea[]) \
     ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, state = excluded.state";

/// An entry to be appended.
pub(super) struct Appended<'c> {
    pub(super) run: RunId,
    pub(super) seq: Seq,
    pub(super) entry: &'c Entry,
    pub(super) events: &'c str,
    pub(super) balances: Option<String>,
}

pub(super) fn append<'c>(rows: &'c [Appended<'c>]) -> BoundStatement<'c> {
    let cells = unnest!(rows, |row| [
        row.run.key(),
        stored(row.seq),
        i64::from(row.entry.version),
        row.entry.at.0,
        row.entry.command.key(),
        row.events,
        row.balances.as_deref(),
    ]);
    BoundStatement::new(APPEND, cells)
}

/// Keeps the states of runs after so many entries, instead of earlier ones.
pub(super) fn keep_snapshots<'c>(rows: &[(RunId, Seq, &'c [u8])]) -> BoundStatement<'c> {
    let cells = unnest!(rows, |(run, seq, state)| [run.key(), stored(*seq), *state]);
    BoundStatement::new(KEEP_SNAPSHOTS, cells)
}

/// A part of a journal.
pub(super) async fn journal(
    db: &Link,
    cache: &BlobCache,
    project: &Project,
    run: RunId,
    since: Since,
    limit: usize,
) -> Result<Journal, StoreError> {
    match since {
        Since::Entry(after) => {
            Ok(Journal { snapshot: None, entries: entries(db, cache, project, run, after, limit).await? })
        }
        // Entries after a snapshot stay even if there is a newer snapshot by now.
        Since::Snapshot => {
            let found = db.ask_one(SNAPSHOT, &cells![run.key(), project.as_str()]).await?;
            let snapshot = found.as_ref().map(read_snapshot).transpose()?;
            let after = snapshot.as_ref().map_or(Seq::ZERO, |snapshot| snapshot.seq);
            Ok(Journal { snapshot, entries: entries(db, cache, project, run, after, limit).await? })
        }
    }
}

fn read_snapshot(row: &Row) -> Result<Snapshot, StoreError> {
    decode::snapshot(&mut PostgresColumns::of(row))
}

async fn entries(
    db: &Link,
    cache: &BlobCache,
    project: &Project,
    run: RunId,
    after: Seq,
    limit: usize,
) -> Result<Vec<(Seq, Entry)>, StoreError> {
    let cells = cells![run.key(), bound(after.0), bound(limit), project.as_str()];
    let rows = db.ask(ENTRIES, &cells).await?;
    let mut entries = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut columns = PostgresColumns::of(row);
        let (seq, version, at): (Seq, _, _) = (columns.number()?, columns.small()?, columns.time()?.0);
        let (command, events): (CommandId, &str) = (columns.id()?, columns.value()?);
        // Read as a whole: how entries of earlier versions are read is the engine's affair.
        let entry = format!(r#"{{"v":{version},"at":{at},"command":"{command}","events":{events}}}"#);
        let entry = Entry::decode(entry.as_bytes());
        let entry = entry.map_err(|error| {
            db.set_aside(&table::JOURNAL, format!("{run}/{seq}"), error.to_string());
            StoreError::Corrupt(format!("entry {seq} of {run}: {error}"))
        })?;
        entries.push((seq, entry));
    }
    let mut read: Vec<&mut Entry> = entries.iter_mut().map(|(_, entry)| entry).collect();
    blob::resolve(db, cache, project, &mut read).await?;
    Ok(entries)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[APPEND, ENTRIES, SNAPSHOT, KEEP_SNAPSHOTS];
