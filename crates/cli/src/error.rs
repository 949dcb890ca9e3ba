//! Error messages for people: the failure, its code, and one command to try next.

use windlass_sdk::ClientError;
use windlass_sdk::error::{TIMED_OUT, UNREACHABLE};

use crate::output;

/// Sends log lines to stderr: warnings unless `RUST_LOG` says otherwise, and no colour where none is wanted.
pub(crate) fn log_to_stderr() {
    let level = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let color = !no_color && std::io::IsTerminal::is_terminal(&std::io::stderr());
    // A second subscriber could only come from a program that embeds this one, and there is none.
    let _set = tracing_subscriber::fmt()
        .with_env_filter(level)
        .with_writer(std::io::stderr)
        .with_ansi(color)
        .try_init();
}

/// Prints an error to stderr.
pub(crate) fn print_error(error: &anyhow::Error) {
    let answered = error.chain().find_map(|cause| cause.downcast_ref::<ClientError>());
    let Some(answered) = answered else { return output::message(&format!("error: {error:#}")) };
    output::message(&format!("error: {} [{}]", answered.detail, answered.code));
    // The detail repeats a single error, without its hint.
    let is_repeated = matches!(answered.errors.as_slice(), [only] if answered.detail.contains(&only.reason) && only.hint.is_none());
    for field in answered.errors.iter().filter(|_| !is_repeated) {
        let hint = field.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        output::message(&format!("  {}: {}{hint}", field.path, field.reason));
    }
    if let Some(after) = answered.retry_after {
        output::message(&format!("  try again in {} s", after.as_secs()));
    }
    output::message(&format!("  try: {}", suggestion(answered)));
}

/// One command that leads on from an error.
fn suggestion(error: &ClientError) -> &'static str {
    match error.code.as_str() {
        UNREACHABLE if error.detail.contains("invalid peer certificate") => {
            "the same command with --ca FILE, the authority of the server"
        }
        UNREACHABLE => "windlass serve        (or name another server with --server URL)",
        TIMED_OUT | "busy" | "draining" | "store_unavailable" | "internal" => "windlass doctor",
        "unknown_run" => "windlass run list",
        "unknown_job" | "unknown_task" => "windlass job list",
        "job_ended" | "job_open" | "task_ended" | "task_open" | "not_dead_letter" => "windlass job show JOB",
        "job_of_run" | "task_of_run" => "windlass run show RUN",
        "unknown_schedule" => "windlass schedule list",
        "unknown_worker" => "windlass worker list",
        "unknown_flow" | "name_taken" => "windlass flow list",
        "unknown_version" | "number_taken" | "not_published" => "windlass flow versions FLOW",
        "invalid_definition" => "windlass flow validate FILE",
        "no_approval" | "not_assigned" | "which_approval" => "windlass approvals list",
        "unknown_entry" => "windlass run events RUN",
        "run_open" | "not_waiting" | "run_canceling" | "not_started" => "windlass run why RUN",
        "run_ended" | "nothing_to_retry" | "unknown_node" | "not_run_yet" => "windlass run show RUN",
        "unknown_account" | "account_not_found" | "account_taken" => "windlass account list",
        "insufficient_balance" | "deposit_taken" => "windlass account ledger ACCOUNT",
        "unknown_price" | "too_many_prices" => "windlass price list",
        "unknown_service" => "windlass service list",
        "invalid_fields" | "invalid_input" | "invalid_body" | "bad_query" => "the same command with --help",
        _ => "windlass --help",
    }
}
