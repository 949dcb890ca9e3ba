//! Accounts: opening and reading them, deposits and ledgers.

use super::{Client, Repeat, with_query};
use crate::contract::{
    AccountInfo, DepositRequest, DepositResponse, LedgerEntry, LedgerListQuery, List, NewAccount, PageQuery,
};
use crate::error::ClientError;

/// Accounts of one server, from [`Client::accounts`].
#[derive(Debug, Clone, Copy)]
pub struct AccountsApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Opens and reads accounts, and deposits money.
    pub fn accounts(&self) -> AccountsApi<'_> {
        AccountsApi { client: self }
    }
}

impl AccountsApi<'_> {
    /// Opens an account; one that is there and has the name is found as it is.
    pub async fn open(self, account: &NewAccount) -> Result<AccountInfo, ClientError> {
        self.client.post(self.client.native(&["accounts"]), account, Repeat::Harmless).await
    }

    /// Accounts, by id.
    pub async fn list(self, page: &PageQuery) -> Result<List<AccountInfo>, ClientError> {
        self.client.get(with_query(self.client.native(&["accounts"]), page)).await
    }

    /// One account.
    pub async fn show(self, id: &str) -> Result<AccountInfo, ClientError> {
        self.client.get(self.client.native(&["accounts", id])).await
    }

    /// Puts money into an account, once per key.
    pub async fn deposit(self, id: &str, deposit: &DepositRequest) -> Result<DepositResponse, ClientError> {
        self.client.post(self.client.native(&["accounts", id, "deposit"]), deposit, Repeat::Harmless).await
    }

    /// The ledger of an account.
    pub async fn ledger(self, id: &str, query: &LedgerListQuery) -> Result<List<LedgerEntry>, ClientError> {
        self.client.get(with_query(self.client.native(&["accounts", id, "ledger"]), query)).await
    }
}
