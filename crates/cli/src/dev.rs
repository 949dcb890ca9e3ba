//! `windlass dev`: a server and a worker in this process. It publishes every example, runs each once over HTTP, and
//! compares the outcome with the expected one.
//!
//! `example` reads the files, `answers` is the scripted worker, `play` runs one example, `expect` compares.

mod answers;
mod example;
mod expect;
mod play;

use std::fs::{DirBuilder, Permissions};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_engine::plan::Form;
use windlass_runtime::ScriptPolicy;
use windlass_sdk::worker::bind;
use windlass_sdk::{Client, Worker};
use windlass_server::ExampleFlow;
use windlass_store::sqlite::Durability;

use crate::exit::{Exit, invalid};
use crate::output;
use crate::serve::config::{
    QueueBackend, ScriptConfig, ServerConfig, ServerLimits, StoreLocation, TlsConfig, address,
};
use crate::serve::server::ListeningServer;
use crate::serve::stop_on_signals;
use crate::session::{GlobalArgs, cut};
use answers::ScriptedAnswers;
use example::{Example, Examples};
use play::ExampleOutcome;

/// The port of the server; a free one if this is taken.
const PORT: u16 = 8070;
/// The directory of the store.
const DIR: &str = ".windlass";
/// Rights of that directory: other users of the machine cannot enter it.
const DIR_MODE: u32 = 0o700;
/// The default directory of examples.
const EXAMPLES: &str = "examples";
/// The id of the worker in this process.
const WORKER: &str = "dev";
/// How long open calls may go on after the signal to stop.
const DRAIN: Duration = Duration::from_secs(10);
/// Characters of a result that a table shows.
const RESULT_CHARS: usize = 60;

#[derive(Args)]
pub(crate) struct DevArgs {
    /// End after the examples; use a temporary store.
    #[arg(long)]
    once: bool,
    /// Open a browser.
    #[arg(long, conflicts_with = "once")]
    open: bool,
    /// The directory of the examples [default: ./examples, or the built-in ones where there is no such directory].
    #[arg(long, value_name = "DIR", env = "WINDLASS_EXAMPLES")]
    examples: Option<PathBuf>,
    /// The address to listen on [default: 127.0.0.1:8070, or a free port if that is taken or with --once].
    #[arg(long, value_name = "ADDRESS", env = "WINDLASS_LISTEN")]
    listen: Option<String>,
    // Not from the environment: `WINDLASS_STORE` names the store of a real server, which is no place for examples.
    /// The store, such as sqlite:PATH or postgres://USER@HOST/DATABASE; best an empty one
    /// [default: sqlite in ./.windlass, or a temporary one with --once].
    #[arg(long)]
    store: Option<String>,
    /// Serve other machines although there is no API key: every client may do everything, run commands included.
    #[arg(long)]
    no_auth: bool,
}

impl DevArgs {
    fn dir(&self) -> Option<PathBuf> {
        let here = || Some(PathBuf::from(EXAMPLES)).filter(|here| here.is_dir());
        self.examples.clone().or_else(here)
    }
}

/// The example flows of this program, by name.
pub(crate) fn built_in_flows() -> Result<Vec<ExampleFlow>> {
    let examples = example::load(None)?;
    Ok(examples.texts.into_iter().map(|(name, text)| ExampleFlow { name, text }).collect())
}

pub(crate) async fn run(flags: &DevArgs, options: &GlobalArgs) -> Result<Exit> {
    let dir = flags.dir();
    let examples = example::load(dir.as_deref())?;
    let stop = CancellationToken::new();
    stop_on_signals(stop.clone())?;
    let config = config(flags, &examples).await?;
    let server = ListeningServer::start(&config, stop.clone()).await?;
    let url = server.url();
    output::message(&format!(
        "windlass {} listens on {url}\n  console     {url}/ui/\n  store       {}\n  durability  {}\n  access      {}\n  examples    {} {}",
        env!("CARGO_PKG_VERSION"),
        config.store,
        config.durability.word(),
        server.access.line(),
        examples.played.len(),
        dir.map_or("of this program".to_owned(), |dir| format!("in {}", dir.display())),
    ));
    let client = options.client(&url)?;
    let answers = Arc::new(ScriptedAnswers::default());
    let working = start_worker(&client, &answers, &examples, stop.clone()).await?;
    let played = tokio::select! {
        played = play(&client, &answers, &examples) => played,
        () = stop.cancelled() => Ok(Vec::new()),
    };
    let n_wrong = played.as_ref().map(|reports| print_reports(reports, options)).unwrap_or(Ok(0));
    if played.is_ok() && !flags.once && !stop.is_cancelled() {
        output::message(&format!(
            "serving until Ctrl-C; open the console, or try the command line\n  console     {url}/ui/\n  docs        {url}/docs\n  windlass run list\n  windlass flow list"
        ));
        if flags.open {
            open(&format!("{url}/ui/"));
        }
        stop.cancelled().await;
    }
    stop.cancel();
    working.await?.context("the worker broke")?;
    server.until_stopped(DRAIN).await?;
    played?;
    Ok(if n_wrong? == 0 { Exit::Done } else { Exit::Failed })
}

