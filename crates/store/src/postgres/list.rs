//! Pages: conditions in SQL, a cursor, and filters that only the decoded row can answer.

use std::fmt::Display;
use std::str::FromStr;

use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{Cell, PostgresColumns, PostgresId, cells, text};
use super::link::Link;
use crate::column::{Columns, RowId, bound};
use crate::error::StoreError;
use crate::page::{Cursor, EXAMINED_MAX, Order, Page, Part};
use crate::run::Wake;
use crate::table::KeyedTable;

/// Rows that are read at once where each has to tell whether it is asked for.
const CHUNK: usize = 500;

/// Where a list is read from: everything up to the conditions, and the columns it can be ordered by.
pub(super) struct Source<T, I> {
    pub(super) table: KeyedTable,
    pub(super) select: &'static str,
    pub(super) count: &'static str,
    pub(super) read: fn(&Row) -> Result<T, StoreError>,
    /// The place of a row in a list of this order.
    pub(super) place: fn(&T, Order) -> (Timestamp, I),
}

/// A value of a condition.
#[derive(Debug, Clone)]
pub(super) enum FilterValue {
    Id(Uuid),
    Text(String),
    Number(i64),
    Flag(bool),
}

impl FilterValue {
    pub(super) fn id(id: impl PostgresId) -> Self {
        FilterValue::Id(id.key())
    }

    fn bind(&self) -> (Cell<'_>, Type) {
        match self {
            FilterValue::Id(id) => (Box::new(*id), Type::UUID),
            FilterValue::Text(value) => (Box::new(text(value)), Type::TEXT),
            FilterValue::Number(n) => (Box::new(*n), Type::INT8),
            FilterValue::Flag(is) => (Box::new(*is), Type::BOOL),
        }
    }
}

/// One of several parts of a table that each have an index of their own, and the column which that is ordered by.
#[derive(Debug, Clone)]
pub(super) struct IndexPart {
    pub(super) condition: String,
    pub(super) time: &'static str,
}

/// Conditions on rows.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    texts: Vec<String>,
    values: Vec<FilterValue>,
    index_parts: Vec<IndexPart>,
}

impl Conditions {
    /// Rows of a project.
    pub(super) fn of(project: &Project) -> Self {
        let mut conditions = Conditions::default();
        conditions.equal("project", Some(FilterValue::Text(project.as_str().to_owned())));
        conditions
    }

    /// Adds a condition with as many `?` as there are values.
    pub(super) fn add(&mut self, condition: &str, values: impl IntoIterator<Item = FilterValue>) {
        let mut n = self.values.len();
        self.values.extend(values);
        let mut numbered = String::with_capacity(condition.len() + 4);
        for character in condition.chars() {
            if character == '?' {
                n += 1;
                numbered.push_str(&format!("${n}"));
            } else {
                numbered.push(character);
            }
        }
        self.texts.push(numbered);
    }

    /// Adds `column = value` if there is a value.
    pub(super) fn equal(&mut self, column: &str, value: Option<FilterValue>) {
        if let Some(value) = value {
            self.add(&format!("{column} = ?"), [value]);
        }
    }

    /// Adds the bounds of a time.
    pub(super) fn between(&mut self, column: &str, since: Option<Timestamp>, until: Option<Timestamp>) {
        for (sign, bound) in [(">=", since), ("<", until)] {
            if let Some(bound) = bound {
                self.add(&format!("{column} {sign} ?"), [FilterValue::Number(bound.0)]);
            }
        }
    }

    /// Divides the rows: each is on one of these.
    pub(super) fn add_index_parts(&mut self, index_parts: impl IntoIterator<Item = IndexPart>) {
        self.index_parts.extend(index_parts);
    }

    /// The values in the order of their numbers.
    pub(super) fn binds(&self) -> Vec<(Cell<'_>, Type)> {
        self.values.iter().map(FilterValue::bind).collect()
    }

    pub(super) fn given(&self, more: &[String]) -> String {
        let all: Vec<&str> = self.texts.iter().chain(more).map(String::as_str).collect();
        if all.is_empty() { String::new() } else { format!(" WHERE {}", all.join(" AND ")) }
    }

