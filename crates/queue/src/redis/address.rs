//! Where Redis is: a host or a socket, a database, and what stands before all keys.

use std::fmt;
use std::sync::Arc;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use super::RedisError;

const WRITE: &str =
    "write redis://host:6379, redis://user:password@host:6379/database or redis+unix:///path/of/socket";
/// Bytes that can stand before all keys.
const PREFIX_MAX: usize = 200;

/// Where Redis is, without what is secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    place: String,
    database: i64,
    prefix: Arc<str>,
}

impl Address {
    pub(super) fn prefix(&self) -> Arc<str> {
        self.prefix.clone()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redis://{}", self.place)?;
        if self.database != 0 {
            write!(f, "/{}", self.database)?;
        }
        if !self.prefix.is_empty() {
            write!(f, "?prefix={}", self.prefix)?;
        }
        Ok(())
    }
}

/// Reads an address. What it says may be secret, and is not repeated.
pub(super) fn read(text: &str) -> Result<(Address, ConnectionInfo), RedisError> {
    let Some(mut url) = redis::parse_redis_url(text) else {
        return Err(RedisError::new(format!("the address is not one of Redis: {WRITE}")));
    };
    match url.scheme() {
        "redis" | "redis+unix" => {}
        "rediss" => {
            return Err(RedisError::new(
                "this release does not encrypt connections to Redis: write redis:// and reach it over a private \
                 network or a tunnel",
            ));
        }
        _ => return Err(RedisError::new(format!("the address is not one of Redis: {WRITE}"))),
    }
    let is_socket = url.scheme() == "redis+unix";
    let (mut prefix, mut kept) = (String::new(), Vec::new());
    for (name, value) in url.query_pairs() {
        match &*name {
            "prefix" => prefix = value.into_owned(),
            "db" | "user" | "pass" if is_socket => kept.push((name.into_owned(), value.into_owned())),
            other => {
                let shown: String = other.chars().take(40).collect();
                let allowed =
                    if is_socket { "`prefix`, `db`, `user` and `pass` are" } else { "only `prefix` is" };
                return Err(RedisError::new(format!(
                    "`{shown}` is no part of an address of Redis: after the question mark {allowed} allowed"
                )));
            }
        }
    }
    if prefix.len() > PREFIX_MAX {
        return Err(RedisError::new(format!("the prefix is longer than {PREFIX_MAX} bytes: shorten it")));
    }
    url.set_query(None);
    if !kept.is_empty() {
        url.query_pairs_mut().extend_pairs(kept);
    }
    let info = url
        .into_connection_info()
        .map_err(|error| RedisError::new(format!("the address is not one of Redis ({error}): {WRITE}")))?;
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let place = match info.addr() {
        ConnectionAddr::Tcp(host, port) => format!("{host}:{port}"),
        other => other.to_string(),
    };
    let address = Address { place, database: settings.db(), prefix: prefix.into() };
    Ok((address, info.set_redis_settings(settings)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        read(text).unwrap().0.to_string()
    }

    fn refused(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn an_address_is_shown_without_what_is_secret() {
        assert_eq!(shown("redis://cache.example"), "redis://cache.example:6379");
        assert_eq!(shown("redis://me:secret@cache.example:7000/3"), "redis://cache.example:7000/3");
        assert_eq!(shown("redis://h?prefix=a:"), "redis://h:6379?prefix=a:");
        assert_eq!(shown("redis+unix:///run/redis.sock?db=2&pass=secret"), "redis:///run/redis.sock/2");
        assert!(!format!("{:?}", read("redis://me:secret@h").unwrap().0).contains("secret"));
    }

    #[test]
    fn what_is_no_address_is_refused_with_one_that_is() {
        for text in
            ["redis.example", "http://h", "redis://", "redis://h/x", "", "redis+unix://", "redis://0.0.0.0"]
        {
            assert!(refused(text).contains("redis://"), "{text}: {}", refused(text));
        }
        assert!(refused("rediss://h").contains("does not encrypt"));
        let slip = refused("redis://me:secret@h?perfix=x");
        assert!(slip.contains("`perfix`") && !slip.contains("secret"), "{slip}");
        assert!(refused("redis://h?protocol=2").contains("`protocol`"));
        assert!(refused(&format!("redis://h?prefix={}", "x".repeat(201))).contains("shorten"));
    }
}
