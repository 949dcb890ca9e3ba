//! Small rows, each in its table, and the audit.

use tokio_postgres::Row;

use super::column::{Columns, bound, cells, json, text, unnest};
use super::link::{Ask, Link};
use super::{account, job, letter, log, queue, schedule, server, service, worker};
use crate::error::StoreError;
use crate::hint::Hint;
use crate::page::LineOrder;
use crate::record::{AuditQuery, AuditRow, Record, RecordQuery, Records};

// The number goes on only while whoever writes has the last one: so lines appear in the order of their numbers.
const NOTE: &str = "WITH tail AS (UPDATE audit_tail SET seq = seq + cardinality($1::bigint[]) WHERE no = 1 \
     RETURNING seq - cardinality($1::bigint[]) AS seq) \
     INSERT INTO audit (seq, at, who, what, subject, detail) \
     SELECT tail.seq + new.place, new.at, new.who, new.what, new.subject, new.detail FROM tail, \
     UNNEST($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY \
     AS new (at, who, what, subject, detail, place)";

macro_rules! audit {
    ($edge:literal) => {
        concat!(
            "SELECT seq, at, who, what, subject, detail FROM audit WHERE ($3::text IS NULL OR who = $3) \
             AND ($4::text IS NULL OR what = $4) AND ($5::text IS NULL OR subject = $5) AND ",
            $edge,
            " LIMIT $2"
        )
    };
}

const AUDIT: &str = audit!("seq > $1 ORDER BY seq");
const AUDIT_BACK: &str = audit!("seq < $1 ORDER BY seq DESC");

pub(super) async fn save(db: &Link, record: &Record) -> Result<(), StoreError> {
    match record {
        Record::Server(row) => server::save(db, row).await,
        Record::Worker(row) => worker::save(db, row).await,
        Record::WorkerBeat(beat) => worker::beat(db, beat).await,
        Record::WorkerDrain { id, is_draining } => worker::drain(db, id, *is_draining).await,
        Record::ServersGone { before } => server::forget(db, *before).await,
        Record::WorkersGone { before } => worker::forget(db, *before).await,
        Record::Account { id, name, now } => account::open(db, id, name, *now).await,
        Record::Price(row) => account::set_price(db, row).await,
        Record::PriceGone { service } => account::forget_price(db, service).await,
        Record::Queue(settings) => queue::save(db, settings).await,
        Record::Spent { spent, now } => queue::spend(db, spent, *now).await,
        Record::Service(row) => service::save(db, row).await,
    }
}

/// What others may want to know of a row that was written: nothing, of what everybody writes all the time.
pub(super) fn hint(record: &Record) -> Option<Hint> {
    match record {
        Record::Worker(_)
        | Record::WorkerDrain { .. }
        | Record::Price(_)
        | Record::PriceGone { .. }
        | Record::Service(_)
        | Record::Queue(_)
        | Record::Account { .. } => Some(Hint { settings: true, ..Hint::default() }),
        Record::Server(_)
        | Record::ServersGone { .. }
        | Record::WorkerBeat(_)
        | Record::WorkersGone { .. }
        | Record::Spent { .. } => None,
    }
}

pub(super) async fn records(db: &Link, query: &RecordQuery) -> Result<Records, StoreError> {
    Ok(match query {
        RecordQuery::Servers => Records::Servers(server::servers(db).await?),
        RecordQuery::Workers(query) => Records::Workers(worker::workers(db, query).await?),
        RecordQuery::Accounts(id) => Records::Accounts(account::accounts(db, id.as_deref()).await?),
        RecordQuery::AccountsAfter { after, limit } => {
            Records::Accounts(account::accounts_after(db, after.as_deref(), *limit).await?)
        }
        RecordQuery::AccountsInNeed(id) => {
            Records::Accounts(account::accounts_in_need(db, id.as_deref()).await?)
        }
        RecordQuery::InNeed { account, within, limit } => {
            Records::InNeed(account::in_need(db, account, *within, *limit).await?)
        }
        RecordQuery::Prices => Records::Prices(account::prices(db).await?),
        RecordQuery::Services => Records::Services(service::services(db).await?),
        RecordQuery::Queues { now } => Records::Queues(queue::depths(db, *now).await?),
        RecordQuery::Held { queue } => Records::Held(queue::held(db, queue).await?),
        RecordQuery::Spent => Records::Spent(queue::spent(db).await?),
        RecordQuery::LetterGroups { queue } => Records::LetterGroups(letter::groups(db, queue).await?),
        RecordQuery::Ready(query) => Records::Ready(job::ready_places(db, query).await?),
        RecordQuery::Schedules(id) => Records::Schedules(schedule::schedules(db, *id).await?),
        RecordQuery::Audit(query) => Records::Audit(audit(db, query).await?),
        RecordQuery::Logs { run, of } => Records::Logs(log::logs(db, *run, *of).await?),
    })
}

/// Adds lines to the audit.
pub(super) fn note<'c>(rows: &[&'c AuditRow]) -> Ask<'c> {
    let cells = unnest!(rows, |row| [
        row.at.0,
        text(&row.who),
        text(&row.what),
        text(&row.subject),
        json(&row.detail),
    ]);
    Ask::new(NOTE, cells)
}

async fn audit(db: &Link, query: &AuditQuery) -> Result<Vec<(u64, AuditRow)>, StoreError> {
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        let seq = columns.number()?;
        let (at, who, what) = (columns.time()?, columns.text()?, columns.text()?);
        Ok((seq, AuditRow { at, who, what, subject: columns.text()?, detail: columns.json()? }))
    };
    let sql = match query.order {
        LineOrder::Oldest => AUDIT,
        LineOrder::Newest => AUDIT_BACK,
    };
    let [who, what, subject] =
        [&query.who, &query.what, &query.subject].map(|asked| asked.as_deref().map(text));
    let cells = cells![bound(query.edge()), bound(query.size()), who, what, subject];
    db.ask(sql, &cells).await?.iter().map(read).collect()
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[NOTE, AUDIT, AUDIT_BACK];
