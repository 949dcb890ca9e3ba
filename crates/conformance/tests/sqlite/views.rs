//! Views for people, compared with the answers of the trait.

use rusqlite::types::FromSql;
use rusqlite::{Connection, Row};
use windlass_conformance::block_on;
use windlass_conformance::suite::{jobs, records, replays, rounds};
use windlass_conformance::test_directory::TestDirectory;
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::id::RunId;
use windlass_engine::journal::Entry;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::flow::VersionRef;
use windlass_store::job::{JobQuery, JobRow};
use windlass_store::projection::attempts::{AttemptPart, AttemptStatus, NodeAttempt, attempts};
use windlass_store::run::{RunQuery, RunRow, Since};
use windlass_store::worker::WorkerQuery;
use windlass_store::{Durability, Sqlite, Store};

/// A filled store, and a connection to its file.
struct Filled {
    store: Sqlite,
    db: Connection,
    _place: TestDirectory,
}

/// A store filled by a function of the suite.
macro_rules! fill {
    ($module:ident::$name:ident) => {
        Filled::with(async |store: &dyn Store| $module::$name(store).await)
    };
}

impl Filled {
    fn with(fill: impl AsyncFnOnce(&dyn Store)) -> Self {
        let place = TestDirectory::create();
        let path = place.join("store.db");
        let store = Sqlite::open(&path, Durability::Fast).unwrap();
        block_on(fill(&store));
        Filled { store, db: Connection::open(&path).unwrap(), _place: place }
    }

    fn rows<T>(&self, sql: &str, read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>) -> Vec<T> {
        let mut statement = self.db.prepare(sql).unwrap();
        statement.query_map([], read).unwrap().collect::<rusqlite::Result<_>>().unwrap()
    }

    fn runs(&self) -> Vec<RunRow> {
        block_on(self.store.runs(&Project::DEFAULT, RunQuery::default())).unwrap().items
    }

    fn jobs(&self) -> Vec<JobRow> {
        block_on(self.store.jobs(&Project::DEFAULT, JobQuery::default())).unwrap().items
    }

    fn journal(&self, run: RunId) -> Vec<(Seq, Entry)> {
        block_on(self.store.journal(&Project::DEFAULT, run, Since::Entry(Seq::ZERO), 10_000)).unwrap().entries
    }

    /// The attempts at nodes as the journals have them, by id.
    fn attempts(&self) -> Vec<(RunId, NodeAttempt)> {
        let mut all = Vec::new();
        for row in self.runs() {
            let version = block_on(self.store.version(&Project::DEFAULT, VersionRef::Id(row.origin.version)))
                .unwrap()
                .unwrap();
            let plan = compile(&version.definition, Strictness::Strict).plan.unwrap();
            let journal = self.journal(row.id);
            let rows = attempts(row.id, &plan, journal.iter().map(|(_, entry)| entry));
            all.extend(rows.into_iter().map(|attempt| (row.id, attempt)));
        }
        all
    }
}

fn all() -> Vec<Filled> {
    vec![
        fill!(replays::a_run_replays_from_its_journal),
        fill!(replays::a_call_through_the_queue_makes_a_job_that_can_be_claimed),
        fill!(replays::an_answer_ends_the_job_and_moves_the_run_in_one_commit),
        fill!(replays::a_cancelled_run_cancels_its_jobs),
        fill!(replays::a_priced_call_is_charged_and_settled_with_its_run),
        fill!(replays::a_run_has_an_owner_only_while_a_server_makes_a_call),
        fill!(replays::a_run_that_waits_says_so_and_wakes),
        fill!(replays::a_wide_fan_is_followed_to_its_end),
    ]
}

/// Runs with several rounds.
fn taken_up() -> Vec<Filled> {
    vec![
        fill!(rounds::a_rerun_resets_the_nodes_that_follow),
        fill!(rounds::a_retry_continues_at_the_failed_nodes),
    ]
}

fn text<T: FromSql>(row: &Row<'_>, name: &str) -> rusqlite::Result<T> {
    row.get(name)
}

