//! Parameters in force at a node: layers that never change and are shared by everything that holds them, so that a fan
//! of many branches copies none of them, however large they are.
//!
//! A stored row holds small layers inline. A large layer is a blob: stored once, and named by its hash.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::limits::INLINE_PARAMS_BYTES;
use crate::weight::{Excess, weigh};

/// One layer of parameters.
#[derive(Debug, Default)]
pub struct ParamLayer {
    fields: BTreeMap<String, Arc<Value>>,
    weight: OnceLock<LayerWeight>,
    blob: OnceLock<Blob>,
}

/// The weight of a layer: each is weighed once, however many runs and calls have it.
#[derive(Debug)]
struct LayerWeight {
    bytes: usize,
    excess: Vec<(String, Excess)>,
}

/// The stored form of a large layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    pub hash: String,
    /// The fields as JSON.
    pub text: Arc<str>,
}

impl ParamLayer {
    fn weight(&self) -> &LayerWeight {
        self.weight.get_or_init(|| {
            let mut weight = LayerWeight { bytes: 2, excess: Vec::new() };
            for (key, value) in &self.fields {
                match weigh(value) {
                    Ok(bytes) => weight.bytes = weight.bytes.saturating_add(bytes + key.len() + 4),
                    Err(excess) => weight.excess.push((key.clone(), excess)),
                }
            }
            weight
        })
    }

    /// The bytes of the layer, about as JSON would have them.
    pub fn bytes(&self) -> usize {
        self.weight().bytes
    }

    /// Whether rows hold it by reference.
    pub fn is_large(&self) -> bool {
        self.bytes() > INLINE_PARAMS_BYTES
    }

    /// The fields as JSON, and their hash, which is computed once.
    pub fn blob(&self, hash: impl FnOnce(&str) -> String) -> &Blob {
        self.blob.get_or_init(|| {
            let text = serde_json::to_string(&self.fields).expect("values are plain data with string keys");
            Blob { hash: hash(&text), text: text.into() }
        })
    }

    /// Reads the stored form.
    pub fn from_blob(hash: &str, text: &str) -> Result<Self, serde_json::Error> {
        let layer = ParamLayer { fields: serde_json::from_str(text)?, ..ParamLayer::default() };
        let _ = layer.blob.set(Blob { hash: hash.to_owned(), text: text.into() });
        Ok(layer)
    }
}

impl FromIterator<(String, Arc<Value>)> for ParamLayer {
    fn from_iter<I: IntoIterator<Item = (String, Arc<Value>)>>(fields: I) -> Self {
        ParamLayer { fields: fields.into_iter().collect(), ..ParamLayer::default() }
    }
}

impl PartialEq for ParamLayer {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl Serialize for ParamLayer {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.fields.serialize(to)
    }
}

impl<'de> Deserialize<'de> for ParamLayer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(ParamLayer { fields: BTreeMap::deserialize(from)?, ..ParamLayer::default() })
    }
}

/// Parameters in layers, the strongest first. Cheap to clone. Written out, they are one object.
#[derive(Debug, Clone, Default)]
pub struct Params {
    layers: Vec<Arc<ParamLayer>>,
}

impl Params {
    /// Parameters of these layers, the strongest first.
    pub fn of(layers: impl IntoIterator<Item = Arc<ParamLayer>>) -> Self {
        Params { layers: layers.into_iter().filter(|layer| !layer.fields.is_empty()).collect() }
    }

    /// These parameters, and `weaker` where these have no field of the name.
    #[must_use]
    pub fn over(mut self, weaker: &Params) -> Self {
        self.layers.extend_from_slice(&weaker.layers);
        self
    }

    pub fn layers(&self) -> &[Arc<ParamLayer>] {
        &self.layers
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.layers.iter().find_map(|layer| layer.fields.get(key)).map(|value| &**value)
    }

    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// All fields, as they are looked up.
    pub fn fields(&self) -> BTreeMap<&str, &Arc<Value>> {
        let weakest_first = self.layers.iter().rev();
        weakest_first.flat_map(|layer| &layer.fields).map(|(key, value)| (key.as_str(), value)).collect()
    }

    /// A copy as one object.
    pub fn to_map(&self) -> Map<String, Value> {
        self.fields().into_iter().map(|(key, value)| (key.to_owned(), (**value).clone())).collect()
    }

    /// The bytes of all layers, about as JSON would have them.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(|layer| layer.bytes()).sum()
    }

    /// Fields that cannot be kept, with the reason.
    pub fn excess(&self) -> impl Iterator<Item = (&str, Excess)> {
        let fields = self.layers.iter().flat_map(|layer| &layer.weight().excess);
        fields.map(|(key, excess)| (key.as_str(), *excess))
    }

    /// The large layers.
    pub fn large(&self) -> impl Iterator<Item = &Arc<ParamLayer>> {
        self.layers.iter().filter(|layer| layer.is_large())
    }

    /// The same with neighbouring small layers as one: flows that call flows would otherwise pile them up. Values stay
    /// shared.
    #[must_use]
    pub fn compact(self) -> Self {
        let mut layers: Vec<Arc<ParamLayer>> = Vec::with_capacity(self.layers.len());
        for layer in self.layers {
            match layers.last_mut() {
                Some(stronger) if !stronger.is_large() && !layer.is_large() => {
                    let both = layer.fields.iter().chain(&stronger.fields);
                    *stronger = Arc::new(both.map(|(key, value)| (key.clone(), value.clone())).collect());
                }
                Some(_) | None => layers.push(layer),
            }
        }
        Params { layers }
    }

    /// The stored form, with large layers by reference; `None` if no layer is large.
    pub fn stored(&self, hash: impl Fn(&str) -> String) -> Option<Vec<StoredLayer>> {
        self.large().next()?;
        let stored = |layer: &Arc<ParamLayer>| {
            if !layer.is_large() {
                return StoredLayer::Inline { inline: layer.clone() };
            }
            let blob = layer.blob(&hash);
            StoredLayer::Blob { hash: blob.hash.clone(), bytes: blob.text.len() }
        };
        Some(self.layers.iter().map(stored).collect())
    }
}

