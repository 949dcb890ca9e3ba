//! Flows, their versions, and problems of a definition.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{FlowGraph, Time};

/// A flow to be made, with its first version. Give `definition` or `yaml`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowRequest {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The definition as an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub definition: Option<Value>,
    /// The definition as text, YAML or JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yaml: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether it is meant to be copied: flows are made of it with `instantiate`. It can be run, too.
    #[serde(default)]
    pub is_template: bool,
}

/// A flow to be made of a template.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InstantiateRequest {
    /// The name of the new flow.
    pub name: String,
    /// Absent = that of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The version of the template; absent = the highest that is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Values that become the defaults of the variables that the template declares.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub variables: Map<String, Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A version to be published. Give `definition` or `yaml`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VersionRequest {
    /// The definition as an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub definition: Option<Value>,
    /// The definition as text, YAML or JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yaml: Option<String>,
    /// The change note, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A definition to be looked at. Give `definition` or `yaml`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The definition as an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub definition: Option<Value>,
    /// The definition as text, YAML or JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yaml: Option<String>,
}

/// An example flow of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExampleInfo {
    pub name: String,
    /// Whether there is a flow of this name.
    pub loaded: bool,
}

/// The examples to be published.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExampleNames {
    /// Absent = all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
}

/// The examples that were published.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ExamplesLoaded {
    pub published: Vec<PublishResponse>,
    /// Names of flows that were there already.
    pub kept: Vec<String>,
}

/// The published version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PublishResponse {
    /// The flow.
    #[schema(example = "flow_0190a1b2c3d47000800000000000000b")]
    pub id: String,
    pub name: String,
    /// The number of the version.
    pub version: u32,
    pub version_id: String,
    /// Warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<ValidationProblem>,
}

/// A named definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlowInfo {
    pub id: String,
    pub name: String,
    pub description: String,
    pub labels: BTreeMap<String, String>,
    pub is_template: bool,
    /// The highest number among its versions; 0 = none yet.
    pub latest_version: u32,
    pub created_at: Time,
    pub updated_at: Time,
}

/// A flow with the version that is started when none is named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowDetail {
    #[serde(flatten)]
    pub flow: FlowInfo,
    /// The highest version that is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

/// A version as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionSummary {
    pub id: String,
    pub flow_id: String,
    /// Its number.
    pub version: u32,
    /// `graph`, `dag` or `steps`.
    pub form: String,
    /// `draft`, `published` or `archived`.
    pub status: String,
    pub note: String,
    pub created_at: Time,
}

/// One immutable definition of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    #[serde(flatten)]
    pub summary: VersionSummary,
    /// The definition as an object.
    #[schema(value_type = Object)]
    pub definition: Value,
    /// The text as it was published.
    pub text: String,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProblemSeverity {
    /// The definition cannot be published.
    Error,
    /// The definition can be published, but should be reviewed.
    Warning,
}

/// One thing that is wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValidationProblem {
    /// Where: `$.nodes.fetch.service`, `line 4 column 2`.
    pub path: String,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    pub severity: ProblemSeverity,
    /// The same place as a JSON pointer: `/nodes/fetch/service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The line in the text, from 1, if the definition was given as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column in that line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
}

/// All problems of a definition, and its graph if it can be published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Validation {
    /// Whether it can be published.
    pub ok: bool,
    /// `graph`, `dag` or `steps`, if that could be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// Nodes in all its scopes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_nodes: Option<usize>,
    pub problems: Vec<ValidationProblem>,
    /// The graph, laid out from left to right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<FlowGraph>,
}

/// The tasks that the steps of a definition become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExpandResponse {
    pub tasks: Vec<ExpandedTaskInfo>,
}

/// A step as it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExpandedTaskInfo {
    pub id: String,
    /// The positional id: `{parallel}_b{branch}_s{step}` inside branches, the step's own id elsewhere. In the body of a
    /// loop it ends with `_i{turn}`; a run has the number of the turn in place of `{turn}`.
    pub task_id: String,
    pub operator: String,
    /// The title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tasks that must be settled before it.
    #[serde(rename = "dependOn")]
    pub depend_on: Vec<String>,
    /// The body of a loop. Its tasks exist once in each turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub steps: Vec<ExpandedTaskInfo>,
}

/// How two versions of a flow differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowDiff {
    pub flow_id: String,
    pub from: u32,
    pub to: u32,
    /// In the order of the paths.
    pub changes: Vec<DefinitionChange>,
    /// Whether there are more changes than are listed.
    #[serde(default)]
    pub more: bool,
    /// Nodes that were added, removed or changed, in the order of their ids.
    #[serde(default)]
    pub nodes: Vec<NodeChange>,
    /// The older version as it was published.
    #[serde(default)]
    pub before_text: String,
    /// The newer version as it was published.
    #[serde(default)]
    pub after_text: String,
}

/// A node that differs between two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeChange {
    /// Its id in the graph: `fetch`, `each/*/resize`.
    pub node: String,
    pub kind: DefinitionChangeKind,
    /// The places that differ, as JSON pointers into the newer version; of a removed node, into the older one.
    pub pointers: Vec<String>,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DefinitionChange {
    /// Where, as a JSON pointer: `/nodes/fetch/service`.
    pub path: String,
    pub kind: DefinitionChangeKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DefinitionChangeKind {
    Added,
    Removed,
    Changed,
}
