//! The names of topics.

use std::fmt;

use windlass_engine::id::{BulkId, RunId};
use windlass_engine::problem::did_you_mean;

use crate::problem::{ApiError, ApiResult, Code};

/// Topics of one stream.
const TOPICS_MAX: usize = 200;

/// A subject of events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    /// One run: patches of its page.
    Run(RunId),
    /// The status of every run.
    Runs,
    Overview,
    /// The progress of a bulk action.
    Bulk(BulkId),
    List(ListTopic),
}

/// A list of which streams are told only that it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ListTopic {
    Queues,
    Approvals,
    Workers,
    Schedules,
    DeadLetters,
    Flows,
}

impl ListTopic {
    pub(crate) const ALL: [ListTopic; 6] = [
        ListTopic::Queues,
        ListTopic::Approvals,
        ListTopic::Workers,
        ListTopic::Schedules,
        ListTopic::DeadLetters,
        ListTopic::Flows,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            ListTopic::Queues => "queues",
            ListTopic::Approvals => "approvals",
            ListTopic::Workers => "workers",
            ListTopic::Schedules => "schedules",
            ListTopic::DeadLetters => "dead_letters",
            ListTopic::Flows => "flows",
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Topic::Run(run) => write!(f, "run:{run}"),
            Topic::Runs => f.write_str("runs"),
            Topic::Overview => f.write_str("overview"),
            Topic::Bulk(bulk) => write!(f, "bulk:{bulk}"),
            Topic::List(list) => f.write_str(list.word()),
        }
    }
}

impl Topic {
    /// Topics with commas between.
    pub(crate) fn list(text: &str) -> ApiResult<Vec<Topic>> {
        let mut topics = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let topic = Topic::read(word)?;
            if !topics.contains(&topic) {
                topics.push(topic);
            }
        }
        let wrong = |reason: String| Err(ApiError::field(Code::BadQuery, "?topics", reason));
        match topics.len() {
            0 => wrong("there is no topic: give `runs`, or `run:` and an id".to_owned()),
            n if n > TOPICS_MAX => wrong(format!("a stream follows at most {TOPICS_MAX} topics")),
            _ => Ok(topics),
        }
    }

    fn read(word: &str) -> ApiResult<Topic> {
        let run = word.strip_prefix("run:").and_then(|id| id.parse().ok()).map(Topic::Run);
        let bulk = || word.strip_prefix("bulk:").and_then(|id| id.parse().ok()).map(Topic::Bulk);
        let list = || ListTopic::ALL.into_iter().find(|list| list.word() == word).map(Topic::List);
        let plain = || match word {
            "runs" => Some(Topic::Runs),
            "overview" => Some(Topic::Overview),
            _ => None,
        };
        run.or_else(bulk).or_else(list).or_else(plain).ok_or_else(|| {
            let names = ListTopic::ALL.map(ListTopic::word).into_iter().chain(["runs", "overview"]);
            let shown: String = word.chars().take(80).collect();
            let reason = format!("`{shown}` is no topic");
            ApiError::field(Code::BadQuery, "?topics", reason).hint(did_you_mean(word, names))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_read_back_as_they_are_written() {
        let run = format!("run:run_{:032x}", 7);
        let bulk = format!("bulk:bulk_{:032x}", 8);
        let text =
            format!("{run}, runs,overview,{bulk},queues,approvals,workers,schedules,dead_letters,flows,runs");
        let topics: Vec<String> = Topic::list(&text).unwrap().iter().map(ToString::to_string).collect();
        let expected = [
            &run,
            "runs",
            "overview",
            &bulk,
            "queues",
            "approvals",
            "workers",
            "schedules",
            "dead_letters",
            "flows",
        ];
        assert_eq!(topics, expected);
    }

    #[test]
    fn an_unknown_topic_is_refused() {
        for wrong in ["", ",", "run:", "run:x", "queue", "runs:1", "bulk:run_1"] {
            assert_eq!(Topic::list(wrong).unwrap_err().code(), Code::BadQuery, "{wrong}");
        }
        let many: Vec<String> = (0..201).map(|n| format!("run:run_{n:032x}")).collect();
        assert!(Topic::list(&many.join(",")).is_err());
    }
}
