//! A job as it is from now on, with its key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use tokio_postgres::Row;
use uuid::Uuid;
use windlass_engine::counter::Revision;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobSpec};
use windlass_engine::time::Timestamp;

use crate::column::{Columns, json, stored};
use crate::commit::JobChange;
use crate::error::{Duplicate, Refusal, StoreError, Subject};
use crate::job::{JobOrigin, JobStatus, due_at, fingerprint, holder, without_payload};
use crate::postgres::column::{PostgresColumns, PostgresId, cells, text, unnest};
use crate::postgres::depth::DepthKey;
use crate::postgres::guard;
use crate::postgres::link::BoundStatement;
use crate::postgres::read_set::ReadSet;

// The project is compared as an expression, which no index serves: the planner, whose statistics of a table that grows
// quickly are old, would read all jobs of the project for each commit.
macro_rules! heads {
    ($wait:literal) => {
        concat!(
            "SELECT id, rev, is_open, replays, status, is_dead_letter, ",
            crate::postgres::attempt::if_any!(
                "SELECT max(number) FROM attempts WHERE attempts.job = jobs.id"
            ),
            " FROM jobs WHERE id = ANY($1) AND project || '' = $2 ORDER BY id FOR NO KEY UPDATE",
            $wait
        )
    };
}
// A transaction that changes a job locks its row.
const HEADS: &str = heads!("");
// A job that another transaction has locked counts as absent.
const HEADS_AT_ONCE: &str = heads!(" SKIP LOCKED");
// A transaction that takes a key locks it, whether it was taken before or not.
const HOLD_KEYS: &str = "SELECT job_keys.queue, job_keys.key FROM job_keys \
     JOIN UNNEST($1::text[], $2::text[]) AS asked (queue, key) \
     ON job_keys.project = $3 AND asked.queue = job_keys.queue AND asked.key = job_keys.key \
     ORDER BY job_keys.queue, job_keys.key FOR NO KEY UPDATE OF job_keys";
const HOLDERS: &str = "SELECT job_keys.queue, job_keys.key, jobs.id, jobs.status, jobs.is_open, jobs.key_until \
     FROM job_keys JOIN UNNEST($1::text[], $2::text[]) AS asked (queue, key) \
     ON job_keys.project = $3 AND asked.queue = job_keys.queue AND asked.key = job_keys.key JOIN jobs ON jobs.id = job_keys.job";
// Never overwrites: another transaction took the key meanwhile, and the conflict must be seen.
const TAKE_KEYS: &str = "INSERT INTO job_keys (queue, key, job, project) \
     SELECT new.*, $4::text FROM UNNEST($1::text[], $2::text[], $3::uuid[]) AS new";
const MOVE_KEYS: &str = "UPDATE job_keys SET job = new.job FROM UNNEST($1::text[], $2::text[], $3::uuid[]) \
     AS new (queue, key, job) WHERE job_keys.project = $4 AND job_keys.queue = new.queue AND job_keys.key = new.key";
const INSERT: &str = "INSERT INTO jobs (id, rev, status, due_at, wake_at, state, fence, round, attempts_from, memo, \
     updated_at, is_open, is_dead_letter, fingerprint, worker, replays, priority, queue, name, key_until, run, \
     created_at, call_run, call_node, call_fence, schedule, limit_key, project) SELECT new.*, $28::text FROM UNNEST($1::uuid[], \
     $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::text[], $9::bigint[], \
     $10::text[], $11::bigint[], $12::boolean[], $13::boolean[], $14::text[], $15::text[], $16::text[], \
     $17::integer[], $18::text[], $19::text[], $20::bigint[], $21::uuid[], $22::bigint[], $23::uuid[], $24::text[], \
     $25::bigint[], $26::uuid[], $27::text[]) AS new";
const UPDATE: &str = "UPDATE jobs SET rev = new.rev, status = new.status, due_at = new.due_at, \
     wake_at = new.wake_at, state = new.state, fence = new.fence, round = new.round, \
     attempts_from = new.attempts_from, memo = new.memo, updated_at = new.updated_at, is_open = new.is_open, \
     is_dead_letter = new.is_dead_letter, fingerprint = new.fingerprint, worker = new.worker, \
     replays = new.replays, priority = coalesce(new.priority, jobs.priority) FROM UNNEST($1::uuid[], \
     $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::text[], $9::bigint[], \
     $10::text[], $11::bigint[], $12::boolean[], $13::boolean[], $14::text[], $15::text[], $16::text[], \
     $17::integer[]) AS new (id, rev, status, due_at, wake_at, state, fence, round, attempts_from, memo, \
     updated_at, is_open, is_dead_letter, fingerprint, worker, replays, priority) WHERE jobs.id = new.id";
const INSERT_SPECS: &str =
    "INSERT INTO job_specs (job, spec, payload) SELECT * FROM UNNEST($1::uuid[], $2::text[], $3::text[])";
const UPDATE_SPECS: &str = "UPDATE job_specs SET spec = new.spec, payload = new.payload \
     FROM UNNEST($1::uuid[], $2::text[], $3::text[]) AS new (job, spec, payload) WHERE job_specs.job = new.job";

