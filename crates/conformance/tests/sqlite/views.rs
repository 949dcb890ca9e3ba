//! Views for people, compared with the answers of the trait.

use rusqlite::types::{FromSql, Value};
use rusqlite::{Connection, Row};
use windlass_conformance::block_on;
use windlass_conformance::fixture::documented_queries;
use windlass_conformance::suite::{jobs, records, replays, rounds};
use windlass_conformance::test_directory::TestDirectory;
use windlass_engine::counter::{Epoch, Fence, Seq};
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::id::{RunId, ServerId};
use windlass_engine::journal::Entry;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::flow::{FlowRef, VersionRef};
use windlass_store::job::{JobQuery, JobRow, JobStatus};
use windlass_store::projection::attempts::{AttemptPart, AttemptStatus, NodeAttempt, attempts};
use windlass_store::run::{Owner, RunQuery, RunRow, Since};
use windlass_store::server::ServerRow;
use windlass_store::worker::{WorkerQuery, WorkerRow};
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

    /// The variables of an open run.
    fn written(&self, run: RunId) -> String {
        let sql = format!("SELECT runtime_variables FROM workflow_tasks WHERE id = '{run}'");
        self.rows(&sql, |row| row.get(0)).remove(0)
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

/// The time that a view shows.
fn moment(text: Option<String>) -> Option<Timestamp> {
    text.map(|text| Timestamp::parse_rfc3339(&text).unwrap())
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
                Ok((text::<u32>(row, "seq")?, moment(text(row, "at")?), text::<String>(row, "events")?))
            });
            let journal = filled.journal(run.id);
            let journal = journal.iter().map(|(seq, entry)| {
                let events = serde_json::to_string(&entry.events).unwrap();
                (u32::try_from(seq.0).unwrap(), Some(entry.at), events)
            });
            assert_eq!(rows, journal.collect::<Vec<_>>());
            n += rows.len();
        }
        assert!(n > 0);
    }
}

