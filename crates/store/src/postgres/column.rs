//! Columns and parameters of PostgreSQL. A text may hold any character but NUL, which `text` escapes such that texts
//! still sort by their bytes.

use std::borrow::Cow;
use std::fmt::Display;

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};
use uuid::Uuid;

use crate::column::{Columns, RowId};
use crate::error::StoreError;

/// The value of one parameter.
pub(super) type Cell<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// Parameters, one value each.
macro_rules! cells {
    ($($value:expr),* $(,)?) => {
        Vec::from([$(Box::new($value) as $crate::postgres::column::Cell<'_>),*])
    };
}

/// Parameters, one array each: the columns of rows that are written at once.
macro_rules! unnest {
    ($rows:expr, |$row:pat_param| [$($cell:expr),* $(,)?]) => {
        Vec::from([$(
            Box::new($rows.iter().map(|row| {
                #[allow(unused_variables, reason = "a column uses a part of its row")]
                let $row = row;
                $cell
            }).collect::<Vec<_>>()) as $crate::postgres::column::Cell<'_>
        ),*])
    };
}

pub(super) use {cells, unnest};

/// An id as a parameter.
pub(super) trait PostgresId: RowId {
    fn key(self) -> Uuid {
        self.to_uuid()
    }
}

impl<I: RowId> PostgresId for I {}

/// The escape before the replacement of a character that cannot be stored, and before itself.
const ESCAPE: char = '\u{1}';

/// A user's text in its stored form. JSON has escapes of its own and does not need it.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte <= 1) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => escaped.extend([ESCAPE, '0']),
            ESCAPE => escaped.extend([ESCAPE, '1']),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// A user's text from its stored form.
pub(super) fn unescape(stored: String) -> String {
    if !stored.contains(ESCAPE) {
        return stored;
    }
    let mut text = String::with_capacity(stored.len());
    let mut characters = stored.chars();
    while let Some(character) = characters.next() {
        if character == ESCAPE {
            text.push(if characters.next() == Some('0') { '\0' } else { ESCAPE });
        } else {
            text.push(character);
        }
    }
    text
}

/// The error for a column whose value cannot be decoded.
pub(super) fn unreadable(error: impl Display) -> StoreError {
    StoreError::Corrupt(format!("a column holds a value that the server did not write: {error}"))
}

/// The columns of a row of PostgreSQL.
pub(super) struct PostgresColumns<'r> {
    row: &'r Row,
    next: usize,
}

impl<'r> PostgresColumns<'r> {
    pub(super) fn of(row: &'r Row) -> Self {
        PostgresColumns { row, next: 0 }
    }

    /// The next column, without conversion.
    pub(super) fn value<T: FromSql<'r>>(&mut self) -> Result<T, StoreError> {
        self.next += 1;
        self.row.try_get(self.next - 1).map_err(unreadable)
    }
}

impl Columns for PostgresColumns<'_> {
    type Error = StoreError;

    fn integer(&mut self) -> Result<i64, StoreError> {
        self.value()
    }

    fn integer_or_none(&mut self) -> Result<Option<i64>, StoreError> {
        self.value()
    }

    fn flag(&mut self) -> Result<bool, StoreError> {
        self.value()
    }

    fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        self.value()
    }

    fn uuid(&mut self) -> Result<Uuid, StoreError> {
        self.value()
    }

    fn uuid_or_none(&mut self) -> Result<Option<Uuid>, StoreError> {
        self.value()
    }

    fn text(&mut self) -> Result<String, StoreError> {
        self.value().map(unescape)
    }

    fn text_or_none(&mut self) -> Result<Option<String>, StoreError> {
        Ok(self.value::<Option<String>>()?.map(unescape))
    }

    fn decode<T, E: Display>(&mut self, decode: impl FnOnce(&str) -> Result<T, E>) -> Result<T, StoreError> {
        decode(self.value()?).map_err(unreadable)
    }

    fn decode_or_none<T, E: Display>(
        &mut self,
        decode: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, StoreError> {
        self.value::<Option<&str>>()?.map(decode).transpose().map_err(unreadable)
    }

    fn unreadable(&self, reason: &dyn Display) -> StoreError {
        unreadable(reason)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_comes_back_and_sorts_as_before(
            one in "[\u{0}\u{1}\u{2}01ab]{0,5}", other in "[\u{0}\u{1}\u{2}01ab]{0,5}",
        ) {
            prop_assert!(!text(&one).contains('\0'));
            prop_assert_eq!(unescape(text(&one).into_owned()), one.clone());
            prop_assert_eq!(text(&one).cmp(&text(&other)), one.cmp(&other));
        }
    }
}
