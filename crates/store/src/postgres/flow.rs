//! Flows and their versions.

use tokio_postgres::Row;
use windlass_engine::id::FlowId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, PostgresId, cells, text};
use super::link::Link;
use super::list::{self, Conditions, FilterValue, Source};
use crate::column::{Columns, json, word};
use crate::decode;
use crate::error::{Refusal, StoreError};
use crate::flow::{
    FlowChoice, FlowDraft, FlowQuery, FlowRef, FlowRow, Publication, Published, Readable, VersionDraft,
    VersionRef, VersionRow,
};
use crate::page::{Order, Page};
use crate::table;

macro_rules! flows {
    ($where:literal) => {
        concat!(
            "SELECT id, name, description, labels, is_template, latest, created_at, updated_at FROM named_flows",
            $where
        )
    };
}

const SOURCE: Source<FlowRow, FlowId> = Source {
    table: table::FLOWS,
    select: flows!(""),
    count: "SELECT count(*) FROM named_flows",
    read,
    place: |row, order| match order {
        Order::Newest | Order::Oldest => (row.created_at, row.id),
        Order::LatestChange => (row.updated_at, row.id),
    },
};

macro_rules! versions {
    ($where:literal) => {
        concat!(
            "SELECT id, flow, number, definition, form, lenient, status, note, created_at FROM versions ",
            $where
        )
    };
}

// A transaction that adds a version locks the flow: so its versions are numbered in order.
const LATEST: &str = "SELECT latest FROM named_flows WHERE id = $1 AND project = $2 FOR UPDATE";
const TAKE_NAME: &str = "INSERT INTO flow_names (name, project) VALUES ($1, $2) ON CONFLICT (project, name) DO UPDATE SET name = excluded.name";
const NAMED: &str = "SELECT id FROM named_flows WHERE name = $1 AND project = $2 ORDER BY id LIMIT 1";
const NUMBERED: &str = "SELECT 1 FROM versions WHERE flow = $1 AND number = $2";
const CREATE: &str = "INSERT INTO named_flows (id, name, description, labels, is_template, latest, created_at, \
     updated_at, project) VALUES ($1, $2, $3, $4, $5, 0, $6, $6, $7)";
const PUBLISH: &str = "INSERT INTO versions (id, flow, number, definition, form, lenient, status, note, \
     created_at, json, writes, project) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
const RAISE: &str = "UPDATE named_flows SET latest = greatest(latest, $2), updated_at = greatest(updated_at, $3) WHERE id = $1";
const FLOW: &str = flows!(" WHERE id = $1 AND project = $2");
const FLOW_NAMED: &str = flows!(" WHERE name = $1 AND project = $2 ORDER BY created_at, id LIMIT 1");
const VERSION: &str = versions!("WHERE id = $1 AND project = $2");
const VERSION_BY_NUMBER: &str = versions!("WHERE flow = $1 AND number = $2 AND project = $3");
const VERSION_LATEST: &str =
    versions!("WHERE flow = $1 AND project = $2 AND status = 'published' ORDER BY number DESC LIMIT 1");
const VERSIONS: &str = versions!("WHERE flow = $1 AND project = $2 ORDER BY number DESC");

/// Publishes, in a transaction of its own.
pub(super) async fn publish(
    db: &Link,
    project: &Project,
    publication: &Publication,
    readable: &Readable,
) -> Result<Published, StoreError> {
    let Publication { flow, version, now } = publication;
    let (flow, draft) = match flow {
        FlowChoice::Existing(id) => (*id, None),
        FlowChoice::Create(draft) => (draft.id, Some(draft)),
    };
    if let Some(draft) = draft {
        // First of all: other publishers of the name wait here.
        db.execute(TAKE_NAME, &cells![text(&draft.name), project.as_str()]).await?;
    }
    let latest = db.ask_one(LATEST, &cells![flow.key(), project.as_str()]).await?;
    let latest = latest.map(|row| PostgresColumns::of(&row).small()).transpose()?;
    let draft = draft.filter(|_| latest.is_none());
    match draft {
        Some(draft) => check_name(db, project, draft).await?,
        None if latest.is_none() => return Err(Refusal::UnknownFlow(flow).into()),
        None => {}
    }
    if let Some(draft) = version
        && let Some(known) = self::version(db, project, VersionRef::Id(draft.id)).await?
    {
        if known.flow != flow {
            return Err(Refusal::Malformed("the version is of another flow").into());
        }
        return Ok(Published { flow, version: Some((known.id, known.number)), created: false });
    }
    let number = match version {
        Some(draft) => Some(number(db, flow, latest.unwrap_or(0), draft).await?),
        None => None,
    };
    if let Some(draft) = draft {
        create(db, project, draft, *now).await?;
    }
    if let (Some(draft), Some(number)) = (version, number) {
        publish_version(db, project, flow, draft, readable, number, *now).await?;
    }
    let created = draft.is_some() || version.is_some();
    Ok(Published { flow, version: version.as_ref().map(|draft| draft.id).zip(number), created })
}

