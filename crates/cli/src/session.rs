//! What every command that speaks to a server has: the server, and how to print.

mod naming;

use std::time::Duration;

use anyhow::{Result, bail};
use windlass_sdk::types::{RunsQuery, Time};
use windlass_sdk::{Client, ClientError};

use crate::output::{Format, Output};

/// Where a server listens unless told otherwise.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:8070";
/// Characters of a whole run id: `run_` and 32 digits.
const RUN_ID_CHARS: usize = 36;
/// Runs that are looked through for an id that begins so.
const PREFIX_LIMIT: usize = 1_000;

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// How data is printed; tables to people and JSON to pipes unless told otherwise.
    #[arg(short, long, global = true, value_enum, env = "WINDLASS_OUTPUT")]
    output: Option<Format>,
    /// Print only ids, one a line.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// The server to speak to [env: SCHEDULER_BASE too; default: http://127.0.0.1:8070].
    #[arg(long, global = true, value_name = "URL", env = "WINDLASS_SERVER")]
    server: Option<String>,
    /// Who asks, for the audit of the server; whoever is logged in unless told otherwise.
    #[arg(long, global = true, value_name = "NAME", env = "WINDLASS_ACTOR")]
    actor: Option<String>,
}

impl Options {
    /// The address of the server: the flag, or what one of these variables says.
    pub(crate) fn server(&self, variables: &[&str]) -> String {
        let from_environment =
            || variables.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        self.server.clone().or_else(from_environment).unwrap_or_else(|| DEFAULT_SERVER.to_owned())
    }

    /// How to print.
    pub(crate) fn print(&self) -> Output {
        Output::new(self.output, self.quiet)
    }

    /// Opens a session with the server.
    pub(crate) fn session(&self) -> Result<Session> {
        let client = Client::new(&self.server(&["SCHEDULER_BASE"]))?;
        let actor = self.actor.clone().filter(|actor| !actor.trim().is_empty()).or_else(who);
        let client = match &actor {
            Some(actor) => client.acting_as(actor)?,
            None => client,
        };
        Ok(Session { client, actor, out: self.print() })
    }
}

/// A server to speak to, and a way to print what it says.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) client: Client,
    /// Who asks.
    pub(crate) actor: Option<String>,
    pub(crate) out: Output,
}

impl Session {
    /// The whole id of a run that is named by a part that begins it.
    pub(crate) async fn run_id(&self, text: &str) -> Result<String> {
        let digits = text.strip_prefix("run_").unwrap_or(text);
        let whole = format!("run_{digits}");
        if whole.len() >= RUN_ID_CHARS || digits.is_empty() {
            return Ok(whole);
        }
        let query =
            RunsQuery { q: Some(digits.to_owned()), limit: Some(PREFIX_LIMIT), ..RunsQuery::default() };
        let found = self.client.runs(&query).await?;
        let mut ids = found.items.into_iter().map(|run| run.id).filter(|id| id.starts_with(&whole));
        match (ids.next(), ids.next()) {
            (Some(id), None) => Ok(id),
            (Some(first), Some(second)) => {
                bail!("several runs begin with `{text}`, such as {first} and {second}: write more of it")
            }
            (None, _) => Err(not_found("unknown_run", format!("there is no run `{text}`")).into()),
        }
    }
}

/// Who is at the keyboard, as far as the system says and a server would take it.
fn who() -> Option<String> {
    let is_plain = |name: &String| {
        !name.is_empty()
            && name.len() <= 200
            && name.chars().all(|c| c.is_alphanumeric() || ".-_@+".contains(c))
    };
    ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(is_plain))
}

fn not_found(code: &str, detail: String) -> ClientError {
    ClientError { status: Some(404), code: code.to_owned(), detail, errors: Vec::new(), retry_after: None }
}

/// A length of time as people write it: `90s`, `15m`, `2h`, `7d`, `250ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no length of time such as 250ms, 90s, 15m, 2h or 7d");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "ms" => number / 1_000.0,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3_600.0,
        "d" => number * 86_400.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

/// A length of time as people read it.
pub(crate) fn in_words(ms: i64) -> String {
    let ms = ms.max(0);
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{}m {:02}s", ms / 60_000, ms % 60_000 / 1_000),
        3_600_000..172_800_000 => format!("{}h {:02}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
        _ => format!("{}d {:02}h", ms / 86_400_000, ms % 86_400_000 / 3_600_000),
    }
}

/// A length of time in whole milliseconds; what is longer than that can say is for ever.
pub(crate) fn in_ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// The moment so long ago.
pub(crate) fn ago(length: Duration) -> Time {
    let ms = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    Time(now_ms().saturating_sub(ms).max(0))
}

/// How long ago a moment was, or how far ahead it is.
pub(crate) fn from_now(at: Time) -> String {
    match at.0.saturating_sub(now_ms()) {
        ahead @ 1.. => format!("in {}", in_words(ahead)),
        behind => format!("{} ago", in_words(behind.saturating_neg())),
    }
}

/// Milliseconds since 1970; a clock set before that reads as 1970.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Text cut to so many characters, so that a row stays a row.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let mut shown: String = text.chars().take(most).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
        for wrong in ["", "m", "5x", "-3s", "1e400s", "..s", "９s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lengths_of_time_are_short_to_read() {
        assert_eq!(in_words(950), "950ms");
        assert_eq!(in_words(64_000), "1m 04s");
        assert_eq!(in_words(9_100), "9.1s");
        assert_eq!(in_words(-5), "0ms");
        assert_eq!(in_words(i64::MAX).chars().last(), Some('h'));
    }

    #[test]
    fn moments_are_told_from_now() {
        assert!(from_now(Time(now_ms() + 61_500)).starts_with("in 1m 0"));
        assert!(from_now(Time(now_ms() - 61_500)).ends_with(" ago"));
        assert!(from_now(Time(i64::MIN)).ends_with(" ago"));
        assert_eq!(ago(Duration::MAX), Time(0));
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(cut("漢字漢字", 2), "漢字…");
        assert_eq!(cut("a\nb", 5), "a b");
    }
}
