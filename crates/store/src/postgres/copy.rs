//! All rows of the database as they are, to be carried to another store or brought from one.
//!
//! Statements are put together from the list of tables; a test prepares them all and compares the list with the tables
//! that are there.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;
use windlass_engine::job::State;

use super::Postgres;
use super::column::{Cell, PostgresColumns, text, unreadable};
use super::link::Link;
use super::schema;
use crate::column::Columns;
use crate::copy::table::{Column, ColumnType, TABLES, Table};
use crate::copy::value::{Row, Value};
use crate::copy::{CopyPage, PAGE_BYTES, PAGE_ROWS, Side};
use crate::error::StoreError;
use crate::job::holder;
use crate::store::Store;

const TAKE_NAMES: &str = "INSERT INTO flow_names (project, name) SELECT DISTINCT project, name FROM named_flows ON CONFLICT DO NOTHING";
const CLEAR_OWN: &str = "TRUNCATE flow_names";
/// Query plans need statistics of the tables, and new tables have none.
const LEARN: &str = "ANALYZE";

/// Keeps servers from starting on the database as long as it is there.
pub(crate) struct HeldDatabase(Link);

impl HeldDatabase {
    /// Makes sure that it was there all the time.
    pub(crate) async fn check(&self) -> Result<(), StoreError> {
        self.0.say("SELECT 1").await
    }
}

impl Postgres {
    /// Keeps servers from starting: a starting server waits for the row that this locks.
    pub(crate) async fn hold(&self) -> Result<HeldDatabase, StoreError> {
        let db = self.link().await?;
        schema::hold(&db).await?;
        Ok(HeldDatabase(db))
    }
}

/// Columns that only this backend has, and that follow from the others.
fn derived(table: &Table) -> &'static [Column] {
    match table.name {
        "runs" => &[Column { name: "settled_at", kind: ColumnType::Number }],
        "jobs" => &[Column { name: "worker", kind: ColumnType::Text }],
        "queue_depths" => &[Column { name: "shard", kind: ColumnType::Number }],
        _ => &[],
    }
}

/// Their values.
fn derive(table: &Table, row: &Row) -> Result<Value, StoreError> {
    let value = |name| table.place(name).map_or(&Value::Null, |at| &row[at]);
    match table.name {
        "runs" if *value("ended_at") == Value::Null => Ok(Value::Null),
        "runs" => Ok(value("updated_at").clone()),
        "jobs" if value("status").text() == Some("running") => {
            let state = value("state").text().unwrap_or_default();
            let state: State = serde_json::from_str(state).map_err(unreadable)?;
            Ok(holder(&state).map_or(Value::Null, |worker| Value::Text(worker.clone())))
        }
        "jobs" => Ok(Value::Null),
        // The first part of a count.
        _ => Ok(Value::Number(0)),
    }
}

/// The source of rows, and the key by which they are paged.
fn source(table: &Table) -> (String, &'static [&'static str]) {
    match table.name {
        // Counts are kept in parts, and parts that add up to zero are deleted later.
        "queue_depths" => {
            // After the name of the queue.
            let counts = table.columns.iter().skip(2).map(|column| column.name);
            let sums: Vec<String> =
                counts.clone().map(|name| format!("sum({name})::bigint AS {name}")).collect();
            let sizes: Vec<String> = counts.map(|name| format!("abs(sum({name}))")).collect();
            let (sums, sizes) = (sums.join(", "), sizes.join(" + "));
            let rows = format!(
                "SELECT project, queue, {sums} FROM queue_depths GROUP BY project, queue HAVING {sizes} > 0"
            );
            (format!("({rows}) AS counted"), table.key)
        }
        // In order of creation, which other backends keep as row numbers.
        "runs" => ("runs".to_owned(), &["project", "created_at", "id"]),
        name => (name.to_owned(), table.key),
    }
}

