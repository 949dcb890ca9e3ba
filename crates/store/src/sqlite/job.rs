//! Jobs, their attempts and their keys.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::{JobId, RunId};
use windlass_engine::job::{Job, JobSpec};
use windlass_engine::time::Timestamp;

use super::column::{Columns, Id, bound, json, stored};
use super::list::{self, Conditions, Source, key};
use super::{attempt, guard, schedule};
use crate::commit::JobChange;
use crate::error::{Refusal, StoreError, Subject};
use crate::job::{CallRef, JobOrigin, JobQuery, JobRow, JobStatus, ReadyQuery, due_at};
use crate::page::{Order, Page};
use crate::run::Wake;
use crate::schedule::Started;

macro_rules! columns {
    () => {
        "SELECT id, rev, state, fence, round, attempts_from, memo, replays, call_run, call_node, call_fence, \
         schedule, created_at, updated_at, spec, payload FROM jobs JOIN job_specs ON job_specs.job = jobs.id"
    };
}

const SOURCE: Source = Source {
    select: columns!(),
    count: "SELECT count(*) FROM jobs",
    created: "created_at",
    changed: "updated_at",
    id: "id",
};
const BY_ID: &str = concat!(columns!(), " WHERE id = ?1");
const HEAD: &str = "SELECT rev, is_open FROM jobs WHERE id = ?1";
const HOLDER: &str = "SELECT jobs.id FROM job_keys JOIN jobs ON jobs.id = job_keys.job \
     WHERE job_keys.queue = ?1 AND job_keys.key = ?2 AND (jobs.is_open = 1 OR jobs.key_until > ?3)";
const TAKE_KEY: &str = "INSERT INTO job_keys (queue, key, job) VALUES (?1, ?2, ?3) \
     ON CONFLICT (queue, key) DO UPDATE SET job = excluded.job";
const INSERT: &str = "INSERT INTO jobs (id, rev, queue, name, priority, status, is_open, is_dead_letter, due_at, \
     wake_at, key_until, state, fence, round, attempts_from, memo, replays, run, created_at, updated_at, call_run, \
     call_node, call_fence, schedule) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, \
     ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)";
const UPDATE: &str = "UPDATE jobs SET rev = ?2, queue = ?3, name = ?4, priority = ?5, status = ?6, \
     is_open = ?7, is_dead_letter = ?8, due_at = ?9, wake_at = ?10, key_until = ?11, state = ?12, fence = ?13, \
     round = ?14, attempts_from = ?15, memo = ?16, replays = ?17, run = ?18, created_at = ?19, \
     updated_at = ?20 WHERE id = ?1";
const INSERT_SPEC: &str = "INSERT INTO job_specs (job, spec, payload) VALUES (?1, ?2, ?3)";
const UPDATE_SPEC: &str = "UPDATE job_specs SET spec = ?2, payload = ?3 \
     WHERE job = ?1 AND (spec <> ?2 OR payload <> ?3)";
const DUE: &str = "SELECT wake_at, id FROM jobs WHERE wake_at <= ?1 ORDER BY wake_at, id LIMIT ?2";

// The paused queues are asked about per job, because a service may be in many.
macro_rules! ready {
    ($by:literal) => {
        concat!(
            columns!(),
            " WHERE ",
            $by,
            " = ?1 AND priority = ?2 AND due_at <= ?3 AND NOT EXISTS \
             (SELECT 1 FROM queues WHERE queues.name = jobs.queue AND is_paused = 1) ORDER BY due_at, id LIMIT ?4"
        )
    };
}
macro_rules! next_priority {
    ($by:literal) => {
        concat!(
            "SELECT priority FROM jobs WHERE ",
            $by,
            " = ?1 AND priority < ?2 AND due_at IS NOT NULL ORDER BY priority DESC LIMIT 1"
        )
    };
}
const READY_BY_QUEUE: &str = ready!("jobs.queue");
const READY_BY_NAME: &str = ready!("jobs.name");
const PRIORITY_BY_QUEUE: &str = next_priority!("queue");
const PRIORITY_BY_NAME: &str = next_priority!("name");

/// What a change of a job finds there.
pub(super) struct Before {
    exists: bool,
    is_open: bool,
}

