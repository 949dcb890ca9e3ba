//! Accounts, prices, and runs that wait for money. HTTP handlers call it to open accounts, to deposit and to set prices;
//! runs and jobs report credits to it. Money moves only in commits of the store: this module decides nothing about
//! balances, it wakes the runs that a new balance may serve.

pub mod account;
mod payer;
pub mod price;
mod waiters;

use crate::part::part;

use price::Prices;
use waiters::BalanceWaiters;

/// The state of `Money`.
#[derive(Default)]
pub(crate) struct MoneyState {
    prices: Prices,
    waiters: BalanceWaiters,
}

part! {
    /// The owner of accounts, prices and runs that wait for money.
    pub Money, money: MoneyState
}
