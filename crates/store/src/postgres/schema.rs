//! The tables: numbered migrations, embedded, applied in order, each once and never changed afterwards.
//!
//! Several servers may start at once: one holds the row of the first migration's place, and the others wait and find
//! everything done.

use super::column::{PostgresColumns, cells};
use super::link::Link;
use super::trouble::{ErrorClass, Trouble, is_held, kind};
use crate::column::{Columns, bound};
use crate::error::StoreError;

struct Migration {
    name: &'static str,
    sql: &'static str,
}

/// All migrations, in order: their numbers are their places, from 1.
const MIGRATIONS: [Migration; 1] =
    [Migration { name: "0001_first", sql: include_str!("../../migrations/postgres/0001_first.sql") }];

const IS_THERE: &str = "SELECT to_regclass('migrations') IS NOT NULL";
// The columns of our table of migrations that the database has, and some relation in it that no extension made.
const OWNER: &str = "SELECT (SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass('migrations') \
     AND attname IN ('number', 'name', 'checksum') AND NOT attisdropped), \
     (SELECT min(relname::text) FROM pg_class WHERE relnamespace = to_regnamespace(current_schema()::text) \
     AND relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT EXISTS (SELECT 1 FROM pg_depend \
     WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e'))";
const N_OWN_COLUMNS: i64 = 3;
const CREATE: &str = "CREATE TABLE IF NOT EXISTS migrations (\
     number bigint PRIMARY KEY, name text COLLATE \"C\" NOT NULL, checksum bigint NOT NULL)";
// Number 0 is no migration: the migrating server locks it.
const MAKE_LOCK: &str =
    "INSERT INTO migrations (number, name, checksum) VALUES (0, 'lock', 0) ON CONFLICT (number) DO NOTHING";
const LOCK: &str = "SELECT number FROM migrations WHERE number = 0 FOR UPDATE";
const APPLIED: &str = "SELECT number, name, checksum FROM migrations WHERE number > 0 ORDER BY number";
const RECORD: &str = "INSERT INTO migrations (number, name, checksum) VALUES ($1, $2, $3)";
// Number -1 is no migration either: it is there while a copy into the database has not come to its end.
const IS_UNFINISHED: &str = "SELECT 1 FROM migrations WHERE number = -1";
#[cfg(any(test, feature = "sqlite"))]
const MARK: &str =
    "INSERT INTO migrations (number, name, checksum) VALUES (-1, 'copy', 0) ON CONFLICT (number) DO NOTHING";
#[cfg(any(test, feature = "sqlite"))]
const UNMARK: &str = "DELETE FROM migrations WHERE number = -1";
/// A copy holds the lock of migrations, for as long as it takes, but does not wait for it.
#[cfg(feature = "sqlite")]
const HOLD: &str = "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; \
     SET LOCAL lock_timeout = 1000; SELECT number FROM migrations WHERE number = 0 FOR UPDATE";
/// Those who wait for a migration wait for so long, and not longer than they wait for any answer; a migration itself may
/// take its time.
const WAIT: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 30000";
const PATIENCE: &str = "SET LOCAL lock_timeout = 0";
/// How often two who start at the very same moment may get into one another's way.
const LOCK_ATTEMPTS_MAX: u32 = 20;

/// Whether there are tables of the program.
pub(super) async fn is_there(db: &Link) -> Result<bool, StoreError> {
    let row = db.ask_one(IS_THERE, &[]).await?;
    row.map_or(Ok(false), |row| PostgresColumns::of(&row).value())
}

/// Refuses a database with tables of another program, before anything is written to it.
pub(super) async fn check_owner(db: &Link, address: &str) -> Result<(), StoreError> {
    let Some(row) = db.ask_one(OWNER, &[]).await? else { return Ok(()) };
    let mut columns = PostgresColumns::of(&row);
    let (n_own, table): (i64, Option<String>) = (columns.value()?, columns.text_or_none()?);
    match table {
        Some(table) if n_own < N_OWN_COLUMNS => Err(Trouble::new(format!(
            "the database at {address} is one of another program (it has `{table}` and no tables of Windlass): create \
             one with `createdb`, and name it in --store"
        ))
        .into()),
        Some(_) | None => Ok(()),
    }
}

