//! A database that cannot be used: the messages of a server that starts, and the behaviour of one that runs.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_conformance::postgres_server::PostgresServer;
use windlass_sdk::Client;

use crate::http::{ask, ends, get, node_is, post, seen, start};
use crate::kill::waits;
use crate::server::{PATIENCE, Server, publish};
use crate::shell::text;

/// The remedy where a test of root cannot run.
const AS_ROOT: &str = "run it as root, or leave it out with --skip as_root_";

/// Checks the messages of a server that cannot start, and that it ends soon.
#[track_caller]
fn refused(address: &str, words: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", address]).stdin(Stdio::null());
    let begun = Instant::now();
    let output = command.output().unwrap();
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(words.iter().all(|word| told.contains(word)), "{told}");
    assert!(!told.contains("secret"), "{told}");
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_start_says_what_to_do() {
    let mut postgres = tokio::task::block_in_place(|| PostgresServer::start(false));
    let database = postgres.create();
    let address = postgres.address(&database);
    let as_app_user = |word: &str| address.replace("postgres@", word);
    assert!(postgres.sql("postgres", "CREATE ROLE app_user LOGIN PASSWORD 'right'"));
    postgres.require_password("app_user");
    refused("postgres://me:secret@127.0.0.1:1/x", &["cannot reach", "127.0.0.1:1/x", "start it"]);
    refused(&postgres.address("nowhere"), &["`createdb nowhere`"]);
    refused(&as_app_user("app_user:secret@"), &["password authentication failed", "pg_hba.conf"]);
    assert!(
        postgres.sql(
            &database,
            "REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO app_user"
        )
    );
    refused(&as_app_user("app_user:right@"), &["permission denied", "grant"]);
    assert!(
        postgres
            .sql(&database, "GRANT ALL ON SCHEMA public TO app_user; ALTER ROLE app_user CONNECTION LIMIT 0")
    );
    refused(&as_app_user("app_user:right@"), &["too many connections", "max_connections"]);
    assert!(postgres.sql("postgres", "ALTER ROLE app_user CONNECTION LIMIT -1"));
    let mut server = Server::start_on(&as_app_user("app_user:right@"), &[]).await;
    assert!(server.terminate().success());
    assert!(postgres.sql(&database, "INSERT INTO migrations VALUES (999, '0999_later', 1)"));
    refused(&address, &["version 999", "upgrade"]);
    assert!(postgres.sql(&database, "DELETE FROM migrations WHERE number = 999"));
    tokio::task::block_in_place(|| postgres.demote());
    refused(&address, &["read-only", "name the primary in --store"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_connections_is_not_ready_and_goes_on_when_there_are_some() {
    let postgres = tokio::task::block_in_place(|| PostgresServer::start(false));
    let database = postgres.create();
    assert!(postgres.sql("postgres", "CREATE ROLE app_user LOGIN"));
    assert!(postgres.sql("postgres", &format!("ALTER DATABASE {database} OWNER TO app_user")));
    assert!(postgres.sql(&database, "GRANT ALL ON SCHEMA public TO app_user"));
    let address = postgres.address(&database).replace("postgres@", "app_user@");
    let mut server = Server::start_on(&address, &[]).await;
    let client = server.client();
    publish(&client, "waits", waits()).await;
    let run = start(&client, "waits", json!({"items": [1]})).await;
    node_is(&client, &run, "w", "waiting").await;

    assert!(postgres.sql("postgres", "ALTER ROLE app_user CONNECTION LIMIT 0"));
    assert!(postgres.sql(
        "postgres",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app_user'"
    ));
    // Clients are told so, and soon.
    let begun = Instant::now();
    let path = format!("/api/v1/runs/{run}/signal");
    let (status, told) = ask(&client, "POST", &path, Some(json!({"key": "go", "value": true}))).await;
    assert_eq!((status, told["code"].as_str()), (503, Some("store_unavailable")), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let troubles = seen("the trouble", async || {
        let (status, answer) = ask(&client, "GET", "/readyz", None).await;
        (status == 503).then_some(answer)
    })
    .await;
    assert!(troubles["troubles"][0].as_str().unwrap().contains("store"), "{troubles}");
    assert!(server.log().contains("too many connections"), "{}", server.log());

    assert!(postgres.sql("postgres", "ALTER ROLE app_user CONNECTION LIMIT -1"));
    server.ready().await;
    post(&client, &path, json!({"key": "go", "value": true})).await;
    assert_eq!(ends(&client, &run, "completed").await["shared"]["out"], json!([8]));
    assert_eq!(client.examine(false).await.unwrap().findings, []);
    assert!(server.terminate().success(), "{}", server.log());
}

/// Starts runs, each with much to remember, until one is refused; those that were acknowledged, and the refusal.
async fn start_until_full(client: &Client, begun: &mut Vec<String>) -> Value {
    // Random text, which does not compress.
    let mut state = 1_u64;
    for _ in 0..2_000 {
        let bulk: String = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'!' + (state >> 33) as u8 % 90)
        })
        .filter(|letter| !matches!(letter, '"' | '\\'))
        .take(30_000)
        .collect();
        let body = json!({"params": {"items": [1], "bulk": bulk}});
        let (status, answer) = ask(client, "POST", "/api/v1/flows/waits/runs", Some(body)).await;
        match status {
            201 => begun.push(answer["id"].as_str().unwrap().to_owned()),
            503 => return answer,
            other => panic!("{other}: {answer}"),
        }
    }
    panic!("the disk never was full");
}

#[tokio::test(flavor = "multi_thread")]
async fn as_root_nothing_acknowledged_is_lost_when_the_disk_of_the_database_is_full() {
    let mut postgres = tokio::task::block_in_place(|| PostgresServer::start(false));
    assert!(tokio::task::block_in_place(|| postgres.add_disk(64)), "only root can mount a disk: {AS_ROOT}");
    let disk = postgres.disk().expect("it was just added");
    assert!(
        postgres
            .sql("postgres", "CREATE DATABASE crowded TABLESPACE small TEMPLATE template0 ENCODING 'UTF8'")
    );
    let mut server = Server::start_on(&postgres.address("crowded"), &[]).await;
    let client = server.client();
    publish(&client, "waits", waits()).await;
    disk.fill(4_000);
    let mut begun = Vec::new();
    let refused = start_until_full(&client, &mut begun).await;
    assert_eq!(refused["code"], "store_unavailable", "{refused}");
    assert!(begun.len() > 10, "{} runs", begun.len());
    seen("the reason", async || server.log().contains("disk of the database is full").then_some(())).await;
    is_unready_while_full(&client, &mut begun).await;
    // Reads still work.
    for run in &begun {
        assert_eq!(get(&client, &format!("/api/v1/runs/{run}")).await["params"]["items"], json!([1]));
    }
    disk.free();
    goes_on(&mut server, begun).await;
}

/// A failed write makes the server unready for a moment at least; small writes may still find room.
async fn is_unready_while_full(client: &Client, begun: &mut Vec<String>) {
    let mut last = (0, Value::Null);
    for _ in 0..20 {
        start_until_full(client, begun).await;
        last = ask(client, "GET", "/readyz", None).await;
        if last.0 == 503 {
            break;
        }
    }
    let (status, readiness) = last;
    assert_eq!(status, 503, "{readiness}");
    assert!(readiness["troubles"].to_string().contains("the disk of the database is full"), "{readiness}");
}

/// With room again, every acknowledged run and a new one complete.
async fn goes_on(server: &mut Server, mut begun: Vec<String>) {
    server.ready().await;
    let client = server.client();
    let run = seen("room", async || {
        let body = json!({"params": {"items": [1]}});
        let (status, answer) = ask(&client, "POST", "/api/v1/flows/waits/runs", Some(body)).await;
        (status == 201).then(|| answer["id"].as_str().unwrap().to_owned())
    })
    .await;
    begun.push(run);
    for run in &begun {
        let path = format!("/api/v1/runs/{run}/signal");
        post(&client, &path, json!({"key": "go", "value": true})).await;
        assert_eq!(ends(&client, run, "completed").await["shared"]["out"], json!([8]));
    }
    assert_eq!(client.examine(false).await.unwrap().findings, []);
    assert!(server.terminate().success(), "{}", server.log());
}

/// Without room for its write-ahead log, PostgreSQL stops with a panic and restarts.
#[tokio::test(flavor = "multi_thread")]
async fn as_root_nothing_acknowledged_is_lost_when_the_database_has_no_room_for_its_log() {
    let mut postgres = tokio::task::block_in_place(|| PostgresServer::start(false));
    assert!(
        tokio::task::block_in_place(|| postgres.add_log_disk(128)),
        "only root can mount a disk: {AS_ROOT}"
    );
    let database = postgres.create();
    let mut server = Server::start_on(&postgres.address(&database), &[]).await;
    let client = server.client();
    publish(&client, "waits", waits()).await;
    // A new piece of 16 MiB, and no room for the next.
    assert!(postgres.sql("postgres", "SELECT pg_switch_wal()") && postgres.sql("postgres", "CHECKPOINT"));
    postgres.disk().expect("it was just added").fill(1_000);
    let mut begun = Vec::new();
    let refused = start_until_full(&client, &mut begun).await;
    assert_eq!(refused["code"], "store_unavailable", "{refused}");
    assert!(begun.len() > 10, "{} runs", begun.len());
    seen("the trouble", async || {
        let (status, _) = ask(&client, "GET", "/readyz", None).await;
        (status == 503).then_some(())
    })
    .await;
    postgres.disk().expect("it was just added").free();
    tokio::task::block_in_place(|| postgres.wait_until_up());
    goes_on(&mut server, begun).await;
}
