//! Accounts: opening them and depositing. A deposit is made once per key.

use uuid::Uuid;
use windlass_engine::counter::Seq;
use windlass_engine::id::CommandId;
use windlass_engine::money::{Amount, LedgerFault, Movement};
use windlass_store::account::{AccountRow, LedgerQuery, LedgerRow, Posting};
use windlass_store::commit::Commit;
use windlass_store::outbox::{Message, MessageId, Note, Party};
use windlass_store::{Refusal, StoreError};

use crate::RuntimeError;
use crate::money::Money;
use crate::part::RuntimePart;

/// The result of opening an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub account: AccountRow,
    /// `false`: it was there.
    pub created: bool,
}

/// The result of a deposit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DepositResult {
    /// The account as it is now.
    pub account: AccountRow,
    /// The ledger row of the deposit.
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
    KeyTaken { key: String, amount: Amount },
    #[error("{0} is not an amount that can be deposited: give at least 1")]
    NoAmount(Amount),
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

impl Money {
    /// Opens an account, under the name that is given or under its id. The same again finds it as it is.
    pub async fn open_account(&self, id: &str, name: Option<&str>) -> Result<Opened, AccountError> {
        self.runs().admit()?;
        let before = self.store().account(self.project(), id).await?;
        if let Some(account) = before {
            return match name {
                Some(name) if name != account.name => {
                    Err(AccountError::Taken { id: account.id, name: account.name })
                }
                Some(_) | None => Ok(Opened { account, created: false }),
            };
        }
        let now = self.clock().now();
        match self.store().open_account(self.project(), id, name.unwrap_or(id), now).await {
            Ok(()) => {}
            Err(StoreError::Refused(Refusal::AccountTaken { id, name })) => {
                return Err(AccountError::Taken { id, name });
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Opened { account: self.account(id).await?, created: true })
    }

    /// One account.
    pub async fn account(&self, id: &str) -> Result<AccountRow, AccountError> {
        self.store().account(self.project(), id).await?.ok_or_else(|| AccountError::Unknown(id.to_owned()))
    }

    /// Puts money into an account, once per key: a repeated deposit returns the row of the first one.
    pub async fn deposit(
        &self,
        account: &str,
        amount: Amount,
        key: &str,
    ) -> Result<DepositResult, AccountError> {
        self.runs().admit()?;
        if amount <= Amount::ZERO {
            return Err(AccountError::NoAmount(amount));
        }
        let (money, account, key) = (self.clone(), account.to_owned(), key.to_owned());
        // On a task of its own, so that a written deposit always wakes the runs that wait for it.
        self.ctx().to_the_end(async move { money.deposit_now(&account, amount, &key).await }).await?
    }

    async fn deposit_now(
        &self,
        account: &str,
        amount: Amount,
        key: &str,
    ) -> Result<DepositResult, AccountError> {
        // Two equal deposits at once: the second one finds the row of the first.
        let _alone = self.state().waiters.paying.lock((account, key)).await;
        let before = self.account(account).await?;
        let movement = Movement::deposit(key, amount);
        if let Some(entry) = self.entry(account, &movement.key).await? {
            return repeated(before, entry, amount, key);
        }
        let now = self.clock().now();
        let uuid = Uuid::now_v7();
        // A new id that sorts by time.
        let (seq, rest) = uuid.as_u64_pair();
        let id = MessageId {
            part: u32::try_from(rest >> 32).unwrap_or_default(),
            ..MessageId::new(Party::Account(account.to_owned()), Seq(seq >> 1))
        };
        let to = Party::Account(account.to_owned());
        let message = Message { id, to, at: now, note: Note::BalanceChanged };
        let posting = Posting { account: account.to_owned(), movement: movement.clone() };
        let commit = Commit {
            postings: vec![posting],
            messages: vec![message.clone()],
            ..Commit::new(self.project(), CommandId::new(uuid), now)
        };
        match self.ctx().commit_looked_up(commit).await {
            Ok(()) => self.runs().deliver_soon(message),
            // Another server made a deposit with the key at the same time.
            Err(StoreError::Refused(Refusal::Ledger(LedgerFault::Different { .. }))) => {}
            Err(StoreError::Refused(Refusal::Ledger(LedgerFault::Overflow { .. }))) => {
                return Err(AccountError::TooMuch);
            }
            Err(error) => return Err(error.into()),
        }
        let entry = self.entry(account, &movement.key).await?.ok_or(RuntimeError::Broken)?;
        let after = self.account(account).await?;
        // Another server may have made it just before.
        let created = entry.at == now;
        let deposited = repeated(after, entry, amount, key)?;
        Ok(DepositResult { created, ..deposited })
    }

    async fn entry(&self, account: &str, key: &str) -> Result<Option<LedgerRow>, StoreError> {
        let (account, key) = (account.to_owned(), Some(key.to_owned()));
        let rows = self
            .store()
            .ledger(self.project(), LedgerQuery { account, key, ..LedgerQuery::default() })
            .await?;
        Ok(rows.into_iter().next())
    }
}

/// The answer to a deposit with a used key.
fn repeated(
    account: AccountRow,
    entry: LedgerRow,
    amount: Amount,
    key: &str,
) -> Result<DepositResult, AccountError> {
    let first = entry.posting.movement.amount;
    if first != amount {
        return Err(AccountError::KeyTaken { key: key.to_owned(), amount: first });
    }
    Ok(DepositResult { account, entry, created: false })
}

impl Money {
    /// Refuses an unknown account: its run or job would fail at the first call.
    pub(crate) async fn check_account(&self, account: &str) -> Result<(), RuntimeError> {
        if self.state().waiters.is_opened(account) {
            return Ok(());
        }
        match self.store().account(self.project(), account).await? {
            Some(_) => {
                self.state().waiters.note_opened(account);
                Ok(())
            }
            None => Err(StoreError::from(Refusal::UnknownAccount(account.to_owned())).into()),
        }
    }
}

#[cfg(test)]
mod tests;
