//! Calls to scripts on this machine. Disabled unless the operator allows them.
//!
//! A script runs under a supervisor ([`launcher`] explains it), in a session and a directory of its own that is removed
//! afterwards, with limits, and sees nothing of the server's environment but `PATH` and `LANG`. Nothing goes through a
//! shell unless the script is one. When it ends, times out or is canceled, or when the server dies, every process that
//! it started is killed. The next attempt of the same visit waits for that.

pub mod launcher;
mod limits;
mod script_dir;
mod user;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use windlass_engine::effect::CallSpec;
use windlass_engine::event::Level;
use windlass_engine::input::CallOutcome;
use windlass_engine::json::check_json;
use windlass_engine::plan::{OutputMode, Script, StdinMode};
use windlass_engine::retry::FaultKind;
use windlass_engine::text::excerpt;

use super::output::{ExcessOutput, ScriptOutput};
use super::{CallLimit, failed, failed_for_good};
use crate::calls::Calls;
use crate::calls::log::{Log, LoggedLine};
use crate::part::RuntimePart;
use crate::{ScriptPolicy, Settings};

use launcher::{ExecOrder, LauncherStage, SuperviseOrder, SupervisorReport, frame, frame_of};
use script_dir::ScriptDir;

pub use limits::ScriptLimits;
pub use user::{ScriptUser, runs_as_root};

/// Bytes of a result.
const RESULT_BYTES_MAX: usize = 1 << 20;
/// Bytes of a log that are kept: its end shows the error.
const LOG_BYTES_MAX: usize = 64 << 10;
/// Lines of a log that go into a message, and their bytes.
const LAST_LINES: usize = 10;
const LAST_BYTES: usize = 2_000;
/// How long the end of a script is waited for after the order to kill it: its processes are gone within moments, unless
/// one waits for a device.
const DRAIN: Duration = Duration::from_secs(1);
/// How often a server looks whether another one may take over its calls.
const LOOK_AROUND: Duration = Duration::from_millis(500);

/// Makes the environment and the memory of this process unreadable for other processes of its user, such as scripts.
/// The system then writes no core dump of it either. Root may still read everything.
pub fn hide_process() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// How a script ended.
enum ScriptEnd {
    Exited(ExitStatus),
    NotStarted(io::Error),
    /// An earlier attempt of the visit did not end in time.
    NoTurn,
    TooLong,
    TooMuch,
    /// Another server may be about to make the call.
    ServerLost,
    Unknown(String),
}

impl Calls {
    /// Runs a script; returns its outcome and its log.
    pub(super) async fn call_script(
        &self,
        spec: &CallSpec,
        script: &Script,
        limit: CallLimit,
    ) -> (CallOutcome, Log) {
        if let Some(message) = self.settings().scripts.refusal(script) {
            return (failed_for_good(FaultKind::Error, message), Log::default());
        }
        let turn = self.state().scripts.wait(spec.priority);
        let turn = tokio::time::timeout_at(limit.ends_at, turn).await;
        let Ok(_place) = turn else {
            let message = format!("so many scripts run that this one had no turn within {} ms", limit.ms());
            return (failed(FaultKind::Timeout, message), Log::default());
        };
        if !self.state().open.take_in_hand(spec.run, spec.fence) {
            return (CallOutcome::Canceled, Log::default());
        }
        let limit = if script.timeout_ms > 0 { limit.at_most(script.timeout_ms) } else { limit };
        let mut started = match start(spec, script, self.settings()).await {
            Ok(started) => started,
            Err(outcome) => return (outcome, Log::default()),
        };
        let ended = tokio::select! {
            biased;
            ended = started.wait(limit) => ended,
            () = self.other_server_may_call() => ScriptEnd::ServerLost,
        };
        started.close().await;
        let (result, log) = (started.result.take(), text(&started.log.take()));
        let ended = match ended {
            ScriptEnd::Exited(_) if started.result.is_over.is_cancelled() => ScriptEnd::TooMuch,
            ended => ended,
        };
        let outcome = outcome(&ended, script, &result, &log, limit, self.settings().script_limits);
        let lines = warning(script, &ended, &result).into_iter().collect();
        (outcome, Log { lines, ..Log::of_text(log) })
    }