#[test]
fn node_runs_are_the_attempts_at_nodes() {
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
            let times = (moment(text(row, "started_at")?), moment(text(row, "finished_at")?));
            Ok((
                key,
                place,
                fate,
                times,
                text::<String>(row, "worker_id")?,
                text::<Option<String>>(row, "exec_output_json")?.unwrap_or_default(),
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
                let times = (Some(row.started_at), row.finished_at);
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
fn times_are_written_with_their_milliseconds_and_open_ends_are_null() {
    let filled = fill!(replays::a_run_replays_from_its_journal);
    let later = "UPDATE runs SET created_at = created_at + 1790000000000, updated_at = updated_at + 1790000999000; \
                 UPDATE journal SET at = 1790000000000 + 1000 * at";
    filled.db.execute_batch(later).unwrap();
    let times = |row: &Row<'_>| Ok([moment(row.get(0)?), moment(row.get(1)?)]);
    let at = |ms: i64| Some(Timestamp(1_790_000_000_000 + ms));
    let run = filled.runs().remove(0);
    let (created, updated) = (run.origin.created_at, run.projection.updated_at);
    let task = filled.rows("SELECT created_at, updated_at FROM tasks", times);
    assert_eq!(task, [[Some(created), Some(updated)]]);
    let attempts = filled.rows("SELECT started_at, finished_at FROM node_runs ORDER BY n", times);
    assert_eq!(attempts, [[at(10_000), at(20_000)], [at(20_000), at(30_000)], [at(40_000), None]]);
}

#[test]
fn tasks_are_the_runs() {
    for filled in all() {
        let mut rows = filled.rows("SELECT * FROM tasks WHERE run IS NOT NULL", |row| {
            let ids = (
                text::<String>(row, "id")?,
                text::<String>(row, "flow_id")?,
                text::<String>(row, "flow_version_id")?,
            );
            let state = (text::<String>(row, "status")?, text::<String>(row, "shared_json")?);
            let node = (text::<String>(row, "current_node_key")?, text::<u32>(row, "step_count")?);
            assert_eq!(text::<String>(row, "type")?, "run");
            assert_eq!(text::<String>(row, "name")?, text::<String>(row, "flow_name")?);
            Ok((ids, state, node, moment(text(row, "created_at")?), text::<String>(row, "params_json")?))
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
                let shared =
                    projection.shared.map_or_else(|| filled.written(run.id), |shared| shared.to_string());
                let node = projection.node.map(|node| node.to_string()).unwrap_or_default();
                let started = serde_json::to_string(&filled.journal(run.id)[0].1.events[0]).unwrap();
                let started: serde_json::Value = serde_json::from_str(&started).unwrap();
                let params = started.get("params").map_or_else(|| "{}".to_owned(), ToString::to_string);
                (
                    ids,
                    (status.to_owned(), shared),
                    (node, u32::try_from(projection.step_count).unwrap()),
                    Some(origin.created_at),
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
fn tasks_are_the_jobs_too() {
    let mut n = 0;
    let filled = all().into_iter().chain([fill!(jobs::a_job_reads_back_as_it_was_written)]);
    for filled in filled.chain([fill!(jobs::attempts_are_kept_longer_than_the_job_remembers)]) {
        let mut rows = filled.rows("SELECT * FROM tasks WHERE job IS NOT NULL", |row| {
            assert_eq!(text::<Option<String>>(row, "shared_json")?, None);
            let names = [text::<String>(row, "id")?, text(row, "name")?, text(row, "type")?];
            let state = [text::<String>(row, "queue_name")?, text(row, "status")?, text(row, "dedup_key")?];
            let numbers = (text::<i32>(row, "priority")?, text::<u32>(row, "max_retries")?);
            let times = [moment(text(row, "run_at")?), moment(text(row, "created_at")?)];
            Ok((names, state, numbers, text::<String>(row, "payload")?, times))
        });
        let expected = filled.jobs().into_iter().map(|JobRow { job, origin, .. }| {
            let is_scheduled = origin.schedule.is_some() || job.spec.run_at.is_some();
            let kind = if is_scheduled { "scheduled" } else { "immediate" };
            let names = [job.id.uuid().to_string(), job.spec.name.clone(), kind.to_owned()];
            let status = JobStatus::of(&job).whole_word().replace("canceled", "cancelled");
            let state = [job.spec.queue.clone(), status, job.spec.dedup_key.clone()];
            let times = [job.spec.run_at, Some(job.created_at)];
            let numbers = (job.spec.priority, job.spec.max_retries);
            (names, state, numbers, job.spec.payload.as_str().to_owned(), times)
        });
        let mut expected: Vec<_> = expected.collect();
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected);
        n += rows.len();
    }
    assert!(n > 3, "{n}");
}

#[test]
fn retries_to_come_are_those_of_nodes_that_wait_for_one() {
    let filled = fill!(replays::a_run_replays_from_its_journal);
    let run = filled.runs().remove(0).id;
    let fault = r#""fault":{"kind":"error","message":"no luck"}"#;
    let granted = r#"{"e":"granted","node":"z","attempt":2,"visit":9,"fence":9}"#;
    let deferred = format!(r#"{{"e":"deferred","node":"z","fence":9,{fault},"until":70,"next":"retry"}}"#);
    let events = format!("[{granted},{deferred}]");
    let insert = "INSERT INTO journal (run, seq, v, at, command, events) \
                  SELECT no, ?1, 1, 50, randomblob(16), ?2 FROM runs WHERE id = ?3";
    let retries = || filled.rows("SELECT retry_state_json FROM tasks", |row| row.get::<_, String>(0));
    assert_eq!(retries(), ["{}"]);
    filled.db.execute(insert, rusqlite::params![900, events, run.uuid().as_bytes()]).unwrap();
    assert_eq!(retries(), [r#"{"z":{"attempt":3,"next_try_at":70,"error":"no luck"}}"#]);
    let granted = r#"[{"e":"granted","node":"z","attempt":3,"visit":9,"fence":10}]"#;
    filled.db.execute(insert, rusqlite::params![901, granted, run.uuid().as_bytes()]).unwrap();
    assert_eq!(retries(), ["{}"]);
}

#[test]
fn the_queries_of_the_queue_platform_work_word_for_word() {
    let of_runs = fill!(replays::an_answer_ends_the_job_and_moves_the_run_in_one_commit);
    let of_jobs = fill!(jobs::attempts_are_kept_longer_than_the_job_remembers);
    let of_workers = fill!(records::workers_register_beat_and_are_found);
    let queries = documented_queries(&of_jobs.jobs()[0].id().uuid().to_string());
    let mut stores = [&of_runs, &of_jobs, &of_workers].into_iter();
    let [tasks, attempts, workers] = queries.map(|sql| {
        let mut statement = stores.next().unwrap().db.prepare(&sql).unwrap();
        let n = statement.column_count();
        let read = |row: &Row<'_>| (0..n).map(|at| row.get::<_, Value>(at)).collect::<rusqlite::Result<_>>();
        statement.query_map([], read).unwrap().collect::<rusqlite::Result<Vec<Vec<Value>>>>().unwrap()
    });
    let kinds: Vec<&str> = tasks.iter().map(|task| words(&task[2])).collect();
    assert!(kinds.contains(&"run") && kinds.contains(&"immediate"), "{kinds:?}");
    let created: Vec<&Value> = tasks.iter().map(|task| &task[4]).collect();
    assert!(created.is_sorted_by_key(|at| std::cmp::Reverse(words(at))), "{created:?}");
    let numbers: Vec<&Value> = attempts.iter().map(|attempt| &attempt[0]).collect();
    assert!(numbers.len() > 100 && *numbers[1] == Value::Integer(2), "{numbers:?}");
    assert!(!workers.is_empty() && workers.iter().all(|worker| words(&worker[2]).starts_with('[')));
}

/// A text of a view.
fn words(value: &Value) -> &str {
    let Value::Text(text) = value else { panic!("{value:?}") };
    text
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
    let sql = "SELECT flows.name, flows.created_at, flow_versions.version \
               FROM flows JOIN flow_versions ON flow_versions.flow_id = flows.id";
    let rows =
        filled.rows(sql, |row| Ok((row.get::<_, String>(0)?, moment(row.get(1)?), row.get::<_, u32>(2)?)));
    let flow = block_on((&filled.store as &dyn Store).flow(&Project::DEFAULT, FlowRef::Id(run.origin.flow)));
    let flow = flow.unwrap().unwrap();
    assert!(rows.contains(&(flow.name, Some(flow.created_at), version.number)), "{rows:?}");
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

#[test]
fn a_worker_is_online_for_as_long_as_the_settings_of_the_server_say() {
    let now = Timestamp(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis().try_into().unwrap());
    let filled = Filled::with(async |store: &dyn Store| {
        let worker = |id: &str, ms: i64| WorkerRow {
            id: id.to_owned(),
            name: String::new(),
            url: String::new(),
            kind: "async".to_owned(),
            services: Vec::new(),
            queues: Vec::new(),
            load: 0,
            capacity: 1,
            is_draining: false,
            peer: String::new(),
            replaced: Vec::new(),
            secret: None,
            registered_at: now,
            beat_at: Timestamp(now.0 - ms),
        };
        store.save_worker(&Project::DEFAULT, worker("late", 40_000)).await.unwrap();
        store.save_worker(&Project::DEFAULT, worker("long gone", 90_000)).await.unwrap();
    });
    let status = || filled.rows("SELECT status FROM workers ORDER BY id", |row| row.get::<_, String>(0));
    assert_eq!(status(), ["offline", "offline"], "15 seconds, unless a server says otherwise");
    let owner = Owner { server: ServerId::new(uuid::Uuid::from_u128(1)), epoch: Epoch(1) };
    let (name, version) = (String::new(), String::new());
    let row = ServerRow { owner, name, version, started_at: now, beat_at: now, worker_ttl_ms: 60_000 };
    block_on(filled.store.save_server(row)).unwrap();
    assert_eq!(status(), ["online", "offline"]);
}

mod workflows;
