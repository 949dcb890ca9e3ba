//! A CPU quota for one process, by the control groups of Linux.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

const ROOT: &str = "/sys/fs/cgroup";
/// Short, so that a process over its quota pauses only briefly.
const PERIOD_US: u32 = 10_000;

/// The group of one process. It has to have ended when this is dropped.
pub(crate) struct CpuQuota(PathBuf);

impl CpuQuota {
    /// Limits a process to `percent` hundredths of a processor.
    pub(crate) fn give(process: u32, percent: u32) -> Result<CpuQuota> {
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
        let share = CpuQuota(dir.clone());
        for (file, text) in limits.into_iter().chain([("cgroup.procs", process.to_string())]) {
            let path = dir.join(file);
            ensure!(path.exists(), why());
            fs::write(path, text).with_context(why)?;
        }
        Ok(share)
    }
}

impl Drop for CpuQuota {
    fn drop(&mut self) {
        // A group that cannot be removed is empty and harmless.
        drop(fs::remove_dir(&self.0));
    }
}
