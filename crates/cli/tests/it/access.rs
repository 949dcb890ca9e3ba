//! API keys of the real binary: start-up modes, the first key, and commands that send a key.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::server::{Server, TempDir};
use crate::shell::TestShell;

/// Runs `windlass` in a directory, with no variables but these.
fn windlass(dir: &TempDir, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(arguments).current_dir(dir.path()).env_clear().stdin(Stdio::null());
    command.envs(variables.iter().copied()).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_server_for_other_machines_needs_a_key_or_says_that_it_needs_none() {
    let dir = TempDir::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let refused = windlass(&dir, &["serve", "--listen", address, "--store", "sqlite:a.db"], &[]);
        assert_eq!(refused.status.code(), Some(4), "{}", err(&refused));
        for part in ["windlass key create --role admin --name me --store sqlite:a.db", "--no-auth"] {
            assert!(err(&refused).contains(part), "{}", err(&refused));
        }
    }
    let made =
        windlass(&dir, &["key", "create", "--role", "admin", "--name", "me", "--store", "sqlite:a.db"], &[]);
    assert!(made.status.success(), "{}", err(&made));
    let refused =
        windlass(&dir, &["serve", "--no-auth", "--listen", "0.0.0.0:0", "--store", "sqlite:a.db"], &[]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(err(&refused).contains("no_auth has no effect"), "{}", err(&refused));
}

#[test]
fn the_first_key_can_be_made_before_the_first_start() {
    let dir = TempDir::new();
    // No server answers on the port that this process could bind a moment ago.
    let made = windlass(
        &dir,
        &["key", "create", "--role", "admin", "--name", "me", "--store", "sqlite:new.db", "-o", "json"],
        &[],
    );
    assert!(made.status.success(), "{}", err(&made));
    let made: Value = serde_json::from_str(&out(&made)).unwrap();
    assert!(made["key"].as_str().unwrap().starts_with("wl_a_"), "{made}");
    assert!(dir.path().join("new.db").exists());
    for (arguments, part) in [
        (&["--role", "worker", "--name", "w"][..], "services"),
        (&["--role", "viewer", "--name", "w", "--scripts"], "scripts"),
        (&["--role", "viewer", "--name", " "], "--name"),
    ] {
        let arguments = [&["key", "create", "--store", "sqlite:new.db"], arguments].concat();
        let refused = windlass(&dir, &arguments, &[]);
        assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
        assert!(err(&refused).contains(part), "{}", err(&refused));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_send_the_key_of_the_environment() {
    let shell = TestShell::open().await;
    let key = shell.text(&["key", "create", "--role", "admin", "--name", "ann", "--quiet"]);
    assert!(key.starts_with("wl_a_"), "{key}");
    let refused = shell.code(&["run", "list"], 1);
    assert!(err(&refused).contains("[unauthenticated]"), "{}", err(&refused));
    assert!(err(&refused).contains("WINDLASS_KEY"), "{}", err(&refused));
    let with =
        |key: &str, arguments: &[&str]| shell.command(arguments).env("WINDLASS_KEY", key).output().unwrap();
    assert!(with(&key, &["run", "list"]).status.success());
    let flag = shell.command(&["--api-key", &key, "run", "list"]).output().unwrap();
    assert!(flag.status.success(), "{}", err(&flag));
    let viewer = with(&key, &["key", "create", "--role", "viewer", "--name", "bob", "-o", "json"]);
    let viewer: Value = serde_json::from_str(&out(&viewer)).unwrap();
    let (text, id) = (viewer["key"].as_str().unwrap(), viewer["id"].as_str().unwrap());
    let refused = with(text, &["queue", "pause", "mail"]);
    assert!(err(&refused).contains("[forbidden]") && err(&refused).contains("`run`"), "{}", err(&refused));
    let rotated = with(&key, &["key", "rotate", id, "--grace", "0s", "--quiet"]);
    let next = out(&rotated);
    assert!(next.starts_with("wl_u_"), "{}", err(&rotated));
    assert!(err(&with(text, &["run", "list"])).contains("[key_expired]"));
    assert!(with(&next, &["run", "list"]).status.success());
    let listed = with(&key, &["key", "list", "-o", "json"]);
    let listed: Value = serde_json::from_str(&out(&listed)).unwrap();
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|key| key["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3, "{listed}");
    assert!(with(&key, &["key", "revoke", &next[5..13]]).status.success());
    assert!(err(&with(&next, &["run", "list"])).contains("[unauthenticated]"));
    // The log of the server has no key.
    let log = shell.server.log();
    for text in [key.as_str(), text, &next] {
        assert!(!log.contains(&text[14..]), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_a_key_does_its_work() {
    let shell = TestShell::open().await;
    let admin = shell.text(&["key", "create", "--role", "admin", "--name", "ann", "--quiet"]);
    let as_admin =
        |arguments: &[&str]| shell.command(arguments).env("WINDLASS_KEY", &admin).output().unwrap();
    let create = ["key", "create", "--role", "worker", "--name", "w", "--queue", "default", "--quiet"];
    let services = ["--service", "transform", "--service", "sum", "--service", "route"];
    let key = out(&as_admin(&[&create[..], &services].concat()));
    assert!(key.starts_with("wl_w_"), "{key}");
    let worker = shell
        .command(&["worker", "--demo", "--pull-only", "--queues", "default"])
        .env("WINDLASS_KEY", &key)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _worker = crate::shell::KilledOnDrop(worker);
    let done = as_admin(&["job", "create", "sum", "--payload", "[1, 2]", "--wait", "--timeout", "60s"]);
    assert!(done.status.success(), "{} {}", out(&done), err(&done));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_gets_its_first_key_from_a_file() {
    let dir = TempDir::new();
    let generated = windlass(&dir, &["key", "generate"], &[]);
    let key = out(&generated);
    let (file, bad) = (dir.path().join("first.key"), dir.path().join("bad.key"));
    std::fs::write(&file, format!("{key}\n")).unwrap();
    std::fs::write(&bad, "a secret that is no key").unwrap();
    let refused =
        windlass(&dir, &["serve", "--listen", "0.0.0.0:0", "--first-key-file", bad.to_str().unwrap()], &[]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(
        err(&refused).contains("first_key_file") && !err(&refused).contains("a secret"),
        "{}",
        err(&refused)
    );
    let server = Server::start(&["--first-key-file", file.to_str().unwrap()]).await;
    let client = server.client();
    assert_eq!(client.raw("GET", "/api/v1/keys", None).await.unwrap().0, 401);
    let (status, body) = client.with_key(&key).unwrap().raw("GET", "/api/v1/keys", None).await.unwrap();
    assert_eq!(status, 200, "{body}");
    assert!(!server.log().contains(&key[14..]), "{}", server.log());
}
