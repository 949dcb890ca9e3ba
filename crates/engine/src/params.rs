//! Parameters in force at a node: those of its scope and its own. They are looked up in two layers and only laid
//! over each other where they are written out, so that a fan of many branches does not copy the run's parameters
//! for each of them.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// Parameters in two layers. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Params {
    strong: Arc<Map<String, Value>>,
    weak: Arc<Map<String, Value>>,
}

impl Params {
    /// Parameters of one layer.
    pub fn of(all: Arc<Map<String, Value>>) -> Self {
        Params { strong: all, weak: Arc::default() }
    }

    /// Parameters where those in `strong` win.
    pub fn layered(strong: Arc<Map<String, Value>>, weak: Arc<Map<String, Value>>) -> Self {
        Params { strong, weak }
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.strong.get(key).or_else(|| self.weak.get(key))
    }

    pub fn is_empty(&self) -> bool {
        self.strong.is_empty() && self.weak.is_empty()
    }

    /// Both layers as one map; shared, not copied, when there is only one.
    pub fn merged(&self) -> Arc<Map<String, Value>> {
        if self.weak.is_empty() {
            return self.strong.clone();
        }
        if self.strong.is_empty() {
            return self.weak.clone();
        }
        let mut all = (*self.weak).clone();
        all.extend(self.strong.iter().map(|(key, value)| (key.clone(), value.clone())));
        Arc::new(all)
    }
}

impl From<Map<String, Value>> for Params {
    fn from(all: Map<String, Value>) -> Self {
        Params::of(Arc::new(all))
    }
}

/// Two are equal when they say the same, however they are layered.
impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.merged() == other.merged()
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.merged().serialize(to)
    }
}

/// As JSON.
impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Arc<Map<String, Value>> {
        Arc::new(value.as_object().unwrap().clone())
    }

    #[test]
    fn the_strong_layer_wins_and_both_are_seen() {
        let params = Params::layered(map(json!({"a": 1, "b": 2})), map(json!({"b": 3, "c": 4})));
        assert_eq!(params.get("b"), Some(&json!(2)));
        assert_eq!(params.get("c"), Some(&json!(4)));
        assert_eq!(params.get("d"), None);
        assert_eq!(params.to_string(), r#"{"a":1,"b":2,"c":4}"#);
        assert_eq!(params, Params::of(map(json!({"a": 1, "b": 2, "c": 4}))));
        assert_ne!(params, Params::default());
    }

    #[test]
    fn one_layer_is_shared_not_copied() {
        let only = map(json!({"a": 1}));
        assert!(Arc::ptr_eq(&only, &Params::layered(Arc::default(), only.clone()).merged()));
        assert!(Arc::ptr_eq(&only, &Params::layered(only.clone(), Arc::default()).merged()));
    }
}
