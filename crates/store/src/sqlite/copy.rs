//! SQLite side of `windlass store copy`. It builds its statements from the list of tables; tests prepare them all and
//! compare the list with the schema.

use std::fmt::Write;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::shorthand::{expand, shorten};
use super::writer_cache::WriterCache;
use super::{Sqlite, schema};
use crate::copy::table::{ColumnType, TABLES, Table};
use crate::copy::value::{Row, Value};
use crate::copy::{CopyPage, PAGE_BYTES, PAGE_ROWS, Side};
use crate::error::StoreError;
use crate::store::Store;

/// The FROM clause of a table and the columns of its order. Row numbers, where a table has them, keep the rows in the order
/// in which they were written.
fn source(table: &Table) -> (&'static str, Vec<&'static str>) {
    match table.name {
        "journal" => ("journal JOIN runs ON runs.no = journal.run", vec!["journal.no"]),
        "runs" => ("runs", vec!["runs.no"]),
        name => (name, table.key.to_vec()),
    }
}

/// A column in the SELECT.
fn asked(table: &Table, column: &'static str) -> String {
    match (table.name, column) {
        ("journal", "run") => "runs.id".to_owned(),
        (name, column) => format!("{name}.{column}"),
    }
}

/// The statement that reads the first page, or a page after a cursor.
fn page_sql(table: &Table, is_first: bool) -> String {
    let (source, key) = source(table);
    let columns: Vec<String> = table.columns.iter().map(|column| asked(table, column.name)).collect();
    let (columns, key_list) = (columns.join(", "), key.join(", "));
    let places: Vec<String> = (1..=key.len()).map(|n| format!("?{n}")).collect();
    let mut sql = format!("SELECT {columns}, {key_list} FROM {source}");
    if !is_first {
        // Writing to a string cannot fail.
        let _written = write!(sql, " WHERE ({key_list}) > ({})", places.join(", "));
    }
    let _written = write!(sql, " ORDER BY {key_list} LIMIT {PAGE_ROWS}");
    sql
}

fn put_sql(table: &Table) -> String {
    let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    let value = |(column, n): (&&str, usize)| match (table.name, *column) {
        ("journal", "run") => format!("(SELECT no FROM runs WHERE id = ?{n})"),
        (_, _) => format!("?{n}"),
    };
    let values: Vec<String> = columns.iter().zip(1..).map(value).collect();
    format!("INSERT INTO {} ({}) VALUES ({})", table.name, columns.join(", "), values.join(", "))
}

fn clear_sql(table: &Table) -> String {
    format!("DELETE FROM {}", table.name)
}

fn read(kind: ColumnType, found: ValueRef<'_>) -> Result<Value, StoreError> {
    let wrong = || StoreError::Corrupt(format!("a column is not what was written there: no {kind:?}"));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| wrong());
    Ok(match (kind, found) {
        (_, ValueRef::Null) => Value::Null,
        (ColumnType::Id, ValueRef::Blob(bytes)) => Value::Id(bytes.try_into().map_err(|_| wrong())?),
        (ColumnType::Bytes, ValueRef::Blob(bytes)) => Value::Bytes(bytes.to_vec()),
        (ColumnType::Number | ColumnType::Small, ValueRef::Integer(number)) => Value::Number(number),
        (ColumnType::Flag, ValueRef::Integer(number)) => Value::Flag(number != 0),
        (ColumnType::Text, ValueRef::Text(bytes)) => Value::Text(text(bytes)?),
        (ColumnType::Events, ValueRef::Text(bytes)) => {
            let mut long = String::with_capacity(bytes.len() * 2);
            expand(&text(bytes)?, &mut long);
            Value::Text(long)
        }
        (
            ColumnType::Id
            | ColumnType::Bytes
            | ColumnType::Number
            | ColumnType::Small
            | ColumnType::Flag
            | ColumnType::Text
            | ColumnType::Events,
            ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_),
        ) => return Err(wrong()),
    })
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Id(id) => ValueRef::Blob(id),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
            Value::Number(number) => ValueRef::Integer(*number),
            Value::Flag(flag) => ValueRef::Integer(i64::from(*flag)),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