    /// Waits until this server may make no calls, because others may take it for dead.
    async fn other_server_may_call(&self) {
        while self.cluster().may_call() {
            tokio::time::sleep(LOOK_AROUND).await;
        }
    }

    /// Removes the directories that scripts of killed servers left on this machine.
    pub(crate) async fn remove_script_leftovers(self) {
        if self.settings().scripts == ScriptPolicy::Off {
            return;
        }
        let removing =
            tokio::task::spawn_blocking(|| script_dir::remove_leftovers(&script_dir::open_root()?));
        match removing.await {
            Ok(Ok(0)) | Err(_) => {}
            Ok(Ok(n)) => tracing::info!("removed {n} directories that killed scripts left"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "directories that killed scripts left cannot be removed")
            }
        }
    }
}

/// A script at work. Dropped, it is killed with everything it started.
struct RunningScript {
    supervisor: Child,
    /// The order and the input of the script.
    first: Vec<u8>,
    /// Its end is the order to kill the script.
    control: Option<OwnedWriteHalf>,
    reports: Lines<BufReader<OwnedReadHalf>>,
    pipes: JoinSet<()>,
    result: ScriptOutput,
    log: ScriptOutput,
}

async fn start(spec: &CallSpec, script: &Script, settings: &Settings) -> Result<RunningScript, CallOutcome> {
    let Some((program, args)) = settings.script_launcher.split_first() else {
        let message = "this program has no launcher of scripts: set `script_launcher` of its settings";
        return Err(failed_for_good(FaultKind::Error, message));
    };
    let root = tokio::task::spawn_blocking(script_dir::open_root).await.map_err(io::Error::other);
    let root = root.flatten().map_err(|error| {
        failed(FaultKind::Error, format!("no directory could be made for the script: {error}"))
    })?;
    let dir = ScriptDir::of_visit(root, spec.run, &spec.key);
    let supervise = supervise_order(script, dir, settings)?;
    let input = match script.stdin_mode {
        StdinMode::Json => stdin(spec)?,
        StdinMode::None => Vec::new(),
    };
    let mut first =
        frame_of(&supervise).map_err(|error| failed_for_good(FaultKind::Input, error.to_string()))?;
    first.extend(frame(&input));
    let launched =
        |error| failed(FaultKind::Error, format!("the launcher of scripts cannot be started: {error}"));
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(launched)?;
    ours.set_nonblocking(true).map_err(launched)?;
    let (reports, control) = UnixStream::from_std(ours).map_err(launched)?.into_split();
    let mut supervisor = Command::new(program)
        .args(args)
        .arg(LauncherStage::Supervise.word())
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(launched)?;
    let result = ScriptOutput::new(RESULT_BYTES_MAX, ExcessOutput::Stops);
    let log = ScriptOutput::new(LOG_BYTES_MAX, ExcessOutput::Scrolls);
    let mut pipes = JoinSet::new();
    if let Some(from) = supervisor.stdout.take() {
        pipes.spawn(result.clone().read(from));
    }
    if let Some(from) = supervisor.stderr.take() {
        pipes.spawn(log.clone().read(from));
    }
    let reports = BufReader::new(reports).lines();
    Ok(RunningScript { supervisor, first, control: Some(control), reports, pipes, result, log })
}

impl RunningScript {
    async fn wait(&mut self, limit: CallLimit) -> ScriptEnd {
        let RunningScript { first, control, reports, result, .. } = self;
        let mut is_started = false;
        let running = async {
            if let Some(control) = control {
                // A launcher that is gone says so by its missing report.
                let _ = control.write_all(&std::mem::take(first)).await;
            }
            read_reports(reports, &mut is_started).await
        };
        tokio::select! {
            biased;
            ended = running => ended,
            () = result.is_over.cancelled() => ScriptEnd::TooMuch,
            () = tokio::time::sleep_until(limit.ends_at) => {
                if is_started { ScriptEnd::TooLong } else { ScriptEnd::NoTurn }
            }
        }
    }

