//! Writes of jobs: the row, its attempts, its dedup key and the depth of its queue.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::counter::Revision;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobSpec};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use crate::column::{Columns, json, stored};
use crate::commit::JobChange;
use crate::error::{Duplicate, Refusal, StoreError, Subject};
use crate::job::{JobOrigin, JobStatus, due_at, fingerprint, without_payload};
use crate::schedule::Started;
use crate::sqlite::column::{SqliteColumns, SqliteId};
use crate::sqlite::depth::DepthColumn;
use crate::sqlite::writer_cache::WriterCache;
use crate::sqlite::{attempt, guard, schedule};

const HEAD: &str =
    "SELECT rowid, rev, is_open, replays, status, is_dead_letter FROM jobs WHERE id = ?1 AND project = ?2";
const HOLDER: &str = "SELECT jobs.id, jobs.status FROM job_keys JOIN jobs ON jobs.id = job_keys.job \
     WHERE job_keys.project = ?4 AND job_keys.queue = ?1 AND job_keys.key = ?2 AND (jobs.is_open = 1 OR jobs.key_until > ?3)";
const TAKE_KEY: &str = "INSERT INTO job_keys (project, queue, key, job) VALUES (?4, ?1, ?2, ?3) \
     ON CONFLICT (project, queue, key) DO UPDATE SET job = excluded.job";
const INSERT: &str = "INSERT INTO jobs (rev, status, due_at, wake_at, state, fence, round, attempts_from, memo, \
     updated_at, is_open, is_dead_letter, fingerprint, priority, replays, id, queue, name, key_until, run, created_at, call_run, \
     call_node, call_fence, schedule, limit_key, project) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, \
     ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)";

// SQLite writes an index again when a statement sets a column of it, even to the same value: hence three statements.
macro_rules! update {
    ($more:literal, $row:literal) => {
        concat!(
            "UPDATE jobs SET rev = ?1, status = ?2, due_at = ?3, wake_at = ?4, state = ?5, fence = ?6, round = ?7, \
             attempts_from = ?8, memo = ?9, updated_at = ?10",
            $more,
            " WHERE rowid = ",
            $row
        )
    };
}
/// The job is open and stays open.
const STEP: &str = update!("", "?11");
/// The job ends, or an ended job changes.
const END: &str = update!(", is_open = ?11, is_dead_letter = ?12, fingerprint = ?13", "?14");
/// The job is opened again or replayed, with a specification that may have changed.
const REOPEN: &str =
    update!(", is_open = ?11, is_dead_letter = ?12, fingerprint = ?13, priority = ?14, replays = ?15", "?16");
const INSERT_SPEC: &str = "INSERT INTO job_specs (job, spec, payload) VALUES (?1, ?2, ?3)";
const UPDATE_SPEC: &str = "UPDATE job_specs SET spec = ?2, payload = ?3 WHERE job = ?1";

/// The JSON texts of a job's row. The caller's thread makes them, the writer only binds them.
#[derive(Debug)]
pub(in crate::sqlite) struct JobTexts {
    state: String,
    round: String,
    memo: Option<String>,
    replays: String,
    fingerprint: Option<String>,
    /// The specification of a new job; its payload is a text already.
    spec: Option<String>,
}

impl JobTexts {
    pub(in crate::sqlite) fn of(change: &JobChange) -> Self {
        let Job { state, round, memo, replays, spec, .. } = &change.job;
        JobTexts {
            state: json(state),
            round: json(round),
            memo: memo.as_ref().map(json),
            replays: json(replays),
            fingerprint: fingerprint(&change.job),
            spec: (change.expected_rev == Revision::ZERO).then(|| spec_text(spec)),
        }
    }
}

fn spec_text(spec: &JobSpec) -> String {
    json(&without_payload(spec))
}

/// The job as the writer found it.
pub(in crate::sqlite) struct JobBefore {
    row: Option<i64>,
    is_open: bool,
    replays: String,
    place: Option<DepthColumn>,
}

impl JobBefore {
    fn nothing() -> Self {
        JobBefore { row: None, is_open: false, replays: String::new(), place: None }
    }

    fn read(columns: &mut SqliteColumns<'_>, row: i64) -> rusqlite::Result<Self> {
        let (is_open, replays) = (columns.value()?, columns.value()?);
        let place = DepthColumn::of(columns.word()?, columns.value()?);
        Ok(JobBefore { row: Some(row), is_open, replays, place })
    }
}

/// Checks the changes of a commit; returns the job that each of them finds.
pub(in crate::sqlite) fn check(
    cache: &WriterCache,
    project: &Project,
    changes: &[JobChange],
    now: Timestamp,
) -> Result<Vec<JobBefore>, StoreError> {
    let mut taken: BTreeMap<(&str, &str), (JobId, JobStatus)> = BTreeMap::new();
    let (mut found, mut duplicates) = (Vec::with_capacity(changes.len()), Vec::new());
    for JobChange { expected_rev, job, .. } in changes {
        let is_new = *expected_rev == Revision::ZERO && cache.is_new_job(job.id)?;
        let before =
            if is_new { JobBefore::nothing() } else { before(cache, project, job.id, *expected_rev)? };
        let is_open = before.is_open;
        found.push(before);
        // A job takes its dedup key when it is created or opened again, and keeps it while it is open.
        let (queue, key) = (job.spec.queue.as_str(), job.spec.dedup_key.as_str());
        if is_open || !job.is_open() || key.is_empty() {
            continue;
        }
        let holder = cache.db().prepare_cached(HOLDER)?.query_row(
            params![queue, key, now.0, project.as_str()],
            |row| {
                let mut columns = SqliteColumns::of(row);
                Ok((columns.id()?, columns.word()?))
            },
        );
        let holder = holder.optional()?.or_else(|| taken.get(&(queue, key)).copied());
        if let Some((existing, status)) = holder.filter(|(id, _)| *id != job.id) {
            let (queue, key) = (queue.to_owned(), key.to_owned());
            duplicates.push(Duplicate { job: job.id, queue, key, existing, status });
            continue;
        }
        taken.insert((queue, key), (job.id, JobStatus::of(job)));
    }
    if duplicates.is_empty() { Ok(found) } else { Err(Refusal::Duplicates(duplicates).into()) }
}

