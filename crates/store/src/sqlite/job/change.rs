//! A job as it is from now on, with its attempts and its key.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobSpec};
use windlass_engine::time::Timestamp;

use crate::commit::JobChange;
use crate::error::{Duplicate, Refusal, StoreError, Subject};
use crate::job::{JobOrigin, JobStatus, due_at, fingerprint, without_payload};
use crate::schedule::Started;
use crate::sqlite::column::{Columns, Id, json, stored};
use crate::sqlite::depth::Place;
use crate::sqlite::desk::Desk;
use crate::sqlite::{attempt, guard, schedule};

const HEAD: &str = "SELECT rowid, rev, is_open, replays, status, is_dead_letter FROM jobs WHERE id = ?1";
const HOLDER: &str = "SELECT jobs.id, jobs.status FROM job_keys JOIN jobs ON jobs.id = job_keys.job \
     WHERE job_keys.queue = ?1 AND job_keys.key = ?2 AND (jobs.is_open = 1 OR jobs.key_until > ?3)";
const TAKE_KEY: &str = "INSERT INTO job_keys (queue, key, job) VALUES (?1, ?2, ?3) \
     ON CONFLICT (queue, key) DO UPDATE SET job = excluded.job";
const INSERT: &str = "INSERT INTO jobs (rev, status, due_at, wake_at, state, fence, round, attempts_from, memo, \
     updated_at, is_open, is_dead_letter, fingerprint, priority, replays, id, queue, name, key_until, run, created_at, call_run, \
     call_node, call_fence, schedule, limit_key) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, \
     ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)";

// An index is written again when a column of it is set, changed or not: hence three of them.
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
/// It is open and stays so.
const STEP: &str = update!("", "?11");
/// It ends, or what has ended is looked after.
const END: &str = update!(", is_open = ?11, is_dead_letter = ?12, fingerprint = ?13", "?14");
/// It is opened again, or replayed: what is asked for may be another thing.
const REOPEN: &str =
    update!(", is_open = ?11, is_dead_letter = ?12, fingerprint = ?13, priority = ?14, replays = ?15", "?16");
const INSERT_SPEC: &str = "INSERT INTO job_specs (job, spec, payload) VALUES (?1, ?2, ?3)";
const UPDATE_SPEC: &str = "UPDATE job_specs SET spec = ?2, payload = ?3 WHERE job = ?1";

/// The texts of a change.
#[derive(Debug)]
pub(in crate::sqlite) struct Texts {
    state: String,
    round: String,
    memo: Option<String>,
    replays: String,
    fingerprint: Option<String>,
    /// What is asked for, if it is new.
    spec: Option<(String, String)>,
}

impl Texts {
    pub(in crate::sqlite) fn of(change: &JobChange) -> Self {
        let Job { state, round, memo, replays, spec, .. } = &change.job;
        Texts {
            state: json(state),
            round: json(round),
            memo: memo.as_ref().map(json),
            replays: json(replays),
            fingerprint: fingerprint(&change.job),
            spec: (change.expected_rev == 0).then(|| spec_texts(spec)),
        }
    }
}

fn spec_texts(spec: &JobSpec) -> (String, String) {
    (json(&without_payload(spec)), json(&spec.payload))
}

/// What a change of a job finds there.
pub(in crate::sqlite) struct Before {
    row: Option<i64>,
    is_open: bool,
    replays: String,
    place: Option<Place>,
}

impl Before {
    fn nothing() -> Self {
        Before { row: None, is_open: false, replays: String::new(), place: None }
    }

    fn read(columns: &mut Columns<'_>, row: i64) -> rusqlite::Result<Self> {
        let (is_open, replays) = (columns.value()?, columns.value()?);
        let place = Place::of(columns.word()?, columns.value()?);
        Ok(Before { row: Some(row), is_open, replays, place })
    }
}

