//! The launcher of scripts: two processes between the server and a script.
//!
//! ```text
//! server ──control socket──► supervisor ──pipe──► exec, which becomes the script
//! ```
//!
//! The **supervisor** is the parent of the script. Its stdin is a socket to the server: the server sends the order and
//! keeps the socket open while it wants the script to live. The end of the stream is the order to kill: the system
//! closes the socket of a server that was killed, too. A parent-death signal to the script alone would not do: it
//! follows the *thread* that started the script, and threads of the server's runtime end; and it reaches one process.
//! The supervisor is a child subreaper, so processes that left the script's session become its children when their
//! parents end, and it kills them as well. While any process of the script lives, it and the supervisor hold a lock that
//! is named after the visit: another attempt of the visit on this machine, by this server or the next one, waits for it.
//! The supervisor makes the script's directory and removes it.
//!
//! **Exec** is the same program in the child: it sets the limits, the session, the user and the parent-death signal (for
//! the case that the supervisor itself is killed) on itself, and becomes the script. Its order comes through the pipe
//! that the script then reads its input from: neither stage has anything of the script in its environment, so a script
//! cannot load a library into a launcher of another user.
//!
//! Limits of this design: a process that cannot be killed (it waits for a device) keeps the lock until it ends; if the
//! supervisor itself is killed, processes that the script started in the background live on with the lock; without
//! Linux there is neither subreaper nor parent-death signal, and only the script's process group is killed.

mod descendants;
mod exec;
mod supervisor;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::limits::ScriptLimits;
use super::script_dir::ScriptDir;
use super::user::ScriptUser;

/// The exit code of a launcher that could not do its work; the reason is in its report.
const FAILED: u8 = 125;
/// Bytes of one frame: more than any value may have.
const FRAME_BYTES_MAX: u64 = 256 << 20;

/// The stages of the launcher, by their words on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LauncherStage {
    Supervise,
    Exec,
}

impl LauncherStage {
    pub const ALL: [LauncherStage; 2] = [LauncherStage::Supervise, LauncherStage::Exec];

    pub fn word(self) -> &'static str {
        match self {
            LauncherStage::Supervise => "supervise",
            LauncherStage::Exec => "exec",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        LauncherStage::ALL.into_iter().find(|stage| stage.word() == word)
    }
}

/// Runs one stage of the launcher in this process, which must have done nothing else before.
pub fn run(stage: LauncherStage) -> ExitCode {
    match stage {
        LauncherStage::Supervise => supervisor::supervise(),
        LauncherStage::Exec => exec::exec(),
    }
}

/// An order to the supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SuperviseOrder {
    /// The command line of the launcher, without the stage.
    pub(super) launcher: Vec<String>,
    pub(super) dir: ScriptDir,
    /// The name and the text of the file with the script's code.
    pub(super) code: Option<(String, String)>,
    pub(super) exec: ExecOrder,
}

/// The script's own process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ExecOrder {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) work_dir: PathBuf,
    pub(super) limits: ScriptLimits,
    pub(super) user: Option<ScriptUser>,
}

/// A message of the supervisor, one line of JSON each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SupervisorReport {
    /// No earlier attempt lives any more, and the script was started.
    Started,
    /// The script ended with this wait status; everything it started is dead.
    Ended {
        status: i32,
    },
    NotStarted(ScriptStartFailure),
}

/// The reason why a script did not start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ScriptStartFailure {
    os_error: Option<i32>,
    message: String,
}

impl ScriptStartFailure {
    fn of(error: &io::Error) -> Self {
        ScriptStartFailure { os_error: error.raw_os_error(), message: error.to_string() }
    }

    pub(super) fn error(&self) -> io::Error {
        match self.os_error {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(io::ErrorKind::InvalidInput, self.message.clone()),
        }
    }
}

/// The bytes of a frame: their number, then themselves.
pub(super) fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut framed = Vec::with_capacity(bytes.len() + size_of::<u64>());
    framed.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    framed.extend_from_slice(bytes);
    framed
}

/// A frame with a value.
pub(super) fn frame_of(value: &impl Serialize) -> io::Result<Vec<u8>> {
    Ok(frame(&serde_json::to_vec(value)?))
}

/// Reads one frame and nothing after it.
fn read_frame(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut head = [0; size_of::<u64>()];
    from.read_exact(&mut head)?;
    let n = u64::from_le_bytes(head);
    if n > FRAME_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {n} bytes is too large")));
    }
    let mut bytes = vec![0; usize::try_from(n).unwrap_or(0)];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_value<T: DeserializeOwned>(from: impl Read) -> io::Result<T> {
    Ok(serde_json::from_slice(&read_frame(from)?)?)
}

fn write_line(mut to: impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    to.write_all(&line)
}
