use tokio_util::sync::CancellationToken;
use windlass_engine::id::RunId;
use windlass_engine::plan::Exec;
use windlass_engine::retry::Fault;

use super::super::tests::{fault, server, spec};
use super::*;

fn code(language: &str, code: &str) -> Script {
    Script { language: language.to_owned(), code: code.to_owned(), ..Script::default() }
}

#[tokio::test]
async fn scripts_are_off_unless_allowed() {
    let runtime = server(Settings::default()).await;
    let spec = spec(Exec::Script(Box::new(code("sh", "echo hi"))));
    let reported = runtime.calls().call(&spec, &CancellationToken::new()).await;
    let message = "scripts are off: start the server with --allow-scripts";
    assert_eq!(*fault(&reported), Fault::new(FaultKind::Error, message).permanent());
}

#[test]
fn a_script_that_cannot_be_run_is_refused_for_good() {
    let dir = ScriptDir::of_visit(PathBuf::from("x"), RunId::new(uuid::Uuid::from_u128(7)), "key");
    let refusal = |script: &Script| supervise_order(script, dir.clone(), &Settings::default()).unwrap_err();
    let elsewhere = Script { work_dir: "/nowhere/at/all".to_owned(), ..code("sh", "true") };
    let cases = [
        (Script::default(), "the script says neither `cmd` nor"),
        (code("cobol", "x"), "language `cobol` is not known"),
        (elsewhere, "`work_dir` /nowhere/at/all is not a directory"),
    ];
    for (script, expected) in cases {
        let CallOutcome::Failed(fault) = refusal(&script) else { panic!("{script:?}") };
        assert!(fault.message.starts_with(expected) && !fault.retryable, "{fault:?}");
    }
}

#[test]
fn the_end_of_a_log_is_cut_between_characters() {
    assert_eq!(last_lines("  \n"), "");
    assert_eq!(last_lines("a\nb\n"), "a\nb");
    let long = "é".repeat(5_000);
    assert!(last_lines(&long).len() <= LAST_BYTES);
    assert!(last_lines(&format!("x{long}")).chars().all(|c| c == 'é'));
}

#[tokio::test]
async fn a_server_of_examples_runs_their_scripts_only() {
    let known = Script { cmd: "true".to_owned(), ..Script::default() };
    let policy = ScriptPolicy::Only([known.clone()].into());
    assert_eq!(policy.refusal(&known), None);
    let other = Script { args: vec!["-x".to_owned()], ..known.clone() };
    assert!(policy.refusal(&other).is_some_and(|message| message.contains("windlass serve --allow-scripts")));
    assert!(ScriptPolicy::Off.refusal(&known).is_some() && ScriptPolicy::All.refusal(&other).is_none());
}
