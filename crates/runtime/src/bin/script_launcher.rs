//! The launcher of scripts alone, for tests and programs that embed the runtime; the server has it as a command.

use std::process::ExitCode;

use windlass_runtime::calls::script::launcher::{LauncherStage, run};

fn main() -> ExitCode {
    let stage = std::env::args().nth(1).and_then(|word| LauncherStage::from_word(&word));
    stage.map_or(ExitCode::FAILURE, run)
}
