//! `windlass flow validate` and `expand`: the problems of a definition, and the tasks of the steps form.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};
use windlass_engine::definition::source_map::SourceMap;
use windlass_engine::definition::{self, Compiled, Strictness};
use windlass_engine::plan::Form;
use windlass_engine::problem::{Problem, Severity};

use super::read;
use crate::exit::Exit;
use crate::output::{self, OutputFormat, Printer};

/// Reports the problems of every file; an unreadable file does not hide the others.
pub(super) fn validate(files: &[PathBuf], lenient: bool, out: &Printer) -> Result<Exit> {
    let strictness = if lenient { Strictness::Lenient } else { Strictness::Strict };
    // Lines are for people and editors, so they are the default on a pipe too.
    let lines = matches!(out.asked(), None | Some(OutputFormat::Table));
    let (mut reports, mut n_errors, mut n_warnings, mut n_unreadable) = (Vec::new(), 0, 0, 0);
    for file in files {
        let text = match read(file) {
            Ok(text) => text,
            Err(error) => {
                output::message(&format!("error: {error:#}"));
                n_unreadable += 1;
                continue;
            }
        };
        let compiled = definition::compile(&text, strictness);
        let errors = compiled.problems.iter().filter(|problem| problem.severity == Severity::Error).count();
        n_errors += errors;
        n_warnings += compiled.problems.len() - errors;
        if lines {
            lines_of(file, &text, &compiled.problems).iter().try_for_each(|line| output::line(line))?;
        } else {
            reports.push(report(file, &text, &compiled));
        }
    }
    if !lines {
        let file_of = |report: &Value| report["file"].as_str().unwrap_or_default().to_owned();
        out.list([], &reports, file_of, |_| [])?;
    }
    let n_read = files.len() - n_unreadable;
    output::message(&format!(
        "{n_read} of {} definitions read: {n_errors} errors, {n_warnings} warnings",
        files.len()
    ));
    Ok(match (n_errors, n_unreadable) {
        (0, 0) => Exit::Done,
        (0, _) => Exit::Failed,
        _ => Exit::Invalid,
    })
}

/// One line for every problem: `file:line:col: severity: path: reason (hint)`.
pub(super) fn lines_of(file: &Path, text: &str, problems: &[Problem]) -> Vec<String> {
    if problems.is_empty() {
        return Vec::new();
    }
    let map = SourceMap::of(text);
    let line = |problem: &Problem| {
        let place = map.find(&problem.path).map(|place| format!(":{place}")).unwrap_or_default();
        let severity = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{}{place}: {severity}: {}: {}{hint}", file.display(), problem.path, problem.reason)
    };
    problems.iter().map(line).collect()
}

fn report(file: &Path, text: &str, compiled: &Compiled) -> Value {
    let map = SourceMap::of(text);
    let problem = |problem: &Problem| {
        let place = map.find(&problem.path);
        json!({
            "path": problem.path, "reason": problem.reason, "hint": problem.hint, "severity": problem.severity,
            "line": place.map(|place| place.line), "column": place.map(|place| place.column),
        })
    };
    json!({
        "file": file.display().to_string(),
        "form": compiled.form,
        "nodes": compiled.plan.as_ref().map(|plan| plan.n_nodes),
        "problems": compiled.problems.iter().map(problem).collect::<Vec<_>>(),
    })
}

/// Prints the tasks of a definition of the steps form.
pub(super) fn expand(file: &Path) -> Result<Exit> {
    let text = read(file)?;
    let compiled = definition::compile(&text, Strictness::Strict);
    match compiled.form {
        Some(Form::Steps) if compiled.plan.is_some() => {}
        Some(Form::Graph | Form::Dag) => {
            output::message(&format!(
                "error: {}: only definitions of the steps form expand to tasks",
                file.display()
            ));
            return Ok(Exit::Invalid);
        }
        Some(Form::Steps) | None => return Ok(refuse(file, &text, &compiled.problems)),
    }
    let expansion = definition::expand(&compiled.definition, Strictness::Strict);
    output::json(&json!({ "tasks": expansion.tasks }))?;
    Ok(Exit::Done)
}

/// Prints the problems of a definition to stderr.
pub(super) fn refuse(file: &Path, text: &str, problems: &[Problem]) -> Exit {
    lines_of(file, text, problems).iter().for_each(|line| output::message(line));
    Exit::Invalid
}