/// Whether the changes may be made; what each of them finds.
pub(super) fn check(
    db: &Connection,
    changes: &[JobChange],
    now: Timestamp,
) -> Result<Vec<Before>, StoreError> {
    let mut taken: BTreeMap<(&str, &str), JobId> = BTreeMap::new();
    let mut before = Vec::new();
    for JobChange { expected_rev, job, .. } in changes {
        let head = db.prepare_cached(HEAD)?.query_row([job.id.key()], |row| {
            let mut columns = Columns::of(row);
            Ok((columns.number()?, columns.value()?))
        });
        let head = head.optional()?;
        let (rev, is_open) = head.unwrap_or((0, false));
        guard(|| Subject::Job(job.id), *expected_rev, rev)?;
        before.push(Before { exists: head.is_some(), is_open });
        // A key is taken when a job is created or opened again; while it is open nobody else can have it.
        let (queue, key) = (job.spec.queue.as_str(), job.spec.dedup_key.as_str());
        if is_open || !job.is_open() || key.is_empty() {
            continue;
        }
        let holder = db
            .prepare_cached(HOLDER)?
            .query_row(params![queue, key, now.0], |row| Columns::of(row).id::<JobId>());
        let holder = holder.optional()?.or_else(|| taken.get(&(queue, key)).copied());
        if let Some(existing) = holder.filter(|id| *id != job.id) {
            let (queue, key) = (queue.to_owned(), key.to_owned());
            return Err(Refusal::Duplicate { queue, key, existing }.into());
        }
        taken.insert((queue, key), job.id);
    }
    Ok(before)
}

/// Makes a change.
pub(super) fn write(db: &Connection, change: &JobChange, before: &Before) -> Result<(), StoreError> {
    let JobChange { job, .. } = change;
    let is_open = job.is_open();
    write_row(db, change, before)?;
    attempt::write(db, job, before.exists)?;
    if is_open && !before.is_open && !job.spec.dedup_key.is_empty() {
        let taken = params![job.spec.queue, job.spec.dedup_key, job.id.key()];
        db.prepare_cached(TAKE_KEY)?.execute(taken)?;
    }
    if is_open != before.is_open {
        schedule::set_running(db, Started::Job(job.id), is_open)?;
    }
    Ok(())
}

fn write_row(db: &Connection, change: &JobChange, before: &Before) -> Result<(), StoreError> {
    let JobChange { expected_rev, job, origin } = change;
    let Job { id, spec, state, fence, round, attempts, memo, replays, created_at, updated_at } = job;
    let (id, rev, fence) = (id.key(), stored(expected_rev.saturating_add(1)), stored(*fence));
    let status = word(JobStatus::of(job));
    let (is_open, is_dead_letter) = (job.is_open(), job.is_dead_letter());
    let (due_at, wake_at) = (due_at(job).map(|at| at.0), job.wake_at().map(|at| at.0));
    let key_until = (!spec.dedup_key.is_empty()).then(|| created_at.after(spec.unique_for_ms).0);
    let (state, round, replays) = (json(state), json(round), json(replays));
    let attempts_from = attempts.first().map_or(u32::MAX, |attempt| attempt.number);
    let memo = memo.as_ref().map(json);
    let run = spec.run.map(Id::key);
    let standing = params![
        id,
        rev,
        spec.queue,
        spec.name,
        spec.priority,
        status,
        is_open,
        is_dead_letter,
        due_at,
        wake_at,
        key_until,
        state,
        fence,
        round,
        attempts_from,
        memo,
        replays,
        run,
        created_at.0,
        updated_at.0
    ];
    let written_spec = (json(&without_payload(spec)), json(&spec.payload));
    let written_spec = params![id, written_spec.0, written_spec.1];
    if before.exists {
        db.prepare_cached(UPDATE)?.execute(standing)?;
        db.prepare_cached(UPDATE_SPEC)?.execute(written_spec)?;
        return Ok(());
    }
    let JobOrigin { call, schedule } = origin;
    let call_run = call.as_ref().map(|call| call.run.key());
    let call_node = call.as_ref().map(|call| call.node.as_str());
    let call_fence = call.as_ref().map(|call| stored(call.fence));
    let schedule = schedule.map(Id::key);
    let origin = params![call_run, call_node, call_fence, schedule];
    db.prepare_cached(INSERT)?.execute([standing, origin].concat().as_slice())?;
    db.prepare_cached(INSERT_SPEC)?.execute(written_spec)?;
    Ok(())
}

/// The payload is kept apart: inside, it would be nested deeper than the reader of JSON follows.
fn without_payload(spec: &JobSpec) -> JobSpec {
    let JobSpec { name, queue, priority, payload: _, dedup_key, unique_for_ms, .. } = spec;
    let JobSpec { max_retries, run_at, timeout_ms, backoff, account, run, .. } = spec;
    JobSpec {
        name: name.clone(),
        queue: queue.clone(),
        priority: *priority,
        payload: serde_json::Value::Null,
        dedup_key: dedup_key.clone(),
        unique_for_ms: *unique_for_ms,
        max_retries: *max_retries,
        run_at: *run_at,
        timeout_ms: *timeout_ms,
        backoff: *backoff,
        account: account.clone(),
        run: *run,
    }
}

