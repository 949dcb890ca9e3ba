//! What a server is told: flags win over the environment, that over the file, that over what is built in.

mod limits;

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_store::{Durability, StoreError};

use limits::LimitFlags;
pub(crate) use limits::Limits;

/// Where a server listens unless told otherwise: this machine only.
const LISTEN: &str = "127.0.0.1:8070";
const STORE: &str = "sqlite:windlass.db";
/// The file that is read when none is named and it is there.
const FILE: &str = "windlass.toml";
/// How long calls may go on when the server is told to stop.
const DRAIN_SEC: u64 = 30;
const WORKER_TTL_SEC: u64 = 15;
const WORKER_REFRESH_SEC: u64 = 5;

/// What the command line and the environment say. What they leave open is in the file, or built in.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Flags {
    /// Where to listen [default: 127.0.0.1:8070].
    #[arg(long, value_name = "ADDRESS", env = "WINDLASS_LISTEN")]
    listen: Option<String>,
    /// Where everything is kept: sqlite:PATH or postgres://USER@HOST/DATABASE [env: SCHEDULER_DB=PATH too; default:
    /// sqlite:windlass.db].
    #[arg(long, value_name = "STORE", env = "WINDLASS_STORE")]
    store: Option<String>,
    /// Where jobs wait: memory (over the store, which keeps them) [default: memory].
    #[arg(long, value_name = "QUEUE", env = "WINDLASS_QUEUE")]
    queue: Option<String>,
    /// What is promised when somebody is answered: strict (it survives a loss of power) or fast (it survives the death
    /// of the process) [default: strict].
    #[arg(long, value_name = "LEVEL", env = "WINDLASS_DURABILITY")]
    durability: Option<String>,
    /// Let flows run scripts on this machine.
    #[arg(long, value_name = "BOOL", env = "WINDLASS_ALLOW_SCRIPTS", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    allow_scripts: Option<bool>,
    /// Call workers at private addresses too; loopback is always allowed, link-local never.
    #[arg(long, value_name = "BOOL", env = "WINDLASS_ALLOW_WORKER_NET", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    allow_worker_net: Option<bool>,
    /// How people call this server [env: SCHEDULER_OWNER too; default: windlass].
    #[arg(long, env = "WINDLASS_NAME")]
    name: Option<String>,
    /// Seconds after its last sign of life for which a worker counts as alive [default: 15].
    #[arg(long, value_name = "SECONDS", env = "WORKER_OFFLINE_TTL_SEC")]
    worker_offline_ttl_sec: Option<u64>,
    /// Seconds between two looks at who is alive [default: 5].
    #[arg(long, value_name = "SECONDS", env = "WORKER_REFRESH_INTERVAL_SEC")]
    worker_refresh_interval_sec: Option<u64>,
    /// Seconds that calls may go on when the server is told to stop [default: 30].
    #[arg(long, value_name = "SECONDS", env = "WINDLASS_DRAIN_SEC")]
    drain_sec: Option<u64>,
    /// Origins whose pages may use the server from a browser, with commas between; `*` = all.
    #[arg(long, value_name = "ORIGINS", env = "WINDLASS_CORS", value_delimiter = ',')]
    cors: Option<Vec<String>>,
    #[command(flatten)]
    limits: LimitFlags,
    /// A file with settings; windlass.toml is read when it is there.
    #[arg(long, value_name = "FILE", env = "WINDLASS_CONFIG")]
    config: Option<PathBuf>,
}

/// What stands in the file. A key nobody knows is an error: a slip there would be a setting that does nothing.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: Option<String>,
    store: Option<String>,
    queue: Option<String>,
    durability: Option<String>,
    allow_scripts: Option<bool>,
    allow_worker_net: Option<bool>,
    name: Option<String>,
    worker_offline_ttl_sec: Option<u64>,
    worker_refresh_interval_sec: Option<u64>,
    drain_sec: Option<u64>,
    cors: Option<Vec<String>>,
    body_bytes_max: Option<usize>,
    call_timeout_sec: Option<u64>,
    service_calls_max: Option<usize>,
    worker_calls_max: Option<usize>,
    hot_runs_max: Option<usize>,
    connections_max: Option<usize>,
    retain_days: Option<u32>,
}

impl File {
    fn limits(&self) -> LimitFlags {
        LimitFlags {
            body_bytes_max: self.body_bytes_max,
            call_timeout_sec: self.call_timeout_sec,
            service_calls_max: self.service_calls_max,
            worker_calls_max: self.worker_calls_max,
            hot_runs_max: self.hot_runs_max,
            connections_max: self.connections_max,
            retain_days: self.retain_days,
        }
    }
}

/// Where everything is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    File(PathBuf),
    /// Deleted at the end.
    Temporary,
    Database(Address),
}

