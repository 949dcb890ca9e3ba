//! The supervisor: the parent of one script, which kills everything that the script started.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group};

use super::descendants::kill_descendants;
use super::exec::PipedOrder;
use super::{FAILED, LauncherStage, ScriptStartFailure, SuperviseOrder, SupervisorReport};
use super::{frame_of, read_frame, read_value, write_line};
use crate::calls::script::script_dir::ScriptLock;

/// How often a supervisor looks whether an earlier attempt has ended, or whether the killed are dead.
const POLL: Duration = Duration::from_millis(10);

pub(super) fn supervise() -> ExitCode {
    match rustix::stdio::stdin().try_clone_to_owned().and_then(|control| run(UnixStream::from(control))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(FAILED),
    }
}

fn run(mut control: UnixStream) -> io::Result<()> {
    // Signals of the server's terminal do not concern it, nor the end of the server's session.
    rustix::process::setsid()?;
    become_subreaper()?;
    let order: SuperviseOrder = read_value(&control)?;
    let input = read_frame(&control)?;
    let is_abandoned = Arc::new(AtomicBool::new(false));
    watch(control.try_clone()?, is_abandoned.clone())?;
    let report = match attempt(&order, input, &control, &is_abandoned) {
        Ok(Some(report)) => report,
        Ok(None) => return Ok(()),
        Err(error) => SupervisorReport::NotStarted(ScriptStartFailure::of(&error)),
    };
    write_line(&mut control, &report)
}

/// Orphans of the script become children of this process, so that it finds them.
fn become_subreaper() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Kills the script when the server closes the control socket or dies, also one that is started a moment later.
fn watch(mut control: UnixStream, is_abandoned: Arc<AtomicBool>) -> io::Result<()> {
    let watching = move || {
        let mut byte = [0];
        // The server sends nothing more; an error is an end too.
        while matches!(control.read(&mut byte), Ok(1)) {}
        is_abandoned.store(true, Ordering::SeqCst);
        loop {
            kill_descendants();
            std::thread::sleep(POLL);
        }
    };
    std::thread::Builder::new().spawn(watching).map(drop)
}

/// Runs the script to its end; `None` = the server wanted it no longer before it was started.
fn attempt(
    order: &SuperviseOrder,
    input: Vec<u8>,
    control: &UnixStream,
    is_abandoned: &AtomicBool,
) -> io::Result<Option<SupervisorReport>> {
    let Some(lock) = wait_for_lock(order, is_abandoned)? else { return Ok(None) };
    // Dropped after every process is dead: it removes the directory and frees the lock.
    let made = lock.make_dir(order.code.as_ref(), order.exec.user)?;
    made.share_with_children()?;
    let script = start(order, input)?;
    // A server that is gone does not hear it; the watch kills the script then.
    let _ = write_line(control, &SupervisorReport::Started);
    let status = end(&script);
    let failure = made.start_failure();
    drop(made);
    Ok(Some(match (failure, status?) {
        (Some(failure), _) => SupervisorReport::NotStarted(failure),
        (None, status) => SupervisorReport::Ended { status },
    }))
}

fn wait_for_lock(order: &SuperviseOrder, is_abandoned: &AtomicBool) -> io::Result<Option<ScriptLock>> {
    loop {
        if is_abandoned.load(Ordering::SeqCst) {
            return Ok(None);
        }
        if let Some(lock) = order.dir.try_lock()? {
            return Ok(Some(lock));
        }
        std::thread::sleep(POLL);
    }
}

/// Starts the second stage. This is the main thread, which lives as long as the process: the parent-death signal of the
/// script is bound to it.
fn start(order: &SuperviseOrder, input: Vec<u8>) -> io::Result<Child> {
    let (program, args) = order.launcher.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program)
        .args(args)
        .arg(LauncherStage::Exec.word())
        .env_clear()
        .stdin(Stdio::piped())
        .spawn()?;
    let piped = PipedOrder {
        exec: order.exec.clone(),
        supervisor: rustix::process::getpid().as_raw_nonzero().get(),
        failure_file: order.dir.lock_file(),
    };
    let first = frame_of(&piped)?;
    if let Some(mut to) = child.stdin.take() {
        std::thread::Builder::new().spawn(move || {
            // A script need not read its input.
            let _ = to.write_all(&first).and_then(|()| to.write_all(&input));
        })?;
    }
    Ok(child)
}

/// Waits for the end of the script, then kills the processes that it left behind. Orphans that end earlier are reaped:
/// they would count as processes of the user until then.
fn end(script: &Child) -> io::Result<i32> {
    let script =
        i32::try_from(script.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    let status = loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == script => break Ok(status.as_raw()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => break Err(error.into()),
        }
    };
    // The system does not reuse the id of a group while a process is in it; when the group is empty, this is within
    // moments of the leader's end, long before ids wrap around. An error means that it is empty.
    let _ = kill_process_group(script, Signal::KILL);
    while kill_descendants() {
        std::thread::sleep(POLL);
    }
    status
}
