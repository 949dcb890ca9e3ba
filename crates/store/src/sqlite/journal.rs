//! Journals of runs. Common fields of an entry have columns; its events are the engine's JSON, compressed by `shorthand`.

use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::counter::Seq;
use windlass_engine::id::{CommandId, RunId};
use windlass_engine::journal::Entry;
use windlass_engine::project::Project;

use super::blob;
use super::column::{SqliteColumns, SqliteId};
use super::readers::ReadConnection;
use super::shorthand;
use crate::blob::BlobCache;
use crate::column::{Columns, bound, stored};
use crate::commit::Committed;
use crate::decode;
use crate::error::StoreError;
use crate::run::{Journal, Since};
use crate::table;

const APPEND: &str = "INSERT INTO journal (run, seq, v, at, command, events, balances) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (command) DO NOTHING";
const ENTRIES: &str = "SELECT seq, v, at, command, events FROM journal \
     WHERE run = (SELECT no FROM runs WHERE id = ?1 AND project = ?4) AND seq > ?2 ORDER BY seq LIMIT ?3";
const COMMAND: &str = "SELECT journal.at, runs.id, journal.seq, journal.balances \
     FROM journal JOIN runs ON runs.no = journal.run WHERE journal.command = ?1 AND runs.project = ?2";
const SNAPSHOT: &str = "SELECT seq, state FROM snapshots WHERE run = ?1 \
     AND EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND project = ?2)";
const KEEP_SNAPSHOT: &str = "INSERT INTO snapshots (run, seq, state) VALUES (?1, ?2, ?3) \
     ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, state = excluded.state";

/// Appends an entry to the journal of the run with this number, unless its command was committed before.
pub(super) fn append(
    db: &Connection,
    run: i64,
    seq: Seq,
    entry: &Entry,
    events: &str,
    balances: Option<&str>,
) -> Result<bool, StoreError> {
    let Entry { version, at, command, events: _ } = entry;
    let row = params![run, stored(seq), version, at.0, command.key(), events, balances];
    Ok(db.prepare_cached(APPEND)?.execute(row)? > 0)
}

/// Replaces the snapshot of a run by its state after `seq` entries.
pub(super) fn keep_snapshot(db: &Connection, run: RunId, seq: Seq, state: &[u8]) -> Result<(), StoreError> {
    db.prepare_cached(KEEP_SNAPSHOT)?.execute(params![run.key(), stored(seq), state])?;
    Ok(())
}

/// The outcome of a command that appended an entry.
pub(super) fn command(
    db: &Connection,
    project: &Project,
    command: CommandId,
) -> Result<Option<Committed>, StoreError> {
    let found = db.prepare_cached(COMMAND)?.query_row(params![command.key(), project.as_str()], |row| {
        let mut columns = SqliteColumns::of(row);
        let (at, run, seq) = (columns.time()?, columns.id()?, columns.number()?);
        let balances = columns.json_or_none()?.unwrap_or_default();
        Ok(Committed { command, at, run: Some((run, seq)), balances })
    });
    Ok(found.optional()?)
}

/// A part of a journal.
pub(super) fn journal(
    db: &ReadConnection,
    cache: &BlobCache,
    project: &Project,
    run: RunId,
    since: Since,
    limit: usize,
) -> Result<Journal, StoreError> {
    let snapshot = match since {
        Since::Entry(_) => None,
        Since::Snapshot => {
            let found = db.prepare_cached(SNAPSHOT)?.query_row(params![run.key(), project.as_str()], |row| {
                decode::snapshot(&mut SqliteColumns::of(row))
            });
            found.optional()?
        }
    };
    let after = match since {
        Since::Entry(after) => after,
        Since::Snapshot => snapshot.as_ref().map_or(Seq::ZERO, |snapshot| snapshot.seq),
    };
    let mut statement = db.prepare_cached(ENTRIES)?;
    let mut rows = statement.query(params![run.key(), bound(after.0), bound(limit), project.as_str()])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let mut columns = SqliteColumns::of(row);
        let (seq, version, at): (Seq, _, _) = (columns.number()?, columns.value::<u32>()?, columns.time()?.0);
        let command: CommandId = columns.id()?;
        let events = row.get_ref(4)?.as_str().map_err(rusqlite::Error::from)?;
        // The engine decodes the whole entry, because it knows how entries of earlier versions are read.
        let mut entry = format!(r#"{{"v":{version},"at":{at},"command":"{command}","events":"#);
        shorthand::expand(events, &mut entry);
        entry.push('}');
        let entry = Entry::decode(entry.as_bytes());
        let mut entry = entry.map_err(|error| {
            db.set_aside(&table::JOURNAL, format!("{run}/{seq}"), error.to_string());
            StoreError::Corrupt(format!("entry {seq} of {run}: {error}"))
        })?;
        blob::resolve(&db.connection, cache, project, &mut entry)?;
        entries.push((seq, entry));
    }
    Ok(Journal { snapshot, entries })
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[APPEND, ENTRIES, COMMAND, SNAPSHOT, KEEP_SNAPSHOT];
