//! Messages from one run to another, or from an account to its runs.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::RunId;
use windlass_engine::time::Timestamp;

use super::column::{Columns, Id, Key, bound, json, stored};
use crate::error::{Refusal, StoreError};
use crate::outbox::{Message, MessageId, Party};

const FIND: &str = "SELECT is_delivered FROM outbox WHERE sender = ?1 AND seq = ?2 AND part = ?3";
const SEND: &str = "INSERT INTO outbox (sender, seq, part, receiver, at, note, is_delivered) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0) ON CONFLICT (sender, seq, part) DO NOTHING";
const DELIVER: &str = "UPDATE outbox SET is_delivered = 1 WHERE sender = ?1 AND seq = ?2 AND part = ?3";
const UNDELIVERED: &str = "SELECT sender, seq, part, receiver, at, note FROM outbox \
     WHERE is_delivered = 0 AND at <= ?1 ORDER BY at, sender, seq, part LIMIT ?2";
pub(super) const TO: &str = "SELECT sender, seq, part, receiver, at, note FROM outbox \
     WHERE receiver = ?1 AND is_delivered = 0 ORDER BY sender, seq, part";

const RUN: u8 = 0;
const ACCOUNT: u8 = 1;

/// The bytes of a party; they sort as parties do.
pub(super) fn party(party: &Party) -> Vec<u8> {
    let (tag, name): (u8, &[u8]) = match party {
        Party::Run(id) => (RUN, &id.key()),
        Party::Account(id) => (ACCOUNT, id.as_bytes()),
    };
    [&[tag], name].concat()
}

fn read_party(columns: &mut Columns<'_>) -> rusqlite::Result<Party> {
    let bytes: Vec<u8> = columns.value()?;
    let read = match bytes.split_first() {
        Some((&RUN, id)) => Key::try_from(id).ok().map(|key| Party::Run(RunId::from_key(key))),
        Some((&ACCOUNT, name)) => String::from_utf8(name.to_vec()).ok().map(Party::Account),
        Some(_) | None => None,
    };
    read.ok_or_else(|| columns.unreadable("it is neither a run nor an account"))
}

/// Whether the message can be delivered.
pub(super) fn check(db: &Connection, id: &MessageId) -> Result<(), StoreError> {
    let found = db
        .prepare_cached(FIND)?
        .query_row(params![party(&id.sender), stored(id.seq), id.part], |row| row.get(0))
        .optional()?;
    match found {
        None => Err(Refusal::UnknownMessage(id.clone()).into()),
        Some(true) => Err(Refusal::AlreadyDelivered(id.clone()).into()),
        Some(false) => Ok(()),
    }
}

/// Sends a message, unless it was sent before.
pub(super) fn send(db: &Connection, message: &Message) -> Result<(), StoreError> {
    let Message { id, to, at, note } = message;
    let row = params![party(&id.sender), stored(id.seq), id.part, party(to), at.0, json(note)];
    db.prepare_cached(SEND)?.execute(row)?;
    Ok(())
}

pub(super) fn deliver(db: &Connection, id: &MessageId) -> Result<(), StoreError> {
    db.prepare_cached(DELIVER)?.execute(params![party(&id.sender), stored(id.seq), id.part])?;
    Ok(())
}

pub(super) fn undelivered(db: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
    let mut statement = db.prepare_cached(UNDELIVERED)?;
    let rows = statement.query_map(params![now.0, bound(limit)], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// What is on its way to one receiver.
pub(super) fn to(db: &Connection, to: &Party) -> Result<Vec<Message>, StoreError> {
    let mut statement = db.prepare_cached(TO)?;
    let rows = statement.query_map(params![party(to)], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Message> {
    let mut columns = Columns::of(row);
    let id = MessageId { sender: read_party(&mut columns)?, seq: columns.number()?, part: columns.value()? };
    let (to, at, note) = (read_party(&mut columns)?, columns.time()?, columns.json()?);
    Ok(Message { id, to, at, note })
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[FIND, SEND, DELIVER, UNDELIVERED, TO];
