//! What happens to an account: every movement once, in the commit of the transition that caused it.
//!
//! A charge takes the estimate. It is closed by one settlement (gives back what was not used; what was used beyond
//! the estimate is borne by the platform) or one refund (gives back everything), never by both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Charge,
    Settle,
    Refund,
    Deposit,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Charge => "charge",
            Kind::Settle => "settle",
            Kind::Refund => "refund",
            Kind::Deposit => "deposit",
        }
    }

    /// The kind that a key begins with.
    pub fn of_key(key: &str) -> Option<Kind> {
        let (word, _) = key.split_once(':')?;
        [Kind::Charge, Kind::Settle, Kind::Refund, Kind::Deposit].into_iter().find(|kind| kind.word() == word)
    }
}

/// One row of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Movement {
    pub kind: Kind,
    /// What it does to the balance: charge −estimate, settle +(estimate − actual) or 0, refund +estimate.
    pub amount: i64,
    /// Unique: the same movement is never made twice.
    pub key: String,
    /// What it does to what is held for open charges.
    pub held: i64,
    /// What the platform pays because the call cost more than its estimate.
    #[serde(default)]
    pub borne_by_platform: i64,
}

/// How a charge ends when its call is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// What goes back to the account; never negative.
    pub amount: i64,
    /// What the call cost beyond its estimate.
    pub borne_by_platform: i64,
}

/// Compares what was charged with what it cost.
pub fn settle(estimate: i64, actual: i64) -> Settlement {
    let difference = estimate.saturating_sub(actual.max(0));
    Settlement {
        amount: difference.clamp(0, estimate.max(0)),
        borne_by_platform: difference.saturating_neg().max(0),
    }
}

impl Movement {
    /// Takes the estimate; `key` is one of a charge.
    pub fn charge(key: String, estimate: i64) -> Self {
        let amount = estimate.saturating_neg();
        Self { kind: Kind::Charge, amount, key, held: estimate, borne_by_platform: 0 }
    }

    /// Closes a charge whose call is done.
    pub fn settle(charge_key: &str, estimate: i64, actual: i64) -> Self {
        let Settlement { amount, borne_by_platform } = settle(estimate, actual);
        let key = closing_key(Kind::Settle, charge_key);
        Self { kind: Kind::Settle, amount, key, held: estimate.saturating_neg(), borne_by_platform }
    }

    /// Closes a charge whose call failed or was cancelled.
    pub fn refund(charge_key: &str, estimate: i64) -> Self {
        let key = closing_key(Kind::Refund, charge_key);
        let held = estimate.saturating_neg();
        Self { kind: Kind::Refund, amount: estimate, key, held, borne_by_platform: 0 }
    }

    /// Puts money in; `id` names the payment.
    pub fn deposit(id: &str, amount: i64) -> Self {
        let key = format!("{}:{id}", Kind::Deposit.word());
        Self { kind: Kind::Deposit, amount, key, held: 0, borne_by_platform: 0 }
    }

    /// The call or payment it is about: the key without its kind. A charge and what closes it have it in common.
    pub fn subject(&self) -> &str {
        subject(&self.key)
    }
}

fn closing_key(kind: Kind, charge_key: &str) -> String {
    format!("{}:{}", kind.word(), subject(charge_key))
}

fn subject(key: &str) -> &str {
    key.split_once(':').map_or(key, |(_, subject)| subject)
}

/// Why a movement was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerFault {
    /// The node fails with this, or waits for a deposit.
    #[error("insufficient balance: {needed} needed, {balance} there")]
    Insufficient { balance: i64, needed: i64 },
    /// A mistake of the caller: the first movement stands.
    #[error("`{key}` was already made with another amount")]
    Different { key: String },
    #[error("`{key}` closes a charge that was never made")]
    NoCharge { key: String },
    #[error("`{key}` closes a charge that was already closed by a {by}")]
    Closed { key: String, by: &'static str },
    #[error("`{key}` is no {kind}: {reason}")]
    Malformed { key: String, kind: &'static str, reason: &'static str },
    #[error("`{key}` would take the balance past what can be counted")]
    Overflow { key: String },
}

