//! The conditions of the steps form: a list of lists of comparisons, which holds if all of one inner list do.

use std::cmp::Ordering;

use serde_json::Value;

use super::Effort;
use super::pattern::{PATTERN_STEPS, Pattern};
use crate::limits::CONDITION_STEPS;
use crate::meter::{Meter, steps_of};
use crate::number::Num;
use crate::problem::{Problems, did_you_mean};
use crate::reference::{Facts, Ref, Template};
use crate::text::{a_type, excerpt, plain};
use crate::time::Timestamp;

/// Comparisons in one condition: far more than a person writes.
const COMPARISONS_MAX: usize = 1_000;

/// An outer OR of inner ANDs; an empty one always holds.
#[derive(Debug, Clone, Default)]
pub struct Test {
    any_of: Vec<Vec<Cond>>,
}

/// One comparison.
#[derive(Debug, Clone)]
pub struct Cond {
    pub operator: Operator,
    pub a: Template,
    pub b: Template,
    /// The pattern of `string-match`, compiled once where it does not depend on the run.
    pattern: Option<Pattern>,
}

/// How a comparison compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    StringEq,
    StringNeq,
    StringContains,
    StringNotContains,
    StringStartWith,
    StringEndWith,
    StringEmpty,
    StringNotEmpty,
    StringMatch,
    NumberEq,
    NumberNeq,
    NumberGt,
    NumberGte,
    NumberLt,
    NumberLte,
    DateEq,
    DateNeq,
    DateEarlierThan,
    DateLaterThan,
    ApprovalEq,
    ApprovalNeq,
}

/// Every operator as definitions spell it.
const OPERATORS: [(&str, Operator); 21] = [
    ("@internal/cmp/string-eq", Operator::StringEq),
    ("@internal/cmp/string-neq", Operator::StringNeq),
    ("@internal/cmp/string-contains", Operator::StringContains),
    ("@internal/cmp/string-not-contains", Operator::StringNotContains),
    ("@internal/cmp/string-start-with", Operator::StringStartWith),
    ("@internal/cmp/string-end-with", Operator::StringEndWith),
    ("@internal/cmp/string-empty", Operator::StringEmpty),
    ("@internal/cmp/string-not-empty", Operator::StringNotEmpty),
    ("@internal/cmp/string-match", Operator::StringMatch),
    ("@internal/cmp/number-eq", Operator::NumberEq),
    ("@internal/cmp/number-neq", Operator::NumberNeq),
    ("@internal/cmp/number-gt", Operator::NumberGt),
    ("@internal/cmp/number-gte", Operator::NumberGte),
    ("@internal/cmp/number-lt", Operator::NumberLt),
    ("@internal/cmp/number-lte", Operator::NumberLte),
    ("@internal/cmp/date-eq", Operator::DateEq),
    ("@internal/cmp/date-neq", Operator::DateNeq),
    ("@internal/cmp/date-earlier-than", Operator::DateEarlierThan),
    ("@internal/cmp/date-later-than", Operator::DateLaterThan),
    ("@workflow/cmp/approval-eq", Operator::ApprovalEq),
    ("@workflow/cmp/approval-neq", Operator::ApprovalNeq),
];

/// An operator between its operands, for people.
fn sign(operator: Operator) -> &'static str {
    match operator {
        Operator::StringEq | Operator::NumberEq | Operator::DateEq | Operator::ApprovalEq => "=",
        Operator::StringNeq | Operator::NumberNeq | Operator::DateNeq | Operator::ApprovalNeq => "≠",
        Operator::StringContains => "contains",
        Operator::StringNotContains => "lacks",
        Operator::StringStartWith => "starts with",
        Operator::StringEndWith => "ends with",
        Operator::StringEmpty => "is empty",
        Operator::StringNotEmpty => "is not empty",
        Operator::StringMatch => "matches",
        Operator::NumberGt | Operator::DateLaterThan => ">",
        Operator::NumberGte => "≥",
        Operator::NumberLt | Operator::DateEarlierThan => "<",
        Operator::NumberLte => "≤",
    }
}

fn operand(template: &Template) -> String {
    match template {
        Template::Literal(value) => excerpt(&plain(value)).into_owned(),
        // The root says little in the little room that there is.
        Template::Ref(reference) => {
            let text = reference.to_string();
            let bare = text.strip_prefix("$node.").or(text.strip_prefix("$var."));
            bare.map(|bare| bare.replacen(".output.", ".", 1)).unwrap_or(text)
        }
        Template::Text(_) | Template::Array(_) | Template::Object(_) => "…".to_owned(),
    }
}

