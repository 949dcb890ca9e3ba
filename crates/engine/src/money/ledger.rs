//! What happens to an account: every movement once, in the commit of the transition that caused it.
//!
//! A charge takes the estimate. It is closed by one settlement (gives back what was not used; what was used beyond
//! the estimate is borne by the platform) or one refund (gives back everything), never by both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::{key_of, parts_of_key};

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
        let (word, _) = parts_of_key(key)?;
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

    /// The charge that this closes, if it has taken so much.
    pub fn closes(&self, estimate: i64) -> Self {
        Self::charge(key_of(Kind::Charge, self.subject()), estimate)
    }

    /// Puts money in; `id` names the payment.
    pub fn deposit(id: &str, amount: i64) -> Self {
        let key = key_of(Kind::Deposit, id);
        Self { kind: Kind::Deposit, amount, key, held: 0, borne_by_platform: 0 }
    }

    /// The call or payment it is about: the key without its kind. A charge and what closes it have it in common.
    pub fn subject(&self) -> &str {
        subject(&self.key)
    }
}

fn closing_key(kind: Kind, charge_key: &str) -> String {
    key_of(kind, subject(charge_key))
}

fn subject(key: &str) -> &str {
    parts_of_key(key).map_or(key, |(_, subject)| subject)
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
mod tests;
