use windlass_engine::money::{LedgerFault, charge_key};

use super::*;
use crate::account::{LedgerQuery, Posting};
use crate::page::LineOrder;
use crate::sqlite::account;
use crate::sqlite::desk::Desk;
use crate::sqlite::{ledger, schema};

const NOW: Timestamp = Timestamp(1);

/// A desk with one account that has 100.
fn desk() -> Desk {
    let mut db = Connection::open_in_memory().unwrap();
    schema::migrate(&mut db).unwrap();
    let desk = Desk::new(db).unwrap();
    account::open(&desk, "a", "", NOW).unwrap();
    post(&desk, Movement::deposit("first", 100)).unwrap();
    desk.purses().write(&desk).unwrap();
    desk
}

fn post(desk: &Desk, movement: Movement) -> Result<(), StoreError> {
    post_of(desk, movement, None)
}

fn slip(movement: Movement) -> Slip {
    Slip::of(Posting { account: "a".to_owned(), movement })
}

fn post_of(desk: &Desk, movement: Movement, new_run: Option<RunId>) -> Result<(), StoreError> {
    for posted in account::check(desk, &[slip(movement)], new_run)? {
        account::write(desk, &posted, NOW)?;
    }
    Ok(())
}

fn charge() -> Movement {
    Movement::charge("charge:x".to_owned(), 60)
}

fn known(desk: &Desk) -> (i64, i64) {
    desk.purses().look(desk, "a", |purse| Ok((purse.row.balance, purse.row.held))).unwrap()
}

fn written(desk: &Desk) -> (i64, i64) {
    let row = desk.query_row("SELECT balance, held FROM accounts", [], |row| Ok((row.get(0)?, row.get(1)?)));
    row.unwrap()
}

#[test]
fn what_an_account_comes_to_is_known_at_once_and_written_at_the_end() {
    let desk = desk();
    post(&desk, charge()).unwrap();
    post(&desk, Movement::settle("charge:x", 60, 20)).unwrap();
    assert_eq!((known(&desk), written(&desk)), ((80, 0), (100, 0)));
    desk.purses().write(&desk).unwrap();
    assert_eq!(written(&desk), (80, 0));
}

#[test]
fn what_came_to_nothing_is_forgotten() {
    let desk = desk();
    desk.execute_batch("BEGIN").unwrap();
    post(&desk, charge()).unwrap();
    desk.execute_batch("ROLLBACK").unwrap();
    desk.forget();
    assert_eq!(known(&desk), (100, 0));
    let refused = post(&desk, Movement::refund("charge:x", 60)).unwrap_err();
    assert!(matches!(refused.refusal(), Some(Refusal::Ledger(LedgerFault::NoCharge { .. }))), "{refused}");
}

#[test]
fn more_than_a_statement_takes_is_filed_whole() {
    let desk = desk();
    let key = |nth: usize| format!("charge:{nth}");
    for nth in 0..21 {
        post(&desk, Movement::charge(key(nth), 1)).unwrap();
    }
    for nth in 0..18 {
        post(&desk, Movement::settle(&key(nth), 1, 1)).unwrap();
    }
    index(&desk);
    // The deposit is filed too.
    assert_eq!(filed(&desk), (22, 18));
    desk.forget();
    for nth in 0..21 {
        let refused = post(&desk, Movement::refund(&key(nth), 1));
        assert_eq!(refused.is_err(), nth < 18, "{nth}");
    }
}

/// Ends a transaction with everything in the index.
fn index(desk: &Desk) {
    desk.purses().write(desk).unwrap();
    desk.purses().book(desk, |book| book.index(desk, 0)).unwrap();
}

/// Rows that are filed, and those that are closed.
fn filed(desk: &Desk) -> (u64, u64) {
    let read = |row: &Row<'_>| {
        let mut columns = Columns::of(row);
        Ok((columns.number()?, columns.number()?))
    };
    desk.query_row("SELECT count(*), count(closed_by) FROM ledger_keys", [], read).unwrap()
}

/// Payments, until many sheets have been put into the index.
fn pay_until_indexed(desk: &Desk) -> u64 {
    let n_payments = 3_000;
    (0..n_payments).for_each(|nth| post(desk, Movement::deposit(&nth.to_string(), 1)).unwrap());
    desk.purses().write(desk).unwrap();
    n_payments
}

