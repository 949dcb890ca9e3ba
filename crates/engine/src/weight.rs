//! Weight: size and depth of a value. Values that come into a run, or are put together in it, are weighed first: a
//! journal must be able to read back every stored value, and no definition may fill the memory.

use serde_json::Value;

use crate::limits::{SHARED_BYTES, VALUE_DEPTH};
use crate::reference::{Facts, Ref};

/// The limit that a value exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    #[error("is nested deeper than {VALUE_DEPTH} levels")]
    Deep,
    #[error("is larger than {SHARED_BYTES} bytes")]
    Large,
}

/// The bytes of a value, about as JSON would have them; stops as soon as it is too much.
pub fn weigh(value: &Value) -> Result<usize, Excess> {
    weigh_within(value, SHARED_BYTES)
}

/// Whether a value has no more than so many bytes; looks at no more of it than that.
pub fn is_light(value: &Value, bytes: usize) -> bool {
    weigh_within(value, bytes).is_ok()
}

fn weigh_within(value: &Value, most: usize) -> Result<usize, Excess> {
    // Most values are of one piece.
    let alone = match value {
        Value::Null | Value::Bool(_) => Some(4),
        Value::Number(_) => Some(8),
        Value::String(text) => Some(text.len() + 2),
        Value::Array(_) | Value::Object(_) => None,
    };
    if let Some(bytes) = alone {
        return if bytes > most { Err(Excess::Large) } else { Ok(bytes) };
    }
    let mut bytes = 0usize;
    let mut open = vec![(value, 1usize)];
    while let Some((value, depth)) = open.pop() {
        if depth > VALUE_DEPTH {
            return Err(Excess::Deep);
        }
        bytes += match value {
            Value::Null | Value::Bool(_) => 4,
            Value::Number(_) => 8,
            Value::String(text) => text.len() + 2,
            Value::Array(items) => {
                open.extend(items.iter().map(|item| (item, depth + 1)));
                items.len() + 2
            }
            Value::Object(fields) => {
                open.extend(fields.values().map(|field| (field, depth + 1)));
                fields.keys().map(|key| key.len() + 4).sum::<usize>() + 2
            }
        };
        if bytes > most {
            return Err(Excess::Large);
        }
    }
    Ok(bytes)
}

/// The bytes of the values of these references together, if they are small enough to be put together.
pub fn weigh_refs(refs: &[&Ref], facts: &dyn Facts) -> Result<usize, Excess> {
    let mut left = SHARED_BYTES;
    for reference in refs {
        left -= weigh_within(&reference.resolve(facts), left)?;
    }
    Ok(SHARED_BYTES - left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_weighs_about_what_its_json_does() {
        let value = json!({"name": "windlass", "list": [1, 2, 3], "none": null});
        let written = value.to_string().len();
        let weight = weigh(&value).unwrap();
        assert!(weight >= written / 2 && weight <= written * 3, "{weight} for {written}");
    }

    #[test]
    fn values_that_are_too_deep_or_too_large_are_noticed() {
        let nested = |n| (0..n).fold(json!(1), |inner, _| json!([inner]));
        assert!(weigh(&nested(VALUE_DEPTH - 1)).is_ok());
        assert_eq!(weigh(&nested(VALUE_DEPTH)), Err(Excess::Deep));
        assert_eq!(weigh(&json!("x".repeat(SHARED_BYTES))), Err(Excess::Large));
    }
}