#[test]
fn entries_are_the_journal() {
    for filled in all().into_iter().chain(taken_up()) {
        let mut n = 0;
        for run in filled.runs() {
            let sql = format!("SELECT * FROM entries WHERE run = x'{}' ORDER BY seq", run.id.uuid().simple());
            let rows = filled.rows(&sql, |row| {
                Ok((text::<u32>(row, "seq")?, text::<i64>(row, "at")?, text::<String>(row, "events")?))
            });
            let journal = filled.journal(run.id);
            let journal = journal.iter().map(|(seq, entry)| {
                (u32::try_from(seq.0).unwrap(), entry.at.0, serde_json::to_string(&entry.events).unwrap())
            });
            assert_eq!(rows, journal.collect::<Vec<_>>());
            n += rows.len();
        }
        assert!(n > 0);
    }
}

#[test]
fn node_runs_are_the_attempts_at_nodes() {
    let seconds = |ms: i64| ms / 1_000;
    let mut n = 0;
    for filled in all().into_iter().chain(taken_up()) {
        let mut rows = filled.rows("SELECT * FROM node_runs", |row| {
            let key = (
                text::<String>(row, "id")?,
                text::<String>(row, "task_id")?,
                text::<u32>(row, "attempt_no")?,
            );
            let place = (text::<String>(row, "node_key")?, text::<String>(row, "branch_id")?);
            let fate = (text::<String>(row, "status")?, text::<String>(row, "error_text")?);
            let times = (text::<i64>(row, "started_at")?, text::<i64>(row, "finished_at")?);
            Ok((
                key,
                place,
                fate,
                times,
                text::<String>(row, "worker_id")?,
                text::<String>(row, "exec_output_json")?,
            ))
        });
        let mut expected: Vec<_> = filled
            .attempts()
            .into_iter()
            .map(|(run, row)| {
                let uuid = run.uuid();
                let place =
                    if row.fence > Fence::ZERO { row.fence.to_string() } else { format!("e{}", row.event) };
                let key = (format!("{uuid}.{place}"), format!("task-{uuid}"), row.attempt);
                let around = row.node.split_last().filter(|(around, _)| !around.is_root());
                let node_key = around.map_or_else(|| row.node.to_string(), |(around, _)| around.to_string());
                let branch = match &row.part {
                    AttemptPart::Outermost => String::new(),
                    AttemptPart::Branch { name, .. } => name.clone(),
                    AttemptPart::Item { index } => index.to_string(),
                    AttemptPart::Inner { key } => key.clone(),
                };
                let status = match row.status {
                    AttemptStatus::Waiting => "running",
                    AttemptStatus::Queued
                    | AttemptStatus::Running
                    | AttemptStatus::Suspended
                    | AttemptStatus::Ok
                    | AttemptStatus::Error
                    | AttemptStatus::Canceled => row.status.word(),
                };
                let fault = row.fault.map(|fault| fault.message).unwrap_or_default();
                let finished = row.finished_at.map_or(0, |at| seconds(at.0));
                let times = (seconds(row.started_at.0), finished);
                // The collected output of a fan or a loop is in the state of the run, not in its journal.
                let collects = matches!(row.kind.as_str(), "foreach" | "@control/flow/loop");
                let output = row.output.filter(|_| !collects || row.fence > Fence::ZERO);
                let output = output.map(|output| output.to_string()).unwrap_or_default();
                (
                    key,
                    (node_key, branch),
                    (status.to_owned(), fault),
                    times,
                    row.worker.unwrap_or_default(),
                    output,
                )
            })
            .collect();
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected);
        n += rows.len();
    }
    assert!(n > 50, "{n}");
}

#[test]
fn inputs_and_actions_of_node_runs_are_those_of_the_attempts() {
    let filled = fill!(replays::a_run_replays_from_its_journal);
    let sql = "SELECT node_key, exec_input_json, action, sub_status, prep_json FROM node_runs ORDER BY n";
    let rows = filled.rows(sql, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)));
    let row = |node: &str, action: &str| {
        let (input, nothing) = ("null".to_owned(), String::new());
        (node.to_owned(), input, action.to_owned(), nothing, "{}".to_owned())
    };
    assert_eq!(rows, [row("a", "default"), row("b", "default"), row("b", "")]);
    let filled = fill!(replays::a_wide_fan_is_followed_to_its_end);
    let sql = "SELECT DISTINCT sub_status FROM node_runs WHERE branch_id <> '' ORDER BY 1";
    assert_eq!(filled.rows(sql, |row| row.get::<_, String>(0)), ["item_complete"]);
}

