//! `windlass dev`: a server with a worker in this process; every example is published, run once over HTTP, and compared
//! with what it promises.
//!
//! `example` is the files, `answers` the worker that answers as scripted, `stage` plays one example, `expect` compares.

mod answers;
mod example;
mod expect;
mod stage;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_engine::plan::Form;
use windlass_sdk::worker::bind;
use windlass_sdk::{Client, Worker};
use windlass_store::sqlite::Durability;

use crate::output;
use crate::serve::config::{Config, Limits, Place, Queue, place};
use crate::serve::server::Server;
use crate::serve::stop_on_signals;
use crate::session::{Options, cut};
use answers::Desk;
use example::{Example, Examples};
use stage::Ending;

/// Where the server listens; a free port when this one is taken.
const PORT: u16 = 8070;
/// Where the store is.
const DIR: &str = ".windlass";
/// Where examples are looked for unless told otherwise.
const EXAMPLES: &str = "examples";
/// How this process's worker is called.
const WORKER: &str = "dev";
/// How long calls may go on when everything stops.
const DRAIN: Duration = Duration::from_secs(10);
/// Characters of a result that a table shows.
const RESULT_CHARS: usize = 60;

#[derive(Args)]
pub(crate) struct Flags {
    /// End after the examples; the store is a temporary one.
    #[arg(long)]
    once: bool,
    /// Open a browser.
    #[arg(long, conflicts_with = "once")]
    open: bool,
    /// Where the examples are; ./examples unless told, and those of this program where there is no such directory.
    #[arg(long, value_name = "DIR", env = "WINDLASS_EXAMPLES")]
    examples: Option<PathBuf>,
    // Not taken from the environment: what a server of this machine keeps is no place for examples.
    /// Where everything is kept instead, such as sqlite:PATH or postgres://USER@HOST/DATABASE; best an empty one.
    #[arg(long)]
    store: Option<String>,
}

impl Flags {
    fn dir(&self) -> Option<PathBuf> {
        let here = || Some(PathBuf::from(EXAMPLES)).filter(|here| here.is_dir());
        self.examples.clone().or_else(here)
    }
}

