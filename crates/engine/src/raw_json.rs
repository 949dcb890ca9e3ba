//! JSON as text, for values that travel from a request to the store and from there to a response: payloads of jobs and
//! results of attempts. The text takes about its own bytes in memory, where a tree of values takes many times them.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::limits::{SHARED_BYTES, VALUE_DEPTH};
use crate::weight::{Excess, weigh};

/// One JSON value as text. Cheap to clone.
///
/// The text has no spaces around values, and its numbers and escapes are the ones that serde_json writes for the parsed
/// value. Only the fields of objects keep the order in which they came.
#[derive(Clone)]
pub struct RawJson {
    text: Arc<RawValue>,
    weight: Result<usize, Excess>,
}

static NULL: LazyLock<RawJson> = LazyLock::new(|| RawJson::from(Value::Null));

impl RawJson {
    pub fn as_str(&self) -> &str {
        self.text.get()
    }

    pub fn is_null(&self) -> bool {
        self.as_str() == "null"
    }

    /// Its weight, as of the parsed value.
    pub fn weigh(&self) -> Result<usize, Excess> {
        self.weight
    }

    /// The parsed value, for code that looks inside.
    pub fn value(&self) -> Value {
        self.read().expect("the text was written from values, and every value can be read")
    }

    /// Reads a part of it as another type, without a tree of the other parts.
    pub fn read<'t, T: Deserialize<'t>>(&'t self) -> Result<T, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(self.as_str());
        // A text that came from outside has passed the limit once; a tree of this process may be deeper.
        reader.disable_recursion_limit();
        T::deserialize(&mut reader)
    }
}

impl Default for RawJson {
    fn default() -> Self {
        NULL.clone()
    }
}

impl From<&Value> for RawJson {
    fn from(value: &Value) -> Self {
        let text = to_raw_value(value).expect("values are plain data with string keys");
        RawJson { text: text.into(), weight: weigh(value) }
    }
}

impl From<Value> for RawJson {
    fn from(value: Value) -> Self {
        RawJson::from(&value)
    }
}

/// Two are equal when their values are: the order of fields does not count.
impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() || self.value() == other.value()
    }
}

impl PartialEq<Value> for RawJson {
    fn eq(&self, other: &Value) -> bool {
        self.value() == *other
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (*self.text).serialize(to)
    }
}

/// Reads values and writes them again, one by one. serde_json's own raw text would keep spaces, numbers out of range and
/// halves of characters, and could not be read inside tagged enums.
impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut written = WrittenJson::default();
        RawPart { to: &mut written, depth: 1 }.deserialize(from)?;
        let weight = written.weight();
        let text = String::from_utf8(written.text).map_err(D::Error::custom)?;
        let text = RawValue::from_string(text).map_err(D::Error::custom)?;
        Ok(RawJson { text: text.into(), weight })
    }
}

/// The text so far, and the weight of its values.
#[derive(Default)]
struct WrittenJson {
    text: Vec<u8>,
    bytes: usize,
    deepest: usize,
}

impl WrittenJson {
    fn weight(&self) -> Result<usize, Excess> {
        match self.bytes {
            _ if self.deepest > VALUE_DEPTH => Err(Excess::Deep),
            bytes if bytes > SHARED_BYTES => Err(Excess::Large),
            bytes => Ok(bytes),
        }
    }

    fn add<E: Error>(&mut self, value: &(impl Serialize + ?Sized), bytes: usize) -> Result<(), E> {
        self.bytes = self.bytes.saturating_add(bytes);
        serde_json::to_writer(&mut self.text, value).map_err(E::custom)
    }
}

/// The next value of a text.
struct RawPart<'w> {
    to: &'w mut WrittenJson,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for RawPart<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.to.deepest = self.to.deepest.max(self.depth);
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RawPart<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.to.add(&(), 4)
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.to.add(&(), 4)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<(), E> {
        self.to.add(&flag, 4)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.to.add(&number, 8)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.to.add(&number, 8)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.to.add(&number, 8)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.to.add(text, text.len() + 2)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let RawPart { to, depth } = self;
        to.bytes += 2;
        to.text.push(b'[');
        let from = to.text.len();
        loop {
            let before = to.text.len();
            if before > from {
                to.text.push(b',');
            }
            if items.next_element_seed(RawPart { to, depth: depth + 1 })?.is_none() {
                to.text.truncate(before);
                break;
            }
            to.bytes += 1;
        }
        to.text.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let RawPart { to, depth } = self;
        to.bytes += 2;
        to.text.push(b'{');
        let from = to.text.len();
        loop {
            let before = to.text.len();
            if before > from {
                to.text.push(b',');
            }
            if fields.next_key_seed(RawKey(to))?.is_none() {
                to.text.truncate(before);
                break;
            }
            to.text.push(b':');
            fields.next_value_seed(RawPart { to, depth: depth + 1 })?;
        }
        to.text.push(b'}');
        Ok(())
    }
}

