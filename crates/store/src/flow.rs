//! Flows and their versions as they are stored.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod readable;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windlass_engine::definition::Strictness;
use windlass_engine::id::{FlowId, VersionId};
use windlass_engine::plan::{Form, Plan};
use windlass_engine::time::Timestamp;

use crate::page::{Order, Part};

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) use readable::Readable;

/// A named definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowRow {
    pub id: FlowId,
    pub name: String,
    pub description: String,
    pub labels: BTreeMap<String, String>,
    pub is_template: bool,
    /// The highest number among its versions; 0 = none yet.
    pub latest: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// One immutable definition of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VersionRow {
    pub id: VersionId,
    pub flow: FlowId,
    pub number: u32,
    /// The text as it was published.
    pub definition: String,
    pub form: Form,
    /// Whether unknown fields were let through; it has to be compiled that way again.
    pub lenient: bool,
    pub status: VersionStatus,
    pub note: String,
    pub created_at: Timestamp,
}

impl VersionRow {
    /// How the definition is to be compiled.
    pub fn strictness(&self) -> Strictness {
        if self.lenient { Strictness::Lenient } else { Strictness::Strict }
    }
}

/// Whether a version can be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VersionStatus {
    Draft,
    #[default]
    Published,
    /// Kept for its runs; not started any more.
    Archived,
}

/// A publication: a flow, a version of one, or both at once.
///
/// Ids are given by the caller, so that publishing again after an unknown outcome is harmless: rows that exist under
/// these ids already is answered, and nothing is written.
#[derive(Debug, Clone)]
pub struct Publication {
    pub flow: FlowChoice,
    pub version: Option<VersionDraft>,
    pub now: Timestamp,
}

/// The flow that is published, or gets a version.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowChoice {
    Existing(FlowId),
    Create(FlowDraft),
}

/// A flow to be created.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowDraft {
    pub id: FlowId,
    pub name: String,
    pub description: String,
    pub labels: BTreeMap<String, String>,
    pub is_template: bool,
    /// Makes another flow of a taken name instead of refusing it.
    pub allow_same_name: bool,
}

/// A version to be created.
#[derive(Debug, Clone)]
pub struct VersionDraft {
    pub id: VersionId,
    /// `None` = the next one.
    pub number: Option<u32>,
    pub definition: String,
    /// The plan of the definition. A store that needs one and is given none compiles the definition.
    pub plan: Option<Arc<Plan>>,
    pub form: Form,
    pub lenient: bool,
    pub status: VersionStatus,
    pub note: String,
}

/// The rows as they are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    pub flow: FlowId,
    pub version: Option<(VersionId, u32)>,
    /// Whether anything was written.
    pub created: bool,
}

/// A flow by its name or id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowRef {
    Id(FlowId),
    /// The first owner of the name, if several flows have it.
    Name(String),
}

/// Which flows are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlowQuery {
    pub flow: Option<FlowRef>,
    /// In the name or the description, ignoring case.
    pub text: Option<String>,
    /// A label, and its value if that matters.
    pub label: Option<(String, Option<String>)>,
    pub is_template: Option<bool>,
    pub part: Part,
}

impl FlowQuery {
    /// Asks for one flow; of several with the name, for the one that had it first.
    pub fn of_one(flow: FlowRef) -> Self {
        let part = Part { order: Order::Oldest, limit: 1, ..Part::default() };
        FlowQuery { flow: Some(flow), part, ..FlowQuery::default() }
    }

    /// The flow, if this asks for one and nothing else.
    pub(crate) fn one(&self) -> Option<&FlowRef> {
        self.flow.as_ref().filter(|flow| *self == FlowQuery::of_one((*flow).clone()))
    }
}

/// Names one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionRef {
    Id(VersionId),
    Number {
        flow: FlowId,
        number: u32,
    },
    /// The highest number that is published.
    Latest {
        flow: FlowId,
    },
}

impl FlowRow {
    /// Whether the query asks for it. `FlowRef::Name` matches every flow of the name; the oldest is meant.
    pub fn matches(&self, query: &FlowQuery) -> bool {
        let named = query.flow.as_ref().is_none_or(|flow| match flow {
            FlowRef::Id(id) => *id == self.id,
            FlowRef::Name(name) => *name == self.name,
        });
        named
            && query.is_template.is_none_or(|is| is == self.is_template)
            && crate::run::has_label(&self.labels, query.label.as_ref())
            && query.text.as_ref().is_none_or(|text| {
                let text = text.to_lowercase();
                [&self.name, &self.description].iter().any(|field| field.to_lowercase().contains(&text))
            })
    }
}