/// The statement that reads a page: the first, or one after a place. How much the rows weigh is found out before they
/// are sent.
fn page_sql(table: &Table, is_first: bool) -> String {
    let (source, key) = source(table);
    let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    let weights = table.columns.iter().filter_map(|column| match column.kind {
        ColumnType::Text | ColumnType::Events | ColumnType::Bytes => {
            Some(format!("coalesce(octet_length({}), 0)", column.name))
        }
        ColumnType::Id | ColumnType::Number | ColumnType::Small | ColumnType::Flag => None,
    });
    let weight = [size_of::<Value>().saturating_mul(columns.len()).to_string()].into_iter().chain(weights);
    let weight = weight.collect::<Vec<_>>().join(" + ");
    let (columns, key_list) = (columns.join(", "), key.join(", "));
    let places: Vec<String> = (1..=key.len()).map(|n| format!("${n}")).collect();
    let after =
        if is_first { String::new() } else { format!("WHERE ({key_list}) > ({})", places.join(", ")) };
    format!(
        "SELECT {columns} FROM (SELECT page.*, \
         sum(weight) OVER (ORDER BY {key_list} ROWS UNBOUNDED PRECEDING) - weight AS before_it \
         FROM (SELECT {columns}, {weight} AS weight FROM {source} {after} ORDER BY {key_list} LIMIT {PAGE_ROWS}) \
         AS page) AS weighed WHERE before_it < {PAGE_BYTES} ORDER BY {key_list}"
    )
}

fn put_sql(table: &Table) -> String {
    let columns: Vec<&Column> = table.columns.iter().chain(derived(table)).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let arrays: Vec<String> =
        columns.iter().zip(1..).map(|(column, n)| format!("${n}::{}", array_word(column.kind))).collect();
    let (name, names, arrays) = (table.name, names.join(", "), arrays.join(", "));
    format!("INSERT INTO {name} ({names}) SELECT * FROM UNNEST({arrays})")
}

fn clear_sql() -> String {
    let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
    format!("TRUNCATE {}", names.join(", "))
}

fn array_word(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Id => "uuid[]",
        ColumnType::Bytes => "bytea[]",
        ColumnType::Number => "bigint[]",
        ColumnType::Small => "integer[]",
        ColumnType::Flag => "boolean[]",
        ColumnType::Text | ColumnType::Events => "text[]",
    }
}

/// One column of many rows, as one parameter.
fn array<'r>(kind: ColumnType, rows: &'r [Row], at: usize) -> Result<(Cell<'r>, Type), StoreError> {
    Ok(match kind {
        ColumnType::Id => (column(rows, at, |value| value.id().map(Uuid::from_bytes))?, Type::UUID_ARRAY),
        ColumnType::Bytes => (column(rows, at, Value::bytes)?, Type::BYTEA_ARRAY),
        ColumnType::Number => (column(rows, at, Value::number)?, Type::INT8_ARRAY),
        ColumnType::Small => {
            let small = |value: &Value| value.number().and_then(|number| i32::try_from(number).ok());
            (column(rows, at, small)?, Type::INT4_ARRAY)
        }
        ColumnType::Flag => (column(rows, at, Value::flag)?, Type::BOOL_ARRAY),
        ColumnType::Text | ColumnType::Events => {
            (column(rows, at, |value| value.text().map(text))?, Type::TEXT_ARRAY)
        }
    })
}

fn column<'r, T>(
    rows: &'r [Row],
    at: usize,
    read: impl Fn(&'r Value) -> Option<T>,
) -> Result<Cell<'r>, StoreError>
where
    T: ToSql + Sync + Send + 'r,
{
    let read = |row: &'r Row| match &row[at] {
        Value::Null => Ok(None),
        value => read(value).map(Some).ok_or_else(|| unreadable("a value of another kind")),
    };
    Ok(Box::new(rows.iter().map(read).collect::<Result<Vec<Option<T>>, _>>()?))
}

/// One value as one parameter.
fn single(value: &Value) -> Result<(Cell<'_>, Type), StoreError> {
    Ok(match value {
        Value::Null => return Err(unreadable("a key that is not there")),
        Value::Id(id) => (Box::new(Uuid::from_bytes(*id)), Type::UUID),
        Value::Bytes(bytes) => (Box::new(bytes), Type::BYTEA),
        Value::Number(number) => (Box::new(number), Type::INT8),
        Value::Flag(flag) => (Box::new(flag), Type::BOOL),
        Value::Text(words) => (Box::new(text(words)), Type::TEXT),
    })
}

fn read(kind: ColumnType, columns: &mut PostgresColumns<'_>) -> Result<Value, StoreError> {
    let value = match kind {
        ColumnType::Id => columns.value::<Option<Uuid>>()?.map(|id| Value::Id(id.into_bytes())),
        ColumnType::Bytes => columns.value::<Option<Vec<u8>>>()?.map(Value::Bytes),
        ColumnType::Number => columns.value::<Option<i64>>()?.map(Value::Number),
        ColumnType::Small => columns.value::<Option<i32>>()?.map(|number| Value::Number(number.into())),
        ColumnType::Flag => columns.value::<Option<bool>>()?.map(Value::Flag),
        ColumnType::Text | ColumnType::Events => columns.text_or_none()?.map(Value::Text),
    };
    Ok(value.unwrap_or(Value::Null))
}

