//! Conversion between Rust values and SQLite columns. Ids are the bytes of their UUID, times are milliseconds, structured
//! values are JSON. An unsigned number is stored as the signed number with the same bits; counters stay below 2^63, so
//! the order is right.

use rusqlite::Row;
use rusqlite::types::{FromSql, Type};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId, ScheduleId, ServerId, VersionId};
use windlass_engine::path::NodePath;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

/// The UUID of an id, as bytes.
pub(super) type Key = [u8; 16];

/// An id with a UUID inside.
pub(super) trait SqliteId: Copy {
    fn key(self) -> Key;
    fn from_key(key: Key) -> Self;
}

macro_rules! ids {
    ($($id:ident)*) => {
        $(impl SqliteId for $id {
            fn key(self) -> Key {
                self.uuid().into_bytes()
            }

            fn from_key(key: Key) -> Self {
                $id::new(Uuid::from_bytes(key))
            }
        })*
    };
}

ids!(CommandId FlowId JobId RunId ScheduleId ServerId VersionId);

/// The stored form of an unsigned number.
pub(super) fn stored(n: impl Into<u64>) -> i64 {
    n.into().cast_signed()
}

/// A number as a limit or a bound in a query; a larger number becomes the largest that SQLite has.
pub(super) fn bound(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

/// The stored form of a structured value.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("rows are plain data: maps with string keys, no failing serialisers")
}

/// The stored form of an enum without data.
pub(super) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => unreachable!("only enums without data are written as words"),
    }
}

/// Reads the columns of a row in the order of the SELECT.
pub(super) struct SqliteColumns<'r> {
    row: &'r Row<'r>,
    next: usize,
}

impl<'r> SqliteColumns<'r> {
    pub(super) fn of(row: &'r Row<'r>) -> Self {
        SqliteColumns { row, next: 0 }
    }

    /// The next column, without conversion.
    pub(super) fn value<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        self.next += 1;
        self.row.get(self.next - 1)
    }

    pub(super) fn id<I: SqliteId>(&mut self) -> rusqlite::Result<I> {
        self.value::<Key>().map(I::from_key)
    }

    pub(super) fn id_or_none<I: SqliteId>(&mut self) -> rusqlite::Result<Option<I>> {
        Ok(self.value::<Option<Key>>()?.map(I::from_key))
    }

    pub(super) fn number<N: From<u64>>(&mut self) -> rusqlite::Result<N> {
        self.value::<i64>().map(|n| N::from(n.cast_unsigned()))
    }

    pub(super) fn number_or_none<N: From<u64>>(&mut self) -> rusqlite::Result<Option<N>> {
        Ok(self.value::<Option<i64>>()?.map(|n| N::from(n.cast_unsigned())))
    }

    pub(super) fn project(&mut self) -> rusqlite::Result<Project> {
        let name: String = self.value()?;
        Project::new(&name).map_err(|error| self.unreadable(error))
    }

    pub(super) fn time(&mut self) -> rusqlite::Result<Timestamp> {
        self.value().map(Timestamp)
    }

    pub(super) fn time_or_none(&mut self) -> rusqlite::Result<Option<Timestamp>> {
        Ok(self.value::<Option<i64>>()?.map(Timestamp))
    }

    pub(super) fn path_or_none(&mut self) -> rusqlite::Result<Option<NodePath>> {
        let path = self.value::<Option<String>>()?;
        Ok(path.map(|path| NodePath::from(path.as_str())))
    }

    pub(super) fn json<T: DeserializeOwned>(&mut self) -> rusqlite::Result<T> {
        let text: String = self.value()?;
        serde_json::from_str(&text).map_err(|error| self.unreadable(error))
    }

    pub(super) fn json_or_none<T: DeserializeOwned>(&mut self) -> rusqlite::Result<Option<T>> {
        let text: Option<String> = self.value()?;
        let read = |text: String| serde_json::from_str(&text).map_err(|error| self.unreadable(error));
        text.map(read).transpose()
    }

    /// An enum without data.
    pub(super) fn word<T: DeserializeOwned>(&mut self) -> rusqlite::Result<T> {
        let word: String = self.value()?;
        serde_json::from_value(serde_json::Value::String(word)).map_err(|error| self.unreadable(error))
    }

    /// The error for a column with a value that cannot be decoded.
    pub(super) fn unreadable(
        &self,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> rusqlite::Error {
        rusqlite::Error::FromSqlConversionFailure(self.next.saturating_sub(1), Type::Text, error.into())
    }
}
