//! Scripts in processes of their own, through the launcher.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;
use windlass_conformance::faulty_store::{FaultyStore, unavailable};
use windlass_conformance::test_directory::TestDirectory;
use windlass_engine::definition::Strictness;
use windlass_engine::event::Start;
use windlass_engine::id::RunId;
use windlass_engine::input::Input;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_runtime::calls::script::ScriptLimits;
use windlass_runtime::runs::RunSpec;
use windlass_runtime::runs::flow::{FlowSpec, VersionSpec};
use windlass_runtime::{Runtime, ScriptPolicy, Settings};
use windlass_store::Memory;
use windlass_store::flow::VersionStatus;
use windlass_store::log::{LogRow, LogsOf};
use windlass_store::run::RunStatus;

const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than any test may take.
const FOR_EVER: &str = "sleep 600";

fn settings() -> Settings {
    let launcher = env!("CARGO_BIN_EXE_script_launcher").to_owned();
    Settings { scripts: ScriptPolicy::All, script_launcher: vec![launcher], ..Settings::default() }
}

async fn server(settings: Settings) -> Runtime {
    Runtime::start_up(Arc::new(Memory::new()), settings).await.unwrap()
}

/// Starts a run whose one node is this script.
async fn start(server: &Runtime, script: Value, text: &str) -> RunId {
    start_with_retries(server, script, text, 0).await
}

async fn start_with_retries(server: &Runtime, script: Value, text: &str, n_retries: u32) -> RunId {
    let node = json!({"exec_type": "local_script", "script": script, "params": {"op": "upper"},
        "prep": {"input_map": {"text": text}}, "max_retries": n_retries, "wait_ms": 1});
    let flow = FlowSpec { name: Uuid::now_v7().to_string(), ..FlowSpec::default() };
    let version = VersionSpec {
        definition: json!({"start": "n", "nodes": {"n": node}}).to_string(),
        strictness: Strictness::Strict,
        number: None,
        status: VersionStatus::Published,
        note: String::new(),
    };
    let published = server.runs().publish_flow(flow, Some(version)).await.unwrap().published;
    let new = RunSpec {
        flow: published.flow,
        version: published.version.unwrap().0,
        request: None,
        labels: BTreeMap::new(),
        schedule: None,
        start: Start::default(),
    };
    server.runs().start(new).await.unwrap().run
}

/// How the script of a run ended.
#[derive(Debug)]
struct ScriptRun {
    output: Value,
    fault: Option<Fault>,
    attempts: u32,
    log: Vec<String>,
}

impl ScriptRun {
    #[track_caller]
    fn text(&self) -> &str {
        assert_eq!(self.fault, None);
        self.output.as_str().unwrap()
    }

    #[track_caller]
    fn fault(&self) -> &Fault {
        self.fault.as_ref().unwrap_or_else(|| panic!("{self:?}"))
    }
}

async fn ended(server: &Runtime, run: RunId) -> ScriptRun {
    let status = server.runs().wait_ended(run, PATIENCE).await.unwrap().unwrap();
    let view = server.runs().view(run).await.unwrap().unwrap();
    let node = view.state.root.node(0);
    let logs = server.store().logs(server.project(), run, LogsOf::Attempt(node.fence)).await.unwrap();
    let of_text = |log: &LogRow| log.text.lines().map(str::to_owned).collect::<Vec<_>>();
    let of_lines = |log: &LogRow| log.lines.iter().map(|line| line.message.clone()).collect::<Vec<_>>();
    let lines = logs.iter().flat_map(|log| [of_text(log), of_lines(log)].concat());
    assert_eq!(status == RunStatus::Failed, node.fault.is_some(), "{node:?}");
    ScriptRun {
        output: node.output.as_deref().cloned().unwrap_or_default(),
        fault: node.fault.clone(),
        attempts: node.attempts,
        log: lines.collect(),
    }
}

async fn run_with(settings: Settings, script: Value) -> ScriptRun {
    let server = server(settings).await;
    let run = start_with_retries(&server, script, "hi", 1).await;
    ended(&server, run).await
}

async fn run(script: Value) -> ScriptRun {
    run_with(settings(), script).await
}

fn sh(code: &str) -> Value {
    json!({"language": "sh", "code": code, "output_mode": "text"})
}

/// A script with more fields.
fn with(mut script: Value, fields: &Value) -> Value {
    script.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    script
}

/// Fails a test whose program is not on this machine; `./test` leaves it out then, and says so.
#[track_caller]
fn check_program(program: &str) {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    assert!(
        std::env::split_paths(&paths).any(|path| path.join(program).is_file()),
        "`{program}` is not on this machine: install it, or leave the test out with --skip with_{program}_"
    );
}

