//! The processes that descend from this one, killed wherever they went.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Pid, Signal, getpid, kill_process};

/// Kills every living descendant; returns whether there was one.
///
/// Parents come before their children here: ids are taken in ascending order, and the orphans of a killed process
/// become children of this one. A process that was forked meanwhile is found by the next call.
pub(super) fn kill_descendants() -> bool {
    let own = getpid().as_raw_nonzero().get();
    let mut family = BTreeSet::from([own]);
    let mut found = false;
    for pid in process_ids() {
        let Some(process) = read_stat(pid) else { continue };
        if pid == own || !family.contains(&process.parent) {
            continue;
        }
        family.insert(pid);
        if process.is_alive
            && let Some(pid) = Pid::from_raw(pid)
        {
            found = true;
            // An error means that it has just ended.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    found
}

/// The ids of all processes, in ascending order; none where the system has no such list.
fn process_ids() -> BTreeSet<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[derive(Debug, PartialEq, Eq)]
struct ProcessStat {
    parent: i32,
    /// Not just a name in the table.
    is_alive: bool,
}

fn read_stat(pid: i32) -> Option<ProcessStat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads `PID (NAME) STATE PARENT …`; a name may contain blanks and brackets.
fn parse_stat(text: &str) -> Option<ProcessStat> {
    let mut rest = text.rsplit_once(')')?.1.split_whitespace();
    let is_alive = !matches!(rest.next()?, "Z" | "X");
    Some(ProcessStat { parent: rest.next()?.parse().ok()?, is_alive })
}

/// Processes and threads of a user.
pub(super) fn n_tasks_of(uid: u32) -> u64 {
    let tasks = process_ids().into_iter().filter_map(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        (field("Uid:")? == u64::from(uid)).then(|| field("Threads:"))?
    });
    tasks.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_have_any_name() {
        let parsed = parse_stat("7 (a) R 1 (b) S 41 7 7 0 -1");
        assert_eq!(parsed, Some(ProcessStat { parent: 41, is_alive: true }));
        let parsed = parse_stat("7 (sh) Z 41 7");
        assert_eq!(parsed, Some(ProcessStat { parent: 41, is_alive: false }));
        assert_eq!(parse_stat("7 (sh"), None);
    }
}
