//! What must hold of any definition, and of a run of any definition that was taken.

use std::sync::Arc;

use windlass_engine::definition::{Compiled, Strictness, compile, compile_value, expand};
use windlass_engine::input::{Given, Input};
use windlass_engine::limits;
use windlass_engine::plan::Plan;
use windlass_engine::problem::{Problem, Severity};
use windlass_engine::time::Timestamp;

use super::dice::Dice;
use super::world::TestRun;
use super::{moves, text_and_rest};

/// Inputs to a run: a few say more than many of the same.
const MOVES: usize = 24;
/// Events a run may have for its journal to be played again, which takes time in proportion.
const EVENTS_CHECKED: usize = 2_000;

/// Compiles the text of an input, and runs what comes of it with the moves that stand behind the text.
pub fn try_out(input: &[u8]) {
    let Some((text, moves)) = text_and_rest(input) else { return };
    let strict = compile(text, Strictness::Strict);
    let lenient = compile(text, Strictness::Lenient);
    for compiled in [&strict, &lenient] {
        look_at(compiled);
    }
    assert!(strict.plan.is_none() || lenient.plan.is_some(), "what passes strictly passes leniently");
    assert_eq!(strict.definition, lenient.definition, "a text is read the same way every time");
    if strict.form.is_some() {
        let again = compile_value(&strict.definition, Strictness::Strict);
        assert_eq!(again.problems, strict.problems, "a value is judged as its text is");
        assert_eq!(again.plan.is_some(), strict.plan.is_some(), "a value is taken as its text is");
    }
    let _ = expand(&lenient.definition, Strictness::Lenient);
    if let Some(plan) = lenient.plan {
        run(plan, moves);
    }
}

fn look_at(compiled: &Compiled) {
    let is_error = |problem: &Problem| problem.severity == Severity::Error;
    let has_error = compiled.problems.iter().any(is_error);
    assert_eq!(compiled.plan.is_none(), has_error, "a plan is absent exactly when there is an error");
    // One more may say that there are more.
    assert!(compiled.problems.len() <= limits::PROBLEMS + 1, "{} problems", compiled.problems.len());
    if let Some(plan) = &compiled.plan {
        assert!(plan.n_nodes <= limits::NODES, "{} nodes", plan.n_nodes);
    }
}

fn run(plan: Arc<Plan>, bytes: &[u8]) {
    let mut dice = Dice::new(bytes);
    let mut test_run = TestRun::of(plan);
    let mut now = Timestamp(1_000);
    let start = Input::Start(Box::new(moves::start(&mut dice)));
    let _ = test_run.submit(&start, &Given::at(now));
    for _ in 0..MOVES {
        if dice.is_spent() || test_run.journal.len() > EVENTS_CHECKED {
            break;
        }
        let (input, given) = moves::any(&mut dice, &test_run, &mut now);
        let _ = test_run.submit(&input, &given);
    }
    let started = !test_run.journal.is_empty();
    if started && test_run.journal.len() <= EVENTS_CHECKED {
        test_run.check().unwrap_or_else(|broken| panic!("{broken}"));
    }
}
