//! The second stage: it restricts itself and becomes the script.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Resource, Rlimit, Uid, getppid, getrlimit, getuid, setrlimit, setsid};
use serde::{Deserialize, Serialize};

use super::descendants::n_tasks_of;
use super::{ExecOrder, FAILED, ScriptStartFailure, read_value, write_line};
use crate::calls::script::limits::DESCRIPTORS_MAX;
use crate::calls::script::user::ScriptUser;

/// The order of the second stage, the first frame in its stdin.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PipedOrder {
    pub(super) exec: ExecOrder,
    /// The process that must still be the parent.
    pub(super) supervisor: i32,
    /// Takes the reason if the script cannot be started.
    pub(super) failure_file: PathBuf,
}

pub(super) fn exec() -> ExitCode {
    let Err(error) = try_exec();
    // Only a supervisor that is gone is not told.
    drop(error);
    ExitCode::from(FAILED)
}

fn try_exec() -> io::Result<std::convert::Infallible> {
    // A duplicate has no buffer: the bytes after the frame are left to the script.
    let stdin = File::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let PipedOrder { exec, supervisor, failure_file } = read_value(&stdin)?;
    // Before the user changes, who may not open it.
    let failure_file = File::options().append(true).open(failure_file)?;
    let mut command = Command::new(&exec.program);
    command.args(&exec.args).env_clear().envs(&exec.env).current_dir(&exec.work_dir);
    let error = match restrict(&exec, supervisor) {
        Ok(()) => command.exec(),
        Err(error) => error,
    };
    write_line(failure_file, &ScriptStartFailure::of(&error))?;
    Err(error)
}

fn restrict(exec: &ExecOrder, supervisor: i32) -> io::Result<()> {
    setsid()?;
    let limits = &exec.limits;
    lower(Resource::Core, Some(0))?;
    lower(Resource::Nofile, Some(DESCRIPTORS_MAX))?;
    lower(Resource::Fsize, limits.file_bytes())?;
    lower(Resource::Data, limits.memory_bytes())?;
    if let Some(n) = limits.processes() {
        // The system counts all processes and threads of the user, also those that are not of this script.
        let uid = exec.user.map_or_else(|| getuid().as_raw(), |user| user.uid);
        lower(Resource::Nproc, Some(n.saturating_add(n_tasks_of(uid))))?;
    }
    if let Some(user) = exec.user {
        become_user(user)?;
    }
    restrict_by_parent(supervisor)
}

/// Lowers a limit for good; never raises it.
fn lower(resource: Resource, to: Option<u64>) -> io::Result<()> {
    let Some(to) = to else { return Ok(()) };
    let to = getrlimit(resource).maximum.map_or(to, |most| most.min(to));
    Ok(setrlimit(resource, Rlimit { current: Some(to), maximum: Some(to) })?)
}

/// Gives up all rights of this user; it is the only thread.
fn become_user(user: ScriptUser) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), rustix::process::Gid::from_raw(user.gid));
    #[cfg(target_os = "linux")]
    {
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        Ok(())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (uid, gid);
        Err(io::Error::new(io::ErrorKind::InvalidInput, "`script_user` needs linux"))
    }
}

/// After the change of the user, which resets it: this process dies with the supervisor, and programs that run as
/// another user (sudo) give the script no other rights: the supervisor could not kill them.
fn restrict_by_parent(supervisor: i32) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::thread::set_no_new_privs(true)?;
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    }
    // The signal does not come for a parent that was gone before.
    if getppid().map(Pid::as_raw_nonzero).map(i32::from) != Some(supervisor) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the supervisor of the script is gone"));
    }
    Ok(())
}