impl From<Map<String, Value>> for Params {
    fn from(all: Map<String, Value>) -> Self {
        Params::of([Arc::new(all.into_iter().map(|(key, value)| (key, Arc::new(value))).collect())])
    }
}

/// Two are equal when they say the same, however they are layered.
impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(one, other): (&Arc<ParamLayer>, &Arc<ParamLayer>)| Arc::ptr_eq(one, other);
        let n_layers = self.layers.len();
        n_layers == other.layers.len() && self.layers.iter().zip(&other.layers).all(is_same)
            || self.fields() == other.fields()
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.layers[..] {
            [only] => only.serialize(to),
            _ => self.fields().serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Params::of([Arc::new(ParamLayer::deserialize(from)?)]))
    }
}

/// As JSON.
impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// A layer as rows hold it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StoredLayer {
    Blob {
        #[serde(rename = "blob")]
        hash: String,
        /// The size of the blob.
        bytes: usize,
    },
    /// In a field of its own, so that no parameter can pass for a reference.
    Inline { inline: Arc<ParamLayer> },
}

/// A blob that a row refers to is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("blob {0} is missing")]
pub struct MissingBlob(pub String);

impl StoredLayer {
    /// The hash of its blob, if it is one.
    pub fn hash(&self) -> Option<&str> {
        match self {
            StoredLayer::Blob { hash, .. } => Some(hash),
            StoredLayer::Inline { .. } => None,
        }
    }

    /// About its bytes when it is written out.
    pub fn bytes(&self) -> usize {
        match self {
            StoredLayer::Blob { bytes, .. } => *bytes,
            StoredLayer::Inline { inline } => inline.bytes(),
        }
    }

    /// The parameters of stored layers; `find` knows the blobs.
    pub fn resolve(
        layers: &[StoredLayer],
        find: impl Fn(&str) -> Option<Arc<ParamLayer>>,
    ) -> Result<Params, MissingBlob> {
        let layers = layers.iter().map(|layer| match layer {
            StoredLayer::Blob { hash, .. } => find(hash).ok_or_else(|| MissingBlob(hash.clone())),
            StoredLayer::Inline { inline } => Ok(inline.clone()),
        });
        Ok(Params::of(layers.collect::<Result<Vec<_>, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn params(value: Value) -> Params {
        Params::from(value.as_object().unwrap().clone())
    }

    fn large() -> Params {
        params(json!({"list": vec![1; INLINE_PARAMS_BYTES]}))
    }

    fn hash(text: &str) -> String {
        format!("hash of {} bytes", text.len())
    }

    #[test]
    fn the_strong_layer_wins_and_both_are_seen() {
        let both = params(json!({"a": 1, "b": 2})).over(&params(json!({"b": 3, "c": 4})));
        assert_eq!(both.get("b"), Some(&json!(2)));
        assert_eq!(both.get("c"), Some(&json!(4)));
        assert_eq!(both.get("d"), None);
        assert_eq!(both.to_string(), r#"{"a":1,"b":2,"c":4}"#);
        assert_eq!(both, params(json!({"a": 1, "b": 2, "c": 4})));
        assert_ne!(both, Params::default());
    }

    #[test]
    fn small_neighbours_become_one_layer_and_a_large_one_stays() {
        let (large, small) = (large(), |key: &str| params(json!({ key: 1, "all": key })));
        let all = small("a").over(&small("b")).over(&large).over(&small("c")).over(&small("d"));
        let compact = all.clone().compact();
        assert_eq!(compact, all);
        assert_eq!(compact.get("all"), Some(&json!("a")));
        assert_eq!(compact.layers().len(), 3);
        assert!(Arc::ptr_eq(&compact.layers()[1], &large.layers()[0]));
    }

    #[test]
    fn stored_layers_share_the_blob_when_they_are_resolved() {
        let (large, small) = (large(), params(json!({"blob": "no reference", "bytes": 1})));
        assert_eq!(small.stored(hash), None);
        let all = small.over(&large);
        let stored = all.stored(hash).unwrap();
        let text = serde_json::to_string(&stored).unwrap();
        assert!(text.len() < 200, "{text}");
        let read: Vec<StoredLayer> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, stored);
        let resolved = StoredLayer::resolve(&read, |_| large.layers().first().cloned()).unwrap();
        assert_eq!(resolved, all);
        assert!(Arc::ptr_eq(&resolved.layers()[1], &large.layers()[0]));
        let missing = StoredLayer::resolve(&read, |_| None).unwrap_err();
        assert_eq!(Some(missing.0.as_str()), stored[1].hash());
    }

    #[test]
    fn a_blob_reads_as_it_was_written() {
        let layers = large();
        let blob = layers.layers()[0].blob(hash);
        let read = ParamLayer::from_blob(&blob.hash, &blob.text).unwrap();
        assert_eq!(read, *layers.layers()[0]);
        assert_eq!(read.blob(|_| unreachable!("the hash is known")), blob);
    }

    #[test]
    fn a_value_that_is_too_deep_is_named() {
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        let all = params(json!({"deep": deep, "flat": 1}));
        assert_eq!(all.excess().collect::<Vec<_>>(), [("deep", Excess::Deep)]);
    }
}
