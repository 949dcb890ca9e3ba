//! What people call things, and the ids that the server knows.

use anyhow::{Result, bail};
use windlass_sdk::types::{Schedule, TasksQuery, Worker};

use super::{Session, not_found};

/// Characters of a whole id: 32 digits and four hyphens.
const ID_CHARS: usize = 36;
/// Jobs that are looked through for an id that begins so.
const PREFIX_LIMIT: usize = 1_000;

impl Session {
    /// The whole id of a job that is named by a part that begins it, or as flows name it: `job_…`.
    pub(crate) async fn job_id(&self, text: &str) -> Result<String> {
        self.job_id_among(text, TasksQuery::default()).await
    }

    /// The same, where only some jobs are meant.
    pub(crate) async fn job_id_among(&self, text: &str, among: TasksQuery) -> Result<String> {
        let digits = digits_of(text);
        if let Some(whole) = whole(&digits) {
            return Ok(whole);
        }
        let could_begin = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
        let mut matching = Vec::new();
        if could_begin {
            let query = TasksQuery { limit: Some(PREFIX_LIMIT), ..among };
            let found = self.client.tasks(&query).await?.tasks.into_iter().map(|task| task.id);
            matching.extend(found.filter(|id| digits_of(id).starts_with(&digits)).take(2));
        }
        match matching.as_slice() {
            [id] => Ok(id.clone()),
            [first, second, ..] => {
                bail!("several jobs begin with `{text}`, such as {first} and {second}: write more of it")
            }
            [] if could_begin => {
                let detail = format!("none of the newest {PREFIX_LIMIT} jobs begins with `{text}`");
                Err(not_found("unknown_task", detail).into())
            }
            [] => Err(not_found("unknown_task", format!("there is no job `{text}`")).into()),
        }
    }

    /// A schedule by its id, by a part that begins it, or by its name if no other has it.
    pub(crate) async fn schedule(&self, text: &str) -> Result<Schedule> {
        if text.len() == ID_CHARS && whole(&digits_of(text)).is_some() {
            return Ok(self.client.schedule(text).await?);
        }
        let all = self.client.schedules().await?.schedules;
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

    /// A worker by its id, or by a part that begins it.
    pub(crate) async fn worker(&self, text: &str) -> Result<Worker> {
        let all = self.client.workers().await?.workers;
        let is_whole = all.iter().any(|worker| worker.id == text);
        let is_meant = |worker: &Worker| match is_whole {
            true => worker.id == text,
            false => !text.is_empty() && worker.id.starts_with(text),
        };
        let mut found = all.into_iter().filter(is_meant);
        match (found.next(), found.next()) {
            (Some(worker), None) => Ok(worker),
            (Some(first), Some(second)) => {
                bail!("several workers begin with `{text}`: {} and {}: write more of it", first.id, second.id)
            }
            (None, _) => Err(not_found("unknown_worker", format!("there is no worker `{text}`")).into()),
        }
    }
}

/// An id without what is only there to be read.
fn digits_of(text: &str) -> String {
    text.strip_prefix("job_").unwrap_or(text).chars().filter(|c| *c != '-').collect::<String>().to_lowercase()
}

/// A whole id as the server writes it; `None` if it is only the beginning of one, or none.
fn whole(digits: &str) -> Option<String> {
    let is_whole = digits.len() == ID_CHARS - 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_whole
        .then(|| [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_ids_are_known_in_every_dress() {
        let id = "f2841987-0cf0-42e4-bb69-066ad5978c56";
        for text in [id, "job_f28419870cf042e4bb69066ad5978c56", "F2841987-0CF0-42E4-BB69-066AD5978C56"] {
            assert_eq!(whole(&digits_of(text)).as_deref(), Some(id), "{text}");
        }
        for text in ["", "f2841987", "nope", "job_", "f2841987-0cf0-42e4-bb69-066ad5978c5é"] {
            assert_eq!(whole(&digits_of(text)), None, "{text}");
        }
    }
}
