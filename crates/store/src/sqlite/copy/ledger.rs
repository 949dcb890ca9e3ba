//! The ledger, which is carried a movement a row, and is kept here in parts.

use rusqlite::{Connection, OptionalExtension, params_from_iter};
use windlass_engine::money::{Kind, Movement};
use windlass_engine::time::Timestamp;

use super::super::column::{Columns, Id, stored};
use super::super::ledger::{Fresh, NUMBER, PART_MAX, file, read_part};
use crate::account::{LedgerRow, Posting};
use crate::copy::value::{Row, Value};
use crate::copy::{PAGE_BYTES, PAGE_ROWS, Page};
use crate::error::StoreError;

macro_rules! parts {
    ($after:literal) => {
        concat!(
            "SELECT ledger_parts.account, ledger_parts.seq, accounts.id, ledger_parts.movements \
             FROM ledger_parts JOIN accounts ON accounts.no = ledger_parts.account ",
            $after,
            "ORDER BY ledger_parts.account, ledger_parts.seq"
        )
    };
}

const FIRST: &str = parts!("");
const NEXT: &str = parts!("WHERE (ledger_parts.account, ledger_parts.seq) > (?1, ?2) ");
pub(super) const COUNT: &str = "SELECT coalesce(sum(json_array_length(movements)), 0) FROM ledger_parts";
pub(super) const CLEAR: &str = "DELETE FROM ledger_parts; DELETE FROM ledger_keys";

/// The movements of the parts after a place: the number of an account, and that of the first movement of a part.
pub(super) fn page(db: &Connection, after: Option<&Row>) -> Result<Page, StoreError> {
    let mut statement = db.prepare_cached(if after.is_none() { FIRST } else { NEXT })?;
    let mut parts = statement.query(params_from_iter(after.into_iter().flatten()))?;
    let (mut page, mut n_bytes) = (Page::default(), 0);
    while let Some(part) = parts.next()? {
        let mut columns = Columns::of(part);
        let (no, first): (i64, u64) = (columns.value()?, columns.number()?);
        let (account, text): (String, String) = (columns.value()?, columns.value()?);
        for row in read_part(&account, first, &text)? {
            let row = carried(row);
            n_bytes += row.iter().map(Value::weight).sum::<usize>();
            page.rows.push(row);
        }
        // Parts are not divided.
        if page.rows.len() + PART_MAX > PAGE_ROWS || n_bytes >= PAGE_BYTES {
            page.next = Some(vec![Value::Number(no), Value::Number(stored(first))]);
            break;
        }
    }
    Ok(page)
}

fn carried(row: LedgerRow) -> Row {
    let LedgerRow { seq, posting, balance_after, at } = row;
    let Posting { account, movement, run, node } = posting;
    let Movement { kind, amount, key, held, borne_by_platform } = movement;
    vec![
        Value::Text(account),
        Value::Number(stored(seq)),
        Value::Text(kind.word().to_owned()),
        Value::Number(amount),
        Value::Text(key),
        Value::Number(held),
        Value::Number(borne_by_platform),
        run.map_or(Value::Null, |run| Value::Id(run.key())),
        node.map_or(Value::Null, |node| Value::Text(node.to_string())),
        Value::Number(balance_after),
        Value::Number(at.0),
    ]
}

/// Adds movements, which come in the order of their numbers, account by account.
pub(super) fn put(db: &Connection, rows: &[Row]) -> Result<(), StoreError> {
    let mut one: Option<(&str, i64)> = None;
    let mut fresh = Fresh::default();
    for row in rows {
        let (account, seq, movement, balance_after, at) = brought(row)?;
        let no = match one {
            Some((id, no)) if id == account => no,
            Some(_) | None => {
                if let Some((_, no)) = one {
                    fresh.write(db, no)?;
                }
                number(db, account)?
            }
        };
        one = Some((account, no));
        file(db, no, seq, &movement)?;
        fresh.add(seq, &movement, balance_after, at);
    }
    match one {
        Some((_, no)) => fresh.write(db, no),
        None => Ok(()),
    }
}

