//! `windlass completions`: completion scripts of shells.

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::exit::Exit;
use crate::output;

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(flags: &CompletionsArgs) -> Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(flags.shell, &mut Cli::command(), "windlass", &mut text);
    output::part(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}
