//! Messages from one run to another, or from an account to its runs.

use std::collections::BTreeSet;

use tokio_postgres::Row;
use uuid::Uuid;
use windlass_engine::id::RunId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::blob;
use super::column::{PostgresColumns, PostgresId, cells, unnest};
use super::link::{BoundStatement, Link};
use super::read_set::ReadSet;
use crate::blob::BlobCache;
use crate::column::{Columns, bound, json, stored};
use crate::decode::{self, PARTY_ACCOUNT, PARTY_RUN};
use crate::error::{Refusal, StoreError};
use crate::outbox::{Message, MessageId, OutboxCursor, Party, Undelivered, WaitingTree};
use crate::table;

// A transaction that delivers a message locks its row.
const FIND: &str = "SELECT outbox.sender, outbox.seq, outbox.part, is_delivered FROM outbox \
     JOIN UNNEST($1::bytea[], $2::bigint[], $3::bigint[]) AS asked (sender, seq, part) \
     ON outbox.project = $4 AND asked.sender = outbox.sender AND asked.seq = outbox.seq AND asked.part = outbox.part \
     ORDER BY outbox.sender, outbox.seq, outbox.part FOR NO KEY UPDATE OF outbox";
const SEND: &str = "INSERT INTO outbox (sender, seq, part, receiver, at, note, is_delivered, project, tree, depth) \
     SELECT sender, seq, part, receiver, at, note, false, $9::text, tree, depth FROM UNNEST($1::bytea[], $2::bigint[], \
     $3::bigint[], $4::bytea[], $5::bigint[], $6::text[], $7::uuid[], $8::bigint[]) \
     AS new (sender, seq, part, receiver, at, note, tree, depth) \
     ON CONFLICT (project, sender, seq, part) DO NOTHING";
const DELIVER: &str = "UPDATE outbox SET is_delivered = true FROM UNNEST($1::bytea[], $2::bigint[], $3::bigint[]) \
     AS its (sender, seq, part) \
     WHERE outbox.project = $4 AND outbox.sender = its.sender AND outbox.seq = its.seq AND outbox.part = its.part";
const UNDELIVERED: &str = "SELECT sender, seq, part, receiver, at, note, project FROM outbox \
     WHERE NOT is_delivered AND tree IS NULL AND at <= $1 ORDER BY at, project, sender, seq, part LIMIT $2";
const UNDELIVERED_AFTER: &str = "SELECT sender, seq, part, receiver, at, note, project FROM outbox \
     WHERE NOT is_delivered AND tree IS NULL AND at <= $1 AND (at, project, sender, seq, part) > ($3, $4, $5, $6, $7) \
     ORDER BY at, project, sender, seq, part LIMIT $2";
// From one tree to the next, not from message to message.
const TREES: &str = "WITH RECURSIVE found (project, tree) AS ( \
     (SELECT project, tree FROM outbox WHERE NOT is_delivered AND tree IS NOT NULL \
         AND (project, tree) > ($1::text, $2::uuid) ORDER BY project, tree LIMIT 1) \
     UNION ALL SELECT next.project, next.tree FROM found, LATERAL ( \
         SELECT project, tree FROM outbox WHERE NOT is_delivered AND tree IS NOT NULL \
         AND (project, tree) > (found.project, found.tree) ORDER BY project, tree LIMIT 1) AS next \
     ) SELECT project, tree FROM found LIMIT $3";
const CHILDREN: &str = "SELECT sender, seq, part, receiver, at, note FROM outbox \
     WHERE NOT is_delivered AND project = $1 AND tree = $2 ORDER BY depth DESC, at, sender, seq, part LIMIT $3";
pub(super) const TO: &str = "SELECT sender, seq, part, receiver, at, note FROM outbox \
     WHERE project = $2 AND receiver = $1 AND NOT is_delivered ORDER BY sender, seq, part";

/// The bytes of a party; they sort as parties do.
pub(super) fn party(party: &Party) -> Vec<u8> {
    match party {
        Party::Run(id) => [&[PARTY_RUN], &id.key().as_bytes()[..]].concat(),
        Party::Account(id) => [&[PARTY_ACCOUNT], id.as_bytes()].concat(),
    }
}

macro_rules! ids {
    ($ids:expr) => {
        unnest!($ids, |id| [party(&id.sender), stored(id.seq), i64::from(id.part)])
    };
}

pub(super) fn find<'a>(ids: &BTreeSet<&'a MessageId>) -> BoundStatement<'a> {
    BoundStatement::new(FIND, ids!(ids))
}

