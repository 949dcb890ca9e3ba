//! Limits of scripts on this machine, and the hints that name them when a script fails.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

/// Open files of a process of a script.
pub(super) const DESCRIPTORS_MAX: u64 = 1_024;
/// The signal of a process that wrote beyond its limit, `SIGXFSZ`; shells report it as 128 and this number.
const FILE_TOO_LARGE: i32 = 25;

/// Limits of one script; 0 = none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptLimits {
    /// Processes and threads, beside those that the script's user had when it started.
    pub processes_max: u64,
    /// Bytes of private memory of each process.
    pub memory_bytes_max: u64,
    /// Bytes of each file that it writes.
    pub file_bytes_max: u64,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        ScriptLimits { processes_max: 128, memory_bytes_max: 1 << 30, file_bytes_max: 256 << 20 }
    }
}

impl ScriptLimits {
    pub(super) fn processes(&self) -> Option<u64> {
        Some(self.processes_max).filter(|n| *n > 0)
    }

    pub(super) fn memory_bytes(&self) -> Option<u64> {
        Some(self.memory_bytes_max).filter(|n| *n > 0)
    }

    pub(super) fn file_bytes(&self) -> Option<u64> {
        Some(self.file_bytes_max).filter(|n| *n > 0)
    }

    /// The limit that a failed script has probably reached, by the words that programs use for it.
    pub(super) fn hint(&self, status: ExitStatus, log: &str) -> Option<String> {
        let says = |words: &[&str]| words.iter().any(|word| log.contains(word));
        let file_signal =
            status.signal() == Some(FILE_TOO_LARGE) || status.code() == Some(128 + FILE_TOO_LARGE);
        if let Some(n) = self.file_bytes()
            && (file_signal || says(&["File too large", "File size limit exceeded"]))
        {
            return Some(format!("`script_file_bytes_max` allows {n} bytes for each file"));
        }
        if let Some(n) = self.memory_bytes()
            && says(&[
                "MemoryError",
                "annot allocate memory",
                "ut of memory",
                "memory exhausted",
                "bad_alloc",
            ])
        {
            return Some(format!("`script_memory_bytes_max` allows {n} bytes of memory for each process"));
        }
        if let Some(n) = self.processes()
            && says(&["Resource temporarily unavailable", "annot fork", "can't start new thread"])
        {
            return Some(format!("`script_processes_max` allows {n} processes and threads"));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_limit_that_it_probably_reached() {
        let limits = ScriptLimits { processes_max: 3, memory_bytes_max: 4, file_bytes_max: 5 };
        let (exit_1, exit_153, killed) = (1 << 8, 153 << 8, FILE_TOO_LARGE);
        let cases = [
            (killed, "", Some("script_file_bytes_max` allows 5")),
            (exit_153, "", Some("script_file_bytes_max` allows 5")),
            (exit_1, "OSError: [Errno 27] File too large", Some("script_file_bytes_max` allows 5")),
            (exit_1, "MemoryError", Some("script_memory_bytes_max` allows 4")),
            (exit_1, "sh: 0: Cannot fork", Some("script_processes_max` allows 3")),
            (exit_1, "no such thing", None),
        ];
        for (status, log, expected) in cases {
            let hint = limits.hint(ExitStatus::from_raw(status), log);
            assert_eq!(hint.is_some(), expected.is_some(), "{log}: {hint:?}");
            assert!(hint.unwrap_or_default().contains(expected.unwrap_or_default()), "{log}");
        }
        let none = ScriptLimits { processes_max: 0, memory_bytes_max: 0, file_bytes_max: 0 };
        assert_eq!(none.hint(ExitStatus::from_raw(exit_1), "MemoryError"), None);
    }
}
