//! The address of the database, and clear errors when it cannot be opened.

use std::error::Error as _;
use std::net::IpAddr;

use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Error};

use super::column::PostgresColumns;
use super::encryption::{self, Encryption, EncryptionMode};
use super::link::Link;
use super::trouble::{Trouble, chain};
use crate::error::StoreError;

/// The oldest version with `xid8`, incremental sorts and the settings of connections.
const OLDEST: i64 = 130_000;
const VERSION: &str = "SELECT current_setting('server_version_num')::bigint, current_setting('server_version'), \
     current_setting('server_encoding')";

/// A database, and how the connection to it is encrypted.
#[derive(Debug, Clone)]
pub(super) struct DatabaseAddress {
    pub(super) config: Config,
    pub(super) encryption: Encryption,
}

/// Reads an address such as `postgres://user:password@host:5432/database`.
pub(super) fn read(address: &str) -> Result<DatabaseAddress, StoreError> {
    let (address, encryption) = encryption::split(address)?;
    let mut config: Config = address.parse().map_err(|error: Error| {
        // The address itself may hold a password, and is not repeated.
        let what = chain(&error);
        Trouble::new(format!(
            "the address is not one of PostgreSQL ({what}): write postgres://user@host/database"
        ))
    })?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let what = "the address names no host: write postgres://user@host/database";
        return Err(Trouble::new(what).into());
    }
    let is_socket = config.get_hosts().iter().any(|host| matches!(host, Host::Unix(_)));
    if is_socket && matches!(encryption.mode, EncryptionMode::Required(_)) {
        let what = "a socket of this machine is never encrypted: leave `sslmode` out, or name the host";
        return Err(Trouble::new(what).into());
    }
    config.ssl_mode(match encryption.mode {
        EncryptionMode::Preferred if !is_socket => SslMode::Prefer,
        EncryptionMode::Off | EncryptionMode::Preferred => SslMode::Disable,
        EncryptionMode::Required(_) => SslMode::Require,
    });
    Ok(DatabaseAddress { config, encryption })
}

impl DatabaseAddress {
    /// Whether the connection leaves this machine without encryption.
    pub(super) fn is_exposed(&self) -> bool {
        let is_remote = |host: &Host| match host {
            Host::Unix(_) => false,
            Host::Tcp(name) => {
                name != "localhost" && !name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            }
        };
        let addresses = self.config.get_hostaddrs();
        let is_remote = match addresses.is_empty() {
            true => self.config.get_hosts().iter().any(is_remote),
            false => addresses.iter().any(|address| !address.is_loopback()),
        };
        is_remote && matches!(self.encryption.mode, EncryptionMode::Off | EncryptionMode::Preferred)
    }
}

/// An address as it may be shown: without its user and its password. One that cannot be used is refused.
pub fn shown(address: &str) -> Result<String, StoreError> {
    Ok(format!("postgres://{}", place(&read(address)?.config)))
}

/// Whether connections to an address leave this machine without encryption. One that cannot be read does not.
pub fn is_exposed(address: &str) -> bool {
    read(address).is_ok_and(|address| address.is_exposed())
}

/// Host, port and database.
pub(super) fn place(config: &Config) -> String {
    let host = config.get_hosts().first().map_or_else(
        || config.get_hostaddrs().first().map(ToString::to_string).unwrap_or_default(),
        |host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        },
    );
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("{host}:{port}/{database}")
}

/// Why the first connection was not to be had.
pub(super) fn unreachable(config: &Config, error: Error) -> StoreError {
    let place = place(config);
    let user = config.get_user().unwrap_or("the user of this process");
    let database = config.get_dbname().unwrap_or(user);
    let Some(code) = error.code() else {
        let is_io = error.source().is_some_and(|source| source.is::<std::io::Error>());
        let told = chain(&error);
        let what = if is_io {
            format!("cannot reach the database at {place} ({told}): start it, or correct the address")
        } else {
            format!(
                "cannot talk to the database at {place} ({told}): look at what is there, and at the password"
            )
        };
        return Trouble::new(what).into();
    };
    let message = error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned());
    let remedy = if [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION].contains(code)
    {
        format!("look at the name and the password of `{user}`, and at pg_hba.conf")
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        format!("create it with `createdb {database}`, or correct the address")
    } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        format!("grant `{user}` the right to connect to the database")
    } else if *code == SqlState::TOO_MANY_CONNECTIONS {
        "raise max_connections, or close unused connections".to_owned()
    } else if *code == SqlState::CANNOT_CONNECT_NOW {
        "it is starting up or going down, try again in a moment".to_owned()
    } else {
        "look at the log of the database".to_owned()
    };
    Trouble::new(format!("the database at {place} refuses: {message}: {remedy}")).into()
}

