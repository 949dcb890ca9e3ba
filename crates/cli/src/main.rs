//! The `windlass` binary: the server, the standard worker, and the commands of their clients.
//!
//! Commands write data to stdout and messages to stderr, both only through `output`.

mod error;
mod exit;
mod help;
mod json;
mod output;
mod poll;
mod session;

mod script_exec;
mod serve;
mod worker;

mod demo;
mod dev;
mod examples;

mod approvals;
mod bulk;
mod flow;
mod run;

mod account;
mod amount;
mod price;

mod dlq;
mod job;
mod queue;
mod schedule;
mod service;

mod api;
mod audit;
mod bench;
mod completions;
mod doctor;
mod key;
mod overview;
mod stats;
mod store;

use std::pin::Pin;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use exit::Exit;
use session::GlobalArgs;

/// Memory moves between threads all the time (an actor decides, the writer commits), and mimalloc is fast at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Durable workflows and job queues.
#[derive(Parser)]
#[command(name = "windlass", version, after_help = help())]
pub(crate) struct Cli {
    #[command(flatten)]
    options: GlobalArgs,
    #[command(subcommand)]
    command: CliCommand,
}

fn help() -> String {
    [
        "Examples:
  windlass dev
  windlass serve --store sqlite:windlass.db
  windlass flow validate examples/graph/branching.json
  windlass run start graph/branching -p name=Ada -p age=36 --watch
  windlass job create thumbnail --payload '{\"file\": \"cat.png\"}' --wait

",
        exit::TABLE,
    ]
    .concat()
}

