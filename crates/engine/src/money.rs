//! Money rules.

use crate::reference::Template;

/// What a call costs, as its definition says.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    pub estimate: Template,
    pub actual: Option<Template>,
}