/// Whether the database is one that the program can use.
pub(super) async fn check(db: &Link) -> Result<(), StoreError> {
    let Some(row) = db.ask_one(VERSION, &[]).await? else {
        return Err(Trouble::new("the database does not say what it is").into());
    };
    let mut columns = PostgresColumns::of(&row);
    let (number, name, encoding): (i64, String, String) =
        (columns.value()?, columns.value()?, columns.value()?);
    usable(number, &name, &encoding).map_err(StoreError::from)
}

/// Whether a database of this version and encoding can be used.
fn usable(number: i64, name: &str, encoding: &str) -> Result<(), Trouble> {
    if number < OLDEST {
        return Err(Trouble::new(format!("PostgreSQL {name} is too old: use 13 or newer")));
    }
    if encoding != "UTF8" {
        let remedy = "create one with `createdb --encoding=UTF8 --template=template0`";
        return Err(Trouble::new(format!("the database is encoded in {encoding}, not UTF8: {remedy}")));
    }
    Ok(())
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[VERSION];

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(address: &str) -> String {
        let StoreError::Unavailable(reason) = read(address).unwrap_err() else { panic!("{address}") };
        reason.to_string()
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        let DatabaseAddress { config, .. } = read("postgres://me:secret@db.example:6000/work").unwrap();
        assert_eq!(place(&config), "db.example:6000/work");
        assert!(!refused("postgres://me:secret@db:x/y").contains("secret"));
    }

    #[test]
    fn encryption_is_as_the_address_says() {
        let mode = |address: &str| read(address).unwrap().config.get_ssl_mode();
        assert_eq!(mode("postgres://me@db/x"), SslMode::Disable);
        assert_eq!(mode("postgres://me@db/x?sslmode=prefer"), SslMode::Prefer);
        assert_eq!(mode("postgres://%2Frun%2Fpg/x?sslmode=prefer"), SslMode::Disable);
        assert_eq!(mode("postgres://me@db/x?application_name=a&sslmode=verify-full"), SslMode::Require);
        let is_exposed = |address: &str| read(address).unwrap().is_exposed();
        for host in ["localhost", "127.0.0.1", "[::1]", "%2Frun%2Fpg"] {
            assert!(!is_exposed(&format!("postgres://me@{host}/x")), "{host}");
        }
        assert!(!is_exposed("postgres://me@db.example/x?sslmode=require"));
        assert!(is_exposed("postgres://me@db.example/x") && is_exposed("postgres://me@10.0.0.1/x"));
        assert!(is_exposed("postgres://me@db.example/x?sslmode=prefer"));
    }

    #[test]
    fn a_server_that_is_too_old_is_refused() {
        let told = |number, name| usable(number, name, "UTF8").unwrap_err().to_string();
        assert_eq!(told(120_022, "12.22"), "PostgreSQL 12.22 is too old: use 13 or newer");
        assert!(told(90_624, "9.6.24").contains("9.6.24"));
        for number in [130_000, 130_020, 170_005] {
            usable(number, "", "UTF8").unwrap();
        }
    }

    #[test]
    fn an_address_that_cannot_be_used_is_refused() {
        assert!(refused("postgres://db/x?sslmode=allow").contains("write disable, prefer, require"));
        assert!(refused("postgres://%2Frun%2Fpg/x?sslmode=require").contains("never encrypted"));
        assert!(refused("postgres:///x").contains("host"));
        assert!(refused("postgres://db/x?colour=red").contains("colour"));
    }
}
