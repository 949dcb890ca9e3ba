//! `windlass job create --batch`: many jobs from a file, a JSON array or one object a line. They are sent while the file
//! is read, in batches as large as the server takes.

use std::io::{BufRead, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use windlass_sdk::contract::{JobCreated, NewJob};

use super::create::open;
use super::spec::job_of;
use crate::exit::Exit;
use crate::json::read_json;
use crate::output::{self, OutputFormat};
use crate::session::Session;

/// Jobs of one request at most, as the server allows.
const BATCH_MAX: usize = 10_000;
/// Bytes of one request at most; the server takes sixteen bodies of 4 MiB.
const BATCH_BYTES_MAX: usize = 16 << 20;
/// Bytes of one line at most: the server takes as much of one job.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// Bytes of an array at most, which is read as a whole.
const ARRAY_BYTES_MAX: u64 = 64 << 20;
/// Jobs of one command at most: their ids are kept until they are printed.
const JOBS_MAX: usize = 1_000_000;

/// Creates the jobs of a file, each changed by `change`.
pub(super) async fn create(
    file: &Path,
    change: &dyn Fn(NewJob) -> NewJob,
    session: &Session,
) -> Result<Exit> {
    let mut created: Vec<JobCreated> = Vec::new();
    let outcome = send(file, change, &mut created, session).await;
    if outcome.is_err() && created.is_empty() {
        return outcome.map(|()| Exit::Failed);
    }
    if session.out.quiet || session.out.format() != OutputFormat::Table {
        session.out.list([], &created, |job| job.id.clone(), |_| [])?;
    } else {
        output::line(&summary(&created))?;
    }
    if outcome.is_err() {
        output::message(&format!(
            "the first {} jobs of the file are created; the others are not",
            created.len()
        ));
    }
    outcome.map(|()| Exit::Done)
}

/// The numbers of created jobs and duplicates; the ids are in the other formats.
fn summary(created: &[JobCreated]) -> String {
    let n_duplicates = created.iter().filter(|job| job.duplicate).count();
    let jobs = |n: usize| if n == 1 { "1 job".to_owned() } else { format!("{n} jobs") };
    let duplicates = match n_duplicates {
        0 => String::new(),
        1 => ", 1 duplicate of an open job".to_owned(),
        n => format!(", {n} duplicates of open jobs"),
    };
    format!("{} created{duplicates}", jobs(created.len() - n_duplicates))
}

async fn send(
    file: &Path,
    change: &dyn Fn(NewJob) -> NewJob,
    created: &mut Vec<JobCreated>,
    session: &Session,
) -> Result<()> {
    let mut jobs = BatchReader::open(file)?;
    let (mut ready, mut n_bytes) = (Vec::new(), 0);
    loop {
        let next = jobs.next()?;
        let is_last = next.is_none();
        if let Some((job, size)) = next {
            ready.push(change(job));
            n_bytes += size;
        }
        let is_full = ready.len() >= BATCH_MAX || n_bytes >= BATCH_BYTES_MAX;
        if !ready.is_empty() && (is_last || is_full) {
            created.extend(session.client.jobs().create_batch(&ready).await?);
            ready.clear();
            n_bytes = 0;
        }
        if is_last {
            break;
        }
        if created.len() + ready.len() > JOBS_MAX {
            bail!("{} holds more than {JOBS_MAX} jobs: split it", file.display());
        }
    }
    if created.is_empty() {
        bail!("{} holds no job: write a JSON array, or an object a line", file.display());
    }
    Ok(())
}

/// The jobs of a file, one after the other.
struct BatchReader {
    name: String,
    from: BatchSource,
}

enum BatchSource {
    Lines { text: Box<dyn BufRead>, n: usize },
    Array { items: std::vec::IntoIter<Value>, n: usize, size: usize },
}

impl BatchReader {
    fn open(file: &Path) -> Result<Self> {
        BatchReader::read(open(file)?, file.display().to_string())
    }

    fn read(mut text: Box<dyn BufRead>, name: String) -> Result<Self> {
        let mut n_lines = 0;
        // An array begins with a bracket.
        let is_array = loop {
            let ahead = text.fill_buf().with_context(|| format!("cannot read {name}"))?;
            let n_blank = ahead.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            n_lines += ahead[..n_blank].iter().filter(|byte| **byte == b'\n').count();
            match ahead.get(n_blank) {
                Some(b'[') => break true,
                Some(_) | None if n_blank == 0 => break false,
                Some(_) | None => text.consume(n_blank),
            }
        };
        if !is_array {
            return Ok(BatchReader { name, from: BatchSource::Lines { text, n: n_lines } });
        }
        let mut whole = Vec::new();
        text.take(ARRAY_BYTES_MAX + 1)
            .read_to_end(&mut whole)
            .with_context(|| format!("cannot read {name}"))?;
        if whole.len() as u64 > ARRAY_BYTES_MAX {
            bail!("{name} is an array of more than {ARRAY_BYTES_MAX} bytes: write an object a line instead");
        }
        let read = read_json(&whole).and_then(|value| Ok(serde_json::from_value(value)?));
        let items: Vec<Value> = read.with_context(|| format!("{name} is no JSON array"))?;
        let size = whole.len() / items.len().max(1);
        Ok(BatchReader { name, from: BatchSource::Array { items: items.into_iter(), n: 0, size } })
    }

    /// The next job, and about how many bytes it has.
    fn next(&mut self) -> Result<Option<(NewJob, usize)>> {
        let name = &self.name;
        match &mut self.from {
            BatchSource::Array { items, n, size } => {
                let Some(item) = items.next() else { return Ok(None) };
                *n += 1;
                let job = job_of(item, None).with_context(|| format!("{name}: job {n} of the array"))?;
                Ok(Some((job, *size)))
            }
            BatchSource::Lines { text, n } => loop {
                let mut line = Vec::new();
                text.by_ref()
                    .take(LINE_BYTES_MAX + 1)
                    .read_until(b'\n', &mut line)
                    .with_context(|| format!("cannot read {name}"))?;
                if line.is_empty() {
                    return Ok(None);
                }
                *n += 1;
                if line.len() as u64 > LINE_BYTES_MAX {
                    bail!("{name}:{n}: the line is longer than {LINE_BYTES_MAX} bytes");
                }
                if line.trim_ascii().is_empty() {
                    continue;
                }
                let value = read_json(&line).with_context(|| format!("{name}:{n}: no JSON"))?;
                let job = job_of(value, None).with_context(|| format!("{name}:{n}"))?;
                return Ok(Some((job, line.len())));
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_sdk::contract::JobStatus;

    use super::*;

    fn names(text: &'static str) -> Result<Vec<String>> {
        let mut jobs = BatchReader::read(Box::new(text.as_bytes()), "jobs".to_owned())?;
        let mut names = Vec::new();
        while let Some((job, _)) = jobs.next()? {
            names.push(job.name);
        }
        Ok(names)
    }

    #[test]
    fn a_summary_counts_duplicates() {
        let job = |duplicate| JobCreated { id: String::new(), status: JobStatus::Queued, duplicate };
        assert_eq!(summary(&[job(false)]), "1 job created");
        assert_eq!(
            summary(&[job(false), job(false), job(true)]),
            "2 jobs created, 1 duplicate of an open job"
        );
    }

    #[test]
    fn arrays_and_lines_hold_the_same_jobs() {
        assert_eq!(names(" \n [{\"name\": \"a\"},\n {\"name\": \"b\"}]").unwrap(), ["a", "b"]);
        assert_eq!(names("{\"name\": \"a\"}\n\n{\"name\": \"b\"}").unwrap(), ["a", "b"]);
        assert!(names("").unwrap().is_empty());
        assert!(names("\n \n").unwrap().is_empty());
    }

    #[test]
    fn a_mistake_is_reported_with_its_place() {
        let refused = |text| format!("{:#}", names(text).unwrap_err());
        assert!(refused("{\"name\": \"a\"}\n{\"nme\": 1}").starts_with("jobs:2: unknown field `nme`"));
        assert!(refused("\n{\"name\": \"a\"}\n\nx").starts_with("jobs:4: no JSON"));
        assert!(refused("[{\"name\": \"a\"}, 7]").starts_with("jobs: job 2 of the array: a job is"));
        assert!(refused("[{\"name\": \"a\"}").starts_with("jobs is no JSON array"));
    }
}
