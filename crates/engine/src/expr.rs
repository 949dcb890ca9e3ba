//! Conditions: one type for what the three forms write. Each is total: it ends, never panics, and reads nothing
//! but the facts it is given.

pub mod cel;
pub mod json;
mod pattern;
pub mod steps;

use crate::reference::{Facts, Ref};

/// A condition of any form.
#[derive(Debug, Clone)]
pub enum Condition {
    Always,
    /// The operator objects of the graph form.
    Json(json::Expr),
    /// The expressions of the dag form.
    Cel(cel::Expr),
    /// The comparison lists of the steps form.
    Steps(steps::Test),
}

impl Condition {
    /// Whether it holds; `Err` is the reason why it could not be evaluated (which counts as false).
    pub fn holds(&self, facts: &dyn Facts) -> Result<bool, String> {
        match self {
            Condition::Always => Ok(true),
            Condition::Json(expr) => Ok(expr.holds(facts)),
            Condition::Cel(expr) => expr.holds(facts),
            Condition::Steps(test) => test.holds(facts),
        }
    }

    /// The references it reads.
    pub fn refs(&self) -> Vec<&Ref> {
        match self {
            Condition::Always => Vec::new(),
            Condition::Json(expr) => expr.refs(),
            Condition::Cel(expr) => expr.refs(),
            Condition::Steps(test) => test.refs(),
        }
    }
}
