//! The configuration of a server, from flags, environment, file and defaults (in this order).

mod limits;
mod queue;
mod scripts;
mod settings;
mod store_location;
mod tls;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use windlass_runtime::ScriptPolicy;
use windlass_server::Network;
use windlass_store::Durability;

use limits::LimitArgs;
pub(crate) use limits::ServerLimits;
pub(crate) use queue::QueueBackend;
use scripts::ScriptArgs;
pub(crate) use scripts::ScriptConfig;
use settings::{SettingReader, number, truth};
pub(crate) use store_location::{DatabaseUrl, StoreLocation};
use tls::TlsArgs;
pub(crate) use tls::TlsConfig;

/// The default address: this machine only.
const LISTEN: &str = "127.0.0.1:8070";
const STORE: &str = "windlass.db";
/// How long open calls may go on after the signal to stop.
const DRAIN_SEC: u64 = 30;
const WORKER_TTL_SEC: u64 = 15;
const WORKER_REFRESH_SEC: u64 = 5;
const POLL_LEASE_SEC: u64 = 600;

/// Settings from the command line and the environment. They are read as text, so that all mistakes are reported
/// together and not only the first one.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServeArgs {
    /// The address to listen on [default: 127.0.0.1:8070].
    #[arg(long, value_name = "ADDRESS", env = "WINDLASS_LISTEN")]
    listen: Option<String>,
    /// The store: sqlite:PATH or postgres://USER@HOST/DATABASE [default: sqlite:windlass.db].
    #[arg(long, value_name = "STORE", env = "WINDLASS_STORE")]
    store: Option<String>,
    /// The backend that holds ready jobs: memory, or redis://HOST:PORT for several servers. The store keeps the jobs
    /// either way [default: memory].
    #[arg(long, value_name = "QUEUE", env = "WINDLASS_QUEUE")]
    queue: Option<String>,
    /// The durability of an acknowledged change: strict (it survives a loss of power) or fast (it survives the death of
    /// the process) [default: strict].
    #[arg(long, value_name = "LEVEL", env = "WINDLASS_DURABILITY")]
    durability: Option<String>,
    #[command(flatten)]
    scripts: ScriptArgs,
    /// Call workers at private addresses too; loopback is always allowed, link-local never.
    #[arg(long, value_name = "BOOL", env = "WINDLASS_ALLOW_WORKER_NET", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    allow_worker_net: Option<String>,
    /// Refuse to start a run without an account that pays for it, its own or that of its flow.
    #[arg(long, value_name = "BOOL", env = "WINDLASS_REQUIRE_ACCOUNT", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    require_account: Option<String>,
    /// The name of this server [default: windlass].
    #[arg(long, env = "WINDLASS_NAME")]
    name: Option<String>,
    /// Seconds after its last heartbeat for which a worker counts as alive [default: 15].
    #[arg(long, value_name = "SECONDS", env = "WORKER_OFFLINE_TTL_SEC")]
    worker_offline_ttl_sec: Option<String>,
    /// Seconds for which a worker that polls and sends no heartbeats has a job [default: 600].
    #[arg(long, value_name = "SECONDS", env = "WINDLASS_POLL_LEASE_SEC")]
    poll_lease_sec: Option<String>,
    /// Seconds between two checks of the workers' heartbeats [default: 5].
    #[arg(long, value_name = "SECONDS", env = "WORKER_REFRESH_INTERVAL_SEC")]
    worker_refresh_interval_sec: Option<String>,
    /// Seconds for which open calls may go on after the signal to stop [default: 30].
    #[arg(long, value_name = "SECONDS", env = "WINDLASS_DRAIN_SEC")]
    drain_sec: Option<String>,
    /// A name under which the server answers, beside IP addresses, localhost and the machine's own name; repeatable.
    #[arg(long = "host", value_name = "NAME", env = "WINDLASS_HOSTS", value_delimiter = ',')]
    hosts: Option<Vec<String>>,
    /// Origins whose pages may use the server from a browser, with commas between; `*` = all.
    #[arg(long, value_name = "ORIGINS", env = "WINDLASS_CORS", value_delimiter = ',')]
    cors: Option<Vec<String>>,
    /// Proxies whose X-Forwarded-For names the client, as addresses or networks with commas between.
    #[arg(long, value_name = "NETWORKS", env = "WINDLASS_TRUSTED_PROXIES", value_delimiter = ',')]
    trusted_proxies: Option<Vec<String>>,
    /// Serve other machines although there is no API key: every client may do everything.
    #[arg(long, value_name = "BOOL", env = "WINDLASS_NO_AUTH", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    no_auth: Option<String>,
    /// A file with an admin key that is stored if the store has no key yet.
    #[arg(long, value_name = "FILE", env = "WINDLASS_FIRST_KEY_FILE")]
    first_key_file: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    limits: LimitArgs,
    /// A file with settings; windlass.toml is read if it exists.
    #[arg(long, value_name = "FILE", env = "WINDLASS_CONFIG")]
    config: Option<PathBuf>,
}

