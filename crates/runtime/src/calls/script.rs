//! Calls to scripts on this machine. Disabled unless the operator allows them.
//!
//! A script runs in a process group of its own, in a directory of its own that is removed afterwards, and sees nothing
//! of the server's environment but `PATH` and `LANG`. Nothing goes through a shell unless the script is one. When it
//! ends, times out or is canceled, the whole group is killed. A process that left the group on purpose is not found;
//! the server does not wait for it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use windlass_engine::effect::Order;
use windlass_engine::input::CallOutcome;
use windlass_engine::json::check_json;
use windlass_engine::plan::{OutputMode, Script, StdinMode};
use windlass_engine::retry::FaultKind;
use windlass_engine::text::excerpt;

use super::output::{ExcessOutput, ScriptOutput};
use super::{CallLimit, failed, failed_for_good};
use crate::calls::Calls;
use crate::calls::log::Log;
use crate::part::RuntimePart;

mod workshop;

use workshop::Workshop;

/// Bytes of a result.
const RESULT_BYTES_MAX: usize = 1 << 20;
/// Bytes of a log that are kept: its end shows the error.
const LOG_BYTES_MAX: usize = 64 << 10;
/// Lines of a log that go into a message, and their bytes.
const LAST_LINES: usize = 10;
const LAST_BYTES: usize = 2_000;
/// How long the pipes of an ended script are read: its output is there already, and the server does not wait for
/// processes that still hold the pipes open.
const DRAIN: Duration = Duration::from_secs(1);

/// How a script ended.
enum ScriptEnd {
    Exited(ExitStatus),
    TooLong,
    TooMuch,
    Unknown(io::Error),
}

impl Calls {
    /// Runs a script; returns its outcome and its log.
    pub(super) async fn call_script(
        &self,
        order: &Order,
        script: &Script,
        limit: CallLimit,
    ) -> (CallOutcome, Log) {
        if let Some(message) = self.settings().scripts.refusal(script) {
            return (failed_for_good(FaultKind::Error, message), Log::default());
        }
        let turn = self.state().scripts.wait(order.priority);
        let turn = tokio::time::timeout_at(limit.ends_at, turn).await;
        let Ok(_place) = turn else {
            let message = format!("so many scripts run that this one had no turn within {} ms", limit.ms());
            return (failed(FaultKind::Timeout, message), Log::default());
        };
        let limit = if script.timeout_ms > 0 { limit.at_most(script.timeout_ms) } else { limit };
        let mut started = match start(order, script).await {
            Ok(started) => started,
            Err(outcome) => return (outcome, Log::default()),
        };
        let ended = started.wait(limit).await;
        let (result, log) = (started.result.take(), text(&started.log.take()));
        let outcome = outcome(&ended, script.output_mode, &result, &log, limit);
        started.workshop.close().await;
        (outcome, Log::of_text(log))
    }
}

/// A script at work. Dropped, it is killed with everything it started.
struct RunningScript {
    child: Child,
    group: ProcessGroup,
    pipes: JoinSet<()>,
    result: ScriptOutput,
    log: ScriptOutput,
    workshop: Workshop,
}

async fn start(order: &Order, script: &Script) -> Result<RunningScript, CallOutcome> {
    let workshop = Workshop::open(script).await.map_err(|error| {
        failed(FaultKind::Error, format!("no directory could be made for the script: {error}"))
    })?;
    let mut command = command(script, &workshop)?;
    let input = match script.stdin_mode {
        StdinMode::Json => Some(stdin(order)?),
        StdinMode::None => None,
    };
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn().map_err(|error| not_started(script, &error))?;
    let group = ProcessGroup::of(&child);
    let result = ScriptOutput::new(RESULT_BYTES_MAX, ExcessOutput::Stops);
    let log = ScriptOutput::new(LOG_BYTES_MAX, ExcessOutput::Scrolls);
    let mut pipes = JoinSet::new();
    if let (Some(mut to), Some(input)) = (child.stdin.take(), input) {
        pipes.spawn(async move {
            // A script need not read its input.
            let _ = to.write_all(&input).await;
        });
    }
    if let Some(from) = child.stdout.take() {
        pipes.spawn(result.clone().read(from));
    }
    if let Some(from) = child.stderr.take() {
        pipes.spawn(log.clone().read(from));
    }
    Ok(RunningScript { child, group, pipes, result, log, workshop })
}

