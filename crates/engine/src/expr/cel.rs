//! The expressions of the dag form: CEL, with references as the form spells them (`$var.n > 5 && !$node.a.error`).
//!
//! The grammar and the functions are those of CEL; values are JSON. Parsing and evaluation are ours, because a
//! condition of any author must neither exhaust the stack nor run for long, must give the same answer every time, and
//! takes numbers as JSON has them: an integer and a float can be compared and added, and a missing value is null at
//! any depth.

mod eval;
mod parse;
mod scan;
mod tree;
mod value;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::limits::EXPRESSION_CHARS;
use crate::meter::{Meter, steps_of};
use crate::reference::{Facts, Ref};
use crate::text::{a_type, excerpt};
use tree::CelNode;

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct CelExpr {
    root: Arc<CelNode>,
    refs: Arc<[Ref]>,
    text: Arc<str>,
}

impl CelExpr {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<CelExpr, String> {
        if text.chars().nth(EXPRESSION_CHARS).is_some() {
            return Err(format!(
                "the expression has more than {EXPRESSION_CHARS} characters: split the condition"
            ));
        }
        if text.trim().is_empty() {
            return Err("the expression is empty".to_owned());
        }
        let scanned = scan::scan(text)?;
        let root = parse::parse(text, &scanned)?;
        Ok(CelExpr { root: Arc::new(root), refs: scanned.refs.into(), text: text.into() })
    }

    /// Whether it holds; `Err` is the reason why that cannot be said.
    pub fn holds(&self, facts: &dyn Facts, meter: &Meter) -> Result<bool, String> {
        let values: Vec<_> = self.refs.iter().map(|reference| reference.resolve(facts)).collect();
        // Values that are not kept as one are copied together, which is no part of the evaluation's own bound.
        let copied = values.iter().filter(|value| matches!(value, Cow::Owned(_)));
        if meter.spend(copied.map(|value| steps_of(value)).sum()).is_err() {
            return Err("the evaluation is put off".to_owned());
        }
        match eval::evaluate(&self.root, &values, meter) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => {
                Err(format!("`{}` is not true or false but {}", excerpt(&self.text), a_type(&other)))
            }
            Err(reason) => Err(format!("{reason} in `{}`", excerpt(&self.text))),
        }
    }

    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The references it reads, each once.
    pub fn refs(&self) -> Vec<&Ref> {
        self.refs.iter().collect()
    }
}

#[cfg(test)]
mod tests;
