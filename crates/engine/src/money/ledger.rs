//! The ledger of an account: every movement once, in the commit of the transition that caused it.
//!
//! A charge takes the estimate. It is closed by one settlement (gives back the unused part; the platform bears the cost beyond
//! the estimate) or one refund (gives back everything), never by both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Amount;
use super::key::{key_of, parts_of_key};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MovementKind {
    Charge,
    Settle,
    Refund,
    Deposit,
}

impl MovementKind {
    pub fn word(self) -> &'static str {
        match self {
            MovementKind::Charge => "charge",
            MovementKind::Settle => "settle",
            MovementKind::Refund => "refund",
            MovementKind::Deposit => "deposit",
        }
    }
}

/// One row of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Movement {
    pub kind: MovementKind,
    /// Its change of the balance: charge −estimate, settle +(estimate − actual) or 0, refund +estimate.
    pub amount: Amount,
    /// Unique: the same movement is never made twice.
    pub key: String,
    /// Its change of the sum that open charges hold.
    pub held: Amount,
    /// The amount that the platform pays because the call cost more than its estimate.
    #[serde(default)]
    pub borne_by_platform: Amount,
}

/// How a charge ends when its call is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// The amount that goes back to the account; never negative.
    pub amount: Amount,
    /// The cost beyond the estimate.
    pub borne_by_platform: Amount,
}

/// Compares a charge with the real cost.
pub fn settle(estimate: Amount, actual: Amount) -> Settlement {
    let difference = estimate.saturating_sub(actual.max(Amount::ZERO));
    Settlement {
        amount: difference.clamp(Amount::ZERO, estimate.max(Amount::ZERO)),
        borne_by_platform: difference.saturating_neg().max(Amount::ZERO),
    }
}

impl Movement {
    /// Takes the estimate; `key` is one of a charge.
    pub fn charge(key: String, estimate: Amount) -> Self {
        let amount = estimate.saturating_neg();
        Self { kind: MovementKind::Charge, amount, key, held: estimate, borne_by_platform: Amount::ZERO }
    }

    /// Closes a charge whose call is done.
    pub fn settle(charge_key: &str, estimate: Amount, actual: Amount) -> Self {
        let Settlement { amount, borne_by_platform } = settle(estimate, actual);
        let key = closing_key(MovementKind::Settle, charge_key);
        Self { kind: MovementKind::Settle, amount, key, held: estimate.saturating_neg(), borne_by_platform }
    }

    /// Closes a charge whose call failed or was canceled.
    pub fn refund(charge_key: &str, estimate: Amount) -> Self {
        let key = closing_key(MovementKind::Refund, charge_key);
        let held = estimate.saturating_neg();
        Self { kind: MovementKind::Refund, amount: estimate, key, held, borne_by_platform: Amount::ZERO }
    }

    /// Puts money in; `id` names the payment.
    pub fn deposit(id: &str, amount: Amount) -> Self {
        let key = key_of(MovementKind::Deposit, id);
        Self { kind: MovementKind::Deposit, amount, key, held: Amount::ZERO, borne_by_platform: Amount::ZERO }
    }

    /// Its call or payment: the key without its kind. A charge and the posting that closes it share it.
    pub fn subject(&self) -> &str {
        subject(&self.key)
    }
}

fn closing_key(kind: MovementKind, charge_key: &str) -> String {
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
    Insufficient { balance: Amount, needed: Amount },
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

/// The balance of an account, and the part that open charges hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Account {
    pub balance: Amount,
    /// Estimates of open charges; already taken from the balance, and given back as far as they are not used.
    pub held: Amount,
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
        if balance < Amount::ZERO && movement.amount < Amount::ZERO {
            let needed = movement.amount.saturating_neg();
            return Err(LedgerFault::Insufficient { balance: self.balance, needed });
        }
        if held < Amount::ZERO {
            return Err(LedgerFault::NoCharge { key: movement.key.clone() });
        }
        // Held amounts always have room to come back, so that every call can end.
        if movement.kind == MovementKind::Deposit && balance.checked_add(held).is_none() {
            return Err(overflow());
        }
        Ok(Account { balance, held })
    }

    /// The effect of a movement, where `made` finds earlier movements: each is made once.
    pub fn post<'m>(
        self,
        movement: &Movement,
        made: impl Fn(MovementKind, &str) -> Option<&'m Movement>,
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
    made: impl Fn(MovementKind, &str) -> Option<&'m Movement>,
) -> Result<(), LedgerFault> {
    let kind = movement.kind.word();
    let malformed = |reason| Err(LedgerFault::Malformed { key: movement.key.clone(), kind, reason });
    if movement.key.strip_prefix(kind).and_then(|rest| rest.strip_prefix(':')).is_none() {
        return malformed("the key of a movement starts with its kind");
    }
    match movement.kind {
        MovementKind::Charge
            if movement.held < Amount::ZERO || movement.amount != movement.held.saturating_neg() =>
        {
            malformed("a charge takes what it holds, at least 0")
        }
        MovementKind::Deposit if movement.amount <= Amount::ZERO || movement.held != Amount::ZERO => {
            malformed("a deposit adds at least 1 and holds nothing")
        }
        MovementKind::Charge | MovementKind::Deposit => Ok(()),
        MovementKind::Settle | MovementKind::Refund => {
            let estimate = open_charge(movement, made)?;
            let whole = movement.kind == MovementKind::Refund;
            let least = if whole { estimate } else { Amount::ZERO };
            if movement.held.checked_neg() != Some(estimate) || !(least..=estimate).contains(&movement.amount)
            {
                return malformed("it gives back more or less than its charge took");
            }
            Ok(())
        }
    }
}

/// The amount of the charge that `movement` closes.
fn open_charge<'m>(
    movement: &Movement,
    made: impl Fn(MovementKind, &str) -> Option<&'m Movement>,
) -> Result<Amount, LedgerFault> {
    let key = || movement.key.clone();
    for kind in [MovementKind::Settle, MovementKind::Refund] {
        if made(kind, movement.subject()).is_some() {
            return Err(LedgerFault::Closed { key: key(), by: kind.word() });
        }
    }
    let charge = made(MovementKind::Charge, movement.subject());
    charge.map(|charge| charge.held).ok_or_else(|| LedgerFault::NoCharge { key: key() })
}

/// The effect of a posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    New {
        balance_after: Amount,
    },
    /// The very same movement was made before; nothing changed.
    Already,
}

/// An account with all its postings as a value: the model that the stores are compared with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AccountLedger {
    account: Account,
    movements: BTreeMap<String, Movement>,
}

impl AccountLedger {
    pub fn account(&self) -> Account {
        self.account
    }

    pub fn movements(&self) -> impl Iterator<Item = &Movement> {
        self.movements.values()
    }

    /// Makes a movement, once.
    pub fn post(&mut self, movement: Movement) -> Result<Posted, LedgerFault> {
        let made =
            |kind: MovementKind, subject: &str| self.movements.get(&format!("{}:{subject}", kind.word()));
        let (account, posted) = self.account.post(&movement, made)?;
        self.account = account;
        if posted != Posted::Already {
            self.movements.insert(movement.key.clone(), movement);
        }
        Ok(posted)
    }

    /// Whether the account equals the sum of its postings.
    pub fn is_balanced(&self) -> bool {
        let sum =
            |of: fn(&Movement) -> Amount| self.movements.values().map(|m| i128::from(of(m))).sum::<i128>();
        sum(|m| m.amount) == i128::from(self.account.balance)
            && sum(|m| m.held) == i128::from(self.account.held)
    }
}

#[cfg(test)]
mod tests;