/// The texts of a change.
#[derive(Debug)]
pub(in crate::postgres) struct JobTexts {
    state: String,
    round: String,
    memo: Option<String>,
    pub(in crate::postgres) replays: String,
    fingerprint: Option<String>,
    /// The specification as text, made only when it has to be written: most changes leave it alone.
    spec: OnceLock<String>,
}

impl JobTexts {
    pub(in crate::postgres) fn of(change: &JobChange) -> Self {
        let Job { state, round, memo, replays, spec, .. } = &change.job;
        JobTexts {
            state: json(state),
            round: json(round),
            memo: memo.as_ref().map(json),
            replays: json(replays),
            fingerprint: fingerprint(&change.job),
            spec: if change.expected_rev == Revision::ZERO {
                spec_text(spec).into()
            } else {
                OnceLock::new()
            },
        }
    }

    fn spec(&self, spec: &JobSpec) -> &str {
        self.spec.get_or_init(|| spec_text(spec))
    }
}

fn spec_text(spec: &JobSpec) -> String {
    json(&without_payload(spec))
}

/// The stored state that a change of a job finds.
#[derive(Debug, Clone)]
pub(in crate::postgres) struct LockedJob {
    pub(in crate::postgres) rev: Revision,
    pub(in crate::postgres) is_open: bool,
    pub(in crate::postgres) replays: String,
    pub(in crate::postgres) place: Option<DepthKey>,
    /// The number of its last attempt that is stored.
    pub(in crate::postgres) last: Option<u32>,
}

/// The present or former holder of a key.
#[derive(Debug, Clone, Copy)]
pub(in crate::postgres) struct Holder {
    pub(in crate::postgres) status: JobStatus,
    pub(in crate::postgres) is_open: bool,
    pub(in crate::postgres) until: Option<Timestamp>,
}

impl Holder {
    /// A job as it is from now on; until when it has its key does not change.
    pub(in crate::postgres) fn of(job: &Job) -> Self {
        let until = Some(job.created_at.after(job.spec.unique_for_ms));
        Holder { status: JobStatus::of(job), is_open: job.is_open(), until }
    }
}

/// A job as it is after the last of its changes in a group.
pub(in crate::postgres) struct JobWrite<'c> {
    pub(in crate::postgres) rev: Revision,
    pub(in crate::postgres) change: &'c JobChange,
    pub(in crate::postgres) texts: &'c JobTexts,
    /// Its origin, if it is new.
    pub(in crate::postgres) origin: Option<&'c JobChange>,
    /// Its specification, if it is new or may differ.
    pub(in crate::postgres) spec: Option<(&'c JobSpec, &'c JobTexts)>,
}

pub(in crate::postgres) fn heads<'a>(jobs: impl Iterator<Item = JobId>) -> BoundStatement<'a> {
    BoundStatement::new(HEADS, cells![jobs.map(PostgresId::key).collect::<Vec<_>>()])
}

pub(in crate::postgres) fn heads_at_once<'a>(jobs: impl Iterator<Item = JobId>) -> BoundStatement<'a> {
    BoundStatement::new(HEADS_AT_ONCE, cells![jobs.map(PostgresId::key).collect::<Vec<_>>()])
}

impl LockedJob {
    pub(in crate::postgres) fn read(row: &Row) -> Result<(JobId, LockedJob), StoreError> {
        let mut columns = PostgresColumns::of(row);
        let (id, rev, is_open) = (columns.id()?, columns.number()?, columns.value()?);
        let (replays, place) = (columns.value()?, DepthKey::of(columns.word()?, columns.value()?));
        let last = columns.number_or_none::<u64>()?.and_then(|n| u32::try_from(n).ok());
        Ok((id, LockedJob { rev, is_open, replays, place, last }))
    }
}

pub(in crate::postgres) fn hold_keys<'a>(keys: &BTreeSet<(&'a str, &'a str)>) -> BoundStatement<'a> {
    BoundStatement::new(HOLD_KEYS, unnest!(keys, |(queue, key)| [text(queue), text(key)]))
}

pub(in crate::postgres) fn holders<'a>(keys: &BTreeSet<(&'a str, &'a str)>) -> BoundStatement<'a> {
    BoundStatement::new(HOLDERS, unnest!(keys, |(queue, key)| [text(queue), text(key)]))
}

impl Holder {
    pub(in crate::postgres) fn read(row: &Row) -> Result<((String, String), JobId, Holder), StoreError> {
        let mut columns = PostgresColumns::of(row);
        let (key, id) = ((columns.text()?, columns.text()?), columns.id()?);
        let (status, is_open) = (columns.word()?, columns.value()?);
        Ok((key, id, Holder { status, is_open, until: columns.time_or_none()? }))
    }
}

