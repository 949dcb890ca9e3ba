//! Documents that must keep up with the code.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::collections::BTreeSet;
use std::path::Path;

use windlass_engine::counter::{Epoch, Fence};
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::function;
use windlass_engine::job::State;
use windlass_engine::money::Amount;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::run::state::{Activity, Phase, Stage, Status, Work};
use windlass_engine::time::Timestamp;

fn document(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(name)).unwrap()
}

/// The part of a document between a heading and the next of its level.
fn section<'d>(text: &'d str, heading: &str) -> &'d str {
    let (_, rest) = text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no `{heading}`"));
    rest.split("\n## ").next().unwrap()
}

/// States in the section's diagram: both ends of its arrows.
fn drawn(section: &str) -> BTreeSet<&str> {
    let ends = section.lines().filter_map(|line| line.split_once("-->"));
    let names = ends.flat_map(|(from, to)| [from.trim(), to.split(':').next().unwrap().trim()]);
    names.filter(|name| *name != "[*]").collect()
}

/// Every status. A new one does not compile until it is listed here.
fn statuses() -> Vec<Status> {
    fn after(status: Status) -> Option<Status> {
        match status {
            Status::Pending => Some(Status::Running),
            Status::Running => Some(Status::Paused),
            Status::Paused => Some(Status::Canceling),
            Status::Canceling => Some(Status::Completed),
            Status::Completed => Some(Status::Failed),
            Status::Failed => Some(Status::Canceled),
            Status::Canceled => None,
        }
    }
    std::iter::successors(Some(Status::Pending), |status| after(*status)).collect()
}

/// A node in every phase and at every stage of a call.
fn phases() -> Vec<Phase> {
    let at = Timestamp(0);
    let call = |stage| {
        let work: Work = serde_json::from_value(serde_json::json!({
            "stage": stage, "attempt": 1, "n_tries": 1, "n_deliveries": 1
        }))
        .unwrap();
        Phase::Open(Activity::Call(Box::new(work)))
    };
    let stages = [
        Stage::Granted { fence: Fence(1), by: Epoch(0), expiring: None },
        Stage::Backoff { until: at },
        Stage::Suspended { fence: Fence(1), until: None },
        Stage::Parked { amount: Amount(1), over_budget: false },
    ];
    let mut phases: Vec<Phase> = stages.into_iter().map(call).collect();
    let open = [
        Activity::Beginning,
        Activity::Nest,
        Activity::Timer { until: at, wall: None },
        Activity::Signal { until: None },
        Activity::Approval { until: None },
        Activity::Restart { until: at },
    ];
    phases.extend(open.into_iter().map(Phase::Open));
    phases.extend([Phase::Pending, Phase::Done, Phase::Failed, Phase::Skipped, Phase::Canceled]);
    phases
}

/// The word of a job's state as it is stored.
fn job_words() -> BTreeSet<String> {
    let at = Timestamp(0);
    let states = [
        State::Pending { until: at },
        State::Queued { since: at },
        State::Running {
            worker: String::new(),
            lease_until: at,
            deadline: None,
            cancel_at: None,
            kept_by_beats: false,
        },
        State::Suspended { until: at },
        State::Retrying { until: at },
        State::Succeeded,
        State::Failed { reason: Fault::new(FaultKind::Error, ""), discarded: None },
        State::Canceled,
    ];
    let word = |state: &State| serde_json::to_value(state).unwrap()["state"].as_str().unwrap().to_owned();
    states.iter().map(word).collect()
}

#[test]
fn the_state_machine_draws_every_status_of_a_run() {
    let text = document("docs/state-machine.md");
    let words: BTreeSet<&str> = statuses().into_iter().map(Status::word).collect();
    assert_eq!(drawn(section(&text, "Runs")), words);
}

#[test]
fn the_state_machine_draws_every_state_of_a_node() {
    let text = document("docs/state-machine.md");
    let phases = phases();
    let words: BTreeSet<&str> = phases.iter().map(Phase::word).collect();
    assert_eq!(drawn(section(&text, "Nodes")), words);
}

#[test]
fn the_state_machine_draws_every_state_of_a_job() {
    let text = document("docs/state-machine.md");
    let words = job_words();
    assert_eq!(drawn(section(&text, "Jobs")), words.iter().map(String::as_str).collect());
}

#[test]
fn the_reference_names_every_built_in_function() {
    let text = document("docs/definitions.md");
    for name in function::NAMES {
        assert!(text.contains(&format!("`{name}`")), "docs/definitions.md does not name `{name}`");
    }
}

#[test]
fn the_definitions_in_the_reference_are_sound() {
    let text = document("docs/definitions.md");
    let mut n_sound = 0;
    for block in text.split("```").skip(1).step_by(2) {
        let Some((language, definition)) = block.split_once('\n') else { continue };
        if matches!(language, "json" | "yaml") {
            let compiled = compile(definition, Strictness::Strict);
            assert!(compiled.problems.is_empty(), "{:#?}\n{definition}", compiled.problems);
            n_sound += 1;
        }
    }
    assert!(n_sound >= 3, "one definition of each form, at least");
}

#[test]
fn the_document_on_guarantees_counts_the_planted_bugs() {
    let bugs = document("crates/sim/src/bug.rs");
    let (_, rest) = bugs.split_once("pub const ALL: [PlantedBug; ").expect("the list of the bugs");
    // The compiler compares the length with the list.
    let n_bugs = rest.split(']').next().unwrap();
    let told = format!("{n_bugs} bugs can be planted");
    assert!(document("docs/guarantees.md").contains(&told), "docs/guarantees.md does not say `{told}`");
}
