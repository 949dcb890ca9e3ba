//! Opening a database.

use std::sync::Arc;

use uuid::Uuid;

use super::link::{self, Connector, Link, Purpose};
use super::listen::Channel;
use super::writer::{WRITERS, Writer};
use super::{ASKERS, Postgres, READERS, SHARDS, address, schema};
use crate::blob::BlobCache;
use crate::column::bound;
use crate::condition::ConditionLog;
use crate::durability::Durability;
use crate::error::StoreError;

/// Makes sure that the database exists, for a clear error message.
async fn reach(address: &str) -> Result<Connector, StoreError> {
    let connector = Connector::new(address::read(address)?)?;
    let first = connector.connect().await;
    drop(first.map_err(|error| address::unreachable(&connector.config, error))?);
    Ok(connector)
}

impl Postgres {
    /// Opens the database at an address such as `postgres://user:password@host:5432/database`, and brings its tables up
    /// to date. Others may have it open. One that a copy has not come to its end in is refused. Needs a Tokio runtime,
    /// and lives in it.
    pub async fn open(address: &str, durability: Durability) -> Result<Postgres, StoreError> {
        Self::open_checked(address, durability, true).await
    }

    /// Opens it even if a copy into it has not come to its end.
    #[cfg(feature = "sqlite")]
    pub(crate) async fn open_unfinished(
        address: &str,
        durability: Durability,
    ) -> Result<Postgres, StoreError> {
        Self::open_checked(address, durability, false).await
    }

    async fn open_checked(
        address: &str,
        durability: Durability,
        has_to_be_whole: bool,
    ) -> Result<Postgres, StoreError> {
        let connector = reach(address).await?;
        let shown = address::place(&connector.config);
        let readers = link::pool(connector.clone(), durability, Purpose::Any, READERS)?;
        let askers = link::pool(connector.clone(), durability, Purpose::ByKey, ASKERS)?;
        let writers = link::pool(connector.clone(), durability, Purpose::ByKey, WRITERS)?;
        let db = Link::take(&readers).await?;
        address::check(&db).await?;
        schema::check_owner(&db, &shown).await?;
        if has_to_be_whole {
            // Already before anything is waited for that a copy holds.
            schema::check_finished(&db).await?;
        }
        schema::migrate(&db).await?;
        if has_to_be_whole {
            schema::check_finished(&db).await?;
        }
        drop(db);
        let channel = Arc::new(Channel::new(connector)?);
        let chance = i64::from(Uuid::now_v7().as_bytes()[15]);
        let shards = std::array::from_fn(|n| (chance + bound(n)) % SHARDS);
        let condition = Arc::new(ConditionLog::default());
        let writer = Writer::start(writers, readers.clone(), channel.clone(), condition.clone(), shards);
        let blobs = BlobCache::default();
        Ok(Postgres { condition, readers, askers, writer, channel, blobs, shard: shards[0] })
    }

    /// Whether there are tables of the program at an address.
    #[cfg(feature = "sqlite")]
    pub(crate) async fn is_there(address: &str) -> Result<bool, StoreError> {
        let pool = link::pool(reach(address).await?, Durability::Strict, Purpose::Any, 1)?;
        schema::is_there(&Link::take(&pool).await?).await
    }
}
