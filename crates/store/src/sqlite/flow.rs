//! Flows and their versions.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::FlowId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{SqliteColumns, SqliteId};
use super::list::{self, ListConditions, ListSelect, key};
use super::readers::ReadConnection;
use crate::column::{Columns, json, word};
use crate::decode;
use crate::error::{Refusal, StoreError};
use crate::flow::{
    FlowChoice, FlowDraft, FlowQuery, FlowRef, FlowRow, Publication, Published, Readable, VersionDraft,
    VersionRef, VersionRow,
};
use crate::page::{Order, Page};
use crate::table;

const SOURCE: ListSelect = ListSelect {
    table: table::FLOWS,
    select: "SELECT id, name, description, labels, is_template, latest, created_at, updated_at FROM named_flows",
    count: "SELECT count(*) FROM named_flows",
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

const LATEST: &str = "SELECT latest FROM named_flows WHERE id = ?1 AND project = ?2";
const NAMED: &str = "SELECT id FROM named_flows WHERE project = ?2 AND name = ?1 ORDER BY id LIMIT 1";
const NUMBERED: &str = "SELECT 1 FROM versions WHERE flow = ?1 AND number = ?2";
const CREATE: &str = "INSERT INTO named_flows (id, name, description, labels, is_template, latest, created_at, \
     updated_at, project) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6, ?7)";
const PUBLISH: &str = "INSERT INTO versions (id, flow, number, definition, form, lenient, status, note, \
     created_at, json, writes, project) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
const RAISE: &str =
    "UPDATE named_flows SET latest = max(latest, ?2), updated_at = max(updated_at, ?3) WHERE id = ?1";
const VERSION: &str = versions!("WHERE id = ?1 AND project = ?2");
const VERSION_BY_NUMBER: &str = versions!("WHERE flow = ?1 AND number = ?2 AND project = ?3");
const VERSION_LATEST: &str =
    versions!("WHERE flow = ?1 AND project = ?2 AND status = 'published' ORDER BY number DESC LIMIT 1");
const VERSIONS: &str = versions!("WHERE flow = ?1 AND project = ?2 ORDER BY number DESC");

pub(super) fn publish(
    db: &Connection,
    project: &Project,
    publication: &Publication,
    readable: &Readable,
) -> Result<Published, StoreError> {
    let Publication { flow, version, now } = publication;
    let (flow, draft) = match flow {
        FlowChoice::Existing(id) => (*id, None),
        FlowChoice::Create(draft) => (draft.id, Some(draft)),
    };
    let latest: Option<u32> = db
        .prepare_cached(LATEST)?
        .query_row(params![flow.key(), project.as_str()], |row| row.get(0))
        .optional()?;
    let draft = draft.filter(|_| latest.is_none());
    match draft {
        Some(draft) => check_name(db, project, draft)?,
        None if latest.is_none() => return Err(Refusal::UnknownFlow(flow).into()),
        None => {}
    }
    let known =
        version.as_ref().map(|draft| self::version(db, project, VersionRef::Id(draft.id))).transpose()?;
    if let Some(known) = known.flatten() {
        if known.flow != flow {
            return Err(Refusal::Malformed("the version is of another flow").into());
        }
        return Ok(Published { flow, version: Some((known.id, known.number)), created: false });
    }
    let number = |draft: &VersionDraft| number(db, flow, latest.unwrap_or(0), draft);
    let number = version.as_ref().map(number).transpose()?;
    if let Some(draft) = draft {
        create(db, project, draft, *now)?;
    }
    if let (Some(draft), Some(number)) = (version, number) {
        publish_version(db, project, flow, draft, readable, number, *now)?;
    }
    let created = draft.is_some() || version.is_some();
    Ok(Published { flow, version: version.as_ref().map(|draft| draft.id).zip(number), created })
}

fn check_name(db: &Connection, project: &Project, draft: &FlowDraft) -> Result<(), StoreError> {
    if draft.allow_same_name {
        return Ok(());
    }
    let taken = db
        .prepare_cached(NAMED)?
        .query_row([draft.name.as_str(), project.as_str()], |row| SqliteColumns::of(row).id());
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

fn create(db: &Connection, project: &Project, draft: &FlowDraft, now: Timestamp) -> Result<(), StoreError> {
    let FlowDraft { id, name, description, labels, is_template, allow_same_name: _ } = draft;
    let row = params![id.key(), name, description, json(labels), is_template, now.0, project.as_str()];
    db.prepare_cached(CREATE)?.execute(row)?;
    Ok(())
}

fn publish_version(
    db: &Connection,
    project: &Project,
    flow: FlowId,
    draft: &VersionDraft,
    readable: &Readable,
    number: u32,
    now: Timestamp,
) -> Result<(), StoreError> {
    let VersionDraft { id, number: _, definition, plan: _, form, lenient, status, note } = draft;
    let (id, flow) = (id.key(), flow.key());
    let Readable { json, writes } = readable;
    let (form, status) = (word(form), word(status));
    let (project, now) = (project.as_str(), now.0);
    let row = params![id, flow, number, definition, form, lenient, status, note, now, json, writes, project];
    db.prepare_cached(PUBLISH)?.execute(row)?;
    db.prepare_cached(RAISE)?.execute(params![flow, number, now])?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<FlowRow> {
    decode::flow(&mut SqliteColumns::of(row))
}

fn read_version(row: &Row<'_>) -> rusqlite::Result<VersionRow> {
    decode::version(&mut SqliteColumns::of(row))
}

pub(super) fn flows(
    db: &ReadConnection,
    project: &Project,
    query: &FlowQuery,
) -> Result<Page<FlowRow>, StoreError> {
    let mut conditions = ListConditions::of(project);
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

pub(super) fn version(
    db: &Connection,
    project: &Project,
    version: VersionRef,
) -> Result<Option<VersionRow>, StoreError> {
    let project = project.as_str();
    Ok(match version {
        VersionRef::Id(id) => db.prepare_cached(VERSION)?.query_row(params![id.key(), project], read_version),
        VersionRef::Number { flow, number } => db
            .prepare_cached(VERSION_BY_NUMBER)?
            .query_row(params![flow.key(), number, project], read_version),
        VersionRef::Latest { flow } => {
            db.prepare_cached(VERSION_LATEST)?.query_row(params![flow.key(), project], read_version)
        }
    }
    .optional()?)
}

pub(super) fn versions(
    db: &ReadConnection,
    project: &Project,
    flow: FlowId,
) -> Result<Vec<VersionRow>, StoreError> {
    db.rows(&table::VERSIONS, VERSIONS, params![flow.key(), project.as_str()], read_version)
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[LATEST, NAMED, NUMBERED, CREATE, PUBLISH, RAISE, VERSION, VERSION_BY_NUMBER, VERSION_LATEST, VERSIONS];
