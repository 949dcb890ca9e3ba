//! Settings by their sources: flags and environment variables win over the file, the file over the default.
//!
//! [`SettingReader`] notes every mistake with its place and goes on with the default, so that one look at the messages
//! shows all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use toml::de::{DeTable, DeValue};
use windlass_engine::problem::did_you_mean;

use crate::exit::invalid;

/// The file that is read if it exists and no other is named.
const DEFAULT_FILE: &str = "windlass.toml";

/// A value of the file, as text.
enum FileValue {
    One(String),
    Many(Vec<String>),
}

/// Reads settings one by one and collects their mistakes.
pub(super) struct SettingReader<'e> {
    env: &'e dyn Fn(&str) -> Option<String>,
    file_name: String,
    /// Settings of the file that were not read yet, each with its line.
    file: BTreeMap<String, (FileValue, usize)>,
    keys: BTreeSet<&'static str>,
    problems: Vec<String>,
}

impl<'e> SettingReader<'e> {
    pub(super) fn new(env: &'e dyn Fn(&str) -> Option<String>) -> Self {
        SettingReader {
            env,
            file_name: DEFAULT_FILE.to_owned(),
            file: BTreeMap::new(),
            keys: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// Opens the named file, or the default one if it exists.
    pub(super) fn open(&mut self, named: Option<&PathBuf>) {
        let path = match named {
            Some(path) => path.as_path(),
            None if Path::new(DEFAULT_FILE).exists() => Path::new(DEFAULT_FILE),
            None => return,
        };
        self.file_name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => self.add_file(&text),
            Err(error) => self.problems.push(format!("cannot read {}: {error}", self.file_name)),
        }
    }

    /// Takes the settings of a file.
    pub(super) fn add_file(&mut self, text: &str) {
        let line_at = |offset: usize| 1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let line = error.span().map(|span| format!(":{}", line_at(span.start))).unwrap_or_default();
            self.problems.push(format!("{}{line}: {}", self.file_name, error.message()));
        }
        for (key, value) in table.into_inner() {
            let (key, line) = (key.into_inner().into_owned(), line_at(value.span().start));
            match file_value(value.into_inner()) {
                Some(value) => drop(self.file.insert(key, (value, line))),
                None => self.problems.push(format!(
                    "{}:{line}: {key}: write a text, a whole number, true, false or a list of texts",
                    self.file_name
                )),
            }
        }
    }

    /// A setting with one value: `given` by flag or environment, else of the file, else the default.
    pub(super) fn read<T>(
        &mut self,
        key: &'static str,
        given: Option<String>,
        default: T,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> T {
        self.keys.insert(key);
        let filed = self.file.remove(key);
        let (text, place) = match (given, filed) {
            (Some(text), _) => {
                let place = self.place_of(key, &text);
                (text, place)
            }
            (None, Some((FileValue::One(text), line))) => (text, self.file_place(key, line)),
            (None, Some((FileValue::Many(_), line))) => {
                let place = self.file_place(key, line);
                self.problems.push(format!("{place}: write one value, not a list"));
                return default;
            }
            (None, None) => return default,
        };
        parse(&text).unwrap_or_else(|reason| {
            self.problems.push(format!("{place}: {reason}"));
            default
        })
    }

    /// A setting with a list of values; `check` refuses a wrong one with a reason.
    pub(super) fn read_list(
        &mut self,
        key: &'static str,
        given: Option<Vec<String>>,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Vec<String> {
        self.keys.insert(key);
        let filed = self.file.remove(key);
        let (values, place) = match (given, filed) {
            (Some(values), _) => {
                let place = self.place_of(key, &values.join(","));
                (values, place)
            }
            (None, Some((FileValue::Many(values), line))) => (values, self.file_place(key, line)),
            (None, Some((FileValue::One(_), line))) => {
                let place = self.file_place(key, line);
                self.problems.push(format!("{place}: write a list, such as [\"a\", \"b\"]"));
                return Vec::new();
            }
            (None, None) => return Vec::new(),
        };
        let wrong = values.iter().filter_map(|value| check(value).err());
        self.problems.extend(wrong.map(|reason| format!("{place}: {reason}")).collect::<Vec<_>>());
        values
    }

    /// Notes a mistake in several settings together.
    pub(super) fn refuse(&mut self, problem: &str) {
        self.problems.push(problem.to_owned());
    }

    /// Ends the reading: an error with all problems, if there are any.
    pub(super) fn finish(mut self) -> Result<()> {
        for (key, (_, line)) in std::mem::take(&mut self.file) {
            let hint = did_you_mean(&key, self.keys.iter().copied()).map(|hint| format!(" ({hint})"));
            let hint = hint.unwrap_or_else(|| ": see `windlass check-config` for the settings".to_owned());
            self.problems.push(format!("{}:{line}: unknown setting `{key}`{hint}", self.file_name));
        }
        if self.problems.is_empty() { Ok(()) } else { Err(invalid(self.problems.join("\nerror: "))) }
    }

    fn file_place(&self, key: &str, line: usize) -> String {
        format!("{}:{line}: {key}", self.file_name)
    }

    /// The place of a value that came from the command line: its variable if that holds the same text, or its flag.
    fn place_of(&self, key: &'static str, text: &str) -> String {
        let variable = match key {
            "worker_offline_ttl_sec" | "worker_refresh_interval_sec" => key.to_uppercase(),
            _ => format!("WINDLASS_{}", key.to_uppercase()),
        };
        if (self.env)(&variable).is_some_and(|value| value == text) {
            return variable;
        }
        match key {
            "hosts" => "--host".to_owned(),
            _ => format!("--{}", key.replace('_', "-")),
        }
    }
}

fn file_value(value: DeValue<'_>) -> Option<FileValue> {
    Some(match value {
        DeValue::String(text) => FileValue::One(text.into_owned()),
        DeValue::Integer(number) => FileValue::One(number.to_string()),
        DeValue::Boolean(truth) => FileValue::One(truth.to_string()),
        DeValue::Array(items) => {
            let texts = items.into_iter().map(|item| match item.into_inner() {
                DeValue::String(text) => Some(text.into_owned()),
                _ => None,
            });
            FileValue::Many(texts.collect::<Option<_>>()?)
        }
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}

/// Reads `true`, `false` and the usual words for them.
pub(super) fn truth(text: &str) -> Result<bool, String> {
    match text.to_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(format!("`{text}` is neither true nor false: write one of them")),
    }
}

/// Reads a whole number of at least `least`.
pub(super) fn number(text: &str, least: u64) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if number >= least => Ok(number),
        Ok(number) => Err(format!("{number} is too small: write at least {least}")),
        Err(_) => Err(format!("`{text}` is not a whole number: write one, such as {}", least.max(30))),
    }
}