/// The next key of an object.
struct RawKey<'w>(&'w mut WrittenJson);

impl<'de> DeserializeSeed<'de> for RawKey<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for RawKey<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<(), E> {
        self.0.add(key, key.len() + 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn raw(text: &str) -> RawJson {
        serde_json::from_str(text).unwrap()
    }

    const TEXTS: [&str; 9] = [
        "null",
        " [ ] ",
        "{\"b\" : 1,\n \"a\":{\"c\":[ null,true,{} ]}}",
        r#"["\u00e9\/\ud83e\udd80\u0000\n\" , : ", "ß"]"#,
        "[1.0, 1e2, -0, -0.0, 0.1, 5e-324, 1.7976931348623157e308, 0.30000000000000004]",
        "[18446744073709551615, -9223372036854775808, 123456789012345678901.5]",
        r#"{"": "", "a b": [[[]]], "\u0061\n": 0}"#,
        "\"  a  \"",
        "false",
    ];

    #[test]
    fn the_text_is_the_one_that_is_written_for_the_value() {
        for text in TEXTS {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(raw(text).value(), value, "{text}");
            // A tree sorts the fields.
            let sorted = RawJson::from(&value);
            assert_eq!(raw(text).as_str().len(), sorted.as_str().len(), "{text}");
            assert_eq!(raw(text).weigh(), sorted.weigh(), "{text}");
            assert_eq!(raw(text), sorted);
            assert_eq!(raw(raw(text).as_str()).as_str(), raw(text).as_str(), "it is read as it was written");
            assert_eq!(serde_json::to_string(&raw(text)).unwrap(), raw(text).as_str());
        }
        assert_eq!(raw(TEXTS[2]).as_str(), r#"{"b":1,"a":{"c":[null,true,{}]}}"#);
        assert_eq!(raw(TEXTS[3]).as_str(), r#"["é/🦀\u0000\n\" , : ","ß"]"#);
        assert_eq!(raw("[1e2,-0]").as_str(), "[100.0,-0.0]");
    }

    #[test]
    fn two_with_the_same_values_are_equal_in_any_order_of_fields() {
        assert_eq!(raw(r#"{"a":1,"b":[2]}"#), raw(r#"{ "b":[2], "a":1 }"#));
        assert_eq!(raw(r#"["\u0061"]"#), json!(["a"]));
        assert_ne!(raw("[1,2]"), raw("[2,1]"));
        assert_ne!(raw("1"), raw("1.0"));
        assert_ne!(raw("[]"), RawJson::default());
        assert_eq!(raw(" null "), RawJson::default());
    }

    #[test]
    fn text_that_cannot_be_parsed_is_refused() {
        for text in ["", "{", "[1,]", "nul", "1e999", r#""\ud800""#, "\"\n\"", "{\"a\"}", "1 2", "{1:2}"] {
            assert!(serde_json::from_str::<RawJson>(text).is_err(), "{text}");
        }
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(serde_json::from_str::<RawJson>(&deep(127)).is_ok());
        assert!(serde_json::from_str::<RawJson>(&deep(128)).is_err());
    }

    #[test]
    fn it_weighs_what_its_value_weighs() {
        let nested = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
        assert!(raw(&nested(VALUE_DEPTH - 1)).weigh().is_ok());
        assert_eq!(raw(&nested(VALUE_DEPTH)).weigh(), Err(Excess::Deep));
        assert_eq!(raw(&format!("\"{}\"", "x".repeat(SHARED_BYTES))).weigh(), Err(Excess::Large));
    }

    #[test]
    fn it_is_read_inside_enums_and_trees() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        enum Tagged {
            Some { payload: RawJson },
        }
        let text = r#"{"payload":{"b":[1.5,"x",null],"a":-1},"kind":"Some"}"#;
        let read: Tagged = serde_json::from_str(text).unwrap();
        let Tagged::Some { payload } = &read;
        assert_eq!(payload.as_str(), r#"{"b":[1.5,"x",null],"a":-1}"#);
        let tree = serde_json::to_value(&read).unwrap();
        assert_eq!(tree, json!({"kind": "Some", "payload": {"a": -1, "b": [1.5, "x", null]}}));
        assert_eq!(serde_json::from_value::<Tagged>(tree).unwrap(), read);
    }

    #[test]
    fn a_tree_of_this_process_may_be_deeper_than_text_from_outside() {
        let deep = (0..300).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(RawJson::from(&deep).value(), deep);
        assert_eq!(RawJson::from(&deep).weigh(), Err(Excess::Deep));
    }
}
