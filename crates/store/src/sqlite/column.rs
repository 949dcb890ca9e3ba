//! Columns of SQLite. Ids are the bytes of their UUID.

use std::fmt::Display;

use rusqlite::Row;
use rusqlite::types::{FromSql, Type};
use uuid::Uuid;

use crate::column::{Columns, RowId};

/// The UUID of an id, as bytes.
pub(super) type Key = [u8; 16];

/// An id as a parameter.
pub(super) trait SqliteId: RowId {
    fn key(self) -> Key {
        self.to_uuid().into_bytes()
    }

    fn from_key(key: Key) -> Self {
        Self::from_uuid(Uuid::from_bytes(key))
    }
}

impl<I: RowId> SqliteId for I {}

/// The columns of a row of SQLite.
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

    /// The next column as a text that is borrowed from the row.
    fn borrowed(&mut self) -> rusqlite::Result<Option<&'r str>> {
        self.next += 1;
        Ok(self.row.get_ref(self.next - 1)?.as_str_or_null()?)
    }
}

impl Columns for SqliteColumns<'_> {
    type Error = rusqlite::Error;

    fn integer(&mut self) -> rusqlite::Result<i64> {
        self.value()
    }

    fn integer_or_none(&mut self) -> rusqlite::Result<Option<i64>> {
        self.value()
    }

    fn flag(&mut self) -> rusqlite::Result<bool> {
        self.value()
    }

    fn bytes(&mut self) -> rusqlite::Result<Vec<u8>> {
        self.value()
    }

    fn uuid(&mut self) -> rusqlite::Result<Uuid> {
        self.value().map(Uuid::from_bytes)
    }

    fn uuid_or_none(&mut self) -> rusqlite::Result<Option<Uuid>> {
        Ok(self.value::<Option<Key>>()?.map(Uuid::from_bytes))
    }

    fn text(&mut self) -> rusqlite::Result<String> {
        self.value()
    }

    fn text_or_none(&mut self) -> rusqlite::Result<Option<String>> {
        self.value()
    }

    fn decode<T, E: Display>(&mut self, decode: impl FnOnce(&str) -> Result<T, E>) -> rusqlite::Result<T> {
        let text = self.borrowed()?.ok_or_else(|| self.unreadable(&"it is NULL"))?;
        decode(text).map_err(|error| self.unreadable(&error))
    }

    fn decode_or_none<T, E: Display>(
        &mut self,
        decode: impl FnOnce(&str) -> Result<T, E>,
    ) -> rusqlite::Result<Option<T>> {
        let text = self.borrowed()?;
        text.map(decode).transpose().map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, reason: &dyn Display) -> rusqlite::Error {
        let column = self.next.saturating_sub(1);
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, reason.to_string().into())
    }
}