pub(crate) async fn run(flags: &Flags, options: &Options) -> Result<ExitCode> {
    let dir = flags.dir();
    let examples = example::load(dir.as_deref())?;
    let stop = CancellationToken::new();
    stop_on_signals(stop.clone())?;
    let config = config(flags).await?;
    let server = Server::start(&config, stop.clone()).await?;
    let url = server.url();
    output::message(&format!(
        "windlass {} listens on {url}\n  store       {}\n  durability  {}\n  examples    {} {}",
        env!("CARGO_PKG_VERSION"),
        config.store,
        config.durability.word(),
        examples.played.len(),
        dir.map_or("of this program".to_owned(), |dir| format!("in {}", dir.display())),
    ));
    let client = Client::new(&url)?;
    let desk = Arc::new(Desk::default());
    let working = start_worker(&client, &desk, &examples, stop.clone()).await?;
    let played = tokio::select! {
        played = play(&client, &desk, &examples) => played,
        () = stop.cancelled() => Ok(Vec::new()),
    };
    let n_wrong = played.as_ref().map(|reports| tell(reports, options)).unwrap_or(Ok(0));
    if played.is_ok() && !flags.once && !stop.is_cancelled() {
        output::message(&format!(
            "serving on {url} until Ctrl-C; try\n  windlass run list\n  windlass flow list\n  {url}/docs"
        ));
        if flags.open {
            open(&format!("{url}/docs"));
        }
        stop.cancelled().await;
    }
    stop.cancel();
    working.await?.context("the worker broke")?;
    server.until_stopped(DRAIN).await?;
    played?;
    Ok(if n_wrong? == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn config(flags: &Flags) -> Result<Config> {
    let once = flags.once;
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let taken = once || tokio::net::TcpListener::bind(local(PORT)).await.is_err();
    let store = match &flags.store {
        Some(text) => place(text)?,
        None if once => Place::Temporary,
        None => Place::File(store_file(Path::new(DIR))?),
    };
    Ok(Config {
        listen: local(if taken { 0 } else { PORT }),
        store,
        queue: Queue::Memory,
        // What is thrown away at the end need not survive a loss of power.
        durability: if once { Durability::Fast } else { Durability::Strict },
        allow_scripts: true,
        allow_worker_net: false,
        name: "dev".to_owned(),
        worker_ttl: Duration::from_secs(15),
        worker_refresh: Duration::from_secs(5),
        drain: DRAIN,
        cors: Vec::new(),
        limits: Limits::default(),
    })
}

/// The file of the store, in a directory that version control leaves alone.
fn store_file(dir: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let ignore = dir.join(".gitignore");
    if !ignore.exists() {
        std::fs::write(&ignore, "*\n").with_context(|| format!("cannot write {}", ignore.display()))?;
    }
    Ok(dir.join("windlass.db"))
}

/// A worker that offers everything the examples call, pushed and pulled, and answers as they say.
async fn start_worker(
    client: &Client,
    desk: &Arc<Desk>,
    examples: &Examples,
    stop: CancellationToken,
) -> Result<JoinHandle<std::io::Result<()>>> {
    let (listener, url) = bind("http://127.0.0.1:0").await.context("cannot listen for calls")?;
    let mut worker = Worker::new(client.clone(), WORKER).listen(listener, &url).grace(Duration::from_secs(1));
    for service in examples.services() {
        let desk = Arc::clone(desk);
        worker = worker.service(service, move |call| {
            let desk = Arc::clone(&desk);
            async move { desk.answer(call).await }
        });
    }
    let working = tokio::spawn(worker.run(stop));
    stage::until_registered(client, WORKER, &url).await?;
    Ok(working)
}

/// How one example went.
struct Report {
    flow: String,
    form: Form,
    ending: Ending,
    /// Empty = as expected.
    differences: Vec<String>,
}

async fn play(client: &Client, desk: &Desk, examples: &Examples) -> Result<Vec<Report>> {
    for (name, text) in &examples.texts {
        crate::flow::ensure(client, name, text.clone())
            .await
            .with_context(|| format!("cannot publish `{name}`"))?;
    }
    let mut reports = Vec::with_capacity(examples.played.len());
    for example in &examples.played {
        reports.push(report(client, desk, example).await?);
    }
    Ok(reports)
}

async fn report(client: &Client, desk: &Desk, example: &Example) -> Result<Report> {
    desk.begin(example.script.answers.clone());
    let ending = stage::play(client, example).await?;
    let differences = expect::differences(&example.script.expect, &ending);
    Ok(Report { flow: example.name.clone(), form: example.form, ending, differences })
}

/// Prints how every example went; how many did not end as they should.
fn tell(reports: &[Report], options: &Options) -> Result<usize> {
    let objects: Vec<Value> = reports.iter().map(object).collect();
    let rows: Vec<[String; 6]> = reports.iter().map(row).collect();
    let out = options.print();
    match out.format() {
        output::Format::Table if !out.quiet => {
            out.table(["flow", "form", "status", "ms", "as expected", "result"], &rows)?;
        }
        output::Format::Table | output::Format::Json | output::Format::Jsonl | output::Format::Yaml => {
            let flow = |object: &Value| object["flow"].as_str().unwrap_or_default().to_owned();
            out.list([], &objects, flow, |_| [])?;
        }
    }
    for report in reports {
        for difference in &report.differences {
            output::message(&format!("{}: {difference}", report.flow));
        }
    }
    let n_wrong = reports.iter().filter(|report| !report.differences.is_empty()).count();
    output::message(&match n_wrong {
        0 => format!("all {} examples ended as expected", reports.len()),
        n => format!("{n} of {} examples did not end as expected", reports.len()),
    });
    Ok(n_wrong)
}

fn form_word(form: Form) -> &'static str {
    match form {
        Form::Graph => "graph",
        Form::Dag => "dag",
        Form::Steps => "steps",
    }
}

fn row(report: &Report) -> [String; 6] {
    let ending = &report.ending;
    let shown = match &ending.error {
        Some(error) => error.clone(),
        None => ending.result.to_string(),
    };
    [
        report.flow.clone(),
        form_word(report.form).to_owned(),
        ending.status.to_owned(),
        ending.took.as_millis().to_string(),
        if report.differences.is_empty() { "yes" } else { "NO" }.to_owned(),
        cut(&shown, RESULT_CHARS),
    ]
}

fn object(report: &Report) -> Value {
    let ending = &report.ending;
    json!({
        "flow": report.flow,
        "form": form_word(report.form),
        "run": ending.run,
        "status": ending.status,
        "ms": u64::try_from(ending.took.as_millis()).unwrap_or(u64::MAX),
        "entries": ending.n_entries,
        "result": ending.result,
        "error": ending.error,
        "differences": report.differences,
    })
}

/// Opens a browser; whoever has none can follow the link that was printed.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if let Err(error) = tokio::process::Command::new(program).arg(url).spawn() {
        output::message(&format!("no browser could be opened ({program}: {error})"));
    }
}
