//! Services and their settings.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat};
use crate::contract::{List, ServiceChange, ServiceInfo};
use crate::error::ClientError;

impl Client {
    /// Services that have live workers or settings, by name.
    pub async fn services(&self) -> Result<List<ServiceInfo>, ClientError> {
        self.get(self.native(&["services"])).await
    }

    /// One service.
    pub async fn service(&self, name: &str) -> Result<ServiceInfo, ClientError> {
        self.get(self.native(&["services", name])).await
    }

    /// Replaces the settings of a service.
    pub async fn set_service(&self, name: &str, change: &ServiceChange) -> Result<ServiceInfo, ClientError> {
        let url = self.native(&["services", name]);
        self.call(Method::PUT, url, Some(change), Duration::ZERO, Repeat::Harmless).await
    }
}
