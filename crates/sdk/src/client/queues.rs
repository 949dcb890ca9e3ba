//! Queues: reading, pausing and limiting them.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat, follow, with_query};
use crate::contract::{LimitChange, NoBody, PageQuery, QueueChange, QueueInfo, QueueLimitSettings, Queues};
use crate::error::ClientError;

/// Queues of one server, from [`Client::queues`].
#[derive(Debug, Clone, Copy)]
pub struct QueuesApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Reads, pauses and limits queues.
    pub fn queues(&self) -> QueuesApi<'_> {
        QueuesApi { client: self }
    }
}

impl QueuesApi<'_> {
    /// A page of the queues that have settings, open tasks or dead letters, by name.
    pub async fn list(self, page: &PageQuery) -> Result<Queues, ClientError> {
        self.client.get(with_query(self.client.native(&["queues"]), page)).await
    }

    /// All pages of [`QueuesApi::list`].
    pub async fn all(self) -> Result<Vec<QueueInfo>, ClientError> {
        follow(|page| async move { self.list(&page).await.map(|page| (page.queues, page.next)) }).await
    }

    /// One queue; an unused one is empty.
    pub async fn show(self, name: &str) -> Result<QueueInfo, ClientError> {
        self.client.get(self.client.native(&["queues", name])).await
    }

    /// Pauses a queue: no job of it is claimed any more; claimed ones go on.
    pub async fn pause(self, name: &str) -> Result<QueueInfo, ClientError> {
        self.client.word(&["queues", name, "pause"], &NoBody {}).await
    }

    /// Hands out from a queue again.
    pub async fn resume(self, name: &str) -> Result<QueueInfo, ClientError> {
        self.client.word(&["queues", name, "resume"], &NoBody {}).await
    }

    /// Replaces the limits of a queue.
    pub async fn set_limits(self, name: &str, limits: &QueueLimitSettings) -> Result<QueueInfo, ClientError> {
        let change = QueueChange { paused: None, limits: Some(limits.clone()) };
        let url = self.client.native(&["queues", name]);
        self.client.call(Method::PUT, url, Some(&change), Duration::ZERO, Repeat::Harmless).await
    }

    /// Changes some limits of a queue; the other limits stay, even if another client changes them at the same time.
    pub async fn change_limits(self, name: &str, limits: &LimitChange) -> Result<QueueInfo, ClientError> {
        let url = self.client.native(&["queues", name]);
        let change = serde_json::json!({ "limits": limits });
        self.client.call(Method::PATCH, url, Some(&change), Duration::ZERO, Repeat::Harmless).await
    }
}
