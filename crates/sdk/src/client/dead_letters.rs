//! Dead letters: reading, replaying and discarding them.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat, with_query};
use crate::contract::{
    DeadLetter, DeadLetterGroups, DeadLetters, DeadLettersMoved, DeadLettersQuery, DiscardDeadLetters,
    ReplayDeadLetters,
};
use crate::error::ClientError;

/// How long a server may take to move ten thousand dead letters.
const MOVING: Duration = Duration::from_secs(60);

/// Dead letters of one server, from [`Client::dead_letters`].
#[derive(Debug, Clone, Copy)]
pub struct DeadLettersApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Reads, replays and discards dead letters.
    pub fn dead_letters(&self) -> DeadLettersApi<'_> {
        DeadLettersApi { client: self }
    }
}

impl DeadLettersApi<'_> {
    /// Dead letters of a queue, oldest first.
    pub async fn list(
        self,
        queue: &str,
        query: &DeadLettersQuery,
    ) -> Result<DeadLetters<DeadLetter>, ClientError> {
        let query = DeadLettersQuery { format: Some("objects".to_owned()), ..query.clone() };
        self.client.get(with_query(self.client.native(&["queues", queue, "dlq"]), &query)).await
    }

    /// Dead letters of a queue, grouped by error.
    pub async fn groups(self, queue: &str) -> Result<DeadLetterGroups, ClientError> {
        self.client.get(self.client.native(&["queues", queue, "dlq", "groups"])).await
    }

    /// Tries dead letters again. With a replay id it may be sent again.
    pub async fn replay(
        self,
        queue: &str,
        replay: &ReplayDeadLetters,
    ) -> Result<DeadLettersMoved, ClientError> {
        let url = self.client.native(&["queues", queue, "dlq", "replay"]);
        let repeat = if replay.replay_id.is_some() { Repeat::Harmless } else { Repeat::Never };
        self.client.call(Method::POST, url, Some(replay), MOVING, repeat).await
    }

    /// Gives dead letters up.
    pub async fn discard(
        self,
        queue: &str,
        discard: &DiscardDeadLetters,
    ) -> Result<DeadLettersMoved, ClientError> {
        let url = self.client.native(&["queues", queue, "dlq", "discard"]);
        self.client.call(Method::POST, url, Some(discard), MOVING, Repeat::Never).await
    }
}
