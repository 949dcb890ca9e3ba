//! The views of both databases say the same about the same rows.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Map, Number, Value};
use tokio_postgres::NoTls;
use windlass_conformance::store_fillers::store_fillers;

use super::*;

/// Views that only other views use.
const OTHERS: [&str; 5] = ["entries_1", "entries_2", "entries_3", "call_params", "start_params"];

/// A column in the same form for both backends: ids as UUIDs, flags as numbers, JSON as values, and a replacement for
/// the character 0, which a text of PostgreSQL cannot hold.
fn meaning(value: Value) -> Value {
    match value {
        Value::Bool(flag) => Value::Number(u8::from(flag).into()),
        Value::String(text) if text.starts_with(['{', '[']) => {
            serde_json::from_str(&text).map_or(Value::String(text), meaning)
        }
        Value::String(text) => Value::String(text.replace("\u{1}0", "\0").replace('\0', "\u{fffd}")),
        Value::Object(object) => object.into_iter().map(|(name, value)| (name, meaning(value))).collect(),
        Value::Array(items) => items.into_iter().map(meaning).collect(),
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

type Views = BTreeMap<String, Vec<String>>;

/// The rows of all views, each as one text, sorted.
fn in_sqlite(path: &std::path::Path) -> Views {
    let db = Connection::open(path).unwrap();
    let mut names = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'").unwrap();
    let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let names = names.map(Result::unwrap).filter(|name| !OTHERS.contains(&name.as_str()));
    let rows = |name: String| {
        let mut statement = db.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let read = |row: &rusqlite::Row<'_>| {
            let column = |(at, name): (usize, &String)| {
                (name.clone(), meaning(sqlite_value(row.get_ref(at).unwrap())))
            };
            Ok(columns.iter().enumerate().map(column).collect::<Map<String, Value>>())
        };
        let rows = statement.query_map([], read).unwrap();
        let rows = rows.map(|row| Value::Object(row.unwrap()).to_string());
        let mut rows: Vec<String> = rows.collect();
        rows.sort();
        (name, rows)
    };
    names.map(rows).collect()
}

async fn in_postgres(address: &str) -> Views {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    let names = "SELECT table_name::text FROM information_schema.tables \
         WHERE table_schema = current_schema() AND table_type = 'VIEW'";
    let mut views = Views::new();
    for name in client.query(names, &[]).await.unwrap() {
        let name: String = name.get(0);
        let sql = format!("SELECT row_to_json(shown)::text FROM {name} AS shown");
        let found = client.query(&sql, &[]).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let read = |row: &tokio_postgres::Row| {
            let row: Map<String, Value> = serde_json::from_str(row.get(0)).unwrap();
            let row = row.into_iter().map(|(name, value)| (name, meaning(value)));
            Value::Object(row.collect()).to_string()
        };
        let mut rows: Vec<String> = found.iter().map(read).collect();
        rows.sort();
        views.insert(name, rows);
    }
    views
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
            let (ours, theirs) = (in_sqlite(&path), in_postgres(address).await);
            assert_eq!(ours.keys().collect::<BTreeSet<_>>(), theirs.keys().collect::<BTreeSet<_>>());
            for (view, rows) in ours {
                assert_eq!(rows.len(), theirs[&view].len(), "{name}: {view}");
                for (one, other) in rows.iter().zip(&theirs[&view]) {
                    assert_eq!(one, other, "{name}: {view}");
                }
                *n_rows.entry(view).or_default() += rows.len();
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
        let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
        tokio::spawn(connection);
        for view in in_sqlite(&path).keys() {
            let sql = format!("SELECT * FROM {view}");
            let ours = db.prepare(&sql).unwrap();
            let theirs = client.prepare(&sql).await.unwrap();
            let theirs: Vec<&str> = theirs.columns().iter().map(tokio_postgres::Column::name).collect();
            assert_eq!(ours.column_names().collect::<Vec<_>>(), theirs, "{view}");
        }
    });
}
