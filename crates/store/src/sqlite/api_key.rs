//! API keys.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use windlass_engine::access::api_key::ApiKeyId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::Sqlite;
use super::column::SqliteColumns;
use super::readers::ReadConnection;
use crate::api_key::{ApiKeyRow, ApiKeyStore};
use crate::column::{json, word};
use crate::decode;
use crate::error::StoreError;
use crate::table;

macro_rules! api_keys {
    ($where:literal) => {
        concat!(
            "SELECT id, project, hash, name, role, may_script, scope, created_at, created_by, expires_at, \
             revoked_at, used_at FROM api_keys ",
            $where
        )
    };
}

const CREATE: &str = "INSERT OR IGNORE INTO api_keys (id, project, hash, name, role, may_script, scope, created_at, \
     created_by, expires_at, revoked_at, used_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
const ONE: &str = api_keys!("WHERE id = ?1");
const LIST: &str = api_keys!("WHERE project = ?1 AND id > ?2 ORDER BY id LIMIT ?3");
const ANY: &str = "SELECT EXISTS (SELECT 1 FROM api_keys)";
const REVOKE: &str =
    "UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?3) WHERE id = ?2 AND project = ?1";
const END: &str = "UPDATE api_keys SET expires_at = min(coalesce(expires_at, ?3), ?3) \
     WHERE id = ?2 AND project = ?1 AND revoked_at IS NULL \
     AND NOT EXISTS (SELECT 1 FROM api_keys AS other WHERE other.id = ?4)";
const USE: &str = "UPDATE api_keys SET used_at = max(coalesce(used_at, ?2), ?2) WHERE id = ?1";

fn read(row: &Row<'_>) -> rusqlite::Result<ApiKeyRow> {
    decode::api_key(&mut SqliteColumns::of(row))
}

fn create(db: &Connection, project: &Project, row: &ApiKeyRow) -> Result<bool, StoreError> {
    let time = |at: Option<Timestamp>| at.map(|at| at.0);
    let n = db.prepare_cached(CREATE)?.execute(params![
        row.id.as_str(),
        project.as_str(),
        row.hash.0,
        row.name,
        word(&row.role),
        row.may_script,
        json(&row.scope),
        row.created_at.0,
        row.created_by,
        time(row.term.expires_at),
        time(row.term.revoked_at),
        time(row.used_at),
    ])?;
    Ok(n == 1)
}

fn rotate(
    db: &Connection,
    project: &Project,
    id: ApiKeyId,
    ends_at: Timestamp,
    successor: &ApiKeyRow,
) -> Result<bool, StoreError> {
    let given = params![project.as_str(), id.as_str(), ends_at.0, successor.id.as_str()];
    let is_there = db.prepare_cached(END)?.execute(given)? == 1;
    Ok(is_there && create(db, project, successor)?)
}

fn list(
    db: &ReadConnection,
    project: &Project,
    after: Option<ApiKeyId>,
    limit: usize,
) -> Result<Vec<ApiKeyRow>, StoreError> {
    let after = after.map(String::from).unwrap_or_default();
    let project = project.as_str().to_owned();
    let given = |limit: i64| vec![project.clone().into(), after.clone().into(), limit.into()];
    db.first_rows(&table::API_KEYS, LIST, limit, given, read)
}

#[async_trait]
impl ApiKeyStore for Sqlite {
    async fn create_api_key(&self, project: &Project, row: ApiKeyRow) -> Result<bool, StoreError> {
        let project = project.clone();
        self.writer.write(move |cache| create(cache.db(), &project, &row))?.await
    }

    async fn api_key(&self, id: ApiKeyId) -> Result<Option<ApiKeyRow>, StoreError> {
        self.read(move |db| db.one(&table::API_KEYS, ONE, [id.as_str()], read)).await
    }

    async fn api_keys(
        &self,
        project: &Project,
        after: Option<ApiKeyId>,
        limit: usize,
    ) -> Result<Vec<ApiKeyRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| list(db, &project, after, limit)).await
    }

    async fn has_api_keys(&self) -> Result<bool, StoreError> {
        self.read(|db| Ok(db.connection.prepare_cached(ANY)?.query_row([], |row| row.get(0))?)).await
    }

    async fn revoke_api_key(
        &self,
        project: &Project,
        id: ApiKeyId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let project = project.clone();
        let revoke = move |db: &Connection| -> Result<bool, StoreError> {
            let given = params![project.as_str(), id.as_str(), now.0];
            Ok(db.prepare_cached(REVOKE)?.execute(given)? == 1)
        };
        self.writer.write(move |cache| revoke(cache.db()))?.await
    }

    async fn rotate_api_key(
        &self,
        project: &Project,
        id: ApiKeyId,
        ends_at: Timestamp,
        successor: ApiKeyRow,
    ) -> Result<bool, StoreError> {
        let project = project.clone();
        self.writer.write(move |cache| rotate(cache.db(), &project, id, ends_at, &successor))?.await
    }

    async fn save_api_key_uses(&self, uses: Vec<(ApiKeyId, Timestamp)>) -> Result<(), StoreError> {
        let save = move |db: &Connection| -> Result<(), StoreError> {
            let mut statement = db.prepare_cached(USE)?;
            for (id, at) in &uses {
                statement.execute(params![id.as_str(), at.0])?;
            }
            Ok(())
        };
        self.writer.write(move |cache| save(cache.db()))?.await
    }
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[CREATE, ONE, LIST, ANY, REVOKE, END, USE];
