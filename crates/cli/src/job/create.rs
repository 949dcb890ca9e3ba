//! `windlass job create`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Map, Value};
use windlass_sdk::types::{NewTask, Time};

use super::spec::{Spec, task_of};
use super::{batch, look};
use crate::session::{Session, duration, now_ms};

/// Bytes of a file that describes one job: what the server takes at once.
const FILE_BYTES: u64 = 4 << 20;

#[derive(Args)]
pub(crate) struct Create {
    /// What is to be done: a worker of this service, or of the queue, takes it.
    #[arg(required_unless_present_any = ["file", "batch"])]
    name: Option<String>,
    /// The job as a JSON object in a file; `-` reads stdin. Flags win over it.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Many jobs, as a JSON array or an object a line; `-` reads stdin. Flags are laid over each.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "file", "dedup_key", "wait"])]
    batch: Option<PathBuf>,
    #[command(flatten)]
    spec: Spec,
    /// Not before this moment, such as 2026-11-15T09:00:00Z.
    #[arg(long, value_name = "MOMENT", conflicts_with = "later")]
    at: Option<Time>,
    /// Not before so long from now: 30s, 15m, 2h.
    #[arg(long = "in", id = "later", value_name = "TIME", value_parser = duration)]
    later: Option<Duration>,
    /// Wait for the end and show it.
    #[arg(long)]
    wait: bool,
    /// Stop waiting after so long: 90s, 15m, 2h.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "wait")]
    timeout: Option<Duration>,
}

impl Create {
    /// Lays the flags over a job.
    fn lay_over(&self, task: NewTask) -> NewTask {
        let mut task = task;
        self.spec.clone().lay_over(&mut task);
        let later = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        match self.at.or(self.later.map(|length| Time(now_ms().saturating_add(later(length))))) {
            Some(at) => task.at(at),
            None => task,
        }
    }
}

/// A job, or many, for a queue that is named first.
#[derive(Args)]
#[command(mut_arg("queue", |arg| arg.hide(true).conflicts_with("into")))]
pub(crate) struct Push {
    /// The name of the queue.
    #[arg(id = "into", value_name = "QUEUE")]
    queue: String,
    #[command(flatten)]
    create: Create,
}

pub(crate) async fn push(push: Push, session: &Session) -> Result<ExitCode> {
    let Push { queue, create: mut job } = push;
    job.spec.queue = Some(queue);
    create(job, session).await
}

pub(super) async fn create(create: Create, session: &Session) -> Result<ExitCode> {
    if let Some(file) = &create.batch {
        return batch::create(file, &|task| create.lay_over(task), session).await;
    }
    let described = match &create.file {
        Some(file) => object(file).with_context(|| format!("cannot use {}", file.display()))?,
        None => Value::Object(Map::new()),
    };
    let task = match task_of(described, create.name.as_deref()) {
        Ok(task) => create.lay_over(task),
        Err(error) => match &create.file {
            Some(file) => return Err(error.context(format!("cannot use {}", file.display()))),
            None => return Err(error),
        },
    };
    let created = session.client.create_task(&task).await?;
    if create.wait {
        return look::wait(&created.task_id, create.timeout, session).await;
    }
    session.out.value(&created, &created.task_id, || {
        let again = if created.duplicate { " (it was there already)" } else { "" };
        format!("{} {}{again}", created.task_id, created.status)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn object(file: &Path) -> Result<Value> {
    let mut text = String::new();
    open(file)?.take(FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES {
        bail!(
            "it is larger than {FILE_BYTES} bytes: keep the data elsewhere and name the place in the payload"
        );
    }
    Ok(serde_json::from_str(&text)?)
}

/// A file, or what comes in.
pub(super) fn open(file: &Path) -> Result<Box<dyn BufRead>> {
    if file == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let open = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    Ok(Box::new(BufReader::new(open)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        push: Push,
    }

    #[test]
    fn a_job_is_pushed_into_the_queue_that_is_named_first() {
        let line = Line::try_parse_from(["push", "mail", "welcome", "--payload", "1"]).unwrap();
        assert_eq!((line.push.queue.as_str(), line.push.create.name.as_deref()), ("mail", Some("welcome")));
        assert!(Line::try_parse_from(["push", "mail", "welcome", "--queue", "other"]).is_err());
        assert!(Line::try_parse_from(["push", "mail"]).is_err());
    }
}
