//! All rows of the file as they are, to be carried to another store or brought from one.
//!
//! Statements are put together from the list of tables; a test prepares them all and compares the list with the tables
//! that are there. The ledger is kept in another form than it is carried in, and has statements of its own.

mod ledger;

use std::fmt::Write;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::desk::Desk;
use super::shorthand::{expand, shorten};
use super::{Sqlite, schema};
use crate::copy::table::{Kind, TABLES, Table};
use crate::copy::value::{Row, Value};
use crate::copy::{PAGE_BYTES, PAGE_ROWS, Page, Side};
use crate::error::StoreError;
use crate::store::Store;

/// Where rows are found, and by what they are walked through: numbers, where there are some, keep them in order.
fn source(table: &Table) -> (&'static str, &'static [&'static str]) {
    match table.name {
        "journal" => ("journal JOIN runs ON runs.no = journal.run", &["journal.no"]),
        "runs" => ("runs", &["runs.no"]),
        "accounts" => ("accounts", &["accounts.no"]),
        name => (name, table.key),
    }
}

/// How a column is asked for.
fn asked(table: &Table, column: &'static str) -> String {
    match (table.name, column) {
        ("journal", "run") => "runs.id".to_owned(),
        (name, column) => format!("{name}.{column}"),
    }
}

/// The statement that reads a page: the first, or one after a place.
fn page_sql(table: &Table, is_first: bool) -> String {
    let (source, key) = source(table);
    let columns: Vec<String> = table.columns.iter().map(|column| asked(table, column.name)).collect();
    let (columns, key_list) = (columns.join(", "), key.join(", "));
    let places: Vec<String> = (1..=key.len()).map(|n| format!("?{n}")).collect();
    let mut sql = format!("SELECT {columns}, {key_list} FROM {source}");
    if !is_first {
        // Writing to a text cannot fail.
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
    match table.name {
        "ledger" => ledger::CLEAR.to_owned(),
        name => format!("DELETE FROM {name}"),
    }
}

fn read(kind: Kind, found: ValueRef<'_>) -> Result<Value, StoreError> {
    let wrong = || StoreError::Corrupt(format!("a column is not what was written there: no {kind:?}"));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| wrong());
    Ok(match (kind, found) {
        (_, ValueRef::Null) => Value::Null,
        (Kind::Id, ValueRef::Blob(bytes)) => Value::Id(bytes.try_into().map_err(|_| wrong())?),
        (Kind::Bytes, ValueRef::Blob(bytes)) => Value::Bytes(bytes.to_vec()),
        (Kind::Number | Kind::Small, ValueRef::Integer(number)) => Value::Number(number),
        (Kind::Flag, ValueRef::Integer(number)) => Value::Flag(number != 0),
        (Kind::Text, ValueRef::Text(bytes)) => Value::Text(text(bytes)?),
        (Kind::Events, ValueRef::Text(bytes)) => {
            let mut long = String::with_capacity(bytes.len() * 2);
            expand(&text(bytes)?, &mut long);
            Value::Text(long)
        }
        (
            Kind::Id | Kind::Bytes | Kind::Number | Kind::Small | Kind::Flag | Kind::Text | Kind::Events,
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

fn page(db: &Connection, table: &Table, after: Option<&Row>) -> Result<Page, StoreError> {
    let mut statement = db.prepare_cached(&page_sql(table, after.is_none()))?;
    let mut rows = statement.query(params_from_iter(after.into_iter().flatten()))?;
    let (mut page, mut n_bytes) = (Page::default(), 0);
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

/// Where a row stands.
fn place(table: &Table, found: &rusqlite::Row<'_>) -> Result<Row, StoreError> {
    // What is no column of the table is a number.
    let kinds = source(table).1.iter().map(|name| table.kind(name).unwrap_or(Kind::Number));
    kinds.zip(table.columns.len()..).map(|(kind, at)| read(kind, found.get_ref(at)?)).collect()
}

fn put(db: &Connection, table: &Table, rows: &[Row]) -> Result<(), StoreError> {
    let events = table.columns.iter().position(|column| column.kind == Kind::Events);
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
    async fn page(&self, table: &'static Table, after: Option<Row>) -> Result<Page, StoreError> {
        let page = if table.name == "ledger" { ledger::page } else { page };
        self.read(move |db| page(db, table, after.as_ref())).await
    }

    async fn put(&self, table: &'static Table, rows: Vec<Row>) -> Result<(), StoreError> {
        let put = if table.name == "ledger" { ledger::put } else { put };
        self.writer.write(move |desk| put(desk, table, &rows))?.await
    }

    async fn is_unfinished(&self) -> Result<bool, StoreError> {
        self.read(schema::is_unfinished).await
    }

    async fn begin(&self) -> Result<(), StoreError> {
        let begin = |desk: &Desk| {
            schema::mark_unfinished(desk)?;
            for table in TABLES {
                desk.execute_batch(&clear_sql(table))?;
            }
            Ok(())
        };
        self.writer.write(begin)?.await
    }

    async fn derive(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn finish(&self) -> Result<(), StoreError> {
        self.writer.write(|desk: &Desk| schema::mark_finished(desk))?.await
    }

    fn store(self: Arc<Self>) -> Arc<dyn Store> {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What is not carried over, because it is of this file only: numbers of rows, and the form of the ledger.
    const OWN: [(&str, &str); 14] = [
        ("runs", "no"),
        ("journal", "no"),
        ("accounts", "no"),
        ("ledger_sheets", "no"),
        ("ledger_sheets", "movements"),
        ("ledger_index", "account"),
        ("ledger_index", "seq"),
        ("ledger_index", "sheets"),
        ("ledger_indexed", "sheet"),
        ("ledger_keys", "run"),
        ("ledger_keys", "subject"),
        ("ledger_keys", "account"),
        ("ledger_keys", "seq"),
        ("ledger_keys", "closed_by"),
    ];

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
             WHERE (tables.type = 'table' OR tables.name = 'ledger') AND tables.schema = 'main' \
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
            let is_ledger = table.name == "ledger";
            if !is_ledger {
                db.prepare(&put_sql(table)).unwrap();
            }
            for is_first in [true, false] {
                let sql = match (is_ledger, is_first) {
                    (true, _) => ledger::ACCOUNTS.to_owned(),
                    (false, _) => page_sql(table, is_first),
                };
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
