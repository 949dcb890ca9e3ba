//! Ready jobs in Redis: it decides which server gets which job next.
//!
//! Redis holds no truth: the store rejects a job that was dispatched wrongly, and has the jobs that are missing in Redis.
//! Its contents may be lost, duplicated, forged or corrupt. Scripts change the lists atomically, so that two pops never
//! return the same job.
//!
//! `docs/redis.md` describes the keys. `queue:{name}:ready` is a window: the first jobs of a queue in the order of
//! dispatch. `queue:{name}:more` says from which priority downwards the store has more.

mod address;
mod connection;
mod dispatch_order;
mod message;
mod update;

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, PushInfo, PushKind, TlsCertificates, Value};
use windlass_engine::project::Project;

pub use address::RedisAddress;
pub use connection::{PoppedJobs, ReadyCounts, ReadyWindow, RedisConnection, SHOWN_MAX, WindowNeeds};
pub use dispatch_order::{WaitingJob, dispatch_order};
pub use message::{JobMessage, PAYLOAD_MAX, PoppedJob};
pub use update::{HEARTBEAT_MS, RedisUpdate};

pub use crate::run_jobs::{HIGHEST, LOWEST};

/// The time limit of a connection attempt and of an answer: a claim waits no longer for a Redis that does not answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The oldest supported version: the first with an `LPOP` of several elements.
const VERSION_MIN: (u32, u32) = (6, 2);

/// A problem with Redis, with its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RedisError(String);

impl RedisError {
    fn new(what: impl Into<String>) -> Self {
        RedisError(what.into())
    }

    fn of(error: &redis::RedisError) -> Self {
        RedisError(error.to_string())
    }

    /// Whether a key has a value of another type.
    fn is_wrong_type(&self) -> bool {
        self.0.contains("WRONGTYPE") || self.0.contains("not an integer")
    }
}

/// A message of Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisEvent {
    /// `n` jobs of a queue can be popped.
    Ready { queue: String, n: usize },
    /// The connection is lost.
    Gone,
}

/// A Redis server to connect to.
#[derive(Clone)]
pub struct Redis {
    address: RedisAddress,
    client: Client,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.address)
    }
}

impl Redis {
    /// Parses an address without connecting.
    pub fn at(address: &str) -> Result<Redis, RedisError> {
        let (address, info) = address::read(address)?;
        let client = match address.ca() {
            None => Client::open(info),
            Some(path) => {
                let pem = std::fs::read(path).map_err(|error| {
                    RedisError(format!("cannot read {path}: {error}: name a PEM file in `ca`"))
                })?;
                Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: Some(pem) })
            }
        };
        Ok(Redis { address, client: client.map_err(|error| RedisError::of(&error))? })
    }

    /// The same server with the keys of this project. Those of the default project have no prefix of their own.
    #[must_use]
    pub fn for_project(self, project: &Project) -> Redis {
        let address = self.address.for_project(project);
        Redis { address, ..self }
    }

    /// The address without secrets.
    pub fn address(&self) -> &RedisAddress {
        &self.address
    }

    /// Connects and checks that Redis answers, is new enough and accepts writes; otherwise the error names the remedy.
    /// `heard` gets the messages of Redis and must not block.
    pub async fn connect(
        &self,
        heard: impl Fn(RedisEvent) + Send + Sync + 'static,
    ) -> Result<RedisConnection, RedisError> {
        let push = move |info: PushInfo| -> Result<(), ()> {
            if let Some(what) = read(&info) {
                heard(what);
            }
            Ok(())
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT))
            .set_push_sender(push);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        // A peer that accepts connections and never answers must not block the start.
        let connected = tokio::time::timeout(TIMEOUT.saturating_mul(2), connecting).await;
        let mut connection = match connected {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(self.unreachable(&error)),
            Err(_) => return Err(self.silent()),
        };
        self.check_version(&mut connection).await?;
        let connection = RedisConnection::new(connection, self.address.prefix());
        let refused = |error: RedisError| {
            RedisError(format!(
                "Redis at {} does not let this server write ({error}): name the primary, a user with the rights to all \
                 keys, channels and scripts, and leave it memory",
                self.address
            ))
        };
        connection.check_rights().await.map_err(refused)?;
        connection.subscribe().await.map_err(refused)?;
        Ok(connection)
    }

    async fn check_version(&self, connection: &mut MultiplexedConnection) -> Result<(), RedisError> {
        let mut info = redis::cmd("INFO");
        info.arg("server");
        let text: String = match info.query_async(connection).await {
            Ok(text) => text,
            Err(error) => return Err(self.unreachable(&error)),
        };
        let version_text =
            text.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or_default();
        let mut numbers = version_text.trim().split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if version < VERSION_MIN {
            return Err(self.too_old(version_text.trim()));
        }
        Ok(())
    }

    fn too_old(&self, version: &str) -> RedisError {
        let (major, minor) = VERSION_MIN;
        RedisError(format!(
            "Redis at {} is too old (version {version}): {major}.{minor} or later is needed",
            self.address
        ))
    }

    fn silent(&self) -> RedisError {
        RedisError(format!(
            "what listens at {} does not answer as Redis does: correct the address of --queue",
            self.address
        ))
    }

    /// The reason why there is no connection.
    fn unreachable(&self, error: &redis::RedisError) -> RedisError {
        let (place, message) = (&self.address, error.to_string());
        let is_refused = ["WRONGPASS", "NOAUTH", "NOPERM"].into_iter().any(|code| message.contains(code));
        match error.kind() {
            ErrorKind::AuthenticationFailed
                if message.contains("NOPROTO") || message.contains("unknown command") =>
            {
                self.too_old("before 6")
            }
            ErrorKind::RESP3NotSupported => self.too_old("before 6"),
            ErrorKind::AuthenticationFailed => RedisError(format!(
                "Redis at {place} does not accept the user or the password ({message}): write \
                 redis://user:password@host:port"
            )),
            _ if is_refused => RedisError(format!(
                "Redis at {place} wants another user or password ({message}): write redis://user:password@host:port"
            )),
            ErrorKind::Io => RedisError(format!(
                "cannot reach Redis at {place} ({message}): start it, or correct the address of --queue"
            )),
            ErrorKind::Parse => self.silent(),
            _ => RedisError(format!("Redis at {place} refuses the connection ({message})")),
        }
    }
}

/// Parses a message of Redis; `None` if it is not one of ours.
fn read(info: &PushInfo) -> Option<RedisEvent> {
    match info.kind {
        PushKind::Disconnection => Some(RedisEvent::Gone),
        PushKind::Message => {
            let Some(Value::BulkString(text)) = info.data.get(1) else { return None };
            let (n, queue) = std::str::from_utf8(text).ok()?.split_once(':')?;
            Some(RedisEvent::Ready { queue: queue.to_owned(), n: n.parse().ok()? })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
