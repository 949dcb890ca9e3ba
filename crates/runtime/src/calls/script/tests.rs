use std::collections::BTreeMap;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use windlass_engine::plan::Exec;
use windlass_engine::retry::Fault;

use super::super::CallResult;
use super::super::tests::{fault, order, server};
use super::*;
use crate::{Runtime, ScriptPolicy, Settings};

async fn allowed() -> Runtime {
    server(Settings { scripts: ScriptPolicy::All, ..Settings::default() }).await
}

async fn run(script: Script) -> CallResult {
    let order = order(Exec::Script(Box::new(script)));
    allowed().await.calls().call(&order, &CancellationToken::new()).await
}

fn code(language: &str, code: &str) -> Script {
    Script { language: language.to_owned(), code: code.to_owned(), ..Script::default() }
}

fn sh(text: &str) -> Script {
    Script { output_mode: OutputMode::Text, ..code("sh", text) }
}

fn cmd(program: &str, args: &[&str]) -> Script {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    Script { cmd: program.to_owned(), args, output_mode: OutputMode::Text, ..Script::default() }
}

#[track_caller]
fn done(reported: &CallResult) -> &Value {
    match &reported.outcome {
        CallOutcome::Done(value) => value,
        other => panic!("{other:?}"),
    }
}

/// Whether the interpreter of a language is on this machine; says so if it is not.
fn is_here(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).any(|path| path.join(program).is_file());
    if !found {
        println!("skipped: `{program}` is not on this machine");
    }
    found
}

#[tokio::test]
async fn each_language_gets_its_input_and_gives_its_result() {
    let python = "import sys, json\nd = json.load(sys.stdin)\nprint('seen', file=sys.stderr)\n\
                  print(json.dumps({'text': d['input']['text'].upper(), 'op': d['params']['op']}))";
    let node = "let t = ''; process.stdin.on('data', c => t += c).on('end', () => { const d = JSON.parse(t); \
                console.error('seen'); \
                console.log(JSON.stringify({text: d.input.text.toUpperCase(), op: d.params.op})) })";
    let shell = "read line; echo seen >&2; case $line in *hi*upper*) echo '{\"text\": \"HI\", \"op\": \"upper\"}';; esac";
    let languages = [
        ("python", "python3", python),
        ("javascript", "node", node),
        ("node", "node", node),
        ("bash", "bash", shell),
        ("sh", "sh", shell),
    ];
    for (language, program, text) in languages {
        if is_here(program) {
            let text = if shell == text { text.replace("read line", "line=$(cat)") } else { text.to_owned() };
            let reported = run(code(language, &text)).await;
            assert_eq!(*done(&reported), json!({"text": "HI", "op": "upper"}), "{language}");
            assert_eq!(reported.log.text, "seen\n", "{language}");
            assert_eq!(reported.worker, None);
        }
    }
}

#[tokio::test]
async fn scripts_are_off_unless_allowed() {
    let runtime = server(Settings::default()).await;
    let order = order(Exec::Script(Box::new(sh("echo hi"))));
    let reported = runtime.calls().call(&order, &CancellationToken::new()).await;
    let message = "scripts are off: start the server with --allow-scripts";
    assert_eq!(*fault(&reported), Fault::new(FaultKind::Error, message).permanent());
}

#[tokio::test]
async fn arguments_are_passed_unchanged_and_without_a_shell() {
    let nasty = "$(id); `id` && echo > /x | 'q' \"d\" *\n$HOME \\";
    let reported = run(cmd("printf", &["%s|", nasty, "", "--", "é"])).await;
    assert_eq!(*done(&reported), json!(format!("{nasty}||--|é|")));
    let script = Script { args: vec![nasty.to_owned()], ..sh("printf %s \"$1\"") };
    assert_eq!(*done(&run(script).await), json!(nasty));
}

