//! The address of the database, and clear errors when it cannot be opened.

use std::error::Error as _;

use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Error};

use super::column::PostgresColumns;
use super::link::Link;
use super::trouble::{Trouble, chain};
use crate::error::StoreError;

/// The oldest version with `xid8`, incremental sorts and the settings of connections.
const OLDEST: i64 = 130_000;
const VERSION: &str = "SELECT current_setting('server_version_num')::bigint, current_setting('server_version'), \
     current_setting('server_encoding')";

/// Reads an address such as `postgres://user:password@host:5432/database`.
pub(super) fn read(address: &str) -> Result<Config, StoreError> {
    let config: Config = address.parse().map_err(|error: Error| {
        // The address itself may hold a password, and is not repeated.
        let what = chain(&error);
        Trouble::new(format!(
            "the address is not one of PostgreSQL ({what}): write postgres://user@host/database"
        ))
    })?;
    if config.get_ssl_mode() == SslMode::Require {
        let what = "this release does not encrypt connections to PostgreSQL: leave `sslmode=require` out and reach \
                    the database over a private network or a tunnel";
        return Err(Trouble::new(what).into());
    }
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let what = "the address names no host: write postgres://user@host/database";
        return Err(Trouble::new(what).into());
    }
    Ok(config)
}

/// The address without its secrets.
pub(super) fn shown(config: &Config) -> String {
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
    let place = shown(config);
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
        let config = read("postgres://me:secret@db.example:6000/work").unwrap();
        assert_eq!(shown(&config), "db.example:6000/work");
        assert!(!refused("postgres://me:secret@db:x/y").contains("secret"));
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
        assert!(refused("postgres://db/x?sslmode=require").contains("sslmode"));
        assert!(refused("postgres:///x").contains("host"));
        assert!(refused("postgres://db/x?colour=red").contains("colour"));
    }
}
