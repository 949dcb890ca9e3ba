//! The views agree with the trait.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio_postgres::types::Type;
use windlass_conformance::block_on_tokio;
use windlass_conformance::fixture::documented_queries;
use windlass_conformance::postgres_server::{TestDatabase, test_database};
use windlass_conformance::suite::{jobs, records, replays, rounds};
use windlass_engine::counter::Seq;
use windlass_engine::project::Project;
use windlass_store::Store;
use windlass_store::job::JobQuery;
use windlass_store::run::{RunQuery, RunStatus, Since};
use windlass_store::worker::WorkerRow;

use crate::connect;

/// Stores that functions of the suite have filled.
async fn filled() -> Vec<TestDatabase> {
    let all = [test_database().await, test_database().await, test_database().await, test_database().await];
    replays::an_answer_ends_the_job_and_moves_the_run_in_one_commit(&all[0].store).await;
    replays::a_run_has_an_owner_only_while_a_server_makes_a_call(&all[1].store).await;
    replays::a_wide_fan_is_followed_to_its_end(&all[2].store).await;
    jobs::attempts_are_kept_longer_than_the_job_remembers(&all[3].store).await;
    all.into()
}

/// The rows of a query, their columns as texts.
async fn rows(database: &TestDatabase, sql: &str) -> Vec<Vec<Option<String>>> {
    let client = connect(&database.address).await;
    let rows = client.query(sql, &[]).await.unwrap_or_else(|error| panic!("{error:?}\n{sql}"));
    let texts = |row: &tokio_postgres::Row| (0..row.len()).map(|column| row.get(column)).collect();
    rows.iter().map(texts).collect()
}

/// A time of a view, in milliseconds.
fn written(column: &str) -> String {
    format!("(extract(epoch FROM {column}) * 1000)::bigint::text")
}

fn some(text: impl ToString) -> Option<String> {
    Some(text.to_string())
}

#[test]
fn events_are_those_of_the_journals() {
    block_on_tokio(async {
        let mut n = 0;
        for database in filled().await {
            for run in database.store.runs(&Project::DEFAULT, RunQuery::default()).await.unwrap().items {
                let sql = format!(
                    "SELECT seq::text, place::text, {}, event::text FROM events WHERE run = '{}' \
                     ORDER BY events.seq, events.place",
                    written("at"),
                    run.id.uuid()
                );
                let mut expected = Vec::new();
                for (seq, entry) in database
                    .store
                    .journal(&Project::DEFAULT, run.id, Since::Entry(Seq::ZERO), 10_000)
                    .await
                    .unwrap()
                    .entries
                {
                    for (place, event) in entry.events.iter().enumerate() {
                        let event = serde_json::to_value(event).unwrap();
                        expected.push((vec![some(seq), some(place), some(entry.at.0)], event));
                    }
                }
                let found = rows(&database, &sql).await.into_iter().map(|mut row| {
                    let event = row.pop().unwrap().unwrap();
                    (row, serde_json::from_str::<Value>(&event).unwrap())
                });
                assert_eq!(found.collect::<Vec<_>>(), expected);
                n += expected.len();
            }
        }
        assert!(n > 50, "{n}");
    });
}

#[test]
fn tasks_are_the_runs() {
    block_on_tokio(async {
        let mut n = 0;
        for database in filled().await {
            let sql = format!(
                "SELECT id, flow_id, flow_version_id, status, {}, {} FROM tasks WHERE run IS NOT NULL ORDER BY run",
                written("created_at"),
                written("updated_at")
            );
            let mut expected: Vec<_> =
                database.store.runs(&Project::DEFAULT, RunQuery::default()).await.unwrap().items;
            expected.sort_by_key(|row| row.id);
            let expected = expected.into_iter().map(|row| {
                let status = match row.projection.status {
                    RunStatus::Running if row.projection.owner.is_none() => "waiting_queue",
                    RunStatus::Waiting | RunStatus::Paused => "running",
                    other => other.word(),
                };
                vec![
                    some(format!("task-{}", row.id.uuid())),
                    some(format!("flow-{}", row.origin.flow.uuid())),
                    some(format!("ver-{}", row.origin.version.uuid())),
                    some(status),
                    some(row.origin.created_at.0),
                    some(row.projection.updated_at.0),
                ]
            });
            let expected: Vec<_> = expected.collect();
            assert_eq!(rows(&database, &sql).await, expected);
            n += expected.len();
        }
        assert!(n >= 3, "{n}");
    });
}

