//! `windlass audit`: lists changes with the names of their callers.

use anyhow::Result;
use clap::Args;
use windlass_sdk::contract::{AuditLine, AuditListQuery};

use crate::exit::Exit;
use crate::output::{self, OutputFormat, Printer};
use crate::session::{GlobalArgs, cut, from_now};

/// Lines of one page.
const PAGE_SIZE: usize = 1_000;
/// Characters of a name in a table; other formats have the whole name.
const NAME_CHARS: usize = 60;

#[derive(Args)]
pub(crate) struct AuditArgs {
    /// Only changes by this caller.
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only changes of this kind, such as run.cancel.
    #[arg(long)]
    what: Option<String>,
    /// Only changes of this run, job, flow, queue, …: its whole id, or its name.
    #[arg(long, value_name = "ID")]
    subject: Option<String>,
    /// The number of lines at most.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// The same as -o json.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(flags: AuditArgs, options: &GlobalArgs) -> Result<Exit> {
    let session = options.session()?;
    let limit = flags.limit as usize;
    let AuditArgs { who, what, subject, json, .. } = flags;
    let mut query = AuditListQuery { who, what, subject, ..AuditListQuery::default() };
    let mut lines: Vec<AuditLine> = Vec::new();
    let more = loop {
        query.limit = Some(PAGE_SIZE.min(limit - lines.len()));
        let part = session.client.audit().list(&query).await?;
        lines.extend(part.items);
        match part.next {
            Some(next) if lines.len() < limit => query.cursor = Some(next),
            next => break next.is_some(),
        }
    };
    let out = if json {
        Printer::new(Some(OutputFormat::Json), session.out.quiet, session.out.wide)
    } else {
        session.out
    };
    out.list(
        ["seq", "when", "who", "what", "subject", "result", "from"],
        &lines,
        |line| line.seq.to_string(),
        row,
    )?;
    if more {
        output::message("there may be more: raise --limit to see them");
    }
    Ok(Exit::Done)
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
