//! The expressions of the graph form: one operator per object, such as `{"gt": ["$params.age", 17]}`.
//!
//! Everything can be evaluated, unless there is too much of it: values that cannot be compared are unequal and in no
//! order.

use std::cmp::Ordering;

use serde_json::Value;

use super::Effort;
use crate::limits::{CONDITION_STEPS, EXPRESSION_DEPTH};
use crate::meter::{BYTES_PER_STEP, Meter, steps_of};
use crate::number::Num;
use crate::problem::{Problems, did_you_mean};
use crate::reference::{Facts, Ref, Template};
use crate::text::{a_type, excerpt, plain};

/// Operators in one expression: far more than a person writes, few enough to be evaluated in no time.
const OPERATORS_MAX: usize = 1_000;
const OPERATORS: [&str; 12] =
    ["and", "or", "not", "eq", "ne", "gt", "lt", "ge", "le", "exists", "in", "contains"];

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonExpr {
    All(Vec<JsonExpr>),
    Any(Vec<JsonExpr>),
    Not(Box<JsonExpr>),
    Compare(Comparison, Template, Template),
    /// The value is there and not null.
    Exists(Ref),
    /// The first is an element, a key or a part of the second (`in`; `contains` with its sides exchanged).
    Within(Template, Template),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    Ne,
    Gt,
    Lt,
    Ge,
    Le,
}

impl JsonExpr {
    /// Reads an expression; its errors go to `problems`, under `path`.
    pub fn parse(value: &Value, path: &str, problems: &mut Problems) -> Option<JsonExpr> {
        JsonExprReader { problems, n_operators: 0 }.expr(value, path, 0)
    }

    /// Whether it holds; `Err` if there is too much data to say so.
    pub fn holds(&self, facts: &dyn Facts, meter: &Meter) -> Result<bool, String> {
        self.test(facts, &Effort::new(meter, CONDITION_STEPS))
    }

    fn test(&self, facts: &dyn Facts, effort: &Effort<'_>) -> Result<bool, String> {
        effort.spend(1)?;
        Ok(match self {
            JsonExpr::All(parts) => {
                for part in parts {
                    if !part.test(facts, effort)? {
                        return Ok(false);
                    }
                }
                true
            }
            JsonExpr::Any(parts) => {
                for part in parts {
                    if part.test(facts, effort)? {
                        return Ok(true);
                    }
                }
                false
            }
            JsonExpr::Not(part) => !part.test(facts, effort)?,
            JsonExpr::Compare(comparison, a, b) => {
                let (a, b) = (a.look(facts), b.look(facts));
                effort.spend(steps_of(&a).saturating_add(steps_of(&b)))?;
                comparison.holds(&a, &b)
            }
            JsonExpr::Exists(reference) => !reference.resolve(facts).is_null(),
            JsonExpr::Within(value, collection) => {
                let (value, collection) = (value.look(facts), collection.look(facts));
                effort.spend(search_steps(&value, &collection))?;
                within(&value, &collection)
            }
        })
    }

    /// The references it reads.
    pub fn refs(&self) -> Vec<&Ref> {
        match self {
            JsonExpr::All(parts) | JsonExpr::Any(parts) => parts.iter().flat_map(JsonExpr::refs).collect(),
            JsonExpr::Not(part) => part.refs(),
            JsonExpr::Compare(_, a, b) | JsonExpr::Within(a, b) => [a.refs(), b.refs()].concat(),
            JsonExpr::Exists(reference) => vec![reference],
        }
    }
}

impl Comparison {
    fn holds(self, a: &Value, b: &Value) -> bool {
        let order = || order(a, b);
        match self {
            Comparison::Eq => equal(a, b),
            Comparison::Ne => !equal(a, b),
            Comparison::Gt => order() == Some(Ordering::Greater),
            Comparison::Lt => order() == Some(Ordering::Less),
            Comparison::Ge => order().is_some_and(Ordering::is_ge),
            Comparison::Le => order().is_some_and(Ordering::is_le),
        }
    }
}

/// Numbers, and strings that are numbers, in the order of numbers; other strings by their characters; all else in
/// no order.
fn order(a: &Value, b: &Value) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (Num::lenient(a), Num::lenient(b)) {
        return a.compare(b);
    }
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn equal(a: &Value, b: &Value) -> bool {
    order(a, b).map_or_else(|| same(a, b), Ordering::is_eq)
}

/// Equality in which `1` and `1.0` are one number, at any depth. Values nest as deep as JSON readers let them.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Num::of(a).compare(Num::of(b)) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// Steps of [`within`]: a list is compared item by item, a text is searched.
fn search_steps(value: &Value, collection: &Value) -> usize {
    let value = steps_of(value);
    match collection {
        Value::Array(items) => items.len().saturating_mul(value),
        Value::String(text) => text.len() / BYTES_PER_STEP + value,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value,
    }
}

fn within(value: &Value, collection: &Value) -> bool {
    match (collection, value) {
        (Value::Array(items), _) => items.iter().any(|item| equal(item, value)),
        (Value::Object(fields), Value::String(key)) => fields.contains_key(key),
        // Every text contains the empty text; authors mean "absent" by it.
        (Value::String(_), Value::Null) => false,
        (Value::String(text), _) => text.contains(plain(value).as_ref()),
        _ => false,
    }
}

