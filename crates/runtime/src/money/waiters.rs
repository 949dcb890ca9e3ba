//! Runs that wait for money, and the tasks that wake them when a balance grows.
//!
//! Every credit to an account may serve a waiting run: a deposit, the rest of a settled charge, a refund. A deposit
//! announces itself with a message in its own commit. Credits of runs and jobs are followed up in memory only, so a
//! server that starts, or takes over from a dead one, checks all accounts with waiting runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use windlass_engine::id::RunId;
use windlass_engine::input::Input;
use windlass_engine::money::Amount;
use windlass_store::StoreError;
use windlass_store::account::{AccountRow, BalanceWaiter};

use crate::RuntimeError;
use crate::bounded::map_concurrent;
use crate::keyed_lock::KeyedLocks;
use crate::money::Money;
use crate::part::RuntimePart;
use crate::runs::ExtraWrites;
use crate::runs::mailbox::SubmitReply;

/// Runs that wait for money that are read at once; more when they are many.
const READ_LIMIT: usize = 1_000;
const READ_LIMIT_MAX: usize = 1 << 20;
/// Runs that are woken at once: their commits share a sync of the disk.
const WAKE_CONCURRENCY: usize = 64;
/// The delay before a failed check is retried: the first one, and the longest.
const RETRY_DELAY: Duration = Duration::from_millis(500);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(8);
/// Accounts that are known to be there at most, some 100 bytes each; when there are more, it starts over.
const OPENED_MAX: usize = 10_000;

/// Accounts with runs that wait for money, and accounts that a task checks now.
#[derive(Default)]
pub(super) struct BalanceWaiters {
    known: Mutex<AccountSets>,
    /// Deposits with the same key go one after the other.
    pub(super) paying: KeyedLocks,
}

#[derive(Default)]
struct AccountSets {
    /// Runs of these may wait; kept by a server that has the store for itself.
    balance_waiters: BTreeSet<String>,
    /// Accounts that a task checks now; `true` = a credit came meanwhile.
    looked_at: BTreeMap<String, bool>,
    /// Accounts that exist. None is ever closed, so the store need not be asked again.
    opened: BTreeSet<String>,
}

impl BalanceWaiters {
    fn known(&self) -> MutexGuard<'_, AccountSets> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the account is known to be there.
    pub(super) fn is_opened(&self, account: &str) -> bool {
        self.known().opened.contains(account)
    }

    /// There is such an account.
    pub(super) fn note_opened(&self, account: &str) {
        let mut known = self.known();
        if known.opened.len() >= OPENED_MAX {
            known.opened.clear();
        }
        known.opened.insert(account.to_owned());
    }

    /// Claims the check of an account; `false` = another task has it and will check once more.
    fn begin(&self, account: &str) -> bool {
        let mut known = self.known();
        match known.looked_at.get_mut(account) {
            Some(again) => {
                *again = true;
                false
            }
            None => known.looked_at.insert(account.to_owned(), false).is_none(),
        }
    }

    /// Ends a check; `true` = the account has to be checked once more.
    fn end(&self, account: &str) -> bool {
        let mut known = self.known();
        match known.looked_at.get_mut(account) {
            Some(again) if *again => {
                *again = false;
                true
            }
            Some(_) | None => {
                known.looked_at.remove(account);
                false
            }
        }
    }

    /// Whether runs of the account may wait for a credit.
    fn has_waiters(&self, account: &str) -> bool {
        let known = self.known();
        known.balance_waiters.contains(account) || known.looked_at.contains_key(account)
    }

    /// Whether a task checks the account now.
    fn is_looked_at(&self, account: &str) -> bool {
        self.known().looked_at.contains_key(account)
    }
}

/// The check of one account. Dropping it early lets another task begin.
struct AccountCheck<'a> {
    waiters: &'a BalanceWaiters,
    account: &'a str,
}

impl Drop for AccountCheck<'_> {
    fn drop(&mut self) {
        self.waiters.known().looked_at.remove(self.account);
    }
}

impl Money {
    /// Whether a task checks the account now.
    pub(crate) fn is_checking(&self, account: &str) -> bool {
        self.state().waiters.is_looked_at(account)
    }

    /// Runs of this account may wait for money from now on.
    pub(crate) fn on_waiter(&self, account: &str) {
        // One check finds a credit that came before the account was known to have waiters.
        if !self.is_shared() && self.state().waiters.known().balance_waiters.insert(account.to_owned()) {
            self.check_account_soon(account);
        }
    }

    /// Money came back to an account: waiting runs may go on.
    pub(crate) fn on_credit(&self, account: &str) {
        if self.is_shared() || self.state().waiters.has_waiters(account) {
            self.check_account_soon(account);
        }
    }

