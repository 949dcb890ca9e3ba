//! Letting runs go that wait for money.
//!
//! Whatever comes back to an account may be what a run waits for: a deposit, what a settlement gives back, a refund.
//! A deposit says so with a message in its own commit. What runs and jobs give back is only followed up in memory:
//! whoever starts, or looks after dead servers, looks at all accounts that somebody waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use windlass_engine::id::RunId;
use windlass_engine::input::Input;
use windlass_store::StoreError;
use windlass_store::account::{AccountRow, InNeed};

use crate::job::many::each;
use crate::mailbox::Told;
use crate::run::Along;
use crate::turnstile::Turnstiles;
use crate::{Runtime, RuntimeError};

/// Runs that wait for money that are read at once; more when they are many.
const AT_ONCE: usize = 1_000;
const AT_ONCE_MAX: usize = 1 << 20;
/// Runs that are told at once: their commits share a sync of the disk.
const TOLD_AT_ONCE: usize = 64;
/// When an account is looked at again that could not be: at first, and at most.
const AGAIN: Duration = Duration::from_millis(500);
const AGAIN_MAX: Duration = Duration::from_secs(8);
/// Accounts that are known to be there at most, some 100 bytes each; when there are more, it starts over.
const OPENED_MAX: usize = 10_000;

/// Accounts whose runs wait for money, and those that are being looked at.
#[derive(Default)]
pub(crate) struct Needy {
    known: Mutex<Known>,
    /// Deposits with the same key go one after the other.
    pub(super) paying: Turnstiles,
}

#[derive(Default)]
struct Known {
    /// Runs of these may wait; kept by a server that has the store for itself.
    in_need: BTreeSet<String>,
    /// Being looked at; `true` = something came back meanwhile.
    looked_at: BTreeMap<String, bool>,
    /// Accounts that are there. None is ever closed, so that nobody has to ask again.
    opened: BTreeSet<String>,
}

impl Needy {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the account is known to be there.
    pub(crate) fn is_opened(&self, account: &str) -> bool {
        self.known().opened.contains(account)
    }

    /// There is such an account.
    pub(crate) fn note_opened(&self, account: &str) {
        let mut known = self.known();
        if known.opened.len() >= OPENED_MAX {
            known.opened.clear();
        }
        known.opened.insert(account.to_owned());
    }

    /// Somebody has to look at an account; `false` = somebody does, and will look again.
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

    /// It was looked at; `true` = it has to be looked at again.
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

    /// Whether runs of the account may wait for what comes back.
    fn is_in_need(&self, account: &str) -> bool {
        let known = self.known();
        known.in_need.contains(account) || known.looked_at.contains_key(account)
    }

    /// Whether somebody looks at the account now.
    pub(crate) fn is_looked_at(&self, account: &str) -> bool {
        self.known().looked_at.contains_key(account)
    }
}

/// Whoever looks at an account. If they go away before they are done, others may.
struct Looking<'a> {
    needy: &'a Needy,
    account: &'a str,
}

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        self.needy.known().looked_at.remove(self.account);
    }
}

impl Runtime {
    /// Runs of this account may wait for money from now on.
    pub(crate) fn in_need(&self, account: &str) {
        // What came back before this was known is found by looking once.
        if self.is_alone() && self.needy().known().in_need.insert(account.to_owned()) {
            self.look_at_account(account);
        }
    }

    /// Money came back to an account: whoever waits for it may go.
    pub(crate) fn credited(&self, account: &str) {
        if !self.is_alone() || self.needy().is_in_need(account) {
            self.look_at_account(account);
        }
    }

    pub(crate) fn look_at_account(&self, account: &str) {
        if self.needy().begin(account) {
            let (runtime, account) = (self.clone(), account.to_owned());
            self.tasks().spawn(async move { runtime.keep_looking(&account).await });
        }
    }

    /// Lets runs go that wait for money; `false` = the server stopped before that was done. If somebody is at it,
    /// they look again.
    pub(crate) async fn follow_up(&self, account: &str) -> bool {
        !self.needy().begin(account) || self.keep_looking(account).await
    }