async fn check_name(db: &Link, project: &Project, draft: &FlowDraft) -> Result<(), StoreError> {
    if draft.allow_same_name {
        return Ok(());
    }
    match db.ask_one(NAMED, &cells![text(&draft.name), project.as_str()]).await? {
        Some(row) => {
            let existing = PostgresColumns::of(&row).id()?;
            Err(Refusal::NameTaken { name: draft.name.clone(), existing }.into())
        }
        None => Ok(()),
    }
}

async fn number(db: &Link, flow: FlowId, latest: u32, draft: &VersionDraft) -> Result<u32, StoreError> {
    let number = draft.number.unwrap_or_else(|| latest.saturating_add(1));
    let taken = db.ask_one(NUMBERED, &cells![flow.key(), i64::from(number)]).await?;
    if taken.is_some() { Err(Refusal::NumberTaken { flow, number }.into()) } else { Ok(number) }
}

async fn create(db: &Link, project: &Project, draft: &FlowDraft, now: Timestamp) -> Result<(), StoreError> {
    let FlowDraft { id, name, description, labels, is_template, allow_same_name: _ } = draft;
    let (name, description) = (text(name), text(description));
    let row = cells![id.key(), name, description, json(labels), is_template, now.0, project.as_str()];
    db.execute(CREATE, &row).await?;
    Ok(())
}

async fn publish_version(
    db: &Link,
    project: &Project,
    flow: FlowId,
    draft: &VersionDraft,
    readable: &Readable,
    number: u32,
    now: Timestamp,
) -> Result<(), StoreError> {
    let VersionDraft { id, number: _, definition, plan: _, form, lenient, status, note } = draft;
    let (id, flow, number) = (id.key(), flow.key(), i64::from(number));
    let (form, status) = (word(form), word(status));
    let Readable { json, writes } = readable;
    let (definition, note, project) = (text(definition), text(note), project.as_str());
    let row = cells![id, flow, number, definition, form, lenient, status, note, now.0, json, writes, project];
    db.execute(PUBLISH, &row).await?;
    db.execute(RAISE, &cells![flow, number, now.0]).await?;
    Ok(())
}

fn read(row: &Row) -> Result<FlowRow, StoreError> {
    decode::flow(&mut PostgresColumns::of(row))
}

fn read_version(row: &Row) -> Result<VersionRow, StoreError> {
    decode::version(&mut PostgresColumns::of(row))
}

/// One flow, by a statement that is kept.
pub(super) async fn one(db: &Link, project: &Project, flow: &FlowRef) -> Result<Page<FlowRow>, StoreError> {
    let found = match flow {
        FlowRef::Id(id) => db.ask_one(FLOW, &cells![id.key(), project.as_str()]).await?,
        FlowRef::Name(name) => db.ask_one(FLOW_NAMED, &cells![text(name), project.as_str()]).await?,
    };
    let items = found.iter().map(read).collect::<Result<_, _>>()?;
    Ok(Page { items, next: None, total: None })
}

pub(super) async fn flows(
    db: &Link,
    project: &Project,
    query: &FlowQuery,
) -> Result<Page<FlowRow>, StoreError> {
    let mut conditions = Conditions::of(project);
    match &query.flow {
        Some(FlowRef::Id(id)) => conditions.equal("id", Some(FilterValue::id(*id))),
        Some(FlowRef::Name(name)) => conditions.equal("name", Some(FilterValue::Text(name.clone()))),
        None => {}
    }
    conditions.equal("is_template", query.is_template.map(FilterValue::Flag));
    let matches = |row: &FlowRow| row.matches(query);
    let is_filtered = query.label.is_some() || query.text.is_some();
    let filter = is_filtered.then_some(&matches as &(dyn Fn(&_) -> bool + Sync));
    list::page(db, &SOURCE, &conditions, &query.part, filter).await
}

pub(super) async fn version(
    db: &Link,
    project: &Project,
    version: VersionRef,
) -> Result<Option<VersionRow>, StoreError> {
    let project = project.as_str();
    let row = match version {
        VersionRef::Id(id) => db.ask_one(VERSION, &cells![id.key(), project]).await?,
        VersionRef::Number { flow, number } => {
            db.ask_one(VERSION_BY_NUMBER, &cells![flow.key(), i64::from(number), project]).await?
        }
        VersionRef::Latest { flow } => db.ask_one(VERSION_LATEST, &cells![flow.key(), project]).await?,
    };
    row.as_ref().map(read_version).transpose()
}

pub(super) async fn versions(
    db: &Link,
    project: &Project,
    flow: FlowId,
) -> Result<Vec<VersionRow>, StoreError> {
    let rows = db.ask(VERSIONS, &cells![flow.key(), project.as_str()]).await?;
    db.decoded(&table::VERSIONS, &rows, read_version)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[
    FLOW,
    FLOW_NAMED,
    LATEST,
    TAKE_NAME,
    NAMED,
    NUMBERED,
    CREATE,
    PUBLISH,
    RAISE,
    VERSION,
    VERSION_BY_NUMBER,
    VERSION_LATEST,
    VERSIONS,
];
