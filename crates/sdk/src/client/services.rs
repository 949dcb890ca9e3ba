//! Services and what is set for them.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat};
use crate::error::ClientError;
use crate::types::{List, Service, ServiceChange};

impl Client {
    /// Services that somebody serves or for which something is set, by name.
    pub async fn services(&self) -> Result<List<Service>, ClientError> {
        self.get(self.native(&["services"])).await
    }

    /// One service.
    pub async fn service(&self, name: &str) -> Result<Service, ClientError> {
        self.get(self.native(&["services", name])).await
    }

    /// Sets what holds for a service from now on.
    pub async fn set_service(&self, name: &str, change: &ServiceChange) -> Result<Service, ClientError> {
        let url = self.native(&["services", name]);
        self.call(Method::PUT, url, Some(change), Duration::ZERO, Repeat::Harmless).await
    }
}
