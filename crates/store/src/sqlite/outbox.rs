//! Outbox: messages from one run to another, or from an account to its runs.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::RunId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::blob;
use super::column::{SqliteColumns, SqliteId};
use super::readers::ReadConnection;
use crate::blob::BlobCache;
use crate::column::{Columns, json, stored};
use crate::decode::{self, PARTY_ACCOUNT, PARTY_RUN};
use crate::error::{Refusal, StoreError};
use crate::outbox::{Message, MessageId, OutboxCursor, Party, Undelivered, WaitingTree};
use crate::table;

const FIND: &str =
    "SELECT is_delivered FROM outbox WHERE project = ?4 AND sender = ?1 AND seq = ?2 AND part = ?3";
const SEND: &str = "INSERT INTO outbox (sender, seq, part, receiver, at, note, is_delivered, project, tree, depth) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8, ?9) ON CONFLICT (project, sender, seq, part) DO NOTHING";
const DELIVER: &str =
    "UPDATE outbox SET is_delivered = 1 WHERE project = ?4 AND sender = ?1 AND seq = ?2 AND part = ?3";
const UNDELIVERED: &str = "SELECT sender, seq, part, receiver, at, note, project FROM outbox \
     WHERE is_delivered = 0 AND tree IS NULL AND at <= ?1 ORDER BY at, project, sender, seq, part LIMIT ?2";
const UNDELIVERED_AFTER: &str = "SELECT sender, seq, part, receiver, at, note, project FROM outbox \
     WHERE is_delivered = 0 AND tree IS NULL AND at <= ?1 AND (at, project, sender, seq, part) > (?3, ?4, ?5, ?6, ?7) \
     ORDER BY at, project, sender, seq, part LIMIT ?2";
// From one tree to the next, not from message to message.
const NEXT_TREE: &str = "SELECT project, tree FROM outbox INDEXED BY outbox_by_tree \
     WHERE is_delivered = 0 AND tree IS NOT NULL AND (project, tree) > (?1, ?2) ORDER BY project, tree LIMIT 1";
const CHILDREN: &str = "SELECT sender, seq, part, receiver, at, note FROM outbox INDEXED BY outbox_by_tree \
     WHERE is_delivered = 0 AND project = ?1 AND tree = ?2 ORDER BY depth DESC, at, sender, seq, part LIMIT ?3";
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
    let (tree, depth) = note.tree().map(|(root, depth)| (root.key(), depth)).unzip();
    let row = params![from, stored(id.seq), id.part, to, at.0, json(&*note.stored()), project, tree, depth];
    db.prepare_cached(SEND)?.execute(row)?;
    Ok(())
}

pub(super) fn deliver(db: &Connection, project: &Project, id: &MessageId) -> Result<(), StoreError> {
    let row = params![party(&id.sender), stored(id.seq), id.part, project.as_str()];
    db.prepare_cached(DELIVER)?.execute(row)?;
    Ok(())
}

pub(super) fn undelivered(
    db: &ReadConnection,
    cache: &BlobCache,
    now: Timestamp,
    after: Option<&OutboxCursor>,
    limit: usize,
) -> Result<Vec<Undelivered>, StoreError> {
    let undelivered = |row: &Row<'_>| {
        let mut columns = SqliteColumns::of(row);
        Ok(Undelivered { message: decode::message(&mut columns)?, project: columns.project()? })
    };
    let mut rows = match after {
        None => {
            let given = |limit: i64| vec![now.0.into(), limit.into()];
            db.first_rows(&table::OUTBOX, UNDELIVERED, limit, given, undelivered)?
        }
        Some(OutboxCursor { at, project, id }) => {
            let (sender, seq, part) = (party(&id.sender), stored(id.seq), i64::from(id.part));
            let given = |limit: i64| {
                let (project, sender) = (project.as_str().to_owned(), sender.clone());
                vec![
                    now.0.into(),
                    limit.into(),
                    at.0.into(),
                    project.into(),
                    sender.into(),
                    seq.into(),
                    part.into(),
                ]
            };
            db.first_rows(&table::OUTBOX, UNDELIVERED_AFTER, limit, given, undelivered)?
        }
    };
    for row in &mut rows {
        blob::resolve(&db.connection, cache, &row.project, &mut row.message)?;
    }
    Ok(rows)
}

/// Trees with child runs that are to be created.
pub(super) fn waiting_trees(
    db: &ReadConnection,
    after: Option<WaitingTree>,
    limit: usize,
) -> Result<Vec<WaitingTree>, StoreError> {
    let mut statement = db.prepare_cached(NEXT_TREE)?;
    let mut last = after.map_or((String::new(), Vec::new()), |WaitingTree { project, root }| {
        (project.as_str().to_owned(), root.key().to_vec())
    });
    let mut trees = Vec::new();
    while trees.len() < limit {
        let next = statement.query_row(params![last.0, last.1], |row| {
            let mut columns = SqliteColumns::of(row);
            Ok(WaitingTree { project: columns.project()?, root: columns.id()? })
        });
        let Some(next) = next.optional()? else { break };
        last = (next.project.as_str().to_owned(), next.root.key().to_vec());
        trees.push(next);
    }
    Ok(trees)
}

/// Messages that create child runs in a tree.
pub(super) fn waiting_children(
    db: &ReadConnection,
    cache: &BlobCache,
    project: &Project,
    root: RunId,
    limit: usize,
) -> Result<Vec<Message>, StoreError> {
    let given =
        |limit: i64| vec![project.as_str().to_owned().into(), root.key().to_vec().into(), limit.into()];
    let mut messages = db.first_rows(&table::OUTBOX, CHILDREN, limit, given, read)?;
    for message in &mut messages {
        blob::resolve(&db.connection, cache, project, message)?;
    }
    Ok(messages)
}

/// Messages to one receiver that were not delivered.
pub(super) fn to(
    db: &ReadConnection,
    cache: &BlobCache,
    project: &Project,
    to: &Party,
) -> Result<Vec<Message>, StoreError> {
    let mut messages = db.rows(&table::OUTBOX, TO, params![party(to), project.as_str()], read)?;
    for message in &mut messages {
        blob::resolve(&db.connection, cache, project, message)?;
    }
    Ok(messages)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Message> {
    decode::message(&mut SqliteColumns::of(row))
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[FIND, SEND, DELIVER, UNDELIVERED, UNDELIVERED_AFTER, NEXT_TREE, CHILDREN, TO];