/// The whole configuration of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerConfig {
    pub(crate) listen: SocketAddr,
    pub(crate) store: StoreLocation,
    pub(crate) queue: QueueBackend,
    pub(crate) durability: Durability,
    pub(crate) scripts: ScriptConfig,
    pub(crate) allow_worker_net: bool,
    pub(crate) require_account: bool,
    pub(crate) name: String,
    pub(crate) worker_ttl: Duration,
    pub(crate) poll_lease: Duration,
    pub(crate) worker_refresh: Duration,
    pub(crate) drain: Duration,
    pub(crate) hosts: Vec<String>,
    pub(crate) cors: Vec<String>,
    pub(crate) trusted_proxies: Vec<Network>,
    pub(crate) tls: TlsConfig,
    pub(crate) no_auth: bool,
    pub(crate) first_key_file: Option<PathBuf>,
    pub(crate) limits: ServerLimits,
}

impl ServeArgs {
    /// Reads all sources. The error names every mistake.
    pub(crate) fn config(self) -> Result<ServerConfig> {
        let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let mut settings = SettingReader::new(&env);
        settings.open(self.config.as_ref());
        self.read(settings, &env)
    }

    fn read(
        self,
        mut settings: SettingReader<'_>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ServerConfig> {
        let s = &mut settings;
        // `SCHEDULER_DB` and `SCHEDULER_OWNER` are names from a document that stay accepted.
        let store = self.store.or_else(|| env("SCHEDULER_DB").map(|path| format!("sqlite:{path}")));
        let name = self.name.or_else(|| env("SCHEDULER_OWNER"));
        let seconds = |text: &str| number(text, 1).map(Duration::from_secs);
        let default_listen = SocketAddr::from(([127, 0, 0, 1], 8070));
        let config = ServerConfig {
            listen: s.read("listen", self.listen, default_listen, address),
            store: s.read("store", store, StoreLocation::File(STORE.into()), StoreLocation::parse),
            queue: s.read("queue", self.queue, QueueBackend::Memory, QueueBackend::parse),
            durability: s.read("durability", self.durability, Durability::Strict, durability),
            scripts: self.scripts.read(s),
            allow_worker_net: s.read("allow_worker_net", self.allow_worker_net, false, truth),
            require_account: s.read("require_account", self.require_account, false, truth),
            name: s.read("name", name, "windlass".to_owned(), |text| Ok(text.to_owned())),
            worker_ttl: s.read(
                "worker_offline_ttl_sec",
                self.worker_offline_ttl_sec,
                Duration::from_secs(WORKER_TTL_SEC),
                seconds,
            ),
            poll_lease: s.read(
                "poll_lease_sec",
                self.poll_lease_sec,
                Duration::from_secs(POLL_LEASE_SEC),
                |text| number(text, 30).map(Duration::from_secs),
            ),
            worker_refresh: s.read(
                "worker_refresh_interval_sec",
                self.worker_refresh_interval_sec,
                Duration::from_secs(WORKER_REFRESH_SEC),
                seconds,
            ),
            drain: s.read("drain_sec", self.drain_sec, Duration::from_secs(DRAIN_SEC), |text| {
                number(text, 0).map(Duration::from_secs)
            }),
            hosts: s.read_list("hosts", self.hosts, host_name),
            cors: s.read_list("cors", self.cors, |_| Ok(())),
            trusted_proxies: s
                .read_list("trusted_proxies", self.trusted_proxies, |text| Network::parse(text).map(drop))
                .iter()
                .filter_map(|text| Network::parse(text).ok())
                .collect(),
            tls: self.tls.read(s),
            no_auth: s.read("no_auth", self.no_auth, false, truth),
            first_key_file: s.read("first_key_file", self.first_key_file, None, |path| Ok(Some(path.into()))),
            limits: self.limits.read(s),
        };
        settings.finish().map(|()| config)
    }
}

