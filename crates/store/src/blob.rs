//! Blobs: large layers of parameters. A blob is stored once per project, under the hash of its bytes; journals, jobs and
//! messages refer to it, and it is deleted with the last run that does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use windlass_engine::effect::Order;
use windlass_engine::params::{Blob, MissingBlob, ParamLayer, Params, StoredLayer};
use windlass_engine::project::Project;

use crate::commit::Commit;
use crate::error::StoreError;

/// The field of a call's payload with parameters in the stored form, in place of `params`.
const STORED: &str = "params_in";

/// Blobs by hash.
pub type FoundBlobs = BTreeMap<String, Arc<ParamLayer>>;

/// The hash of a blob: SHA-256, in hexadecimal digits.
pub fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The blob of a large layer.
pub fn blob_of(layer: &ParamLayer) -> &Blob {
    layer.blob(hash)
}

/// The payload of the job that carries a call.
pub(crate) fn call_payload(order: &Order) -> Value {
    let mut payload = json!({
        "input": *order.input,
        "node": order.node,
        "attempt": order.attempt,
        "key": order.key,
    });
    match order.params.stored(hash) {
        Some(stored) => payload[STORED] = json!(stored),
        None => payload["params"] = json!(order.params),
    }
    payload
}

/// The parameters in the payload of a call's job, in the stored form; `None` if they stand there themselves.
fn stored_params(payload: &Value) -> Option<Vec<StoredLayer>> {
    Vec::deserialize(payload.get(STORED)?).ok()
}

/// The hashes of the blobs that the payload of a call's job refers to.
pub fn blobs_of_call(payload: &Value) -> Vec<String> {
    let layers = stored_params(payload).unwrap_or_default();
    layers.iter().filter_map(StoredLayer::hash).map(str::to_owned).collect()
}

/// The bytes that the payload of a call's job grows by when its parameters are written out.
pub fn referenced_bytes(payload: &Value) -> usize {
    stored_params(payload).unwrap_or_default().iter().map(StoredLayer::bytes).sum()
}

/// The parameters of a call, from the payload of its job.
pub fn params_of_call(payload: &Value, found: &FoundBlobs) -> Result<Params, MissingBlob> {
    match stored_params(payload) {
        Some(layers) => StoredLayer::resolve(&layers, |hash| found.get(hash).cloned()),
        None => {
            Ok(payload.get("params").and_then(|params| Params::deserialize(params).ok()).unwrap_or_default())
        }
    }
}

/// The payload of a call's job with its parameters written out.
pub fn written_out(mut payload: Value, found: &FoundBlobs) -> Result<Value, MissingBlob> {
    let params = params_of_call(&payload, found)?;
    if let Some(fields) = payload.as_object_mut()
        && fields.remove(STORED).is_some()
    {
        fields.insert("params".to_owned(), Value::Object(params.to_map()));
    }
    Ok(payload)
}

impl From<MissingBlob> for StoreError {
    fn from(missing: MissingBlob) -> Self {
        StoreError::Corrupt(missing.to_string())
    }
}

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

impl RefersToBlobs for windlass_engine::journal::Entry {
    fn add_blobs(&self, hashes: &mut BTreeSet<String>) {
        hashes.extend(self.blobs().map(str::to_owned));
    }

    fn resolve_blobs(&mut self, found: &FoundBlobs) -> Result<(), MissingBlob> {
        self.resolve(|hash| found.get(hash).cloned())
    }
}

impl RefersToBlobs for crate::outbox::Message {
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
    use super::*;

    fn layer(fill: &str) -> Arc<ParamLayer> {
        Arc::new([("text".to_owned(), Arc::new(json!(fill.repeat(5_000))))].into_iter().collect())
    }

    #[test]
    fn the_hash_is_sha_256() {
        assert_eq!(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
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
        for n in 0..10_000 {
            cache.keep(&Project::DEFAULT, &layer(&n.to_string()));
        }
        let state = cache.state();
        assert!(state.recent_bytes <= RECENT_BYTES);
        assert!(state.known.len() < 5_000, "{}", state.known.len());
    }
}