#[test]
fn times_are_seconds() {
    let filled = fill!(replays::a_run_replays_from_its_journal);
    let later = "UPDATE runs SET created_at = created_at + 1790000000000, updated_at = updated_at + 1790000999000; \
                 UPDATE journal SET at = 1790000000000 + 1000 * at";
    filled.db.execute_batch(later).unwrap();
    let times = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let task = filled.rows("SELECT created_at, updated_at FROM tasks", times);
    assert_eq!(task, [(1_790_000_000, 1_790_000_999)]);
    let attempts = filled.rows("SELECT started_at, finished_at FROM node_runs ORDER BY n", times);
    let at = |second: i64| 1_790_000_000 + second;
    assert_eq!(attempts, [(at(10), at(20)), (at(20), at(30)), (at(40), 0)]);
}

#[test]
fn tasks_are_the_runs() {
    for filled in all() {
        let mut rows = filled.rows("SELECT * FROM tasks", |row| {
            let ids = (
                text::<String>(row, "id")?,
                text::<String>(row, "flow_id")?,
                text::<String>(row, "flow_version_id")?,
            );
            let state = (text::<String>(row, "status")?, text::<String>(row, "shared_json")?);
            let node = (text::<String>(row, "current_node_key")?, text::<u32>(row, "step_count")?);
            Ok((ids, state, node, text::<i64>(row, "created_at")?, text::<String>(row, "params_json")?))
        });
        let mut expected: Vec<_> = filled
            .runs()
            .into_iter()
            .map(|run| {
                let (origin, projection) = (run.origin, run.projection);
                let ids = (
                    format!("task-{}", run.id.uuid()),
                    format!("flow-{}", origin.flow.uuid()),
                    format!("ver-{}", origin.version.uuid()),
                );
                let status = match projection.status.word() {
                    "running" if projection.owner.is_none() => "waiting_queue",
                    "waiting" => "running",
                    word => word,
                };
                let shared = projection.shared.map_or_else(|| "{}".to_owned(), |shared| shared.to_string());
                let node = projection.node.map(|node| node.to_string()).unwrap_or_default();
                let started = serde_json::to_string(&filled.journal(run.id)[0].1.events[0]).unwrap();
                let started: serde_json::Value = serde_json::from_str(&started).unwrap();
                let params = started.get("params").map_or_else(|| "{}".to_owned(), ToString::to_string);
                (
                    ids,
                    (status.to_owned(), shared),
                    (node, u32::try_from(projection.step_count).unwrap()),
                    origin.created_at.0 / 1_000,
                    params,
                )
            })
            .collect();
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected);
        assert!(!rows.is_empty());
    }
}

#[test]
fn the_task_queue_is_the_jobs_of_runs() {
    let mut n = 0;
    for filled in all() {
        let mut rows = filled.rows("SELECT * FROM task_queue", |row| {
            let ids = (
                text::<String>(row, "id")?,
                text::<String>(row, "task_id")?,
                text::<String>(row, "node_key")?,
            );
            let input: serde_json::Value = serde_json::from_str(&text::<String>(row, "input_json")?).unwrap();
            Ok((ids, text::<String>(row, "service")?, text::<String>(row, "worker_id")?, input.to_string()))
        });
        let mut expected: Vec<_> = filled
            .jobs()
            .into_iter()
            .filter_map(|row| Some((row.origin.call?, row.job)))
            .map(|(call, job)| {
                let around = call.node.split_last().filter(|(around, _)| !around.is_root());
                let node = around.map_or_else(|| call.node.to_string(), |(around, _)| around.to_string());
                let task = call.run.uuid();
                let ids = (format!("{}.{}", job.id.uuid(), job.fence), format!("task-{task}"), node);
                let worker = job.attempts.last().and_then(|attempt| attempt.worker.clone());
                let payload = job.spec.payload.value();
                let input = serde_json::json!({
                    "input": payload["input"], "params": payload["params"],
                    "run_id": format!("{task}.{}", call.fence),
                });
                (ids, job.spec.name.clone(), worker.unwrap_or_default(), input.to_string())
            })
            .collect();
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected);
        n += rows.len();
    }
    assert!(n > 0);
}

