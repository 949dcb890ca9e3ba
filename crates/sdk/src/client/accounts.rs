//! Accounts and prices.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat, with_query};
use crate::contract::{
    AccountInfo, Budget, DepositRequest, DepositResponse, LedgerEntry, LedgerListQuery, List, NewAccount,
    NewPrice, PageQuery, PriceDeleted, PriceInfo, RunSummary,
};
use crate::error::ClientError;

impl Client {
    /// Opens an account; one that is there and has the name is found as it is.
    pub async fn open_account(&self, account: &NewAccount) -> Result<AccountInfo, ClientError> {
        self.post(self.native(&["accounts"]), account, Repeat::Harmless).await
    }

    /// Accounts, by id.
    pub async fn accounts(&self, page: &PageQuery) -> Result<List<AccountInfo>, ClientError> {
        self.get(with_query(self.native(&["accounts"]), page)).await
    }

    /// One account.
    pub async fn account(&self, id: &str) -> Result<AccountInfo, ClientError> {
        self.get(self.native(&["accounts", id])).await
    }

    /// Puts money into an account, once per key.
    pub async fn deposit(&self, id: &str, deposit: &DepositRequest) -> Result<DepositResponse, ClientError> {
        self.post(self.native(&["accounts", id, "deposit"]), deposit, Repeat::Harmless).await
    }

    /// The ledger of an account.
    pub async fn ledger(&self, id: &str, query: &LedgerListQuery) -> Result<List<LedgerEntry>, ClientError> {
        self.get(with_query(self.native(&["accounts", id, "ledger"]), query)).await
    }

    /// Sets the budget of a run.
    pub async fn set_budget(&self, run: &str, budget: i64) -> Result<RunSummary, ClientError> {
        self.post(self.native(&["runs", run, "budget"]), &Budget { budget }, Repeat::Harmless).await
    }

    /// Sets the price of a service.
    pub async fn set_price(&self, service: &str, price: &NewPrice) -> Result<PriceInfo, ClientError> {
        let url = self.native(&["prices", service]);
        self.call(Method::PUT, url, Some(price), Duration::ZERO, Repeat::Harmless).await
    }

    /// Prices, by service.
    pub async fn prices(&self, page: &PageQuery) -> Result<List<PriceInfo>, ClientError> {
        self.get(with_query(self.native(&["prices"]), page)).await
    }

    /// The price of a service.
    pub async fn price(&self, service: &str) -> Result<PriceInfo, ClientError> {
        self.get(self.native(&["prices", service])).await
    }

    /// Asks nothing for a service any more.
    pub async fn delete_price(&self, service: &str) -> Result<PriceDeleted, ClientError> {
        let url = self.native(&["prices", service]);
        self.call::<(), PriceDeleted>(Method::DELETE, url, None, Duration::ZERO, Repeat::Never).await
    }
}
