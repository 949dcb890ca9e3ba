//! The one binary, `windlass`. In this release it plays flows in memory and checks definitions; the server, the
//! workers and the operator's commands come with the durable store.
//!
//! Data goes to stdout, messages to stderr, both only through `output`.

mod dev;
mod flow;
mod output;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::Format;

const HELP: &str = "Examples:
  windlass dev
  windlass flow validate examples/graph/branching.json

Exit codes:
  0  everything is as it should be
  1  something did not end as it should, or could not be done
  2  a definition has errors, or the command line was not understood";

/// Durable workflows and job queues.
///
/// In this release everything happens in this process and in memory: nothing is durable yet.
#[derive(Parser)]
#[command(name = "windlass", version, after_help = HELP)]
struct Cli {
    /// How data is printed.
    #[arg(short, long, global = true, value_enum, default_value_t, env = "WINDLASS_OUTPUT")]
    output: Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Plays every example flow once, in this process, and says how each ended.
    ///
    /// State lives in memory and is gone when the command ends: there is no server and nothing durable yet.
    /// Calls are made by the built-in functions, or answered as the example's `.run.json` file says.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass dev\n",
        "  windlass dev --once -o json\n",
        "  windlass dev --examples my/flows\n\n",
        "Exit codes:\n",
        "  0  every example ended as its expectation says\n",
        "  1  at least one did not, or could not be read",
    ))]
    Dev {
        /// Only play the examples, without saying how to go on.
        #[arg(long)]
        once: bool,
        /// Where the examples are.
        #[arg(long, value_name = "DIR", default_value = "examples", env = "WINDLASS_EXAMPLES")]
        examples: PathBuf,
    },
    /// Checks and shows definitions.
    #[command(after_help = "Example:\n  windlass flow validate examples/graph/branching.json")]
    Flow {
        #[command(subcommand)]
        command: FlowCommand,
    },
}

#[derive(Subcommand)]
enum FlowCommand {
    /// Reports everything that is wrong with definitions, one problem a line: `file: path: severity: reason (hint)`.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass flow validate examples/graph/branching.json\n",
        "  windlass flow validate -o json flows/*.yaml\n\n",
        "Exit codes:\n",
        "  0  no errors (there may be warnings)\n",
        "  1  a file could not be read\n",
        "  2  a definition has errors",
    ))]
    Validate {
        /// Definitions, JSON or YAML.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Take fields nobody knows as warnings instead of errors.
        #[arg(long)]
        lenient: bool,
    },
    /// Prints the tasks that a definition of the steps form becomes, with what each depends on, as JSON.
    #[command(after_help = concat!(
        "Example:\n",
        "  windlass flow expand examples/steps/parallel-documents.json\n\n",
        "Exit codes:\n",
        "  0  expanded\n",
        "  1  the file could not be read\n",
        "  2  the definition has errors or another form",
    ))]
    Expand {
        /// A definition of the steps form, JSON or YAML.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Dev { once, examples } => dev::run(&examples, once, cli.output),
        Command::Flow { command: FlowCommand::Validate { files, lenient } } => {
            flow::validate(&files, lenient, cli.output)
        }
        Command::Flow { command: FlowCommand::Expand { file } } => flow::expand(&file),
    };
    done.unwrap_or_else(|error| {
        output::message(&format!("error: {error:#}"));
        ExitCode::FAILURE
    })
}
