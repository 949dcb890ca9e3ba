//! The ledger of the file, carried as the movements that are in it.
//!
//! Parts are read whole and shown as a row for each movement; rows become parts and what is filed beside them. They
//! come account by account and in order, so that what closes a charge comes after it.

use rusqlite::{Connection, params_from_iter};
use windlass_engine::money::{Kind, Movement};
use windlass_engine::time::Timestamp;

use crate::account::{LedgerRow, Posting};
use crate::copy::table::Table;
use crate::copy::value::{Row, Value};
use crate::copy::{PAGE_BYTES, PAGE_ROWS, Page};
use crate::error::StoreError;
use crate::sqlite::column::{Columns, Id, stored};
use crate::sqlite::filing::Filings;
use crate::sqlite::ledger::{Fresh, PART_MAX, number, read_part, set_filed};
use crate::sqlite::slip::Slip;

// Accounts are looked up for parts, and never the other way round: those are in order by themselves.
macro_rules! parts {
    ($where:literal) => {
        concat!(
            "SELECT accounts.id, ledger_parts.account, ledger_parts.seq, ledger_parts.movements \
             FROM ledger_parts CROSS JOIN accounts ON accounts.no = ledger_parts.account ",
            $where,
            "ORDER BY ledger_parts.account, ledger_parts.seq"
        )
    };
}

pub(super) const FIRST: &str = parts!("");
pub(super) const AFTER: &str = parts!("WHERE (ledger_parts.account, ledger_parts.seq) > (?1, ?2) ");
pub(super) const CLEAR: &str = "DELETE FROM ledger_parts; DELETE FROM ledger_keys";

/// The movements of whole parts, after a part that is named by its account's number and its own.
pub(super) fn page(db: &Connection, _table: &Table, after: Option<&Row>) -> Result<Page, StoreError> {
    let mut statement = db.prepare_cached(if after.is_none() { FIRST } else { AFTER })?;
    let mut parts = statement.query(params_from_iter(after.into_iter().flatten()))?;
    let (mut page, mut n_bytes) = (Page::default(), 0);
    while let Some(part) = parts.next()? {
        let mut columns = Columns::of(part);
        let (account, no): (String, i64) = (columns.value()?, columns.value()?);
        let (seq, text): (u64, String) = (columns.number()?, columns.value()?);
        for found in read_part(&account, seq, &text)? {
            let row = row(found);
            n_bytes += row.iter().map(Value::weight).sum::<usize>();
            page.rows.push(row);
        }
        if page.rows.len() + PART_MAX > PAGE_ROWS || n_bytes >= PAGE_BYTES {
            page.next = Some(vec![Value::Number(no), Value::Number(stored(seq))]);
            break;
        }
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
    let (mut fresh, mut filings) = (Fresh::default(), Filings::default());
    let (mut no, mut of, mut next) = (0, "", None);
    let mut rows = rows.iter().peekable();
    while let Some(row) = rows.next() {
        #[rustfmt::skip]
        let [
            Value::Text(account), Value::Number(seq), _, Value::Number(amount), Value::Text(key),
            Value::Number(held), Value::Number(borne_by_platform), _, _,
            Value::Number(balance_after), Value::Number(at),
        ] = row.as_slice() else {
            return Err(StoreError::Corrupt("a movement of a ledger is not whole".to_owned()));
        };
        let unusable = |what: &str| StoreError::Corrupt(format!("ledger of `{account}` at {seq}: {what}"));
        if next.is_none() || of != account {
            fresh.write(db, no)?;
            of = account;
            (no, _) = number(db, account)?.ok_or_else(|| unusable("there is no such account"))?;
        } else if next != Some(seq.cast_unsigned()) {
            fresh.write(db, no)?;
        }
        let kind = Kind::of_key(key).ok_or_else(|| unusable(&format!("`{key}` is no key")))?;
        let (amount, held, borne_by_platform) = (*amount, *held, *borne_by_platform);
        let movement = Movement { kind, amount, key: key.clone(), held, borne_by_platform };
        let slip = Slip::of(Posting { account: account.clone(), movement });
        let seq = seq.cast_unsigned();
        match kind {
            Kind::Charge | Kind::Deposit => filings.make(no, seq, &slip.place),
            Kind::Settle | Kind::Refund => filings.close(db, no, &slip, seq)?,
        }
        fresh.add(seq, &slip, *balance_after, Timestamp(*at));
        next = Some(seq.wrapping_add(1));
        // The last of an account says how far it is filed: all of it.
        if rows.peek().is_none_or(|row| row.first().and_then(Value::text) != Some(account)) {
            set_filed(db, no, seq)?;
        }
    }
    filings.write(db)?;
    fresh.write(db, no)
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

    fn parts(db: &Connection) -> Vec<(i64, i64, i64)> {
        let sql = "SELECT account, seq, json_array_length(movements) FROM ledger_parts ORDER BY 1, 2";
        let mut statement = db.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        rows.map(Result::unwrap).collect()
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
    fn parts_are_of_one_account_of_numbers_in_a_row_and_not_too_long() {
        let db = migrated();
        let mut rows: Vec<Row> = (1..=40).map(|seq| deposit("b", seq)).collect();
        rows.extend((41..=43).map(|seq| deposit("a", seq)));
        rows.extend((50..=51).map(|seq| deposit("a", seq)));
        put(&db, table(), &rows).unwrap();
        assert_eq!(parts(&db), [(1, 1, 32), (1, 33, 8), (2, 41, 3), (2, 50, 2)]);
        assert_eq!(page(&db, table(), None).unwrap().rows, rows);
    }

    #[test]
    fn pages_end_between_parts_and_none_is_too_long() {
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