#[tokio::test]
async fn a_command_may_be_given_code_too() {
    let script =
        Script { cmd: "sh".to_owned(), args: vec!["-e".to_owned()], ..sh("echo by command; false; echo no") };
    let reported = run(Script { language: String::new(), ..script }).await;
    assert!(fault(&reported).message.contains("exit status: 1"), "{reported:?}");
}

#[tokio::test]
async fn a_script_sees_nothing_of_the_servers_environment() {
    let script = Script { env: BTreeMap::from([("MINE".to_owned(), "yes".to_owned())]), ..sh("env | sort") };
    let reported = run(script).await;
    let text = done(&reported).as_str().unwrap();
    // A shell adds some of its own.
    let own = ["PWD", "OLDPWD", "SHLVL", "_"];
    let names: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    let names: Vec<&&str> = names.iter().filter(|name| !own.contains(name)).collect();
    assert_eq!(names, [&"HOME", &"LANG", &"MINE", &"PATH"]);
}

#[tokio::test]
async fn a_script_works_in_a_directory_of_its_own_that_is_removed() {
    let reported = run(sh("pwd; echo $HOME; stat -c %a .; ls; echo x > left")).await;
    let lines: Vec<&str> = done(&reported).as_str().unwrap().lines().collect();
    let path = PathBuf::from(lines[0]);
    assert_eq!(lines[1..], [lines[0], "700", "script.sh"]);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_script_may_choose_where_it_works_if_that_is_there() {
    let script = Script { work_dir: "/".to_owned(), ..sh("pwd") };
    assert_eq!(*done(&run(script).await), json!("/"));
    let reported = run(Script { work_dir: "/nowhere/at/all".to_owned(), ..sh("pwd") }).await;
    assert!(fault(&reported).message.contains("`work_dir` /nowhere/at/all is not a directory"));
    assert!(!fault(&reported).retryable);
}

#[tokio::test]
async fn a_script_that_fails_says_so_with_the_end_of_its_log() {
    let text = "i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo line $i >&2; done; exit 3";
    let reported = run(sh(text)).await;
    let Fault { kind, message, retryable, retry_after_ms: _ } = fault(&reported);
    assert_eq!((*kind, *retryable), (FaultKind::Error, true));
    assert!(message.starts_with("the script failed (exit status: 3): line 41\n"), "{message}");
    assert!(message.ends_with("line 50"), "{message}");
    assert!(reported.log.text.starts_with("line 1\n"));
    let reported = run(sh("kill -TERM $$")).await;
    assert!(fault(&reported).message.contains("signal: 15"), "{reported:?}");
}

#[tokio::test]
async fn output_that_is_not_json_is_named() {
    let json = |text: &str| Script { output_mode: OutputMode::Json, ..sh(text) };
    let reported = run(json("echo hello")).await;
    assert!(
        fault(&reported).message.starts_with("the script wrote `hello` to stdout, not json"),
        "{reported:?}"
    );
    let reported = run(json("true")).await;
    assert!(fault(&reported).message.starts_with("the script wrote nothing to stdout, not json"));
    assert_eq!(*done(&run(json("echo '[1, 2]'")).await), json!([1, 2]));
    let reported = run(json("printf '{\"a\": \\377}'")).await;
    assert!(fault(&reported).message.contains("not json"));
}

#[tokio::test]
async fn a_script_that_writes_too_much_is_stopped() {
    let reported = run(sh("yes")).await;
    assert!(fault(&reported).message.starts_with("the script wrote more than 1048576 bytes"), "{reported:?}");
    let reported = run(sh("head -c 1048576 /dev/zero | tr '\\0' x")).await;
    assert_eq!(done(&reported).as_str().unwrap().len(), 1_048_576);
    let reported = run(sh("head -c 300000 /dev/zero | tr '\\0' x >&2; echo end >&2; echo ok")).await;
    assert_eq!(*done(&reported), json!("ok"));
    let log = reported.log.text;
    assert_eq!(log.len(), LOG_BYTES_MAX);
    assert!(log.ends_with("xend\n"));
}

/// Whether a process is at work, and not just a name in the table.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}

async fn dies(pid: &str) {
    let pid = pid.trim();
    assert!(pid.parse::<u32>().is_ok(), "not a process: {pid:?}");
    for _ in 0..2_000 {
        if !is_alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("process {pid} is still alive");
}

#[tokio::test]
async fn a_script_after_its_deadline_is_killed_with_its_processes() {
    let started = Instant::now();
    let text = "sleep 600 & echo $! >&2; sh -c 'sleep 600 & echo $! >&2; wait' & wait";
    let reported = run(Script { timeout_ms: 500, ..sh(text) }).await;
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(fault(&reported).kind, FaultKind::Timeout);
    assert!(fault(&reported).message.starts_with("the script did not end within 500 ms and was killed"));
    let log = reported.log.text;
    assert_eq!(log.lines().count(), 2, "{log}");
    for pid in log.lines() {
        dies(pid).await;
    }
}

#[tokio::test]
async fn an_ended_script_does_not_wait_for_its_background_processes() {
    let started = Instant::now();
    let reported = run(sh("sleep 600 & echo $!")).await;
    assert!(started.elapsed() < Duration::from_secs(20));
    dies(done(&reported).as_str().unwrap()).await;
}

#[tokio::test]
async fn the_call_does_not_wait_for_a_process_that_left_the_group() {
    if !is_here("setsid") {
        return;
    }
    let started = Instant::now();
    let reported = run(sh("mkfifo up; setsid sh -c 'echo $$ > up; exec sleep 60' & cat up")).await;
    assert!(started.elapsed() < Duration::from_secs(20));
    let pid = done(&reported).as_str().unwrap().to_owned();
    assert!(is_alive(&pid), "it was to hold the pipe open");
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_cancelled_script_is_killed_with_everything_it_started() {
    let directory = std::env::temp_dir().join(format!("windlass-test-{}", uuid::Uuid::now_v7().simple()));
    std::fs::create_dir(&directory).unwrap();
    let fifo = directory.join("pids");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let runtime = allowed().await;
    let text = format!("sleep 600 & echo $! $$ > {}; wait", fifo.display());
    let order = order(Exec::Script(Box::new(sh(&text))));
    let cancel = CancellationToken::new();
    let stopping = async {
        let pids = tokio::fs::read_to_string(&fifo).await.unwrap();
        cancel.cancel();
        pids
    };
    let (reported, pids) = tokio::join!(runtime.calls().call(&order, &cancel), stopping);
    assert_eq!(reported.outcome, CallOutcome::Canceled);
    for pid in pids.split_whitespace() {
        dies(pid).await;
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn a_script_need_not_read_its_input() {
    let mut order = order(Exec::Script(Box::new(sh("echo ok"))));
    order.input = Arc::new(json!("x".repeat(4 << 20)));
    let reported = allowed().await.calls().call(&order, &CancellationToken::new()).await;
    assert_eq!(*done(&reported), json!("ok"));
    let counted = Script { stdin_mode: StdinMode::None, ..sh("wc -c") };
    assert_eq!(done(&run(counted).await).as_str().unwrap().trim(), "0");
}

#[tokio::test]
async fn a_missing_command_is_named_and_not_retried() {
    let cases = [
        (cmd("windlass-no-such-program", &[]), "`windlass-no-such-program` cannot be run on this server"),
        (cmd("/", &[]), "`/` cannot be run on this server"),
        (cmd("echo", &["nul\0"]), "`echo` cannot be run on this server"),
        (Script::default(), "the script says neither `cmd` nor"),
        (code("cobol", "x"), "language `cobol` is not known"),
    ];
    for (script, expected) in cases {
        let reported = run(script).await;
        assert!(fault(&reported).message.starts_with(expected), "{reported:?}");
        assert!(!fault(&reported).retryable);
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
