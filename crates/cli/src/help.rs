//! Text below the help of a command: examples and exit codes.

/// Examples and exit codes as one text: `concat!` takes no constants.
macro_rules! help {
    ($example:literal, $codes:expr) => {
        [concat!("Examples:\n", $example, "\n\n"), $codes].concat()
    };
}

pub(crate) use help;

/// Exit codes of a command that reads from the server.
pub(crate) const SHOW_EXITS: &str = "Exit codes:
  0  done
  1  not found
  3  the server cannot be reached";

/// Exit codes of a command that changes something on the server.
pub(crate) const CHANGE_EXITS: &str = "Exit codes:
  0  done
  1  refused, or not found
  3  the server cannot be reached";

/// Exit codes of a command that waits for a run or a job.
pub(crate) const WAIT_EXITS: &str = "Exit codes:
  0    it completed
  1    it failed, or was not found
  3    the server cannot be reached; one that answered before is waited for, until --timeout
  5    it was canceled
  124  it did not end in time";

/// Exit codes of a command that starts a run or creates a job, and may wait for it.
pub(crate) const START_EXITS: &str = "Exit codes:
  0    started; with --wait or --watch: completed
  1    refused; with --wait or --watch: failed
  3    the server cannot be reached
  5    with --wait or --watch: canceled
  124  it did not end in time";
