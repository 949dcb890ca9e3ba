//! Accounts: opening them, putting money in, and letting runs go that wait for it.
//!
//! Whatever comes back to an account may be what a run waits for: a deposit, what a settlement gives back, a refund.
//! A deposit says so with a message in its own commit. What runs and jobs give back is only followed up in memory:
//! whoever starts, or looks after dead servers, looks at all accounts that somebody waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;
use windlass_engine::id::{CommandId, RunId};
use windlass_engine::input::Input;
use windlass_engine::money::{LedgerFault, Movement};
use windlass_store::account::{AccountRow, InNeed, LedgerQuery, LedgerRow, Posting};
use windlass_store::commit::Commit;
use windlass_store::outbox::{Message, MessageId, Note, Party};
use windlass_store::record::Record;
use windlass_store::{Refusal, StoreError};

use crate::job::many::each;
use crate::mailbox::Told;
use crate::run::Along;
use crate::{Runtime, RuntimeError};

/// Runs that wait for money that are read at once; more when they are many.
const AT_ONCE: usize = 1_000;
const AT_ONCE_MAX: usize = 1 << 20;
/// Runs that are told at once: their commits share a sync of the disk.
const TOLD_AT_ONCE: usize = 64;

/// Accounts that are known to be there at most, some 100 bytes each; when there are more, it starts over.
const OPENED_MAX: usize = 10_000;

/// What became of a request to open an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub account: AccountRow,
    /// `false`: it was there.
    pub created: bool,
}

/// What became of a deposit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deposited {
    /// The account as it is now.
    pub account: AccountRow,
    /// What the deposit did when it was made.
    pub entry: LedgerRow,
    /// `false`: the same deposit was made before.
    pub created: bool,
}

/// Why an account stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("there is no account `{0}`: open it first")]
    Unknown(String),
    #[error("account `{id}` has the name `{name}`: use another id, or open it with that name")]
    Taken { id: String, name: String },
    /// The first deposit stands.
    #[error("the key `{key}` was used for a deposit of {amount}: use another key for another payment")]
    KeyTaken { key: String, amount: i64 },
    #[error("{0} is not an amount that can be deposited: give at least 1")]
    NoAmount(i64),
    #[error("the balance would be more than can be counted: deposit less")]
    TooMuch,
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl From<StoreError> for AccountError {
    fn from(error: StoreError) -> Self {
        AccountError::Runtime(error.into())
    }
}

/// Accounts whose runs wait for money, and those that are being looked at.
#[derive(Default)]
pub(crate) struct Needy {
    known: Mutex<Known>,
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
}