    /// Gives the order to kill everything that is left, and reads the rest of the output.
    async fn close(&mut self) {
        drop(self.control.take());
        let closing = async {
            // An error means that the process is gone.
            let _ = self.supervisor.wait().await;
            while self.pipes.join_next().await.is_some() {}
        };
        let _ = tokio::time::timeout(DRAIN, closing).await;
    }
}

/// Reads the supervisor's reports until the last one.
async fn read_reports(reports: &mut Lines<BufReader<OwnedReadHalf>>, is_started: &mut bool) -> ScriptEnd {
    loop {
        let line = match reports.next_line().await {
            Ok(Some(line)) => line,
            Ok(None) => return ScriptEnd::Unknown("its supervisor was killed".to_owned()),
            Err(error) => return ScriptEnd::Unknown(error.to_string()),
        };
        match serde_json::from_str(&line) {
            Ok(SupervisorReport::Started) => *is_started = true,
            Ok(SupervisorReport::Ended { status }) => return ScriptEnd::Exited(ExitStatus::from_raw(status)),
            Ok(SupervisorReport::NotStarted(failure)) => return ScriptEnd::NotStarted(failure.error()),
            Err(error) => return ScriptEnd::Unknown(error.to_string()),
        }
    }
}

/// The command line: the code by the interpreter of its language, or by the command, or the command alone.
fn supervise_order(
    script: &Script,
    dir: ScriptDir,
    settings: &Settings,
) -> Result<SuperviseOrder, CallOutcome> {
    let code = (!script.code.is_empty())
        .then(|| (format!("script{}", extension(&script.language)), script.code.clone()));
    let file = code.as_ref().map(|(name, _)| dir.path().join(name).to_string_lossy().into_owned());
    let given = script.args.iter().cloned();
    let (program, args): (&str, Vec<String>) = match (file, script.language.as_str()) {
        (Some(file), "") if !script.cmd.is_empty() => (&script.cmd, given.chain([file]).collect()),
        (Some(file), language) => (interpreter(language)?, [file].into_iter().chain(given).collect()),
        (None, _) => (&script.cmd, given.collect()),
    };
    if program.is_empty() {
        let message = "the script says neither `cmd` nor `code`: give one of them";
        return Err(failed_for_good(FaultKind::Error, message));
    }
    if !script.work_dir.is_empty() && !Path::new(&script.work_dir).is_dir() {
        let message = format!("`work_dir` {} is not a directory on this server", excerpt(&script.work_dir));
        return Err(failed_for_good(FaultKind::Error, message));
    }
    let own = [
        ("PATH", inherited("PATH", "/usr/local/bin:/usr/bin:/bin")),
        ("LANG", inherited("LANG", "C.UTF-8")),
        ("HOME", dir.path().to_string_lossy().into_owned()),
    ];
    let mut env: BTreeMap<String, String> = own.map(|(name, value)| (name.to_owned(), value)).into();
    env.extend(script.env.clone());
    let exec = ExecOrder {
        program: program.to_owned(),
        args,
        env,
        work_dir: if script.work_dir.is_empty() { dir.path() } else { PathBuf::from(&script.work_dir) },
        limits: settings.script_limits,
        user: settings.script_user,
    };
    Ok(SuperviseOrder { launcher: settings.script_launcher.clone(), dir, code, exec })
}

/// Some interpreters go by it.
fn extension(language: &str) -> &'static str {
    match language {
        "python" => ".py",
        "javascript" | "node" => ".js",
        "bash" | "sh" => ".sh",
        _ => "",
    }
}

fn inherited(name: &str, otherwise: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| otherwise.to_owned())
}

fn interpreter(language: &str) -> Result<&'static str, CallOutcome> {
    match language {
        "python" => Ok("python3"),
        "javascript" | "node" => Ok("node"),
        "bash" => Ok("bash"),
        "sh" => Ok("sh"),
        other => Err(failed_for_good(
            FaultKind::Error,
            format!("language `{}` is not known: use python, javascript, node, bash or sh", excerpt(other)),
        )),
    }
}