    pub(crate) fn check_account_soon(&self, account: &str) {
        if self.state().waiters.begin(account) {
            let (money, account) = (self.clone(), account.to_owned());
            self.tasks().spawn(async move { money.check_until_done(&account).await });
        }
    }

    /// Wakes runs that wait for money; `false` = the server stopped first. If another task is at it, that one checks
    /// once more.
    pub(crate) async fn check_and_wait(&self, account: &str) -> bool {
        !self.state().waiters.begin(account) || self.check_until_done(account).await
    }

    /// Checks an account until no further check is asked for; `false` = the server stopped first.
    async fn check_until_done(&self, account: &str) -> bool {
        let check = AccountCheck { waiters: &self.state().waiters, account };
        let mut wait = RETRY_DELAY;
        loop {
            match self.wake_waiters(account).await {
                Ok(()) if self.state().waiters.end(account) => wait = RETRY_DELAY,
                Ok(()) => {
                    // The check is released: another task may have begun.
                    std::mem::forget(check);
                    return true;
                }
                Err(error) => {
                    tracing::warn!(account, %error, "runs that wait for money could not be woken; it is retried");
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = self.stopped() => return false,
                    }
                    wait = wait.saturating_mul(2).min(RETRY_DELAY_MAX);
                }
            }
        }
    }

    /// Checks all accounts with waiting runs.
    pub(crate) async fn wake_all_waiters(&self) -> Result<(), RuntimeError> {
        for row in self.store().accounts_with_waiters(self.project(), None).await? {
            self.state().waiters.known().balance_waiters.insert(row.id.clone());
            self.check_account_soon(&row.id);
        }
        Ok(())
    }

    /// Wakes waiting runs, the oldest first, as far as the balance reaches. A run that does not take its money (a
    /// paused one) leaves it to the others.
    async fn wake_waiters(&self, account: &str) -> Result<(), RuntimeError> {
        let (mut limit, mut woken, mut trouble) = (READ_LIMIT, BTreeSet::new(), None);
        while let Some(row) = self.account_with_waiters(account).await? {
            let rows =
                self.store().balance_waiters(self.project(), account.to_owned(), row.balance, limit).await?;
            let is_full = rows.len() >= limit;
            let fits = affordable(rows, row.balance, &mut woken);
            if fits.is_empty() {
                if !is_full || limit >= READ_LIMIT_MAX {
                    break;
                }
                limit = limit.saturating_mul(2);
                continue;
            }
            let wake = |(run, left)| {
                let money = self.clone();
                let input = Input::BalanceChanged { budget: None, balance: Some(left) };
                async move { (run, money.runs().submit_for_reply(run, input, ExtraWrites::default()).await) }
            };
            for (run, outcome) in map_concurrent(fits, WAKE_CONCURRENCY, wake).await.into_iter().flatten() {
                match outcome {
                    // It goes on waiting for money.
                    SubmitReply::Trouble(error) if self.runs().is_set_aside(run, &error) => {}
                    SubmitReply::Trouble(error) => trouble = Some(error),
                    SubmitReply::Taken(_)
                    | SubmitReply::Refused(_)
                    | SubmitReply::Existing { .. }
                    | SubmitReply::Outdated
                    | SubmitReply::UnknownRun => {}
                }
            }
        }
        trouble.map_or(Ok(()), Err)
    }

    /// The account, if runs wait for it. As long as they do, it stays in the set of accounts with waiters.
    async fn account_with_waiters(&self, account: &str) -> Result<Option<AccountRow>, StoreError> {
        self.state().waiters.known().balance_waiters.insert(account.to_owned());
        let one = || self.store().accounts_with_waiters(self.project(), Some(account.to_owned()));
        if let Some(row) = one().await?.pop() {
            return Ok(Some(row));
        }
        self.state().waiters.known().balance_waiters.remove(account);
        // A run that began to wait before the removal found the account in the set and asked for no check; one that
        // begins now asks for it.
        let late = one().await?.pop();
        if late.is_some() {
            self.state().waiters.known().balance_waiters.insert(account.to_owned());
        }
        Ok(late)
    }
}

/// The runs that the balance covers together, in order, each with the rest that is left for it. A run with the same
/// need as when it was last woken is not woken again.
fn affordable(
    rows: Vec<BalanceWaiter>,
    balance: Amount,
    woken: &mut BTreeSet<(RunId, Amount)>,
) -> Vec<(RunId, Amount)> {
    let mut left = balance;
    let mut fits = Vec::new();
    for BalanceWaiter { run, needs } in rows {
        if needs <= left && woken.insert((run, needs)) {
            fits.push((run, left));
            left = left.saturating_sub(needs);
        }
    }
    fits
}

#[cfg(test)]
mod tests;
