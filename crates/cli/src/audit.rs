//! `windlass audit`: lists changes with the names of their callers, and checks the hash chain of the lines.

use anyhow::Result;
use clap::{Args, Subcommand};
use windlass_sdk::contract::{AuditBreak, AuditHead, AuditLine, AuditListQuery, AuditVerifyQuery};

use crate::exit::Exit;
use crate::output::{self, OutputFormat, Printer};
use crate::session::{GlobalArgs, cut, from_now};

/// Lines of one page.
const PAGE_SIZE: usize = 1_000;
/// Characters of a name in a table; other formats have the whole name.
const NAME_CHARS: usize = 60;

#[derive(Subcommand)]
enum AuditCommand {
    /// Prints the number and the hash of the last line; keep it in another place.
    Head,
    /// Checks that all lines are as they were written.
    Verify {
        /// A head that was kept: the audit must contain that line.
        #[arg(long, value_name = "SEQ:HASH")]
        head: Option<String>,
    },
}

#[derive(Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    command: Option<AuditCommand>,
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
    match flags.command {
        Some(AuditCommand::Head) => {
            let session = options.session()?;
            let head = session.client.audit().head().await?;
            session.out.value(&head, &shown_head(&head), || shown_head(&head))?;
            Ok(Exit::Done)
        }
        Some(AuditCommand::Verify { head }) => verify(head, options).await,
        None => list(flags, options).await,
    }
}

async fn verify(head: Option<String>, options: &GlobalArgs) -> Result<Exit> {
    let session = options.session()?;
    let verified = session.client.audit().verify(&AuditVerifyQuery { head }).await?;
    let text = || match &verified.broken {
        None => format!("{} lines are intact, up to {}", verified.intact, shown_head(&verified.head)),
        Some(AuditBreak { seq, reason }) => {
            format!("line {seq}: {reason}; {} lines before it are intact", verified.intact)
        }
    };
    session.out.value(&verified, &shown_head(&verified.head), text)?;
    Ok(if verified.broken.is_none() { Exit::Done } else { Exit::Failed })
}

fn shown_head(head: &AuditHead) -> String {
    format!("{}:{}", head.seq, head.hash)
}

async fn list(flags: AuditArgs, options: &GlobalArgs) -> Result<Exit> {
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
