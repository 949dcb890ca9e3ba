//! The query language of runs: `status:failed flow:pay error~"time out" -label.team=video after:7d`.
//!
//! One term is a condition or a name that has to be looked up (a flow, a version, a worker), or a parameter, which is not
//! in the row. All terms must hold; `-` in front of a term negates it. Errors name the position of the term.

mod lexer;

use serde_json::Value;
use windlass_engine::id::{RunId, ScheduleId, VersionId};
use windlass_engine::path::NodePath;
use windlass_engine::problem::did_you_mean;
use windlass_engine::retry::FaultKind;
use windlass_engine::time::Timestamp;

use super::{RunCondition, RunStatus, RunTrigger};
use lexer::{RawTerm, RawValue};

/// Characters of a query.
const CHARS_MAX: usize = 4_000;
/// Terms of a query.
const TERMS_MAX: usize = 50;
/// The fields with `:`.
const FIELDS: [&str; 15] = [
    "status", "flow", "version", "account", "node", "worker", "error", "parent", "schedule", "request", "id",
    "trigger", "after", "before", "has",
];
const DAY_MS: u64 = 86_400_000;

/// A query as it was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunSearch {
    pub terms: Vec<SearchTerm>,
}

/// One term of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchTerm {
    /// Where it begins, in characters.
    pub position: usize,
    pub is_negated: bool,
    pub field: SearchField,
}

/// The property that a term names.
#[derive(Debug, Clone, PartialEq)]
pub enum SearchField {
    /// A property of the row.
    Row(RunCondition),
    /// Flows by name or id, with the number of a version if that matters.
    Flow(Vec<(String, Option<u32>)>),
    Version(Vec<VersionName>),
    /// Workers that hold a call of the run now.
    Worker(Vec<String>),
    Param(ParamTest),
}

/// A version by its number among those of the flow, or by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionName {
    Number(u32),
    Id(VersionId),
}

/// A parameter of the run, by its path, and the values of which it has one; none = any but null.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamTest {
    pub path: Vec<String>,
    pub values: Vec<Value>,
}

/// A query that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SearchError {
    /// Where, in characters.
    pub position: usize,
    pub reason: String,
}

impl ParamTest {
    /// Whether these parameters have one of the values.
    pub fn holds(&self, params: &Value) -> bool {
        let step = |value: Option<&Value>, key: &String| match value? {
            Value::Object(fields) => fields.get(key).cloned(),
            Value::Array(items) => key.parse::<usize>().ok().and_then(|index| items.get(index)).cloned(),
            _ => None,
        };
        let found = self.path.iter().try_fold(params.clone(), |value, key| step(Some(&value), key));
        match found {
            Some(Value::Null) | None => self.values.contains(&Value::Null),
            Some(found) => self.values.is_empty() || self.values.contains(&found),
        }
    }
}

impl RunSearch {
    /// Reads a query; `now` is the moment from which spans count back.
    pub fn parse(text: &str, now: Timestamp) -> Result<RunSearch, SearchError> {
        if text.chars().count() > CHARS_MAX {
            return Err(SearchError {
                position: CHARS_MAX,
                reason: format!("the query is longer than {CHARS_MAX} characters"),
            });
        }
        let raw = lexer::terms(text)?;
        if let Some(term) = raw.get(TERMS_MAX) {
            let reason = format!("the query has more than {TERMS_MAX} terms");
            return Err(SearchError { position: term.position, reason });
        }
        let read = |term: RawTerm| {
            let (position, is_negated) = (term.position, term.is_negated);
            Ok(SearchTerm { position, is_negated, field: field(term, now)? })
        };
        Ok(RunSearch { terms: raw.into_iter().map(read).collect::<Result<_, SearchError>>()? })
    }

    /// Whether a term names parameters, which no index has.
    pub fn reads_params(&self) -> bool {
        self.terms.iter().any(|term| matches!(term.field, SearchField::Param(_)))
    }
}

