//! The journal of a run: one stored entry per commit. Its format has a version from the first day; old
//! entries are brought up to date when they are read, in one place.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::{Event, Start};
use crate::id::CommandId;
use crate::params::{MissingBlob, ParamLayer, Params, StoredLayer};
use crate::run::Run;
use crate::time::Timestamp;

/// The version that is written. Raised when an event changes in a way that defaults cannot cover; `decode` then
/// rewrites older entries.
pub const VERSION: u32 = 1;

/// The part of the journal that one commit appended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    #[serde(rename = "v")]
    pub version: u32,
    pub at: Timestamp,
    /// The command that did it: how an unknown outcome is looked up.
    pub command: CommandId,
    pub events: Vec<Event>,
}

/// The state of a run as it is stored beside its journal, so that a long one need not be folded from its beginning.
pub fn encode_snapshot(run: &Run) -> Vec<u8> {
    serde_json::to_vec(run).expect("a run is plain data: maps with string keys, no failing serialisers")
}

/// Reads a stored state. A state may be nested deeper than JSON readers usually allow: every level of
/// a plan adds some, and both are bounded.
pub fn decode_snapshot(bytes: &[u8]) -> Result<Run, JournalError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    reader.disable_recursion_limit();
    let mut run = Run::deserialize(&mut reader).map_err(JournalError::Unreadable)?;
    run.root.params = run.start.params.clone();
    Ok(run)
}

/// A stored entry that cannot be read: stop, and tell a person.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("the entry is of version {found}, this program knows up to {VERSION}: upgrade it")]
    TooNew { found: u32 },
    #[error("the entry cannot be read")]
    Unreadable(#[source] serde_json::Error),
}

impl Entry {
    pub fn new(at: Timestamp, command: CommandId, events: Vec<Event>) -> Self {
        Entry { version: VERSION, at, command, events }
    }

    /// The events as they are stored: large parameters of a start are references to blobs.
    pub fn stored_events(&self, hash: impl Fn(&str) -> String) -> Cow<'_, [Event]> {
        let stored = |event: &Event| match event {
            Event::Started(start) => {
                let params_in = start.params.stored(&hash)?;
                let start = Start { params: Params::default(), params_in, ..(**start).clone() };
                Some(Event::Started(Box::new(start)))
            }
            _ => None,
        };
        if self.events.iter().all(|event| stored(event).is_none()) {
            return Cow::Borrowed(&self.events);
        }
        Cow::Owned(self.events.iter().map(|event| stored(event).unwrap_or_else(|| event.clone())).collect())
    }

    /// The hashes of the blobs that its stored form refers to.
    pub fn blobs(&self) -> impl Iterator<Item = &str> {
        let starts = self.events.iter().filter_map(|event| match event {
            Event::Started(start) => Some(&start.params_in),
            _ => None,
        });
        starts.flatten().filter_map(StoredLayer::hash)
    }

    /// Replaces the references of the stored form by the parameters themselves.
    pub fn resolve(&mut self, find: impl Fn(&str) -> Option<Arc<ParamLayer>>) -> Result<(), MissingBlob> {
        for event in &mut self.events {
            if let Event::Started(start) = event
                && !start.params_in.is_empty()
            {
                start.params = StoredLayer::resolve(&start.params_in, &find)?;
                start.params_in.clear();
            }
        }
        Ok(())
    }

    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self)
            .expect("events are plain data: maps with string keys, no failing serialisers")
    }

    /// Reads the stored form of this or any earlier version.
    pub fn decode(bytes: &[u8]) -> Result<Self, JournalError> {
        #[derive(Deserialize)]
        struct Head {
            v: u32,
        }
        match serde_json::from_slice::<Self>(bytes) {
            Ok(entry) if entry.version <= VERSION => Ok(entry),
            Ok(entry) => Err(JournalError::TooNew { found: entry.version }),
            // Events of a newer version may not parse at all: say that, rather than how.
            Err(error) => match serde_json::from_slice::<Head>(bytes) {
                Ok(head) if head.v > VERSION => Err(JournalError::TooNew { found: head.v }),
                Ok(_) | Err(_) => Err(JournalError::Unreadable(error)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::counter::Fence;
    use crate::limits::VALUE_DEPTH;

    #[test]
    fn the_deepest_value_that_is_taken_can_be_read_back() {
        let deepest = (1..VALUE_DEPTH).fold(json!(1), |inner: Value, _| json!([inner]));
        assert!(crate::weight::weigh(&deepest).is_ok());
        let done = Event::Done {
            node: "a".into(),
            fence: Fence(1),
            output: Some(Arc::new(deepest)),
            action: None,
            actual: None,
            worker: None,
        };
        let entry = Entry::new(Timestamp(1), CommandId::new(uuid::Uuid::nil()), vec![done]);
        assert_eq!(Entry::decode(&entry.encode()).unwrap(), entry);
    }

    #[track_caller]
    fn reads_as_written(number: f64) {
        let signal = Event::Signaled { id: None, key: "k".to_owned(), value: json!(number).into(), by: None };
        let command = "cmd_0190a1b2c3d47000800000000000000b".parse().unwrap();
        let entry = Entry::new(Timestamp(1), command, vec![signal]);
        assert_eq!(Entry::decode(&entry.encode()).unwrap(), entry, "{number:e}");
    }

    #[test]
    fn a_long_fraction_reads_as_it_was_written() {
        // A reader that rounds quickly takes it for its neighbour; a replay would then differ from the run.
        reads_as_written(6.666666666666667e69);
    }

    proptest! {
        #[test]
        fn any_number_reads_as_it_was_written(number in any::<f64>()) {
            reads_as_written(number);
        }
    }
}
