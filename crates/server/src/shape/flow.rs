//! Flows and versions.

use serde_json::Value;
use windlass_engine::definition::compile;
use windlass_engine::definition::source_map::{SourceMap, pointer};
use windlass_engine::plan::Form;
use windlass_engine::problem::{Problem, Severity as EngineSeverity};
use windlass_sdk::contract::{FlowInfo, ProblemSeverity, ValidationProblem, Version, VersionSummary};
use windlass_store::flow::{FlowRow, VersionRow, VersionStatus};

use super::time;

pub(crate) fn flow(row: FlowRow) -> FlowInfo {
    FlowInfo {
        id: row.id.to_string(),
        name: row.name,
        description: row.description,
        labels: row.labels,
        is_template: row.is_template,
        latest_version: row.latest,
        created_at: time(row.created_at),
        updated_at: time(row.updated_at),
    }
}

pub(crate) fn version_summary(row: &VersionRow) -> VersionSummary {
    let status = match row.status {
        VersionStatus::Draft => "draft",
        VersionStatus::Published => "published",
        VersionStatus::Archived => "archived",
    };
    VersionSummary {
        id: row.id.to_string(),
        flow_id: row.flow.to_string(),
        version: row.number,
        form: form(row.form).to_owned(),
        status: status.to_owned(),
        note: row.note.clone(),
        created_at: time(row.created_at),
    }
}

pub(crate) fn version(row: VersionRow) -> Version {
    let definition = definition(&row);
    Version { summary: version_summary(&row), definition, text: row.definition }
}

/// The definition as a value, from JSON or YAML.
pub(crate) fn definition(row: &VersionRow) -> Value {
    compile(&row.definition, row.strictness()).definition
}

pub(crate) fn form(form: Form) -> &'static str {
    match form {
        Form::Graph => "graph",
        Form::Dag => "dag",
        Form::Steps => "steps",
    }
}

/// Problems with their places; with the text of the definition, also with lines and columns.
pub(crate) fn severity_problems(problems: Vec<Problem>, text: Option<&str>) -> Vec<ValidationProblem> {
    // Most definitions have none.
    let places = text.filter(|_| !problems.is_empty()).map(SourceMap::of);
    let position = |path: &str| places.as_ref().and_then(|places| places.find(path));
    let shape = |problem: Problem| ValidationProblem {
        pointer: pointer(&problem.path),
        line: position(&problem.path).map(|position| position.line),
        column: position(&problem.path).map(|position| position.column),
        path: problem.path,
        reason: problem.reason,
        hint: problem.hint,
        severity: match problem.severity {
            EngineSeverity::Error => ProblemSeverity::Error,
            EngineSeverity::Warning => ProblemSeverity::Warning,
        },
    };
    problems.into_iter().map(shape).collect()
}