impl Test {
    /// Reads the value of `conditions`; its errors go to `problems`, under `path`. Null is empty.
    pub fn parse(value: &Value, path: &str, problems: &mut Problems) -> Option<Test> {
        let lists = match value {
            Value::Null => return Some(Test::default()),
            Value::Array(lists) => lists,
            other => {
                problems.error(
                    path,
                    format!("a list of lists of comparisons is expected, not {}", a_type(other)),
                );
                return None;
            }
        };
        let mut any_of = Vec::new();
        let mut sound = true;
        let mut n_left = COMPARISONS_MAX;
        for (index, list) in lists.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let Value::Array(conds) = list else {
                let hint = "the outer list joins with or, the inner lists with and: [[{…}]]".to_owned();
                let reason = format!("a list of comparisons is expected, not {}", a_type(list));
                problems.error_hint(path, reason, Some(hint));
                sound = false;
                continue;
            };
            let Some(left) = n_left.checked_sub(conds.len()) else {
                problems.error(
                    path,
                    format!("there are more than {COMPARISONS_MAX} comparisons: split the condition"),
                );
                return None;
            };
            n_left = left;
            let read = conds.iter().enumerate();
            let read: Vec<_> =
                read.map(|(i, cond)| Cond::parse(cond, &format!("{path}[{i}]"), problems)).collect();
            match read.into_iter().collect() {
                Some(all_of) => any_of.push(all_of),
                None => sound = false,
            }
        }
        sound.then_some(Test { any_of })
    }

    /// The first comparison, for people; `…` stands for more.
    pub(super) fn summary(&self) -> String {
        let Some(first) = self.any_of.iter().flatten().next() else { return String::new() };
        let more = if self.any_of.iter().flatten().nth(1).is_some() { " …" } else { "" };
        let (a, b) = (operand(&first.a), operand(&first.b));
        match first.operator {
            Operator::StringEmpty => format!("{a} is empty{more}"),
            Operator::StringNotEmpty => format!("{a} is not empty{more}"),
            operator => format!("{a} {} {b}{more}", sign(operator)),
        }
    }

    /// Whether it holds; `Err` is the reason why that cannot be said. A list that holds makes good for others that
    /// cannot be evaluated.
    pub fn holds(&self, facts: &dyn Facts, meter: &Meter) -> Result<bool, String> {
        let effort = Effort::new(meter, CONDITION_STEPS);
        let mut outcome = Ok(self.any_of.is_empty());
        for all_of in &self.any_of {
            match all(all_of, facts, &effort) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(reason) => outcome = outcome.and(Err(reason)),
            }
        }
        outcome
    }

    /// The references it reads.
    pub fn refs(&self) -> Vec<&Ref> {
        self.any_of.iter().flatten().flat_map(|cond| [cond.a.refs(), cond.b.refs()].concat()).collect()
    }

    /// Whether it is empty, and therefore true for any facts.
    pub fn is_empty(&self) -> bool {
        self.any_of.is_empty()
    }
}

