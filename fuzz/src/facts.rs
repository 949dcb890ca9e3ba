//! Facts as strange as the input that describes them.

use std::borrow::Cow;

use serde_json::{Value, json};
use windlass_engine::reference::{Facts, Root};

/// One value under every root, lent or made on demand: engines have both kinds.
pub struct Everywhere {
    value: Value,
    made: bool,
}

impl Everywhere {
    /// Reads the value as JSON; what is none leaves a bit of everything.
    pub fn of(bytes: &[u8]) -> Everywhere {
        let value = serde_json::from_slice(bytes).unwrap_or_else(|_| {
            json!({
                "n": 7, "s": "text", "b": true, "z": null, "u": u64::MAX, "i": i64::MIN, "e": "",
                "l": [1, [2], {"k": null}, "text"],
                "o": {"a": {"b": -1.5e300}, "urls": ["u0"], "action": "approved"},
                "d": "2026-11-15T09:00:00+08:00", "resources": [{"url": "r0"}, {}, 3],
            })
        });
        Everywhere { value, made: bytes.len() % 2 == 1 }
    }

    fn lend<'a>(&self, value: &'a Value) -> Cow<'a, Value> {
        if self.made { Cow::Owned(value.clone()) } else { Cow::Borrowed(value) }
    }
}

impl Facts for Everywhere {
    fn root(&self, _: &Root) -> Option<Cow<'_, Value>> {
        Some(self.lend(&self.value))
    }

    fn field(&self, _: &Root, key: &str) -> Option<Cow<'_, Value>> {
        self.value.get(key).map(|value| self.lend(value))
    }
}
