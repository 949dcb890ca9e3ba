//! Settings of services.

use tokio_postgres::Row;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, cells, text};
use super::link::Link;
use crate::column::{bound, json};
use crate::decode;
use crate::error::StoreError;
use crate::page::NameRange;
use crate::service::{LiveService, ServiceRow, ServiceSettings, WAITING_MAX, WaitingService};
use crate::table;

const SAVE: &str = "INSERT INTO services (name, settings, updated_at, project) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (project, name) DO UPDATE SET settings = excluded.settings, updated_at = excluded.updated_at";
const REMOVE: &str = "DELETE FROM services WHERE project = $2 AND name = $1";
const SERVICES: &str = "SELECT name, settings, updated_at FROM services WHERE project = $1 AND name > $2 \
     ORDER BY name LIMIT $3";
const SERVICE: &str =
    "SELECT name, settings, updated_at FROM services WHERE project = $1 AND name = $2 LIMIT $3";
macro_rules! live {
    ($services:literal) => {
        concat!(
            "SELECT service, count(*), \
             sum(CASE WHEN is_draining THEN 0 ELSE greatest(capacity, 0) END)::bigint, \
             sum(greatest(load, 0))::bigint FROM worker_services JOIN registrations \
             ON registrations.project = worker_services.project AND registrations.id = worker_services.worker \
             WHERE worker_services.project = $1 AND ",
            $services,
            " AND beat_at >= $4 GROUP BY service ORDER BY service LIMIT $3"
        )
    };
}
const LIVE: &str = live!("service > $2");
const LIVE_ONE: &str = live!("service = $2");

// Names are found one after the other in the index, and so many jobs of each are looked at: the rest costs nothing.
macro_rules! waiting {
    ($keys:literal) => {
        concat!(
            "WITH RECURSIVE names(name) AS (SELECT (SELECT min(name) FROM jobs WHERE project = $1 AND name > $2 \
             AND due_at IS NOT NULL AND ",
            $keys,
            ") UNION ALL SELECT (SELECT min(jobs.name) FROM jobs WHERE project = $1 AND jobs.name > names.name \
             AND due_at IS NOT NULL AND ",
            $keys,
            ") FROM names WHERE names.name IS NOT NULL) \
             SELECT name, (SELECT count(*) FROM (SELECT due_at FROM jobs WHERE project = $1 \
             AND jobs.name = names.name AND due_at IS NOT NULL AND ",
            $keys,
            " LIMIT $4) AS looked_at WHERE due_at <= $5) FROM names WHERE name IS NOT NULL LIMIT $3"
        )
    };
}
macro_rules! waiting_one {
    ($keys:literal) => {
        concat!(
            "SELECT $2::text, count(*) FROM (SELECT due_at FROM jobs WHERE project = $1 AND name = $2 \
             AND due_at IS NOT NULL AND ",
            $keys,
            " LIMIT least($3::bigint, $4::bigint)) AS looked_at WHERE due_at <= $5"
        )
    };
}
const WAITING: [&str; 2] = [waiting!("limit_key = ''"), waiting!("limit_key <> ''")];
const WAITING_ONE: [&str; 2] = [waiting_one!("limit_key = ''"), waiting_one!("limit_key <> ''")];

pub(super) async fn save(db: &Link, project: &Project, row: &ServiceRow) -> Result<(), StoreError> {
    let ServiceRow { name, settings, updated_at } = row;
    if *settings == ServiceSettings::default() {
        db.execute(REMOVE, &cells![text(name), project.as_str()]).await?;
        return Ok(());
    }
    db.execute(SAVE, &cells![text(name), json(settings), updated_at.0, project.as_str()]).await?;
    Ok(())
}

pub(super) async fn services(
    db: &Link,
    project: &Project,
    names: &NameRange,
) -> Result<Vec<ServiceRow>, StoreError> {
    let read = |row: &Row| decode::service(&mut PostgresColumns::of(row));
    let sql = if names.is_one() { SERVICE } else { SERVICES };
    let range = |limit| cells![project.as_str(), text(names.bound_name()), limit];
    db.first_rows(&table::SERVICES, sql, names.limit(), range, read).await
}

pub(super) async fn live_services(
    db: &Link,
    project: &Project,
    alive_since: Timestamp,
    names: &NameRange,
) -> Result<Vec<LiveService>, StoreError> {
    let read = |row: &Row| decode::live_service(&mut PostgresColumns::of(row));
    let sql = if names.is_one() { LIVE_ONE } else { LIVE };
    let range = cells![project.as_str(), text(names.bound_name()), bound(names.limit()), alive_since.0];
    db.ask(sql, &range).await?.iter().map(read).collect()
}

pub(super) async fn waiting_services(
    db: &Link,
    project: &Project,
    names: &NameRange,
    now: Timestamp,
) -> Result<Vec<WaitingService>, StoreError> {
    let read = |row: &Row| decode::waiting_service(&mut PostgresColumns::of(row));
    let looked_at = i64::try_from(WAITING_MAX).unwrap_or(i64::MAX);
    let limit = if names.is_one() { i64::MAX } else { bound(names.limit()) };
    let range = cells![project.as_str(), text(names.bound_name()), limit, looked_at, now.0];
    let [plain, keyed] = if names.is_one() { WAITING_ONE } else { WAITING };
    let mut lists = [Vec::new(), Vec::new()];
    for (list, sql) in lists.iter_mut().zip([plain, keyed]) {
        *list = db.ask(sql, &range).await?.iter().map(read).collect::<Result<_, _>>()?;
    }
    Ok(WaitingService::added(lists, names.limit()))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[
    SAVE,
    REMOVE,
    SERVICES,
    SERVICE,
    LIVE,
    LIVE_ONE,
    WAITING[0],
    WAITING[1],
    WAITING_ONE[0],
    WAITING_ONE[1],
];
