//! Blobs: large layers of parameters. A blob is stored once per project, under the hash of its bytes; journals, jobs and
//! messages refer to it, and it is deleted with the last run that does.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod cache;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use windlass_engine::effect::CallSpec;
use windlass_engine::params::{Blob, MissingBlob, ParamLayer, Params, StoredLayer};
use windlass_engine::raw_json::RawJson;

use crate::error::StoreError;
use crate::job::JobRow;

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) use cache::{BlobCache, RefersToBlobs, read, referenced};

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
pub(crate) fn call_payload(spec: &CallSpec) -> RawJson {
    let mut payload = json!({
        "input": *spec.input,
        "node": spec.node,
        "attempt": spec.attempt,
        "key": spec.key,
    });
    match spec.params.stored(hash) {
        Some(stored) => payload[STORED] = json!(stored),
        None => payload["params"] = json!(spec.params),
    }
    RawJson::from(payload)
}

/// A call, read from the payload of the job that carries it.
#[derive(Debug, Deserialize)]
pub struct StoredCall {
    #[serde(default)]
    pub input: RawJson,
    pub attempt: u32,
    /// The idempotency key.
    pub key: String,
    #[serde(default)]
    params: Params,
    params_in: Option<Vec<StoredLayer>>,
}

impl StoredCall {
    pub fn read(payload: &RawJson) -> Result<Self, StoreError> {
        payload.read().map_err(|error| StoreError::Corrupt(format!("the payload of a call: {error}")))
    }

    /// The parameters; `found` has the large ones.
    pub fn params(&self, found: &FoundBlobs) -> Result<Params, MissingBlob> {
        match &self.params_in {
            Some(layers) => StoredLayer::resolve(layers, |hash| found.get(hash).cloned()),
            None => Ok(self.params.clone()),
        }
    }
}

/// The parameters in the payload of a call's job, in the stored form; `None` if they stand there themselves.
fn stored_params(payload: &RawJson) -> Option<Vec<StoredLayer>> {
    #[derive(Deserialize)]
    struct StoredParams {
        params_in: Vec<StoredLayer>,
    }
    // Few calls have large parameters; the texts of the others are not read.
    let has_some = payload.as_str().contains(STORED);
    has_some.then(|| payload.read::<StoredParams>().ok())?.map(|stored| stored.params_in)
}

/// The stored parameters of the call that a job carries. The payload of a plain job is its client's.
fn layers_of(row: &JobRow) -> Vec<StoredLayer> {
    row.origin.call.as_ref().and_then(|_| stored_params(&row.job.spec.payload)).unwrap_or_default()
}

/// The hashes of the blobs that jobs refer to.
pub fn blobs_of_jobs<'r>(rows: impl IntoIterator<Item = &'r JobRow>) -> BTreeSet<String> {
    let layers = rows.into_iter().flat_map(layers_of);
    layers.filter_map(|layer| layer.hash().map(str::to_owned)).collect()
}

/// The bytes that a job grows by when the parameters that it refers to are written out.
pub fn referenced_bytes(row: &JobRow) -> usize {
    layers_of(row).iter().map(StoredLayer::bytes).fold(0, usize::saturating_add)
}

/// The payload of a call's job with its parameters written out.
pub fn written_out(payload: &RawJson, found: &FoundBlobs) -> Result<RawJson, MissingBlob> {
    let Some(layers) = stored_params(payload) else { return Ok(payload.clone()) };
    let params = StoredLayer::resolve(&layers, |hash| found.get(hash).cloned())?;
    let mut value = payload.value();
    if let Some(fields) = value.as_object_mut() {
        fields.remove(STORED);
        fields.insert("params".to_owned(), Value::Object(params.to_map()));
    }
    Ok(RawJson::from(value))
}

impl From<MissingBlob> for StoreError {
    fn from(missing: MissingBlob) -> Self {
        StoreError::Corrupt(missing.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_sha_256() {
        assert_eq!(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