impl ServerConfig {
    /// The settings by their names in the file.
    pub(crate) fn shown(&self) -> Value {
        let mut shown = json!({
            "listen": self.listen.to_string(),
            "store": self.store.to_string(),
            "queue": self.queue.to_string(),
            "durability": self.durability.word(),
            "allow_scripts": self.scripts.policy == ScriptPolicy::All,
            "allow_worker_net": self.allow_worker_net,
            "require_account": self.require_account,
            "name": self.name,
            "worker_offline_ttl_sec": self.worker_ttl.as_secs(),
            "poll_lease_sec": self.poll_lease.as_secs(),
            "worker_refresh_interval_sec": self.worker_refresh.as_secs(),
            "drain_sec": self.drain.as_secs(),
            "hosts": self.hosts,
            "cors": self.cors,
            "trusted_proxies": self.trusted_proxies.iter().map(Network::to_string).collect::<Vec<_>>(),
            "no_auth": self.no_auth,
            "body_bytes_max": self.limits.body_bytes,
            "call_timeout_sec": self.limits.call_timeout.as_secs(),
            "service_calls_max": self.limits.service_calls,
            "worker_calls_max": self.limits.worker_calls,
            "hot_runs_max": self.limits.hot_runs,
            "tree_open_runs_max": self.limits.tree_open_runs,
            "tree_runs_max": self.limits.tree_runs,
            "flow_open_runs_max": self.limits.flow_open_runs,
            "open_runs_max": self.limits.open_runs,
            "connections_max": self.limits.connections,
            "connections_per_address_max": self.limits.connections_per_address,
            "retain_days": self.limits.retain_days(),
            "worker_retain_hours": self.limits.worker_retain_hours(),
            "empty_queue_retain_days": self.limits.empty_queue_retain_days(),
        });
        if let Some(path) = &self.first_key_file {
            shown["first_key_file"] = json!(path);
        }
        // They have no effect without scripts.
        if self.scripts.policy == ScriptPolicy::All {
            let limits = self.scripts.limits;
            shown["scripts_max"] = json!(self.scripts.at_once);
            shown["script_processes_max"] = json!(limits.processes_max);
            shown["script_memory_bytes_max"] = json!(limits.memory_bytes_max);
            shown["script_file_bytes_max"] = json!(limits.file_bytes_max);
            if let Some((_, user)) = &self.scripts.user {
                shown["script_user"] = json!(user);
            }
        }
        self.tls.show(&mut shown);
        shown
    }
}

/// Reads an address to listen on.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is no address to listen on: write one such as {LISTEN}"))
}

/// Checks a host name: without scheme, port and path. An IP address needs no mention.
fn host_name(name: &str) -> Result<(), String> {
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
    if is_name {
        return Ok(());
    }
    Err(format!("`{name}` is not a host name: write it without scheme and port, such as jobs.example"))
}

