//! Resource use of the process: CPU time, memory, files and threads, as far as the operating system reports them.

use std::sync::LazyLock;
use std::time::Instant;

/// The first reading, which the server makes when it starts.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Clock ticks a second in `/proc/self/stat`: 100 on every common Linux.
const TICKS: u64 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessUsage {
    pub up_ms: u64,
    /// CPU time of all threads; empty where the operating system does not report it.
    pub cpu_ms: Option<u64>,
    pub resident_bytes: Option<u64>,
    pub open_files: Option<u64>,
    pub threads: Option<u64>,
    /// Live tasks of the asynchronous runtime.
    pub tasks: u64,
}

impl ProcessUsage {
    /// Reads the current values.
    pub fn read() -> Self {
        let up_ms = u64::try_from(BEGUN.elapsed().as_millis()).unwrap_or(u64::MAX);
        let tasks =
            tokio::runtime::Handle::try_current().map_or(0, |handle| handle.metrics().num_alive_tasks());
        let mut stats = ProcessUsage { up_ms, tasks: tasks as u64, ..ProcessUsage::default() };
        if let Ok(text) = std::fs::read_to_string("/proc/self/stat") {
            stats.read_stat(&text);
        }
        if let Ok(text) = std::fs::read_to_string("/proc/self/status") {
            stats.read_status(&text);
        }
        let files = std::fs::read_dir("/proc/self/fd").map(Iterator::count);
        stats.open_files = files.ok().map(|n| n as u64);
        stats
    }

    /// The fields of `/proc/self/stat` after the name of the program, which may contain anything.
    fn read_stat(&mut self, text: &str) {
        let Some((_, rest)) = text.rsplit_once(')') else { return };
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // `rest` begins with the third field, the state.
        let field = |nth: usize| fields.get(nth - 3).and_then(|text| text.parse::<u64>().ok());
        self.cpu_ms = field(14).zip(field(15)).map(|(user, system)| (user + system) * 1_000 / TICKS);
        self.threads = field(20);
    }

    /// Resident memory from `/proc/self/status`, in kB: `stat` gives pages, whose size differs between machines.
    fn read_status(&mut self, text: &str) {
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        self.resident_bytes = kilobytes.map(|n| n.saturating_mul(1_024));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_after_any_program_name() {
        let mut stats = ProcessUsage::default();
        stats.read_stat(
            "7 (a ) b (c) S 1 7 7 0 -1 4194560 900 0 0 0 250 50 0 0 20 0 9 0 100 1000000 2048 18446744073709551615",
        );
        stats.read_status("Name:\ta VmRSS: 7 kB\nVmSize:\t  90000 kB\nVmRSS:\t    8192 kB\nThreads:\t9\n");
        assert_eq!(
            (stats.cpu_ms, stats.threads, stats.resident_bytes),
            (Some(3_000), Some(9), Some(8_388_608))
        );
        let mut none = ProcessUsage::default();
        none.read_stat("no such fields");
        none.read_stat("1 (a) S");
        none.read_status("VmRSS:\t much");
        assert_eq!(none, ProcessUsage::default());
    }
}