fn page(db: &Connection, table: &Table, after: Option<&Row>) -> Result<CopyPage, StoreError> {
    let mut statement = db.prepare_cached(&page_sql(table, after.is_none()))?;
    let mut rows = statement.query(params_from_iter(after.into_iter().flatten()))?;
    let (mut page, mut n_bytes) = (CopyPage::default(), 0);
    while let Some(found) = rows.next()? {
        let columns = table.columns.iter().enumerate();
        let row: Row =
            columns.map(|(at, column)| read(column.kind, found.get_ref(at)?)).collect::<Result<_, _>>()?;
        n_bytes += row.iter().map(Value::weight).sum::<usize>();
        page.rows.push(row);
        if page.rows.len() == PAGE_ROWS || n_bytes >= PAGE_BYTES {
            page.next = Some(place(table, found)?);
            break;
        }
    }
    Ok(page)
}

/// The cursor of a row.
fn place(table: &Table, found: &rusqlite::Row<'_>) -> Result<Row, StoreError> {
    // Row numbers are not in the list of columns.
    let kind = |name: &str| table.kind(name).unwrap_or(ColumnType::Number);
    let kinds = source(table).1.into_iter().map(kind);
    kinds.zip(table.columns.len()..).map(|(kind, at)| read(kind, found.get_ref(at)?)).collect()
}

fn put(db: &Connection, table: &Table, rows: &[Row]) -> Result<(), StoreError> {
    let events = table.columns.iter().position(|column| column.kind == ColumnType::Events);
    let mut statement = db.prepare_cached(&put_sql(table))?;
    for row in rows {
        let short = match events.map(|at| (at, &row[at])) {
            Some((at, Value::Text(long))) => Some((at, Value::Text(shorten(long)))),
            Some(_) | None => None,
        };
        let value = |(at, value)| match &short {
            Some((place, short)) if *place == at => short,
            Some(_) | None => value,
        };
        statement.execute(params_from_iter(row.iter().enumerate().map(value)))?;
    }
    Ok(())
}

#[async_trait]
impl Side for Sqlite {
    async fn page(&self, table: &'static Table, after: Option<Row>) -> Result<CopyPage, StoreError> {
        self.read(move |db| page(&db.connection, table, after.as_ref())).await
    }

    async fn put(&self, table: &'static Table, rows: Vec<Row>) -> Result<(), StoreError> {
        self.writer.write(move |cache| put(cache.db(), table, &rows))?.await
    }

    async fn is_unfinished(&self) -> Result<bool, StoreError> {
        self.read(|db| schema::is_unfinished(&db.connection)).await
    }

    async fn begin(&self) -> Result<(), StoreError> {
        let begin = |cache: &WriterCache| {
            schema::mark_unfinished(cache.db())?;
            for table in TABLES {
                cache.db().execute_batch(&clear_sql(table))?;
            }
            Ok(())
        };
        self.writer.write(begin)?.await
    }

    async fn derive(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn finish(&self) -> Result<(), StoreError> {
        self.writer.write(|cache: &WriterCache| schema::mark_finished(cache.db()))?.await
    }

    fn store(self: Arc<Self>) -> Arc<dyn Store> {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// SqliteColumns that are not copied: row numbers.
    const OWN: [(&str, &str); 2] = [("runs", "no"), ("journal", "no")];

    fn migrated() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        schema::migrate(&mut db).unwrap();
        db
    }

    #[test]
    fn every_column_of_every_table_is_copied() {
        let db = migrated();
        let sql = "SELECT tables.name, columns.name FROM pragma_table_list AS tables \
             JOIN pragma_table_info(tables.name) AS columns \
             WHERE tables.type = 'table' AND tables.schema = 'main' \
             AND tables.name NOT LIKE 'sqlite_%' AND tables.name <> 'migrations'";
        let mut statement = db.prepare(sql).unwrap();
        let there = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let there: BTreeSet<(String, String)> = there.collect::<rusqlite::Result<_>>().unwrap();
        let copied =
            TABLES.iter().flat_map(|table| table.columns.iter().map(|column| (table.name, column.name)));
        let known = copied.chain(OWN).map(|(table, column)| (table.to_owned(), column.to_owned()));
        assert_eq!(there, known.collect());
    }

    #[test]
    fn every_page_is_found_by_an_index() {
        let db = migrated();
        for table in TABLES {
            db.prepare(&put_sql(table)).unwrap();
            for is_first in [true, false] {
                let sql = page_sql(table, is_first);
                let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let steps = statement.raw_query().mapped(|row| row.get::<_, String>(3));
                let plan: String = steps.map(|step| step.unwrap() + "; ").collect();
                assert!(
                    !plan.contains("TEMP B-TREE") && (is_first || plan.contains("SEARCH")),
                    "{plan}\n{sql}"
                );
            }
        }
    }
}