    /// The rows after a place, in order.
    fn selection(&self, select: &str, order: Order, is_after: bool) -> String {
        let named = match order {
            Order::Newest | Order::Oldest => "created_at",
            Order::LatestChange => "updated_at",
        };
        let (sign, direction) = if order.is_descending() { ("<", "DESC") } else { (">", "ASC") };
        let n = self.values.len();
        let (limit, at, id, skip) = (n + 1, n + 2, n + 3, if is_after { n + 4 } else { n + 2 });
        let whole = [IndexPart { condition: String::new(), time: named }];
        let index_parts = if self.index_parts.is_empty() { &whole[..] } else { &self.index_parts };
        let one = |part: &IndexPart| {
            let IndexPart { condition, time } = part;
            let mut more = Vec::new();
            if !condition.is_empty() {
                more.push(condition.clone());
            }
            if is_after {
                more.push(format!("({time}, id) {sign} (${at}, ${id})"));
            }
            let given = self.given(&more);
            format!("({select}{given} ORDER BY {time} {direction}, id {direction} LIMIT ${limit} + ${skip})")
        };
        let all = index_parts.iter().map(one).collect::<Vec<_>>().join(" UNION ALL ");
        format!(
            "SELECT * FROM ({all}) AS index_parts ORDER BY {named} {direction}, id {direction} LIMIT ${limit} OFFSET ${skip}"
        )
    }
}

/// The query plan of the first page of a list.
#[cfg(test)]
pub(super) async fn plan<T, I: PostgresId>(
    db: &Link,
    source: &Source<T, I>,
    conditions: &Conditions,
    order: Order,
) -> String {
    let sql = conditions.selection(source.select, order, false);
    let limits = [FilterValue::Number(51), FilterValue::Number(0)];
    let values: Vec<_> = conditions.values.iter().chain(&limits).map(FilterValue::bind).collect();
    explain(db, &sql, &values).await
}

