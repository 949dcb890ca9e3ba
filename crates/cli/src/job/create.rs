//! `windlass job create`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Map, Value};
use windlass_sdk::contract::{NewJob, Time};

use super::spec::{JobSpecArgs, job_of};
use super::{batch, show};
use crate::exit::Exit;
use crate::json::read_json;
use crate::session::{Session, duration, now_ms};

/// Bytes of a file with one job at most: the server takes as much.
const FILE_BYTES_MAX: u64 = 4 << 20;

#[derive(Args)]
pub(crate) struct JobCreateArgs {
    /// The name of the job: workers of this service, or of the queue, claim it.
    #[arg(required_unless_present_any = ["file", "batch"])]
    name: Option<String>,
    /// The job as a JSON object in a file; `-` reads stdin. Flags win over it.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A file with many jobs, as a JSON array or one object a line; `-` reads stdin. Flags win over each.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "file", "dedup_key", "wait"])]
    batch: Option<PathBuf>,
    #[command(flatten)]
    spec: JobSpecArgs,
    /// The earliest start, such as 2026-11-15T09:00:00Z.
    #[arg(long, value_name = "MOMENT", conflicts_with = "later")]
    at: Option<Time>,
    /// The earliest start, from now: 30s, 15m, 2h.
    #[arg(long = "in", id = "later", value_name = "TIME", value_parser = duration)]
    later: Option<Duration>,
    /// Wait until it has ended and show it.
    #[arg(long)]
    wait: bool,
    /// Stop waiting after this time: 90s, 15m, 2h.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "wait")]
    timeout: Option<Duration>,
}

impl JobCreateArgs {
    /// Overwrites the fields of a job that have a flag.
    fn apply_to(&self, mut job: NewJob) -> NewJob {
        self.spec.clone().apply_to(&mut job);
        let ms = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        let later = self.later.map(|length| Time(now_ms().saturating_add(ms(length))));
        job.run_at = self.at.or(later).or(job.run_at);
        job
    }
}

/// `job create` with the queue as the first argument.
#[derive(Args)]
#[command(mut_arg("queue", |arg| arg.hide(true).conflicts_with("into")))]
pub(crate) struct QueuePushArgs {
    /// The name of the queue.
    #[arg(id = "into", value_name = "QUEUE")]
    queue: String,
    #[command(flatten)]
    create: JobCreateArgs,
}

pub(crate) async fn push(push: QueuePushArgs, session: &Session) -> Result<Exit> {
    let QueuePushArgs { queue, create: mut job } = push;
    job.spec.queue = Some(queue);
    create(job, session).await
}

pub(super) async fn create(create: JobCreateArgs, session: &Session) -> Result<Exit> {
    if let Some(file) = &create.batch {
        return batch::create(file, &|job| create.apply_to(job), session).await;
    }
    let described = match &create.file {
        Some(file) => object(file).with_context(|| format!("cannot use {}", file.display()))?,
        None => Value::Object(Map::new()),
    };
    let job = match job_of(described, create.name.as_deref()) {
        Ok(job) => create.apply_to(job),
        Err(error) => match &create.file {
            Some(file) => return Err(error.context(format!("cannot use {}", file.display()))),
            None => return Err(error),
        },
    };
    let created = session.client.jobs().create(&job).await?;
    if create.wait {
        return show::wait(&created.id, create.timeout, session).await;
    }
    session.out.value(&created, &created.id, || {
        let note = if created.duplicate { " (a duplicate: the job exists)" } else { "" };
        format!("{} {}{note}", created.id, created.status.word())
    })?;
    Ok(Exit::Done)
}

fn object(file: &Path) -> Result<Value> {
    let mut text = String::new();
    open(file)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        bail!(
            "it is larger than {FILE_BYTES_MAX} bytes: store the data elsewhere and put its address into the payload"
        );
    }
    read_json(text.as_bytes())
}

/// Opens a file, or stdin for `-`.
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
    struct ParsedPush {
        #[command(flatten)]
        push: QueuePushArgs,
    }

    #[test]
    fn the_first_argument_of_push_is_the_queue() {
        let line = ParsedPush::try_parse_from(["push", "mail", "welcome", "--payload", "1"]).unwrap();
        assert_eq!((line.push.queue.as_str(), line.push.create.name.as_deref()), ("mail", Some("welcome")));
        assert!(ParsedPush::try_parse_from(["push", "mail", "welcome", "--queue", "other"]).is_err());
        assert!(ParsedPush::try_parse_from(["push", "mail"]).is_err());
    }
}