/// Whether the changes may be made.
pub(in crate::postgres) fn check(
    read_set: &ReadSet,
    changes: &[JobChange],
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut taken: BTreeMap<(&str, &str), (JobId, JobStatus)> = BTreeMap::new();
    let mut duplicates = Vec::new();
    for JobChange { expected_rev, job, .. } in changes {
        let head = read_set.jobs.get(&job.id);
        guard(|| Subject::Job(job.id), *expected_rev, head.map_or(Revision::ZERO, |head| head.rev))?;
        // A key is taken when a job is created or opened again; while the job is open no other job can have it.
        let (queue, key) = (job.spec.queue.as_str(), job.spec.dedup_key.as_str());
        if head.is_some_and(|head| head.is_open) || !job.is_open() || key.is_empty() {
            continue;
        }
        let holder = read_set.holder(queue, key, now).or_else(|| taken.get(&(queue, key)).copied());
        if let Some((existing, status)) = holder.filter(|(id, _)| *id != job.id) {
            let (queue, key) = (queue.to_owned(), key.to_owned());
            duplicates.push(Duplicate { job: job.id, queue, key, existing, status });
            continue;
        }
        taken.insert((queue, key), (job.id, JobStatus::of(job)));
    }
    if duplicates.is_empty() { Ok(()) } else { Err(Refusal::Duplicates(duplicates).into()) }
}

/// Where jobs stand: the columns that both statements have, in order.
macro_rules! projection {
    ($rows:expr) => {
        unnest!($rows, |row| [
            row.change.job.id.key(),
            stored(row.rev),
            JobStatus::of(&row.change.job).word(),
            due_at(&row.change.job).map(|at| at.0),
            row.change.job.wake_at().map(|at| at.0),
            row.texts.state.as_str(),
            stored(row.change.job.fence),
            row.texts.round.as_str(),
            i64::from(row.change.job.attempts.first().map_or(u32::MAX, |attempt| attempt.number)),
            row.texts.memo.as_deref(),
            row.change.job.updated_at.0,
            row.change.job.is_open(),
            row.change.job.is_dead_letter(),
            row.texts.fingerprint.as_deref().map(text),
            holder(&row.change.job.state).map(|worker| text(worker)),
            row.texts.replays.as_str(),
            row.spec.map(|(spec, _)| spec.priority),
        ])
    };
}

pub(in crate::postgres) fn update<'c>(rows: &[&JobWrite<'c>]) -> BoundStatement<'c> {
    BoundStatement::new(UPDATE, projection!(rows))
}

/// Writes jobs that are new: all of these have an origin.
pub(in crate::postgres) fn insert<'c>(rows: &[&JobWrite<'c>]) -> BoundStatement<'c> {
    let origins: Vec<(&'c Job, &'c JobOrigin)> =
        rows.iter().filter_map(|row| row.origin.map(|change| (&change.job, &change.origin))).collect();
    let mut cells = projection!(rows);
    cells.extend(unnest!(origins, |(job, origin)| [
        text(&job.spec.queue),
        text(&job.spec.name),
        (!job.spec.dedup_key.is_empty()).then(|| job.created_at.after(job.spec.unique_for_ms).0),
        job.spec.run.map(PostgresId::key),
        job.created_at.0,
        origin.call.as_ref().map(|call| call.run.key()),
        origin.call.as_ref().map(|call| text(call.node.as_str())),
        origin.call.as_ref().map(|call| stored(call.fence)),
        origin.schedule.map(PostgresId::key),
        text(&job.spec.limit_key),
    ]));
    BoundStatement::new(INSERT, cells)
}

type Spec<'c> = (JobId, &'c JobSpec, &'c JobTexts);

fn specs<'c>(sql: &'static str, rows: &[Spec<'c>]) -> BoundStatement<'c> {
    BoundStatement::new(
        sql,
        unnest!(rows, |(job, spec, texts)| [job.key(), texts.spec(spec), spec.payload.as_str()]),
    )
}

pub(in crate::postgres) fn insert_specs<'c>(rows: &[Spec<'c>]) -> BoundStatement<'c> {
    specs(INSERT_SPECS, rows)
}

pub(in crate::postgres) fn update_specs<'c>(rows: &[Spec<'c>]) -> BoundStatement<'c> {
    specs(UPDATE_SPECS, rows)
}

type Taken<'c> = (&'c str, &'c str, Uuid);

pub(in crate::postgres) fn take_keys<'c>(rows: &[Taken<'c>]) -> BoundStatement<'c> {
    BoundStatement::new(TAKE_KEYS, unnest!(rows, |(queue, key, job)| [text(queue), text(key), *job]))
}

pub(in crate::postgres) fn move_keys<'c>(rows: &[Taken<'c>]) -> BoundStatement<'c> {
    BoundStatement::new(MOVE_KEYS, unnest!(rows, |(queue, key, job)| [text(queue), text(key), *job]))
}

#[cfg(test)]
pub(in crate::postgres) const ALL: &[&str] = &[
    HEADS,
    HEADS_AT_ONCE,
    HOLD_KEYS,
    HOLDERS,
    TAKE_KEYS,
    MOVE_KEYS,
    INSERT,
    UPDATE,
    INSERT_SPECS,
    UPDATE_SPECS,
];
