//! Pages of lists: conditions in SQL, a cursor, and a filter on decoded rows for the rest.

use std::fmt::Display;
use std::str::FromStr;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::SqliteId;
use crate::column::bound;
use crate::error::StoreError;
use crate::page::{Cursor, Order, Page, Part};

/// The SELECT of a list and the columns of its order.
pub(super) struct ListSelect {
    pub(super) select: &'static str,
    pub(super) count: &'static str,
    pub(super) created: &'static str,
    pub(super) changed: &'static str,
    pub(super) id: &'static str,
}

/// The WHERE clause of a list.
pub(super) struct ListConditions {
    texts: Vec<String>,
    values: Vec<Value>,
    /// Conditions that divide the rows: each has its own index, and the page merges them.
    parts: Vec<&'static str>,
}

impl ListConditions {
    /// Rows of a project, found by an index that has the project in front.
    pub(super) fn of(project: &Project) -> Self {
        let values = vec![project.as_str().to_owned().into()];
        ListConditions { texts: vec!["project = ?".to_owned()], values, parts: Vec::new() }
    }

    /// Rows of a project, where another condition has an index of its own: the sign keeps SQLite from preferring an index
    /// by project, which selects far more rows.
    pub(super) fn without_index(project: &Project) -> Self {
        ListConditions { texts: vec!["+project = ?".to_owned()], ..ListConditions::of(project) }
    }

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

    /// Adds that a column is one of these words, if there are any. They are literals and not parameters, so that SQLite can
    /// use a partial index.
    pub(super) fn one_of(&mut self, column: &str, words: &[&'static str]) {
        match words {
            [] => {}
            [word] => self.add(format!("{column} = '{word}'"), []),
            words => self.add(format!("{column} IN ('{}')", words.join("', '")), []),
        }
    }

    /// Divides the rows by these conditions.
    pub(super) fn divide(&mut self, parts: impl IntoIterator<Item = &'static str>) {
        self.parts.extend(parts);
    }

    fn text(&self) -> String {
        if self.texts.is_empty() { String::new() } else { format!(" WHERE {}", self.texts.join(" AND ")) }
    }

    /// The SELECT, or one for each part, with all parameters.
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

/// An id as a parameter.
pub(super) fn key(id: impl SqliteId) -> Value {
    Value::Blob(id.key().to_vec())
}

/// A condition on a decoded row.
pub(super) type RowFilter<'f, T> = Option<&'f dyn Fn(&T) -> bool>;

/// Reads one page.
pub(super) fn page<T, I: SqliteId + FromStr + Display>(
    db: &Connection,
    source: &ListSelect,
    mut conditions: ListConditions,
    part: &Part,
    filter: RowFilter<'_, T>,
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
    // One more row than the page holds shows whether there is another page.
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
    source: &ListSelect,
    conditions: &ListConditions,
    filter: RowFilter<'_, T>,
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
