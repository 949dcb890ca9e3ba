//! Services and their settings.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat, follow, with_query};
use crate::contract::{List, PageQuery, ServiceChange, ServiceInfo};
use crate::error::ClientError;

/// Services of one server, from [`Client::services`].
#[derive(Debug, Clone, Copy)]
pub struct ServicesApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Reads and configures services.
    pub fn services(&self) -> ServicesApi<'_> {
        ServicesApi { client: self }
    }
}

impl ServicesApi<'_> {
    /// A page of the services that have live workers or settings, by name.
    pub async fn list(self, page: &PageQuery) -> Result<List<ServiceInfo>, ClientError> {
        self.client.get(with_query(self.client.native(&["services"]), page)).await
    }

    /// All pages of [`ServicesApi::list`].
    pub async fn all(self) -> Result<Vec<ServiceInfo>, ClientError> {
        follow(|page| async move { self.list(&page).await.map(|page| (page.items, page.next)) }).await
    }

    /// One service.
    pub async fn show(self, name: &str) -> Result<ServiceInfo, ClientError> {
        self.client.get(self.client.native(&["services", name])).await
    }

    /// Replaces the settings of a service.
    pub async fn set(self, name: &str, change: &ServiceChange) -> Result<ServiceInfo, ClientError> {
        let url = self.client.native(&["services", name]);
        self.client.call(Method::PUT, url, Some(change), Duration::ZERO, Repeat::Harmless).await
    }
}
