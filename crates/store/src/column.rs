//! Columns of the SQL backends: the stored form of values, and one decoder of each kind of value for both backends.
//!
//! Ids are UUIDs, times are milliseconds, structured values are JSON. An unsigned number is stored as the signed number
//! with the same bits; counters stay below 2^63, so the order is right.

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;
use windlass_engine::id::{BulkId, CommandId, FlowId, JobId, RunId, ScheduleId, ServerId, VersionId};
use windlass_engine::money::Amount;
use windlass_engine::path::NodePath;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

/// An id with a UUID inside.
pub(crate) trait RowId: Copy {
    fn to_uuid(self) -> Uuid;
    fn from_uuid(uuid: Uuid) -> Self;
}

macro_rules! ids {
    ($($id:ident)*) => {
        $(impl RowId for $id {
            fn to_uuid(self) -> Uuid {
                self.uuid()
            }

            fn from_uuid(uuid: Uuid) -> Self {
                $id::new(uuid)
            }
        })*
    };
}

ids!(BulkId CommandId FlowId JobId RunId ScheduleId ServerId VersionId);

/// The stored form of an unsigned number.
pub(crate) fn stored(n: impl Into<u64>) -> i64 {
    n.into().cast_signed()
}

/// A number as a limit or a bound in a query; a larger number becomes the largest that the database has.
pub(crate) fn bound(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

/// The stored form of a structured value.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("rows are plain data: maps with string keys, no failing serialisers")
}

/// The stored form of an enum without data.
pub(crate) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => unreachable!("only enums without data are written as words"),
    }
}

/// An enum without data.
pub(crate) fn read_word<T: DeserializeOwned>(word: &str) -> Result<T, serde_json::Error> {
    serde_json::from_value(serde_json::Value::String(word.to_owned()))
}

/// The columns of a row, each read once, in the order of the SELECT. A backend reads the primitive values; the values
/// that both backends store in the same way are decoded here.
pub(crate) trait Columns {
    type Error;

    fn integer(&mut self) -> Result<i64, Self::Error>;
    fn integer_or_none(&mut self) -> Result<Option<i64>, Self::Error>;
    fn flag(&mut self) -> Result<bool, Self::Error>;
    fn bytes(&mut self) -> Result<Vec<u8>, Self::Error>;
    fn uuid(&mut self) -> Result<Uuid, Self::Error>;
    fn uuid_or_none(&mut self) -> Result<Option<Uuid>, Self::Error>;
    /// A text of a user: any characters.
    fn text(&mut self) -> Result<String, Self::Error>;
    fn text_or_none(&mut self) -> Result<Option<String>, Self::Error>;
    /// Decodes a text that the store wrote (JSON, a word, a name) without a copy.
    fn decode<T, E: Display>(&mut self, decode: impl FnOnce(&str) -> Result<T, E>) -> Result<T, Self::Error>;
    fn decode_or_none<T, E: Display>(
        &mut self,
        decode: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Self::Error>;
    /// The error for the last column, whose value cannot be decoded.
    fn unreadable(&self, reason: &dyn Display) -> Self::Error;

    fn id<I: RowId>(&mut self) -> Result<I, Self::Error> {
        self.uuid().map(I::from_uuid)
    }

    fn id_or_none<I: RowId>(&mut self) -> Result<Option<I>, Self::Error> {
        Ok(self.uuid_or_none()?.map(I::from_uuid))
    }

    fn number<N: From<u64>>(&mut self) -> Result<N, Self::Error> {
        self.integer().map(|n| N::from(n.cast_unsigned()))
    }

    fn number_or_none<N: From<u64>>(&mut self) -> Result<Option<N>, Self::Error> {
        Ok(self.integer_or_none()?.map(|n| N::from(n.cast_unsigned())))
    }

    /// A number that has 32 bits in memory.
    fn small(&mut self) -> Result<u32, Self::Error> {
        let n = self.integer()?;
        u32::try_from(n).map_err(|error| self.unreadable(&error))
    }

    fn small_or_none(&mut self) -> Result<Option<u32>, Self::Error> {
        let n = self.integer_or_none()?;
        n.map(u32::try_from).transpose().map_err(|error| self.unreadable(&error))
    }

    fn amount(&mut self) -> Result<Amount, Self::Error> {
        self.integer().map(Amount)
    }

    fn time(&mut self) -> Result<Timestamp, Self::Error> {
        self.integer().map(Timestamp)
    }

    fn time_or_none(&mut self) -> Result<Option<Timestamp>, Self::Error> {
        Ok(self.integer_or_none()?.map(Timestamp))
    }

    fn project(&mut self) -> Result<Project, Self::Error> {
        self.decode(Project::new)
    }

    fn path(&mut self) -> Result<NodePath, Self::Error> {
        Ok(NodePath::from(self.text()?.as_str()))
    }

    fn path_or_none(&mut self) -> Result<Option<NodePath>, Self::Error> {
        Ok(self.text_or_none()?.map(|path| NodePath::from(path.as_str())))
    }

    fn json<T: DeserializeOwned>(&mut self) -> Result<T, Self::Error> {
        self.decode(|text| serde_json::from_str(text))
    }

    fn json_or_none<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Self::Error> {
        self.decode_or_none(|text| serde_json::from_str(text))
    }

    /// An enum without data.
    fn word<T: DeserializeOwned>(&mut self) -> Result<T, Self::Error> {
        self.decode(read_word)
    }
}
