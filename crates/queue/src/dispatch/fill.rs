//! What is read from the store before jobs can be handed out.

use std::collections::VecDeque;

use windlass_engine::time::Timestamp;
use windlass_store::job::{JobRow, KeyQuery, KeyRows, ReadyQuery};
use windlass_store::queue::Held;

use super::Dispatch;
use crate::index::{Asked, Heard, Want};

/// Things to be read from the store, one after another. Dropped without an answer, they are left to the next who
/// asks.
#[derive(Debug)]
pub struct Fill<'a> {
    dispatch: &'a Dispatch,
    wants: VecDeque<Want>,
}

/// What to ask the store.
#[derive(Debug)]
pub enum Question {
    Ready(ReadyQuery),
    ReadyByKey(KeyQuery),
    /// Who has jobs of this queue.
    Held(String),
}

/// What the store answered.
#[derive(Debug)]
pub enum Answer {
    Ready(Vec<JobRow>),
    ReadyByKey(KeyRows),
    Held(Held),
}

impl<'a> Fill<'a> {
    pub(super) fn new(dispatch: &'a Dispatch, wants: Vec<Want>) -> Self {
        Fill { dispatch, wants: wants.into() }
    }

    /// What to ask next; `None` = that was all.
    pub fn question(&self, now: Timestamp) -> Option<Question> {
        Some(match self.wants.front()? {
            Want::Lists { query, except, from, limit, portion, .. } => Question::Ready(ReadyQuery {
                queues: query.queues.clone(),
                services: query.services.clone(),
                except: except.clone(),
                portion: *portion,
                from: *from,
                now,
                limit: *limit,
                ..ReadyQuery::default()
            }),
            Want::Class { query, except, from, limit } => Question::Ready(ReadyQuery {
                queues: query.queues.clone(),
                services: query.services.clone(),
                except: except.clone(),
                from: Some(*from),
                is_of_runs: true,
                now,
                limit: *limit,
                ..ReadyQuery::default()
            }),
            Want::View(filling) => match filling.question() {
                Asked::InOrder(query) => Question::Ready(ReadyQuery { now, ..query }),
                Asked::ByKey(query) => Question::ReadyByKey(KeyQuery { now, ..query }),
            },
            Want::Held(counting) => Question::Held(counting.queue.clone()),
        })
    }

    /// What the store answered. An answer to something else is none.
    pub fn answered(&mut self, answer: Answer) {
        if let Some(want) = self.wants.pop_front() {
            self.tell(want, Some(answer));
        }
    }

    fn tell(&self, want: Want, answer: Option<Answer>) {
        let index = &mut self.dispatch.lock().index;
        match (want, answer) {
            (Want::Lists { query, limit, begun, portion, .. }, Some(Answer::Ready(rows))) => {
                index.filled(&query, begun, portion, Some((rows, limit)));
            }
            (
                Want::Lists { query, begun, portion, .. },
                Some(Answer::ReadyByKey(_) | Answer::Held(_)) | None,
            ) => {
                index.filled(&query, begun, portion, None);
            }
            (Want::Class { limit, .. }, Some(Answer::Ready(rows))) => index.filled_class(Some((rows, limit))),
            (Want::Class { .. }, Some(Answer::ReadyByKey(_) | Answer::Held(_)) | None) => {
                index.filled_class(None);
            }
            (Want::View(filling), Some(Answer::Ready(rows))) => {
                index.heard(&filling, Some(Heard::InOrder(rows)));
            }
            (Want::View(filling), Some(Answer::ReadyByKey(rows))) => {
                index.heard(&filling, Some(Heard::ByKey(rows)));
            }
            (Want::View(filling), Some(Answer::Held(_)) | None) => index.heard(&filling, None),
            (Want::Held(counting), Some(Answer::Held(held))) => index.counted(&counting, Some(held)),
            (Want::Held(counting), Some(Answer::Ready(_) | Answer::ReadyByKey(_)) | None) => {
                index.counted(&counting, None);
            }
        }
    }
}

impl Drop for Fill<'_> {
    fn drop(&mut self) {
        while let Some(want) = self.wants.pop_front() {
            self.tell(want, None);
        }
    }
}
