//! Scripts of a real server: their end with the server, their limits and their user, and the server's secrets.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{ends, seen, start};
use crate::server::{Server, TempDir, publish};
use crate::store::Store;

/// A user that no other process has.
const USER: &str = "54321:54321";
const UID: u32 = 54_321;

/// A server whose temporary directory is this one, by way of another command.
async fn server(temp: &Path, wrap: &[&str], flags: &[&str]) -> Server {
    let dir = TempDir::new();
    let store = Store::fresh(&dir);
    let temp = format!("TMPDIR={}", temp.display());
    let wrap: Vec<&str> = ["env", &temp].into_iter().chain(wrap.iter().copied()).collect();
    let flags: Vec<&str> = ["--allow-scripts"].into_iter().chain(flags.iter().copied()).collect();
    Server::start_at(dir, store, &wrap, &flags).await
}

fn flow(script: Value) -> Value {
    let node = json!({"exec_type": "local_script", "script": script, "post": {"output_key": "out"}});
    json!({"start": "a", "nodes": {"a": node}})
}

fn sh(code: &str, timeout_ms: u64) -> Value {
    flow(json!({"language": "sh", "code": code, "output_mode": "text", "timeout_ms": timeout_ms}))
}

/// Runs a script to its end, which is this one.
async fn run(server: &Server, name: &str, definition: Value, status: &str) -> Value {
    let client = server.client();
    publish(&client, name, definition).await;
    let run = start(&client, name, json!({})).await;
    ends(&client, &run, status).await
}

/// Whether a process has ended, reaped or not.
fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}

fn send_signal(name: &str, pid: &str) {
    assert!(Command::new("kill").args([name, pid]).status().unwrap().success(), "{name} {pid}");
}

