//! Redis as the place where ready jobs wait: which server gets which of them next.
//!
//! It holds ids and nothing that is true only there: the store refuses whatever is handed out in vain, and has what is
//! missing here. So everything may be lost, be there twice or be nonsense. Lists are moved by scripts, each as a whole,
//! so that of two who pop none gets what the other got.
//!
//! What there is to see (`docs/redis.md`): `queue:{name}:ready` and `queue:{name}:ready:{priority}` are lists of job
//! ids, `queue:{name}:delayed` has those that are due later, `queue:{name}:dlq` dead letters, `lease:{attempt}` whoever
//! has a job, `worker:{id}:heartbeat` who lives. `queue:{name}:priorities` says which lists there are,
//! `queue:{name}:more` from which priority on downwards the store has jobs that no list has, and `queue:{name}:runs`
//! whose turn it is among the classes of runs.

mod address;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod link;
mod moves;

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, PushInfo, PushKind, Value};

pub use address::Address;
pub use link::{Link, Look, Popped};
pub use moves::{Move, Spot};

pub use crate::runs::{HIGHEST, LOWEST};

/// How long it may take to connect, and how long an answer: whoever claims waits no longer than this for a Redis that
/// does not answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// What the scripts need: `LPOP` of several came by then.
const OLDEST: (u32, u32) = (6, 2);

/// What is wrong with Redis, and what to do about it.
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
}

/// What Redis says by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// So many jobs of a queue can be popped.
    Ready { queue: String, n: usize },
    /// The connection is gone.
    Gone,
}

/// Where Redis is.
#[derive(Clone)]
pub struct Redis {
    address: Address,
    client: Client,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.address)
    }
}

impl Redis {
    /// Reads an address; nobody is connected to.
    pub fn at(address: &str) -> Result<Redis, RedisError> {
        let (address, info) = address::read(address)?;
        let client = Client::open(info).map_err(|error| RedisError::of(&error))?;
        Ok(Redis { address, client })
    }

    /// Where it is, without what is secret.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Connects, and says what is wrong if that cannot be: it must answer, be new enough and take what is written.
    /// What Redis says by itself is told to `heard`, which must not block.
    pub async fn connect(&self, heard: impl Fn(Heard) + Send + Sync + 'static) -> Result<Link, RedisError> {
        let push = move |info: PushInfo| -> Result<(), ()> {
            if let Some(what) = read(&info) {
                heard(what);
            }
            Ok(())
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE))
            .set_push_sender(push);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        // What listens there and never answers has no say in how long this takes.
        let connected = tokio::time::timeout(PATIENCE.saturating_mul(2), connecting).await;
        let mut connection = match connected {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(self.unreachable(&error)),
            Err(_) => return Err(self.silent()),
        };
        self.check_version(&mut connection).await?;
        let link = Link::new(connection, self.address.prefix());
        let refused = |error: RedisError| {
            RedisError(format!(
                "Redis at {} does not let this server write ({error}): name the primary, a user with the rights to all \
                 keys, channels and scripts, and leave it memory",
                self.address
            ))
        };
        link.check_rights().await.map_err(refused)?;
        link.subscribe().await.map_err(refused)?;
        Ok(link)
    }

    async fn check_version(&self, connection: &mut MultiplexedConnection) -> Result<(), RedisError> {
        let mut info = redis::cmd("INFO");
        info.arg("server");
        let text: String = match info.query_async(connection).await {
            Ok(text) => text,
            Err(error) => return Err(self.unreachable(&error)),
        };
        let told = text.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or_default();
        let mut numbers = told.trim().split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if version < OLDEST {
            return Err(self.too_old(told.trim()));
        }
        Ok(())
    }

    fn too_old(&self, version: &str) -> RedisError {
        let (major, minor) = OLDEST;
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

    /// Why there is no connection.
    fn unreachable(&self, error: &redis::RedisError) -> RedisError {
        let (place, told) = (&self.address, error.to_string());
        let is_refused = ["WRONGPASS", "NOAUTH", "NOPERM"].into_iter().any(|code| told.contains(code));
        match error.kind() {
            ErrorKind::AuthenticationFailed
                if told.contains("NOPROTO") || told.contains("unknown command") =>
            {
                self.too_old("before 6")
            }
            ErrorKind::RESP3NotSupported => self.too_old("before 6"),
            ErrorKind::AuthenticationFailed => RedisError(format!(
                "Redis at {place} does not accept the user or the password ({told}): write \
                 redis://user:password@host:port"
            )),
            _ if is_refused => RedisError(format!(
                "Redis at {place} wants another user or password ({told}): write redis://user:password@host:port"
            )),
            ErrorKind::Io => RedisError(format!(
                "cannot reach Redis at {place} ({told}): start it, or correct the address of --queue"
            )),
            ErrorKind::Parse => self.silent(),
            _ => RedisError(format!("Redis at {place} refuses the connection ({told})")),
        }
    }
}

/// What a message says, if it is one of ours.
fn read(info: &PushInfo) -> Option<Heard> {
    match info.kind {
        PushKind::Disconnection => Some(Heard::Gone),
        PushKind::Message => {
            let Some(Value::BulkString(text)) = info.data.get(1) else { return None };
            let (n, queue) = std::str::from_utf8(text).ok()?.split_once(':')?;
            Some(Heard::Ready { queue: queue.to_owned(), n: n.parse().ok()? })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
