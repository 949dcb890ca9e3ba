//! Outbox: messages from one run to another, or from an account to its runs.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::blob;
use super::column::{SqliteColumns, SqliteId};
use crate::blob::BlobCache;
use crate::column::{Columns, bound, json, stored};
use crate::decode::{self, PARTY_ACCOUNT, PARTY_RUN};
use crate::error::{Refusal, StoreError};
use crate::outbox::{Message, MessageId, Party, Undelivered};

const FIND: &str =
    "SELECT is_delivered FROM outbox WHERE project = ?4 AND sender = ?1 AND seq = ?2 AND part = ?3";
const SEND: &str = "INSERT INTO outbox (sender, seq, part, receiver, at, note, is_delivered, project) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7) ON CONFLICT (project, sender, seq, part) DO NOTHING";
const DELIVER: &str =
    "UPDATE outbox SET is_delivered = 1 WHERE project = ?4 AND sender = ?1 AND seq = ?2 AND part = ?3";
const UNDELIVERED: &str = "SELECT sender, seq, part, receiver, at, note, project FROM outbox \
     WHERE is_delivered = 0 AND at <= ?1 ORDER BY at, project, sender, seq, part LIMIT ?2";
// The index is named because SQLite prefers the primary key, which has the order.
pub(super) const TO: &str = "SELECT sender, seq, part, receiver, at, note FROM outbox \
     INDEXED BY outbox_by_receiver WHERE project = ?2 AND receiver = ?1 AND is_delivered = 0 ORDER BY sender, seq, part";

/// The stored form of a party; it sorts in the same order.
pub(super) fn party(party: &Party) -> Vec<u8> {
    let (tag, name): (u8, &[u8]) = match party {
        Party::Run(id) => (PARTY_RUN, &id.key()),
        Party::Account(id) => (PARTY_ACCOUNT, id.as_bytes()),
    };
    [&[tag], name].concat()
}

/// Refuses a message that is unknown or was delivered.
pub(super) fn check(db: &Connection, project: &Project, id: &MessageId) -> Result<(), StoreError> {
    let found = db
        .prepare_cached(FIND)?
        .query_row(params![party(&id.sender), stored(id.seq), id.part, project.as_str()], |row| row.get(0))
        .optional()?;
    match found {
        None => Err(Refusal::UnknownMessage(id.clone()).into()),
        Some(true) => Err(Refusal::AlreadyDelivered(id.clone()).into()),
        Some(false) => Ok(()),
    }
}

/// Sends a message; a duplicate is a no-op.
pub(super) fn send(db: &Connection, project: &Project, message: &Message) -> Result<(), StoreError> {
    let Message { id, to, at, note } = message;
    let (from, to, project) = (party(&id.sender), party(to), project.as_str());
    let row = params![from, stored(id.seq), id.part, to, at.0, json(&*note.stored()), project];
    db.prepare_cached(SEND)?.execute(row)?;
    Ok(())
}

pub(super) fn deliver(db: &Connection, project: &Project, id: &MessageId) -> Result<(), StoreError> {
    let row = params![party(&id.sender), stored(id.seq), id.part, project.as_str()];
    db.prepare_cached(DELIVER)?.execute(row)?;
    Ok(())
}

pub(super) fn undelivered(
    db: &Connection,
    cache: &BlobCache,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Undelivered>, StoreError> {
    let mut statement = db.prepare_cached(UNDELIVERED)?;
    let undelivered = |row: &Row<'_>| {
        let mut columns = SqliteColumns::of(row);
        Ok(Undelivered { message: decode::message(&mut columns)?, project: columns.project()? })
    };
    let rows = statement.query_map(params![now.0, bound(limit)], undelivered)?;
    let mut rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    for row in &mut rows {
        blob::resolve(db, cache, &row.project, &mut row.message)?;
    }
    Ok(rows)
}

/// Messages to one receiver that were not delivered.
pub(super) fn to(
    db: &Connection,
    cache: &BlobCache,
    project: &Project,
    to: &Party,
) -> Result<Vec<Message>, StoreError> {
    let mut statement = db.prepare_cached(TO)?;
    let rows = statement.query_map(params![party(to), project.as_str()], read)?;
    let mut rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    for message in &mut rows {
        blob::resolve(db, cache, project, message)?;
    }
    Ok(rows)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Message> {
    decode::message(&mut SqliteColumns::of(row))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[FIND, SEND, DELIVER, UNDELIVERED, TO];