#[test]
fn task_runs_are_the_attempts_at_jobs() {
    let filled = fill!(jobs::attempts_are_kept_longer_than_the_job_remembers);
    let job = filled.jobs().remove(0).id();
    let expected = block_on(filled.store.attempts(&Project::DEFAULT, job, 0, 1_000)).unwrap();
    let sql = "SELECT attempt, status, worker_id, started_at, finished_at, next_retry_at FROM task_runs";
    let sql = format!("{sql} WHERE task_id = '{}' ORDER BY attempt", job.uuid());
    let rows = filled.rows(&sql, |row| {
        let times: [Option<String>; 3] = [row.get(3)?, row.get(4)?, row.get(5)?];
        Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?, times))
    });
    assert!(rows.len() > 100);
    assert_eq!(rows.len(), expected.len());
    let ids = filled.rows("SELECT id, attempt FROM task_runs", |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, u32>(1)?))
    });
    assert!(ids.iter().all(|(id, n)| id.len() == 36 && id.ends_with(&format!("{n:08x}"))), "{ids:?}");
    for ((number, status, worker, times), attempt) in rows.into_iter().zip(expected) {
        assert_eq!(
            (number, status, worker),
            (attempt.number, attempt.status.word().replace("canceled", "cancelled"), attempt.worker)
        );
        let moments = [attempt.started_at, attempt.finished_at, attempt.next_retry_at];
        for (time, moment) in times.into_iter().zip(moments) {
            let time = time.map(|time| Timestamp::parse_rfc3339(&time).unwrap());
            assert_eq!(time, moment);
        }
    }
}

#[test]
fn flow_versions_are_the_versions() {
    let filled = fill!(replays::a_run_replays_from_its_journal);
    let run = filled.runs().remove(0);
    let versions = block_on(filled.store.versions(&Project::DEFAULT, run.origin.flow)).unwrap();
    let sql = "SELECT id, version, definition_json, status FROM flow_versions WHERE flow_id = ";
    let rows = filled.rows(&format!("{sql}'flow-{}'", run.origin.flow.uuid()), |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, u32>(1)?,
            row.get::<_, String>(2)?,
            row.get::<_, String>(3)?,
        ))
    });
    let version = &versions[0];
    let expected = (format!("ver-{}", version.id.uuid()), version.number, version.definition.clone());
    assert_eq!(rows, [(expected.0, expected.1, expected.2, "published".to_owned())]);
    let names =
        filled.rows("SELECT id, name, description, created_at FROM flows", |row| row.get::<_, String>(1));
    assert!(!names.is_empty());
}

#[test]
fn workers_have_the_columns_of_all_documents() {
    let filled = fill!(records::workers_register_beat_and_are_found);
    let sql = "SELECT id, url, services_json, load, last_heartbeat, status, type, name, queues, heartbeat_at, capacity \
               FROM workers ORDER BY id";
    let rows = filled.rows(sql, |row| {
        let (id, services, load): (String, String, i64) = (row.get(0)?, row.get(2)?, row.get(3)?);
        Ok((id, services, load, row.get::<_, String>(5)?, row.get::<_, String>(9)?))
    });
    let workers =
        block_on((&filled.store as &dyn Store).workers(&Project::DEFAULT, WorkerQuery::default())).unwrap();
    let expected = workers.into_iter().map(|row| {
        let status = "offline".to_owned();
        (row.id, serde_json::to_string(&row.services).unwrap(), row.load, status, Some(row.beat_at))
    });
    let rows = rows
        .into_iter()
        .map(|(id, services, load, status, at)| (id, services, load, status, Timestamp::parse_rfc3339(&at)));
    assert_eq!(rows.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

mod workflows;