impl RunningScript {
    async fn wait(&mut self, limit: CallLimit) -> ScriptEnd {
        let ended = tokio::select! {
            biased;
            exited = self.child.wait() => exited.map_or_else(ScriptEnd::Unknown, ScriptEnd::Exited),
            () = self.result.is_over.cancelled() => ScriptEnd::TooMuch,
            () = tokio::time::sleep_until(limit.ends_at) => ScriptEnd::TooLong,
        };
        self.group.kill();
        let pipes = &mut self.pipes;
        let closing = async {
            // After an exit this has been answered already.
            let _ = self.child.wait().await;
            while pipes.join_next().await.is_some() {}
        };
        let _ = tokio::time::timeout(DRAIN, closing).await;
        match ended {
            ScriptEnd::Exited(_) if self.result.is_over.is_cancelled() => ScriptEnd::TooMuch,
            ended @ (ScriptEnd::Exited(_)
            | ScriptEnd::TooLong
            | ScriptEnd::TooMuch
            | ScriptEnd::Unknown(_)) => ended,
        }
    }
}

/// A process group, killed at the latest when this is dropped.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn of(leader: &Child) -> Self {
        ProcessGroup(leader.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Kills the remaining processes. The system does not reuse a group id while a process is in the group; when the
    /// group is empty, this runs within moments of the leader's end, long before ids wrap around.
    fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            // An error means that the group is empty.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The command line: the code by the interpreter of its language, or by the command, or the command alone.
fn command(script: &Script, workshop: &Workshop) -> Result<Command, CallOutcome> {
    let (program, mut args): (&str, Vec<OsString>) = match (&workshop.code, script.language.as_str()) {
        (Some(file), "") if !script.cmd.is_empty() => {
            let args = script.args.iter().map(OsString::from);
            (&script.cmd, args.chain([OsString::from(file)]).collect())
        }
        (Some(file), language) => {
            let args = script.args.iter().map(OsString::from);
            (interpreter(language)?, [OsString::from(file)].into_iter().chain(args).collect())
        }
        (None, _) => (&script.cmd, script.args.iter().map(OsString::from).collect()),
    };
    if program.is_empty() {
        let message = "the script says neither `cmd` nor `code` and `language`: give one of them";
        return Err(failed_for_good(FaultKind::Error, message));
    }
    if !script.work_dir.is_empty() && !Path::new(&script.work_dir).is_dir() {
        let message = format!("`work_dir` {} is not a directory on this server", excerpt(&script.work_dir));
        return Err(failed_for_good(FaultKind::Error, message));
    }
    let mut command = Command::new(program);
    command
        .args(args.drain(..))
        .current_dir(if script.work_dir.is_empty() {
            workshop.path.clone()
        } else {
            PathBuf::from(&script.work_dir)
        })
        .env_clear()
        .env("PATH", inherited("PATH", "/usr/local/bin:/usr/bin:/bin"))
        .env("LANG", inherited("LANG", "C.UTF-8"))
        .env("HOME", &workshop.path)
        .envs(&script.env)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    Ok(command)
}

fn inherited(name: &str, otherwise: &str) -> OsString {
    std::env::var_os(name).unwrap_or_else(|| otherwise.into())
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

fn stdin(order: &Order) -> Result<Vec<u8>, CallOutcome> {
    let mut input = json!({"input": &*order.input, "params": order.params});
    if let Some(memo) = &order.memo {
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

fn outcome(ended: &ScriptEnd, mode: OutputMode, result: &[u8], log: &str, limit: CallLimit) -> CallOutcome {
    let with_log = |what: String| match last_lines(log) {
        "" => what,
        lines => format!("{what}: {lines}"),
    };
    match ended {
        ScriptEnd::Exited(status) if status.success() => read_result(mode, result),
        ScriptEnd::Exited(status) => {
            failed(FaultKind::Error, with_log(format!("the script failed ({status})")))
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
        ScriptEnd::Unknown(error) => {
            failed(FaultKind::Error, with_log(format!("how the script ended is not known ({error})")))
        }
    }
}

fn read_result(mode: OutputMode, result: &[u8]) -> CallOutcome {
    match mode {
        OutputMode::Text => {
            CallOutcome::Done(Arc::new(Value::String(text(result).trim_end_matches(['\r', '\n']).to_owned())))
        }
        OutputMode::Json => match read_json(result) {
            Ok(value) => CallOutcome::Done(Arc::new(value)),
            Err(error) => {
                let found = text(result);
                let found = match found.trim() {
                    "" => "nothing".to_owned(),
                    found => format!("`{}`", excerpt(found)),
                };
                let remedy = "print json or set `output_mode: text`";
                failed(
                    FaultKind::Error,
                    format!("the script wrote {found} to stdout, not json ({error}): {remedy}"),
                )
            }
        },
    }
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
