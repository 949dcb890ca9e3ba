//! Many jobs from a file: a JSON array, or an object a line. They are sent as they are read, so many at once that the
//! server takes them together.

use std::io::{BufRead, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use windlass_sdk::types::{NewTask, TaskCreated};

use super::create::open;
use super::spec::task_of;
use crate::output;
use crate::session::Session;

/// Jobs that are sent at once: as many as the server takes.
const AT_ONCE: usize = 10_000;
/// Bytes of their descriptions that are sent at once; the server takes sixteen bodies of 4 MiB.
const AT_ONCE_BYTES: usize = 16 << 20;
/// Bytes of one line: what the server takes of one job.
const LINE_BYTES: u64 = 4 << 20;
/// Bytes of an array, which is read as a whole.
const ARRAY_BYTES: u64 = 64 << 20;
/// Jobs of one command: their ids are kept until they are printed.
const JOBS: usize = 1_000_000;

/// Creates the jobs of a file, each changed by `change`.
pub(super) async fn create(
    file: &Path,
    change: &dyn Fn(NewTask) -> NewTask,
    session: &Session,
) -> Result<ExitCode> {
    let mut created: Vec<TaskCreated> = Vec::new();
    let outcome = send(file, change, &mut created, session).await;
    if outcome.is_err() && created.is_empty() {
        return outcome.map(|()| ExitCode::FAILURE);
    }
    session.out.list(
        ["job", "status", "was there"],
        &created,
        |job| job.task_id.clone(),
        |job| {
            let again = if job.duplicate { "yes" } else { "" };
            [job.task_id.clone(), job.status.clone(), again.to_owned()]
        },
    )?;
    if outcome.is_err() {
        output::message(&format!("the first {} jobs are created; the others are not", created.len()));
    }
    outcome.map(|()| ExitCode::SUCCESS)
}

async fn send(
    file: &Path,
    change: &dyn Fn(NewTask) -> NewTask,
    created: &mut Vec<TaskCreated>,
    session: &Session,
) -> Result<()> {
    let mut jobs = Jobs::open(file)?;
    let (mut ready, mut n_bytes) = (Vec::new(), 0);
    loop {
        let next = jobs.next()?;
        let is_last = next.is_none();
        if let Some((task, size)) = next {
            ready.push(change(task));
            n_bytes += size;
        }
        let is_full = ready.len() >= AT_ONCE || n_bytes >= AT_ONCE_BYTES;
        if !ready.is_empty() && (is_last || is_full) {
            created.extend(session.client.create_tasks(&ready).await?.tasks);
            ready.clear();
            n_bytes = 0;
        }
        if is_last {
            break;
        }
        if created.len() + ready.len() > JOBS {
            bail!("{} holds more than {JOBS} jobs: split it", file.display());
        }
    }
    if created.is_empty() {
        bail!("{} holds no job: write a JSON array, or an object a line", file.display());
    }
    Ok(())
}

/// The jobs of a file, one after the other.
struct Jobs {
    name: String,
    from: From,
}

enum From {
    Lines { text: Box<dyn BufRead>, n: usize },
    Array { items: std::vec::IntoIter<Value>, n: usize, size: usize },
}

impl Jobs {
    fn open(file: &Path) -> Result<Self> {
        Jobs::read(open(file)?, file.display().to_string())
    }

    fn read(mut text: Box<dyn BufRead>, name: String) -> Result<Self> {
        let mut n_lines = 0;
        // An array is known by its first mark.
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
            return Ok(Jobs { name, from: From::Lines { text, n: n_lines } });
        }
        let mut whole = Vec::new();
        text.take(ARRAY_BYTES + 1).read_to_end(&mut whole).with_context(|| format!("cannot read {name}"))?;
        if whole.len() as u64 > ARRAY_BYTES {
            bail!("{name} is an array of more than {ARRAY_BYTES} bytes: write an object a line instead");
        }
        let items: Vec<Value> =
            serde_json::from_slice(&whole).with_context(|| format!("{name} is no JSON array"))?;
        let size = whole.len() / items.len().max(1);
        Ok(Jobs { name, from: From::Array { items: items.into_iter(), n: 0, size } })
    }

    /// The next job, and about how many bytes it has.
    fn next(&mut self) -> Result<Option<(NewTask, usize)>> {
        let name = &self.name;
        match &mut self.from {
            From::Array { items, n, size } => {
                let Some(item) = items.next() else { return Ok(None) };
                *n += 1;
                let task = task_of(item, None).with_context(|| format!("{name}: job {n} of the array"))?;
                Ok(Some((task, *size)))
            }
            From::Lines { text, n } => loop {
                let mut line = Vec::new();
                text.by_ref()
                    .take(LINE_BYTES + 1)
                    .read_until(b'\n', &mut line)
                    .with_context(|| format!("cannot read {name}"))?;
                if line.is_empty() {
                    return Ok(None);
                }
                *n += 1;
                if line.len() as u64 > LINE_BYTES {
                    bail!("{name}:{n}: the line is longer than {LINE_BYTES} bytes");
                }
                if line.trim_ascii().is_empty() {
                    continue;
                }
                let value = serde_json::from_slice(&line).with_context(|| format!("{name}:{n}: no JSON"))?;
                let task = task_of(value, None).with_context(|| format!("{name}:{n}"))?;
                return Ok(Some((task, line.len())));
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &'static str) -> Result<Vec<String>> {
        let mut jobs = Jobs::read(Box::new(text.as_bytes()), "jobs".to_owned())?;
        let mut names = Vec::new();
        while let Some((task, _)) = jobs.next()? {
            names.push(task.name);
        }
        Ok(names)
    }

    #[test]
    fn arrays_and_lines_say_the_same() {
        assert_eq!(names(" \n [{\"name\": \"a\"},\n {\"name\": \"b\"}]").unwrap(), ["a", "b"]);
        assert_eq!(names("{\"name\": \"a\"}\n\n{\"name\": \"b\"}").unwrap(), ["a", "b"]);
        assert!(names("").unwrap().is_empty());
        assert!(names("\n \n").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let told = |text| format!("{:#}", names(text).unwrap_err());
        assert!(told("{\"name\": \"a\"}\n{\"nme\": 1}").starts_with("jobs:2: unknown field `nme`"));
        assert!(told("\n{\"name\": \"a\"}\n\nx").starts_with("jobs:4: no JSON"));
        assert!(told("[{\"name\": \"a\"}, 7]").starts_with("jobs: job 2 of the array: a job is"));
        assert!(told("[{\"name\": \"a\"}").starts_with("jobs is no JSON array"));
    }
}
