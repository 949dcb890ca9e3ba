//! The fields of a new job on the native surface, and the places that its problems name. Native problems name places
//! without the leading `$`, and count retries beyond the first attempt.

use windlass_engine::job::{JobBackoff, JobSpec, MAX_RETRIES_DEFAULT, MAX_RETRIES_MAX, SPAN_MS_MAX};
use windlass_engine::problem::{Problem, Problems};
use windlass_engine::raw_json::RawJson;
use windlass_engine::retry::Backoff;
use windlass_engine::time::Timestamp;
use windlass_sdk::contract::{BackoffKind, JobRetry, NewJob, Time};

use crate::fields::{BACKOFF_WORDS, BodyFields, UNKNOWN_FIELD};
use crate::job::JobBody;
use crate::problem::{ApiError, Code};

/// Tries after the first attempt, at most.
const RETRIES_MAX: u32 = MAX_RETRIES_MAX - 1;

/// Fields of a specification that this surface spells in another way.
const SPELLINGS: [(&str, &str); 4] = [
    ("queue_name", "queue"),
    ("max_retries", "retry.max"),
    ("backoff.base_ms", "retry.delay_ms"),
    ("backoff.cap_ms", "retry.cap_ms"),
];

/// Hints for fields of document 002, which has a surface of its own.
const HINTS: [(&str, &str); 4] = [
    ("queue_name", "did you mean `queue`?"),
    ("max_retries", "give `retry` with `max`, the tries after the first attempt"),
    ("backoff", "give `retry` with `delay_ms` and `backoff`"),
    ("type", "leave it out: a job with `run_at` is due then, any other at once"),
];

impl JobBody for NewJob<RawJson> {
    const PLURAL: &'static str = "jobs";

    fn into_spec(self) -> Option<JobSpec> {
        let is_allowed = self.retry.and_then(|retry| retry.max).is_none_or(|max| max <= RETRIES_MAX);
        is_allowed.then(|| spec(self))
    }

    fn examine(mut fields: BodyFields) -> (JobSpec, Vec<Problem>) {
        let mut problems = Problems::default();
        let job = read(&mut fields, &mut problems);
        let prefix = fields.place().to_owned();
        fields.done(&mut problems);
        let spec = spec(job);
        let mut all = problems.into_list();
        for problem in &mut all {
            let name = problem.path.rsplit('.').next().unwrap_or_default();
            if let Some((_, hint)) = HINTS.iter().find(|(known, _)| *known == name)
                && problem.reason.starts_with(UNKNOWN_FIELD)
            {
                problem.hint = Some((*hint).to_owned());
            }
        }
        for problem in spec.problems() {
            let path = respelled(&problem.path).replacen('$', &prefix, 1);
            // A field that could not be read has its problem already.
            if all.iter().all(|found| found.path != path) {
                all.push(Problem { path, ..problem });
            }
        }
        (spec, all)
    }
}

fn read(fields: &mut BodyFields, problems: &mut Problems) -> NewJob<RawJson> {
    NewJob {
        name: fields.required("name", problems).unwrap_or_default(),
        queue: fields.required("queue", problems).unwrap_or_default(),
        priority: fields.whole("priority", i32::MIN, i32::MAX, problems).unwrap_or_default(),
        payload: fields.value("payload").map(RawJson::from).unwrap_or_default(),
        dedup_key: fields.text("dedup_key", problems).unwrap_or_default(),
        unique_for_ms: fields.whole("unique_for_ms", 0, SPAN_MS_MAX, problems),
        limit_key: fields.text("limit_key", problems).unwrap_or_default(),
        retry: fields.within("retry", problems).map(|mut within| {
            let retry = JobRetry {
                max: within.whole("max", 0, RETRIES_MAX, problems),
                delay_ms: within.whole("delay_ms", 0, SPAN_MS_MAX, problems),
                backoff: within.word("backoff", &BACKOFF_WORDS, problems),
                cap_ms: within.whole("cap_ms", 0, SPAN_MS_MAX, problems),
                jitter: within.flag("jitter", problems),
            };
            within.done(problems);
            retry
        }),
        run_at: fields.moment("run_at", problems).map(|at| Time(at.0)),
        timeout_ms: fields.whole("timeout_ms", 0, SPAN_MS_MAX, problems),
        account: fields.text("account", problems),
    }
}

fn spec(job: NewJob<RawJson>) -> JobSpec {
    let retry = job.retry.unwrap_or_default();
    let default = JobBackoff::default();
    JobSpec {
        priority: job.priority,
        payload: job.payload,
        dedup_key: job.dedup_key,
        unique_for_ms: job.unique_for_ms.unwrap_or(0),
        limit_key: job.limit_key,
        // The engine counts the first attempt too.
        max_retries: retry.max.map_or(MAX_RETRIES_DEFAULT, |max| max.saturating_add(1)),
        run_at: job.run_at.map(|at| Timestamp(at.0)),
        timeout_ms: job.timeout_ms.unwrap_or(0),
        backoff: JobBackoff {
            kind: retry.backoff.map_or(default.kind, |kind| match kind {
                BackoffKind::Fixed => Backoff::Fixed,
                BackoffKind::Exponential => Backoff::Exponential,
            }),
            base_ms: retry.delay_ms.unwrap_or(default.base_ms),
            cap_ms: retry.cap_ms.unwrap_or(default.cap_ms),
            jitter: retry.jitter.unwrap_or(default.jitter),
        },
        account: job.account,
        ..JobSpec::new(job.name, job.queue)
    }
}

/// The problem of a body that could not be read.
pub(super) fn unreadable(error: ApiError) -> ApiError {
    let is_unknown = |reason: &str| reason.starts_with(UNKNOWN_FIELD);
    let code = match error.code() {
        Code::InvalidFields if error.reasons().all(is_unknown) => Code::UnknownField,
        Code::InvalidFields => Code::InvalidBody,
        other => other,
    };
    error.with_code(code).with_places(bare)
}

/// The problem of a job that the runtime did not create.
pub(super) fn refused(error: ApiError) -> ApiError {
    let code = match error.code() {
        Code::InvalidFields => Code::InvalidBody,
        other => other,
    };
    error.with_code(code).with_places(|path| bare(&respelled(path)))
}

/// A place without the leading `$`.
fn bare(path: &str) -> String {
    path.trim_start_matches('$').trim_start_matches('.').to_owned()
}

/// A field of a specification as this surface spells it.
fn respelled(path: &str) -> String {
    let (place, name) = match path.find('.') {
        Some(dot) => (&path[..=dot], &path[dot + 1..]),
        None => return path.to_owned(),
    };
    let spelled = SPELLINGS.iter().find(|(from, _)| *from == name).map_or(name, |(_, to)| to);
    format!("{place}{spelled}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_spelled_as_the_body_spells_them() {
        assert_eq!(bare(&respelled("$[3].queue_name")), "[3].queue");
        assert_eq!(bare(&respelled("$.backoff.base_ms")), "retry.delay_ms");
        assert_eq!(bare(&respelled("$.name")), "name");
        assert_eq!(bare("$"), "");
    }

    #[test]
    fn retries_are_counted_beyond_the_first_attempt() {
        let tries = |max| {
            let retry = Some(JobRetry { max, ..JobRetry::default() });
            spec(NewJob { retry, ..NewJob::new("a", "b", RawJson::default()) }).attempts_max()
        };
        assert_eq!((tries(Some(0)), tries(Some(4)), tries(None)), (1, 5, 3));
    }
}