impl Runtime {
    /// Opens an account, under the name that is given or under its id. The same again finds it as it is.
    pub async fn open_account(&self, id: &str, name: Option<&str>) -> Result<Opened, AccountError> {
        self.admit()?;
        let before = self.store().account(id).await?;
        if let Some(account) = before {
            return match name {
                Some(name) if name != account.name => {
                    Err(AccountError::Taken { id: account.id, name: account.name })
                }
                Some(_) | None => Ok(Opened { account, created: false }),
            };
        }
        let (id, name) = (id.to_owned(), name.unwrap_or(id).to_owned());
        let record = Record::Account { id: id.clone(), name, now: self.clock().now() };
        match self.store().save(record).await {
            Ok(()) => {}
            Err(StoreError::Refused(Refusal::AccountTaken { id, name })) => {
                return Err(AccountError::Taken { id, name });
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Opened { account: self.account(&id).await?, created: true })
    }

    /// One account.
    pub async fn account(&self, id: &str) -> Result<AccountRow, AccountError> {
        self.store().account(id).await?.ok_or_else(|| AccountError::Unknown(id.to_owned()))
    }

    /// Puts money into an account, once per key: the same again answers with what the first one did.
    pub async fn deposit(&self, account: &str, amount: i64, key: &str) -> Result<Deposited, AccountError> {
        self.admit()?;
        if amount <= 0 {
            return Err(AccountError::NoAmount(amount));
        }
        let (runtime, account, key) = (self.clone(), account.to_owned(), key.to_owned());
        // To its end, whoever goes away meanwhile: what is written is followed up.
        self.to_the_end(async move { runtime.deposit_now(&account, amount, &key).await }).await?
    }

    async fn deposit_now(&self, account: &str, amount: i64, key: &str) -> Result<Deposited, AccountError> {
        let before = self.account(account).await?;
        let movement = Movement::deposit(key, amount);
        if let Some(entry) = self.entry(account, &movement.key).await? {
            return repeated(before, entry, amount, key);
        }
        let now = self.clock().now();
        let uuid = Uuid::now_v7();
        // A name that nobody has used, and that sorts by time.
        let (seq, rest) = uuid.as_u64_pair();
        let id = MessageId {
            part: u32::try_from(rest >> 32).unwrap_or_default(),
            ..MessageId::new(Party::Account(account.to_owned()), seq >> 1)
        };
        let to = Party::Account(account.to_owned());
        let message = Message { id, to, at: now, note: Note::BalanceChanged };
        let posting =
            Posting { account: account.to_owned(), movement: movement.clone(), run: None, node: None };
        let commit = Commit {
            postings: vec![posting],
            messages: vec![message.clone()],
            ..Commit::new(CommandId::new(uuid), now)
        };
        match self.commit_looked_up(commit).await {
            Ok(()) => self.deliver_soon(message),
            // Somebody made a deposit with the key at the same time.
            Err(StoreError::Refused(Refusal::Ledger(LedgerFault::Different { .. }))) => {}
            Err(StoreError::Refused(Refusal::Ledger(LedgerFault::Overflow { .. }))) => {
                return Err(AccountError::TooMuch);
            }
            Err(error) => return Err(error.into()),
        }
        let entry = self.entry(account, &movement.key).await?.ok_or(RuntimeError::Broken)?;
        let after = self.account(account).await?;
        let deposited = repeated(after, entry, amount, key)?;
        Ok(Deposited { created: true, ..deposited })
    }

    async fn entry(&self, account: &str, key: &str) -> Result<Option<LedgerRow>, StoreError> {
        let (account, key) = (account.to_owned(), Some(key.to_owned()));
        let rows = self.store().ledger(LedgerQuery { account, key, ..LedgerQuery::default() }).await?;
        Ok(rows.into_iter().next())
    }

    /// Runs of this account may wait for money from now on.
    pub(crate) fn in_need(&self, account: &str) {
        // What came back before this was known is found by looking once.
        if self.is_alone() && self.needy().known().in_need.insert(account.to_owned()) {
            self.look_at_account(account);
        }
    }

    /// Money came back to an account: whoever waits for it may go.
    pub(crate) fn credited(&self, account: &str) {
        if !self.is_alone() || self.needy().known().in_need.contains(account) {
            self.look_at_account(account);
        }
    }

    fn look_at_account(&self, account: &str) {
        if self.needy().begin(account) {
            let (runtime, account) = (self.clone(), account.to_owned());
            self.tasks().spawn(async move {
                loop {
                    if let Err(error) = runtime.fund(&account).await {
                        tracing::warn!(account, %error, "runs that wait for money could not be looked at");
                    }
                    if !runtime.needy().end(&account) {
                        return;
                    }
                }
            });
        }
    }

    /// Looks at all accounts that somebody waits for.
    pub(crate) async fn fund_all(&self) -> Result<(), RuntimeError> {
        for row in self.store().accounts_in_need().await? {
            self.needy().known().in_need.insert(row.id.clone());
            self.look_at_account(&row.id);
        }
        Ok(())
    }

    /// Lets runs go that wait for money, the oldest first, as far as the balance reaches.
    pub(crate) async fn fund(&self, account: &str) -> Result<(), RuntimeError> {
        let (mut limit, mut told) = (AT_ONCE, BTreeSet::new());
        loop {
            // Whoever comes to wait after the look below is entered again.
            self.needy().known().in_need.remove(account);
            let Some(row) = self.store().account(account).await? else { return Ok(()) };
            let waiting = self.store().in_need(account.to_owned(), i64::MAX, 1).await?;
            if waiting.is_empty() {
                return Ok(());
            }
            self.needy().known().in_need.insert(account.to_owned());
            let rows = self.store().in_need(account.to_owned(), row.balance, limit).await?;
            let is_last = rows.len() < limit;
            let fits = affordable(rows, row.balance, &mut told);
            let tell = |(run, left)| {
                let runtime = self.clone();
                let input = Input::BalanceChanged { budget: None, balance: Some(left) };
                async move { runtime.tell(run, input, Along::default()).await }
            };
            for told in each(fits, TOLD_AT_ONCE, tell).await.into_iter().flatten() {
                if let Told::Trouble(error) = told {
                    return Err(error);
                }
            }
            if is_last || limit >= AT_ONCE_MAX {
                return Ok(());
            }
            // Those that stay (paused ones do) are read again, and not told again.
            limit = limit.saturating_mul(2);
        }
    }
}

/// Those that the balance bears together, in order, each with what is left for it; each is told once.
fn affordable(rows: Vec<InNeed>, balance: i64, told: &mut BTreeSet<RunId>) -> Vec<(RunId, i64)> {
    let mut left = balance;
    let mut fits = Vec::new();
    for InNeed { run, needs } in rows {
        if needs <= left && told.insert(run) {
            fits.push((run, left));
            left = left.saturating_sub(needs);
        }
    }
    fits
}

/// The answer to a deposit whose key was used before.
fn repeated(
    account: AccountRow,
    entry: LedgerRow,
    amount: i64,
    key: &str,
) -> Result<Deposited, AccountError> {
    let first = entry.posting.movement.amount;
    if first != amount {
        return Err(AccountError::KeyTaken { key: key.to_owned(), amount: first });
    }
    Ok(Deposited { account, entry, created: false })
}

#[cfg(test)]
mod tests;
