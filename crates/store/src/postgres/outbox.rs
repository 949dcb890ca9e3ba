//! Messages from one run to another, or from an account to its runs.

use std::collections::BTreeSet;

use tokio_postgres::Row;
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
use crate::outbox::{Message, MessageId, Party, Undelivered};

// A transaction that delivers a message locks its row.
const FIND: &str = "SELECT outbox.sender, outbox.seq, outbox.part, is_delivered FROM outbox \
     JOIN UNNEST($1::bytea[], $2::bigint[], $3::bigint[]) AS asked (sender, seq, part) \
     ON outbox.project = $4 AND asked.sender = outbox.sender AND asked.seq = outbox.seq AND asked.part = outbox.part \
     ORDER BY outbox.sender, outbox.seq, outbox.part FOR NO KEY UPDATE OF outbox";
const SEND: &str = "INSERT INTO outbox (sender, seq, part, receiver, at, note, is_delivered, project) \
     SELECT sender, seq, part, receiver, at, note, false, $7::text FROM UNNEST($1::bytea[], $2::bigint[], $3::bigint[], \
     $4::bytea[], $5::bigint[], $6::text[]) AS new (sender, seq, part, receiver, at, note) \
     ON CONFLICT (project, sender, seq, part) DO NOTHING";
const DELIVER: &str = "UPDATE outbox SET is_delivered = true FROM UNNEST($1::bytea[], $2::bigint[], $3::bigint[]) \
     AS its (sender, seq, part) \
     WHERE outbox.project = $4 AND outbox.sender = its.sender AND outbox.seq = its.seq AND outbox.part = its.part";
const UNDELIVERED: &str = "SELECT sender, seq, part, receiver, at, note, project FROM outbox \
     WHERE NOT is_delivered AND at <= $1 ORDER BY at, project, sender, seq, part LIMIT $2";
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
    limit: usize,
) -> Result<Vec<Undelivered>, StoreError> {
    let undelivered = |row: &Row| {
        let mut columns = PostgresColumns::of(row);
        let message = decode::message(&mut columns)?;
        Ok(Undelivered { project: columns.project()?, message })
    };
    let rows = db.ask(UNDELIVERED, &cells![now.0, bound(limit)]).await?;
    let mut rows = rows.iter().map(undelivered).collect::<Result<Vec<_>, StoreError>>()?;
    for row in &mut rows {
        blob::resolve(db, cache, &row.project, &mut [&mut row.message]).await?;
    }
    Ok(rows)
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
    let mut messages = rows.iter().map(message).collect::<Result<Vec<_>, StoreError>>()?;
    blob::resolve(db, cache, project, &mut messages.iter_mut().collect::<Vec<_>>()).await?;
    Ok(messages)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[FIND, SEND, DELIVER, UNDELIVERED, TO];