fn field(term: RawTerm, now: Timestamp) -> Result<SearchField, SearchError> {
    let RawTerm { position, key, operator, .. } = &term;
    let wrong = |reason: String| SearchError { position: *position, reason };
    let Some(operator) = operator else {
        return Ok(SearchField::Row(RunCondition::Text(key.clone())));
    };
    if let Some(path) = key.strip_prefix("params.") {
        expect(&term, '=', "params.x=5")?;
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err(wrong(format!("`{key}` has an empty part: write `params.a.b=5`")));
        }
        let is_any = matches!(&term.values[..], [value] if !value.is_quoted && value.text == "*");
        let values = if is_any { Vec::new() } else { term.values.iter().map(json).collect() };
        return Ok(SearchField::Param(ParamTest { path, values }));
    }
    if let Some(label) = key.strip_prefix("label.") {
        expect(&term, '=', "label.team=video")?;
        let is_any = matches!(&term.values[..], [value] if !value.is_quoted && value.text == "*");
        let values = (!is_any).then(|| texts(&term));
        return Ok(SearchField::Row(RunCondition::Label(label.to_owned(), values)));
    }
    match (key.as_str(), *operator) {
        ("duration", '<' | '>') => duration(&term, *operator, now).map(SearchField::Row),
        ("error", '~') => Ok(SearchField::Row(RunCondition::ErrorText(texts(&term).join(",")))),
        ("duration", _) => Err(wrong("write `duration>10s` or `duration<5m`".to_owned())),
        (key, ':') if FIELDS.contains(&key) => named(&term, now),
        (key, _) if FIELDS.contains(&key) => Err(wrong(format!("write `{key}:…`"))),
        (key, _) => {
            let known = FIELDS.into_iter().chain(["duration", "params", "label"]);
            let hint = did_you_mean(key, known).map_or_else(
                || "put the text in quotes to search for it".to_owned(),
                |hint| hint.trim_end_matches('?').to_owned() + "?",
            );
            let shown: String = key.chars().take(40).collect();
            Err(wrong(format!("`{shown}` is no field: {hint}")))
        }
    }
}

/// A field with `:`.
fn named(term: &RawTerm, now: Timestamp) -> Result<SearchField, SearchError> {
    let condition = match term.key.as_str() {
        "status" => RunCondition::Statuses(words(term, RunStatus::from_word, &statuses())?),
        "flow" => return flows(term),
        "version" => return versions(term),
        "account" => RunCondition::Accounts(texts(term)),
        "node" => RunCondition::Nodes(texts(term).iter().map(|node| NodePath::from(node.as_str())).collect()),
        "worker" => return Ok(SearchField::Worker(texts(term))),
        "error" => RunCondition::ErrorKinds(words(term, fault_kind, &fault_kinds())?),
        "parent" => RunCondition::Parents(ids::<RunId>(term, "run_…")?),
        "schedule" => RunCondition::Schedules(ids::<ScheduleId>(term, "sched_…")?),
        "request" => RunCondition::Requests(texts(term)),
        "id" => RunCondition::Ids(ranges(term)?),
        "trigger" => {
            let of = |word: &str| RunTrigger::ALL.into_iter().find(|trigger| trigger.word() == word);
            RunCondition::Triggers(words(term, of, &RunTrigger::ALL.map(RunTrigger::word))?)
        }
        "has" => return has(term),
        "after" => RunCondition::Since(moment(term, now)?),
        _ => RunCondition::Until(moment(term, now)?),
    };
    Ok(SearchField::Row(condition))
}

fn expect(term: &RawTerm, operator: char, example: &str) -> Result<(), SearchError> {
    if term.operator == Some(operator) {
        return Ok(());
    }
    Err(SearchError { position: term.position, reason: format!("write `{example}`") })
}

fn texts(term: &RawTerm) -> Vec<String> {
    term.values.iter().map(|value| value.text.clone()).collect()
}

/// A bare word is JSON if it can be read so, text otherwise.
fn json(value: &RawValue) -> Value {
    let text = || Value::String(value.text.clone());
    if value.is_quoted { text() } else { serde_json::from_str(&value.text).unwrap_or_else(|_| text()) }
}

/// Values out of a list of words.
fn words<T>(term: &RawTerm, of: impl Fn(&str) -> Option<T>, known: &[&str]) -> Result<Vec<T>, SearchError> {
    let read = |value: &RawValue| {
        of(&value.text).ok_or_else(|| {
            let shown: String = value.text.chars().take(40).collect();
            let hint = did_you_mean(&value.text, known.iter().copied());
            let hint = hint.unwrap_or_else(|| format!("give {}", known.join(", ")));
            let reason = format!("`{shown}` is no value of `{}`: {hint}", term.key);
            SearchError { position: value.position, reason }
        })
    };
    term.values.iter().map(read).collect()
}

fn statuses() -> Vec<&'static str> {
    RunStatus::ALL.map(RunStatus::word).to_vec()
}

