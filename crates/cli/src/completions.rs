//! `windlass completions`: what shells need to complete words.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::output;

#[derive(Args)]
pub(crate) struct Flags {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(flags: &Flags) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(flags.shell, &mut Cli::command(), "windlass", &mut text);
    output::raw(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}
