//! Blobs, and the runs that refer to them.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::id::RunId;
use windlass_engine::params::{Blob, ParamLayer};
use windlass_engine::project::Project;

use super::column::{Key, SqliteId};
use crate::blob::{self, BlobCache, FoundBlobs, RefersToBlobs, blob_of};
use crate::error::StoreError;

const READ: &str = "SELECT bytes FROM blobs WHERE project = ?1 AND hash = ?2";
const FIND: &str = "SELECT 1 FROM blobs WHERE project = ?1 AND hash = ?2";
const KEEP: &str = "INSERT INTO blobs (project, hash, bytes) VALUES (?1, ?2, ?3)";
const REFER: &str = "INSERT INTO blob_refs (project, hash, run) VALUES (?1, ?2, ?3) \
     ON CONFLICT (project, hash, run) DO NOTHING";
const REFS_OF_RUN: &str = "SELECT hash FROM blob_refs WHERE run = ?1";
const FORGET_REFS: &str = "DELETE FROM blob_refs WHERE run = ?1";
const FORGET: &str = "DELETE FROM blobs WHERE project = ?1 AND hash = ?2 \
     AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE project = ?1 AND hash = ?2)";

/// The blobs with these hashes, as far as they are there.
pub(super) fn blobs(
    db: &Connection,
    cache: &BlobCache,
    project: &Project,
    hashes: BTreeSet<String>,
) -> Result<FoundBlobs, StoreError> {
    let mut found = FoundBlobs::new();
    for hash in hashes {
        if let Some(layer) = cache.find(project, &hash) {
            found.insert(hash, layer);
            continue;
        }
        let bytes = db
            .prepare_cached(READ)?
            .query_row(params![project.as_str(), hash], |row| Ok(row.get_ref(0)?.as_blob()?.to_vec()));
        if let Some(bytes) = bytes.optional()? {
            let layer = cache.keep(project, &blob::read(&hash, &bytes)?);
            found.insert(hash, layer);
        }
    }
    Ok(found)
}

/// Replaces the references of a row.
pub(super) fn resolve(
    db: &Connection,
    cache: &BlobCache,
    project: &Project,
    row: &mut impl RefersToBlobs,
) -> Result<(), StoreError> {
    let hashes = blob::referenced([&*row]);
    if !hashes.is_empty() {
        row.resolve_blobs(&blobs(db, cache, project, hashes)?)?;
    }
    Ok(())
}

/// A run refers to these from now on.
pub(super) fn write(
    db: &Connection,
    project: &Project,
    run: RunId,
    layers: &[Arc<ParamLayer>],
) -> Result<(), StoreError> {
    for layer in layers {
        let Blob { hash, text } = blob_of(layer);
        // Most are there already, and need not be bound.
        if !db.prepare_cached(FIND)?.exists(params![project.as_str(), hash])? {
            db.prepare_cached(KEEP)?.execute(params![project.as_str(), hash, text.as_bytes()])?;
        }
        db.prepare_cached(REFER)?.execute(params![project.as_str(), hash, run.key()])?;
    }
    Ok(())
}

/// Deletes the blobs that only this run refers to.
pub(super) fn forget(db: &Connection, project: &Project, run: Key) -> Result<(), StoreError> {
    let hashes: Vec<String> = db
        .prepare_cached(REFS_OF_RUN)?
        .query_map([run], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    if hashes.is_empty() {
        return Ok(());
    }
    db.prepare_cached(FORGET_REFS)?.execute([run])?;
    for hash in hashes {
        db.prepare_cached(FORGET)?.execute(params![project.as_str(), hash])?;
    }
    Ok(())
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[READ, FIND, KEEP, REFER, REFS_OF_RUN, FORGET_REFS, FORGET];