const FAULT_KINDS: [FaultKind; 13] = [
    FaultKind::Error,
    FaultKind::Transport,
    FaultKind::Timeout,
    FaultKind::NoWorker,
    FaultKind::Lost,
    FaultKind::Canceled,
    FaultKind::Balance,
    FaultKind::Budget,
    FaultKind::Watchdog,
    FaultKind::Poison,
    FaultKind::Input,
    FaultKind::Limit,
    FaultKind::Unknown,
];

fn fault_kind(word: &str) -> Option<FaultKind> {
    FAULT_KINDS.into_iter().find(|kind| kind.word() == word)
}

fn fault_kinds() -> Vec<&'static str> {
    FAULT_KINDS.map(FaultKind::word).to_vec()
}

fn has(term: &RawTerm) -> Result<SearchField, SearchError> {
    let of = |word: &str| match word {
        "error" => Some(RunCondition::ErrorText(String::new())),
        "parent" => Some(RunCondition::Triggers(vec![RunTrigger::Parent])),
        _ => None,
    };
    let [condition]: [RunCondition; 1] = words(term, of, &["error", "parent"])?.try_into().map_err(|_| {
        SearchError { position: term.position, reason: "`has` takes one value: error or parent".to_owned() }
    })?;
    Ok(SearchField::Row(condition))
}

fn flows(term: &RawTerm) -> Result<SearchField, SearchError> {
    let read = |value: &RawValue| match value.text.rsplit_once('@').filter(|_| !value.is_quoted) {
        None => Ok((value.text.clone(), None)),
        Some((flow, number)) => {
            let number = number.parse().map_err(|_| SearchError {
                position: value.position,
                reason: "the version after `@` is no number: write `flow:pay@3`".to_owned(),
            })?;
            Ok((flow.to_owned(), Some(number)))
        }
    };
    Ok(SearchField::Flow(term.values.iter().map(read).collect::<Result<_, _>>()?))
}

fn versions(term: &RawTerm) -> Result<SearchField, SearchError> {
    let read = |value: &RawValue| {
        let number = value.text.parse().ok().map(VersionName::Number);
        number.or_else(|| value.text.parse().ok().map(VersionName::Id)).ok_or_else(|| SearchError {
            position: value.position,
            reason: "a version is a number, beside `flow:`, or an id: `flow:pay version:3`".to_owned(),
        })
    };
    Ok(SearchField::Version(term.values.iter().map(read).collect::<Result<_, _>>()?))
}

fn ids<I: std::str::FromStr>(term: &RawTerm, form: &str) -> Result<Vec<I>, SearchError> {
    let read = |value: &RawValue| {
        let reason = || format!("`{}` takes an id of the form `{form}`", term.key);
        value.text.parse().map_err(|_| SearchError { position: value.position, reason: reason() })
    };
    term.values.iter().map(read).collect()
}

fn ranges(term: &RawTerm) -> Result<Vec<(RunId, RunId)>, SearchError> {
    let read = |value: &RawValue| {
        RunId::range(&value.text).ok_or_else(|| SearchError {
            position: value.position,
            reason: "the beginning of an id is `run_` and hexadecimal digits".to_owned(),
        })
    };
    term.values.iter().map(read).collect()
}

/// A moment, a day, or a span back from now.
fn moment(term: &RawTerm, now: Timestamp) -> Result<Timestamp, SearchError> {
    let wrong = |position| SearchError {
        position,
        reason: "a time is 2026-01-31, 2026-01-31T10:00:00Z, or a span back from now such as 1h or 7d"
            .to_owned(),
    };
    let [value] = &term.values[..] else { return Err(wrong(term.position)) };
    let text = value.text.as_str();
    let day = || Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z"));
    let back = || span(text.strip_prefix('-').unwrap_or(text)).map(|ms| now.before(ms));
    Timestamp::parse_rfc3339(text).or_else(day).or_else(back).ok_or_else(|| wrong(value.position))
}

fn duration(term: &RawTerm, operator: char, now: Timestamp) -> Result<RunCondition, SearchError> {
    let wrong = |position| SearchError {
        position,
        reason: "a duration is a number with ms, s, m, h or d".to_owned(),
    };
    let [value] = &term.values[..] else { return Err(wrong(term.position)) };
    let ms = span(&value.text).ok_or_else(|| wrong(value.position))?;
    Ok(if operator == '>' { RunCondition::LongerThan(ms, now) } else { RunCondition::ShorterThan(ms, now) })
}

/// A number with its unit, in milliseconds.
fn span(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => DAY_MS,
        "w" => 7 * DAY_MS,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit_ms)
}

#[cfg(test)]
mod tests;
