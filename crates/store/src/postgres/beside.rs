//! Temporary databases on the server of another one: benchmarks start each measurement with an empty store.

use super::address;
use super::column::{PostgresColumns, cells};
use super::link::{self, Connector, Link, Purpose};
use super::trouble::Trouble;
use crate::column::Columns;
use crate::durability::Durability;
use crate::error::StoreError;

const SIZE: &str = "SELECT pg_database_size(current_database())";

/// Makes an empty database on the same server; its address. The user must be allowed to, and the name is one of small
/// letters, digits and underscores.
pub async fn create(address: &str, name: &str) -> Result<String, StoreError> {
    let beside = renamed(address, name)?;
    say(address, &format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")).await?;
    Ok(beside)
}

/// Deletes such a database, and ends its connections.
pub async fn delete(address: &str, name: &str) -> Result<(), StoreError> {
    renamed(address, name)?;
    say(address, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await
}

/// The bytes of a database on its disk, indexes included.
pub async fn size(address: &str) -> Result<u64, StoreError> {
    let pool = link::pool(Connector::new(address::read(address)?)?, Durability::Fast, Purpose::Any, 1)?;
    let row = Link::take(&pool).await?.ask_one(SIZE, &cells![]).await?;
    row.map_or(Ok(0), |row| PostgresColumns::of(&row).number())
}

/// Tidies up after very much was written at once, as the database would by itself in a while.
pub async fn tidy(address: &str) -> Result<(), StoreError> {
    say(address, "VACUUM (ANALYZE)").await
}

/// Not in a transaction, and not prepared: these statements cannot be.
async fn say(address: &str, sql: &str) -> Result<(), StoreError> {
    let connector = Connector::new(address::read(address)?)?;
    let connected = connector.connect().await;
    let (client, connection) = connected.map_err(|error| address::unreachable(&connector.config, error))?;
    let talking = tokio::spawn(connection);
    let said = client.batch_execute(sql).await;
    drop(client);
    // It ends with its client, and the client has reported its errors.
    drop(talking.await);
    Ok(said?)
}

/// The address of another database of the same server.
fn renamed(address: &str, name: &str) -> Result<String, StoreError> {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    let is_name = name.len() <= 63 && name.starts_with(|letter: char| letter.is_ascii_lowercase());
    if !is_name || !name.chars().all(is_plain) {
        let what = format!("`{name}` is no name for a database: use small letters, digits and underscores");
        return Err(Trouble::new(what).into());
    }
    let Some((scheme, rest)) = address.split_once("://") else {
        return Err(Trouble::new("the address is no URL: write postgres://user@host/database").into());
    };
    let (place, parameters) = rest.split_once('?').map_or((rest, None), |(place, more)| (place, Some(more)));
    let host = place.split_once('/').map_or(place, |(host, _)| host);
    let parameters = parameters.map_or_else(String::new, |more| format!("?{more}"));
    Ok(format!("{scheme}://{host}/{name}{parameters}"))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SIZE];

#[cfg(test)]
mod tests {
    use windlass_conformance::block_on_tokio;
    use windlass_conformance::postgres_server::shared;

    use super::*;
    use crate::postgres::Postgres;

    #[test]
    fn an_address_gets_another_database_and_keeps_the_rest() {
        let renamed = |address: &str| renamed(address, "other_1").unwrap();
        assert_eq!(
            renamed("postgres://u:p@h:1/db?connect_timeout=3"),
            "postgres://u:p@h:1/other_1?connect_timeout=3"
        );
        assert_eq!(renamed("postgres://u@%2Ftmp%2Fx/db"), "postgres://u@%2Ftmp%2Fx/other_1");
        assert_eq!(renamed("postgres://h"), "postgres://h/other_1");
    }

    #[test]
    fn a_name_that_would_be_more_than_a_name_is_refused() {
        for name in ["", "1a", "A", "a; DROP TABLE x", "a\"b", &"a".repeat(64)] {
            assert!(renamed("postgres://h/db", name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_database_is_made_used_and_deleted() {
        block_on_tokio(async {
            let first = shared().address("postgres");
            let address = create(&first, "beside_once").await.unwrap();
            assert!(create(&first, "beside_once").await.is_err());
            drop(Postgres::open(&address, Durability::Fast).await.unwrap());
            assert!(size(&address).await.unwrap() > 1_000_000);
            delete(&first, "beside_once").await.unwrap();
            assert!(size(&address).await.is_err());
            delete(&first, "beside_once").await.unwrap();
        });
    }
}
