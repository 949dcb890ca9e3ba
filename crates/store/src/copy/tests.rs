use std::collections::BTreeMap;

use serde_json::json;
use windlass_conformance::block_on_tokio;
use windlass_conformance::postgres_server::shared;
use windlass_conformance::store_fillers::store_fillers;
use windlass_engine::money::{Amount, Price};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::value::Value;
use super::*;
use crate::account::PriceRow;
use crate::flow::{FlowChoice, FlowDraft, Publication};
use crate::sqlite::TempDirectory;

/// All rows of a store, in an order that does not depend on where they are kept.
async fn rows(side: &dyn Side) -> BTreeMap<&'static str, Vec<String>> {
    let mut all = BTreeMap::new();
    for table in TABLES {
        let (mut rows, mut next) = (Vec::new(), None);
        loop {
            let page = side.page(table, next).await.unwrap();
            rows.extend(page.rows.iter().map(|row| format!("{row:?}")));
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        rows.sort();
        all.insert(table.name, rows);
    }
    all
}

fn database() -> StoreAddress {
    StoreAddress::Database(shared().address(&shared().create_migrated()))
}

async fn reopened(place: &StoreAddress) -> Arc<dyn Side> {
    open(place, false).await.unwrap().side
}

async fn copied(from: &StoreAddress, to: &StoreAddress) -> Result<Vec<Compared>, CopyError> {
    copy(from, to, &mut |_| {}).await.map(|copied| copied.tables)
}

fn told(error: &CopyError) -> String {
    let source = std::error::Error::source(error).and_then(std::error::Error::source);
    format!("{error}: {}", source.map(ToString::to_string).unwrap_or_default())
}

#[test]
fn everything_comes_back_from_another_store_as_it_was() {
    block_on_tokio(async {
        let mut n_rows: BTreeMap<&str, usize> = BTreeMap::new();
        for filler in store_fillers() {
            let (name, place) = (filler.name, TempDirectory::make().unwrap());
            let (first, last) =
                (StoreAddress::File(place.0.join("first.db")), StoreAddress::File(place.0.join("last.db")));
            let between = tokio::task::spawn_blocking(database).await.unwrap();
            filler.fill_file(&place.0.join("first.db")).await;
            let store = Arc::new(Sqlite::open(place.0.join("first.db"), Durability::Fast).unwrap());
            let price =
                Price { unit_price: Amount(3), min_unit: 1, units: json!("$params.x"), actual_units: None };
            let price = PriceRow { service: HOSTILE.to_owned(), price, updated_at: Timestamp(1) };
            store.set_price(&Project::DEFAULT, price).await.unwrap();
            let there = rows(&*store).await;
            drop(store);
            for (from, to) in [(&first, &between), (&between, &last)] {
                let tables =
                    copied(from, to).await.unwrap_or_else(|error| panic!("{name}: {}", told(&error)));
                assert_eq!(tables.len(), TABLES.len());
                for table in &tables {
                    let n = there[table.table].len() as u64;
                    assert_eq!((table.n_from, table.n_to, table.is_same), (n, n, true), "{name}: {table:?}");
                }
                assert_eq!(rows(&*reopened(to).await).await, there, "{name}");
            }
            for (table, rows) in there {
                *n_rows.entry(table).or_default() += rows.len();
            }
        }
        let empty: Vec<&&str> = n_rows.iter().filter(|(_, n)| **n == 0).map(|(table, _)| table).collect();
        assert!(empty.is_empty(), "no filler wrote into {empty:?}");
    });
}

/// Characters that a text of PostgreSQL cannot hold, and their replacements.
const HOSTILE: &str = "a\0b\u{1}0\u{1}\u{1}1';--\u{10ffff}é";

/// A flow without a version.
fn flow() -> Publication {
    let draft = FlowDraft {
        id: windlass_engine::id::FlowId::new(uuid::Uuid::from_u128(1)),
        name: "one".to_owned(),
        description: String::new(),
        labels: BTreeMap::new(),
        is_template: false,
        allow_same_name: false,
    };
    Publication { flow: FlowChoice::Create(draft), version: None, now: Timestamp(0) }
}

