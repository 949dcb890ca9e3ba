//! Exit codes of all commands, and errors that carry one.

use std::fmt;
use std::process::ExitCode;

use windlass_sdk::ClientError;

/// The outcome of a command, as the shell sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The command succeeded; an awaited run or job completed.
    Done = 0,
    /// The command failed or was refused; an awaited run or job failed.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The server cannot be reached, or takes no requests now.
    Unreachable = 3,
    /// A definition or the configuration has errors.
    Invalid = 4,
    /// The awaited run or job was canceled.
    Canceled = 5,
    /// The awaited run or job did not end in time.
    TimedOut = 124,
    /// SIGINT ended the command: 128 plus the number of the signal.
    Interrupted = 130,
}

/// All exit codes, for the help of `windlass`.
pub(crate) const TABLE: &str = "Exit codes:
  0    done; an awaited run or job completed
  1    failed or refused; an awaited run or job failed
  2    the command line is wrong
  3    the server cannot be reached, or takes no requests now
  4    a definition or the configuration has errors
  5    the awaited run or job was canceled
  124  the awaited run or job did not end in time
  130  interrupted";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// An error with an exit code of its own; every other error exits with 1, or with 3 if it came from the client and
/// is temporary.
#[derive(Debug)]
pub(crate) struct ExitError {
    exit: Exit,
    message: String,
}

impl fmt::Display for ExitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExitError {}

/// An error of the command line that clap cannot find.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    ExitError { exit: Exit::Usage, message: message.into() }.into()
}

/// An error of the configuration.
pub(crate) fn invalid(message: impl Into<String>) -> anyhow::Error {
    ExitError { exit: Exit::Invalid, message: message.into() }.into()
}

/// The error of a command that stopped waiting.
pub(crate) fn timed_out(message: impl Into<String>) -> anyhow::Error {
    ExitError { exit: Exit::TimedOut, message: message.into() }.into()
}

/// The exit code of an error.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    if let Some(own) = error.chain().find_map(|cause| cause.downcast_ref::<ExitError>()) {
        return own.exit;
    }
    match error.chain().find_map(|cause| cause.downcast_ref::<ClientError>()) {
        Some(answered) if answered.is_temporary() => Exit::Unreachable,
        Some(answered) if answered.code == "invalid_definition" => Exit::Invalid,
        Some(_) | None => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    const ALL: [Exit; 8] = [
        Exit::Done,
        Exit::Failed,
        Exit::Usage,
        Exit::Unreachable,
        Exit::Invalid,
        Exit::Canceled,
        Exit::TimedOut,
        Exit::Interrupted,
    ];

    #[test]
    fn the_help_lists_every_exit_code() {
        for exit in ALL {
            assert!(TABLE.contains(&format!("\n  {:<3}", exit as u8)), "{exit:?}");
        }
        assert_eq!(TABLE.lines().count(), ALL.len() + 1);
    }

    #[test]
    fn an_error_keeps_its_exit_code_under_a_context() {
        let error = Err::<(), _>(usage("no time is given")).context("--cron").unwrap_err();
        assert_eq!(exit_of(&error), Exit::Usage);
        assert_eq!(exit_of(&anyhow::anyhow!("no such file")), Exit::Failed);
    }
}