/// A private directory.
fn directory() -> PathBuf {
    let path = std::env::temp_dir().join(format!("windlass-test-{}", Uuid::now_v7().simple()));
    std::fs::create_dir(&path).unwrap();
    path
}

/// Waits for a file that another process writes in one step.
async fn written(file: &Path) -> String {
    let begun = Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(file) {
            return text;
        }
        assert!(begun.elapsed() < PATIENCE, "{} was never written", file.display());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process is at work, and not just a name in the table.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}

async fn dies(pid: &str) {
    let (pid, begun) = (pid.trim(), Instant::now());
    assert!(pid.parse::<u32>().is_ok(), "not a process: {pid:?}");
    while is_alive(pid) {
        assert!(begun.elapsed() < PATIENCE, "process {pid} is still alive");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Checks that a script gets its input, and gives its result and its log.
async fn check_language(server: &Runtime, language: &str, code: &str) {
    let script = json!({"language": language, "code": code, "stdin_mode": "json", "output_mode": "json"});
    let run = start(server, script, "hi").await;
    let ended = ended(server, run).await;
    assert_eq!(ended.output, json!({"text": "HI", "op": "upper"}), "{language}: {ended:?}");
    assert_eq!(ended.log, ["seen"], "{language}");
}

#[tokio::test]
async fn each_language_gets_its_input_and_gives_its_result() {
    let python = "import sys, json\nd = json.load(sys.stdin)\nprint('seen', file=sys.stderr)\n\
                  print(json.dumps({'text': d['input']['text'].upper(), 'op': d['params']['op']}))";
    let shell = "line=$(cat); echo seen >&2; \
                 case $line in *hi*upper*) echo '{\"text\": \"HI\", \"op\": \"upper\"}';; esac";
    let server = server(settings()).await;
    let all = [("python", python), ("python3", python), ("bash", shell), ("sh", shell), ("", shell)];
    for (language, code) in all {
        check_language(&server, language, code).await;
    }
}

#[tokio::test]
async fn with_node_javascript_gets_its_input_and_gives_its_result() {
    check_program("node");
    let code = "let t = ''; process.stdin.on('data', c => t += c).on('end', () => { const d = JSON.parse(t); \
                console.error('seen'); \
                console.log(JSON.stringify({text: d.input.text.toUpperCase(), op: d.params.op})) })";
    let server = server(settings()).await;
    for language in ["javascript", "node"] {
        check_language(&server, language, code).await;
    }
}

#[tokio::test]
async fn arguments_are_passed_unchanged_and_without_a_shell() {
    let nasty = "$(id); `id` && echo > /x | 'q' \"d\" *\n$HOME \\";
    let printf = json!({"cmd": "printf", "args": ["%s|", nasty, "", "--", "é"], "output_mode": "text"});
    assert_eq!(run(printf).await.text(), format!("{nasty}||--|é|"));
    assert_eq!(run(with(sh("printf %s \"$1\""), &json!({"args": [nasty]}))).await.text(), nasty);
}

#[tokio::test]
async fn a_command_may_be_given_code_too() {
    let script = json!({"cmd": "sh", "args": ["-e"], "code": "echo by command; false; echo no"});
    let ended = run(script).await;
    assert!(ended.fault().message.contains("exit status: 1"), "{ended:?}");
}

#[tokio::test]
async fn a_script_sees_nothing_of_the_servers_environment() {
    let ended = run(with(sh("env | sort"), &json!({"env": {"MINE": "yes"}}))).await;
    // A shell adds some of its own.
    let own = ["PWD", "OLDPWD", "SHLVL", "_"];
    let names = ended.text().lines().filter_map(|line| Some(line.split_once('=')?.0));
    let names: Vec<&str> = names.filter(|name| !own.contains(name)).collect();
    assert_eq!(names, ["HOME", "LANG", "MINE", "PATH"]);
    // The processes between the server and the script have none at all, and the script gets no streams of theirs.
    let ended = run(sh("wc -c < /proc/$PPID/environ; ls /proc/self/fd | wc -l")).await;
    let lines: Vec<&str> = ended.text().lines().map(str::trim).collect();
    // The same command without a launcher has the streams that this test was started with; a script has the lock, too.
    let direct = std::process::Command::new("sh").args(["-c", "ls /proc/self/fd | wc -l"]).output().unwrap();
    let n_streams: usize = String::from_utf8(direct.stdout).unwrap().trim().parse().unwrap();
    assert_eq!(lines, ["0".to_owned(), (n_streams + 1).to_string()]);
}

#[tokio::test]
async fn a_script_cannot_load_a_library_into_its_launcher() {
    let env = json!({"env": {"LD_PRELOAD": "no-such-library.so"}});
    let ended = run(with(json!({"cmd": "true", "output_mode": "text"}), &env)).await;
    // Only the loader of the script itself has something to say.
    assert_eq!(ended.log.iter().filter(|line| line.contains("no-such-library")).count(), 1, "{ended:?}");
}

#[tokio::test]
async fn a_script_works_in_a_directory_of_its_own_that_is_removed() {
    let ended = run(sh("pwd; echo $HOME; stat -c %a .; ls; echo x > left; mkdir -p a/b")).await;
    let lines: Vec<&str> = ended.text().lines().collect();
    assert_eq!(lines[1..], [lines[0], "700", "script.sh"]);
    assert!(!Path::new(lines[0]).exists() && !Path::new(&format!("{}.lock", lines[0])).exists());
}

#[tokio::test]
async fn a_script_may_choose_where_it_works() {
    assert_eq!(run(with(sh("pwd"), &json!({"work_dir": "/"}))).await.text(), "/");
    let ended = run(with(sh("pwd"), &json!({"work_dir": "/nowhere/at/all"}))).await;
    assert!(ended.fault().message.contains("`work_dir` /nowhere/at/all is not a directory"), "{ended:?}");
    assert_eq!(ended.attempts, 1);
}

#[tokio::test]
async fn a_script_that_fails_says_so_with_the_end_of_its_log() {
    let ended = run(sh("i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo line $i >&2; done; exit 3")).await;
    let Fault { kind, message, retryable, retry_after_ms: _, delivery: _ } = ended.fault();
    assert_eq!((*kind, *retryable, ended.attempts), (FaultKind::Error, true, 2));
    assert!(message.starts_with("the script failed (exit status: 3): line 41\n"), "{message}");
    assert!(message.ends_with("line 50"), "{message}");
    assert_eq!(ended.log[0], "line 1");
    let ended = run(sh("kill -TERM $$")).await;
    assert!(ended.fault().message.contains("signal: 15"), "{ended:?}");
}

#[tokio::test]
async fn output_is_json_if_it_parses_and_else_text_without_its_last_newline() {
    let auto = |code: &str| json!({"language": "sh", "code": code});
    for (code, output) in [
        ("echo '[1, 2]'", json!([1, 2])),
        ("echo hello", json!("hello")),
        ("echo; echo '  hello  '; echo", json!("\n  hello  \n")),
        ("printf 'a\\r\\n'", json!("a")),
        ("true", json!("")),
        ("printf '{\"a\": \\377}'", json!("{\"a\": \u{fffd}}")),
    ] {
        let ended = run(auto(code)).await;
        assert_eq!((ended.output, ended.log.len()), (output, 0), "{code}");
    }
    assert_eq!(run(with(auto("echo 5"), &json!({"output_mode": "text"}))).await.output, json!("5"));
}

#[tokio::test]
async fn text_instead_of_json_is_kept_and_the_log_warns() {
    let json = |code: &str| json!({"language": "sh", "code": code, "output_mode": "json"});
    let ended = run(json("echo said >&2; echo hello")).await;
    assert_eq!(ended.text(), "hello");
    assert!(ended.log[0] == "said" && ended.log[1].starts_with("stdout is not JSON, so"), "{ended:?}");
    let ended = run(json("echo '[1, 2]'")).await;
    assert_eq!((ended.output, ended.log.len()), (json!([1, 2]), 0));
}

#[tokio::test]
async fn a_script_gets_its_input_only_if_it_asks_for_it() {
    for (fields, n_bytes) in [(json!({}), "0"), (json!({"stdin_mode": "none"}), "0")] {
        assert_eq!(run(with(sh("wc -c"), &fields)).await.text().trim(), n_bytes, "{fields}");
    }
    let told = run(with(sh("cat"), &json!({"stdin_mode": "json"}))).await;
    let told: Value = serde_json::from_str(told.text()).unwrap();
    assert_eq!(told, json!({"input": {"text": "hi"}, "params": {"op": "upper"}}));
}

#[tokio::test]
async fn a_script_that_writes_too_much_is_stopped() {
    let ended = run(sh("yes")).await;
    let message = &ended.fault().message;
    assert!(message.starts_with("the script wrote more than 1048576 bytes"), "{message}");
    assert_eq!(run(sh("head -c 1048576 /dev/zero | tr '\\0' x")).await.text().len(), 1_048_576);
    let ended = run(sh("head -c 300000 /dev/zero | tr '\\0' x >&2; echo end >&2; echo ok")).await;
    assert_eq!(ended.text(), "ok");
    assert!(ended.log.last().unwrap().ends_with("end"));
}

#[tokio::test]
async fn a_script_after_its_deadline_is_killed_with_its_processes() {
    let dir = directory();
    let pids = dir.join("pids");
    let code = format!(
        "exec 2> /dev/null; {FOR_EVER} & echo $! >> {0}.new; sh -c '{FOR_EVER} & echo $! >> {0}.new; mv {0}.new {0}; wait' & wait",
        pids.display()
    );
    let server = server(settings()).await;
    let run = start(&server, with(sh(&code), &json!({"timeout_ms": 1_500})), "").await;
    let first = written(&pids).await;
    assert_eq!(first.lines().count(), 2, "{first}");
    let ended = ended(&server, run).await;
    assert_eq!(ended.fault().kind, FaultKind::Timeout);
    let message = &ended.fault().message;
    assert!(message.starts_with("the script did not end within 1"), "{message}");
    assert!(message.contains(" ms and was killed"), "{message}");
    for pid in first.lines() {
        dies(pid).await;
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn an_ended_script_leaves_no_processes() {
    let begun = Instant::now();
    let ended = run(sh(&format!("{FOR_EVER} & echo $!"))).await;
    dies(ended.text()).await;
    assert!(begun.elapsed() < Duration::from_secs(30), "the call waited for its processes");
}

#[tokio::test]
async fn with_setsid_an_ended_script_leaves_no_processes_in_other_sessions() {
    check_program("setsid");
    let begun = Instant::now();
    // One in a session of its own, and one whose parent has ended besides.
    let code = format!(
        "mkfifo up; setsid sh -c 'echo $$ > up; exec {FOR_EVER}' & cat up; \
         (setsid sh -c 'echo $$ > up; exec {FOR_EVER}' &); cat up"
    );
    let ended = run(sh(&code)).await;
    assert_eq!(ended.text().lines().count(), 2, "{ended:?}");
    for pid in ended.text().lines() {
        assert!(!is_alive(pid), "the call ends after everything that the script started");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "the call waited for its processes");
}

#[tokio::test]
async fn processes_that_ended_do_not_stay_in_the_table() {
    // Each parent ends at once, so the children become those of the supervisor.
    let code = "for i in 1 2 3; do (sh -c 'exit 0' &); done; \
                while grep -l \"^PPid:.$PPID$\" /proc/[0-9]*/status 2> /dev/null | grep -qv \"/$$/\"; do sleep 0.01; done; echo ok";
    assert_eq!(run(sh(code)).await.text(), "ok");
}

#[tokio::test]
async fn a_cancelled_script_is_killed_with_everything_it_started() {
    let dir = directory();
    let fifo = dir.join("pids");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let server = server(settings()).await;
    let code = format!("{FOR_EVER} & echo $! $$ > {}; wait", fifo.display());
    let run = start(&server, with(sh(&code), &json!({"timeout_ms": 600_000})), "").await;
    let pids = tokio::fs::read_to_string(&fifo).await.unwrap();
    server.runs().submit(run, Input::Cancel { reason: None, by: None }).await.unwrap();
    for pid in pids.split_whitespace() {
        dies(pid).await;
    }
    assert_eq!(server.runs().wait_ended(run, PATIENCE).await.unwrap(), Some(RunStatus::Canceled));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn a_script_need_not_read_its_input() {
    let server = server(settings()).await;
    let unread = with(sh("echo ok"), &json!({"stdin_mode": "json"}));
    let run = start(&server, unread, &"x".repeat(1 << 20)).await;
    assert_eq!(ended(&server, run).await.text(), "ok");
}

#[tokio::test]
async fn a_missing_command_is_named_and_not_retried() {
    let cmd = |program: &str| json!({"cmd": program, "args": ["x"], "output_mode": "text"});
    let cases = [
        (cmd("windlass-no-such-program"), "`windlass-no-such-program` cannot be run on this server"),
        (cmd("/"), "`/` cannot be run on this server"),
        (json!({"cmd": "echo", "args": ["nul\0"]}), "`echo` cannot be run on this server"),
    ];
    for (script, expected) in cases {
        let ended = run(script).await;
        assert!(ended.fault().message.starts_with(expected), "{ended:?}");
        assert_eq!(ended.attempts, 1);
    }
    let without = Settings { script_launcher: Vec::new(), ..settings() };
    let ended = run_with(without, sh("true")).await;
    assert!(ended.fault().message.contains("set `script_launcher`"), "{ended:?}");
    let broken = Settings { script_launcher: vec!["no-such-launcher".to_owned()], ..settings() };
    let ended = run_with(broken, sh("true")).await;
    assert!(ended.fault().message.starts_with("the launcher of scripts cannot be started"), "{ended:?}");
    // A launcher that ends without a word.
    let broken = Settings { script_launcher: vec!["true".to_owned()], ..settings() };
    let ended = run_with(broken, sh("true")).await;
    assert!(ended.fault().message.starts_with("how the script ended is not known"), "{ended:?}");
}

#[tokio::test]
async fn a_script_that_uses_too_much_fails_with_the_name_of_the_limit() {
    let limits = ScriptLimits { memory_bytes_max: 96 << 20, file_bytes_max: 100_000, ..Default::default() };
    let small = || Settings { script_limits: limits, ..settings() };
    let ended = run_with(small(), sh("head -c 100000 /dev/zero > a && wc -c < a")).await;
    assert_eq!(ended.text().trim(), "100000");
    let ended = run_with(small(), sh("head -c 100001 /dev/zero > a")).await;
    assert!(ended.fault().message.contains("`script_file_bytes_max` allows 100000 bytes"), "{ended:?}");
    let python = |code: &str| json!({"language": "python", "code": code, "output_mode": "text"});
    let ended = run_with(small(), python("print(len(bytearray(16 << 20)))")).await;
    assert_eq!(ended.text(), "16777216");
    let ended = run_with(small(), python("print(len(bytearray(256 << 20)))")).await;
    assert!(ended.fault().message.contains("`script_memory_bytes_max` allows 100663296"), "{ended:?}");
    let ended = run_with(small(), python("open('a', 'wb').write(bytes(200_000))")).await;
    assert!(ended.fault().message.contains("`script_file_bytes_max` allows"), "{ended:?}");
    let ended =
        run_with(small(), sh("ulimit -c; ulimit -n; ulimit -Hd; grep NoNewPrivs /proc/self/status")).await;
    let lines: Vec<&str> = ended.text().lines().collect();
    assert_eq!(lines[..3], ["0", "1024", "98304"], "{ended:?}");
    assert!(lines[3].ends_with('1'), "{ended:?}");
}

#[tokio::test]
async fn a_supervisor_that_is_killed_takes_its_script_along() {
    let dir = directory();
    let told = dir.join("pids");
    let server = server(settings()).await;
    let code = format!("echo $$ $PPID > {0}.new; mv {0}.new {0}; exec {FOR_EVER}", told.display());
    let run = start_with_retries(&server, with(sh(&code), &json!({"timeout_ms": 600_000})), "", 1).await;
    for _attempt in 1..=2 {
        let pids = written(&told).await;
        std::fs::remove_file(&told).unwrap();
        let (script, supervisor) = pids.trim().split_once(' ').unwrap();
        assert!(std::process::Command::new("kill").args(["-KILL", supervisor]).status().unwrap().success());
        dies(script).await;
    }
    let ended = ended(&server, run).await;
    assert!(ended.fault().message.contains("its supervisor was killed"), "{ended:?}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn a_server_that_others_may_take_for_dead_kills_its_scripts() {
    let dir = directory();
    let told = dir.join("pid");
    let is_cut_off = Arc::new(AtomicBool::new(false));
    let cut_off = is_cut_off.clone();
    let store = FaultyStore {
        on_save: Box::new(move || if cut_off.load(Ordering::SeqCst) { Err(unavailable()) } else { Ok(()) }),
        ..FaultyStore::over(Arc::new(Memory::shared()))
    };
    let server = Runtime::start_up(Arc::new(store), settings()).await.unwrap();
    let code = format!("echo $$ > {0}.new; mv {0}.new {0}; {FOR_EVER}", told.display());
    start(&server, with(sh(&code), &json!({"timeout_ms": 600_000})), "").await;
    let pid = written(&told).await;
    assert!(is_alive(pid.trim()));
    is_cut_off.store(true, Ordering::SeqCst);
    dies(&pid).await;
    std::fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_scripts_run_at_once_than_the_server_allows() {
    let place = TestDirectory::create();
    let server = server(Settings { scripts_max: 1, ..settings() }).await;
    // Each notes another one at work beside it.
    let code = format!(
        "cd {}; mkdir busy || touch overlap; sleep 0.05; rmdir busy; echo done",
        place.path().display()
    );
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(start(&server, json!({"language": "sh", "code": code, "output_mode": "text"}), "").await);
    }
    for run in runs {
        assert_eq!(ended(&server, run).await.text().trim(), "done");
    }
    assert!(!place.path().join("overlap").exists());
}
