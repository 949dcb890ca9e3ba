//! The views of both databases say the same about the same rows.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Map, Number, Value};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls};
use windlass_conformance::store_fillers::store_fillers;

use super::*;

/// Views that only other views use.
const OTHERS: [&str; 6] =
    ["entries_1", "entries_2", "entries_3", "entry_texts", "call_params", "start_params"];

/// A column in the same form for both backends, by its type in PostgreSQL: ids as UUIDs, flags as numbers, JSON as values,
/// times as this program writes them, and a replacement for the character 0, which a text of PostgreSQL cannot hold.
fn meaning(value: Value, kind: &Type) -> Value {
    match value {
        Value::String(text) if *kind == Type::TIMESTAMPTZ => {
            Value::String(Timestamp::parse_rfc3339(&text).unwrap().to_string())
        }
        Value::String(text) if *kind == Type::JSONB => {
            meaning(serde_json::from_str(&text).unwrap_or(Value::String(text)), &Type::TEXT)
        }
        Value::Bool(flag) => Value::Number(u8::from(flag).into()),
        Value::String(text) => Value::String(text.replace("\u{1}0", "\0").replace('\0', "\u{fffd}")),
        Value::Object(object) => {
            object.into_iter().map(|(name, value)| (name, meaning(value, &Type::TEXT))).collect()
        }
        Value::Array(items) => items.into_iter().map(|item| meaning(item, &Type::TEXT)).collect(),
        Value::Null | Value::Number(_) => value,
    }
}

fn sqlite_value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Number(number.into()),
        ValueRef::Real(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        ValueRef::Text(text) => Value::String(String::from_utf8(text.to_vec()).unwrap()),
        ValueRef::Blob(bytes) => Value::String(Uuid::from_slice(bytes).unwrap().to_string()),
    }
}

/// The columns of a view in PostgreSQL, with their types.
type ViewColumns = BTreeMap<String, Type>;

async fn views(client: &Client) -> BTreeMap<String, ViewColumns> {
    let names = "SELECT table_name::text FROM information_schema.tables \
         WHERE table_schema = current_schema() AND table_type = 'VIEW'";
    let mut views = BTreeMap::new();
    for name in client.query(names, &[]).await.unwrap() {
        let name: String = name.get(0);
        let statement = client.prepare(&format!("SELECT * FROM {name}")).await.unwrap();
        let columns = statement.columns().iter();
        let columns = columns.map(|column| (column.name().to_owned(), column.type_().clone())).collect();
        views.insert(name, columns);
    }
    views
}

/// The rows of a view, each as one text, sorted.
fn in_sqlite(db: &Connection, view: &str, types: &ViewColumns) -> Vec<String> {
    let mut statement = db.prepare(&format!("SELECT * FROM {view}")).unwrap();
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let read = |row: &rusqlite::Row<'_>| {
        let column = |(at, name): (usize, &String)| {
            (name.clone(), meaning(sqlite_value(row.get_ref(at).unwrap()), &types[name]))
        };
        Ok(Value::Object(columns.iter().enumerate().map(column).collect::<Map<String, Value>>()).to_string())
    };
    let mut rows: Vec<String> = statement.query_map([], read).unwrap().map(Result::unwrap).collect();
    rows.sort();
    rows
}

async fn in_postgres(client: &Client, view: &str, types: &ViewColumns) -> Vec<String> {
    let sql = format!("SELECT row_to_json(shown)::text FROM {view} AS shown");
    let found = client.query(&sql, &[]).await.unwrap_or_else(|error| panic!("{view}: {error:?}"));
    let read = |row: &tokio_postgres::Row| {
        let row: Map<String, Value> = serde_json::from_str(row.get(0)).unwrap();
        let column = |(name, value): (String, Value)| {
            // The text of a JSON value that is a text is not to be read a second time.
            let kind = if types[&name] == Type::JSONB { &Type::TEXT } else { &types[&name] };
            (name, meaning(value, kind))
        };
        Value::Object(row.into_iter().map(column).collect()).to_string()
    };
    let mut rows: Vec<String> = found.iter().map(read).collect();
    rows.sort();
    rows
}

async fn client(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[test]
fn the_views_of_both_databases_say_the_same() {
    block_on_tokio(async {
        let mut n_rows: BTreeMap<String, usize> = BTreeMap::new();
        for filler in store_fillers() {
            let (name, place) = (filler.name, TestDirectory::create());
            let path = place.join("store.db");
            filler.fill_file(&path).await;
            let base = tokio::task::spawn_blocking(database).await.unwrap();
            copied(&StoreAddress::File(path.clone()), &base).await.unwrap();
            let StoreAddress::Database(address) = &base else { panic!() };
            let (db, client) = (Connection::open(&path).unwrap(), client(address).await);
            for (view, types) in views(&client).await {
                let (ours, theirs) =
                    (in_sqlite(&db, &view, &types), in_postgres(&client, &view, &types).await);
                assert_eq!(ours.len(), theirs.len(), "{name}: {view}");
                for (one, other) in ours.iter().zip(&theirs) {
                    assert_eq!(one, other, "{name}: {view}");
                }
                *n_rows.entry(view).or_default() += ours.len();
            }
        }
        assert!(n_rows.values().all(|n| *n > 0), "{n_rows:?}");
    });
}

#[test]
fn the_views_of_both_databases_have_the_same_columns() {
    block_on_tokio(async {
        let place = TestDirectory::create();
        let path = place.join("store.db");
        drop(Sqlite::open(&path, Durability::Fast).unwrap());
        let db = Connection::open(&path).unwrap();
        let base = tokio::task::spawn_blocking(database).await.unwrap();
        let StoreAddress::Database(address) = &base else { panic!() };
        let client = client(address).await;
        let mut names = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'").unwrap();
        let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap);
        let names: BTreeSet<String> = names.filter(|name| !OTHERS.contains(&name.as_str())).collect();
        let in_postgres = views(&client).await;
        assert_eq!(names, in_postgres.keys().cloned().collect());
        for view in names {
            let sql = format!("SELECT * FROM {view}");
            let ours = db.prepare(&sql).unwrap();
            let theirs = client.prepare(&sql).await.unwrap();
            let columns: Vec<&str> = theirs.columns().iter().map(tokio_postgres::Column::name).collect();
            assert_eq!(ours.column_names().collect::<Vec<_>>(), columns, "{view}");
            // Times and structured values have types of their own, except where other views read them.
            for column in theirs.columns().iter().filter(|_| view != "run_events") {
                let is_time = ["at", "lease_expiry", "last_heartbeat"].contains(&column.name())
                    || column.name().ends_with("_at");
                let is_json = column.name().ends_with("_json")
                    || ["payload", "result", "data", "events", "event"].contains(&column.name());
                assert!(!is_time || *column.type_() == Type::TIMESTAMPTZ, "{view}: {column:?}");
                assert!(!is_json || *column.type_() == Type::JSONB, "{view}: {column:?}");
            }
        }
    });
}
