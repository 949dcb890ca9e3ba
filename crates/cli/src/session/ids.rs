//! Ids and names on the command line: unique prefixes of ids, and names where they are unique.

use anyhow::{Result, bail};
use windlass_sdk::contract::{JobsQuery, ScheduleInfo, WorkerInfo};

use super::{Session, not_found};

/// Characters of a whole id with hyphens: 32 digits and four hyphens.
const UUID_CHARS: usize = 36;
/// Digits of a whole id.
const ID_DIGITS: usize = 32;
/// Jobs that are searched for an id with a prefix.
const PREFIX_LIMIT: usize = 1_000;

impl Session {
    /// The whole id of the job whose id begins with `text`; hyphens and `job_` may be there or not.
    pub(crate) async fn job_id(&self, text: &str) -> Result<String> {
        self.job_id_among(text, JobsQuery::default()).await
    }

    /// The same, among the jobs of a query.
    pub(crate) async fn job_id_among(&self, text: &str, among: JobsQuery) -> Result<String> {
        let digits = digits_of(text);
        let is_hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        if is_hex && digits.len() == ID_DIGITS {
            return Ok(format!("job_{digits}"));
        }
        let mut matching = Vec::new();
        if is_hex {
            let query = JobsQuery { limit: Some(PREFIX_LIMIT), ..among };
            let found = self.client.jobs().list(&query).await?.items.into_iter().map(|job| job.id);
            matching.extend(found.filter(|id| digits_of(id).starts_with(&digits)).take(2));
        }
        match matching.as_slice() {
            [id] => Ok(id.clone()),
            [first, second, ..] => {
                bail!("several jobs begin with `{text}`, such as {first} and {second}: write more of the id")
            }
            [] if is_hex => {
                let detail = format!("none of the newest {PREFIX_LIMIT} jobs begins with `{text}`");
                Err(not_found("unknown_job", detail).into())
            }
            [] => Err(not_found("unknown_job", format!("there is no job `{text}`")).into()),
        }
    }

    /// A schedule by its id, by a unique prefix of it, or by its name if that is unique.
    pub(crate) async fn schedule(&self, text: &str) -> Result<ScheduleInfo> {
        if text.len() == UUID_CHARS && digits_of(text).len() == ID_DIGITS {
            return Ok(self.client.schedules().show(text).await?);
        }
        let all = self.client.schedules().all().await?;
        let (named, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|schedule| schedule.name == text);
        let begun = others.into_iter().filter(|schedule| !text.is_empty() && schedule.id.starts_with(text));
        let mut found = if named.is_empty() { begun.collect() } else { named };
        match (found.pop(), found.pop()) {
            (Some(schedule), None) => Ok(schedule),
            (Some(first), Some(second)) => {
                bail!("several schedules are called `{text}`: write the id, {} or {}", first.id, second.id)
            }
            (None, _) => Err(not_found("unknown_schedule", format!("there is no schedule `{text}`")).into()),
        }
    }

    /// A worker by its id, or by a unique prefix of it.
    pub(crate) async fn worker(&self, text: &str) -> Result<WorkerInfo> {
        let all = self.client.workers().all().await?;
        let is_whole = all.iter().any(|worker| worker.id == text);
        let matches = |worker: &WorkerInfo| match is_whole {
            true => worker.id == text,
            false => !text.is_empty() && worker.id.starts_with(text),
        };
        let mut found = all.into_iter().filter(matches);
        match (found.next(), found.next()) {
            (Some(worker), None) => Ok(worker),
            (Some(first), Some(second)) => {
                bail!(
                    "several workers begin with `{text}`, such as {} and {}: write more of the id",
                    first.id,
                    second.id
                )
            }
            (None, _) => Err(not_found("unknown_worker", format!("there is no worker `{text}`")).into()),
        }
    }
}

/// The id of a job as the native API writes it: `job_` and 32 digits.
pub(crate) fn native_job_id(id: &str) -> String {
    format!("job_{}", digits_of(id))
}

/// The id of a job as the queue platform API writes it: with hyphens. A text of another length stays as it is.
pub(crate) fn platform_job_id(id: &str) -> String {
    let digits = digits_of(id);
    if digits.len() != ID_DIGITS || !digits.is_ascii() {
        return id.to_owned();
    }
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// The digits of an id, without prefix and hyphens.
fn digits_of(text: &str) -> String {
    text.strip_prefix("job_").unwrap_or(text).chars().filter(|c| *c != '-').collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_job_id_are_the_same_job() {
        let uuid = "f2841987-0cf0-42e4-bb69-066ad5978c56";
        let native = "job_f28419870cf042e4bb69066ad5978c56";
        for text in [uuid, native, "F2841987-0CF0-42E4-BB69-066AD5978C56"] {
            assert_eq!(
                (native_job_id(text).as_str(), platform_job_id(text).as_str()),
                (native, uuid),
                "{text}"
            );
        }
        for text in ["", "f2841987", "nope", "f2841987-0cf0-42e4-bb69-066ad5978c5é"] {
            assert_eq!(platform_job_id(text), text);
        }
    }
}
