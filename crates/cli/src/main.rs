//! The one binary, `windlass`: the server, the standard worker, and the commands that speak to them.
//!
//! Data goes to stdout, messages to stderr, both only through `output`.

mod asking;
mod help;
mod output;
mod session;
mod trouble;

mod serve;
mod worker;

mod demo;
mod dev;

mod approvals;
mod flow;
mod run;

mod account;
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
mod stats;
mod store;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use session::Options;

/// What one thread allocates another frees, all the time: decisions are made on one and written on another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HELP: &str = "Examples:
  windlass dev
  windlass serve --store sqlite:windlass.db
  windlass flow validate examples/graph/branching.json
  windlass run start graph/branching -p name=Ada -p age=36 --watch
  windlass job create thumbnail --payload '{\"file\": \"cat.png\"}' --wait

Exit codes:
  0    everything is as it should be
  1    something did not end as it should, or could not be done
  2    a definition has errors, the run or the job was cancelled, or the command line was not understood
  3    the server could not be asked: it is not there, or takes nothing now
  124  it did not end in time";

/// Durable workflows and job queues.
#[derive(Parser)]
#[command(name = "windlass", version, after_help = HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves, until it is told to stop.
    ///
    /// SIGINT or SIGTERM lets calls end first; a second one stops at once. Nothing that was accepted is lost either way.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass serve\n",
        "  windlass serve --listen 0.0.0.0:8070 --store sqlite:/var/lib/windlass/windlass.db\n",
        "  windlass serve --config windlass.toml --durability fast\n\n",
        "Exit codes:\n  0  it was told to stop, and did\n  1  it could not start, or stopped by itself\n  130  it was told twice",
    ))]
    Serve(Box<serve::config::Flags>),
    /// Says whether the settings of a server can be used, and what they come to.
    #[command(after_help = concat!(
        "Example:\n  windlass check-config --config windlass.toml\n\n",
        "Exit codes:\n  0  they can be used\n  1  they cannot",
    ))]
    CheckConfig(Box<serve::config::Flags>),
    /// Starts a server with a worker, publishes the example flows, runs each once, and serves.
    ///
    /// The store is in ./.windlass. Calls are made by the built-in functions, or answered as an example's `.run.json`
    /// file says.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass dev\n",
        "  windlass dev --once -o json\n",
        "  windlass dev --examples my/flows\n\n",
        "Exit codes:\n",
        "  0  every example ended as its expectation says\n",
        "  1  at least one did not, or could not be read",
    ))]
    Dev(dev::Flags),
    /// Publishes a flow that branches, runs both branches, and prints what came of them.
    ///
    /// It speaks to a running server as any old client of the scheduler would, and needs a worker.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass demo\n",
        "  SCHEDULER_BASE=http://127.0.0.1:8070 windlass demo\n\n",
        "Exit codes:\n  0  both branches completed\n  1  one did not, or there is no server or no worker",
    ))]
    Demo(demo::Flags),
    /// Runs the standard worker: transform, sum and route, or other built-in functions; or looks after workers.
    #[command(args_conflicts_with_subcommands = true, after_help = concat!(
        "Examples:\n",
        "  windlass worker\n",
        "  windlass worker --server http://127.0.0.1:8070 --url http://127.0.0.1:8080 --services all\n",
        "  windlass worker --demo\n",
        "  windlass worker --pull-only --queues mail,reports\n",
        "  windlass worker list\n\n",
        "Exit codes:\n  0  it was told to stop, and did\n  1  it could not start",
    ))]
    Worker(Box<worker::Flags>),
    /// Definitions on this machine, and flows on the server.
    #[command(after_help = "Example:\n  windlass flow validate examples/graph/branching.json")]
    Flow {
        #[command(subcommand)]
        command: flow::Command,
    },
    /// Runs: starting them, looking at them, telling them something.
    #[command(after_help = "Example:\n  windlass run start graph/branching -p name=Ada -p age=36 --watch")]
    Run {
        #[command(subcommand)]
        command: run::Command,
    },
    /// What waits for a person.
    #[command(after_help = "Example:\n  windlass approvals approve run_0190a1b2/review -m 'go ahead'")]
    Approvals {
        #[command(subcommand)]
        command: approvals::Command,
    },
    /// Jobs: creating them, looking at them, waiting for them.
    #[command(
        after_help = "Example:\n  windlass job create thumbnail --payload '{\"file\": \"cat.png\"}' --wait"
    )]
    Job {
        #[command(subcommand)]
        command: job::Command,
    },
    /// Queues: how full they are, how fast they go, what holds them back.
    #[command(after_help = "Example:\n  windlass queue limit mail --concurrency 5 --rate 10/s")]
    Queue {
        #[command(subcommand)]
        command: queue::Command,
    },
    /// Services: what workers can do, and what is set for it.
    #[command(after_help = "Example:\n  windlass service set video_motion --recheck-ms 5000")]
    Service {
        #[command(subcommand)]
        command: service::Command,
    },
    /// Dead letters: jobs that failed for good, until somebody replays or discards them.
    #[command(after_help = "Example:\n  windlass dlq replay default --count 1 --priority 2")]
    Dlq {
        #[command(subcommand)]
        command: dlq::Command,
    },
    /// Schedules: jobs and runs that start by the clock.
    #[command(
        after_help = "Example:\n  windlass schedule create --cron '0 9 * * 1-5' --tz Europe/Berlin --job report"
    )]
    Schedule {
        #[command(subcommand)]
        command: schedule::Command,
    },
    /// Accounts: who pays, what they have, what happened to it.
    #[command(after_help = "Example:\n  windlass account deposit acme 5000")]
    Account {
        #[command(subcommand)]
        command: account::Command,
    },
    /// Prices: what services ask.
    #[command(after_help = "Example:\n  windlass price set audio_tts 2 --units '$params.seconds'")]
    Price {
        #[command(subcommand)]
        command: price::Command,
    },
    /// Lists who asked for which change and what came of it, newest first.
    #[command(after_help = concat!(
        "Examples:\n  windlass audit\n  windlass audit --who ann --what run.cancel\n  windlass audit --subject mail -o json\n\n",
        "Exit codes:\n  0  shown\n  1  refused\n  3  the server could not be asked",
    ))]
    Audit(audit::Flags),
    /// Looks for what may be wrong: the way to the server, its clock, its workers, runs that nothing will wake.
    #[command(after_help = concat!(
        "Examples:\n  windlass doctor\n  windlass doctor --repair\n\n",
        "Exit codes:\n  0  nothing is wrong (there may be warnings)\n  1  something is, and was not repaired",
    ))]
    Doctor(doctor::Flags),
    /// Stores: moving everything from one to another.
    #[command(
        after_help = "Example:\n  windlass store copy sqlite:windlass.db postgres://windlass@db.example/windlass"
    )]
    Store {
        #[command(subcommand)]
        command: store::Command,
    },
    /// Says how the server went, or one of its flows: how many calls at once, how long, how many a second.
    #[command(after_help = concat!(
        "Examples:\n  windlass stats\n  windlass stats orders -o json\n\n",
        "Exit codes:\n  0  said\n  1  there is no such flow\n  3  the server could not be asked",
    ))]
    Stats(stats::Flags),
    /// Measures how fast this is on this machine, next to what its disk can do.
    ///
    /// Starts what it needs in a directory of its own. Every figure is taken three times: median and spread.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass bench\n",
        "  windlass bench --only steps,latency --durability fast\n",
        "  windlass bench --json > figures.json\n\n",
        "Exit codes:\n  0  measured\n  1  something could not be measured",
    ))]
    Bench(bench::BenchArgs),
    /// Makes any call to the server and prints the answer.
    #[command(after_help = concat!(
        "Examples:\n",
        "  windlass api GET '/api/v1/runs?limit=5'\n",
        "  windlass api POST /api/v1/runs/run_0190a1b2/signal -d '{\"key\": \"go\", \"value\": 1}'\n\n",
        "Exit codes:\n  0  the answer is a success\n  1  it is not, or none came",
    ))]
    Api(api::Api),
    /// Prints what a shell needs to complete words.
    #[command(after_help = concat!(
        "Example:\n  windlass completions bash > ~/.local/share/bash-completion/completions/windlass\n\n",
        "Exit codes:\n  0  printed",
    ))]
    Completions(completions::Flags),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    trouble::log_to_stderr();
    execute(cli).unwrap_or_else(|error| {
        trouble::tell(&error);
        trouble::code_of(&error)
    })
}

