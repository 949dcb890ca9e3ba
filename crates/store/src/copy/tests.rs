mod ledger;
mod views;

use std::collections::BTreeMap;
use std::pin::Pin;

use serde_json::json;
use windlass_engine::counter::Epoch;
use windlass_engine::id::ServerId;
use windlass_engine::money::Price;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::value::Value;
use super::*;
use crate::account::PriceRow;
use crate::audit::{AuditQuery, AuditRow};
use crate::commit::Commit;
use crate::conformance::cluster::{block_on, shared};
use crate::conformance::{
    accounts, bench, children, flows, jobs, keys, letters, outboxes, queues, records, replays, rounds, runs,
    schedules,
};
use crate::run::Owner;
use crate::sqlite::TempDirectory;
use crate::worker::{WorkerQuery, WorkerRow};

type Story = for<'s> fn(&'s dyn Store) -> Pin<Box<dyn Future<Output = ()> + 's>>;

macro_rules! stories {
    ($($module:ident::$name:ident)*) => {
        [$((stringify!($name), (|store| Box::pin($module::$name(store))) as Story)),*]
    };
}

/// Commits that together leave a row in every table.
fn stories() -> impl Iterator<Item = (&'static str, Story)> {
    stories! {
        flows::flows_are_found_by_text_label_and_kind
        flows::a_definition_comes_back_as_it_was_written
        runs::a_snapshot_saves_reading_what_came_before
        runs::runs_of_a_dead_server_are_orphans
        replays::an_answer_ends_the_job_and_moves_the_run_in_one_commit
        replays::a_run_has_an_owner_only_while_a_server_makes_a_call
        replays::a_priced_call_is_charged_and_settled_with_its_run
        replays::a_short_balance_fails_the_call_or_parks_it
        replays::a_wide_fan_is_followed_to_its_end
        rounds::a_rerun_resets_what_follows
        rounds::a_retry_takes_up_what_failed
        rounds::nodes_write_while_their_runs_are_open
        children::cancelling_a_run_leaves_a_message_for_each_of_its_children
        jobs::a_job_reads_back_as_it_was_written
        jobs::a_key_can_stay_taken_for_a_while
        jobs::attempts_are_kept_longer_than_the_job_remembers
        keys::what_is_used_up_of_a_rate_is_kept_until_it_is_not
        keys::what_workers_have_of_a_queue_is_known
        letters::dead_letters_are_grouped_by_what_went_wrong
        queues::depths_follow_whatever_happens_to_jobs
        accounts::a_charge_is_closed_once
        outboxes::a_message_is_not_delivered_before_its_time
        schedules::a_manual_firing_is_not_a_slot
        records::workers_register_beat_and_are_found
        records::prices_and_queue_settings_are_replaced
        records::what_is_set_for_services_is_replaced_and_removed
        records::the_audit_is_numbered_in_order
        records::more_logs_than_are_read_at_once_are_read_in_parts
    }
    .into_iter()
}

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
    StoreAddress::Database(shared().address(&shared().copy()))
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
    block_on(async {
        let mut n_rows: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, story) in stories() {
            let place = TempDirectory::make().unwrap();
            let (first, last) =
                (StoreAddress::File(place.0.join("first.db")), StoreAddress::File(place.0.join("last.db")));
            let between = tokio::task::spawn_blocking(database).await.unwrap();
            let store = Arc::new(Sqlite::open(place.0.join("first.db"), Durability::Fast).unwrap());
            story(&*store).await;
            let price = Price { unit_price: 3, min_unit: 1, units: json!("$params.x"), actual_units: None };
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
        let nobody: Vec<&&str> = n_rows.iter().filter(|(_, n)| **n == 0).map(|(table, _)| table).collect();
        assert!(nobody.is_empty(), "nothing was ever in {nobody:?}");
    });
}

/// Characters that a text of PostgreSQL cannot hold, and their replacements.
const HOSTILE: &str = "a\0b\u{1}0\u{1}\u{1}1';--\u{10ffff}é";

fn hostile() -> WorkerRow {
    WorkerRow {
        id: HOSTILE.to_owned(),
        name: HOSTILE.to_owned(),
        url: String::new(),
        kind: "async".to_owned(),
        services: vec![HOSTILE.to_owned()],
        queues: Vec::new(),
        load: i64::MIN,
        capacity: 1,
        is_draining: true,
        registered_at: Timestamp(i64::MIN),
        beat_at: Timestamp(i64::MAX),
    }
}

fn noted(n: u128) -> Commit {
    let (now, detail) = (Timestamp(1), json!({ HOSTILE: [HOSTILE, 1e300, u64::MAX] }));
    let row = AuditRow {
        at: now,
        who: HOSTILE.to_owned(),
        what: "x".to_owned(),
        subject: HOSTILE.to_owned(),
        detail,
    };
    let command = windlass_engine::id::CommandId::new(uuid::Uuid::from_u128(n));
    Commit { audit: vec![row], ..Commit::new(&Project::DEFAULT, command, now) }
}