fn word(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Pending => "pending",
        JobStatus::Queued => "queued",
        JobStatus::Running => "running",
        JobStatus::Suspended => "suspended",
        JobStatus::Retrying => "retrying",
        JobStatus::Completed => "completed",
        JobStatus::Failed => "failed",
        JobStatus::Cancelled => "cancelled",
    }
}

fn read(db: &Connection, row: &Row<'_>) -> rusqlite::Result<JobRow> {
    let mut columns = Columns::of(row);
    let (id, rev): (JobId, u64) = (columns.id()?, columns.number()?);
    let (state, fence, round) = (columns.json()?, columns.number()?, columns.json()?);
    let attempts = attempt::remembered(db, id, columns.value()?)?;
    let (memo, replays) = (columns.json_or_none()?, columns.json()?);
    let (run, node): (Option<RunId>, _) = (columns.id_or_none()?, columns.path_or_none()?);
    let call = run.zip(node).zip(columns.number_or_none()?);
    let call = call.map(|((run, node), fence)| CallRef { run, node, fence });
    let origin = JobOrigin { call, schedule: columns.id_or_none()? };
    let (created_at, updated_at) = (columns.time()?, columns.time()?);
    let mut spec: JobSpec = columns.json()?;
    spec.payload = columns.json()?;
    let job = Job { id, spec, state, fence, round, attempts, memo, replays, created_at, updated_at };
    Ok(JobRow { rev, job, origin })
}

pub(super) fn job(db: &Connection, job: JobId) -> Result<Option<JobRow>, StoreError> {
    Ok(db.prepare_cached(BY_ID)?.query_row([job.key()], |row| read(db, row)).optional()?)
}

pub(super) fn jobs(db: &Connection, query: &JobQuery) -> Result<Page<JobRow>, StoreError> {
    let mut conditions = Conditions::default();
    let words: Vec<&str> = query.statuses.iter().map(|status| word(*status)).collect();
    conditions.one_of("status", &words);
    conditions.equal("queue", query.queue.clone());
    conditions.equal("name", query.name.clone());
    conditions.equal("run", query.run.map(key));
    conditions.equal("schedule", query.schedule.map(key));
    if let Some(is) = query.is_dead_letter {
        // Not a value, so that the small index of dead letters can be used.
        conditions.add(if is { "is_dead_letter = 1" } else { "is_dead_letter = 0" }, []);
    }
    conditions.between("created_at", query.since, query.until);
    let order = query.part.order;
    let read = |row: &Row<'_>| read(db, row);
    list::page(db, &SOURCE, conditions, &query.part, None, &read, &|row: &JobRow| match order {
        Order::Newest | Order::Oldest => (row.job.created_at, row.id()),
        Order::LatestChange => (row.job.updated_at, row.id()),
    })
}

pub(super) fn due(db: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Wake<JobId>>, StoreError> {
    super::wakes(db, DUE, now, limit)
}

pub(super) fn ready(db: &Connection, query: &ReadyQuery) -> Result<Vec<JobRow>, StoreError> {
    let mut found: BTreeMap<(Reverse<i32>, Option<Timestamp>, JobId), JobRow> = BTreeMap::new();
    let by_queue = query.queues.iter().map(|queue| (PRIORITY_BY_QUEUE, READY_BY_QUEUE, queue));
    let by_name = query.services.iter().map(|name| (PRIORITY_BY_NAME, READY_BY_NAME, name));
    for (priorities, ready, of) in by_queue.chain(by_name) {
        let rows = ready_of(db, priorities, ready, of, query)?;
        found.extend(
            rows.into_iter().map(|row| ((Reverse(row.job.spec.priority), due_at(&row.job), row.id()), row)),
        );
    }
    Ok(found.into_values().take(query.limit).collect())
}

/// Goes from priority to priority, so that jobs of a high one that are not due yet are not walked through.
fn ready_of(
    db: &Connection,
    priorities: &str,
    ready: &str,
    of: &str,
    query: &ReadyQuery,
) -> Result<Vec<JobRow>, StoreError> {
    let mut found: Vec<JobRow> = Vec::new();
    let mut above = i64::MAX;
    while found.len() < query.limit {
        let next = db.prepare_cached(priorities)?.query_row(params![of, above], |row| row.get(0));
        let Some(priority) = next.optional()? else { break };
        let n_left = bound(query.limit - found.len());
        let mut statement = db.prepare_cached(ready)?;
        let rows = statement.query_map(params![of, priority, query.now.0, n_left], |row| read(db, row))?;
        for row in rows {
            found.push(row?);
        }
        above = priority;
    }
    Ok(found)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[
    BY_ID,
    HEAD,
    HOLDER,
    TAKE_KEY,
    INSERT,
    UPDATE,
    INSERT_SPEC,
    UPDATE_SPEC,
    DUE,
    READY_BY_QUEUE,
    READY_BY_NAME,
    PRIORITY_BY_QUEUE,
    PRIORITY_BY_NAME,
];