/// The ids that a script wrote: of its supervisor, of itself, and of those it started.
async fn pids_of(file: &Path) -> Vec<String> {
    let text = seen("a started script", async || std::fs::read_to_string(file).ok()).await;
    std::fs::remove_file(file).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

/// A script that notes a second one at work beside it: everything it started holds its lock. It ends when it is told to.
fn exclusive(place: &Path, name: &str) -> Value {
    let code = format!(
        "cd {place}; exec 9> {name}.lock; flock -n 9 || echo {name} >> overlaps\n\
         [ -e done ] && exit 0\n\
         sleep 600 & a=$!; setsid sleep 600 & b=$!; mkfifo {name}.fifo.$$\n\
         (setsid sh -c 'echo $$ > {name}.fifo.'$$'; exec sleep 600' &); read c < {name}.fifo.$$\n\
         echo $PPID $$ $a $b $c > {name}.new; mv {name}.new {name}.pids; sleep 600",
        place = place.display(),
    );
    sh(&code, 600_000)
}

#[tokio::test(flavor = "multi_thread")]
async fn with_setsid_a_killed_server_takes_its_scripts_along_and_never_two_run_at_once() {
    let setsid = Command::new("setsid").arg("--version").output();
    assert!(setsid.is_ok(), "install setsid, or leave the test out with --skip with_setsid_");
    let (temp, place) = (TempDir::new(), TempDir::new());
    let mut server = server(temp.path(), &[], &[]).await;
    let client = server.client();
    let mut runs = Vec::new();
    for name in ["free", "held"] {
        publish(&client, name, exclusive(place.path(), name)).await;
        runs.push(start(&client, name, json!({})).await);
    }
    let [free_file, held_file] = ["free.pids", "held.pids"].map(|name| place.path().join(name));
    let (free, held) = (pids_of(&free_file).await, pids_of(&held_file).await);
    // A supervisor that cannot act: its script outlives the server.
    send_signal("-STOP", &held[0]);
    server.kill();
    server.spawn();
    server.ready().await;
    for pid in &free {
        seen("the end of a process of the killed server", async || is_gone(pid).then_some(())).await;
    }
    let free = pids_of(&free_file).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!held_file.exists(), "started beside the one that still lives");
    assert!(held.iter().all(|pid| !is_gone(pid)));
    std::fs::write(place.path().join("done"), "").unwrap();
    send_signal("-CONT", &held[0]);
    ends(&client, &runs[1], "completed").await;
    assert!(held.iter().all(|pid| is_gone(pid)), "the second began before the first was gone");
    assert!(!place.path().join("overlaps").exists(), "two ran at once");
    drop(server);
    for pid in &free {
        seen("the end of a process of the killed server", async || is_gone(pid).then_some(())).await;
    }
    // The supervisors clean up after a killed server, too.
    let uid = std::fs::metadata(temp.path()).unwrap().uid();
    let left = temp.path().join(format!("windlass-scripts-{uid}"));
    seen("an empty directory", async || (std::fs::read_dir(&left).unwrap().count() == 0).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_of_scripts_are_removed_at_the_start() {
    let temp = TempDir::new();
    let uid = std::fs::metadata(temp.path()).unwrap().uid();
    let root = temp.path().join(format!("windlass-scripts-{uid}"));
    std::fs::create_dir_all(root.join("stale/deep")).unwrap();
    std::fs::write(root.join("stale.lock"), "").unwrap();
    let _server = server(temp.path(), &[], &[]).await;
    let is_empty = || std::fs::read_dir(&root).unwrap().count() == 0;
    seen("the removal of leftovers", async || is_empty().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_cannot_read_the_environment_of_the_server() {
    let temp = TempDir::new();
    let is_root = std::fs::metadata(temp.path()).unwrap().uid() == 0;
    // Root may look into every process, unless it gives up its rights.
    let unable: &[&str] = if is_root { &["setpriv", "--bounding-set=-all"] } else { &[] };
    let wrap: Vec<&str> =
        ["WINDLASS_NAME=canary-in-a-coal-mine"].into_iter().chain(unable.iter().copied()).collect();
    let server = server(temp.path(), &wrap, &[]).await;
    let code = format!(
        "cat /proc/self/environ | tr '\\0' '\\n' | cut -d= -f1 | grep -c PATH\n\
         for pid in {} $PPID; do cat /proc/$pid/environ | tr '\\0' '\\n'; done",
        server.pid()
    );
    let done = run(&server, "look", sh(&code, 10_000), "completed").await;
    let seen = done["shared"]["out"].as_str().unwrap();
    assert!(seen.starts_with('1'), "it can read its own: {seen}");
    assert!(!seen.contains("canary"), "{seen}");
}

/// Processes of the user of the scripts.
fn n_processes() -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter(|entry| entry.metadata().is_ok_and(|found| found.uid() == UID)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn as_root_scripts_run_as_another_user_within_its_limit_of_processes() {
    let temp = TempDir::new();
    let flags = ["--script-user", USER, "--script-processes-max", "20"];
    let server = server(temp.path(), &[], &flags).await;
    assert!(server.log().contains("as the user 54321:54321"), "{}", server.log());
    let code = "id -u; id -g; id -G; touch mine && ls; cat /proc/$PPID/environ 2>&1 | wc -c > /dev/null";
    let done = run(&server, "user", sh(code, 10_000), "completed").await;
    assert_eq!(done["shared"]["out"], "54321\n54321\n54321\nmine\nscript.sh");
    let many = "for i in $(seq 60); do sleep 60 & done; wait";
    let refused = run(&server, "many", sh(many, 30_000), "failed").await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("`script_processes_max` allows 20 processes"), "{message}");
    seen("the end of all its processes", async || (n_processes() == 0).then_some(())).await;

    let client = server.client();
    let bomb = "bomb() { bomb | bomb & }; bomb; bomb; sleep 600";
    publish(&client, "bomb", sh(bomb, 1_500)).await;
    let run = start(&client, "bomb", json!({})).await;
    let mut most = 0;
    while client.runs().wait(&run, Some(Duration::from_millis(20))).await.unwrap().is_none() {
        most = most.max(n_processes());
    }
    assert!((2..=20).contains(&most), "{most} processes");
    ends(&client, &run, "failed").await;
    seen("the end of the bomb", async || (n_processes() == 0).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn as_root_a_server_says_that_its_limit_of_processes_does_not_hold() {
    let temp = TempDir::new();
    let server = server(temp.path(), &[], &[]).await;
    assert!(server.log().contains("script_processes_max does not hold for root"), "{}", server.log());
}