fn durability(text: &str) -> Result<Durability, String> {
    Durability::from_word(text)
        .ok_or_else(|| format!("`{text}` is no level of durability: write strict or fast"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: &str) -> Option<String> {
        None
    }

    fn read(args: ServeArgs, file: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<ServerConfig> {
        let mut settings = SettingReader::new(env);
        settings.add_file(file);
        args.read(settings, env)
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_file() {
        let file = "store = \"sqlite:file.db\"\nname = \"filed\"\ndrain_sec = 5";
        let env = |name: &str| (name == "SCHEDULER_DB").then(|| "env.db".to_owned());
        let args = ServeArgs { store: Some("sqlite:flag.db".to_owned()), ..ServeArgs::default() };
        let config = read(args, file, &env).unwrap();
        assert_eq!(config.store, StoreLocation::File("flag.db".into()));
        assert_eq!(config.name, "filed");
        assert_eq!(config.drain, Duration::from_secs(5));
        let config = read(ServeArgs::default(), file, &env).unwrap();
        assert_eq!(config.store, StoreLocation::File("env.db".into()));
        let config = read(ServeArgs::default(), file, &nothing).unwrap();
        assert_eq!(config.store, StoreLocation::File("file.db".into()));
    }

    #[test]
    fn without_settings_the_defaults_count() {
        let config = read(ServeArgs::default(), "", &nothing).unwrap();
        assert_eq!(config.listen.to_string(), LISTEN);
        assert_eq!(config.durability, Durability::Strict);
        assert_eq!(config.scripts, ScriptConfig::new(ScriptPolicy::Off));
        assert!(!config.allow_worker_net);
    }

    #[test]
    fn every_mistake_is_reported_with_its_place() {
        let file = "listne = \"x\"\ndrain_sec = \"soon\"\nhosts = [\"http://jobs.example\"]\nconnections_max = 0\ntrusted_proxies = [\"10.0.0.0/8\", \"proxy\"]\n";
        let args = ServeArgs {
            store: Some("postgres://me:secret@db.example:x/work".to_owned()),
            durability: Some("safe".to_owned()),
            worker_offline_ttl_sec: Some("0".to_owned()),
            ..ServeArgs::default()
        };
        let env = |name: &str| (name == "WINDLASS_DURABILITY").then(|| "safe".to_owned());
        let refused = read(args, file, &env).unwrap_err().to_string();
        for part in [
            "windlass.toml:1: unknown setting `listne` (did you mean `listen`?)",
            "windlass.toml:2: drain_sec: `soon` is not a whole number",
            "windlass.toml:3: hosts: `http://jobs.example` is not a host name: write it without scheme",
            "windlass.toml:4: connections_max: 0 is too small",
            "windlass.toml:5: trusted_proxies: `proxy` is no network",
            "--store: ",
            "WINDLASS_DURABILITY: `safe` is no level",
            "--worker-offline-ttl-sec: 0 is too small",
        ] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        assert_eq!(refused.lines().count(), 8, "{refused}");
        assert!(!refused.contains("secret"), "{refused}");
    }

    #[test]
    fn settings_of_scripts_need_scripts_and_a_user_that_exists() {
        let file = "script_memory_bytes_max = 5\nscript_processes_max = 0";
        let config = read(ServeArgs::default(), &format!("allow_scripts = true\n{file}"), &nothing).unwrap();
        assert_eq!((config.scripts.limits.memory_bytes_max, config.scripts.limits.processes_max), (5, 0));
        let refused = read(ServeArgs::default(), file, &nothing).unwrap_err().to_string();
        for part in [
            "script_memory_bytes_max has no effect without allow_scripts: allow scripts or leave it out",
            "script_processes_max has no effect",
        ] {
            assert!(refused.contains(part), "{refused}");
        }
        let file = "allow_scripts = true\nscript_user = \"no such user\"";
        let refused = read(ServeArgs::default(), file, &nothing).unwrap_err().to_string();
        assert!(
            refused.contains("windlass.toml:2: script_user: `no such user` is not a user of"),
            "{refused}"
        );
    }

    #[test]
    fn files_of_tls_come_together_and_exist() {
        let refused = |file: &str| read(ServeArgs::default(), file, &nothing).unwrap_err().to_string();
        assert!(refused("tls_cert = \"/no/cert.pem\"").contains("tls_cert needs tls_key"));
        assert!(refused("tls_key = \"/no/key.pem\"").contains("tls_key needs tls_cert"));
        assert!(refused("tls_client_ca = \"/no/ca.pem\"").contains("no effect without tls_cert"));
        let pair = "tls_cert = \"/no/cert.pem\"\ntls_key = \"/no/key.pem\"";
        assert!(refused(pair).contains("cannot read /no/cert.pem"));
        assert!(
            refused("tls_worker_ca = \"/no/ca.pem\"").contains("windlass.toml:1: tls_worker_ca: cannot read")
        );
    }

    #[test]
    fn a_file_that_is_not_toml_is_refused_with_the_line() {
        let refused = read(ServeArgs::default(), "name = \"a\"\nlisten = = 1\n", &nothing).unwrap_err();
        assert!(refused.to_string().contains("windlass.toml:2:"), "{refused}");
        let refused = read(ServeArgs::default(), "cors = \"*\"\nname = [\"a\"]\n", &nothing).unwrap_err();
        assert!(refused.to_string().contains("windlass.toml:1: cors: write a list"), "{refused}");
        assert!(refused.to_string().contains("windlass.toml:2: name: write one value"), "{refused}");
    }

    #[test]
    fn limits_come_from_all_sources_too() {
        let file = "service_calls_max = 7\nhot_runs_max = 8\ncall_timeout_sec = 9";
        let limits = LimitArgs { hot_runs_max: Some("3".to_owned()), ..LimitArgs::default() };
        let config = read(ServeArgs { limits, ..ServeArgs::default() }, file, &nothing).unwrap();
        assert_eq!((config.limits.service_calls, config.limits.hot_runs), (7, 3));
        assert_eq!(config.limits.call_timeout, Duration::from_secs(9));
        assert_eq!(config.limits.body_bytes, ServerLimits::default().body_bytes);
        let config = read(ServeArgs::default(), "retain_days = 0", &nothing).unwrap();
        assert_eq!(config.limits.retain_for, None);
        let config =
            read(ServeArgs::default(), "worker_retain_hours = 2\nempty_queue_retain_days = 0", &nothing);
        let limits = config.unwrap().limits;
        assert_eq!(limits.worker_retain_for, Some(Duration::from_secs(7_200)));
        assert_eq!(limits.empty_queue_retain_for, None);
    }

    #[test]
    fn every_setting_that_is_shown_can_be_written_in_the_file() {
        let config = read(ServeArgs::default(), "", &nothing).unwrap();
        let shown = config.shown();
        let file: String =
            shown.as_object().unwrap().iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        assert_eq!(read(ServeArgs::default(), &file, &nothing).unwrap(), config);
    }
}
