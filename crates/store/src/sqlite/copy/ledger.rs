//! The ledger of the file, carried as the movements that are in it.
//!
//! Sheets are shown as a row for each movement, account by account and in order, so that what closes a charge comes
//! after it; rows become sheets, with an index and what is filed beside them.

use rusqlite::{Connection, params};
use windlass_engine::money::{Kind, Movement};
use windlass_engine::time::Timestamp;

use crate::account::{LedgerRow, Posting};
use crate::copy::table::Table;
use crate::copy::value::{Row, Value};
use crate::copy::{PAGE_BYTES, PAGE_ROWS, Page};
use crate::error::StoreError;
use crate::sqlite::book::Book;
use crate::sqlite::column::{Columns, Id, stored};
use crate::sqlite::ledger::{Ledger, number};
use crate::sqlite::slip::Slip;

/// Movements that are read at once.
const AT_ONCE: usize = 250;

pub(super) const ACCOUNTS: &str = "SELECT no, id FROM accounts WHERE no >= ?1 ORDER BY no";
pub(super) const CLEAR: &str = "DELETE FROM ledger_sheets; DELETE FROM ledger_index; DELETE FROM ledger_keys; \
     UPDATE ledger_indexed SET sheet = 0";

/// Movements after one that is named by its account's number and its own.
pub(super) fn page(db: &Connection, _table: &Table, after: Option<&Row>) -> Result<Page, StoreError> {
    let (first, mut after) = match after.map(Vec::as_slice) {
        Some([Value::Number(no), Value::Number(seq)]) => (*no, seq.cast_unsigned()),
        Some(_) | None => (0, 0),
    };
    let (mut page, mut n_bytes) = (Page::default(), 0);
    let mut statement = db.prepare_cached(ACCOUNTS)?;
    let mut accounts = statement.query(params![first])?;
    while let Some(account) = accounts.next()? {
        let mut columns = Columns::of(account);
        let (no, id): (i64, String) = (columns.value()?, columns.value()?);
        let ledger = Ledger::of(db, &id, no);
        loop {
            let found = ledger.after(after, AT_ONCE)?;
            let Some(last) = found.last() else { break };
            after = last.seq;
            for found in found {
                let row = row(found);
                n_bytes += row.iter().map(Value::weight).sum::<usize>();
                page.rows.push(row);
            }
            if page.rows.len() + AT_ONCE > PAGE_ROWS || n_bytes >= PAGE_BYTES {
                page.next = Some(vec![Value::Number(no), Value::Number(stored(after))]);
                return Ok(page);
            }
        }
        after = 0;
    }
    Ok(page)
}

/// A movement as it is carried: see the list of tables.
fn row(found: LedgerRow) -> Row {
    let LedgerRow { seq, posting, balance_after, at } = found;
    let run = posting.run().map(|run| Value::Id(run.key()));
    let node = posting.node().map(|node| Value::Text(node.as_str().to_owned()));
    let Movement { kind, amount, key, held, borne_by_platform } = posting.movement;
    vec![
        Value::Text(posting.account),
        Value::Number(stored(seq)),
        Value::Text(kind.word().to_owned()),
        Value::Number(amount),
        Value::Text(key),
        Value::Number(held),
        Value::Number(borne_by_platform),
        run.unwrap_or(Value::Null),
        node.unwrap_or(Value::Null),
        Value::Number(balance_after),
        Value::Number(at.0),
    ]
}

