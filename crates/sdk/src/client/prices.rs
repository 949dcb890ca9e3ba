//! Prices of services.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat, follow, with_query};
use crate::contract::{List, NewPrice, PageQuery, PriceDeleted, PriceInfo};
use crate::error::ClientError;

/// Prices of services, from [`Client::prices`].
#[derive(Debug, Clone, Copy)]
pub struct PricesApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Sets and reads prices of services.
    pub fn prices(&self) -> PricesApi<'_> {
        PricesApi { client: self }
    }
}

impl PricesApi<'_> {
    /// Sets the price of a service.
    pub async fn set(self, service: &str, price: &NewPrice) -> Result<PriceInfo, ClientError> {
        let url = self.client.native(&["prices", service]);
        self.client.call(Method::PUT, url, Some(price), Duration::ZERO, Repeat::Harmless).await
    }

    /// Prices, by service.
    pub async fn list(self, page: &PageQuery) -> Result<List<PriceInfo>, ClientError> {
        self.client.get(with_query(self.client.native(&["prices"]), page)).await
    }

    /// All pages of [`PricesApi::list`].
    pub async fn all(self) -> Result<Vec<PriceInfo>, ClientError> {
        follow(|page| async move { self.list(&page).await.map(|page| (page.items, page.next)) }).await
    }

    /// The price of a service.
    pub async fn show(self, service: &str) -> Result<PriceInfo, ClientError> {
        self.client.get(self.client.native(&["prices", service])).await
    }

    /// Asks nothing for a service any more.
    pub async fn delete(self, service: &str) -> Result<PriceDeleted, ClientError> {
        let url = self.client.native(&["prices", service]);
        self.client.call::<(), PriceDeleted>(Method::DELETE, url, None, Duration::ZERO, Repeat::Never).await
    }
}