#[test]
fn a_charge_that_has_been_open_for_long_is_filed_and_closed_there() {
    for is_known in [true, false] {
        let desk = desk();
        post(&desk, charge()).unwrap();
        desk.purses().write(&desk).unwrap();
        assert_eq!(filed(&desk), (0, 0));
        pay_until_indexed(&desk);
        let (n_filed, n_closed) = filed(&desk);
        assert!((1_900..3_002).contains(&n_filed) && n_closed == 0, "{n_filed} {n_closed}");
        if !is_known {
            desk.forget();
        }
        post(&desk, Movement::settle("charge:x", 60, 60)).unwrap();
        assert_eq!(filed(&desk), (n_filed, 1));
        assert!(post(&desk, Movement::refund("charge:x", 60)).is_err());
    }
}

#[test]
fn a_charge_of_old_is_found_without_the_last_sheets() {
    let desk = desk();
    post(&desk, charge()).unwrap();
    desk.purses().write(&desk).unwrap();
    pay_until_indexed(&desk);
    desk.forget();
    // The writer has read the last sheets once, and does not need them any more.
    post(&desk, Movement::charge("charge:y".to_owned(), 1)).unwrap();
    let sheets = "UPDATE ledger_sheets SET movements = 'lost' WHERE no > (SELECT sheet FROM ledger_indexed)";
    assert!(desk.execute(sheets, []).unwrap() > 30);
    post(&desk, Movement::settle("charge:x", 60, 60)).unwrap();
}

#[test]
fn what_is_open_is_found_whether_or_not_it_is_filed() {
    let run = RunId::new(uuid::Uuid::from_u128(1));
    let key = charge_key(run, "a", 1);
    for is_filed in [false, true] {
        let desk = desk();
        post(&desk, Movement::charge(key.clone(), 10)).unwrap();
        desk.purses().write(&desk).unwrap();
        let n_payments = if is_filed { pay_until_indexed(&desk) } else { 0 };
        assert_eq!(filed(&desk).0 > 0, is_filed);
        let all = LedgerQuery { account: "a".to_owned(), ..LedgerQuery::default() };
        let of_key = LedgerQuery { key: Some(key.clone()), ..all.clone() };
        let of_run = LedgerQuery { run: Some(run), ..all.clone() };
        let newest = LedgerQuery { order: LineOrder::Newest, ..of_run.clone() };
        let past = LedgerQuery { after: 2, ..of_run.clone() };
        let numbers = |query| {
            let rows = ledger::ledger(&desk, query).unwrap();
            rows.iter().map(|row| row.seq).collect::<Vec<_>>()
        };
        for query in [&of_key, &of_run, &newest] {
            assert_eq!(numbers(query), [2], "{query:?}");
        }
        assert_eq!(numbers(&past), [0; 0]);
        post(&desk, Movement::refund(&key, 10)).unwrap();
        desk.purses().write(&desk).unwrap();
        let last = n_payments + 3;
        assert_eq!(
            (numbers(&of_key), numbers(&of_run), numbers(&newest)),
            (vec![2], vec![2, last], vec![last, 2])
        );
    }
}

#[test]
fn a_charge_is_made_and_closed_once_whether_or_not_it_is_known() {
    for is_known in [true, false] {
        let desk = desk();
        post(&desk, charge()).unwrap();
        desk.purses().write(&desk).unwrap();
        if !is_known {
            desk.forget();
        }
        post(&desk, charge()).unwrap();
        assert!(post(&desk, Movement::charge("charge:x".to_owned(), 61)).is_err());
        assert_eq!(known(&desk), (40, 60));
        post(&desk, Movement::settle("charge:x", 60, 60)).unwrap();
        // The very same again is no news; anything else is refused.
        post(&desk, Movement::settle("charge:x", 60, 60)).unwrap();
        let refused = post(&desk, Movement::refund("charge:x", 60)).unwrap_err();
        let closed = matches!(refused.refusal(), Some(Refusal::Ledger(LedgerFault::Closed { .. })));
        assert!(closed, "{refused}");
        assert_eq!(known(&desk), (40, 0));
    }
}

#[test]
fn a_run_is_charged_once_for_each_thing_whether_or_not_it_began_here() {
    let run = RunId::new(uuid::Uuid::from_u128(1));
    let charge = |visit, amount| Movement::charge(charge_key(run, "a", visit), amount);
    for began_here in [true, false] {
        let desk = desk();
        post_of(&desk, charge(1, 10), Some(run).filter(|_| began_here)).unwrap();
        post(&desk, charge(2, 10)).unwrap();
        let asked = || desk.purses().look(&desk, "a", |purse| Ok(!purse.is_new(run, &slip(charge(3, 1)))));
        assert_eq!(asked().unwrap(), !began_here);
        // The very same again is no news; anything else is refused.
        for visit in [1, 2] {
            post(&desk, charge(visit, 10)).unwrap();
            assert!(post(&desk, charge(visit, 11)).is_err());
        }
        assert_eq!(known(&desk), (80, 20));
    }
}
