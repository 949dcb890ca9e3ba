//! Queues: reading, pausing and limiting them; their dead letters.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat, with_query};
use crate::contract::{
    DeadLetter, DeadLetterGroups, DeadLetters, DeadLettersMoved, DeadLettersQuery, DiscardDeadLetters,
    LimitChange, NoBody, QueueChange, QueueInfo, QueueLimitSettings, Queues, ReplayDeadLetters,
};
use crate::error::ClientError;

/// How long a server may take to move ten thousand dead letters.
const MOVING: Duration = Duration::from_secs(60);

impl Client {
    /// All queues that have settings, open tasks or dead letters.
    pub async fn queues(&self) -> Result<Queues, ClientError> {
        self.get(self.native(&["queues"])).await
    }

    /// One queue; an unused one is empty.
    pub async fn queue(&self, name: &str) -> Result<QueueInfo, ClientError> {
        self.get(self.native(&["queues", name])).await
    }

    /// Pauses a queue: no job of it is claimed any more; claimed ones go on.
    pub async fn pause_queue(&self, name: &str) -> Result<QueueInfo, ClientError> {
        self.word(&["queues", name, "pause"], &NoBody {}).await
    }

    /// Hands out from a queue again.
    pub async fn resume_queue(&self, name: &str) -> Result<QueueInfo, ClientError> {
        self.word(&["queues", name, "resume"], &NoBody {}).await
    }

    /// Replaces the limits of a queue.
    pub async fn limit_queue(
        &self,
        name: &str,
        limits: &QueueLimitSettings,
    ) -> Result<QueueInfo, ClientError> {
        let change = QueueChange { paused: None, limits: Some(limits.clone()) };
        let url = self.native(&["queues", name]);
        self.call(Method::PUT, url, Some(&change), Duration::ZERO, Repeat::Harmless).await
    }

    /// Changes some limits of a queue; the other limits stay, even if another client changes them at the same time.
    pub async fn change_limits(&self, name: &str, limits: &LimitChange) -> Result<QueueInfo, ClientError> {
        let url = self.native(&["queues", name]);
        let change = serde_json::json!({ "limits": limits });
        self.call(Method::PATCH, url, Some(&change), Duration::ZERO, Repeat::Harmless).await
    }

    /// Dead letters of a queue, oldest first.
    pub async fn dead_letters(
        &self,
        queue: &str,
        query: &DeadLettersQuery,
    ) -> Result<DeadLetters<DeadLetter>, ClientError> {
        let query = DeadLettersQuery { format: Some("objects".to_owned()), ..query.clone() };
        self.get(with_query(self.native(&["queues", queue, "dlq"]), &query)).await
    }

    /// Dead letters of a queue, grouped by error.
    pub async fn letter_groups(&self, queue: &str) -> Result<DeadLetterGroups, ClientError> {
        self.get(self.native(&["queues", queue, "dlq", "groups"])).await
    }

    /// Tries dead letters again. With a replay id it may be sent again.
    pub async fn replay(
        &self,
        queue: &str,
        replay: &ReplayDeadLetters,
    ) -> Result<DeadLettersMoved, ClientError> {
        let url = self.native(&["queues", queue, "dlq", "replay"]);
        let repeat = if replay.replay_id.is_some() { Repeat::Harmless } else { Repeat::Never };
        self.call(Method::POST, url, Some(replay), MOVING, repeat).await
    }

    /// Gives dead letters up.
    pub async fn discard(
        &self,
        queue: &str,
        discard: &DiscardDeadLetters,
    ) -> Result<DeadLettersMoved, ClientError> {
        let url = self.native(&["queues", queue, "dlq", "discard"]);
        self.call(Method::POST, url, Some(discard), MOVING, Repeat::Never).await
    }
}
