//! Services and their settings.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat};
use crate::contract::{List, ServiceChange, ServiceInfo};
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
    /// Services that have live workers or settings, by name.
    pub async fn list(self) -> Result<List<ServiceInfo>, ClientError> {
        self.client.get(self.client.native(&["services"])).await
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