#[test]
fn what_was_copied_reads_the_same_and_goes_on_where_it_stopped() {
    block_on(async {
        let place = TempDirectory::make().unwrap();
        let (file, back) =
            (StoreAddress::File(place.0.join("a.db")), StoreAddress::File(place.0.join("b.db")));
        let between = tokio::task::spawn_blocking(database).await.unwrap();
        let store = Sqlite::open(place.0.join("a.db"), Durability::Fast).unwrap();
        let store_dyn: &dyn Store = &store;
        store.save_worker(&Project::DEFAULT, hostile()).await.unwrap();
        store.publish(&Project::DEFAULT, bench::publication(1, HOSTILE)).await.unwrap();
        for n in 1..=3 {
            store_dyn.commit_one(noted(n)).await.unwrap();
        }
        drop(store);
        for (from, to, n) in [(&file, &between, 4), (&between, &back, 5)] {
            let store = copy(from, to, &mut |_| {}).await.unwrap().store;
            assert_eq!(store.workers(&Project::DEFAULT, WorkerQuery::default()).await.unwrap(), [hostile()]);
            let again = store.publish(&Project::DEFAULT, bench::publication(2, HOSTILE)).await.unwrap_err();
            assert!(again.to_string().contains("taken"), "{again}");
            store.commit_one(noted(n)).await.unwrap();
            let audit = store.audit(&Project::DEFAULT, AuditQuery::default()).await.unwrap();
            assert!(audit.iter().map(|(seq, _)| *seq).eq(1..=n as u64), "{audit:?}");
            assert_eq!(audit[0].1, noted(1).audit[0]);
            // It was committed before, wherever it was.
            assert_eq!(store.commit_one(noted(1)).await.unwrap().at, Timestamp(1));
            assert_eq!(store.audit(&Project::DEFAULT, AuditQuery::default()).await.unwrap().len() as u128, n);
        }
    });
}

#[test]
fn what_a_copy_was_cut_short_in_is_refused_until_it_is_copied_again() {
    block_on(async {
        let place = TempDirectory::make().unwrap();
        let from = StoreAddress::File(place.0.join("from.db"));
        let store = Sqlite::open(place.0.join("from.db"), Durability::Fast).unwrap();
        store.publish(&Project::DEFAULT, bench::publication(1, "one")).await.unwrap();
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
            assert!(matches!(error, CopyError::NotEmpty { table: "flows", .. }), "{error}");
        }
    });
}

#[test]
fn a_difference_is_found_to_the_last_column() {
    block_on(async {
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
        assert_eq!(compared, Compared { table: "flows", n_from: 1, n_to: 1, is_same: false });
    });
}

#[test]
fn what_cannot_be_copied_is_said_with_the_remedy() {
    block_on(async {
        let place = TempDirectory::make().unwrap();
        let file = |name: &str| StoreAddress::File(place.0.join(name));
        let (base, nowhere) =
            tokio::task::spawn_blocking(|| (database(), shared().address("nowhere"))).await.unwrap();
        let StoreAddress::Database(address) = &base else { panic!() };
        let refused =
            async |from: &StoreAddress, to: &StoreAddress| told(&copied(from, to).await.unwrap_err());
        assert!(refused(&file("no.db"), &base).await.contains("no store"));
        assert!(!place.0.join("no.db").exists());
        let nowhere = StoreAddress::Database(nowhere);
        assert!(refused(&nowhere, &file("a.db")).await.contains("createdb"));
        assert!(refused(&base, &base).await.contains("name two stores"));
        let empty = tokio::task::spawn_blocking(|| shared().address(&shared().create())).await.unwrap();
        assert!(refused(&StoreAddress::Database(empty), &file("a.db")).await.contains("no store"));
        let store = Arc::new(Postgres::open(address, Durability::Fast).await.unwrap());
        let now = Store::now(&*store).await.unwrap().unwrap();
        let owner = Owner { server: ServerId::new(uuid::Uuid::from_u128(1)), epoch: Epoch(1) };
        let row = ServerRow {
            owner,
            name: "mill".to_owned(),
            version: String::new(),
            started_at: now,
            beat_at: now,
        };
        let beating = tokio::spawn({
            let store = store.clone();
            async move {
                for beat in 1.. {
                    let row = ServerRow { beat_at: now.after(beat), ..row.clone() };
                    store.save_server(row).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        });
        let told = refused(&base, &file("a.db")).await;
        assert!(told.contains("`mill`") && told.contains("stop it"), "{told}");
        // Dead from now on, and waited for.
        beating.abort();
        let open = Sqlite::open(place.0.join("b.db"), Durability::Fast).unwrap();
        assert!(refused(&base, &file("b.db")).await.contains("is in use"));
        drop(open);
        assert!(copied(&base, &file("a.db")).await.unwrap().iter().all(|table| table.is_same));
    });
}

#[test]
fn nobody_starts_on_a_database_that_is_being_copied() {
    block_on(async {
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
    block_on(async {
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