    /// Looks at an account until nobody asks for another look; `false` = the server stopped before.
    async fn keep_looking(&self, account: &str) -> bool {
        let looking = Looking { needy: self.needy(), account };
        let mut wait = AGAIN;
        loop {
            match self.fund(account).await {
                Ok(()) if self.needy().end(account) => wait = AGAIN,
                Ok(()) => {
                    // It is no longer ours: somebody else may have begun.
                    std::mem::forget(looking);
                    return true;
                }
                Err(error) => {
                    tracing::warn!(account, %error, "runs that wait for money are looked at again later");
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = self.stopped() => return false,
                    }
                    wait = wait.saturating_mul(2).min(AGAIN_MAX);
                }
            }
        }
    }

    /// Looks at all accounts that somebody waits for.
    pub(crate) async fn fund_all(&self) -> Result<(), RuntimeError> {
        for row in self.store().accounts_in_need(None).await? {
            self.needy().known().in_need.insert(row.id.clone());
            self.look_at_account(&row.id);
        }
        Ok(())
    }

    /// Lets runs go that wait for money, the oldest first, as far as the balance reaches. A run that does not take what
    /// it could have (one that is paused does not) leaves it to the others.
    async fn fund(&self, account: &str) -> Result<(), RuntimeError> {
        let (mut limit, mut told, mut trouble) = (AT_ONCE, BTreeSet::new(), None);
        while let Some(row) = self.row_in_need(account).await? {
            let rows = self.store().in_need(account.to_owned(), row.balance, limit).await?;
            let is_full = rows.len() >= limit;
            let fits = affordable(rows, row.balance, &mut told);
            if fits.is_empty() {
                if !is_full || limit >= AT_ONCE_MAX {
                    break;
                }
                limit = limit.saturating_mul(2);
                continue;
            }
            let tell = |(run, left)| {
                let runtime = self.clone();
                let input = Input::BalanceChanged { budget: None, balance: Some(left) };
                async move { (run, runtime.tell(run, input, Along::default()).await) }
            };
            for (run, told) in each(fits, TOLD_AT_ONCE, tell).await.into_iter().flatten() {
                match told {
                    Told::Trouble(error @ (RuntimeError::Journal { .. } | RuntimeError::Definition(_))) => {
                        tracing::error!(%run, %error, "a run cannot be read, so it goes on waiting for money");
                    }
                    Told::Trouble(error) => trouble = Some(error),
                    Told::Taken(_)
                    | Told::Refused(_)
                    | Told::Existing { .. }
                    | Told::Outdated
                    | Told::UnknownRun => {}
                }
            }
        }
        trouble.map_or(Ok(()), Err)
    }

    /// The account, if anybody waits for it. While somebody does, it is entered as one in need.
    async fn row_in_need(&self, account: &str) -> Result<Option<AccountRow>, StoreError> {
        self.needy().known().in_need.insert(account.to_owned());
        let one = || self.store().accounts_in_need(Some(account.to_owned()));
        if let Some(row) = one().await?.pop() {
            return Ok(Some(row));
        }
        self.needy().known().in_need.remove(account);
        // Who came to wait before that found it entered and asked for no look; who comes from now on asks for one.
        let late = one().await?.pop();
        if late.is_some() {
            self.needy().known().in_need.insert(account.to_owned());
        }
        Ok(late)
    }
}

/// Those that the balance bears together, in order, each with what is left for it. One that needs what it needed when
/// it was told is not told again.
fn affordable(rows: Vec<InNeed>, balance: i64, told: &mut BTreeSet<(RunId, i64)>) -> Vec<(RunId, i64)> {
    let mut left = balance;
    let mut fits = Vec::new();
    for InNeed { run, needs } in rows {
        if needs <= left && told.insert((run, needs)) {
            fits.push((run, left));
            left = left.saturating_sub(needs);
        }
    }
    fits
}

#[cfg(test)]
mod tests;
