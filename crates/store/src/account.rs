//! Accounts and their ledger, and the one rule by which all stores post to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_engine::counter::{Revision, Seq};
use windlass_engine::id::RunId;
use windlass_engine::money::{
    Account, Amount, LedgerFault, Movement, MovementKind, Posted, Price, place_of_key,
};
use windlass_engine::path::NodePath;
use windlass_engine::time::Timestamp;

use crate::error::{Refusal, StoreError};
use crate::page::LineOrder;

/// An account and its balance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRow {
    pub id: String,
    pub name: String,
    pub balance: Amount,
    pub held: Amount,
    /// Movements so far.
    pub revision: Revision,
    pub created_at: Timestamp,
}

impl AccountRow {
    /// The position of the last row of its ledger: every movement is a row and a revision.
    pub fn ledger_len(&self) -> Seq {
        Seq(self.revision.0)
    }
}

/// One movement to be made. Where it comes from is said by its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posting {
    pub account: String,
    pub movement: Movement,
}

impl Posting {
    /// The run that it is of, if it is of one.
    pub fn run(&self) -> Option<RunId> {
        place_of_key(&self.movement.key).map(|(run, _)| run)
    }

    /// The node of that run.
    pub fn node(&self) -> Option<NodePath> {
        let (_, place) = place_of_key(&self.movement.key)?;
        let (node, _) = place.rsplit_once('/')?;
        Some(NodePath::from(node))
    }
}

/// One movement that was made. Never changed, never deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRow {
    /// From 1, without gaps within the account.
    pub seq: Seq,
    pub posting: Posting,
    pub balance_after: Amount,
    pub at: Timestamp,
}

/// Which rows of a ledger are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerQuery {
    pub account: String,
    pub run: Option<RunId>,
    /// The one movement with this key.
    pub key: Option<String>,
    pub order: LineOrder,
    /// Rows past this one, in the order that is asked for; 0 = from the beginning.
    pub after: Seq,
    /// 0 = the default of a page; never more than a page.
    pub limit: usize,
}

/// A run with calls that wait for money, and the balance that its account needs before any of them can go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BalanceWaiter {
    pub run: RunId,
    pub needs: Amount,
}

/// The price of a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PriceRow {
    pub service: String,
    pub price: Price,
    pub updated_at: Timestamp,
}

/// The keys of all rows that decide whether a movement can be made.
pub fn related_keys(movement: &Movement) -> Vec<String> {
    match movement.kind {
        MovementKind::Deposit | MovementKind::Charge => vec![movement.key.clone()],
        MovementKind::Settle | MovementKind::Refund => {
            let subject = movement.key.split_once(':').map_or(movement.key.as_str(), |(_, subject)| subject);
            let of = |kind: MovementKind| format!("{}:{subject}", kind.word());
            let mut keys = vec![of(MovementKind::Charge), of(MovementKind::Settle), of(MovementKind::Refund)];
            if !keys.contains(&movement.key) {
                keys.push(movement.key.clone());
            }
            keys
        }
    }
}

/// Postings that are new, each with the balance after it.
pub type FreshPostings<'p> = Vec<(&'p Posting, Amount)>;

