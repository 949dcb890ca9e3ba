//! `windlass audit`: who asked for which change.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use windlass_sdk::types::{AuditLine, AuditQuery};

use crate::output::{self, Format, Output};
use crate::session::{Options, cut, from_now};

/// Lines on one page.
const PAGE: usize = 1_000;
/// Characters of a name in a table: the rest is in the other formats.
const NAME_CHARS: usize = 60;

#[derive(Args)]
pub(crate) struct Flags {
    /// Only what they asked for.
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only changes of this kind, such as run.cancel.
    #[arg(long)]
    what: Option<String>,
    /// Only what was asked of this run, job, flow, queue, …: its whole id, or its name.
    #[arg(long, value_name = "ID")]
    subject: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// The same as -o json.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(flags: Flags, options: &Options) -> Result<ExitCode> {
    let session = options.session()?;
    let limit = flags.limit as usize;
    let Flags { who, what, subject, json, .. } = flags;
    let mut query = AuditQuery { who, what, subject, ..AuditQuery::default() };
    let mut lines: Vec<AuditLine> = Vec::new();
    let more = loop {
        query.limit = Some(PAGE.min(limit - lines.len()));
        let part = session.client.audit(&query).await?;
        lines.extend(part.items);
        match part.next {
            Some(next) if lines.len() < limit => query.cursor = Some(next),
            next => break next.is_some(),
        }
    };
    let out = if json { Output::new(Some(Format::Json), session.out.quiet) } else { session.out };
    out.list(
        ["seq", "when", "who", "what", "subject", "result", "from"],
        &lines,
        |line| line.seq.to_string(),
        row,
    )?;
    if more {
        output::message("there may be more: ask with a higher --limit");
    }
    Ok(ExitCode::SUCCESS)
}

fn row(line: &AuditLine) -> [String; 7] {
    let result = match &line.code {
        Some(code) => format!("{}: {code}", line.result),
        None => line.result.clone(),
    };
    [
        line.seq.to_string(),
        from_now(line.at),
        cut(&line.who, NAME_CHARS),
        line.what.clone(),
        cut(&line.subject, NAME_CHARS),
        result,
        line.ip.clone().unwrap_or_default(),
    ]
}