fn all(conds: &[Cond], facts: &dyn Facts, effort: &Effort<'_>) -> Result<bool, String> {
    for cond in conds {
        if !cond.holds(facts, effort)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Cond {
    fn parse(value: &Value, path: &str, problems: &mut Problems) -> Option<Cond> {
        let Value::Object(fields) = value else {
            problems.error(path, format!("a comparison is an object, not {}", a_type(value)));
            return None;
        };
        for key in
            fields.keys().filter(|key| !matches!(key.as_str(), "operator" | "parameters" | "id" | "title"))
        {
            let hint = did_you_mean(key, ["operator", "parameters"]);
            problems.warning(format!("{path}.{}", excerpt(key)), "unknown field of a comparison", hint);
        }
        let operator = operator(fields.get("operator"), path, problems);
        let none = serde_json::Map::new();
        let parameters = match fields.get("parameters") {
            Some(Value::Object(parameters)) => parameters,
            None => &none,
            Some(other) => {
                let reason = format!("the parameters are an object with `a` and `b`, not {}", a_type(other));
                problems.error(format!("{path}.parameters"), reason);
                return None;
            }
        };
        let mut side = |name: &str| {
            let read = Template::from_steps(parameters.get(name).unwrap_or(&Value::Null));
            read.map_err(|reason| problems.error(format!("{path}.parameters.{name}"), reason)).ok()
        };
        let (a, b) = (side("a"), side("b"));
        let (operator, a, b) = (operator?, a?, b?);
        let needed: &[&str] = if operator.needs_b() { &["a", "b"] } else { &["a"] };
        let missing: Vec<_> = needed.iter().filter(|name| !parameters.contains_key(**name)).collect();
        for name in &missing {
            problems.error(format!("{path}.parameters"), format!("the parameter `{name}` is missing"));
        }
        let pattern = match (operator, &b) {
            (Operator::StringMatch, Template::Literal(text)) => match Pattern::compile(&plain(text)) {
                Ok(pattern) => Some(pattern),
                Err(reason) => {
                    problems.error(format!("{path}.parameters.b"), reason);
                    return None;
                }
            },
            _ => None,
        };
        missing.is_empty().then_some(Cond { operator, a, b, pattern })
    }

    /// Whether it holds; `Err` is the reason why that cannot be said.
    fn holds(&self, facts: &dyn Facts, effort: &Effort<'_>) -> Result<bool, String> {
        let (a, b) = (self.a.look(facts), self.b.look(facts));
        effort.spend(steps_of(&a).saturating_add(steps_of(&b)))?;
        let text = |test: fn(&str, &str) -> bool| Ok(test(&plain(&a), &plain(&b)));
        let number = |test: fn(Ordering) -> bool| numbers(&a, &b).map(|found| found.is_some_and(test));
        let date = |test: fn(Ordering) -> bool| Ok(test(moment(&a)?.cmp(&moment(&b)?)));
        match self.operator {
            Operator::StringEq => text(|a, b| a == b),
            Operator::StringNeq => text(|a, b| a != b),
            Operator::StringContains => text(|a, b| a.contains(b)),
            Operator::StringNotContains => text(|a, b| !a.contains(b)),
            Operator::StringStartWith => text(|a, b| a.starts_with(b)),
            Operator::StringEndWith => text(|a, b| a.ends_with(b)),
            Operator::StringEmpty => text(|a, _| a.is_empty()),
            Operator::StringNotEmpty => text(|a, _| !a.is_empty()),
            Operator::StringMatch => match &self.pattern {
                Some(pattern) => is_match(pattern, &plain(&a), effort),
                None => {
                    effort.spend(PATTERN_STEPS)?;
                    is_match(&Pattern::compile(&plain(&b))?, &plain(&a), effort)
                }
            },
            Operator::NumberEq => number(Ordering::is_eq),
            Operator::NumberNeq => number(Ordering::is_ne),
            Operator::NumberGt => number(Ordering::is_gt),
            Operator::NumberGte => number(Ordering::is_ge),
            Operator::NumberLt => number(Ordering::is_lt),
            Operator::NumberLte => number(Ordering::is_le),
            Operator::DateEq => date(Ordering::is_eq),
            Operator::DateNeq => date(Ordering::is_ne),
            Operator::DateEarlierThan => date(Ordering::is_lt),
            Operator::DateLaterThan => date(Ordering::is_gt),
            Operator::ApprovalEq => Ok(decision(&a) == decision(&b)),
            Operator::ApprovalNeq => Ok(decision(&a) != decision(&b)),
        }
    }
}

fn is_match(pattern: &Pattern, text: &str, effort: &Effort<'_>) -> Result<bool, String> {
    effort.spend(pattern.steps(text))?;
    pattern.is_match(text)
}

impl Operator {
    /// Whether it compares with something.
    fn needs_b(self) -> bool {
        !matches!(self, Operator::StringEmpty | Operator::StringNotEmpty)
    }
}

fn operator(value: Option<&Value>, path: &str, problems: &mut Problems) -> Option<Operator> {
    let path = format!("{path}.operator");
    let Some(Value::String(spelled)) = value else {
        problems.error(path, "a comparison needs an operator such as `@internal/cmp/string-eq`");
        return None;
    };
    let found = OPERATORS.into_iter().find(|(name, _)| name == spelled).map(|(_, operator)| operator);
    if found.is_none() {
        let hint = did_you_mean(spelled, OPERATORS.map(|(name, _)| name));
        problems.error_hint(path, format!("unknown comparison `{}`", excerpt(spelled)), hint);
    }
    found
}

fn numbers(a: &Value, b: &Value) -> Result<Option<Ordering>, String> {
    let number = |value: &Value| {
        Num::lenient(value).ok_or_else(|| format!("a number is expected, not {}", shown(value)))
    };
    Ok(number(a)?.compare(number(b)?))
}

/// A moment: RFC 3339 text, a day (its start in UTC), or seconds or milliseconds since 1970.
fn moment(value: &Value) -> Result<Timestamp, String> {
    let found = match (value, Num::lenient(value)) {
        (_, Some(number)) => epoch(number),
        (Value::String(text), None) => {
            let text = text.trim();
            Timestamp::parse_rfc3339(text).or_else(|| Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z")))
        }
        (_, None) => None,
    };
    found.ok_or_else(|| format!("a date is expected, not {}", shown(value)))
}

/// Below 100,000,000,000 a number is seconds (up to the year 5138), above it is milliseconds (from 1973).
fn epoch(number: Num) -> Option<Timestamp> {
    const SECONDS_BELOW: i128 = 100_000_000_000;
    let ms = match number {
        Num::Int(n) if n.abs() < SECONDS_BELOW => n.checked_mul(1_000)?,
        Num::Int(n) => n,
        Num::Float(f) if f.abs() < SECONDS_BELOW as f64 => (f * 1_000.0).trunc() as i128,
        Num::Float(f) if f.is_finite() => f.trunc() as i128,
        Num::Float(_) => return None,
    };
    i64::try_from(ms).ok().map(Timestamp)
}

/// A decision as a word: `true` and `approved` are the same, and so are `false` and `rejected`. An approval's output
/// counts by its action.
fn decision(value: &Value) -> String {
    let value = match value {
        Value::Object(fields) => {
            ["action", "decision", "result"].iter().find_map(|key| fields.get(*key)).unwrap_or(value)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => value,
    };
    let word = plain(value).trim().to_lowercase();
    match word.as_str() {
        "true" => "approved".to_owned(),
        "false" => "rejected".to_owned(),
        _ => word,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text `{}`", excerpt(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            a_type(value).to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