/// Where a database is. What is secret in it is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) String);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&windlass_store::postgres::shown(&self.0).unwrap_or_else(|_| "postgres".to_owned()))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => write!(f, "sqlite:{}", path.display()),
            Place::Temporary => f.write_str("sqlite, in a temporary directory"),
            Place::Database(address) => address.fmt(f),
        }
    }
}

/// Everything a server is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) store: Place,
    pub(crate) durability: Durability,
    pub(crate) allow_scripts: bool,
    pub(crate) allow_worker_net: bool,
    pub(crate) name: String,
    pub(crate) worker_ttl: Duration,
    pub(crate) worker_refresh: Duration,
    pub(crate) drain: Duration,
    pub(crate) cors: Vec<String>,
    pub(crate) limits: Limits,
}

impl Flags {
    /// Puts everything together.
    pub(crate) fn config(self) -> Result<Config> {
        let file = read(self.config.as_ref())?;
        self.over(file, |name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn over(self, file: File, env: impl Fn(&str) -> Option<String>) -> Result<Config> {
        let limits = self.limits.or(file.limits()).limits()?;
        let listen = self.listen.or(file.listen).unwrap_or_else(|| LISTEN.to_owned());
        let db = || env("SCHEDULER_DB").map(|path| format!("sqlite:{path}"));
        let store = self.store.or_else(db).or(file.store).unwrap_or_else(|| STORE.to_owned());
        let durability = self.durability.or(file.durability).unwrap_or_else(|| "strict".to_owned());
        let name = self.name.or_else(|| env("SCHEDULER_OWNER")).or(file.name);
        let seconds = |said: Option<u64>, filed: Option<u64>, built_in: u64, what: &str| match said
            .or(filed)
            .unwrap_or(built_in)
        {
            0 => Err(anyhow!("{what} must be at least 1 second")),
            seconds => Ok(Duration::from_secs(seconds)),
        };
        memory_only(&self.queue.or(file.queue).unwrap_or_else(|| "memory".to_owned()))?;
        Ok(Config {
            listen: listen.parse().map_err(|_| {
                anyhow!("`{listen}` is no address to listen on: write one such as 127.0.0.1:8070")
            })?,
            store: place(&store)?,
            durability: level(&durability)?,
            allow_scripts: self.allow_scripts.or(file.allow_scripts).unwrap_or(false),
            allow_worker_net: self.allow_worker_net.or(file.allow_worker_net).unwrap_or(false),
            name: name.unwrap_or_else(|| "windlass".to_owned()),
            worker_ttl: seconds(
                self.worker_offline_ttl_sec,
                file.worker_offline_ttl_sec,
                WORKER_TTL_SEC,
                "worker_offline_ttl_sec",
            )?,
            worker_refresh: seconds(
                self.worker_refresh_interval_sec,
                file.worker_refresh_interval_sec,
                WORKER_REFRESH_SEC,
                "worker_refresh_interval_sec",
            )?,
            drain: Duration::from_secs(self.drain_sec.or(file.drain_sec).unwrap_or(DRAIN_SEC)),
            cors: self.cors.or(file.cors).unwrap_or_default(),
            limits,
        })
    }
}

impl Config {
    /// The settings by their names in the file.
    pub(crate) fn shown(&self) -> Value {
        json!({
            "listen": self.listen.to_string(),
            "store": self.store.to_string(),
            "queue": "memory",
            "durability": self.durability.word(),
            "allow_scripts": self.allow_scripts,
            "allow_worker_net": self.allow_worker_net,
            "name": self.name,
            "worker_offline_ttl_sec": self.worker_ttl.as_secs(),
            "worker_refresh_interval_sec": self.worker_refresh.as_secs(),
            "drain_sec": self.drain.as_secs(),
            "cors": self.cors,
            "body_bytes_max": self.limits.body_bytes,
            "call_timeout_sec": self.limits.call_timeout.as_secs(),
            "service_calls_max": self.limits.service_calls,
            "worker_calls_max": self.limits.worker_calls,
            "hot_runs_max": self.limits.hot_runs,
            "connections_max": self.limits.connections,
            "retain_days": self.limits.retain_days(),
        })
    }
}

fn read(named: Option<&PathBuf>) -> Result<File> {
    let path = match named {
        Some(path) => path.clone(),
        None if PathBuf::from(FILE).exists() => PathBuf::from(FILE),
        None => return Ok(File::default()),
    };
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("{} is no file of settings", path.display()))
}

/// Reads where everything is kept.
pub(crate) fn place(text: &str) -> Result<Place> {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        let refused = |error: StoreError| match error {
            StoreError::Unavailable(reason) => anyhow!("--store: {reason}"),
            other => anyhow!("--store: {other}"),
        };
        windlass_store::postgres::shown(text).map_err(refused)?;
        return Ok(Place::Database(Address(text.to_owned())));
    }
    match text.strip_prefix("sqlite:") {
        Some(path) if !path.is_empty() => {
            let path = path.strip_prefix("//").unwrap_or(path);
            Ok(Place::File(PathBuf::from(path)))
        }
        Some(_) | None => bail!(
            "`{text}` is no store: write sqlite:PATH, such as sqlite:windlass.db, or postgres://USER@HOST/DATABASE"
        ),
    }
}