/// What an account has, and what of it open charges have taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Account {
    pub balance: i64,
    /// Estimates of open charges; already taken from the balance, and given back as far as they are not used.
    pub held: i64,
}

impl Account {
    /// The account after `movements`, in order; refused as a whole if any of them would overdraw it.
    pub fn check(self, movements: &[Movement]) -> Result<Account, LedgerFault> {
        movements.iter().try_fold(self, Account::after)
    }

    fn after(self, movement: &Movement) -> Result<Account, LedgerFault> {
        let overflow = || LedgerFault::Overflow { key: movement.key.clone() };
        let balance = self.balance.checked_add(movement.amount).ok_or_else(overflow)?;
        let held = self.held.checked_add(movement.held).ok_or_else(overflow)?;
        // A credit is taken even by an account that is in debt for reasons of its own.
        if balance < 0 && movement.amount < 0 {
            let needed = movement.amount.saturating_neg();
            return Err(LedgerFault::Insufficient { balance: self.balance, needed });
        }
        if held < 0 {
            return Err(LedgerFault::NoCharge { key: movement.key.clone() });
        }
        // Whatever open charges hold has room to come back, so that no call is kept from ending.
        if movement.kind == Kind::Deposit && balance.checked_add(held).is_none() {
            return Err(overflow());
        }
        Ok(Account { balance, held })
    }

    /// What making a movement leads to, where `made` finds those that were made before: each is made once.
    pub fn post<'m>(
        self,
        movement: &Movement,
        made: impl Fn(Kind, &str) -> Option<&'m Movement>,
    ) -> Result<(Account, Posted), LedgerFault> {
        match made(movement.kind, movement.subject()) {
            Some(before) if before == movement => return Ok((self, Posted::Already)),
            Some(_) => return Err(LedgerFault::Different { key: movement.key.clone() }),
            None => {}
        }
        admit(movement, made)?;
        let account = self.after(movement)?;
        Ok((account, Posted::New { balance_after: account.balance }))
    }
}

/// Whether a movement is well formed, and closes, if it closes something, an open charge by its right amount.
fn admit<'m>(
    movement: &Movement,
    made: impl Fn(Kind, &str) -> Option<&'m Movement>,
) -> Result<(), LedgerFault> {
    let kind = movement.kind.word();
    let malformed = |reason| Err(LedgerFault::Malformed { key: movement.key.clone(), kind, reason });
    if movement.key.strip_prefix(kind).and_then(|rest| rest.strip_prefix(':')).is_none() {
        return malformed("the key of a movement starts with its kind");
    }
    match movement.kind {
        Kind::Charge if movement.held < 0 || movement.amount != -movement.held => {
            malformed("a charge takes what it holds, at least 0")
        }
        Kind::Deposit if movement.amount <= 0 || movement.held != 0 => {
            malformed("a deposit adds at least 1 and holds nothing")
        }
        Kind::Charge | Kind::Deposit => Ok(()),
        Kind::Settle | Kind::Refund => {
            let estimate = open_charge(movement, made)?;
            let whole = movement.kind == Kind::Refund;
            let least = if whole { estimate } else { 0 };
            if movement.held.checked_neg() != Some(estimate) || !(least..=estimate).contains(&movement.amount)
            {
                return malformed("it gives back more or less than its charge took");
            }
            Ok(())
        }
    }
}

/// What the charge that `movement` closes has taken.
fn open_charge<'m>(
    movement: &Movement,
    made: impl Fn(Kind, &str) -> Option<&'m Movement>,
) -> Result<i64, LedgerFault> {
    let key = || movement.key.clone();
    for kind in [Kind::Settle, Kind::Refund] {
        if made(kind, movement.subject()).is_some() {
            return Err(LedgerFault::Closed { key: key(), by: kind.word() });
        }
    }
    let charge = made(Kind::Charge, movement.subject());
    charge.map(|charge| charge.held).ok_or_else(|| LedgerFault::NoCharge { key: key() })
}

