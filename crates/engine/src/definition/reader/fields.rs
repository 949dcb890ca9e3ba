//! Typed access to the fields of one object, and a report of unknown fields.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Reader, a_kind_of, at_index, at_key, shown};

/// The fields of one object, taken one by one.
pub(in crate::definition) struct Fields<'v> {
    pub(in crate::definition) map: &'v Map<String, Value>,
    pub(in crate::definition) path: String,
    known: Vec<&'static str>,
}

impl<'v> Fields<'v> {
    pub(in crate::definition) fn of(
        value: &'v Value,
        path: String,
        reader: &mut Reader,
    ) -> Option<Fields<'v>> {
        match value {
            Value::Object(map) => Some(Fields { map, path, known: Vec::new() }),
            other => {
                reader.error(path, format!("must be an object, not {}", a_kind_of(other)));
                None
            }
        }
    }

    pub(in crate::definition) fn at(&self, name: &str) -> String {
        at_key(&self.path, name)
    }

    /// The field as it stands; null is absent.
    pub(in crate::definition) fn value(&mut self, name: &'static str) -> Option<&'v Value> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        self.map.get(name).filter(|v| !v.is_null())
    }

    /// A text; an empty one counts as absent.
    pub(in crate::definition) fn text(&mut self, name: &'static str, reader: &mut Reader) -> Option<&'v str> {
        match self.value(name)? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text),
            other => {
                reader.error(self.at(name), format!("must be a string, not {}", a_kind_of(other)));
                None
            }
        }
    }

    /// The id of a node; a whole number is accepted, because YAML reads `id: 1` as one.
    pub(in crate::definition) fn id(
        &mut self,
        name: &'static str,
        reader: &mut Reader,
    ) -> Option<Cow<'v, str>> {
        match self.value(name)? {
            Value::Number(n) if n.is_u64() => Some(Cow::Owned(n.to_string())),
            _ => self.text(name, reader).map(Cow::Borrowed),
        }
    }

    /// A text of bounded length that names something.
    pub(in crate::definition) fn name(&mut self, name: &'static str, reader: &mut Reader) -> Option<&'v str> {
        let text = self.text(name, reader)?;
        reader.check_name(text, &self.at(name)).then_some(text)
    }

    /// A whole number from 0.
    pub(in crate::definition) fn whole(&mut self, name: &'static str, reader: &mut Reader) -> Option<u64> {
        let value = self.value(name)?;
        let whole = as_whole(value);
        if whole.is_none() {
            reader.error(self.at(name), format!("must be a whole number from 0, not {}", brief(value)));
        }
        whole
    }

    /// A whole number between two bounds, both allowed.
    pub(in crate::definition) fn between(
        &mut self,
        name: &'static str,
        (low, high): (u64, u64),
        unit: &str,
        reader: &mut Reader,
    ) -> Option<u64> {
        let value = self.value(name)?;
        let found = as_whole(value).filter(|n| (low..=high).contains(n));
        if found.is_none() {
            let reason = format!("must be a whole number from {low} to {high}{unit}, not {}", brief(value));
            reader.error(self.at(name), reason);
        }
        found
    }

    pub(in crate::definition) fn flag(&mut self, name: &'static str, reader: &mut Reader) -> Option<bool> {
        match self.value(name)? {
            Value::Bool(flag) => Some(*flag),
            other => {
                reader.error(self.at(name), format!("must be true or false, not {}", brief(other)));
                None
            }
        }
    }

    pub(in crate::definition) fn list(
        &mut self,
        name: &'static str,
        reader: &mut Reader,
    ) -> Option<&'v [Value]> {
        match self.value(name)? {
            Value::Array(items) => Some(items),
            other => {
                reader.error(self.at(name), format!("must be an array, not {}", a_kind_of(other)));
                None
            }
        }
    }

    pub(in crate::definition) fn map(
        &mut self,
        name: &'static str,
        reader: &mut Reader,
    ) -> Option<&'v Map<String, Value>> {
        match self.value(name)? {
            Value::Object(map) => Some(map),
            other => {
                reader.error(self.at(name), format!("must be an object, not {}", a_kind_of(other)));
                None
            }
        }
    }

    /// The fields of the object in field `name`.
    pub(in crate::definition) fn inner(
        &mut self,
        name: &'static str,
        reader: &mut Reader,
    ) -> Option<Fields<'v>> {
        let value = self.value(name)?;
        Fields::of(value, self.at(name), reader)
    }

    /// Texts in an array; a single text is an array of one.
    pub(in crate::definition) fn texts(
        &mut self,
        name: &'static str,
        reader: &mut Reader,
    ) -> Option<Vec<String>> {
        if let Some(Value::String(one)) = self.map.get(name) {
            self.value(name);
            return Some(vec![one.clone()]);
        }
        let items = self.list(name, reader)?;
        let mut texts = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text.clone()),
                other => {
                    let path = at_index(&self.at(name), i);
                    reader.error(path, format!("must be a string, not {}", a_kind_of(other)));
                }
            }
        }
        Some(texts)
    }

    /// One of a few words.
    pub(in crate::definition) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
        reader: &mut Reader,
    ) -> Option<T> {
        let text = self.text(name, reader)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let reason = format!("unknown {name} `{}`; it must be one of {}", shown(text), known.join(", "));
            reader.error_near(self.at(name), reason, text, known);
        }
        found
    }

    /// Whether the field has been asked for.
    pub(in crate::definition) fn knows(&self, name: &str) -> bool {
        self.known.contains(&name)
    }

    /// Makes a field known that is not read here.
    pub(in crate::definition) fn allow(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// Reports the fields that no caller took.
    pub(in crate::definition) fn finish(self, reader: &mut Reader) {
        for key in self.map.keys() {
            if !self.known.contains(&key.as_str()) {
                reader.unknown_field(at_key(&self.path, key), key, &self.known);
            }
        }
    }
}

fn as_whole(value: &Value) -> Option<u64> {
    let whole = |f: f64| f >= 0.0 && f.fract() == 0.0 && f <= 9e15;
    // 3.0 is a whole number too: some writers know only one kind of number. The cast is exact below 2^53.
    value.as_u64().or_else(|| value.as_f64().filter(|f| whole(*f)).map(|f| f as u64))
}

fn brief(value: &Value) -> String {
    match value {
        Value::Number(n) => n.to_string(),
        Value::String(text) => format!("`{}`", shown(text)),
        Value::Bool(flag) => flag.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => a_kind_of(value).to_owned(),
    }
}