fn stdin(spec: &CallSpec) -> Result<Vec<u8>, CallOutcome> {
    let mut input = json!({"input": &*spec.input, "params": spec.params});
    if let Some(memo) = &spec.memo {
        input["memo"] = Value::clone(memo);
    }
    serde_json::to_vec(&input).map_err(|error| {
        failed_for_good(FaultKind::Input, format!("the input cannot be written as json: {error}"))
    })
}

fn not_started(script: &Script, error: &io::Error) -> CallOutcome {
    let name =
        if script.code.is_empty() || script.language.is_empty() { &script.cmd } else { &script.language };
    let name = excerpt(name);
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput => {
            let message =
                format!("`{name}` cannot be run on this server: {error}; install it or name another");
            failed_for_good(FaultKind::Error, message)
        }
        _ => failed(FaultKind::Error, format!("`{name}` could not be started: {error}")),
    }
}

fn outcome(
    ended: &ScriptEnd,
    script: &Script,
    result: &[u8],
    log: &str,
    limit: CallLimit,
    limits: ScriptLimits,
) -> CallOutcome {
    let with_log = |what: String| match last_lines(log) {
        "" => what,
        lines => format!("{what}: {lines}"),
    };
    match ended {
        ScriptEnd::Exited(status) if status.success() => {
            CallOutcome::Done(Arc::new(read_result(script.output_mode, result)))
        }
        ScriptEnd::Exited(status) => {
            let hint = limits.hint(*status, last_lines(log)).map(|hint| format!("; perhaps {hint}"));
            let what = format!("the script failed ({status}{})", hint.unwrap_or_default());
            failed(FaultKind::Error, with_log(what))
        }
        ScriptEnd::NotStarted(error) => not_started(script, error),
        ScriptEnd::NoTurn => {
            let what = "an earlier attempt of the script still lives on this machine";
            failed(FaultKind::Timeout, format!("{what}: it was not started within {} ms", limit.ms()))
        }
        ScriptEnd::TooLong => {
            let what = format!("the script did not end within {} ms and was killed", limit.ms());
            failed(FaultKind::Timeout, with_log(what))
        }
        ScriptEnd::TooMuch => {
            let message =
                format!("the script wrote more than {RESULT_BYTES_MAX} bytes to stdout: write less");
            failed_for_good(FaultKind::Error, message)
        }
        ScriptEnd::ServerLost => CallOutcome::ServerLost,
        ScriptEnd::Unknown(reason) => {
            failed(FaultKind::Error, with_log(format!("how the script ended is not known ({reason})")))
        }
    }
}

/// The output of a script as its result.
fn read_result(mode: OutputMode, output: &[u8]) -> Value {
    let json = match mode {
        OutputMode::Auto | OutputMode::Json => read_json(output).ok(),
        OutputMode::Text => None,
    };
    json.unwrap_or_else(|| Value::String(without_last_newline(text(output))))
}

/// The warning about the output of a script that should be JSON and is not; its result is text then.
fn warning(script: &Script, ended: &ScriptEnd, output: &[u8]) -> Option<LoggedLine> {
    let is_well = matches!(ended, ScriptEnd::Exited(status) if status.success());
    if !is_well || script.output_mode != OutputMode::Json {
        return None;
    }
    let error = read_json(output).err()?;
    let message =
        format!("stdout is not JSON, so the result is text ({error}): print JSON or leave `output_mode` out");
    Some(LoggedLine { level: Level::Warn, message, data: Value::Null })
}

/// Commands end their output with a newline that is no part of it.
fn without_last_newline(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

fn read_json(bytes: &[u8]) -> Result<Value, String> {
    check_json(bytes).map_err(|flaw| flaw.to_string())?;
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The end of a log that fits into a message.
fn last_lines(log: &str) -> &str {
    let log = log.trim();
    let from = log.rmatch_indices('\n').nth(LAST_LINES - 1).map_or(0, |(at, _)| at + 1);
    let from = from.max(log.ceil_char_boundary(log.len().saturating_sub(LAST_BYTES)));
    log[from..].trim_start()
}

#[cfg(test)]
mod tests;
