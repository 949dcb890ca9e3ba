//! How values become columns and columns become values.
//!
//! Ids are the bytes of their UUID, moments are milliseconds, free-form things are JSON. Numbers without a sign are
//! kept bit by bit in the signed ones that SQLite has: nothing is lost, and only what nobody ever counts up to would
//! be sorted wrongly.

use rusqlite::Row;
use rusqlite::types::{FromSql, Type};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId, ScheduleId, ServerId, VersionId};
use windlass_engine::path::NodePath;
use windlass_engine::time::Timestamp;

/// The bytes of an id.
pub(super) type Key = [u8; 16];

/// What has a UUID inside.
pub(super) trait Id: Copy {
    fn key(self) -> Key;
    fn from_key(key: Key) -> Self;
}

macro_rules! ids {
    ($($id:ident)*) => {
        $(impl Id for $id {
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

/// A number as it is stored.
pub(super) fn stored(n: u64) -> i64 {
    n.cast_signed()
}

/// A number as a limit or a place in a list: what is too large for SQLite is as good as its largest.
pub(super) fn bound(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

/// The stored form of something free.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("rows are plain data: maps with string keys, no failing serialisers")
}

/// The word of an enum that is written as one.
pub(super) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => unreachable!("only enums without data are written as words"),
    }
}

/// The columns of a row, in the order in which they were asked for.
pub(super) struct Columns<'r> {
    row: &'r Row<'r>,
    next: usize,
}

impl<'r> Columns<'r> {
    pub(super) fn of(row: &'r Row<'r>) -> Self {
        Columns { row, next: 0 }
    }

    /// The next column as it is.
    pub(super) fn value<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        self.next += 1;
        self.row.get(self.next - 1)
    }

    pub(super) fn id<I: Id>(&mut self) -> rusqlite::Result<I> {
        self.value::<Key>().map(I::from_key)
    }

    pub(super) fn id_or_none<I: Id>(&mut self) -> rusqlite::Result<Option<I>> {
        Ok(self.value::<Option<Key>>()?.map(I::from_key))
    }

    pub(super) fn number(&mut self) -> rusqlite::Result<u64> {
        self.value::<i64>().map(i64::cast_unsigned)
    }

    pub(super) fn number_or_none(&mut self) -> rusqlite::Result<Option<u64>> {
        Ok(self.value::<Option<i64>>()?.map(i64::cast_unsigned))
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

    /// An enum that is written as a word.
    pub(super) fn word<T: DeserializeOwned>(&mut self) -> rusqlite::Result<T> {
        let word: String = self.value()?;
        serde_json::from_value(serde_json::Value::String(word)).map_err(|error| self.unreadable(error))
    }

    /// What is in the last column makes no sense.
    pub(super) fn unreadable(
        &self,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> rusqlite::Error {
        rusqlite::Error::FromSqlConversionFailure(self.next.saturating_sub(1), Type::Text, error.into())
    }
}
