//! `windlass dev`: plays the examples, each once, and compares how they end with what they promise.
//!
//! `example` is the files, `play` the driver, `expect` the comparison.

mod example;
mod expect;
mod play;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use windlass_engine::plan::Form;

use crate::output::{self, Format};
use example::{Example, Flows};
use play::Ending;

/// How long one example may take: they are for reading, and finish in far less.
const PATIENCE: Duration = Duration::from_secs(10);
/// Characters of a result that a table shows.
const RESULT_CHARS: usize = 60;

/// Plays every example in `dir`.
pub(crate) fn run(dir: &Path, once: bool, format: Format) -> Result<ExitCode> {
    let (examples, flows) = example::load(dir)?;
    output::message(&format!(
        "playing {} examples from {} in memory; nothing is durable in this release",
        examples.len(),
        dir.display()
    ));
    let mut reports: Vec<Report> = Vec::with_capacity(examples.len());
    for (number, example) in (0..).zip(&examples) {
        reports.push(report(example, &flows, number));
    }
    match format {
        Format::Table => output::table(
            ["flow", "form", "status", "ms", "as expected", "result"],
            &reports.iter().map(row).collect::<Vec<_>>(),
        )?,
        Format::Json => output::json(&reports.iter().map(object).collect::<Vec<_>>())?,
    }
    for report in &reports {
        for difference in &report.differences {
            output::message(&format!("{}: {difference}", report.flow));
        }
    }
    let n_wrong = reports.iter().filter(|report| !report.differences.is_empty()).count();
    output::message(&match n_wrong {
        0 => format!("all {} examples ended as expected", reports.len()),
        n => format!("{n} of {} examples did not end as expected", reports.len()),
    });
    if !once {
        output::message(
            "there is no server to go on with yet; change a file under the examples and run this again, or try\n  \
             windlass flow validate FILE    what is wrong with a definition\n  \
             windlass flow expand FILE      what a definition of the steps form becomes",
        );
    }
    Ok(if n_wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How one example went.
struct Report {
    flow: String,
    form: Form,
    ending: Ending,
    /// Empty = as expected.
    differences: Vec<String>,
}

fn report(example: &Example, flows: &Flows, number: u32) -> Report {
    let plan = Arc::clone(&example.plan);
    let ending = play::play(&plan, &example.script, flows, number, PATIENCE);
    let differences = expect::differences(&example.script.expect, &ending);
    Report { flow: example.name.clone(), form: plan.form, ending, differences }
}

fn form_word(form: Form) -> &'static str {
    match form {
        Form::Graph => "graph",
        Form::Dag => "dag",
        Form::Steps => "steps",
    }
}

fn row(report: &Report) -> [String; 6] {
    let ending = &report.ending;
    let shown = match &ending.error {
        Some(error) => error.clone(),
        None => ending.result.to_string(),
    };
    let mut result: String = shown.chars().take(RESULT_CHARS).collect();
    if result.len() < shown.len() {
        result.push('…');
    }
    [
        report.flow.clone(),
        form_word(report.form).to_owned(),
        ending.status.to_owned(),
        ending.took.as_millis().to_string(),
        if report.differences.is_empty() { "yes" } else { "NO" }.to_owned(),
        result,
    ]
}

fn object(report: &Report) -> Value {
    let ending = &report.ending;
    json!({
        "flow": report.flow,
        "form": form_word(report.form),
        "status": ending.status,
        "ms": u64::try_from(ending.took.as_millis()).unwrap_or(u64::MAX),
        "events": ending.n_events,
        "result": ending.result,
        "error": ending.error,
        "differences": report.differences,
    })
}