/// Brings the tables up to date, all at once or not at all.
pub(super) async fn migrate(db: &Link) -> Result<(), StoreError> {
    if !is_there(db).await? {
        create(db).await?;
    }
    db.transact(apply(db, &MIGRATIONS)).await
}

/// Refuses a database that a copy has not come to its end in.
pub(super) async fn check_finished(db: &Link) -> Result<(), StoreError> {
    if is_there(db).await? && is_unfinished(db).await? { Err(StoreError::unfinished()) } else { Ok(()) }
}

/// Whether a copy into the database has not come to its end.
pub(super) async fn is_unfinished(db: &Link) -> Result<bool, StoreError> {
    Ok(db.ask_one(IS_UNFINISHED, &[]).await?.is_some())
}

/// Says from now on that the database is not whole.
#[cfg(feature = "sqlite")]
pub(super) async fn mark_unfinished(db: &Link) -> Result<(), StoreError> {
    db.execute(MARK, &[]).await.map(drop)
}

/// Says from now on that the database is whole.
#[cfg(feature = "sqlite")]
pub(super) async fn mark_finished(db: &Link) -> Result<(), StoreError> {
    db.execute(UNMARK, &[]).await.map(drop)
}

/// Keeps other servers from migrating, and so from starting, until the link is dropped.
#[cfg(feature = "sqlite")]
pub(super) async fn hold(db: &Link) -> Result<(), StoreError> {
    db.hold(HOLD).await.map_err(held)
}

/// Another process holds the lock that every start needs.
fn held(error: StoreError) -> StoreError {
    if is_held(&error) {
        let what = "the database is being copied, or its tables are being brought up to date by another server: \
                    start again when that is done";
        Trouble::new(what).into()
    } else {
        error
    }
}

/// Makes the table of migrations. Two who do so at once meet in the tables of the database itself, and one of them
/// fails.
async fn create(db: &Link) -> Result<(), StoreError> {
    let mut n_tries = 0;
    loop {
        let made = db.say(&format!("{CREATE}; {MAKE_LOCK}")).await;
        match made {
            Err(error) if is_meeting(&error) && n_tries < LOCK_ATTEMPTS_MAX => n_tries += 1,
            done => return done,
        }
    }
}

fn is_meeting(error: &StoreError) -> bool {
    kind(error) == ErrorClass::Race || matches!(error, StoreError::Corrupt(_))
}

async fn apply(db: &Link, migrations: &[Migration]) -> Result<(), StoreError> {
    db.say(WAIT).await?;
    db.ask(LOCK, &[]).await.map_err(held)?;
    db.say(PATIENCE).await?;
    let mut applied = Vec::new();
    for row in &db.ask(APPLIED, &[]).await? {
        let mut columns = PostgresColumns::of(row);
        applied.push((columns.value::<i64>()?, columns.text()?, columns.value::<i64>()?));
    }
    let (found, known) = (applied.last().map_or(0, |(number, ..)| *number), bound(migrations.len()));
    if found > known {
        return Err(StoreError::Corrupt(format!(
            "the tables are of version {found}, this program knows up to {known}: upgrade it"
        )));
    }
    for (number, Migration { name, sql }) in (1i64..).zip(migrations) {
        match applied.iter().find(|(applied, ..)| *applied == number) {
            None => {
                db.run_without_time_limit(sql).await?;
                db.execute(RECORD, &cells![number, name, checksum(sql)]).await?;
            }
            Some((_, its_name, sum)) if its_name != name || *sum != checksum(sql) => {
                return Err(StoreError::Corrupt(format!(
                    "migration {number} was applied as `{its_name}` with other contents: \
                     use the program that made the tables, or restore them from a backup"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// FNV-1a: it has to notice a change by mistake, not by malice.
fn checksum(text: &str) -> i64 {
    let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, mix).cast_signed()
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[IS_THERE, OWNER, MAKE_LOCK, LOCK, APPLIED, RECORD, IS_UNFINISHED, MARK, UNMARK];
