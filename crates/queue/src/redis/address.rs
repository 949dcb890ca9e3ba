//! Address of a Redis server: host or socket, database, and key prefix.

use std::fmt;
use std::sync::Arc;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use windlass_engine::project::Project;

use super::RedisError;

const ADDRESS_FORMS: &str =
    "write redis://host:6379, redis://user:password@host:6379/database or redis+unix:///path/of/socket";
/// Bytes of a key prefix.
const PREFIX_MAX: usize = 200;

/// The address without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisAddress {
    place: String,
    database: i64,
    /// The prefix in the address.
    prefix: Arc<str>,
    /// The prefix of all keys, with that of the project.
    keys: Arc<str>,
}

impl RedisAddress {
    /// The same address with the keys of this project.
    pub(super) fn for_project(self, project: &Project) -> Self {
        let keys = match *project == Project::DEFAULT {
            true => self.prefix.clone(),
            false => format!("{}project:{project}:", self.prefix).into(),
        };
        RedisAddress { keys, ..self }
    }

    pub(super) fn prefix(&self) -> Arc<str> {
        self.keys.clone()
    }
}

impl fmt::Display for RedisAddress {
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

/// Parses an address. Errors do not repeat it, because it may contain a password.
pub(super) fn read(text: &str) -> Result<(RedisAddress, ConnectionInfo), RedisError> {
    let Some(mut url) = redis::parse_redis_url(text) else {
        return Err(RedisError::new(format!("the address is not one of Redis: {ADDRESS_FORMS}")));
    };
    match url.scheme() {
        "redis" | "redis+unix" => {}
        "rediss" => {
            return Err(RedisError::new(
                "this release does not encrypt connections to Redis: write redis:// and reach it over a private \
                 network or a tunnel",
            ));
        }
        _ => return Err(RedisError::new(format!("the address is not one of Redis: {ADDRESS_FORMS}"))),
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
    let info = url.into_connection_info().map_err(|error| {
        RedisError::new(format!("the address is not one of Redis ({error}): {ADDRESS_FORMS}"))
    })?;
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let place = match info.addr() {
        ConnectionAddr::Tcp(host, port) => format!("{host}:{port}"),
        other => other.to_string(),
    };
    let prefix: Arc<str> = prefix.into();
    let address = RedisAddress { place, database: settings.db(), prefix: prefix.clone(), keys: prefix };
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
    fn an_address_is_shown_without_secrets() {
        assert_eq!(shown("redis://cache.example"), "redis://cache.example:6379");
        assert_eq!(shown("redis://me:secret@cache.example:7000/3"), "redis://cache.example:7000/3");
        assert_eq!(shown("redis://h?prefix=a:"), "redis://h:6379?prefix=a:");
        assert_eq!(shown("redis+unix:///run/redis.sock?db=2&pass=secret"), "redis:///run/redis.sock/2");
        assert!(!format!("{:?}", read("redis://me:secret@h").unwrap().0).contains("secret"));
    }

    #[test]
    fn keys_of_other_projects_have_a_prefix() {
        let prefix = |project: &str| {
            let address = read("redis://h?prefix=a:").unwrap().0;
            address.for_project(&project.parse().unwrap()).prefix().to_string()
        };
        assert_eq!((prefix("default").as_str(), prefix("acme").as_str()), ("a:", "a:project:acme:"));
    }

    #[test]
    fn an_invalid_address_is_refused_with_a_valid_example() {
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