struct JsonExprReader<'a> {
    problems: &'a mut Problems,
    n_operators: usize,
}

impl JsonExprReader<'_> {
    fn expr(&mut self, value: &Value, path: &str, depth: usize) -> Option<JsonExpr> {
        if depth >= EXPRESSION_DEPTH {
            let reason =
                format!("the expression nests deeper than {EXPRESSION_DEPTH}: split it into several cases");
            self.problems.error(path, reason);
            return None;
        }
        self.n_operators += 1;
        if self.n_operators > OPERATORS_MAX {
            if self.n_operators == OPERATORS_MAX + 1 {
                let reason =
                    format!("the expression has more than {OPERATORS_MAX} operators: use `in` with a list");
                self.problems.error(path, reason);
            }
            return None;
        }
        let Value::Object(fields) = value else {
            let reason =
                format!("an expression is an object such as {{\"eq\": [a, b]}}, not {}", a_type(value));
            self.problems.error(path, reason);
            return None;
        };
        let mut fields_iter = fields.iter();
        let (Some((operator, operand)), None) = (fields_iter.next(), fields_iter.next()) else {
            let reason = format!("an expression has one operator, not {}", fields.len());
            self.problems.error_hint(path, reason, Some("join several with `and` or `or`".to_owned()));
            return None;
        };
        self.operator(operator, operand, &format!("{path}.{}", excerpt(operator)), depth)
    }

    fn operator(&mut self, operator: &str, operand: &Value, path: &str, depth: usize) -> Option<JsonExpr> {
        let comparison = match operator {
            "and" => return self.parts(operand, path, depth).map(JsonExpr::All),
            "or" => return self.parts(operand, path, depth).map(JsonExpr::Any),
            "not" => {
                return self
                    .expr(unwrap_single(operand), path, depth + 1)
                    .map(|part| JsonExpr::Not(Box::new(part)));
            }
            "exists" => return self.exists(unwrap_single(operand), path),
            "in" => {
                return self
                    .pair(operand, path)
                    .map(|(value, collection)| JsonExpr::Within(value, collection));
            }
            "contains" => {
                return self
                    .pair(operand, path)
                    .map(|(collection, value)| JsonExpr::Within(value, collection));
            }
            "eq" => Comparison::Eq,
            "ne" => Comparison::Ne,
            "gt" => Comparison::Gt,
            "lt" => Comparison::Lt,
            "ge" => Comparison::Ge,
            "le" => Comparison::Le,
            unknown => {
                let reason = format!("unknown operator `{}`", excerpt(unknown));
                let known = format!("known: {}", OPERATORS.join(", "));
                let hint =
                    did_you_mean(unknown, OPERATORS).map_or(known.clone(), |hint| format!("{hint} {known}"));
                self.problems.error_hint(path, reason, Some(hint));
                return None;
            }
        };
        self.pair(operand, path).map(|(a, b)| JsonExpr::Compare(comparison, a, b))
    }

    fn parts(&mut self, operand: &Value, path: &str, depth: usize) -> Option<Vec<JsonExpr>> {
        match operand {
            Value::Array(parts) if !parts.is_empty() => {
                // Every part is read, so that every problem is reported.
                let parts = parts.iter().enumerate();
                let read: Vec<_> = parts
                    .map(|(index, part)| self.expr(part, &format!("{path}[{index}]"), depth + 1))
                    .collect();
                read.into_iter().collect()
            }
            _ => {
                let found = if operand.is_array() { "an empty one" } else { a_type(operand) };
                self.problems.error(path, format!("a list of expressions is expected, not {found}"));
                None
            }
        }
    }

    fn pair(&mut self, operand: &Value, path: &str) -> Option<(Template, Template)> {
        match operand.as_array().map(Vec::as_slice) {
            Some([a, b]) => {
                let a = self.operand(a, &format!("{path}[0]"));
                let b = self.operand(b, &format!("{path}[1]"));
                Some((a?, b?))
            }
            Some(other) => {
                self.problems.error(path, format!("two values are expected, not {}", other.len()));
                None
            }
            None => {
                self.problems
                    .error(path, format!("a list of two values is expected, not {}", a_type(operand)));
                None
            }
        }
    }

    fn operand(&mut self, value: &Value, path: &str) -> Option<Template> {
        let template = match value.is_string() {
            true => Template::from_input_map(value),
            false => Template::from_dag(value),
        };
        template.map_err(|reason| self.problems.error(path, reason)).ok()
    }

    fn exists(&mut self, operand: &Value, path: &str) -> Option<JsonExpr> {
        match self.operand(operand, path)? {
            Template::Ref(reference) => Some(JsonExpr::Exists(reference)),
            Template::Literal(_) | Template::Text(_) | Template::Array(_) | Template::Object(_) => {
                let hint = operand.as_str().map(|word| format!("write `$shared.{}`?", excerpt(word)));
                self.problems.error_hint(path, "`exists` needs a reference such as `$params.x`", hint);
                None
            }
        }
    }
}

/// `{"not": [x]}` is as good as `{"not": x}`.
fn unwrap_single(operand: &Value) -> &Value {
    match operand.as_array().map(Vec::as_slice) {
        Some([single]) => single,
        Some(_) | None => operand,
    }
}

#[cfg(test)]
mod tests;
