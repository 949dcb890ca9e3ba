//! Pages of lists: conditions in SQL, a cursor, and a filter on decoded rows for the rest.

use std::fmt::Display;
use std::str::FromStr;

use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{SqliteColumns, SqliteId};
use super::readers::ReadConnection;
use crate::column::{Columns, RowId, bound};
use crate::error::StoreError;
use crate::page::{Cursor, EXAMINED_MAX, Order, Page, Part};
use crate::run::Wake;
use crate::table::KeyedTable;

/// The SELECT of a list and the columns of its order.
pub(super) struct ListSelect {
    pub(super) table: KeyedTable,
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
    parts: Vec<String>,
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

    /// Divides the rows by these conditions.
    pub(super) fn divide(&mut self, parts: impl IntoIterator<Item = String>) {
        self.parts.extend(parts);
    }

    /// The SELECT, or one for each part, with all parameters.
    pub(super) fn selection(&self, select: &str) -> (String, Vec<Value>) {
        if self.parts.is_empty() {
            return (format!("{select} WHERE {}", self.texts.join(" AND ")), self.values.clone());
        }
        let one = |part: &String| {
            let texts = self.texts.iter().map(String::as_str).chain([part.as_str()]);
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

impl ListSelect {
    /// The statement of a list, without a limit, and its parameters.
    pub(super) fn statement<I: SqliteId>(
        &self,
        mut conditions: ListConditions,
        order: Order,
        from: Option<(Timestamp, I)>,
    ) -> (String, Vec<Value>) {
        let time = match order {
            Order::Newest | Order::Oldest => self.created,
            Order::LatestChange => self.changed,
        };
        let (sign, direction) = if order.is_descending() { ("<", "DESC") } else { (">", "ASC") };
        let id = self.id;
        if let Some((at, last)) = from {
            conditions.add(format!("({time}, {id}) {sign} (?, ?)"), [at.0.into(), key(last)]);
        }
        let (selection, values) = conditions.selection(self.select);
        (format!("{selection} ORDER BY {time} {direction}, {id} {direction}"), values)
    }
}

/// Reads one page. Rows that cannot be decoded are left out, and count in no limit.
pub(super) fn page<T, I: SqliteId + FromStr + Display>(
    db: &ReadConnection,
    source: &ListSelect,
    conditions: ListConditions,
    part: &Part,
    filter: RowFilter<'_, T>,
    read: &dyn Fn(&Row<'_>) -> rusqlite::Result<T>,
    place: &dyn Fn(&T) -> (Timestamp, I),
) -> Result<Page<T>, StoreError> {
    let from = part.cursor.as_ref().map(|cursor| cursor.read::<I>(part.order)).transpose()?;
    let total = part.count.then(|| count(db, source, &conditions, filter, read)).transpose()?;
    // One more row than the page holds shows whether there is another page.
    let most = part.size().saturating_add(1);
    let (mut sql, values) = source.statement(conditions, part.order, from);
    sql.push_str(" LIMIT ? OFFSET ?");
    let (limit, skip) = if filter.is_none() { (most, part.skip) } else { (EXAMINED_MAX, 0) };
    let given = |limit: i64| [values.clone(), vec![limit.into(), bound(skip).into()]].concat();
    let mut n_to_skip = if filter.is_none() { 0 } else { part.skip };
    let (mut items, mut n_examined, mut last): (Vec<T>, usize, _) = (Vec::new(), 0, None);
    db.each_row(&source.table, &sql, limit, given, read, |item: T| {
        (n_examined, last) = (n_examined + 1, Some(place(&item)));
        if filter.is_some_and(|filter| !filter(&item)) {
            return true;
        }
        if n_to_skip > 0 {
            n_to_skip -= 1;
            return true;
        }
        items.push(item);
        items.len() < most
    })?;
    let next = if items.len() == most {
        items.truncate(part.size());
        items.last().map(place)
    } else {
        last.filter(|_| filter.is_some() && n_examined == EXAMINED_MAX)
    };
    let next = next.map(|(at, id)| Cursor::after(part.order, at, id));
    Ok(Page { items, next, total })
}

fn count<T>(
    db: &ReadConnection,
    source: &ListSelect,
    conditions: &ListConditions,
    filter: RowFilter<'_, T>,
    read: &dyn Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<u64, StoreError> {
    let (sql, values) = conditions.selection(if filter.is_some() { source.select } else { source.count });
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(&values))?;
    let mut n = 0;
    while let Some(row) = rows.next()? {
        n += match filter {
            Some(filter) => {
                u64::from(db.readable(&source.table, row, read(row))?.is_some_and(|item| filter(&item)))
            }
            None => row.get::<_, i64>(0)?.cast_unsigned(),
        };
    }
    Ok(n)
}

/// Due rows, oldest first.
pub(super) fn wakes<I: RowId>(
    db: &ReadConnection,
    table: &KeyedTable,
    sql: &str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Wake<I>>, StoreError> {
    let given = |limit: i64| vec![now.0.into(), limit.into()];
    db.first_rows(table, sql, limit, given, |row| {
        let mut columns = SqliteColumns::of(row);
        Ok(Wake { at: columns.time()?, id: columns.id()?, project: columns.project()? })
    })
}