fn number(db: &Connection, account: &str) -> Result<i64, StoreError> {
    let found = db.prepare_cached(NUMBER)?.query_row([account], |row| row.get(0)).optional()?;
    found.ok_or_else(|| StoreError::Corrupt(format!("a ledger of `{account}`, and no such account")))
}

/// What a row says. Its run and its node are those that the key names.
fn brought(row: &Row) -> Result<(&str, u64, Movement, i64, Timestamp), StoreError> {
    let wrong = || StoreError::Corrupt("a row of a ledger is not what was written there".to_owned());
    let [
        Value::Text(account),
        Value::Number(seq),
        _,
        Value::Number(amount),
        Value::Text(key),
        Value::Number(held),
        Value::Number(borne_by_platform),
        _,
        _,
        Value::Number(balance_after),
        Value::Number(at),
    ] = row.as_slice()
    else {
        return Err(wrong());
    };
    let kind = Kind::of_key(key).ok_or_else(wrong)?;
    let (key, held, borne_by_platform) = (key.clone(), *held, *borne_by_platform);
    let movement = Movement { kind, amount: *amount, key, held, borne_by_platform };
    Ok((account, seq.cast_unsigned(), movement, *balance_after, Timestamp(*at)))
}

#[cfg(test)]
pub(super) const PAGES: [&str; 2] = [FIRST, NEXT];

#[cfg(test)]
mod tests {
    use super::super::super::schema;
    use super::*;

    fn row(account: &str, seq: i64, key: &str) -> Row {
        let kind = Kind::of_key(key).unwrap();
        let movement = Movement { kind, amount: -seq, key: key.to_owned(), held: seq, borne_by_platform: 0 };
        let posting = Posting::of(account.to_owned(), movement);
        carried(LedgerRow { seq: seq.cast_unsigned(), posting, balance_after: 7, at: Timestamp(seq) })
    }

    #[test]
    fn a_ledger_of_many_pages_comes_back_and_knows_what_is_closed() {
        let mut db = Connection::open_in_memory().unwrap();
        schema::migrate(&mut db).unwrap();
        let accounts = ["a", "b"];
        for account in accounts {
            let sql = "INSERT INTO accounts (id, name, balance, held, revision, created_at) VALUES (?1, '', 0, 0, 0, 0)";
            db.execute(sql, [account]).unwrap();
        }
        let n = 3 * PAGE_ROWS as i64 / 4;
        let of = |account: &'static str| {
            let run = uuid::Uuid::from_u128(7).simple();
            let charges = (1..=n).map(move |seq| row(account, seq, &format!("charge:run_{run}/n/{seq}")));
            let end = n + 1;
            charges.chain([row(account, end, &format!("settle:run_{run}/n/1"))])
        };
        let rows: Vec<Row> = accounts.into_iter().flat_map(of).collect();
        rows.chunks(1_000).for_each(|rows| put(&db, rows).unwrap());
        let (mut found, mut next, mut n_pages) = (Vec::new(), None, 0);
        loop {
            let read = page(&db, next.as_ref()).unwrap();
            assert!(read.rows.len() <= PAGE_ROWS);
            found.extend(read.rows);
            (next, n_pages) = (read.next, n_pages + 1);
            if next.is_none() {
                break;
            }
        }
        assert!(found == rows && n_pages > 1, "{n_pages}");
        let count: i64 = db.query_row(COUNT, [], |row| row.get(0)).unwrap();
        assert_eq!(count, 2 * (n + 1));
        let sql = "SELECT count(*), min(closed_by) FROM ledger_keys WHERE closed_by IS NOT NULL";
        let closed: (i64, i64) = db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(closed, (2, n + 1));
        let stranger = put(&db, &[row("c", 1, "deposit:x")]).unwrap_err();
        assert!(stranger.to_string().contains("no such account"), "{stranger}");
    }
}