#[test]
fn the_target_of_an_unfinished_copy_is_refused_until_it_is_copied_again() {
    block_on_tokio(async {
        let place = TempDirectory::make().unwrap();
        let from = StoreAddress::File(place.0.join("from.db"));
        let store = Sqlite::open(place.0.join("from.db"), Durability::Fast).unwrap();
        store.publish(&Project::DEFAULT, flow()).await.unwrap();
        drop(store);
        let base = tokio::task::spawn_blocking(database).await.unwrap();
        for to in [StoreAddress::File(place.0.join("to.db")), base] {
            let target = reopened(&to).await;
            target.begin().await.unwrap();
            let source = reopened(&from).await;
            let page = source.page(&TABLES[0], None).await.unwrap();
            target.put(&TABLES[0], page.rows).await.unwrap();
            drop((target, source));
            let refused = match &to {
                StoreAddress::File(path) => Sqlite::open(path, Durability::Fast).map(drop),
                StoreAddress::Database(address) => Postgres::open(address, Durability::Fast).await.map(drop),
            };
            let Err(StoreError::Unavailable(reason)) = refused else { panic!("{refused:?}") };
            assert!(reason.to_string().contains("windlass store copy"), "{reason}");
            let error = copied(&to, &StoreAddress::File(place.0.join("third.db"))).await.unwrap_err();
            assert!(matches!(error, CopyError::Unfinished { .. }), "{error}");
            assert!(copied(&from, &to).await.unwrap().iter().all(|table| table.is_same));
            match &to {
                StoreAddress::File(path) => drop(Sqlite::open(path, Durability::Fast).unwrap()),
                StoreAddress::Database(address) => {
                    drop(Postgres::open(address, Durability::Fast).await.unwrap())
                }
            }
            let error = copied(&from, &to).await.unwrap_err();
            assert!(matches!(error, CopyError::NotEmpty { table: "named_flows", .. }), "{error}");
        }
    });
}

#[test]
fn a_difference_is_found_to_the_last_column() {
    block_on_tokio(async {
        let place = TempDirectory::make().unwrap();
        let (from, to) = (StoreAddress::File(place.0.join("a.db")), StoreAddress::File(place.0.join("b.db")));
        let (source, target) = (reopened(&from).await, reopened(&to).await);
        let table = &TABLES[0];
        let row = |description: &str| {
            let text = |text: &str| Value::Text(text.to_owned());
            let numbers = [1, 2, 3].map(Value::Number);
            let mut row =
                vec![text("default"), Value::Id([7; 16]), text("name"), text(description), text("{}")];
            row.push(Value::Flag(false));
            row.extend(numbers);
            row
        };
        source.put(table, vec![row("as it was")]).await.unwrap();
        target.put(table, vec![row("as it is")]).await.unwrap();
        let mut tally = Tally::default();
        tally.add(&row("as it was"));
        let copy = Copy { from: &from, source: &*source, to: &to, target: &*target };
        let compared = copy.compare(table, tally, &mut |_| {}).await.unwrap();
        assert_eq!(compared, Compared { table: "named_flows", n_from: 1, n_to: 1, is_same: false });
    });
}

#[test]
fn no_server_starts_on_a_database_that_is_being_copied() {
    block_on_tokio(async {
        let base = tokio::task::spawn_blocking(database).await.unwrap();
        let StoreAddress::Database(address) = &base else { panic!() };
        let other = Postgres::open(address, Durability::Fast).await.unwrap();
        let held = open(&base, true).await.unwrap().held;
        let Err(StoreError::Unavailable(reason)) = other.hold().await.map(drop) else { panic!("it is held") };
        assert!(reason.to_string().contains("copied"), "{reason}");
        let starting = tokio::spawn({
            let address = address.clone();
            async move { Postgres::open(&address, Durability::Fast).await.map(drop) }
        });
        held.as_ref().unwrap().check().await.unwrap();
        assert!(!starting.is_finished());
        drop(held);
        starting.await.unwrap().unwrap();
    });
}

#[test]
fn pages_are_bounded_by_rows_and_by_bytes() {
    block_on_tokio(async {
        let place = TempDirectory::make().unwrap();
        let table = TABLES.iter().find(|table| table.name == "snapshots").unwrap();
        let base = tokio::task::spawn_blocking(database).await.unwrap();
        let row = |n: u128, size: usize| {
            vec![Value::Id(n.to_be_bytes()), Value::Number(1), Value::Bytes(vec![7; size])]
        };
        for side in [reopened(&StoreAddress::File(place.0.join("a.db"))).await, reopened(&base).await] {
            // One that is larger than a page, then small ones, then large ones.
            side.put(table, vec![row(0, PAGE_BYTES + 1)]).await.unwrap();
            side.put(table, (1..=PAGE_ROWS as u128 + 10).map(|n| row(n, 1)).collect()).await.unwrap();
            let large = (2_000..2_008).map(|n| row(n, PAGE_BYTES / 3));
            side.put(table, large.collect()).await.unwrap();
            let (mut sizes, mut next) = (Vec::new(), None);
            loop {
                let page = side.page(table, next).await.unwrap();
                sizes.push(page.rows.len());
                next = page.next;
                if next.is_none() {
                    break;
                }
            }
            sizes.retain(|size| *size > 0);
            assert_eq!(sizes, [1, PAGE_ROWS, 13, 3, 2]);
        }
    });
}
