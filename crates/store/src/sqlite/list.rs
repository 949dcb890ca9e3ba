//! Pages: conditions that the tables can check, a place to begin, and whatever only the row itself can tell.

use std::fmt::Display;
use std::str::FromStr;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use windlass_engine::time::Timestamp;

use super::column::{Id, bound};
use crate::error::StoreError;
use crate::page::{Cursor, Order, Page, Part};

/// Where a list is read from: everything up to the conditions, and the columns it can be ordered by.
pub(super) struct Source {
    pub(super) select: &'static str,
    pub(super) count: &'static str,
    pub(super) created: &'static str,
    pub(super) changed: &'static str,
    pub(super) id: &'static str,
}

/// What rows have to fulfil.
#[derive(Default)]
pub(super) struct Conditions {
    texts: Vec<String>,
    values: Vec<Value>,
    /// Conditions of which every row fulfils one: where each has an index of its own, they are read side by side.
    parts: Vec<&'static str>,
}

impl Conditions {
    /// Adds a condition with as many `?` as there are values.
    pub(super) fn add(&mut self, text: impl Into<String>, values: impl IntoIterator<Item = Value>) {
        self.texts.push(text.into());
        self.values.extend(values);
    }

    /// Adds `column = value` if there is a value.
    pub(super) fn equal(&mut self, column: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.add(format!("{column} = ?"), [value.into()]);
        }
    }

    /// Adds the bounds of a time.
    pub(super) fn between(&mut self, column: &str, since: Option<Timestamp>, until: Option<Timestamp>) {
        for (sign, bound) in [(">=", since), ("<", until)] {
            if let Some(bound) = bound {
                self.add(format!("{column} {sign} ?"), [bound.0.into()]);
            }
        }
    }

    /// Adds that a column is one of these words, if there are any. They are words of this program, and written out:
    /// an index over the rows with one word is not used for a value that comes later.
    pub(super) fn one_of(&mut self, column: &str, words: &[&'static str]) {
        match words {
            [] => {}
            [word] => self.add(format!("{column} = '{word}'"), []),
            words => self.add(format!("{column} IN ('{}')", words.join("', '")), []),
        }
    }

    /// Divides the rows: each fulfils one of these.
    pub(super) fn divide(&mut self, parts: impl IntoIterator<Item = &'static str>) {
        self.parts.extend(parts);
    }

    fn text(&self) -> String {
        if self.texts.is_empty() { String::new() } else { format!(" WHERE {}", self.texts.join(" AND ")) }
    }

    /// A selection of the rows, or one for each part, and the values of all of them.
    fn selection(&self, select: &str) -> (String, Vec<Value>) {
        if self.parts.is_empty() {
            return (format!("{select}{}", self.text()), self.values.clone());
        }
        let one = |part: &&str| {
            let texts = self.texts.iter().map(String::as_str).chain([*part]);
            format!("{select} WHERE {}", texts.collect::<Vec<_>>().join(" AND "))
        };
        let all = self.parts.iter().map(one).collect::<Vec<_>>().join(" UNION ALL ");
        (all, vec![self.values.clone(); self.parts.len()].concat())
    }
}

/// The bytes of an id as a value.
pub(super) fn key(id: impl Id) -> Value {
    Value::Blob(id.key().to_vec())
}

/// What is not asked of the tables but of each row.
pub(super) type Filter<'f, T> = Option<&'f dyn Fn(&T) -> bool>;

/// Reads one page.
pub(super) fn page<T, I: Id + FromStr + Display>(
    db: &Connection,
    source: &Source,
    mut conditions: Conditions,
    part: &Part,
    filter: Filter<'_, T>,
    read: &dyn Fn(&Row<'_>) -> rusqlite::Result<T>,
    place: &dyn Fn(&T) -> (Timestamp, I),
) -> Result<Page<T>, StoreError> {
    let from = part.cursor.as_ref().map(|cursor| cursor.read::<I>(part.order)).transpose()?;
    let total = part.count.then(|| count(db, source, &conditions, filter, read)).transpose()?;
    let time = match part.order {
        Order::Newest | Order::Oldest => source.created,
        Order::LatestChange => source.changed,
    };
    let (sign, direction) = if part.order.is_descending() { ("<", "DESC") } else { (">", "ASC") };
    let id = source.id;
    if let Some((at, last)) = from {
        conditions.add(format!("({time}, {id}) {sign} (?, ?)"), [at.0.into(), key(last)]);
    }
    // One more than fits tells whether there is another page.
    let most = part.size().saturating_add(1);
    let (selection, mut values) = conditions.selection(source.select);
    let mut sql = format!("{selection} ORDER BY {time} {direction}, {id} {direction}");
    let mut n_to_skip = part.skip;
    if filter.is_none() {
        sql.push_str(" LIMIT ? OFFSET ?");
        values.extend([bound(most).into(), bound(part.skip).into()]);
        n_to_skip = 0;
    }
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(&values))?;
    let mut items: Vec<T> = Vec::new();
    while let Some(row) = rows.next()? {
        let item = read(row)?;
        if filter.is_some_and(|filter| !filter(&item)) {
            continue;
        }
        if n_to_skip > 0 {
            n_to_skip -= 1;
            continue;
        }
        items.push(item);
        if items.len() == most {
            break;
        }
    }
    let has_more = items.len() == most;
    items.truncate(part.size());
    let next = items.last().filter(|_| has_more).map(|item| {
        let (at, id) = place(item);
        Cursor::after(part.order, at, id)
    });
    Ok(Page { items, next, total })
}

fn count<T>(
    db: &Connection,
    source: &Source,
    conditions: &Conditions,
    filter: Filter<'_, T>,
    read: &dyn Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<u64, StoreError> {
    let values = params_from_iter(&conditions.values);
    let Some(filter) = filter else {
        let mut statement = db.prepare_cached(&format!("{}{}", source.count, conditions.text()))?;
        return Ok(statement.query_row(values, |row| row.get::<_, i64>(0))?.cast_unsigned());
    };
    let mut statement = db.prepare_cached(&format!("{}{}", source.select, conditions.text()))?;
    let mut rows = statement.query(values)?;
    let mut n = 0;
    while let Some(row) = rows.next()? {
        n += u64::from(filter(&read(row)?));
    }
    Ok(n)
}