/// The effect of `postings`, in order, on the account `row`: the account afterwards, and the new postings with
/// the balance after each. `known` are the rows among all [`related_keys`].
///
/// Movements that were made before are a no-op. If any charge cannot be borne, none of it is done, and the refusal
/// names every charge that did not fit, and the balance that all of them need.
pub fn post<'p>(
    row: &AccountRow,
    known: &[Movement],
    postings: &[&'p Posting],
) -> Result<(Account, FreshPostings<'p>), StoreError> {
    // The rules look at the movements that matter and at nothing else of the ledger.
    let filed = |movement| (Movement::subject(movement), movement.kind);
    let mut made: BTreeMap<(&str, MovementKind), &Movement> =
        known.iter().map(|one| (filed(one), one)).collect();
    let mut account = Account { balance: row.balance, held: row.held };
    let (mut fresh, mut keys) = (Vec::with_capacity(postings.len()), Vec::new());
    // The sum of all postings, and its maximum on the way: money that comes back later pays for nothing before.
    let (mut taken, mut needed) = (Amount::ZERO, Amount::ZERO);
    for posting in postings {
        let movement = &posting.movement;
        let posted = account.post(movement, |kind, subject| made.get(&(subject, kind)).copied());
        if !matches!(posted, Ok((_, Posted::Already))) {
            taken = taken.saturating_sub(movement.amount);
            needed = needed.max(taken);
        }
        match posted {
            Ok((after, Posted::New { balance_after })) => {
                account = after;
                made.insert(filed(movement), movement);
                fresh.push((*posting, balance_after));
            }
            Ok((_, Posted::Already)) => {}
            Err(LedgerFault::Insufficient { .. }) => keys.push(movement.key.clone()),
            // The charge that this closes did not fit either: that is the reason, and it is listed already.
            Err(LedgerFault::NoCharge { .. }) if !keys.is_empty() => {}
            Err(fault) => return Err(Refusal::Ledger(fault).into()),
        }
    }
    if !keys.is_empty() {
        let (balance, revision) = (row.balance, row.revision);
        return Err(
            Refusal::InsufficientFunds { account: row.id.clone(), needed, balance, keys, revision }.into()
        );
    }
    Ok((account, fresh))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(balance: i64) -> AccountRow {
        AccountRow {
            id: "a".to_owned(),
            name: String::new(),
            balance: Amount(balance),
            held: Amount::ZERO,
            revision: Revision(3),
            created_at: Timestamp(0),
        }
    }

    fn posted(
        row: &AccountRow,
        known: &[Movement],
        movements: impl IntoIterator<Item = Movement>,
    ) -> Result<(Account, Vec<i64>), StoreError> {
        let posting = |movement| Posting { account: "a".to_owned(), movement };
        let postings: Vec<Posting> = movements.into_iter().map(posting).collect();
        let (account, fresh) = post(row, known, &postings.iter().collect::<Vec<_>>())?;
        Ok((account, fresh.iter().map(|(_, after)| after.0).collect()))
    }

    #[test]
    fn every_charge_that_does_not_fit_is_named() {
        let charge = |key: &str, amount| Movement::charge(format!("charge:{key}"), amount);
        let movements = [
            charge("x", Amount(60)),
            charge("y", Amount(50)),
            charge("z", Amount(40)),
            charge("w", Amount(1)),
        ];
        let refused = posted(&row(100), &[], movements).unwrap_err();
        let expected = Refusal::InsufficientFunds {
            account: "a".to_owned(),
            needed: Amount(151),
            balance: Amount(100),
            keys: vec!["charge:y".to_owned(), "charge:w".to_owned()],
            revision: Revision(3),
        };
        assert_eq!(refused.refusal(), Some(&expected));
    }

    #[test]
    fn a_refusal_names_the_balance_that_would_be_enough() {
        let charge = |key: &str, amount| Movement::charge(format!("charge:{key}"), amount);
        let known = [charge("e", Amount(30))];
        let movements = || {
            [
                charge("x", Amount(80)),
                charge("y", Amount(50)),
                Movement::refund("charge:e", Amount(30)),
                charge("z", Amount(10)),
            ]
        };
        let refused = posted(&AccountRow { held: Amount(30), ..row(100) }, &known, movements()).unwrap_err();
        let Some(Refusal::InsufficientFunds { needed, balance, .. }) = refused.refusal() else {
            panic!("{refused}")
        };
        assert_eq!((needed.0, balance.0), (130, 100));
        assert!(refused.to_string().contains("130 needed, 100 there; deposit at least 30"), "{refused}");
        assert!(posted(&AccountRow { held: Amount(30), ..row(129) }, &known, movements()).is_err());
        assert!(posted(&AccountRow { held: Amount(30), ..row(130) }, &known, movements()).is_ok());
    }

    #[test]
    fn a_charge_and_its_refund_fit_in_one_commit() {
        let charge = Movement::charge("charge:x".to_owned(), Amount(60));
        let refund = Movement::refund("charge:x", Amount(60));
        let (account, balances) = posted(&row(100), &[], [charge, refund]).unwrap();
        assert_eq!(
            (account, balances),
            (Account { balance: Amount(100), held: Amount::ZERO }, vec![40, 100])
        );
    }

    #[test]
    fn a_movement_is_of_the_run_that_its_key_names() {
        let of = |movement| Posting { account: "a".to_owned(), movement };
        let key = "charge:run_00000000000000000000000000000001/tts/3/2".to_owned();
        let charge = of(Movement::charge(key, Amount(5)));
        assert_eq!(charge.run(), Some(RunId::new(uuid::Uuid::from_u128(1))));
        assert_eq!(charge.node(), Some(NodePath::from("tts/3")));
        let payment = of(Movement::deposit("run_1/a/1", Amount(5)));
        assert_eq!((payment.run(), payment.node()), (None, None));
    }

    #[test]
    fn known_rows_decide() {
        let charge = Movement::charge("charge:x".to_owned(), Amount(60));
        let known = [charge.clone()];
        let held = AccountRow { held: Amount(60), ..row(40) };
        let settle = Movement::settle("charge:x", Amount(60), Amount(20));
        let (account, balances) = posted(&held, &known, [charge, settle]).unwrap();
        assert_eq!((account, balances), (Account { balance: Amount(80), held: Amount::ZERO }, vec![80]));
        assert!(posted(&held, &[], [Movement::refund("charge:x", Amount(60))]).is_err());
        assert_eq!(
            related_keys(&Movement::settle("charge:x", Amount(60), Amount(20))),
            ["charge:x", "settle:x", "refund:x"]
        );
    }
}
