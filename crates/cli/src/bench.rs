//! `windlass bench`: prints the report of the `windlass-bench` crate.

use anyhow::Result;
use windlass_bench::BenchArgs;

use crate::exit::Exit;
use crate::output::{self, OutputFormat, Printer};

pub(crate) async fn run(args: &BenchArgs, out: &Printer) -> Result<Exit> {
    let report = windlass_bench::run(args, &output::message).await?;
    if args.markdown {
        output::line(&report.markdown())?;
    } else if args.json || out.format() != OutputFormat::Table {
        output::json(&report.to_json())?;
    } else {
        out.table(["what", "median", "spread", "unit"], &report.rows())?;
        output::message(&report.footing());
    }
    Ok(Exit::Done)
}
