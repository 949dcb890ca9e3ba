//! Accounts and their ledger, and the one rule by which all stores post to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_engine::id::RunId;
use windlass_engine::money::{Account, Book, Kind, LedgerFault, Movement, Posted, Price};
use windlass_engine::path::NodePath;
use windlass_engine::time::Timestamp;

use crate::error::{Refusal, StoreError};

/// An account and what it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRow {
    pub id: String,
    pub name: String,
    pub balance: i64,
    pub held: i64,
    /// Movements so far.
    pub revision: u64,
    pub created_at: Timestamp,
}

/// One movement to be made, with where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posting {
    pub account: String,
    pub movement: Movement,
    pub run: Option<RunId>,
    pub node: Option<NodePath>,
}

/// One movement that was made. Never changed, never deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRow {
    /// From 1, without gaps within the account.
    pub seq: u64,
    pub posting: Posting,
    pub balance_after: i64,
    pub at: Timestamp,
}

/// Which rows of a ledger are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerQuery {
    pub account: String,
    pub run: Option<RunId>,
    /// The one movement with this key.
    pub key: Option<String>,
    pub order: LedgerOrder,
    /// Rows past this one, in the order that is asked for; 0 = from the beginning.
    pub after: u64,
    /// 0 = the default of a page; never more than a page.
    pub limit: usize,
}

/// How a ledger is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LedgerOrder {
    #[default]
    Oldest,
    Newest,
}

/// A run with calls that wait for money, and what its account must have before any of them can go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InNeed {
    pub run: RunId,
    pub needs: i64,
}

/// What a service asks, as somebody set it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PriceRow {
    pub service: String,
    pub price: Price,
    pub updated_at: Timestamp,
}

/// The keys of all rows that decide whether a movement can be made.
pub fn related_keys(movement: &Movement) -> Vec<String> {
    match movement.kind {
        Kind::Deposit | Kind::Charge => vec![movement.key.clone()],
        Kind::Settle | Kind::Refund => {
            let subject = movement.key.split_once(':').map_or(movement.key.as_str(), |(_, subject)| subject);
            let of = |kind: Kind| format!("{}:{subject}", kind.word());
            let mut keys = vec![of(Kind::Charge), of(Kind::Settle), of(Kind::Refund)];
            if !keys.contains(&movement.key) {
                keys.push(movement.key.clone());
            }
            keys
        }
    }
}