#[derive(Subcommand)]
enum CliCommand {
    /// Runs a server until it is stopped.
    ///
    /// SIGINT or SIGTERM lets open calls end first; a second one stops at once. No accepted request is lost either way.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass serve\n",
        "  windlass serve --listen 0.0.0.0:8070 --store sqlite:/var/lib/windlass/windlass.db\n",
        "  windlass serve --config windlass.toml --durability fast\n\n",
        "Exit codes:\n  0  stopped by a signal\n  1  cannot start, or stopped by itself\n  4  the configuration has errors\n  130  stopped by a second signal",
    ))]
    Serve(Box<serve::config::ServeArgs>),
    /// Checks the settings of a server and prints them.
    ///
    /// Every mistake in the file, the flags and the environment is reported at once.
    #[command(after_help = concat!(
        "Example:\n  windlass check-config --config windlass.toml\n\n",
        "Exit codes:\n  0  the settings are valid\n  4  the settings have errors",
    ))]
    CheckConfig(Box<serve::config::ServeArgs>),
    /// Starts a server with a worker, publishes the example flows, runs each once, and serves.
    ///
    /// The store is in ./.windlass. The worker answers calls with built-in functions, or as an example's `.run.json` file
    /// says.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass dev\n",
        "  windlass dev --once -o json\n",
        "  windlass dev --listen 127.0.0.1:9000 --examples my/flows\n\n",
        "Exit codes:\n",
        "  0  every example ended as expected\n",
        "  1  an example ended differently, or cannot be read\n",
        "  4  a setting has errors",
    ))]
    Dev(dev::DevArgs),
    /// Publishes a flow with two branches, runs both, and prints the results.
    ///
    /// It uses the scheduler API of a running server, and needs a worker.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass demo\n",
        "  WINDLASS_SERVER=http://127.0.0.1:8070 windlass demo\n\n",
        "Exit codes:\n  0  both branches completed\n  1  a branch failed, or no worker is there\n  3  the server cannot be reached\n  124  a branch did not end in time",
    ))]
    Demo(demo::DemoArgs),
    /// Runs the standard worker (transform, sum, route or other built-in functions), or manages workers.
    #[command(args_conflicts_with_subcommands = true, after_help = concat!(
        "Examples:\n",
        "  windlass worker\n",
        "  windlass worker --server http://127.0.0.1:8070 --url http://127.0.0.1:8080 --services all\n",
        "  windlass worker --demo\n",
        "  windlass worker --pull-only --queues mail,reports\n",
        "  windlass worker list\n\n",
        "Exit codes:\n  0  stopped by a signal\n  1  cannot start\n  2  a service is not built in\n  130  stopped by a second signal",
    ))]
    Worker(Box<worker::WorkerArgs>),
    /// Lists and publishes the example flows of the server's program.
    #[command(after_help = "Example:\n  windlass examples load")]
    Examples {
        #[command(subcommand)]
        command: examples::ExampleCommand,
    },
    /// Validates and publishes definitions, and shows flows.
    #[command(after_help = "Example:\n  windlass flow validate examples/graph/branching.json")]
    Flow {
        #[command(subcommand)]
        command: flow::FlowCommand,
    },
    /// Starts, shows and controls runs.
    #[command(after_help = "Example:\n  windlass run start graph/branching -p name=Ada -p age=36 --watch")]
    Run {
        #[command(subcommand)]
        command: run::RunCommand,
    },
    /// Cancels, retries, reruns, pauses, resumes or signals many runs.
    #[command(after_help = "Example:\n  windlass bulk retry -q 'status:failed flow:orders after:1d' --yes")]
    Bulk {
        #[command(subcommand)]
        command: bulk::BulkCommand,
    },
    /// Lists and decides open approvals.
    #[command(after_help = "Example:\n  windlass approvals approve run_0190a1b2/review -m 'go ahead'")]
    Approvals {
        #[command(subcommand)]
        command: approvals::ApprovalCommand,
    },
    /// Creates, shows and controls jobs.
    #[command(
        after_help = "Example:\n  windlass job create thumbnail --payload '{\"file\": \"cat.png\"}' --wait"
    )]
    Job {
        #[command(subcommand)]
        command: job::JobCommand,
    },
    /// Shows, pauses and limits queues.
    #[command(after_help = "Example:\n  windlass queue limit mail --concurrency 5 --rate 10/s")]
    Queue {
        #[command(subcommand)]
        command: queue::QueueCommand,
    },
    /// Shows and configures services.
    #[command(after_help = "Example:\n  windlass service set video_motion --recheck-ms 5000")]
    Service {
        #[command(subcommand)]
        command: service::ServiceCommand,
    },
    /// Lists, replays and discards dead letters: jobs that used up their attempts.
    #[command(after_help = "Example:\n  windlass dlq replay default --count 1 --priority 2")]
    Dlq {
        #[command(subcommand)]
        command: dlq::DlqCommand,
    },
    /// Creates and controls cron schedules of jobs and runs.
    #[command(
        after_help = "Example:\n  windlass schedule create --cron '0 9 * * 1-5' --tz Europe/Berlin --job report"
    )]
    Schedule {
        #[command(subcommand)]
        command: schedule::ScheduleCommand,
    },
    /// Opens accounts, deposits money and shows ledgers.
    #[command(after_help = "Example:\n  windlass account deposit acme 5000")]
    Account {
        #[command(subcommand)]
        command: account::AccountCommand,
    },
    /// Sets and shows prices of services.
    #[command(after_help = "Example:\n  windlass price set audio_tts 2 --units '$params.seconds'")]
    Price {
        #[command(subcommand)]
        command: price::PriceCommand,
    },
    /// Makes, lists and ends API keys.
    #[command(after_help = "Example:\n  windlass key create --role admin --name me")]
    Key {
        #[command(subcommand)]
        command: key::KeyCommand,
    },
    /// Lists changes, with who asked for each and its result, newest first; checks that no line was changed.
    #[command(args_conflicts_with_subcommands = true, after_help = concat!(
        "Examples:\n  windlass audit\n  windlass audit --who ann --what run.cancel\n  windlass audit --subject mail -o json\n",
        "  windlass audit head\n  windlass audit verify --head 812:5e0c…\n\n",
        "Exit codes:\n  0  listed; the audit is intact\n  1  refused; a line was changed or is missing\n  3  the server cannot be reached",
    ))]
    Audit(audit::AuditArgs),
    /// Checks the server, its clock, its workers and its runs for problems.
    #[command(after_help = concat!(
        "Examples:\n  windlass doctor\n  windlass doctor --repair\n\n",
        "Exit codes:\n  0  no errors (there may be warnings)\n  1  an error was found and not repaired\n  3  the server cannot be reached",
    ))]
    Doctor(doctor::DoctorArgs),
    /// Copies one store to another.
    #[command(
        after_help = "Example:\n  windlass store copy sqlite:windlass.db postgres://windlass@db.example/windlass"
    )]
    Store {
        #[command(subcommand)]
        command: store::StoreCommand,
    },
    /// Shows the numbers of runs, jobs and workers, and everything that needs a person.
    #[command(after_help = concat!(
        "Examples:\n  windlass overview\n  windlass overview -o json\n\n",
        "Exit codes:\n  0  shown\n  3  the server cannot be reached",
    ))]
    Overview,
    /// Shows statistics of the server or of one flow: parallel calls, durations, rates.
    #[command(after_help = concat!(
        "Examples:\n  windlass stats\n  windlass stats orders -o json\n\n",
        "Exit codes:\n  0  shown\n  1  there is no such flow\n  3  the server cannot be reached",
    ))]
    Stats(stats::StatsArgs),
    /// Measures the speed of Windlass on this machine.
    ///
    /// It starts its own servers in a directory of its own. Every figure is measured three times: median and spread.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass bench\n",
        "  windlass bench --only steps,latency --durability fast\n",
        "  windlass bench --json > figures.json\n\n",
        "Exit codes:\n  0  measured\n  1  a row cannot be measured",
    ))]
    Bench(windlass_bench::BenchArgs),
    /// Sends any request to the server and prints the response.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass api GET '/api/v1/runs?limit=5'\n",
        "  windlass api POST /api/v1/runs/run_0190a1b2/signal -d '{\"key\": \"go\", \"value\": 1}'\n\n",
        "Exit codes:\n  0  the response is a success\n  1  it is an error\n  3  the server cannot be reached",
    ))]
    Api(api::ApiArgs),
    /// Prints the completion script of a shell.
    #[command(after_help = concat!(
        "Example:\n  windlass completions bash > ~/.local/share/bash-completion/completions/windlass\n\n",
        "Exit codes:\n  0  printed",
    ))]
    Completions(completions::CompletionsArgs),
    /// Starts a script; the server runs it.
    #[command(name = script_exec::COMMAND, hide = true)]
    ScriptExec(script_exec::ScriptExecArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let CliCommand::ScriptExec(stage) = &cli.command {
        return stage.run();
    }
    error::log_to_stderr();
    execute(cli)
        .unwrap_or_else(|error| {
            error::print_error(&error);
            exit::exit_of(&error)
        })
        .into()
}

