//! A SQLite file with rows that cannot be decoded, or with a damaged page: the server starts, all other work goes on,
//! and the server says which rows and which table they are.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_sdk::Client;

use crate::http::{ask, ends, expect, get, node_is, post, seen, start};
use crate::server::{Server, TempDir, publish};
use crate::shell::{TestShell, text};
use crate::store::Store;

/// A shell beside a server on a SQLite file.
async fn open() -> (TestShell, PathBuf) {
    let place = TempDir::new();
    let path = place.path().join("store.db");
    let server = Server::start_at(place, Store::File(path.clone()), &[], &[]).await;
    (TestShell { server, dir: TempDir::new() }, path)
}

/// Changes the file of a stopped server, by a program that knows nothing of ours.
fn change(path: &Path, script: &str, arguments: &[&str]) {
    let script =
        format!("import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\n{script}\ndb.commit()\ndb.close()");
    let done = Command::new("python3").args(["-c", &script]).arg(path).args(arguments).output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
}

async fn publish_waits(client: &Client) {
    let waits = json!({"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "go"}}}});
    publish(client, "waits", waits).await;
}

async fn start_waiting(client: &Client) -> String {
    let run = start(client, "waits", json!({})).await;
    node_is(client, &run, "w", "waiting").await;
    run
}

/// A line of doctor.
fn check_of(doctor: &Value, check: &str) -> Value {
    doctor.as_array().unwrap().iter().find(|line| line["check"] == check).unwrap().clone()
}

/// The ids of a list.
fn ids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_row_of_any_kind_is_set_aside_and_the_rest_goes_on() {
    let (mut shell, path) = open().await;
    let client = shell.server.client();
    publish_waits(&client).await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(start_waiting(&client).await);
    }
    let [bad_row, bad_journal, fine] = &runs[..] else { unreachable!() };
    let jobs: Vec<String> = (0..3).map(|_| shell.text(&["job", "create", "resize", "--quiet"])).collect();
    let schedule = shell.text(&["schedule", "create", "--cron", "0 9 * * *", "--job", "tick", "--quiet"]);
    assert!(shell.server.terminate().success());

    let hex = |id: &str| id.rsplit('_').next().unwrap().replace('-', "");
    let script = "row, journal, job, schedule = [bytes.fromhex(id) for id in sys.argv[2:]]\n\
        db.execute('UPDATE runs SET labels = ? WHERE id = ?', ('?', row))\n\
        db.execute('UPDATE journal SET events = ? WHERE run = (SELECT no FROM runs WHERE id = ?)', ('}', journal))\n\
        db.execute('UPDATE jobs SET state = ? WHERE id = ?', ('{', job))\n\
        db.execute('UPDATE schedules SET rule = ? WHERE id = ?', ('?', schedule))\n\
        db.execute('INSERT INTO outbox (sender, seq, part, receiver, at, note, is_delivered) \\
            VALUES (?, 1, 0, ?, 1, ?, 0)', (b'\\0' + journal, b'\\0' + row, '?'))\n\
        db.execute('INSERT INTO registrations (id, name, url, kind, services, queues, load, capacity, is_draining, \\
            registered_at, beat_at) VALUES (?, ?, ?, ?, ?, ?, 0, 1, 0, 1, 1)', ('odd', 'odd', '', 'push', '?', '[]'))";
    change(&path, script, &[&hex(bad_row), &hex(bad_journal), &hex(&jobs[0]), &hex(&schedule)]);

    shell.server.spawn();
    shell.server.ready().await;
    let client = shell.server.client();
    let _worker = shell.worker(&["--demo"]);
    for job in &jobs[1..] {
        assert_eq!(shell.json(&["job", "wait", job, "--timeout", "60s"])["status"], "completed");
    }
    assert_eq!(ids(&shell.json(&["job", "list"])).len(), 2);
    assert_eq!(ids(&get(&client, "/api/v1/runs").await["items"]), [fine, bad_journal]);
    assert_eq!(shell.json(&["schedule", "list"]), json!([]));
    post(&client, &format!("/api/v1/runs/{fine}/signal"), json!({"key": "go", "value": 1})).await;
    ends(&client, fine, "completed").await;
    let signal = json!({"key": "go", "value": 1});
    expect(&client, "POST", &format!("/api/v1/runs/{bad_journal}/signal"), Some(signal), 500).await;

    let doctor = shell.code(&["doctor", "-o", "json"], 1);
    let (found, remedies) = (text(&doctor.stdout), text(&doctor.stderr));
    let clock = check_of(&serde_json::from_str(&found).unwrap(), "clock");
    assert_eq!(clock["status"], "ok", "the bad rows are no matter of the clock: {clock}");
    for id in [bad_row, bad_journal, &jobs[0], "odd"] {
        assert!(found.contains(id), "{id}: {found}");
    }
    assert!(
        found.contains("`schedules` cannot be read") && found.contains("`outbox` cannot be read"),
        "{found}"
    );
    assert!(remedies.contains("restore the store from a backup"), "{remedies}");
    let (status, readiness) = ask(&client, "GET", "/readyz", None).await;
    assert_eq!((status, &readiness["ready"]), (200, &json!(true)), "{readiness}");
    assert!(
        readiness["warnings"][0].as_str().unwrap().contains("rows of the store cannot be read"),
        "{readiness}"
    );
    let (_, metrics) = client.raw("GET", "/metrics", None).await.unwrap();
    let n: f64 = metrics
        .lines()
        .find_map(|line| line.strip_prefix("windlass_store_rows_set_aside "))
        .unwrap_or_else(|| panic!("{metrics}"))
        .parse()
        .unwrap();
    assert!(n >= 6.0, "{n} rows");
    let told = |log: &str| {
        log.lines().filter(|line| line.contains("is set aside") && line.contains(&jobs[0])).count()
    };
    seen("the bad job in the log", async || (told(&shell.server.log()) > 0).then_some(())).await;
    assert_eq!(told(&shell.server.log()), 1, "{}", shell.server.log());
}

/// Overwrites the leaf in the middle of a table.
const DAMAGE_LEAF: &str = "size = db.execute('PRAGMA page_size').fetchone()[0]\n\
    page = db.execute('SELECT rootpage FROM sqlite_schema WHERE name = ?', (sys.argv[2],)).fetchone()[0]\n\
    file = open(sys.argv[1], 'r+b')\n\
    while True:\n\
    \x20   file.seek((page - 1) * size)\n\
    \x20   bytes = file.read(size)\n\
    \x20   if bytes[0] == 13: break\n\
    \x20   assert bytes[0] == 5, 'no page of a table: %d' % bytes[0]\n\
    \x20   cell = 12 + int.from_bytes(bytes[3:5], 'big') // 2 * 2\n\
    \x20   cell = int.from_bytes(bytes[cell:cell + 2], 'big')\n\
    \x20   page = int.from_bytes(bytes[cell:cell + 4], 'big')\n\
    file.seek((page - 1) * size)\nfile.write(b'\\xff' * size)\nfile.close()";

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_in_the_middle_of_a_queue_is_named_and_stops_only_its_own_jobs() {
    let (mut shell, path) = open().await;
    let jobs: Vec<Value> = (0..400).map(|n| json!({"name": "resize", "queue": "q", "payload": n})).collect();
    let made = expect(&shell.server.client(), "POST", "/api/v1/jobs", Some(json!(jobs)), 201).await;
    assert!(shell.server.terminate().success());
    change(&path, DAMAGE_LEAF, &["jobs"]);

    shell.server.spawn();
    let client = shell.server.client();
    let readiness = seen("the damage", async || match client.raw("GET", "/readyz", None).await {
        Ok((503, body)) => Some(body),
        Ok(_) | Err(_) => None,
    })
    .await;
    assert!(readiness.contains("table `jobs` is damaged"), "{readiness}");
    let _worker = shell.worker(&["--demo", "--queues", "other"]);
    let other = json!({"name": "resize", "queue": "other", "payload": 1});
    let other = expect(&client, "POST", "/api/v1/jobs", Some(other), 201).await;
    let id = other["id"].as_str().unwrap();
    assert_eq!(shell.json(&["job", "wait", id, "--timeout", "60s"])["status"], "completed");
    let _worker = shell.worker(&["--demo", "--queues", "q"]);
    // A leaf has 24 of these jobs; a row beside it cannot grow if the tree would have to move rows over to it.
    let items = made["items"].as_array().unwrap();
    seen("the jobs before and behind the page", async || {
        let mut done = Vec::new();
        for (n, job) in items.iter().enumerate() {
            let path = format!("/api/v1/jobs/{}", job["id"].as_str().unwrap());
            let (status, shown) = ask(&client, "GET", &path, None).await;
            if status == 200 && shown["status"] == "completed" {
                done.push(n);
            }
        }
        (done.len() >= 300 && done.contains(&0) && done.contains(&399)).then_some(done)
    })
    .await;
    let doctor = shell.code(&["doctor"], 1);
    let told = text(&doctor.stdout) + &text(&doctor.stderr);
    assert!(told.contains("table `jobs` is damaged"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_makes_the_server_unready_and_stops_no_other_work() {
    let (mut shell, path) = open().await;
    publish_waits(&shell.server.client()).await;
    assert!(shell.server.terminate().success());
    let backup = path.with_extension("backup");
    std::fs::copy(&path, &backup).unwrap();
    let script = "size = db.execute('PRAGMA page_size').fetchone()[0]\n\
        page = db.execute('SELECT rootpage FROM sqlite_schema WHERE name = ?', ('logs',)).fetchone()[0]\n\
        file = open(sys.argv[1], 'r+b')\nfile.seek((page - 1) * size)\nfile.write(b'\\xff' * size)\nfile.close()";
    change(&path, script, &[]);

    shell.server.spawn();
    let client = shell.server.client();
    let readiness = seen("the damage", async || {
        let answer = client.raw("GET", "/readyz", None).await;
        match answer {
            Ok((503, body)) => Some(body),
            Ok(_) | Err(_) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                None
            }
        }
    })
    .await;
    assert!(readiness.contains("table `logs` is damaged"), "{readiness}");
    let run = start_waiting(&client).await;
    post(&client, &format!("/api/v1/runs/{run}/signal"), json!({"key": "go", "value": 1})).await;
    ends(&client, &run, "completed").await;
    let doctor = shell.code(&["doctor"], 1);
    let told = text(&doctor.stdout) + &text(&doctor.stderr);
    assert!(
        told.contains("table `logs` is damaged") && told.contains("restore the store from a backup"),
        "{told}"
    );

    assert!(shell.server.terminate().success());
    std::fs::copy(&backup, &path).unwrap();
    shell.server.spawn();
    shell.server.ready().await;
    let doctor = shell.json(&["doctor"]);
    assert_eq!(check_of(&doctor, "state")["status"], "ok", "{doctor}");
    let pages = check_of(&doctor, "pages");
    assert_eq!(pages["status"], "ok", "{doctor}");
    let detail: Vec<&str> = pages["detail"].as_str().unwrap().split(' ').collect();
    assert!(matches!(detail[..], ["checked", checked, "of", all, "tables"] if checked == all), "{doctor}");
}