/// Whether the changes may be made; what each of them finds.
pub(in crate::sqlite) fn check(
    desk: &Desk,
    changes: &[JobChange],
    now: Timestamp,
) -> Result<Vec<Before>, StoreError> {
    let mut taken: BTreeMap<(&str, &str), (JobId, JobStatus)> = BTreeMap::new();
    let (mut found, mut duplicates) = (Vec::with_capacity(changes.len()), Vec::new());
    for JobChange { expected_rev, job, .. } in changes {
        let is_new = *expected_rev == 0 && desk.is_new_job(job.id)?;
        let before = if is_new { Before::nothing() } else { before(desk, job.id, *expected_rev)? };
        let is_open = before.is_open;
        found.push(before);
        // A key is taken when a job is created or opened again; while it is open nobody else can have it.
        let (queue, key) = (job.spec.queue.as_str(), job.spec.dedup_key.as_str());
        if is_open || !job.is_open() || key.is_empty() {
            continue;
        }
        let holder = desk.prepare_cached(HOLDER)?.query_row(params![queue, key, now.0], |row| {
            let mut columns = Columns::of(row);
            Ok((columns.id()?, columns.word()?))
        });
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

/// What is there of a job, if it has this revision.
fn before(desk: &Desk, job: JobId, expected_rev: u64) -> Result<Before, StoreError> {
    let head = desk.prepare_cached(HEAD)?.query_row([job.key()], |row| {
        let mut columns = Columns::of(row);
        let (row, rev) = (columns.value()?, columns.number()?);
        Ok((rev, Before::read(&mut columns, row)?))
    });
    let (rev, before) = head.optional()?.unwrap_or_else(|| (0, Before::nothing()));
    guard(|| Subject::Job(job), expected_rev, rev)?;
    Ok(before)
}

/// Makes a change.
pub(in crate::sqlite) fn write(
    desk: &Desk,
    change: &JobChange,
    texts: &Texts,
    before: &Before,
) -> Result<(), StoreError> {
    let JobChange { job, .. } = change;
    let is_open = job.is_open();
    write_row(desk, change, texts, before)?;
    if before.row.is_none() {
        desk.note_job(job.id);
    }
    attempt::write(desk, job, before.row.is_some())?;
    let place = Place::of(JobStatus::of(job), job.is_dead_letter());
    desk.depths().note(&job.spec.queue, before.place, place);
    if is_open && !before.is_open && !job.spec.dedup_key.is_empty() {
        let taken = params![job.spec.queue, job.spec.dedup_key, job.id.key()];
        desk.prepare_cached(TAKE_KEY)?.execute(taken)?;
    }
    if is_open != before.is_open && desk.has_fired()? {
        schedule::set_running(desk, Started::Job(job.id), is_open)?;
    }
    Ok(())
}

fn write_row(db: &Connection, change: &JobChange, texts: &Texts, before: &Before) -> Result<(), StoreError> {
    let JobChange { expected_rev, job, origin } = change;
    let Job { id, spec, fence, attempts, updated_at, .. } = job;
    let (id, rev, fence) = (id.key(), stored(expected_rev.saturating_add(1)), stored(*fence));
    let status = JobStatus::of(job).word();
    let (due_at, wake_at) = (due_at(job).map(|at| at.0), job.wake_at().map(|at| at.0));
    let attempts_from = attempts.first().map_or(u32::MAX, |attempt| attempt.number);
    let Texts { state, round, memo, replays, fingerprint, .. } = texts;
    let step = params![rev, status, due_at, wake_at, state, fence, round, attempts_from, memo, updated_at.0];
    let end = params![job.is_open(), job.is_dead_letter(), fingerprint];
    let asked = params![spec.priority, replays];
    let Some(row) = before.row else { return insert(db, job, texts, origin, [step, end, asked].concat()) };
    if !before.is_open || before.replays != *replays {
        db.prepare_cached(REOPEN)?.execute([step, end, asked, params![row]].concat().as_slice())?;
        let (spec, payload) = spec_texts(spec);
        db.prepare_cached(UPDATE_SPEC)?.execute(params![id, spec, payload])?;
    } else if job.is_open() {
        db.prepare_cached(STEP)?.execute([step, params![row]].concat().as_slice())?;
    } else {
        db.prepare_cached(END)?.execute([step, end, params![row]].concat().as_slice())?;
    }
    Ok(())
}

fn insert(
    db: &Connection,
    job: &Job,
    texts: &Texts,
    origin: &JobOrigin,
    standing: Vec<&dyn rusqlite::ToSql>,
) -> Result<(), StoreError> {
    let Job { spec, created_at, .. } = job;
    let id = job.id.key();
    let key_until = (!spec.dedup_key.is_empty()).then(|| created_at.after(spec.unique_for_ms).0);
    let run = spec.run.map(Id::key);
    let JobOrigin { call, schedule } = origin;
    let call_run = call.as_ref().map(|call| call.run.key());
    let call_node = call.as_ref().map(|call| call.node.as_str());
    let call_fence = call.as_ref().map(|call| stored(call.fence));
    let schedule = schedule.map(Id::key);
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
        spec.limit_key
    ];
    db.prepare_cached(INSERT)?.execute([&standing, origin].concat().as_slice())?;
    let made;
    let (spec, payload) = match &texts.spec {
        Some(texts) => texts,
        None => {
            made = spec_texts(spec);
            &made
        }
    };
    db.prepare_cached(INSERT_SPEC)?.execute(params![id, spec, payload])?;
    Ok(())
}

#[cfg(test)]
pub(in crate::sqlite) const ALL: &[&str] =
    &[HEAD, HOLDER, TAKE_KEY, INSERT, STEP, END, REOPEN, INSERT_SPEC, UPDATE_SPEC];