fn execute(cli: Cli) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads of this program")?;
    // A boxed future is compiled once; `block_on` would compile its own copies of all commands.
    let command: Pin<Box<dyn Future<Output = Result<Exit>>>> = Box::pin(dispatch(cli));
    runtime.block_on(command)
}

async fn dispatch(cli: Cli) -> Result<Exit> {
    let options = &cli.options;
    if !matches!(cli.command, CliCommand::Serve(_) | CliCommand::Dev(_) | CliCommand::Worker(_)) {
        tokio::spawn(exit_on_interrupt());
    }
    match cli.command {
        CliCommand::Serve(flags) => serve::run(*flags).await,
        CliCommand::CheckConfig(flags) => serve::check_config(*flags, options),
        CliCommand::Dev(flags) => dev::run(&flags, options).await,
        CliCommand::Demo(flags) => demo::run(&flags, options).await,
        CliCommand::Worker(flags) => worker::run(*flags, options).await,
        CliCommand::Examples { command } => examples::run(command, options).await,
        CliCommand::Flow { command } => flow::run(command, options).await,
        CliCommand::Run { command } => run::run(command, options).await,
        CliCommand::Bulk { command } => bulk::run(command, options).await,
        CliCommand::Approvals { command } => approvals::run(command, options).await,
        CliCommand::Job { command } => job::run(command, options).await,
        CliCommand::Queue { command } => queue::run(command, options).await,
        CliCommand::Dlq { command } => dlq::run(command, options).await,
        CliCommand::Service { command } => service::run(command, options).await,
        CliCommand::Schedule { command } => schedule::run(command, options).await,
        CliCommand::Account { command } => account::run(command, options).await,
        CliCommand::Price { command } => price::run(command, options).await,
        CliCommand::Bench(args) => bench::run(&args, &options.print()).await,
        CliCommand::Key { command } => key::run(command, options).await,
        CliCommand::Audit(flags) => audit::run(flags, options).await,
        CliCommand::Doctor(flags) => doctor::run(&flags, options).await,
        CliCommand::Store { command } => store::run(command, options).await,
        CliCommand::Overview => overview::run(options).await,
        CliCommand::Stats(flags) => stats::run(&flags, options).await,
        CliCommand::Api(api) => api::run(api, options).await,
        CliCommand::Completions(flags) => completions::run(&flags),
        // It runs before there are any threads.
        CliCommand::ScriptExec(_) => unreachable!("main runs it"),
    }
}

/// Ends the process with [`Exit::Interrupted`] at SIGINT. It runs on another thread than the command, so it also ends a
/// command that reads stdin.
async fn exit_on_interrupt() {
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(Exit::Interrupted as i32);
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::Cli;

    #[test]
    fn the_commands_are_put_together_soundly() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_worker_is_run_or_looked_after_never_both() {
        let read = |line: &str| Cli::try_parse_from(line.split_whitespace()).map(|_| ());
        for line in [
            "windlass worker --demo",
            "windlass worker list -o json",
            "windlass worker",
            "windlass --quiet worker drain w",
        ] {
            assert!(read(line).is_ok(), "{line}: {:?}", read(line));
        }
        for line in ["windlass worker --demo list", "windlass worker drain"] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn dead_letters_are_chosen_in_one_way() {
        let read = |line: &str| Cli::try_parse_from(line.split_whitespace()).map(|_| ());
        for how in ["--count 3", "--all", "--group f", "a b"] {
            assert!(read(&format!("windlass dlq replay default {how}")).is_ok(), "{how}");
        }
        for how in ["", "--all --count 3", "a --all", "--count 0", "--count 10001"] {
            assert!(read(&format!("windlass dlq replay default {how}")).is_err(), "{how}");
        }
        assert!(read("windlass dlq discard default --all").is_err(), "without a reason");
    }
}
