//! `windlass flow`: what is wrong with a definition, and what it becomes.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use windlass_engine::definition::{self, Compiled, Strictness};
use windlass_engine::limits;
use windlass_engine::plan::Form;
use windlass_engine::problem::Severity;

use crate::output::{self, Format};

/// What a definition with errors ends a command with.
const BAD_DEFINITION: u8 = 2;

/// Reports the problems of every file; files that cannot be read do not keep the others from being looked at.
pub(crate) fn validate(files: &[PathBuf], lenient: bool, format: Format) -> Result<ExitCode> {
    let strictness = if lenient { Strictness::Lenient } else { Strictness::Strict };
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
        match format {
            Format::Table => {
                for problem in &compiled.problems {
                    output::line(&format!("{}: {problem}", file.display()))?;
                }
            }
            Format::Json => reports.push(report(file, &compiled)),
        }
    }
    if format == Format::Json {
        output::json(&reports)?;
    }
    let n_read = files.len() - n_unreadable;
    output::message(&format!(
        "{n_read} of {} definitions read: {n_errors} errors, {n_warnings} warnings",
        files.len()
    ));
    Ok(match (n_errors, n_unreadable) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::FAILURE,
        _ => ExitCode::from(BAD_DEFINITION),
    })
}

fn report(file: &Path, compiled: &Compiled) -> Value {
    json!({
        "file": file.display().to_string(),
        "form": compiled.form,
        "nodes": compiled.plan.as_ref().map(|plan| plan.n_nodes),
        "problems": compiled.problems,
    })
}

/// Prints the tasks of a definition of the steps form.
pub(crate) fn expand(file: &Path) -> Result<ExitCode> {
    let compiled = definition::compile(&read(file)?, Strictness::Strict);
    let steps = match compiled.form {
        Some(Form::Steps) => true,
        Some(Form::Graph | Form::Dag) => false,
        None => return refuse(file, &compiled),
    };
    if !steps {
        output::message(&format!(
            "error: {}: only definitions of the steps form expand to tasks",
            file.display()
        ));
        return Ok(ExitCode::from(BAD_DEFINITION));
    }
    if compiled.plan.is_none() {
        return refuse(file, &compiled);
    }
    let expansion = definition::expand(&compiled.definition, Strictness::Strict);
    output::json(&json!({ "tasks": expansion.tasks }))?;
    Ok(ExitCode::SUCCESS)
}

fn refuse(file: &Path, compiled: &Compiled) -> Result<ExitCode> {
    for problem in &compiled.problems {
        output::message(&format!("{}: {problem}", file.display()));
    }
    Ok(ExitCode::from(BAD_DEFINITION))
}

/// Reads a definition's text, and no more of it than a definition may have.
pub(crate) fn read(file: &Path) -> Result<String> {
    let open = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let most = limits::DEFINITION_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    open.take(most).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", file.display()))?;
    if bytes.len() as u64 == most {
        bail!("{} is larger than {} bytes: split the flow", file.display(), limits::DEFINITION_BYTES);
    }
    String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8 text", file.display()))
}
