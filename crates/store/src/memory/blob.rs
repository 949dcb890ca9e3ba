//! Blobs, and the runs that refer to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_engine::id::RunId;
use windlass_engine::params::ParamLayer;

use crate::blob::{FoundBlobs, blob_of};
use crate::error::StoreError;

#[derive(Debug, Default)]
pub(super) struct BlobTable {
    blobs: BTreeMap<String, Arc<ParamLayer>>,
    runs: BTreeMap<RunId, BTreeSet<String>>,
}

impl BlobTable {
    pub(super) fn blobs(&self, hashes: BTreeSet<String>) -> Result<FoundBlobs, StoreError> {
        let find = |hash: String| Some((hash.clone(), self.blobs.get(&hash)?.clone()));
        Ok(hashes.into_iter().filter_map(find).collect())
    }

    /// A run refers to these from now on.
    pub(super) fn keep(&mut self, run: RunId, layers: Vec<Arc<ParamLayer>>) {
        for layer in layers {
            let hash = blob_of(&layer).hash.clone();
            self.runs.entry(run).or_default().insert(hash.clone());
            self.blobs.entry(hash).or_insert(layer);
        }
    }

    /// Deletes the blobs that only this run refers to.
    pub(super) fn forget(&mut self, run: RunId) {
        for hash in self.runs.remove(&run).unwrap_or_default() {
            if !self.runs.values().any(|hashes| hashes.contains(&hash)) {
                self.blobs.remove(&hash);
            }
        }
    }
}
