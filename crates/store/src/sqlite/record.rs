//! Small rows, each in its table, and the audit.

use rusqlite::{Connection, Row, params};

use super::column::{Columns, bound, json};
use super::{account, job, letter, log, queue, schedule, server, service, worker};
use crate::error::StoreError;
use crate::page::LineOrder;
use crate::record::{AuditQuery, AuditRow, Record, RecordQuery, Records};

const NOTE: &str = "INSERT INTO audit (at, who, what, subject, detail) VALUES (?1, ?2, ?3, ?4, ?5)";

macro_rules! audit {
    ($edge:literal) => {
        concat!(
            "SELECT seq, at, who, what, subject, detail FROM audit WHERE (?3 IS NULL OR who = ?3) \
             AND (?4 IS NULL OR what = ?4) AND (?5 IS NULL OR subject = ?5) AND ",
            $edge,
            " LIMIT ?2"
        )
    };
}

const AUDIT: &str = audit!("seq > ?1 ORDER BY seq");
const AUDIT_BACK: &str = audit!("seq < ?1 ORDER BY seq DESC");

pub(super) fn save(db: &Connection, record: &Record) -> Result<(), StoreError> {
    match record {
        Record::Server(row) => server::save(db, row),
        Record::ServersGone { before } => server::forget(db, *before),
        Record::Worker(row) => worker::save(db, row),
        Record::WorkerBeat(beat) => worker::beat(db, beat),
        Record::WorkerDrain { id, is_draining } => worker::drain(db, id, *is_draining),
        Record::WorkersGone { before } => worker::forget(db, *before),
        Record::Account { id, name, now } => account::open(db, id, name, *now),
        Record::Price(row) => account::set_price(db, row),
        Record::PriceGone { service } => account::forget_price(db, service),
        Record::Queue(settings) => queue::save(db, settings),
        Record::Spent { spent, now } => queue::spend(db, spent, *now),
        Record::Service(row) => service::save(db, row),
    }
}

pub(super) fn records(db: &Connection, query: &RecordQuery) -> Result<Records, StoreError> {
    Ok(match query {
        RecordQuery::Servers => Records::Servers(server::servers(db)?),
        RecordQuery::Workers(query) => Records::Workers(worker::workers(db, query)?),
        RecordQuery::Accounts(id) => Records::Accounts(account::accounts(db, id.as_deref())?),
        RecordQuery::AccountsAfter { after, limit } => {
            Records::Accounts(account::accounts_after(db, after.as_deref(), *limit)?)
        }
        RecordQuery::AccountsInNeed(id) => Records::Accounts(account::accounts_in_need(db, id.as_deref())?),
        RecordQuery::InNeed { account, within, limit } => {
            Records::InNeed(account::in_need(db, account, *within, *limit)?)
        }
        RecordQuery::Prices => Records::Prices(account::prices(db)?),
        RecordQuery::Services => Records::Services(service::services(db)?),
        RecordQuery::Queues { now } => Records::Queues(queue::depths(db, *now)?),
        RecordQuery::Held { queue } => Records::Held(queue::held(db, queue)?),
        RecordQuery::Spent => Records::Spent(queue::spent(db)?),
        RecordQuery::LetterGroups { queue } => Records::LetterGroups(letter::groups(db, queue)?),
        RecordQuery::Ready(query) => Records::Ready(job::ready_places(db, query)?),
        RecordQuery::Schedules(id) => Records::Schedules(schedule::schedules(db, *id)?),
        RecordQuery::Audit(query) => Records::Audit(audit(db, query)?),
        RecordQuery::Logs { run, of } => Records::Logs(log::logs(db, *run, *of)?),
    })
}

/// Adds a line to the audit.
pub(super) fn note(db: &Connection, row: &AuditRow) -> Result<(), StoreError> {
    let AuditRow { at, who, what, subject, detail } = row;
    db.prepare_cached(NOTE)?.execute(params![at.0, who, what, subject, json(detail)])?;
    Ok(())
}

fn audit(db: &Connection, query: &AuditQuery) -> Result<Vec<(u64, AuditRow)>, StoreError> {
    let read = |row: &Row<'_>| {
        let mut columns = Columns::of(row);
        let seq = columns.number()?;
        let (at, who, what) = (columns.time()?, columns.value()?, columns.value()?);
        Ok((seq, AuditRow { at, who, what, subject: columns.value()?, detail: columns.json()? }))
    };
    let mut statement = db.prepare_cached(match query.order {
        LineOrder::Oldest => AUDIT,
        LineOrder::Newest => AUDIT_BACK,
    })?;
    let AuditQuery { who, what, subject, .. } = query;
    let rows =
        statement.query_map(params![bound(query.edge()), bound(query.size()), who, what, subject], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[NOTE, AUDIT, AUDIT_BACK];