/// Adds movements to the ledgers of accounts that are there. What kind they are, and of which run and node, is said by
/// their keys: whatever a row says otherwise is found when all of it is compared.
pub(super) fn put(db: &Connection, _table: &Table, rows: &[Row]) -> Result<(), StoreError> {
    let mut book = Book::read(db)?;
    let (mut of, mut no) = (None, 0);
    for row in rows {
        #[rustfmt::skip]
        let [
            Value::Text(account), Value::Number(seq), _, Value::Number(amount), Value::Text(key),
            Value::Number(held), Value::Number(borne_by_platform), _, _,
            Value::Number(balance_after), Value::Number(at),
        ] = row.as_slice() else {
            return Err(StoreError::Corrupt("a movement of a ledger is not whole".to_owned()));
        };
        let unusable = |what: &str| StoreError::Corrupt(format!("ledger of `{account}` at {seq}: {what}"));
        if of != Some(account) {
            of = Some(account);
            no = number(db, account)?.ok_or_else(|| unusable("there is no such account"))?;
        }
        let kind = Kind::of_key(key).ok_or_else(|| unusable(&format!("`{key}` is no key")))?;
        let (amount, held, borne_by_platform) = (*amount, *held, *borne_by_platform);
        let movement = Movement { kind, amount, key: key.clone(), held, borne_by_platform };
        let slip = Slip::of(Posting { account: account.clone(), movement });
        book.enter(db, (no, seq.cast_unsigned()), (&slip, *balance_after), Timestamp(*at))?;
    }
    book.flush(db)?;
    book.index(db, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::table::TABLES;
    use crate::sqlite::schema;

    fn table() -> &'static Table {
        TABLES.iter().find(|table| table.name == "ledger").unwrap()
    }

    fn migrated() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        schema::migrate(&mut db).unwrap();
        let open = "INSERT INTO accounts (id, name, balance, held, revision, created_at) \
             VALUES ('b', '', 0, 0, 0, 0), ('a', '', 0, 0, 0, 0)";
        db.execute_batch(open).unwrap();
        db
    }

    fn moved(account: &str, seq: u64, movement: Movement) -> Row {
        let posting = Posting { account: account.to_owned(), movement };
        row(LedgerRow { seq, posting, balance_after: 7, at: Timestamp(3) })
    }

    fn deposit(account: &str, seq: u64) -> Row {
        moved(account, seq, Movement::deposit(&seq.to_string(), 5))
    }

    #[test]
    fn a_row_has_the_columns_of_the_list() {
        let charge = Movement::charge("charge:run_00000000000000000000000000000001/a/b/2".to_owned(), 5);
        let row = moved("a", 1, charge);
        let of = |name| &row[table().place(name).unwrap()];
        assert_eq!(row.len(), table().columns.len());
        assert_eq!((of("account").text(), of("kind").text()), (Some("a"), Some("charge")));
        assert_eq!(
            (of("seq").number(), of("amount").number(), of("held").number()),
            (Some(1), Some(-5), Some(5))
        );
        assert_eq!((of("borne_by_platform").number(), of("balance_after").number()), (Some(0), Some(7)));
        assert_eq!((of("at").number(), of("node").text()), (Some(3), Some("a/b")));
        assert_eq!(of("run").id(), Some(1u128.to_be_bytes()));
        assert!(of("key").text().unwrap().starts_with("charge:run_"));
    }

    #[test]
    fn what_is_put_is_found_account_by_account_and_by_what_it_is_for() {
        let db = migrated();
        let mut rows: Vec<Row> = (1..=40).map(|seq| deposit("b", seq)).collect();
        rows.extend((1..=3).map(|seq| deposit("a", seq)));
        put(&db, table(), &rows).unwrap();
        let more = [moved("a", 4, Movement::charge("charge:x".to_owned(), 5))];
        put(&db, table(), &more).unwrap();
        let closed = [moved("a", 5, Movement::refund("charge:x", 5))];
        put(&db, table(), &closed).unwrap();
        rows.extend(more.into_iter().chain(closed));
        assert_eq!(page(&db, table(), None).unwrap().rows, rows);
        let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM ledger_keys"), 44);
        assert_eq!(count("SELECT closed_by FROM ledger_keys WHERE subject = 'charge:x'"), 5);
        assert_eq!(count("SELECT max(no) - (SELECT sheet FROM ledger_indexed) FROM ledger_sheets"), 0);
    }

    #[test]
    fn no_page_is_too_long() {
        let db = migrated();
        let rows: Vec<Row> = (1..=2_500).map(|seq| deposit("b", seq)).collect();
        put(&db, table(), &rows).unwrap();
        let (mut read, mut next) = (Vec::new(), None);
        loop {
            let page = page(&db, table(), next.as_ref()).unwrap();
            assert!(page.rows.len() <= PAGE_ROWS);
            read.extend(page.rows);
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        assert_eq!(read, rows);
    }

    #[test]
    fn what_makes_no_sense_is_said_with_its_place() {
        let settle = moved("b", 2, Movement::settle("charge:x", 5, 5));
        let mut nameless = deposit("b", 3);
        nameless[4] = Value::Text("nothing".to_owned());
        let mut part = deposit("b", 4);
        part.pop();
        for (row, told) in [
            (deposit("nobody", 1), "ledger of `nobody` at 1: there is no such account"),
            (settle, "what `settle:x` closes is not filed"),
            (nameless, "ledger of `b` at 3: `nothing` is no key"),
            (part, "not whole"),
        ] {
            let refused = put(&migrated(), table(), &[row]).unwrap_err();
            assert!(format!("{refused:?}").contains(told), "{refused:?}");
        }
    }
}
