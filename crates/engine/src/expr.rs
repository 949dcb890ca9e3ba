//! Conditions.

use crate::reference::Facts;

/// A condition of any form.
#[derive(Debug, Clone)]
pub enum Condition {
    Always,
}

impl Condition {
    /// Whether it holds; `Err` is the reason why it could not be evaluated (which counts as false).
    pub fn holds(&self, _facts: &dyn Facts) -> Result<bool, String> {
        Ok(true)
    }
}