pub(super) fn read_found(row: &Row) -> Result<(MessageId, bool), StoreError> {
    let mut columns = PostgresColumns::of(row);
    Ok((decode::message_id(&mut columns)?, columns.value()?))
}

/// Whether the message can be delivered.
pub(super) fn check(read_set: &ReadSet, id: &MessageId) -> Result<(), StoreError> {
    match read_set.messages.get(id) {
        None => Err(Refusal::UnknownMessage(id.clone()).into()),
        Some(true) => Err(Refusal::AlreadyDelivered(id.clone()).into()),
        Some(false) => Ok(()),
    }
}

/// Sends messages, unless they were sent before.
pub(super) fn send<'c>(messages: &[&'c Message]) -> BoundStatement<'c> {
    let cells = unnest!(messages, |message| [
        party(&message.id.sender),
        stored(message.id.seq),
        i64::from(message.id.part),
        party(&message.to),
        message.at.0,
        json(&*message.note.stored()),
        message.note.tree().map(|(root, _)| root.key()),
        message.note.tree().map(|(_, depth)| i64::from(depth)),
    ]);
    BoundStatement::new(SEND, cells)
}

pub(super) fn deliver<'c>(ids: &[&'c MessageId]) -> BoundStatement<'c> {
    BoundStatement::new(DELIVER, ids!(ids))
}

pub(super) async fn undelivered(
    db: &Link,
    cache: &BlobCache,
    now: Timestamp,
    after: Option<&OutboxCursor>,
    limit: usize,
) -> Result<Vec<Undelivered>, StoreError> {
    let undelivered = |row: &Row| {
        let mut columns = PostgresColumns::of(row);
        let message = decode::message(&mut columns)?;
        Ok(Undelivered { project: columns.project()?, message })
    };
    let mut rows = match after {
        None => {
            let given = |limit| cells![now.0, limit];
            db.first_rows(&table::OUTBOX, UNDELIVERED, limit, given, undelivered).await?
        }
        Some(OutboxCursor { at, project, id }) => {
            let (sender, seq, part) = (party(&id.sender), stored(id.seq), i64::from(id.part));
            let given = |limit| cells![now.0, limit, at.0, project.as_str(), sender.clone(), seq, part];
            db.first_rows(&table::OUTBOX, UNDELIVERED_AFTER, limit, given, undelivered).await?
        }
    };
    for row in &mut rows {
        blob::resolve(db, cache, &row.project, &mut [&mut row.message]).await?;
    }
    Ok(rows)
}

/// Trees with child runs that are to be created.
pub(super) async fn waiting_trees(
    db: &Link,
    after: Option<&WaitingTree>,
    limit: usize,
) -> Result<Vec<WaitingTree>, StoreError> {
    let (project, root) = match after {
        Some(WaitingTree { project, root }) => (project.as_str(), root.key()),
        None => ("", Uuid::nil()),
    };
    let tree = |row: &Row| {
        let mut columns = PostgresColumns::of(row);
        Ok(WaitingTree { project: columns.project()?, root: columns.id()? })
    };
    db.ask(TREES, &cells![project, root, bound(limit)]).await?.iter().map(tree).collect()
}

/// Messages that create child runs in a tree.
pub(super) async fn waiting_children(
    db: &Link,
    cache: &BlobCache,
    project: &Project,
    root: RunId,
    limit: usize,
) -> Result<Vec<Message>, StoreError> {
    let given = |limit| cells![project.as_str(), root.key(), limit];
    let read = |row: &Row| decode::message(&mut PostgresColumns::of(row));
    let mut messages = db.first_rows(&table::OUTBOX, CHILDREN, limit, given, read).await?;
    blob::resolve(db, cache, project, &mut messages.iter_mut().collect::<Vec<_>>()).await?;
    Ok(messages)
}

/// Messages on their way to one receiver.
pub(super) async fn to(
    db: &Link,
    cache: &BlobCache,
    project: &Project,
    to: &Party,
) -> Result<Vec<Message>, StoreError> {
    let rows = db.ask(TO, &cells![party(to), project.as_str()]).await?;
    let message = |row: &Row| decode::message(&mut PostgresColumns::of(row));
    let mut messages = db.decoded(&table::OUTBOX, &rows, message)?;
    blob::resolve(db, cache, project, &mut messages.iter_mut().collect::<Vec<_>>()).await?;
    Ok(messages)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[FIND, SEND, DELIVER, UNDELIVERED, UNDELIVERED_AFTER, TREES, CHILDREN, TO];
