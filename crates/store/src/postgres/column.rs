//! How values become columns and columns become values.
//!
//! Ids are UUIDs, moments are milliseconds, free-form things are JSON in plain text. Numbers without a sign are kept
//! bit by bit in the signed ones that PostgreSQL has. A text may hold any character but one: that one is
//! written with an escape, in such a way that texts still sort by their bytes.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};
use uuid::Uuid;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId, ScheduleId, ServerId, VersionId};
use windlass_engine::path::NodePath;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

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
                #[allow(unused_variables, reason = "a column is of one part of its row")]
                let $row = row;
                $cell
            }).collect::<Vec<_>>()) as $crate::postgres::column::Cell<'_>
        ),*])
    };
}

pub(super) use {cells, unnest};

/// Types with a UUID inside.
pub(super) trait Id: Copy {
    fn key(self) -> Uuid;
    fn from_key(key: Uuid) -> Self;
}

macro_rules! ids {
    ($($id:ident)*) => {
        $(impl Id for $id {
            fn key(self) -> Uuid {
                self.uuid()
            }

            fn from_key(key: Uuid) -> Self {
                $id::new(key)
            }
        })*
    };
}

ids!(CommandId FlowId JobId RunId ScheduleId ServerId VersionId);

/// A number as it is stored.
pub(super) fn stored(n: impl Into<u64>) -> i64 {
    n.into().cast_signed()
}

/// A number as a limit or an offset: too large a number becomes the largest.
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

/// The escape before the replacement of a character that cannot be stored, and before itself.
const ESCAPE: char = '\u{1}';

/// A user's text in its stored form. JSON needs none of this: it has escapes of its own.
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

/// A text as it was before it was stored.
pub(super) fn back(stored: String) -> String {
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

/// Stored rows make no sense.
pub(super) fn unreadable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("a column is not what was written there: {error}"))
}

/// The columns of a row, in the order in which they were asked for.
pub(super) struct Columns<'r> {
    row: &'r Row,
    next: usize,
}

impl<'r> Columns<'r> {
    pub(super) fn of(row: &'r Row) -> Self {
        Columns { row, next: 0 }
    }

    /// The next column as it is.
    pub(super) fn value<T: FromSql<'r>>(&mut self) -> Result<T, StoreError> {
        self.next += 1;
        self.row.try_get(self.next - 1).map_err(unreadable)
    }

    pub(super) fn text(&mut self) -> Result<String, StoreError> {
        self.value().map(back)
    }

    pub(super) fn text_or_none(&mut self) -> Result<Option<String>, StoreError> {
        Ok(self.value::<Option<String>>()?.map(back))
    }

    pub(super) fn id<I: Id>(&mut self) -> Result<I, StoreError> {
        self.value().map(I::from_key)
    }

    pub(super) fn id_or_none<I: Id>(&mut self) -> Result<Option<I>, StoreError> {
        Ok(self.value::<Option<Uuid>>()?.map(I::from_key))
    }

    pub(super) fn project(&mut self) -> Result<Project, StoreError> {
        Project::new(self.value()?).map_err(unreadable)
    }

    pub(super) fn number<N: From<u64>>(&mut self) -> Result<N, StoreError> {
        self.value::<i64>().map(|n| N::from(n.cast_unsigned()))
    }

    pub(super) fn number_or_none<N: From<u64>>(&mut self) -> Result<Option<N>, StoreError> {
        Ok(self.value::<Option<i64>>()?.map(|n| N::from(n.cast_unsigned())))
    }

    pub(super) fn small(&mut self) -> Result<u32, StoreError> {
        u32::try_from(self.value::<i64>()?).map_err(unreadable)
    }

    pub(super) fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.value().map(Timestamp)
    }

    pub(super) fn time_or_none(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.value::<Option<i64>>()?.map(Timestamp))
    }

    pub(super) fn path_or_none(&mut self) -> Result<Option<NodePath>, StoreError> {
        Ok(self.text_or_none()?.map(|path| NodePath::from(path.as_str())))
    }

    pub(super) fn json<T: DeserializeOwned>(&mut self) -> Result<T, StoreError> {
        serde_json::from_str(self.value()?).map_err(unreadable)
    }

    pub(super) fn json_or_none<T: DeserializeOwned>(&mut self) -> Result<Option<T>, StoreError> {
        let text: Option<&str> = self.value()?;
        text.map(serde_json::from_str).transpose().map_err(unreadable)
    }

    /// An enum that is written as a word.
    pub(super) fn word<T: DeserializeOwned>(&mut self) -> Result<T, StoreError> {
        read_word(self.value()?)
    }
}

/// An enum that is written as a word.
pub(super) fn read_word<T: DeserializeOwned>(word: &str) -> Result<T, StoreError> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).map_err(unreadable)
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
            prop_assert_eq!(back(text(&one).into_owned()), one.clone());
            prop_assert_eq!(text(&one).cmp(&text(&other)), one.cmp(&other));
        }
    }
}
