//! Calls to scripts on this machine. Off unless whoever started the server allowed them.
//!
//! A script runs in a process group of its own, in a directory of its own that is removed afterwards, and sees
//! nothing of the server's environment but `PATH` and `LANG`. Nothing goes through a shell unless the script is one.
//! When it ends, its time is up, or nobody wants it any more, the whole group is killed. A process that left the
//! group on purpose is not found; it keeps nobody waiting.

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
use windlass_engine::input::Outcome;
use windlass_engine::plan::{OutputMode, Script, StdinMode};
use windlass_engine::retry::FaultKind;
use windlass_engine::text::excerpt;

use super::output::{Excess, Output};
use super::{Limit, failed, failed_for_good};
use crate::Runtime;
use crate::log::Log;

mod workshop;

use workshop::Workshop;

/// Bytes of a result.
const RESULT_BYTES_MAX: usize = 1 << 20;
/// Bytes of a log that are kept: its end says what went wrong.
const LOG_BYTES_MAX: usize = 64 << 10;
/// Lines of a log that go into a message, and their bytes.
const LAST_LINES: usize = 10;
const LAST_BYTES: usize = 2_000;
/// How long the pipes of a script that has ended are read: what it wrote is there already, and whoever still holds
/// them open is not waited for.
const DRAIN: Duration = Duration::from_secs(1);

/// How a script ended.
enum Ended {
    Exited(ExitStatus),
    TooLong,
    TooMuch,
    Unknown(io::Error),
}

impl Runtime {
    /// Runs a script and says how it ended, and what it wrote to its log.
    pub(super) async fn call_script(&self, order: &Order, script: &Script, limit: Limit) -> (Outcome, Log) {
        if !self.settings().allow_scripts {
            let message = "scripts are off: start the server with --allow-scripts";
            return (failed_for_good(FaultKind::Error, message), Log::default());
        }
        let turn = self.caller().scripts.wait(order.priority);
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
struct Started {
    child: Child,
    group: Group,
    pipes: JoinSet<()>,
    result: Output,
    log: Output,
    workshop: Workshop,
}

async fn start(order: &Order, script: &Script) -> Result<Started, Outcome> {
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
    let group = Group::of(&child);
    let result = Output::new(RESULT_BYTES_MAX, Excess::Stops);
    let log = Output::new(LOG_BYTES_MAX, Excess::Scrolls);
    let mut pipes = JoinSet::new();
    if let (Some(mut to), Some(input)) = (child.stdin.take(), input) {
        pipes.spawn(async move {
            // A script need not read what it is given.
            let _ = to.write_all(&input).await;
        });
    }
    if let Some(from) = child.stdout.take() {
        pipes.spawn(result.clone().read(from));
    }
    if let Some(from) = child.stderr.take() {
        pipes.spawn(log.clone().read(from));
    }
    Ok(Started { child, group, pipes, result, log, workshop })
}

impl Started {
    async fn wait(&mut self, limit: Limit) -> Ended {
        let ended = tokio::select! {
            biased;
            exited = self.child.wait() => exited.map_or_else(Ended::Unknown, Ended::Exited),
            () = self.result.is_over.cancelled() => Ended::TooMuch,
            () = tokio::time::sleep_until(limit.ends_at) => Ended::TooLong,
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
            Ended::Exited(_) if self.result.is_over.is_cancelled() => Ended::TooMuch,
            ended @ (Ended::Exited(_) | Ended::TooLong | Ended::TooMuch | Ended::Unknown(_)) => ended,
        }
    }
}

/// A process group, killed at the latest when this is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(leader: &Child) -> Self {
        Group(leader.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Kills whoever is left. The number of a group is not given to another one while somebody is in it; when nobody
    /// is, this comes within moments of the leader's end, long before numbers come round again.
    fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            // An error says that nobody is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What is run: the code by the interpreter of its language, or by the command, or the command alone.
fn command(script: &Script, workshop: &Workshop) -> Result<Command, Outcome> {
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

fn interpreter(language: &str) -> Result<&'static str, Outcome> {
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

fn stdin(order: &Order) -> Result<Vec<u8>, Outcome> {
    let mut input = json!({"input": &*order.input, "params": &*order.params.merged()});
    if let Some(memo) = &order.memo {
        input["memo"] = Value::clone(memo);
    }
    serde_json::to_vec(&input).map_err(|error| {
        failed_for_good(FaultKind::Input, format!("the input cannot be written as json: {error}"))
    })
}

fn not_started(script: &Script, error: &io::Error) -> Outcome {
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

fn outcome(ended: &Ended, mode: OutputMode, result: &[u8], log: &str, limit: Limit) -> Outcome {
    let with_log = |what: String| match last_lines(log) {
        "" => what,
        lines => format!("{what}: {lines}"),
    };
    match ended {
        Ended::Exited(status) if status.success() => read_result(mode, result),
        Ended::Exited(status) => failed(FaultKind::Error, with_log(format!("the script failed ({status})"))),
        Ended::TooLong => {
            let what = format!("the script did not end within {} ms and was killed", limit.ms());
            failed(FaultKind::Timeout, with_log(what))
        }
        Ended::TooMuch => {
            let message =
                format!("the script wrote more than {RESULT_BYTES_MAX} bytes to stdout: write less");
            failed_for_good(FaultKind::Error, message)
        }
        Ended::Unknown(error) => {
            failed(FaultKind::Error, with_log(format!("how the script ended is not known ({error})")))
        }
    }
}

fn read_result(mode: OutputMode, result: &[u8]) -> Outcome {
    match mode {
        OutputMode::Text => {
            Outcome::Done(Arc::new(Value::String(text(result).trim_end_matches(['\r', '\n']).to_owned())))
        }
        OutputMode::Json => match serde_json::from_slice(result) {
            Ok(value) => Outcome::Done(Arc::new(value)),
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
