//! Flows and their versions.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::FlowId;
use windlass_engine::time::Timestamp;

use super::column::{Columns, Id, json, word};
use super::list::{self, Conditions, Source, key};
use crate::error::{Refusal, StoreError};
use crate::flow::{
    FlowChoice, FlowDraft, FlowQuery, FlowRef, FlowRow, Publication, Published, Readable, VersionDraft,
    VersionRef, VersionRow,
};
use crate::page::{Order, Page};

const SOURCE: Source = Source {
    select: "SELECT id, name, description, labels, is_template, latest, created_at, updated_at FROM flows",
    count: "SELECT count(*) FROM flows",
    created: "created_at",
    changed: "updated_at",
    id: "id",
};

macro_rules! versions {
    ($where:literal) => {
        concat!(
            "SELECT id, flow, number, definition, form, lenient, status, note, created_at FROM versions ",
            $where
        )
    };
}

const LATEST: &str = "SELECT latest FROM flows WHERE id = ?1";
const NAMED: &str = "SELECT id FROM flows WHERE name = ?1 ORDER BY id LIMIT 1";
const NUMBERED: &str = "SELECT 1 FROM versions WHERE flow = ?1 AND number = ?2";
const CREATE: &str = "INSERT INTO flows (id, name, description, labels, is_template, latest, created_at, \
     updated_at) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6)";
const PUBLISH: &str = "INSERT INTO versions (id, flow, number, definition, form, lenient, status, note, \
     created_at, json, writes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
const RAISE: &str =
    "UPDATE flows SET latest = max(latest, ?2), updated_at = max(updated_at, ?3) WHERE id = ?1";
const VERSION: &str = versions!("WHERE id = ?1");
const VERSION_BY_NUMBER: &str = versions!("WHERE flow = ?1 AND number = ?2");
const VERSION_LATEST: &str =
    versions!("WHERE flow = ?1 AND status = 'published' ORDER BY number DESC LIMIT 1");
const VERSIONS: &str = versions!("WHERE flow = ?1 ORDER BY number DESC");

pub(super) fn publish(
    db: &Connection,
    publication: &Publication,
    readable: &Readable,
) -> Result<Published, StoreError> {
    let Publication { flow, version, now } = publication;
    let (flow, draft) = match flow {
        FlowChoice::Existing(id) => (*id, None),
        FlowChoice::Create(draft) => (draft.id, Some(draft)),
    };
    let latest: Option<u32> =
        db.prepare_cached(LATEST)?.query_row([flow.key()], |row| row.get(0)).optional()?;
    let draft = draft.filter(|_| latest.is_none());
    match draft {
        Some(draft) => check_name(db, draft)?,
        None if latest.is_none() => return Err(Refusal::UnknownFlow(flow).into()),
        None => {}
    }
    let known = version.as_ref().map(|draft| self::version(db, VersionRef::Id(draft.id))).transpose()?;
    if let Some(known) = known.flatten() {
        if known.flow != flow {
            return Err(Refusal::Malformed("the version is of another flow").into());
        }
        return Ok(Published { flow, version: Some((known.id, known.number)), created: false });
    }
    let number = |draft: &VersionDraft| number(db, flow, latest.unwrap_or(0), draft);
    let number = version.as_ref().map(number).transpose()?;
    if let Some(draft) = draft {
        create(db, draft, *now)?;
    }
    if let (Some(draft), Some(number)) = (version, number) {
        publish_version(db, flow, draft, readable, number, *now)?;
    }
    let created = draft.is_some() || version.is_some();
    Ok(Published { flow, version: version.as_ref().map(|draft| draft.id).zip(number), created })
}

fn check_name(db: &Connection, draft: &FlowDraft) -> Result<(), StoreError> {
    if draft.allow_same_name {
        return Ok(());
    }
    let taken = db.prepare_cached(NAMED)?.query_row([&draft.name], |row| Columns::of(row).id());
    match taken.optional()? {
        Some(existing) => Err(Refusal::NameTaken { name: draft.name.clone(), existing }.into()),
        None => Ok(()),
    }
}

