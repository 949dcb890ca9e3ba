use windlass_engine::money::charge_key;

use super::*;
use crate::sqlite::book::Book;
use crate::sqlite::schema;
use crate::sqlite::slip::Slip;

const ACCOUNTS: [&str; 3] = ["busy", "quiet", "once"];
const AT: Timestamp = Timestamp(3);

fn run(n: u128) -> RunId {
    RunId::new(uuid::Uuid::from_u128(n))
}

fn charge(nth: u64) -> Movement {
    Movement::charge(charge_key(run(u128::from(nth % 7)), "a", nth), 2)
}

/// Ledgers of which some sheets are in the index and some are not: most charges are closed a while after they were
/// made, and some never. With all movements, as they were made.
fn ledgers() -> (Connection, Vec<LedgerRow>) {
    let mut db = Connection::open_in_memory().unwrap();
    schema::migrate(&mut db).unwrap();
    for account in ACCOUNTS {
        let open = "INSERT INTO accounts (id, name, balance, held, revision, created_at) VALUES (?1, '', 0, 0, 0, 0)";
        db.execute(open, [account]).unwrap();
    }
    let (mut book, mut made) = (Book::read(&db).unwrap(), Vec::<LedgerRow>::new());
    let mut enter = |book: &mut Book, account: &str, movement: Movement| {
        let seq = 1 + made.iter().filter(|row| row.posting.account == account).count() as u64;
        let posting = Posting { account: account.to_owned(), movement };
        let row = LedgerRow { seq, posting: posting.clone(), balance_after: 5, at: AT };
        let no = number(&db, account).unwrap().unwrap();
        book.enter(&db, (no, seq), (&Slip::of(posting), 5), AT).unwrap();
        made.push(row);
    };
    for nth in 0..3_000 {
        let account = |nth: u64| if nth.is_multiple_of(100) { "quiet" } else { "busy" };
        enter(&mut book, account(nth), charge(nth));
        if let Some(old) = nth.checked_sub(50).filter(|old| !old.is_multiple_of(11)) {
            enter(&mut book, account(old), Movement::settle(&charge(old).key, 2, 1));
        }
        if nth == 1_500 {
            enter(&mut book, "once", Movement::deposit("it", 1));
        }
        // Transactions of different lengths; once in a while the writer knows nothing.
        if nth.is_multiple_of(13) || nth.is_multiple_of(17) {
            book.write(&db).unwrap();
        }
        if nth.is_multiple_of(901) {
            book.write(&db).unwrap();
            book = Book::read(&db).unwrap();
        }
    }
    // One that was made long ago is closed now.
    enter(&mut book, "busy", Movement::refund(&charge(11).key, 2));
    book.write(&db).unwrap();
    let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert!(count("SELECT count(*) FROM ledger_sheets WHERE no <= (SELECT sheet FROM ledger_indexed)") > 60);
    assert!(count("SELECT count(*) FROM ledger_sheets WHERE no > (SELECT sheet FROM ledger_indexed)") > 30);
    (db, made)
}

/// All that a query finds, page by page.
fn read(db: &Connection, mut query: LedgerQuery) -> Vec<LedgerRow> {
    let mut rows = Vec::new();
    loop {
        let page = ledger(db, &query).unwrap();
        assert!(page.len() <= query.limit);
        let Some(last) = page.last() else { return rows };
        query.after = last.seq;
        rows.extend(page);
    }
}

#[test]
fn a_ledger_is_read_whole_in_either_order_by_pages_of_any_size() {
    let (db, made) = ledgers();
    for account in ACCOUNTS {
        let is_asked = |row: &&LedgerRow, run: Option<RunId>| {
            row.posting.account == account && (run.is_none() || row.posting.run() == run)
        };
        for of in [None, Some(run(1)), Some(run(8))] {
            let mut expected: Vec<_> = made.iter().filter(|row| is_asked(row, of)).cloned().collect();
            for order in [LineOrder::Oldest, LineOrder::Newest] {
                for limit in [7, 33, 1_000] {
                    let query = LedgerQuery {
                        account: account.to_owned(),
                        run: of,
                        order,
                        limit,
                        ..Default::default()
                    };
                    assert_eq!(read(&db, query), expected, "{account} {of:?} {order:?} {limit}");
                }
                expected.reverse();
            }
        }
    }
}

#[test]
fn every_movement_is_found_by_its_key_and_only_there() {
    let (db, made) = ledgers();
    for row in made.iter().step_by(31).chain(made.iter().rev().take(3)) {
        let Posting { account, movement } = &row.posting;
        let query = |account: &str| {
            let key = Some(movement.key.clone());
            ledger(&db, &LedgerQuery { account: account.to_owned(), key, ..Default::default() }).unwrap()
        };
        assert_eq!(query(account), std::slice::from_ref(row));
        assert_eq!(query("once").len(), usize::from(account == "once"));
    }
    let never = Some(Movement::settle(&charge(22).key, 2, 1).key);
    let query = LedgerQuery { account: "busy".to_owned(), key: never, ..Default::default() };
    assert_eq!(ledger(&db, &query).unwrap(), []);
}

#[test]
fn each_row_of_the_index_names_few_sheets_and_each_sheet_has_few_movements() {
    let (db, made) = ledgers();
    let numbers = |sql: &str| {
        let mut statement = db.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, u32>(0)).unwrap();
        rows.collect::<rusqlite::Result<Vec<_>>>().unwrap()
    };
    let sheets = numbers("SELECT json_array_length(movements) FROM ledger_sheets");
    assert_eq!(sheets.iter().sum::<u32>() as usize, made.len());
    assert!(sheets.iter().all(|len| (1..=32).contains(len)));
    let entries = numbers("SELECT json_array_length(sheets) FROM ledger_index");
    assert!(entries.iter().all(|len| (1..=64).contains(len)));
}
