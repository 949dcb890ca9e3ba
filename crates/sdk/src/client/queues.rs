//! Queues: looking at them, holding them back, and their dead letters.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat, with_query};
use crate::error::ClientError;
use crate::types::{
    DeadLetter, DeadLetters, DiscardLetters, LetterGroups, LettersMoved, LettersQuery, LimitChange, NoBody,
    Queue, QueueChange, QueueLimits, Queues, ReplayLetters,
};

/// How long a server may take to move ten thousand dead letters.
const MOVING: Duration = Duration::from_secs(60);

impl Client {
    /// All queues that have settings, open tasks or dead letters.
    pub async fn queues(&self) -> Result<Queues, ClientError> {
        self.get(self.native(&["queues"])).await
    }

    /// One queue; one that nobody has used is empty.
    pub async fn queue(&self, name: &str) -> Result<Queue, ClientError> {
        self.get(self.native(&["queues", name])).await
    }

    /// Hands out nothing from a queue any more; what was handed out goes on.
    pub async fn pause_queue(&self, name: &str) -> Result<Queue, ClientError> {
        self.word(&["queues", name, "pause"], &NoBody {}).await
    }

    /// Hands out from a queue again.
    pub async fn resume_queue(&self, name: &str) -> Result<Queue, ClientError> {
        self.word(&["queues", name, "resume"], &NoBody {}).await
    }

    /// Sets what holds a queue back: these limits, and no others.
    pub async fn limit_queue(&self, name: &str, limits: &QueueLimits) -> Result<Queue, ClientError> {
        let change = QueueChange { paused: None, limits: Some(limits.clone()) };
        let url = self.native(&["queues", name]);
        self.call(Method::PUT, url, Some(&change), Duration::ZERO, Repeat::Harmless).await
    }

    /// Changes some of what holds a queue back; the other limits stay, whoever else changes them meanwhile.
    pub async fn change_limits(&self, name: &str, limits: &LimitChange) -> Result<Queue, ClientError> {
        let url = self.native(&["queues", name]);
        let change = serde_json::json!({ "limits": limits });
        self.call(Method::PATCH, url, Some(&change), Duration::ZERO, Repeat::Harmless).await
    }

    /// Dead letters of a queue, oldest first.
    pub async fn dead_letters(
        &self,
        queue: &str,
        query: &LettersQuery,
    ) -> Result<DeadLetters<DeadLetter>, ClientError> {
        let query = LettersQuery { format: Some("objects".to_owned()), ..query.clone() };
        self.get(with_query(self.native(&["queues", queue, "dlq"]), &query)).await
    }

    /// Dead letters of a queue by what went wrong.
    pub async fn letter_groups(&self, queue: &str) -> Result<LetterGroups, ClientError> {
        self.get(self.native(&["queues", queue, "dlq", "groups"])).await
    }

    /// Tries dead letters again. With a replay id it may be sent again.
    pub async fn replay(&self, queue: &str, replay: &ReplayLetters) -> Result<LettersMoved, ClientError> {
        let url = self.native(&["queues", queue, "dlq", "replay"]);
        let repeat = if replay.replay_id.is_some() { Repeat::Harmless } else { Repeat::Never };
        self.call(Method::POST, url, Some(replay), MOVING, repeat).await
    }

    /// Gives dead letters up.
    pub async fn discard(&self, queue: &str, discard: &DiscardLetters) -> Result<LettersMoved, ClientError> {
        let url = self.native(&["queues", queue, "dlq", "discard"]);
        self.call(Method::POST, url, Some(discard), MOVING, Repeat::Never).await
    }
}