/// What posting a movement did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    New {
        balance_after: i64,
    },
    /// The very same movement was made before; nothing changed.
    Already,
}

/// An account with all its movements: what the stores do with rows, as a value. The stores are held to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Book {
    account: Account,
    movements: BTreeMap<String, Movement>,
}

impl Book {
    pub fn account(&self) -> Account {
        self.account
    }

    pub fn movements(&self) -> impl Iterator<Item = &Movement> {
        self.movements.values()
    }

    /// Makes a movement, once.
    pub fn post(&mut self, movement: Movement) -> Result<Posted, LedgerFault> {
        let made = |kind: Kind, subject: &str| self.movements.get(&format!("{}:{subject}", kind.word()));
        let (account, posted) = self.account.post(&movement, made)?;
        self.account = account;
        if posted != Posted::Already {
            self.movements.insert(movement.key.clone(), movement);
        }
        Ok(posted)
    }

    /// Whether the account is what its movements add up to.
    pub fn is_balanced(&self) -> bool {
        let sum = |of: fn(&Movement) -> i64| self.movements.values().map(|m| i128::from(of(m))).sum::<i128>();
        sum(|m| m.amount) == i128::from(self.account.balance)
            && sum(|m| m.held) == i128::from(self.account.held)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::id::RunId;
    use crate::money::charge_key;

    fn key(n: u64) -> String {
        charge_key(RunId::new(Uuid::from_u128(1)), "tts/3", n)
    }

    fn book(balance: i64) -> Book {
        let mut book = Book::default();
        book.post(Movement::deposit("first", balance)).unwrap();
        book
    }

    #[test]
    fn what_was_not_used_comes_back_and_the_platform_bears_the_rest() {
        assert_eq!(settle(100, 60), Settlement { amount: 40, borne_by_platform: 0 });
        assert_eq!(settle(100, 130), Settlement { amount: 0, borne_by_platform: 30 });
        assert_eq!(settle(100, 100), Settlement { amount: 0, borne_by_platform: 0 });
        assert_eq!(settle(100, i64::MIN), Settlement { amount: 100, borne_by_platform: 0 });
    }

    #[test]
    fn a_charge_is_made_once_and_closed_once() {
        let mut book = book(100);
        let charge = Movement::charge(key(1), 60);
        assert_eq!(book.post(charge.clone()), Ok(Posted::New { balance_after: 40 }));
        assert_eq!(book.post(charge), Ok(Posted::Already));
        assert_eq!(book.account(), Account { balance: 40, held: 60 });
        assert_eq!(book.post(Movement::charge(key(1), 50)), Err(LedgerFault::Different { key: key(1) }));
        let done = Movement::settle(&key(1), 60, 25);
        assert_eq!(book.post(done.clone()), Ok(Posted::New { balance_after: 75 }));
        assert_eq!(book.post(done), Ok(Posted::Already));
        let refund = book.post(Movement::refund(&key(1), 60));
        assert!(matches!(refund, Err(LedgerFault::Closed { by: "settle", .. })), "{refund:?}");
        assert_eq!(book.account(), Account { balance: 75, held: 0 });
    }

    #[test]
    fn nobody_spends_what_is_not_there() {
        let mut book = book(100);
        book.post(Movement::charge(key(1), 60)).unwrap();
        let short = LedgerFault::Insufficient { balance: 40, needed: 41 };
        assert_eq!(book.post(Movement::charge(key(2), 41)), Err(short.clone()));
        let both = [Movement::charge(key(1), 60), Movement::charge(key(2), 41)];
        assert_eq!(Account { balance: 100, held: 0 }.check(&both), Err(short));
        assert_eq!(book.post(Movement::charge(key(2), 40)), Ok(Posted::New { balance_after: 0 }));
    }

    #[test]
    fn money_does_not_come_from_nowhere() {
        let mut book = book(100);
        assert!(matches!(book.post(Movement::refund(&key(1), 60)), Err(LedgerFault::NoCharge { .. })));
        book.post(Movement::charge(key(1), 60)).unwrap();
        for bad in [
            Movement::refund(&key(1), 61),
            Movement::settle(&key(1), 61, 0),
            Movement { amount: 61, ..Movement::settle(&key(1), 60, 0) },
            Movement { amount: 30, ..Movement::refund(&key(1), 60) },
            Movement::charge(key(2), -5),
            Movement::charge(key(2), i64::MIN),
            Movement::deposit("x", -5),
            Movement { key: "charge:x".to_owned(), ..Movement::deposit("x", 5) },
        ] {
            let refused = book.post(bad.clone());
            assert!(matches!(refused, Err(LedgerFault::Malformed { .. })), "{bad:?} {refused:?}");
        }
        let flood = Movement::deposit("flood", i64::MAX);
        assert!(matches!(book.post(flood), Err(LedgerFault::Overflow { .. })));
        assert!(book.is_balanced());
    }

    #[test]
    fn what_is_held_always_has_room_to_come_back() {
        let mut book = book(100);
        book.post(Movement::charge(key(1), 60)).unwrap();
        let flood = Movement::deposit("flood", i64::MAX - 99);
        assert!(matches!(book.post(flood), Err(LedgerFault::Overflow { .. })));
        book.post(Movement::deposit("just so much", i64::MAX - 100)).unwrap();
        assert_eq!(book.post(Movement::refund(&key(1), 60)), Ok(Posted::New { balance_after: i64::MAX }));
    }

    fn movement() -> impl Strategy<Value = Movement> {
        let (call, estimate) = (0u64..6, 0i64..80);
        prop_oneof![
            (call.clone(), estimate.clone()).prop_map(|(n, e)| Movement::charge(key(n), e)),
            (call.clone(), estimate.clone(), 0i64..120).prop_map(|(n, e, a)| Movement::settle(&key(n), e, a)),
            (call, estimate).prop_map(|(n, e)| Movement::refund(&key(n), e)),
            (0u8..4, -5i64..200).prop_map(|(n, amount)| Movement::deposit(&n.to_string(), amount)),
            (any::<i64>(), any::<i64>(), 0u64..6).prop_map(|(amount, held, n)| Movement {
                amount,
                held,
                ..Movement::settle(&key(n), 0, 0)
            }),
        ]
    }

    proptest! {
        #[test]
        fn the_balance_is_the_sum_and_every_charge_is_closed_at_most_once(
            // Few different estimates, so that closings often fit their charge.
            movements in prop::collection::vec(movement(), 0..150),
        ) {
            let mut book = Book::default();
            for mut movement in movements {
                if matches!(movement.kind, Kind::Charge | Kind::Settle | Kind::Refund) && movement.held.unsigned_abs() < 80 {
                    let estimate = (movement.held % 2).abs() * 20 + 20;
                    movement = match movement.kind {
                        Kind::Charge => Movement::charge(movement.key, estimate),
                        Kind::Settle => Movement::settle(&movement.key, estimate, movement.amount),
                        Kind::Refund | Kind::Deposit => Movement::refund(&movement.key, estimate),
                    };
                }
                let before = book.clone();
                match book.post(movement.clone()) {
                    Ok(Posted::New { balance_after }) => prop_assert_eq!(balance_after, book.account().balance),
                    Ok(Posted::Already) | Err(_) => prop_assert_eq!(&book, &before),
                }
                if let Ok(Posted::New { .. }) = before.clone().post(movement.clone()) {
                    prop_assert_eq!(book.post(movement), Ok(Posted::Already));
                }
                prop_assert!(book.is_balanced());
                prop_assert!(book.account().balance >= 0 && book.account().held >= 0);
            }
            for charge in book.movements().filter(|m| m.kind == Kind::Charge) {
                let closings = book.movements().filter(|m| m.kind != Kind::Charge && m.subject() == charge.subject());
                prop_assert!(closings.count() <= 1);
            }
        }
    }
}