async fn config(flags: &DevArgs, examples: &Examples) -> Result<ServerConfig> {
    let once = flags.once;
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listen = match &flags.listen {
        Some(text) => address(text).map_err(|reason| invalid(format!("--listen: {reason}")))?,
        None if once || tokio::net::TcpListener::bind(local(PORT)).await.is_err() => local(0),
        None => local(PORT),
    };
    let store = match &flags.store {
        Some(text) => StoreLocation::parse(text).map_err(|reason| invalid(format!("--store: {reason}")))?,
        None if once => StoreLocation::Temporary,
        None => StoreLocation::File(store_file(Path::new(DIR))?),
    };
    Ok(ServerConfig {
        listen,
        store,
        queue: QueueBackend::Memory,
        // A temporary store need not survive a loss of power.
        durability: if once { Durability::Fast } else { Durability::Strict },
        // A page or a flow from elsewhere must not run commands on a developer's machine.
        scripts: ScriptConfig::new(ScriptPolicy::Only(examples.scripts.clone().into())),
        allow_worker_net: false,
        require_account: false,
        name: "dev".to_owned(),
        worker_ttl: Duration::from_secs(15),
        poll_lease: Duration::from_secs(600),
        worker_refresh: Duration::from_secs(5),
        drain: DRAIN,
        hosts: Vec::new(),
        cors: Vec::new(),
        trusted_proxies: Vec::new(),
        tls: TlsConfig::default(),
        no_auth: flags.no_auth,
        first_key_file: None,
        limits: ServerLimits::default(),
    })
}

/// The file of the store, in a directory that version control leaves alone and other users cannot enter.
fn store_file(dir: &Path) -> Result<PathBuf> {
    let made = DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir);
    made.with_context(|| format!("cannot make {}", dir.display()))?;
    let rights = std::fs::metadata(dir)?.permissions();
    if rights.mode() & 0o777 & !DIR_MODE != 0 {
        let narrowed = std::fs::set_permissions(dir, Permissions::from_mode(DIR_MODE));
        narrowed.with_context(|| format!("cannot close {} to other users", dir.display()))?;
        output::message(&format!(
            "{} was open to other users of this machine: it is closed now",
            dir.display()
        ));
    }
    let ignore = dir.join(".gitignore");
    if !ignore.exists() {
        std::fs::write(&ignore, "*\n").with_context(|| format!("cannot write {}", ignore.display()))?;
    }
    Ok(dir.join("windlass.db"))
}

/// A push and pull worker for all services of the examples.
async fn start_worker(
    client: &Client,
    answers: &Arc<ScriptedAnswers>,
    examples: &Examples,
    stop: CancellationToken,
) -> Result<JoinHandle<std::io::Result<()>>> {
    let (listener, url) = bind("http://127.0.0.1:0").await.context("cannot listen for calls")?;
    let mut worker = Worker::new(client.clone(), WORKER).listen(listener, &url).grace(Duration::from_secs(1));
    for service in examples.services() {
        let answers = Arc::clone(answers);
        worker = worker.service(service, move |call| {
            let answers = Arc::clone(&answers);
            async move { answers.answer(call).await }
        });
    }
    let working = tokio::spawn(worker.run(stop));
    play::until_registered(client, WORKER, &url).await?;
    Ok(working)
}

/// The outcome of one example.
struct ExampleReport {
    flow: String,
    form: Form,
    ending: ExampleOutcome,
    /// Empty = as expected.
    differences: Vec<String>,
}

async fn play(client: &Client, answers: &ScriptedAnswers, examples: &Examples) -> Result<Vec<ExampleReport>> {
    for (name, text) in &examples.texts {
        crate::flow::ensure(client, name, text.clone())
            .await
            .with_context(|| format!("cannot publish `{name}`"))?;
    }
    let mut reports = Vec::with_capacity(examples.played.len());
    for example in &examples.played {
        reports.push(report(client, answers, example).await?);
    }
    Ok(reports)
}

async fn report(client: &Client, answers: &ScriptedAnswers, example: &Example) -> Result<ExampleReport> {
    answers.begin(example.script.answers.clone());
    let ending = play::play(client, example).await?;
    let differences = expect::differences(&example.script.expect, &ending);
    Ok(ExampleReport { flow: example.name.clone(), form: example.form, ending, differences })
}

/// Prints the reports; returns the number of examples with differences.
fn print_reports(reports: &[ExampleReport], options: &GlobalArgs) -> Result<usize> {
    let objects: Vec<Value> = reports.iter().map(object).collect();
    let rows: Vec<[String; 6]> = reports.iter().map(row).collect();
    let out = options.print();
    match out.format() {
        output::OutputFormat::Table if !out.quiet => {
            out.table(["flow", "form", "status", "ms", "as expected", "result"], &rows)?;
        }
        output::OutputFormat::Table
        | output::OutputFormat::Json
        | output::OutputFormat::Jsonl
        | output::OutputFormat::Yaml => {
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

fn row(report: &ExampleReport) -> [String; 6] {
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

fn object(report: &ExampleReport) -> Value {
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

/// Opens a browser; without one, the printed link stays.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if let Err(error) = tokio::process::Command::new(program).arg(url).spawn() {
        output::message(&format!("cannot open a browser ({program}: {error})"));
    }
}