fn number(db: &Connection, flow: FlowId, latest: u32, draft: &VersionDraft) -> Result<u32, StoreError> {
    let number = draft.number.unwrap_or_else(|| latest.saturating_add(1));
    let is_taken = db.prepare_cached(NUMBERED)?.exists(params![flow.key(), number])?;
    if is_taken { Err(Refusal::NumberTaken { flow, number }.into()) } else { Ok(number) }
}

fn create(db: &Connection, draft: &FlowDraft, now: Timestamp) -> Result<(), StoreError> {
    let FlowDraft { id, name, description, labels, is_template, allow_same_name: _ } = draft;
    let row = params![id.key(), name, description, json(labels), is_template, now.0];
    db.prepare_cached(CREATE)?.execute(row)?;
    Ok(())
}

fn publish_version(
    db: &Connection,
    flow: FlowId,
    draft: &VersionDraft,
    readable: &Readable,
    number: u32,
    now: Timestamp,
) -> Result<(), StoreError> {
    let VersionDraft { id, number: _, definition, form, lenient, status, note } = draft;
    let (id, flow) = (id.key(), flow.key());
    let Readable { json, writes } = readable;
    let (form, status) = (word(form), word(status));
    let row = params![id, flow, number, definition, form, lenient, status, note, now.0, json, writes];
    db.prepare_cached(PUBLISH)?.execute(row)?;
    db.prepare_cached(RAISE)?.execute(params![flow, number, now.0])?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<FlowRow> {
    let mut columns = Columns::of(row);
    Ok(FlowRow {
        id: columns.id()?,
        name: columns.value()?,
        description: columns.value()?,
        labels: columns.json()?,
        is_template: columns.value()?,
        latest: columns.value()?,
        created_at: columns.time()?,
        updated_at: columns.time()?,
    })
}

fn read_version(row: &Row<'_>) -> rusqlite::Result<VersionRow> {
    let mut columns = Columns::of(row);
    Ok(VersionRow {
        id: columns.id()?,
        flow: columns.id()?,
        number: columns.value()?,
        definition: columns.value()?,
        form: columns.word()?,
        lenient: columns.value()?,
        status: columns.word()?,
        note: columns.value()?,
        created_at: columns.time()?,
    })
}

pub(super) fn flows(db: &Connection, query: &FlowQuery) -> Result<Page<FlowRow>, StoreError> {
    let mut conditions = Conditions::default();
    match &query.flow {
        Some(FlowRef::Id(id)) => conditions.equal("id", Some(key(*id))),
        Some(FlowRef::Name(name)) => conditions.equal("name", Some(name.clone())),
        None => {}
    }
    conditions.equal("is_template", query.is_template.map(i64::from));
    let matches = |row: &FlowRow| row.matches(query);
    let filter = (query.label.is_some() || query.text.is_some()).then_some(&matches as &dyn Fn(&_) -> bool);
    let order = query.part.order;
    list::page(db, &SOURCE, conditions, &query.part, filter, &read, &|row: &FlowRow| match order {
        Order::Newest | Order::Oldest => (row.created_at, row.id),
        Order::LatestChange => (row.updated_at, row.id),
    })
}

pub(super) fn version(db: &Connection, version: VersionRef) -> Result<Option<VersionRow>, StoreError> {
    Ok(match version {
        VersionRef::Id(id) => db.prepare_cached(VERSION)?.query_row([id.key()], read_version),
        VersionRef::Number { flow, number } => {
            db.prepare_cached(VERSION_BY_NUMBER)?.query_row(params![flow.key(), number], read_version)
        }
        VersionRef::Latest { flow } => {
            db.prepare_cached(VERSION_LATEST)?.query_row([flow.key()], read_version)
        }
    }
    .optional()?)
}

pub(super) fn versions(db: &Connection, flow: FlowId) -> Result<Vec<VersionRow>, StoreError> {
    let mut statement = db.prepare_cached(VERSIONS)?;
    let rows = statement.query_map([flow.key()], read_version)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[LATEST, NAMED, NUMBERED, CREATE, PUBLISH, RAISE, VERSION, VERSION_BY_NUMBER, VERSION_LATEST, VERSIONS];
