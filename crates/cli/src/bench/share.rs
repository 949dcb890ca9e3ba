//! A share of the processors for one process, by the control groups of Linux: as if it had a small machine of its own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

const ROOT: &str = "/sys/fs/cgroup";
/// Short, so that a process that has had its share does not stand still for long.
const PERIOD_US: u32 = 10_000;

/// The group of one process. It has to have ended when this is dropped.
pub(super) struct Share(PathBuf);

impl Share {
    /// Lets a process use so many hundredths of a processor.
    pub(super) fn give(process: u32, percent: u32) -> Result<Share> {
        let quota = PERIOD_US * percent / 100;
        let name = format!("windlass-bench-{process}");
        let (dir, limits) = if Path::new(ROOT).join("cgroup.controllers").exists() {
            (Path::new(ROOT).join(name), vec![("cpu.max", format!("{quota} {PERIOD_US}"))])
        } else {
            let limits = [("cpu.cfs_period_us", PERIOD_US), ("cpu.cfs_quota_us", quota)];
            (Path::new(ROOT).join("cpu").join(name), limits.map(|(file, us)| (file, us.to_string())).into())
        };
        let why = || format!("{}: --server-share needs control groups with `cpu`, and root", dir.display());
        fs::create_dir(&dir).with_context(why)?;
        let share = Share(dir.clone());
        for (file, text) in limits.into_iter().chain([("cgroup.procs", process.to_string())]) {
            let path = dir.join(file);
            ensure!(path.exists(), why());
            fs::write(path, text).with_context(why)?;
        }
        Ok(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // What cannot be removed is empty, and does nothing.
        drop(fs::remove_dir(&self.0));
    }
}
