//! Exit codes, tables and explanations of the real binary beside a server.

use std::process::Stdio;

use crate::http::seen;
use crate::server::signal;
use crate::shell::{TestShell, text};

const WAITS: &str = "start: review
nodes:
  review: {kind: approval}
  done: {kind: local, func: echo, prep: {input_key: $params.word}, post: {output_key: out}}
edges:
  - {from: review, action: approved, to: done}
";

#[tokio::test(flavor = "multi_thread")]
async fn every_exit_code_has_its_meaning() {
    let shell = TestShell::open().await;
    shell.write("waits.yaml", WAITS);
    shell.write("bad.yaml", "start: a");
    // Done, refused, wrong usage, invalid definition.
    shell.code(&["flow", "apply", "waits.yaml"], 0);
    shell.code(&["run", "start", "no-such-flow"], 1);
    shell.code(&["run", "start"], 2);
    shell.code(&["schedule", "create", "--job", "x"], 2);
    shell.code(&["flow", "validate", "bad.yaml"], 4);
    // Unreachable.
    shell.code(&["run", "list", "--server", "http://127.0.0.1:1"], 3);
    shell.code(&["doctor", "--server", "http://127.0.0.1:1"], 3);
    // Timed out, interrupted, canceled, completed.
    let id = shell.text(&["run", "start", "waits", "--quiet"]);
    shell.code(&["run", "wait", &id, "--timeout", "50ms"], 124);
    let mut watching =
        shell.command(&["run", "watch", &id]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // The first line shows that the command runs.
    std::io::Read::read_exact(watching.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    signal(&watching, "INT");
    assert_eq!(watching.wait().unwrap().code(), Some(130));
    shell.text(&["run", "cancel", &id]);
    shell.code(&["run", "wait", &id], 5);
    let id = shell.text(&["run", "start", "waits", "-p", "word=hi", "--quiet"]);
    shell.text(&["approvals", "approve", &id]);
    shell.code(&["run", "wait", &id], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_fit_into_eighty_columns() {
    let shell = TestShell::open().await;
    for n in 0..3 {
        let name = format!("a-job-with-quite-a-long-name-{n}");
        shell.text(&["job", "create", &name, "--queue", "a-queue-with-quite-a-long-name", "--in", "90m"]);
    }
    let table = |arguments: &[&str]| {
        let output = shell.command(arguments).args(["-o", "table"]).env("COLUMNS", "80").output().unwrap();
        text(&output.stdout)
    };
    let jobs = table(&["job", "list"]);
    assert_eq!(jobs.lines().count(), 4, "{jobs}");
    assert!(jobs.lines().all(|line| line.chars().count() <= 80), "{jobs}");
    assert!(jobs.contains('…'), "{jobs}");
    // The shortened id names the job.
    let short = jobs.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    let whole = shell.text(&["job", "show", short, "--quiet"]);
    assert!(whole.starts_with(short) && whole.len() > short.len(), "{short} {whole}");
    let wide = table(&["job", "list", "--wide"]);
    assert!(wide.contains(&whole) && wide.contains("a-job-with-quite-a-long-name-0"), "{wide}");
}

const LONG_FLOW: &str = "start: a-node-with-quite-a-long-name
nodes:
  a-node-with-quite-a-long-name: {kind: local, func: echo, cost: 7, prep: {input_key: $params.word}}
  an-approval-with-quite-a-long-name: {kind: approval}
  a-node-that-fails-with-quite-a-long-name: {kind: local, func: fail}
edges:
  - {from: a-node-with-quite-a-long-name, to: an-approval-with-quite-a-long-name}
  - {from: an-approval-with-quite-a-long-name, action: approved, to: a-node-that-fails-with-quite-a-long-name}
";

/// Makes rows with long names for every list, and returns the ids of a failed run and of a dead letter.
async fn long_rows(shell: &TestShell) -> (String, String) {
    let (flow, account) = ("a-flow-with-quite-a-long-name", "an-account-with-quite-a-long-name");
    shell.write("long.yaml", LONG_FLOW);
    shell.text(&["flow", "apply", "long.yaml", "--name", flow, "--note", &"a long note ".repeat(9)]);
    shell.text(&["account", "open", account, "--name", "a name that is longer than its column is wide"]);
    shell.text(&["account", "deposit", account, "1000"]);
    let word = format!("word={}", "a long value ".repeat(9));
    let start = || shell.text(&["run", "start", flow, "--account", account, "-p", &word, "--quiet"]);
    let (_open, run) = (start(), start());
    let waiting = async || (shell.text(&["approvals", "list", "--quiet"]).lines().count() == 2).then_some(());
    seen("both approvals", waiting).await;
    shell.text(&["approvals", "approve", &run]);
    shell.code(&["run", "wait", &run, "--timeout", "30s"], 1);
    let (job, queue) = ("a-job-with-quite-a-long-name", "a-queue-with-quite-a-long-name");
    let cron = ["--cron", "0 9 * * 1-5", "--tz", "America/Argentina/Buenos_Aires"];
    let schedule = ["schedule", "create", "--name", "a-schedule-with-quite-a-long-name", "--job", job];
    shell.text(&[&schedule[..], &["--queue", queue], &cron].concat());
    // The demonstration fails every first attempt at an odd priority.
    let dead =
        shell.text(&["job", "create", job, "--queue", queue, "--priority", "1", "--retries", "0", "--quiet"]);
    shell.code(&["job", "wait", &dead, "--timeout", "30s"], 1);
    (run, dead)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_with_long_names_fits_into_eighty_columns() {
    let shell = TestShell::open().await;
    let queues = "a-queue-with-quite-a-long-name,another-queue-with-quite-a-long-name";
    let worker = ["--demo", "--id", "a-worker-with-quite-a-long-name", "--queues", queues];
    let _worker = shell.worker(&worker);
    let (run, dead) = long_rows(&shell).await;
    // Each with the number of its rows.
    let lists: [(&[&str], usize); 17] = [
        (&["run", "list"], 2),
        (&["run", "attempts", &run], 3),
        (&["run", "events", &run], 3),
        (&["job", "list"], 1),
        (&["job", "attempts", &dead], 1),
        (&["queue", "list"], 1),
        (&["worker", "list"], 1),
        (&["schedule", "list"], 1),
        (&["dlq", "list"], 1),
        (&["dlq", "groups"], 1),
        (&["account", "list"], 1),
        (&["account", "ledger", "an-account-with-quite-a-long-name"], 5),
        (&["flow", "list"], 1),
        (&["flow", "versions", "a-flow-with-quite-a-long-name"], 1),
        (&["approvals", "list"], 1),
        (&["service", "list"], 1),
        (&["audit"], 5),
    ];
    for (list, n_rows) in lists {
        let output = shell.command(list).args(["-o", "table"]).env("COLUMNS", "80").output().unwrap();
        let table = text(&output.stdout);
        assert!(output.status.success(), "{list:?}: {}", text(&output.stderr));
        assert!(table.lines().count() > n_rows, "{list:?} has {n_rows} rows at least:\n{table}");
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{list:?}:\n{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_shows_the_round_of_its_nodes_and_skipped_nodes() {
    let shell = TestShell::open().await;
    shell.write("waits.yaml", WAITS);
    shell.text(&["flow", "apply", "waits.yaml"]);
    let id = shell.text(&["run", "start", "waits", "-p", "word=hi", "--quiet"]);
    shell.text(&["approvals", "approve", &id]);
    shell.code(&["run", "wait", &id], 0);
    shell.text(&["run", "rerun", &id, "--from", "done"]);
    shell.code(&["run", "wait", &id], 0);
    let shown = shell.text(&["run", "show", &id, "-o", "table"]);
    let line = |node: &str| shown.lines().find(|line| line.contains(&format!("✓ {node}"))).unwrap();
    assert!(line("review").contains("completed in round 1"), "{shown}");
    assert!(!line("done").contains("in round") && shown.contains("· round 2"), "{shown}");
    let id = shell.text(&["run", "start", "waits", "--quiet"]);
    shell.text(&["run", "cancel", &id]);
    shell.code(&["run", "wait", &id], 5);
    assert_eq!(shell.json(&["run", "show", &id])["node_states"]["done"]["status"], "skipped");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_names_a_remedy_that_works() {
    let shell = TestShell::open().await;
    shell.write(
        "press.json",
        r#"{"start": "a", "edges": [],
            "nodes": {"a": {"service": "press", "max_retries": 20, "wait_ms": 3600000}}}"#,
    );
    shell.text(&["flow", "apply", "press.json"]);
    let id = shell.text(&["run", "start", "press", "--quiet"]);
    // The node waits an hour for its retry, so the run stays open; the error of its last attempt names the remedy.
    let why = seen("a reason", async || {
        let why = shell.text(&["run", "why", &id, "-o", "table"]);
        (why.contains("docs/workers.md") || why.contains("exec_type: queue")).then_some(why)
    })
    .await;
    assert!(!why.contains("windlass worker --services press"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edge_that_is_not_taken_is_logged_with_its_condition_and_values() {
    let shell = TestShell::open().await;
    shell.write(
        "big.json",
        r#"{"variables": {"n": {"type": "number", "required": true}},
            "nodes": [{"id": "a", "type": "echo", "exec_type": "local_func", "config": {"input": 1}},
                {"id": "b", "type": "echo", "exec_type": "local_func", "config": {"input": 1}}],
            "edges": [{"source": "a", "target": "b", "condition": "$var.n >= 3"}]}"#,
    );
    shell.text(&["flow", "apply", "big.json"]);
    let id = shell.text(&["run", "start", "big", "-p", "n=2", "--wait", "--quiet"]);
    let logs = shell.text(&["run", "logs", &id, "-o", "table"]);
    assert!(logs.contains("the edge to `b` is not taken: `$var.n >= 3` is false with $var.n = 2"), "{logs}");
}