#[test]
fn workflows_show_their_owners() {
    block_on_tokio(async {
        let database = test_database().await;
        replays::a_run_replays_from_its_journal(&database.store).await;
        let client = connect(&database.address).await;
        for (fields, owner) in [
            ("", None),
            (r#""account": "acme","#, Some("acme")),
            (r#""account_id": 7,"#, Some("7")),
            (r#""account": "","#, None),
        ] {
            let definition = format!("{{{fields} \"nodes\": [], \"edges\": []}}");
            client.execute("UPDATE versions SET definition = $1, json = NULL", &[&definition]).await.unwrap();
            let found = rows(&database, "SELECT account_id FROM workflows").await;
            assert!(!found.is_empty());
            assert!(found.iter().all(|row| row[0].as_deref() == owner), "{fields}: {found:?}");
        }
    });
}

#[test]
fn the_queries_of_the_queue_platform_work_word_for_word() {
    block_on_tokio(async {
        let (database, of_runs) = (test_database().await, test_database().await);
        replays::an_answer_ends_the_job_and_moves_the_run_in_one_commit(&of_runs.store).await;
        jobs::attempts_are_kept_longer_than_the_job_remembers(&database.store).await;
        records::workers_register_beat_and_are_found(&database.store).await;
        let jobs = database.store.jobs(&Project::DEFAULT, JobQuery::default()).await.unwrap().items;
        let [tasks, attempts, workers] = documented_queries(&jobs[0].id().uuid().to_string());
        let told = connect(&of_runs.address).await.query(&tasks, &[]).await.unwrap();
        let kinds: BTreeSet<&str> = told.iter().map(|row| row.get("type")).collect();
        assert_eq!(kinds, ["immediate", "run"].into());
        let client = connect(&database.address).await;
        let created: Vec<std::time::SystemTime> = told.iter().map(|row| row.get("created_at")).collect();
        assert!(created.is_sorted_by_key(|at| std::cmp::Reverse(*at)));
        let told = client.query(&attempts, &[]).await.unwrap();
        assert!(told.len() > 100 && told[1].get::<_, i64>("attempt") == 2);
        let told = client.query(&workers, &[]).await.unwrap();
        assert!(!told.is_empty() && *told[0].columns()[2].type_() == Type::JSONB);
    });
}

#[test]
fn task_runs_are_the_attempts_and_the_task_queue_the_jobs_of_calls() {
    block_on_tokio(async {
        let (mut n_attempts, mut n_calls) = (0, 0);
        for database in filled().await {
            let jobs = database.store.jobs(&Project::DEFAULT, JobQuery::default()).await.unwrap().items;
            let mut attempts = Vec::new();
            for job in &jobs {
                for attempt in database.store.attempts(&Project::DEFAULT, job.id(), 0, 10_000).await.unwrap()
                {
                    let id = format!("{}{:08x}", &job.id().uuid().to_string()[..28], attempt.number);
                    attempts.push(vec![
                        some(id),
                        some(attempt.status.word().replace("canceled", "cancelled")),
                        attempt.worker,
                    ]);
                }
            }
            attempts.sort();
            let mut told = rows(&database, "SELECT id, status, worker_id FROM task_runs").await;
            told.sort();
            assert_eq!(told, attempts);
            n_attempts += attempts.len();
            let calls = jobs.iter().filter_map(|row| row.origin.call.as_ref().map(|call| (row, call)));
            let mut calls: Vec<_> = calls
                .map(|(row, call)| {
                    let id = format!("{}.{}", row.id().uuid(), row.job.fence);
                    let task = format!("task-{}", call.run.uuid());
                    vec![some(id), some(task), some(&row.job.spec.name)]
                })
                .collect();
            calls.sort();
            let mut told = rows(&database, "SELECT id, task_id, service FROM task_queue").await;
            told.sort();
            assert_eq!(told, calls);
            n_calls += calls.len();
        }
        assert!(n_attempts > 50 && n_calls > 0, "{n_attempts}, {n_calls}");
    });
}

#[test]
fn workers_are_the_registered_ones() {
    block_on_tokio(async {
        let database = test_database().await;
        records::workers_register_beat_and_are_found(&database.store).await;
        let expected =
            (&database.store as &dyn Store).workers(&Project::DEFAULT, Default::default()).await.unwrap();
        let sql = format!("SELECT id, status, {} FROM workers ORDER BY id", written("last_heartbeat"));
        let told = rows(&database, &sql).await;
        let row = |row: &WorkerRow| vec![some(&row.id), some("offline"), some(row.beat_at.0)];
        assert_eq!(told, expected.iter().map(row).collect::<Vec<_>>());
        assert!(!told.is_empty());
    });
}

#[test]
fn variables_of_an_open_run_are_those_its_nodes_have_written() {
    block_on_tokio(async {
        let database = test_database().await;
        rounds::nodes_write_while_their_runs_are_open(&database.store).await;
        let found = rows(&database, "SELECT runtime_variables::text FROM workflow_tasks ORDER BY id").await;
        let read =
            |row: &Vec<Option<String>>| serde_json::from_str::<Value>(row[0].as_deref().unwrap()).unwrap();
        let expected = [
            json!({"sum": "six"}),
            json!({"all": {"list": [{"deep": null}, 2], "\"\\": {"0": ["'"]}}, "first": {"deep": null},
                "none": null, "odd": "'", "right": [true]}),
        ];
        assert_eq!(found.iter().map(read).collect::<Vec<_>>(), expected);
    });
}
