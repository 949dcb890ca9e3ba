//! Blobs as SQL backends read them: references of rows are resolved, and each blob is in memory once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use windlass_engine::journal::Entry;
use windlass_engine::params::{MissingBlob, ParamLayer, StoredLayer};
use windlass_engine::project::Project;

use super::{FoundBlobs, blob_of};
use crate::commit::Commit;
use crate::error::StoreError;
use crate::outbox::Message;

/// A row that the store reads, and that may refer to blobs.
pub(crate) trait RefersToBlobs {
    fn add_blobs(&self, hashes: &mut BTreeSet<String>);
    fn resolve_blobs(&mut self, found: &FoundBlobs) -> Result<(), MissingBlob>;
}

/// The hashes that rows refer to.
pub(crate) fn referenced<'r, R: RefersToBlobs + 'r>(
    rows: impl IntoIterator<Item = &'r R>,
) -> BTreeSet<String> {
    let mut hashes = BTreeSet::new();
    rows.into_iter().for_each(|row| row.add_blobs(&mut hashes));
    hashes
}

impl RefersToBlobs for Entry {
    fn add_blobs(&self, hashes: &mut BTreeSet<String>) {
        hashes.extend(self.blobs().map(str::to_owned));
    }

    fn resolve_blobs(&mut self, found: &FoundBlobs) -> Result<(), MissingBlob> {
        self.resolve(|hash| found.get(hash).cloned())
    }
}

impl RefersToBlobs for Message {
    fn add_blobs(&self, hashes: &mut BTreeSet<String>) {
        hashes.extend(self.note.stored_layers().iter().filter_map(StoredLayer::hash).map(str::to_owned));
    }

    fn resolve_blobs(&mut self, found: &FoundBlobs) -> Result<(), MissingBlob> {
        self.note.resolve(|hash| found.get(hash).cloned())
    }
}

/// Bytes of blobs that stay in memory although nothing refers to them at the moment.
const RECENT_BYTES: usize = 16 << 20;
/// Entries of the cache between two searches for blobs that are gone.
const SWEEP_ENTRIES: usize = 1_024;

/// Blobs in memory: everything that refers to a blob shares one, however often it is read.
#[derive(Debug, Default)]
pub(crate) struct BlobCache {
    state: Mutex<CachedBlobs>,
}

#[derive(Debug, Default)]
struct CachedBlobs {
    known: BTreeMap<(Project, String), Weak<ParamLayer>>,
    /// The newest last.
    recent: VecDeque<Arc<ParamLayer>>,
    recent_bytes: usize,
    sweep_at: usize,
}

impl BlobCache {
    fn state(&self) -> MutexGuard<'_, CachedBlobs> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A blob, if it is in memory.
    pub(crate) fn find(&self, project: &Project, hash: &str) -> Option<Arc<ParamLayer>> {
        self.state().known.get(&(project.clone(), hash.to_owned()))?.upgrade()
    }

    /// Keeps a blob that was read or written. Returns the one that is in memory already, if there is one.
    pub(crate) fn keep(&self, project: &Project, layer: &Arc<ParamLayer>) -> Arc<ParamLayer> {
        let mut state = self.state();
        let key = (project.clone(), blob_of(layer).hash.clone());
        if let Some(known) = state.known.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        state.known.insert(key, Arc::downgrade(layer));
        state.recent_bytes += layer.bytes();
        state.recent.push_back(layer.clone());
        while state.recent_bytes > RECENT_BYTES
            && let Some(oldest) = state.recent.pop_front()
        {
            state.recent_bytes -= oldest.bytes();
        }
        if state.known.len() >= state.sweep_at {
            state.known.retain(|_, layer| layer.strong_count() > 0);
            state.sweep_at = SWEEP_ENTRIES.max(2 * state.known.len());
        }
        layer.clone()
    }

    /// Keeps the blobs of commits.
    pub(crate) fn keep_all(&self, commits: &[Commit]) {
        for commit in commits {
            for layer in &commit.blobs {
                self.keep(&commit.project, layer);
            }
        }
    }

    /// Forgets all blobs: some were deleted.
    pub(crate) fn clear(&self) {
        *self.state() = CachedBlobs::default();
    }
}

/// Reads the stored form of a blob.
pub(crate) fn read(hash: &str, bytes: &[u8]) -> Result<Arc<ParamLayer>, StoreError> {
    let unreadable = |reason: String| StoreError::Corrupt(format!("blob {hash}: {reason}"));
    let text = std::str::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
    let layer = ParamLayer::from_blob(hash, text).map_err(|error| unreadable(error.to_string()))?;
    Ok(Arc::new(layer))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn layer(fill: &str) -> Arc<ParamLayer> {
        Arc::new([("text".to_owned(), Arc::new(json!(fill.repeat(5_000))))].into_iter().collect())
    }

    #[test]
    fn a_blob_in_memory_is_shared_within_its_project() {
        let (cache, first, other) = (BlobCache::default(), Project::DEFAULT, Project::new("other").unwrap());
        let kept = cache.keep(&first, &layer("a"));
        assert!(Arc::ptr_eq(&cache.keep(&first, &layer("a")), &kept));
        assert!(Arc::ptr_eq(&cache.find(&first, &blob_of(&kept).hash).unwrap(), &kept));
        assert!(cache.find(&other, &blob_of(&kept).hash).is_none());
        assert!(cache.find(&first, &blob_of(&layer("b")).hash).is_none());
    }

    #[test]
    fn blobs_that_nothing_refers_to_leave_the_memory() {
        let cache = BlobCache::default();
        let hash_of = |n: usize| blob_of(&layer(&format!("{n:05}"))).hash.clone();
        for n in 0..900 {
            cache.keep(&Project::DEFAULT, &layer(&format!("{n:05}")));
        }
        assert!(cache.state().recent_bytes <= RECENT_BYTES);
        assert!(cache.find(&Project::DEFAULT, &hash_of(0)).is_none());
        assert!(cache.find(&Project::DEFAULT, &hash_of(899)).is_some());
    }
}