fn memory_only(text: &str) -> Result<()> {
    match text {
        "memory" => Ok(()),
        redis if redis.starts_with("redis://") || redis.starts_with("rediss://") => {
            bail!("Redis is not in this release: use --queue memory, which keeps jobs in the store")
        }
        other => bail!("`{other}` is no queue: write memory"),
    }
}

fn level(text: &str) -> Result<Durability> {
    Durability::from_word(text).ok_or_else(|| anyhow!("`{text}` is no level of durability: strict or fast"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: &str) -> Option<String> {
        None
    }

    fn file(text: &str) -> File {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_file() {
        let written = file("store = \"sqlite:file.db\"\nname = \"filed\"\ndrain_sec = 5");
        let env = |name: &str| (name == "SCHEDULER_DB").then(|| "env.db".to_owned());
        let flags = Flags { store: Some("sqlite:flag.db".to_owned()), ..Flags::default() };
        let config = flags.over(written.clone(), env).unwrap();
        assert_eq!(config.store, Place::File("flag.db".into()));
        assert_eq!(config.name, "filed");
        assert_eq!(config.drain, Duration::from_secs(5));
        let config = Flags::default().over(written.clone(), env).unwrap();
        assert_eq!(config.store, Place::File("env.db".into()));
        let config = Flags::default().over(written, nothing).unwrap();
        assert_eq!(config.store, Place::File("file.db".into()));
    }

    #[test]
    fn what_nobody_said_is_built_in() {
        let config = Flags::default().over(File::default(), nothing).unwrap();
        assert_eq!(config.listen.to_string(), LISTEN);
        assert_eq!(config.durability, Durability::Strict);
        assert!(!config.allow_scripts && !config.allow_worker_net);
    }

    #[test]
    fn keys_nobody_knows_are_refused() {
        let error = toml::from_str::<File>("listne = \"x\"").unwrap_err().to_string();
        assert!(error.contains("listne"), "{error}");
    }

    #[test]
    fn what_is_not_in_this_release_is_said_clearly() {
        assert!(memory_only("redis://r").unwrap_err().to_string().contains("not in this release"));
        assert!(place("windlass.db").is_err() && place("sqlite:").is_err());
        assert_eq!(place("sqlite://a/b.db").unwrap(), Place::File("a/b.db".into()));
        assert!(level("safe").is_err());
    }

    #[test]
    fn the_address_of_a_database_is_shown_without_its_password() {
        let place = place("postgres://me:secret@db.example/work").unwrap();
        assert_eq!(place.to_string(), "postgres://db.example:5432/work");
        assert!(!format!("{place:?}").contains("secret"));
        let refused = self::place("postgres://me:secret@db.example:x/work").unwrap_err().to_string();
        assert!(refused.contains("--store") && !refused.contains("secret"), "{refused}");
    }

    #[test]
    fn limits_are_put_together_like_everything_else() {
        let written = file("service_calls_max = 7\nhot_runs_max = 8\ncall_timeout_sec = 9");
        let limits = LimitFlags { hot_runs_max: Some(3), ..LimitFlags::default() };
        let config = Flags { limits, ..Flags::default() }.over(written, nothing).unwrap();
        assert_eq!((config.limits.service_calls, config.limits.hot_runs), (7, 3));
        assert_eq!(config.limits.call_timeout, Duration::from_secs(9));
        assert_eq!(config.limits.body_bytes, Limits::default().body_bytes);
        let config = Flags::default().over(file("retain_days = 0"), nothing).unwrap();
        assert_eq!(config.limits.retain_for, None);
        assert!(Flags::default().over(file("connections_max = 0"), nothing).is_err());
    }

    #[test]
    fn every_setting_that_is_shown_can_be_written_in_the_file() {
        let config = Flags::default().over(File::default(), nothing).unwrap();
        let written: File = serde_json::from_value(config.shown()).unwrap();
        assert_eq!(Flags::default().over(written, nothing).unwrap(), config);
    }

    #[test]
    fn no_time_that_counts_is_zero() {
        let flags = Flags { worker_offline_ttl_sec: Some(0), ..Flags::default() };
        assert!(flags.over(File::default(), nothing).is_err());
    }
}