/// The query plan of a statement with these values.
#[cfg(test)]
pub(super) async fn explain(db: &Link, sql: &str, values: &[(Cell<'_>, Type)]) -> String {
    let rows = db.ask_once(&format!("EXPLAIN {sql}"), values).await;
    let rows = rows.unwrap_or_else(|error| panic!("{error:?}\n{sql}"));
    let lines: Vec<String> = rows.iter().map(|row| PostgresColumns::of(row).value().unwrap()).collect();
    lines.join("\n")
}

/// Filters on decoded rows instead of columns.
pub(super) type Filter<'f, T> = Option<&'f (dyn Fn(&T) -> bool + Sync)>;

/// Reads one page.
pub(super) async fn page<T, I: PostgresId + FromStr + Display>(
    db: &Link,
    source: &Source<T, I>,
    conditions: &Conditions,
    part: &Part,
    filter: Filter<'_, T>,
) -> Result<Page<T>, StoreError> {
    let from = part.cursor.as_ref().map(|cursor| cursor.read::<I>(part.order)).transpose()?;
    let total = match (part.count, filter) {
        (false, _) => None,
        (true, None) => Some(count(db, source.count, conditions).await?),
        (true, Some(filter)) => Some(count_each(db, source, conditions, filter).await?),
    };
    // One more than fits tells whether there is another page.
    let most = part.size().saturating_add(1);
    let (mut items, mut next) = match filter {
        None => (some(db, source, conditions, part.order, from, most, part.skip).await?, None),
        Some(filter) => {
            let wanted = most.saturating_add(part.skip);
            let (mut found, last) = each(db, source, conditions, part.order, from, filter, wanted).await?;
            found.drain(..part.skip.min(found.len()));
            (found, last)
        }
    };
    if items.len() == most {
        items.truncate(part.size());
        next = items.last().map(|item| (source.place)(item, part.order));
    }
    let next = next.map(|(at, id)| Cursor::after(part.order, at, id));
    Ok(Page { items, next, total })
}

/// So many rows after a place.
async fn some<T, I: PostgresId>(
    db: &Link,
    source: &Source<T, I>,
    conditions: &Conditions,
    order: Order,
    from: Option<(Timestamp, I)>,
    limit: usize,
    skip: usize,
) -> Result<Vec<T>, StoreError> {
    let sql = conditions.selection(source.select, order, from.is_some());
    let place = from.map(|(at, id)| [FilterValue::Number(at.0), FilterValue::id(id)]);
    let mut n_bad = 0;
    loop {
        let asked = limit.saturating_add(n_bad);
        // Both are added up: together they must not be more than there are numbers.
        let (most, skip) = (bound(asked).min(i64::MAX / 2), bound(skip).min(i64::MAX / 2));
        let limits = (FilterValue::Number(most), FilterValue::Number(skip));
        let values =
            conditions.values.iter().chain([&limits.0]).chain(place.iter().flatten()).chain([&limits.1]);
        let rows = db.ask_once(&sql, &values.map(FilterValue::bind).collect::<Vec<_>>()).await?;
        let found = db.decoded(&source.table, &rows, source.read)?;
        // Bad rows do not count: they hide none behind them.
        if found.len() >= limit || rows.len() < asked {
            return Ok(found);
        }
        n_bad = rows.len() - found.len();
    }
}

/// Examines rows after a place until so many match. The place of the last row is there if more rows are to be examined
/// than one page may.
async fn each<T, I: PostgresId>(
    db: &Link,
    source: &Source<T, I>,
    conditions: &Conditions,
    order: Order,
    mut from: Option<(Timestamp, I)>,
    filter: &(dyn Fn(&T) -> bool + Sync),
    wanted: usize,
) -> Result<(Vec<T>, Option<(Timestamp, I)>), StoreError> {
    let mut found = Vec::new();
    for _ in 0..EXAMINED_MAX / CHUNK {
        let rows = some(db, source, conditions, order, from, CHUNK, 0).await?;
        let is_last = rows.len() < CHUNK;
        from = rows.last().map(|row| (source.place)(row, order));
        found.extend(rows.into_iter().filter(|row| filter(row)).take(wanted - found.len()));
        if is_last || found.len() == wanted {
            return Ok((found, None));
        }
    }
    Ok((found, from))
}

async fn count(db: &Link, sql: &str, conditions: &Conditions) -> Result<u64, StoreError> {
    let of_part =
        |part: &IndexPart| format!("{sql}{}", conditions.given(std::slice::from_ref(&part.condition)));
    let all = match conditions.index_parts.as_slice() {
        [] => format!("{sql}{}", conditions.given(&[])),
        index_parts => index_parts.iter().map(of_part).collect::<Vec<_>>().join(" UNION ALL "),
    };
    let mut n: u64 = 0;
    for row in &db.ask_once(&all, &conditions.binds()).await? {
        n += PostgresColumns::of(row).number::<u64>()?;
    }
    Ok(n)
}

/// The number of rows that meet the conditions, up to a limit.
pub(super) async fn count_up_to(
    db: &Link,
    select: &str,
    conditions: &Conditions,
    limit: usize,
) -> Result<usize, StoreError> {
    let of_part =
        |part: &IndexPart| format!("{select}{}", conditions.given(std::slice::from_ref(&part.condition)));
    let all = match conditions.index_parts.as_slice() {
        [] => format!("{select}{}", conditions.given(&[])),
        index_parts => index_parts.iter().map(of_part).collect::<Vec<_>>().join(" UNION ALL "),
    };
    let most = FilterValue::Number(bound(limit));
    let sql = format!("SELECT count(*) FROM ({all} LIMIT ${}) AS counted", conditions.values.len() + 1);
    let mut binds = conditions.binds();
    binds.push(most.bind());
    let rows = db.ask_once(&sql, &binds).await?;
    let n = rows.first().map(|row| PostgresColumns::of(row).number::<u64>()).transpose()?;
    Ok(n.and_then(|n| usize::try_from(n).ok()).unwrap_or_default())
}

async fn count_each<T, I: PostgresId>(
    db: &Link,
    source: &Source<T, I>,
    conditions: &Conditions,
    filter: &(dyn Fn(&T) -> bool + Sync),
) -> Result<u64, StoreError> {
    let (mut from, mut n) = (None, 0);
    loop {
        let rows = some(db, source, conditions, Order::Oldest, from, CHUNK, 0).await?;
        n += rows.iter().filter(|row| filter(row)).count() as u64;
        from = rows.last().map(|row| (source.place)(row, Order::Oldest));
        if rows.len() < CHUNK {
            return Ok(n);
        }
    }
}

/// Due runs, jobs and schedules, oldest first.
pub(super) async fn wakes<I: RowId>(
    db: &Link,
    table: &KeyedTable,
    sql: &'static str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Wake<I>>, StoreError> {
    let wake = |row: &Row| {
        let mut columns = PostgresColumns::of(row);
        Ok(Wake { at: columns.time()?, id: columns.id()?, project: columns.project()? })
    };
    db.first_rows(table, sql, limit, |limit| cells![now.0, limit], wake).await
}