/// Where a row stands.
fn place(table: &Table, row: &Row) -> Row {
    let places = source(table).1.iter().filter_map(|name| table.place(name));
    places.map(|at| row[at].clone()).collect()
}

async fn page(db: &Link, table: &Table, after: Option<&Row>) -> Result<CopyPage, StoreError> {
    let after_it = after.into_iter().flatten().map(single).collect::<Result<Vec<_>, _>>()?;
    let found = db.ask_once(&page_sql(table, after.is_none()), &after_it).await?;
    let mut rows = Vec::with_capacity(found.len());
    for row in &found {
        let mut columns = PostgresColumns::of(row);
        let row = table.columns.iter().map(|column| read(column.kind, &mut columns));
        rows.push(row.collect::<Result<Row, _>>()?);
    }
    let next = rows.last().map(|row| place(table, row));
    Ok(CopyPage { rows, next })
}

async fn put(db: &Link, table: &Table, mut rows: Vec<Row>) -> Result<(), StoreError> {
    let columns: Vec<&Column> = table.columns.iter().chain(derived(table)).collect();
    if !derived(table).is_empty() {
        for row in &mut rows {
            let more = derive(table, row)?;
            row.push(more);
        }
    }
    let arrays = columns.iter().enumerate().map(|(at, column)| array(column.kind, &rows, at));
    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
    db.ask_once(&put_sql(table), &arrays).await.map(drop)
}

#[async_trait]
impl Side for Postgres {
    async fn page(&self, table: &'static Table, after: Option<Row>) -> Result<CopyPage, StoreError> {
        page(&self.link().await?, table, after.as_ref()).await
    }

    async fn put(&self, table: &'static Table, rows: Vec<Row>) -> Result<(), StoreError> {
        put(&self.link().await?, table, rows).await
    }

    async fn is_unfinished(&self) -> Result<bool, StoreError> {
        schema::is_unfinished(&self.link().await?).await
    }

    async fn begin(&self) -> Result<(), StoreError> {
        let db = self.link().await?;
        schema::mark_unfinished(&db).await?;
        db.say(&format!("{}; {CLEAR_OWN}", clear_sql())).await
    }

    async fn derive(&self) -> Result<(), StoreError> {
        let db = self.link().await?;
        db.execute(TAKE_NAMES, &[]).await?;
        // Only the first queries would be slower without.
        drop(db.say(LEARN).await);
        Ok(())
    }

    async fn finish(&self) -> Result<(), StoreError> {
        schema::mark_finished(&self.link().await?).await
    }

    fn store(self: Arc<Self>) -> Arc<dyn Store> {
        self
    }
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[TAKE_NAMES];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use windlass_conformance::block_on_tokio;

    use super::*;
    use crate::postgres::tests::migrated;

    /// Derived tables that are not copied.
    const OWN: [(&str, &str); 2] = [("flow_names", "project"), ("flow_names", "name")];

    #[test]
    fn every_column_of_every_table_is_copied() {
        block_on_tokio(async {
            let store = migrated().await;
            let sql = "SELECT columns.table_name::text, columns.column_name::text FROM information_schema.columns \
                 JOIN information_schema.tables USING (table_schema, table_name) \
                 WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' AND table_name <> 'migrations' \
                 AND is_generated = 'NEVER'";
            let rows = store.link().await.unwrap().ask_once(sql, &[]).await.unwrap();
            let there: BTreeSet<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
            let copied = TABLES.iter().flat_map(|table| {
                table.columns.iter().chain(derived(table)).map(|column| (table.name, column.name))
            });
            let known = copied.chain(OWN).map(|(table, column)| (table.to_owned(), column.to_owned()));
            assert_eq!(there, known.collect());
        });
    }

    #[test]
    fn every_statement_of_every_table_prepares() {
        block_on_tokio(async {
            let store = migrated().await;
            let db = store.link().await.unwrap();
            for table in TABLES {
                for sql in [page_sql(table, true), page_sql(table, false), put_sql(table)] {
                    db.prepare(&sql).await.unwrap_or_else(|error| panic!("{error:?}\n{sql}"));
                }
            }
        });
    }
}
