//! Address of a Redis server: host or socket, database, and key prefix.

use std::fmt;
use std::sync::Arc;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use windlass_engine::project::Project;

use super::RedisError;

const ADDRESS_FORMS: &str = "write redis://host:6379, redis://user:password@host:6379/database, rediss:// for TLS, or redis+unix:///path/of/socket";
/// Bytes of a key prefix.
const PREFIX_MAX: usize = 200;

/// The address without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisAddress {
    place: String,
    is_encrypted: bool,
    /// The file of the authorities that are trusted instead of those of the system.
    ca: Option<String>,
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

    pub(super) fn ca(&self) -> Option<&str> {
        self.ca.as_deref()
    }
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_encrypted { "rediss" } else { "redis" }, self.place)?;
        if self.database != 0 {
            write!(f, "/{}", self.database)?;
        }
        let prefix = Some(&*self.prefix).filter(|prefix| !prefix.is_empty());
        let parts = [("prefix", prefix), ("ca", self.ca())].into_iter();
        let parts = parts.filter_map(|(name, value)| Some((name, value?)));
        for (mark, (name, value)) in ['?', '&'].into_iter().zip(parts) {
            write!(f, "{mark}{name}={value}")?;
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
        "redis" | "rediss" | "redis+unix" => {}
        _ => return Err(RedisError::new(format!("the address is not one of Redis: {ADDRESS_FORMS}"))),
    }
    let (is_socket, is_encrypted) = (url.scheme() == "redis+unix", url.scheme() == "rediss");
    if url.fragment().is_some() {
        return Err(RedisError::new(format!("the address has a `#`: leave it out and {ADDRESS_FORMS}")));
    }
    let (mut prefix, mut ca, mut kept) = (String::new(), None, Vec::new());
    for (name, value) in url.query_pairs() {
        match &*name {
            "prefix" => prefix = value.into_owned(),
            "ca" if is_encrypted && !value.is_empty() => ca = Some(value.into_owned()),
            "db" | "user" | "pass" if is_socket => kept.push((name.into_owned(), value.into_owned())),
            other => {
                let shown: String = other.chars().take(40).collect();
                let allowed = match (is_socket, is_encrypted) {
                    (true, _) => "`prefix`, `db`, `user` and `pass` are",
                    (false, true) => "`prefix` and `ca` (a PEM file) are",
                    (false, false) => "only `prefix` is",
                };
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
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            format!("{host}:{port}")
        }
        other => other.to_string(),
    };
    let prefix: Arc<str> = prefix.into();
    let database = settings.db();
    let address = RedisAddress { place, is_encrypted, ca, database, prefix: prefix.clone(), keys: prefix };
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
        assert_eq!(shown("rediss://me:secret@h:6380?ca=/ca.pem"), "rediss://h:6380?ca=/ca.pem");
        assert_eq!(shown("rediss://h?ca=/ca.pem&prefix=a:"), "rediss://h:6379?prefix=a:&ca=/ca.pem");
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
        assert!(refused("rediss://h#insecure").contains("`#`"));
        assert!(refused("redis://h?ca=/ca.pem").contains("`ca` is no part"));
        let slip = refused("redis://me:secret@h?perfix=x");
        assert!(slip.contains("`perfix`") && !slip.contains("secret"), "{slip}");
        assert!(refused("redis://h?protocol=2").contains("`protocol`"));
        assert!(refused(&format!("redis://h?prefix={}", "x".repeat(201))).contains("shorten"));
    }
}