fn execute(cli: Cli) -> Result<ExitCode> {
    let options = &cli.options;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads of this program")?;
    runtime.block_on(async {
        match cli.command {
            Command::Serve(flags) => serve::run(*flags).await,
            Command::CheckConfig(flags) => serve::check_config(*flags, options),
            Command::Dev(flags) => dev::run(&flags, options).await,
            Command::Demo(flags) => demo::run(&flags, options).await,
            Command::Worker(flags) => worker::run(*flags, options).await,
            Command::Flow { command } => flow::run(command, options).await,
            Command::Run { command } => run::run(command, options).await,
            Command::Approvals { command } => approvals::run(command, options).await,
            Command::Job { command } => job::run(command, options).await,
            Command::Queue { command } => queue::run(command, options).await,
            Command::Dlq { command } => dlq::run(command, options).await,
            Command::Service { command } => service::run(command, options).await,
            Command::Schedule { command } => schedule::run(command, options).await,
            Command::Account { command } => account::run(command, options).await,
            Command::Price { command } => price::run(command, options).await,
            Command::Bench(args) => bench::run(&args, &options.print()).await,
            Command::Audit(flags) => audit::run(flags, options).await,
            Command::Doctor(flags) => doctor::run(&flags, options).await,
            Command::Store { command } => store::run(command, options).await,
            Command::Stats(flags) => stats::run(&flags, options).await,
            Command::Api(api) => api::run(api, options).await,
            Command::Completions(flags) => completions::run(&flags),
        }
    })
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
            "windlass -q worker drain w",
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
