//! Global options, and the session that client commands share: a client of the server and a printer.

mod ids;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use windlass_sdk::contract::{RunsQuery, Time};
use windlass_sdk::{Client, ClientError, ClientTls, IdentityFiles};

use crate::output::{OutputFormat, Printer};

pub(crate) use ids::{native_job_id, platform_job_id};

/// The default URL of the server.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:8070";
/// Characters of a whole run id: `run_` and 32 digits.
const RUN_ID_CHARS: usize = 36;
/// Runs that are searched for an id with a prefix.
const PREFIX_LIMIT: usize = 1_000;

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct GlobalArgs {
    /// The output format [default: table to a terminal, json to a pipe].
    #[arg(short, long, global = true, value_enum, env = "WINDLASS_OUTPUT")]
    output: Option<OutputFormat>,
    /// Print only ids, one a line.
    #[arg(long, global = true)]
    quiet: bool,
    /// Print whole ids and whole cells in tables.
    #[arg(long, global = true)]
    wide: bool,
    /// The URL of the server [default: http://127.0.0.1:8070].
    #[arg(long, global = true, value_name = "URL", env = "WINDLASS_SERVER")]
    server: Option<String>,
    /// A PEM file with authorities to trust beside those of the system, for an https server.
    #[arg(long, global = true, value_name = "FILE", env = "WINDLASS_CA")]
    ca: Option<PathBuf>,
    /// A PEM file with your certificate, for a server that asks for one.
    #[arg(long, global = true, value_name = "FILE", env = "WINDLASS_CLIENT_CERT", requires = "client_key")]
    client_cert: Option<PathBuf>,
    /// The PEM file with the key of the certificate.
    #[arg(long, global = true, value_name = "FILE", env = "WINDLASS_CLIENT_KEY", requires = "client_cert")]
    client_key: Option<PathBuf>,
    /// Your name in the audit of the server [default: the logged-in user].
    #[arg(long, global = true, value_name = "NAME", env = "WINDLASS_ACTOR")]
    actor: Option<String>,
    /// The API key for the server; other users of the machine can see flags, so prefer the variable.
    #[arg(long, global = true, value_name = "KEY", env = "WINDLASS_KEY", hide_env_values = true)]
    api_key: Option<String>,
}

impl GlobalArgs {
    /// The URL of the server: `--server` or `WINDLASS_SERVER`, else the first of these variables that is set. The
    /// variables are names from documents that stay accepted; help and documents teach only `WINDLASS_SERVER`.
    pub(crate) fn server(&self, variables: &[&str]) -> String {
        let from_environment =
            || variables.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        self.server.clone().or_else(from_environment).unwrap_or_else(|| DEFAULT_SERVER.to_owned())
    }

    /// Whether the caller named a server.
    pub(crate) fn names_a_server(&self) -> bool {
        self.server.is_some()
    }

    /// The output options.
    pub(crate) fn print(&self) -> Printer {
        Printer::new(self.output, self.quiet, self.wide)
    }

    /// A client of the server at this URL, with the API key and the certificates that the caller named.
    pub(crate) fn client(&self, url: &str) -> Result<Client> {
        let client = Client::new(url)?;
        let client = match self.api_key.as_deref().filter(|key| !key.trim().is_empty()) {
            Some(key) => client.with_key(key)?,
            None => client,
        };
        let identity = self.client_cert.clone().zip(self.client_key.clone());
        let identity = identity.map(|(cert, key)| IdentityFiles { cert, key });
        let tls = ClientTls { ca: self.ca.clone(), identity };
        Ok(if tls == ClientTls::default() { client } else { client.with_tls(&tls)? })
    }

    /// Opens a session with the server.
    pub(crate) fn session(&self) -> Result<Session> {
        let client = self.client(&self.server(&["SCHEDULER_BASE"]))?;
        let actor = self.actor.clone().filter(|actor| !actor.trim().is_empty()).or_else(user_name);
        let client = match &actor {
            Some(actor) => client.acting_as(actor)?,
            None => client,
        };
        Ok(Session { client, actor, out: self.print() })
    }
}

/// A client of the server, and the output options.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) client: Client,
    /// The name in the audit.
    pub(crate) actor: Option<String>,
    pub(crate) out: Printer,
}

impl Session {
    /// The whole id of the run whose id begins with `text`.
    pub(crate) async fn run_id(&self, text: &str) -> Result<String> {
        let digits = text.strip_prefix("run_").unwrap_or(text);
        let whole = format!("run_{digits}");
        if whole.len() >= RUN_ID_CHARS || digits.is_empty() {
            return Ok(whole);
        }
        let asked = Some(format!("id:{whole}"));
        let query = RunsQuery { query: asked, limit: Some(PREFIX_LIMIT), ..RunsQuery::default() };
        let found = self.client.runs().list(&query).await?;
        let mut ids = found.items.into_iter().map(|run| run.id).filter(|id| id.starts_with(&whole));
        match (ids.next(), ids.next()) {
            (Some(id), None) => Ok(id),
            (Some(first), Some(second)) => {
                bail!("several runs begin with `{text}`, such as {first} and {second}: write more of the id")
            }
            (None, _) => Err(not_found("unknown_run", format!("there is no run `{text}`")).into()),
        }
    }
}

/// The logged-in user, if the server takes the name.
fn user_name() -> Option<String> {
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

/// Reads a duration: `90s`, `15m`, `2h`, `7d`, `250ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no duration such as 250ms, 90s, 15m, 2h or 7d");
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

/// Writes a duration for people.
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

/// A duration in whole milliseconds; saturates.
pub(crate) fn in_ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// The time that is `length` ago.
pub(crate) fn ago(length: Duration) -> Time {
    let ms = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    Time(now_ms().saturating_sub(ms).max(0))
}

/// A time relative to now, in words.
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

/// Text of at most `most` characters on one line.
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
    fn durations_are_read() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
        for wrong in ["", "m", "5x", "-3s", "1e400s", "..s", "９s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_are_written_in_words() {
        assert_eq!(in_words(950), "950ms");
        assert_eq!(in_words(64_000), "1m 04s");
        assert_eq!(in_words(9_100), "9.1s");
        assert_eq!(in_words(-5), "0ms");
        assert_eq!(in_words(i64::MAX).chars().last(), Some('h'));
    }

    #[test]
    fn times_are_relative_to_now() {
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
