//! Blobs, and the runs that refer to them.
//!
//! A commit locks the blobs that it refers to and finds, and sends the bytes of the others. Retention locks blobs before
//! it looks for references, so that it deletes none that a commit is about to refer to.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::id::RunId;
use windlass_engine::params::ParamLayer;
use windlass_engine::project::Project;

use super::column::{PostgresColumns, PostgresId, cells, unnest};
use super::link::{BoundStatement, Link};
use crate::blob::{self, BlobCache, FoundBlobs, RefersToBlobs, blob_of};
use crate::column::Columns;
use crate::error::StoreError;

const READ: &str = "SELECT hash, bytes FROM blobs WHERE project = $1 AND hash = ANY($2)";
const HOLD: &str = "SELECT hash FROM blobs WHERE hash = ANY($1) AND project = $2 ORDER BY hash FOR KEY SHARE";
// Another transaction may have kept the same blob meanwhile: then this one locks it.
const KEEP: &str = "INSERT INTO blobs (hash, bytes, project) \
     SELECT new.*, $3::text FROM UNNEST($1::text[], $2::bytea[]) AS new (hash, bytes) \
     ON CONFLICT (project, hash) DO UPDATE SET hash = excluded.hash";
const REFER: &str = "INSERT INTO blob_refs (hash, run, project) \
     SELECT new.*, $3::text FROM UNNEST($1::text[], $2::uuid[]) AS new (hash, run) \
     ON CONFLICT (project, hash, run) DO NOTHING";
const FORGET_REFS: &str = "DELETE FROM blob_refs WHERE run = ANY($1) RETURNING project, hash";
const LOCK: &str = "SELECT 1 FROM blobs JOIN UNNEST($1::text[], $2::text[]) AS old (project, hash) \
     ON blobs.project = old.project AND blobs.hash = old.hash ORDER BY blobs.project, blobs.hash FOR UPDATE OF blobs";
const FORGET: &str = "DELETE FROM blobs USING UNNEST($1::text[], $2::text[]) AS old (project, hash) \
     WHERE blobs.project = old.project AND blobs.hash = old.hash AND NOT EXISTS (SELECT 1 FROM blob_refs \
     WHERE blob_refs.project = blobs.project AND blob_refs.hash = blobs.hash)";

/// The blobs with these hashes, as far as they are there.
pub(super) async fn blobs(
    db: &Link,
    cache: &BlobCache,
    project: &Project,
    hashes: BTreeSet<String>,
) -> Result<FoundBlobs, StoreError> {
    let (mut found, mut missing) = (FoundBlobs::new(), Vec::new());
    for hash in hashes {
        match cache.find(project, &hash) {
            Some(layer) => drop(found.insert(hash, layer)),
            None => missing.push(hash),
        }
    }
    if !missing.is_empty() {
        for row in &db.ask(READ, &cells![project.as_str(), missing]).await? {
            let mut columns = PostgresColumns::of(row);
            let (hash, bytes) = (columns.text()?, columns.bytes()?);
            let layer = cache.keep(project, &blob::read(&hash, &bytes)?);
            found.insert(hash, layer);
        }
    }
    Ok(found)
}

/// Replaces the references of rows of one project.
pub(super) async fn resolve<R: RefersToBlobs>(
    db: &Link,
    cache: &BlobCache,
    project: &Project,
    rows: &mut [&mut R],
) -> Result<(), StoreError> {
    let hashes = blob::referenced(rows.iter().map(|row| &**row));
    if hashes.is_empty() {
        return Ok(());
    }
    let found = blobs(db, cache, project, hashes).await?;
    for row in rows {
        row.resolve_blobs(&found)?;
    }
    Ok(())
}

/// Finds blobs, and locks them.
pub(super) fn hold<'a>(hashes: &BTreeSet<&'a str>) -> BoundStatement<'a> {
    BoundStatement::new(HOLD, cells![hashes.iter().copied().collect::<Vec<&'a str>>()])
}

/// Keeps blobs that are not there yet.
pub(super) fn keep<'c>(layers: &[&'c Arc<ParamLayer>]) -> BoundStatement<'c> {
    let cells = unnest!(layers, |layer| [blob_of(layer).hash.as_str(), blob_of(layer).text.as_bytes()]);
    BoundStatement::new(KEEP, cells)
}

/// Runs refer to blobs from now on.
pub(super) fn refer<'c>(refs: &[(&'c str, RunId)]) -> BoundStatement<'c> {
    BoundStatement::new(REFER, unnest!(refs, |(hash, run)| [*hash, run.key()]))
}

/// Deletes the blobs that only these runs refer to.
pub(super) async fn forget(db: &Link, runs: &[Uuid]) -> Result<(), StoreError> {
    let mut old: BTreeSet<(String, String)> = BTreeSet::new();
    for row in &db.ask(FORGET_REFS, &cells![runs]).await? {
        let mut columns = PostgresColumns::of(row);
        old.insert((columns.text()?, columns.text()?));
    }
    if old.is_empty() {
        return Ok(());
    }
    let old: Vec<(String, String)> = old.into_iter().collect();
    let cells = || unnest!(old, |(project, hash)| [project.as_str(), hash.as_str()]);
    db.ask(LOCK, &cells()).await?;
    db.execute(FORGET, &cells()).await?;
    Ok(())
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[READ, HOLD, KEEP, REFER, FORGET_REFS, LOCK, FORGET];
