//! `windlass script-exec`, hidden: the launcher between the server and a script, in processes of its own.

use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use windlass_runtime::calls::script::launcher::{LauncherStage, run};

pub(crate) const COMMAND: &str = "script-exec";

#[derive(Args)]
pub(crate) struct ScriptExecArgs {
    #[arg(value_parser = PossibleValuesParser::new(LauncherStage::ALL.map(LauncherStage::word)))]
    stage: String,
}

impl ScriptExecArgs {
    /// Runs the stage, on the main thread of a process without other threads.
    pub(crate) fn run(&self) -> ExitCode {
        LauncherStage::from_word(&self.stage).map_or(ExitCode::FAILURE, run)
    }
}

/// The command line of the launcher. The link leads to the program of this process, even when another version has
/// replaced its file.
pub(crate) fn command_line() -> Vec<String> {
    let own = if cfg!(target_os = "linux") {
        "/proc/self/exe".to_owned()
    } else {
        std::env::current_exe().map_or_else(|_| "windlass".to_owned(), |path| path.display().to_string())
    };
    vec![own, COMMAND.to_owned()]
}
