//! API keys.

use async_trait::async_trait;
use tokio_postgres::Row;
use windlass_engine::access::api_key::ApiKeyId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, cells, text};
use super::link::Link;
use super::{ErrorClass, Postgres, RACES_MAX, kind, unless_raced};
use crate::api_key::{ApiKeyRow, ApiKeyStore};
use crate::column::{Columns, json, word};
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

const CREATE: &str = "INSERT INTO api_keys (id, project, hash, name, role, may_script, scope, created_at, \
     created_by, expires_at, revoked_at, used_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING";
const ONE: &str = api_keys!("WHERE id = $1");
const LIST: &str = api_keys!("WHERE project = $1 AND id > $2 ORDER BY id LIMIT $3");
const ANY: &str = "SELECT EXISTS (SELECT 1 FROM api_keys)";
const REVOKE: &str =
    "UPDATE api_keys SET revoked_at = coalesce(revoked_at, $3) WHERE id = $2 AND project = $1";
const END: &str = "UPDATE api_keys SET expires_at = least(expires_at, $3) \
     WHERE id = $2 AND project = $1 AND revoked_at IS NULL \
     AND NOT EXISTS (SELECT 1 FROM api_keys AS other WHERE other.id = $4)";
// In the order of ids, so that two servers that write the same rows wait for each other instead of a deadlock.
const USE: &str = "WITH held AS (SELECT api_keys.id, new.at FROM api_keys \
     JOIN UNNEST($1::text[], $2::bigint[]) AS new (id, at) ON new.id = api_keys.id \
     ORDER BY api_keys.id FOR NO KEY UPDATE OF api_keys) \
     UPDATE api_keys SET used_at = greatest(used_at, held.at) FROM held WHERE held.id = api_keys.id";

fn read(row: &Row) -> Result<ApiKeyRow, StoreError> {
    decode::api_key(&mut PostgresColumns::of(row))
}

async fn create(db: &Link, project: &Project, row: &ApiKeyRow) -> Result<bool, StoreError> {
    let time = |at: Option<Timestamp>| at.map(|at| at.0);
    let cells = cells![
        row.id.as_str(),
        project.as_str(),
        row.hash.0.to_vec(),
        text(&row.name),
        word(&row.role),
        row.may_script,
        json(&row.scope),
        row.created_at.0,
        text(&row.created_by),
        time(row.term.expires_at),
        time(row.term.revoked_at),
        time(row.used_at),
    ];
    Ok(db.execute(CREATE, &cells).await? == 1)
}

/// Writes the successor of a key, in the caller's transaction.
async fn rotate(
    db: &Link,
    project: &Project,
    id: ApiKeyId,
    ends_at: Timestamp,
    successor: &ApiKeyRow,
) -> Result<bool, StoreError> {
    let given = cells![project.as_str(), id.as_str(), ends_at.0, successor.id.as_str()];
    let is_there = db.execute(END, &given).await? == 1;
    Ok(is_there && create(db, project, successor).await?)
}

#[async_trait]
impl ApiKeyStore for Postgres {
    async fn create_api_key(&self, project: &Project, row: ApiKeyRow) -> Result<bool, StoreError> {
        let db = self.link().await?;
        let is_new = unless_raced!(create(&db, project, &row))?;
        self.tell_of_settings();
        Ok(is_new)
    }

    async fn api_key(&self, id: ApiKeyId) -> Result<Option<ApiKeyRow>, StoreError> {
        let db = self.by_key().await?;
        let row = db.ask_one(ONE, &cells![id.as_str()]).await?;
        db.one(&table::API_KEYS, row.as_ref(), read)
    }

    async fn api_keys(
        &self,
        project: &Project,
        after: Option<ApiKeyId>,
        limit: usize,
    ) -> Result<Vec<ApiKeyRow>, StoreError> {
        let after = after.map(String::from).unwrap_or_default();
        let given = |limit| cells![project.as_str(), after.clone(), limit];
        self.link().await?.first_rows(&table::API_KEYS, LIST, limit, given, read).await
    }

    async fn has_api_keys(&self) -> Result<bool, StoreError> {
        let row = self.link().await?.ask_one(ANY, &[]).await?;
        row.as_ref().map_or(Ok(false), |row| PostgresColumns::of(row).flag())
    }

    async fn revoke_api_key(
        &self,
        project: &Project,
        id: ApiKeyId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let db = self.link().await?;
        let given = cells![project.as_str(), id.as_str(), now.0];
        let n = unless_raced!(db.execute(REVOKE, &given))?;
        self.tell_of_settings();
        Ok(n == 1)
    }

    async fn rotate_api_key(
        &self,
        project: &Project,
        id: ApiKeyId,
        ends_at: Timestamp,
        successor: ApiKeyRow,
    ) -> Result<bool, StoreError> {
        let db = self.link().await?;
        let is_there = unless_raced!(db.transact(rotate(&db, project, id, ends_at, &successor)))?;
        self.tell_of_settings();
        Ok(is_there)
    }

    async fn save_api_key_uses(&self, uses: Vec<(ApiKeyId, Timestamp)>) -> Result<(), StoreError> {
        let db = self.link().await?;
        let (ids, times): (Vec<String>, Vec<i64>) =
            uses.into_iter().map(|(id, at)| (String::from(id), at.0)).unzip();
        let given = cells![ids, times];
        unless_raced!(db.execute(USE, &given))?;
        Ok(())
    }
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[CREATE, ONE, LIST, ANY, REVOKE, END, USE];