/// The stored job, if it has this revision.
fn before(
    cache: &WriterCache,
    project: &Project,
    job: JobId,
    expected_rev: Revision,
) -> Result<JobBefore, StoreError> {
    let head = cache.db().prepare_cached(HEAD)?.query_row(params![job.key(), project.as_str()], |row| {
        let mut columns = SqliteColumns::of(row);
        let (row, rev) = (columns.value()?, columns.number()?);
        Ok((rev, JobBefore::read(&mut columns, row)?))
    });
    let (rev, before) = head.optional()?.unwrap_or_else(|| (Revision::ZERO, JobBefore::nothing()));
    guard(|| Subject::Job(job), expected_rev, rev)?;
    Ok(before)
}

/// Writes a change.
pub(in crate::sqlite) fn write(
    cache: &WriterCache,
    project: &Project,
    change: &JobChange,
    texts: &JobTexts,
    before: &JobBefore,
) -> Result<(), StoreError> {
    let JobChange { job, .. } = change;
    let is_open = job.is_open();
    write_row(cache.db(), project, change, texts, before)?;
    if before.row.is_none() {
        cache.note_job(job.id);
    }
    attempt::write(cache.db(), job, before.row.is_some())?;
    let place = DepthColumn::of(JobStatus::of(job), job.is_dead_letter());
    cache.depths().note(project, &job.spec.queue, before.place, place);
    if is_open && !before.is_open && !job.spec.dedup_key.is_empty() {
        let taken = params![job.spec.queue, job.spec.dedup_key, job.id.key(), project.as_str()];
        cache.db().prepare_cached(TAKE_KEY)?.execute(taken)?;
    }
    if is_open != before.is_open && cache.has_fired()? {
        schedule::set_running(cache.db(), Started::Job(job.id), is_open)?;
    }
    Ok(())
}

fn write_row(
    db: &Connection,
    project: &Project,
    change: &JobChange,
    texts: &JobTexts,
    before: &JobBefore,
) -> Result<(), StoreError> {
    let JobChange { expected_rev, job, origin } = change;
    let Job { id, spec, fence, attempts, updated_at, .. } = job;
    let (id, rev, fence) = (id.key(), stored(expected_rev.next()), stored(*fence));
    let status = JobStatus::of(job).word();
    let (due_at, wake_at) = (due_at(job).map(|at| at.0), job.wake_at().map(|at| at.0));
    let attempts_from = attempts.first().map_or(u32::MAX, |attempt| attempt.number);
    let JobTexts { state, round, memo, replays, fingerprint, .. } = texts;
    let step = params![rev, status, due_at, wake_at, state, fence, round, attempts_from, memo, updated_at.0];
    let end = params![job.is_open(), job.is_dead_letter(), fingerprint];
    let asked = params![spec.priority, replays];
    let Some(row) = before.row else {
        return insert(db, project, job, texts, origin, [step, end, asked].concat());
    };
    if !before.is_open || before.replays != *replays {
        db.prepare_cached(REOPEN)?.execute([step, end, asked, params![row]].concat().as_slice())?;
        db.prepare_cached(UPDATE_SPEC)?.execute(params![id, spec_text(spec), spec.payload.as_str()])?;
    } else if job.is_open() {
        db.prepare_cached(STEP)?.execute([step, params![row]].concat().as_slice())?;
    } else {
        db.prepare_cached(END)?.execute([step, end, params![row]].concat().as_slice())?;
    }
    Ok(())
}

fn insert(
    db: &Connection,
    project: &Project,
    job: &Job,
    texts: &JobTexts,
    origin: &JobOrigin,
    projection: Vec<&dyn rusqlite::ToSql>,
) -> Result<(), StoreError> {
    let Job { spec, created_at, .. } = job;
    let (id, project) = (job.id.key(), project.as_str());
    let key_until = (!spec.dedup_key.is_empty()).then(|| created_at.after(spec.unique_for_ms).0);
    let run = spec.run.map(SqliteId::key);
    let JobOrigin { call, schedule } = origin;
    let call_run = call.as_ref().map(|call| call.run.key());
    let call_node = call.as_ref().map(|call| call.node.as_str());
    let call_fence = call.as_ref().map(|call| stored(call.fence));
    let schedule = schedule.map(SqliteId::key);
    let origin = params![
        id,
        spec.queue,
        spec.name,
        key_until,
        run,
        created_at.0,
        call_run,
        call_node,
        call_fence,
        schedule,
        spec.limit_key,
        project
    ];
    db.prepare_cached(INSERT)?.execute([&projection, origin].concat().as_slice())?;
    let made;
    let text = match &texts.spec {
        Some(text) => text,
        None => {
            made = spec_text(spec);
            &made
        }
    };
    db.prepare_cached(INSERT_SPEC)?.execute(params![id, text, spec.payload.as_str()])?;
    Ok(())
}

#[cfg(test)]
pub(in crate::sqlite) const ALL: &[&str] =
    &[HEAD, HOLDER, TAKE_KEY, INSERT, STEP, END, REOPEN, INSERT_SPEC, UPDATE_SPEC];