/// What comes of making `postings`, in order, on the account `row`: the account afterwards, and those that are new with
/// the balance after each. `known` are the rows among all [`related_keys`].
///
/// Movements that were made before are no news. If any charge cannot be borne, none of it is done, and the refusal
/// names every charge that did not fit, and what the account would have to have for all of them.
pub fn post(
    row: &AccountRow,
    known: BTreeMap<String, Movement>,
    postings: &[&Posting],
) -> Result<(Account, Vec<(Posting, i64)>), StoreError> {
    // The rules look at the movements that matter and at nothing else of the ledger.
    let mut book = Book::of(Account { balance: row.balance, held: row.held }, known);
    let (mut fresh, mut keys) = (Vec::with_capacity(postings.len()), Vec::new());
    // What all of them together take, and the most that this is on the way: money that comes back later helps nobody.
    let (mut taken, mut needed) = (0i64, 0i64);
    for posting in postings {
        let posted = book.post(posting.movement.clone());
        if posted != Ok(Posted::Already) {
            taken = taken.saturating_sub(posting.movement.amount);
            needed = needed.max(taken);
        }
        match posted {
            Ok(Posted::New { balance_after }) => fresh.push(((*posting).clone(), balance_after)),
            Ok(Posted::Already) => {}
            Err(LedgerFault::Insufficient { .. }) => keys.push(posting.movement.key.clone()),
            // The charge that this closes did not fit either: that is the reason, and it is listed already.
            Err(LedgerFault::NoCharge { .. }) if !keys.is_empty() => {}
            Err(fault) => return Err(Refusal::Ledger(fault).into()),
        }
    }
    if !keys.is_empty() {
        let (balance, revision) = (row.balance, row.revision);
        return Err(Refusal::Short { account: row.id.clone(), needed, balance, keys, revision }.into());
    }
    Ok((book.account(), fresh))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(balance: i64) -> AccountRow {
        AccountRow {
            id: "a".to_owned(),
            name: String::new(),
            balance,
            held: 0,
            revision: 3,
            created_at: Timestamp(0),
        }
    }

    fn posted(
        row: &AccountRow,
        known: BTreeMap<String, Movement>,
        movements: impl IntoIterator<Item = Movement>,
    ) -> Result<(Account, Vec<i64>), StoreError> {
        let posting = |movement| Posting { account: "a".to_owned(), movement, run: None, node: None };
        let postings: Vec<Posting> = movements.into_iter().map(posting).collect();
        let (account, fresh) = post(row, known, &postings.iter().collect::<Vec<_>>())?;
        Ok((account, fresh.iter().map(|(_, after)| *after).collect()))
    }

    #[test]
    fn every_charge_that_does_not_fit_is_named() {
        let charge = |key: &str, amount| Movement::charge(format!("charge:{key}"), amount);
        let movements = [charge("x", 60), charge("y", 50), charge("z", 40), charge("w", 1)];
        let refused = posted(&row(100), BTreeMap::new(), movements).unwrap_err();
        let expected = Refusal::Short {
            account: "a".to_owned(),
            needed: 151,
            balance: 100,
            keys: vec!["charge:y".to_owned(), "charge:w".to_owned()],
            revision: 3,
        };
        assert_eq!(refused.refusal(), Some(&expected));
    }

    #[test]
    fn what_would_be_enough_is_told() {
        let charge = |key: &str, amount| Movement::charge(format!("charge:{key}"), amount);
        let earlier = charge("e", 30);
        let known = || BTreeMap::from([(earlier.key.clone(), earlier.clone())]);
        let movements =
            || [charge("x", 80), charge("y", 50), Movement::refund("charge:e", 30), charge("z", 10)];
        let refused = posted(&AccountRow { held: 30, ..row(100) }, known(), movements()).unwrap_err();
        let Some(Refusal::Short { needed, balance, .. }) = refused.refusal() else { panic!("{refused}") };
        assert_eq!((*needed, *balance), (130, 100));
        assert!(refused.to_string().contains("130 needed, 100 there; deposit at least 30"), "{refused}");
        assert!(posted(&AccountRow { held: 30, ..row(129) }, known(), movements()).is_err());
        assert!(posted(&AccountRow { held: 30, ..row(130) }, known(), movements()).is_ok());
    }

    #[test]
    fn a_charge_and_its_refund_fit_in_one_commit() {
        let charge = Movement::charge("charge:x".to_owned(), 60);
        let refund = Movement::refund("charge:x", 60);
        let (account, balances) = posted(&row(100), BTreeMap::new(), [charge, refund]).unwrap();
        assert_eq!((account, balances), (Account { balance: 100, held: 0 }, vec![40, 100]));
    }

    #[test]
    fn known_rows_decide() {
        let charge = Movement::charge("charge:x".to_owned(), 60);
        let known = BTreeMap::from([(charge.key.clone(), charge.clone())]);
        let held = AccountRow { held: 60, ..row(40) };
        let settle = Movement::settle("charge:x", 60, 20);
        let (account, balances) = posted(&held, known.clone(), [charge, settle]).unwrap();
        assert_eq!((account, balances), (Account { balance: 80, held: 0 }, vec![80]));
        assert!(posted(&held, BTreeMap::new(), [Movement::refund("charge:x", 60)]).is_err());
        assert_eq!(related_keys(&Movement::settle("charge:x", 60, 20)), ["charge:x", "settle:x", "refund:x"]);
    }
}
